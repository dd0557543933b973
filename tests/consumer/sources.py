#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Several events and cpus, lost samples and times: how the readers of perf.data count them."""
import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import DEMO, TOOLS, check, equal, finish, kscope, run, scratch

ELF = os.path.join(DEMO, "4k", "hasher.elf")
SOURCES = {1: ('type=4 config=0x11 period=1000', "cpu_cycles", 30),
           2: ('type=4 config=0x8 period=500', "inst_retired", 20),
           3: ('type=0 config=0x1 freq=99', "instructions", 10),
           4: ('name="my timer" type=1 config=0x9', "my timer", 5)}


def make_dump():
    lines = ["kscope-dump 1", 'meta key="arch" value="aarch64"', 'meta key="hostname" value="board"',
             'meta key="nrcpus" value="4"']
    for number, (words, _, _) in SOURCES.items():
        lines.append(f"source id={number} {words}")
    lines += ['comm task=1/1 name="hasher"', f'map task=1/1 whole path="{ELF}"']
    time = 5_000_000_000
    for number, (_, _, count) in SOURCES.items():
        for i in range(count):
            time += 1000
            lines.append(f"sample time={time / 1e9:.9f} cpu={i % 4} task=1/1 source={number} "
                         f"weight={number * 100} : user 0x2011ac")
    lines.append("lost time=5.000001000 cpu=2 task=1/1 count=7 bytes=0")
    return "\n".join(lines) + "\n"


def main():
    with scratch() as folder:
        text, data = os.path.join(folder, "a.dump"), os.path.join(folder, "a.data")
        with open(text, "w", encoding="ascii") as f:
            f.write(make_dump())
        done = kscope("convert", text, "-o", data)
        equal("it converts", done.returncode, 0)
        check("it says what the recording lost", "lost 7 samples" in done.stderr, done.stderr)
        names = [name for _, name, _ in SOURCES.values()]
        want = {name: count for _, name, count in SOURCES.values()}
        equal("perf evlist", run("perf", "evlist", "-i", data).stdout.splitlines(), names)

        script = run("perf", "script", "-i", data, "-F", "event,cpu,time,period", "--ns",
                     "--show-lost-events")
        got = {}
        for line in script.stdout.splitlines():
            for name in names:
                if line.rstrip().endswith(f" {name}:"):
                    got[name] = got.get(name, 0) + 1
        equal("perf script counts by event", got, want)
        check("perf script has the losses", "lost 7" in script.stdout, script.stdout[-300:])
        check("perf script has cpu, time and period",
              re.search(r"^\[003\] +5\.000004000: +100 +cpu_cycles:", script.stdout, re.M) and
              re.search(r" 400 +my timer:", script.stdout), script.stdout[:300])
        stats = run("perf", "report", "-i", data, "--stats").stdout
        check("perf report --stats", "SAMPLE events:         65" in stats and "LOST events:" in stats,
              stats)
        header = run("perf", "report", "-i", data, "--header-only").stdout
        check("perf's header", "# hostname : board" in header and "# nrcpus online : 4" in header and
              "# arch : aarch64" in header, header)

        done = run("node", os.path.join(TOOLS, "perfetto.mjs"), data,
                   "select count(*) as n from perf_sample", "select count(distinct cpu) as c from "
                   "perf_sample")
        equal("Perfetto counts samples and cpus", done.stdout.split(), ["n", "65", "c", "4"])
        got = json.loads(run(sys.executable, os.path.join(TOOLS, "perfparser.py"), data).stdout)
        equal("hotspot counts by event", {name: event["samples"] for name, event in
                                          got["events"].items()}, want)
        report = json.loads(kscope("report", text, "--json").stdout)
        equal("our own report counts by event", {event["name"]: event["samples"] for event in
                                                 report["events"]}, want)
        equal("our own info counts what was lost", json.loads(kscope("info", text, "--json").stdout)
              ["lost"], 7)
        folded = kscope("convert", text, "-t", "folded", "-o", "-").stdout
        check("folded: the event is the outermost frame", "cpu_cycles;hasher;" in folded and
              "my timer;hasher;" in folded, folded)
        folded = kscope("convert", text, "-t", "folded", "-o", "-", "--event", "inst_retired").stdout
        check("folded: one event needs no such frame", folded.startswith("hasher;") and
              folded.rstrip().endswith(" 20"), folded)
    finish()


if __name__ == "__main__":
    main()
