#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads a perf.data file with hotspot's own parser and prints what it found.

    perfparser.py FILE [PERFPARSER-OPTION ...]

hotspot-perfparser (Debian package hotspot) is a perf.data reader independent of
perf.  It writes a binary stream meant for hotspot's window; this script decodes
the stream and prints JSON:

    samples      number of samples
    events       per event name: samples, and period, the sum of their values
    tasks        per pid and comm: samples (comm "" before its name is known)
    lost         number of reports of lost events
    lost_events  how many were lost; null when the parser does not tell, as in
                 hotspot 1.3
    leaf         samples per symbol of the innermost frame ("" when not known)
    chains       samples with more than one frame
    errors       messages the parser put into the stream, with their numbers

The parser's own words go to stderr.  Exit status 1 when the parser fails or its
stream is damaged.  Set HOTSPOT_PERFPARSER to use another binary.

The stream: the magic "QPERFSTREAM" and a NUL; the QDataStream version (int32,
little endian); then messages, each a uint32 length (little endian) and a body
whose first byte is its type.  Inside a body QDataStream is big endian; a byte
string is a uint32 length (0xffffffff: none) and its bytes, a list a uint32 count
and its items.  Names are numbers of strings defined earlier, -1 meaning none.
"""

import collections
import glob
import json
import os
import struct
import subprocess
import sys

MAGIC = b"QPERFSTREAM\0"
(THREAD_START, THREAD_END, COMMAND, LOCATION, SYMBOL, STRING, LOST, FEATURES,
 ERROR, PROGRESS, TRACEPOINT_FORMAT, ATTRIBUTES, CONTEXT_SWITCH, SAMPLE,
 TRACEPOINT_SAMPLE) = range(15)


class Body:
    """The fields of one message, read in order."""

    def __init__(self, data):
        self.data, self.pos = data, 0

    def get(self, fmt):
        """One value for a one-letter format, else a tuple."""
        values = struct.unpack_from(">" + fmt, self.data, self.pos)
        self.pos += struct.calcsize(">" + fmt)
        return values[0] if len(values) == 1 else values

    def bytes(self):
        size = self.get("I")
        if size == 0xFFFFFFFF:
            return b""
        if self.pos + size > len(self.data):
            raise ValueError("string past the end of its message")
        self.pos += size
        return self.data[self.pos - size:self.pos]


def messages(stream):
    """Yields (type, body) of every message."""
    if not stream.startswith(MAGIC):
        raise ValueError("no QPERFSTREAM magic")
    pos = len(MAGIC) + 4
    while pos < len(stream):
        if pos + 4 > len(stream):
            raise ValueError("stream ends inside a length")
        (size,) = struct.unpack_from("<I", stream, pos)
        pos += 4
        if size == 0 or pos + size > len(stream):
            raise ValueError("stream ends inside a message")
        yield stream[pos], Body(stream[pos + 1:pos + size])
        pos += size


def summarize(stream):
    strings, attributes, comms = {-1: ""}, {-1: ""}, {}
    symbols, parents = {}, {}           # of locations
    events = collections.defaultdict(lambda: {"samples": 0, "period": 0})
    tasks, leaf, errors = (collections.Counter() for _ in range(3))
    samples = lost = chains = 0
    lost_events = None

    for kind, body in messages(stream):
        if kind == STRING:
            number = body.get("i")
            strings[number] = body.bytes().decode(errors="replace")
        elif kind == ATTRIBUTES:
            number, _type, _config, name = body.get("iIQi")
            attributes[number] = strings[name]
        elif kind == LOCATION:          # parent: its function, or its caller when inlined
            number, *_, parents[number] = body.get("iQiIiii")
        elif kind == SYMBOL:            # numbered like the location it names
            number, name = body.get("ii")
            symbols[number] = strings[name]
        elif kind == COMMAND:
            pid, tid, _time, _cpu, name = body.get("iiQIi")
            comms[tid] = strings[name]
            comms.setdefault(pid, strings[name])
        elif kind == THREAD_START:      # a new task has its parent's name
            pid, tid, _time, _cpu, parent = body.get("iiQIi")
            comms[tid] = comms.get(parent, "")
            comms.setdefault(pid, comms[tid])
        elif kind == LOST:
            lost += 1
            body.get("iiQI")
            if body.pos < len(body.data):
                lost_events = (lost_events or 0) + body.get("Q")
        elif kind == ERROR:
            body.get("i")
            errors[body.bytes().decode("utf-16-be", errors="replace")] += 1
        elif kind in (SAMPLE, TRACEPOINT_SAMPLE):
            pid, tid, _time, _cpu, depth = body.get("iiQII")
            frames = [body.get("i") for _ in range(depth)]
            _guessed, values = body.get("BI")
            samples += 1
            chains += depth > 1
            tasks[pid, comms.get(tid, comms.get(pid, ""))] += 1
            place = frames[0] if frames else -1
            while place != -1 and place not in symbols:
                place = parents.get(place, -1)
            leaf[symbols.get(place, "")] += 1
            for _ in range(values):
                attribute, value = body.get("iQ")
                events[attributes[attribute]]["samples"] += 1
                events[attributes[attribute]]["period"] += value

    return {
        "samples": samples,
        "events": events,
        "tasks": [{"pid": pid, "comm": comm, "samples": count}
                  for (pid, comm), count in sorted(tasks.items())],
        "lost": lost,
        "lost_events": lost_events if lost else 0,
        "leaf": dict(leaf.most_common()),
        "chains": chains,
        "errors": errors,
    }


def find_parser():
    if "HOTSPOT_PERFPARSER" in os.environ:
        return os.environ["HOTSPOT_PERFPARSER"]
    for pattern in ("/usr/lib/*/libexec/hotspot-perfparser",
                    "/usr/lib*/libexec/hotspot-perfparser",
                    "/usr/libexec/hotspot-perfparser"):
        for path in glob.glob(pattern):
            return path
    sys.exit("perfparser.py: hotspot-perfparser is not installed")


def main():
    if len(sys.argv) < 2:
        print("usage: perfparser.py FILE [PERFPARSER-OPTION ...]", file=sys.stderr)
        return 2
    env = dict(os.environ, LC_ALL="C.UTF-8")
    env.pop("DEBUGINFOD_URLS", None)    # never ask a server for symbols
    run = subprocess.run([find_parser(), "--input", *sys.argv[1:]],
                         stdout=subprocess.PIPE, env=env, check=False)
    if run.returncode:
        sys.exit(f"perfparser.py: the parser failed, status {run.returncode}")
    try:
        result = summarize(run.stdout)
    except (ValueError, KeyError, struct.error) as error:
        sys.exit(f"perfparser.py: damaged stream: {error!r}")
    json.dump(result, sys.stdout, indent=1)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
