#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The sampler's streams in the formats of seL4 and Akaros: what was sampled is what they contain, byte by byte and as
protoc and kscope read them; and the conversation of seL4's board."""
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import check, equal, exits, finish, kpdata, kscope, no_problems, run, scratch, sel4, skip
from kit.streams import Sample, read_dump
from kit.target_formats import (CPUS, LONGEST, MAPPINGS, MAPS, NAMES, NO_LIMIT, as_kpdata, as_sel4, kernel,
                                kpdata_head, play, process_of, sel4_message, step, take)

READY = b"200 OK (Ready to go)\n"
# Written from the description of the format; the stream has no name for it.
PROTO = """syntax = "proto3";
message Sample {
  uint64 ip = 1; uint32 pid = 2; uint64 time = 3; uint32 cpu = 4; uint64 period = 5; uint64 nr = 6;
  repeated uint64 ips = 7;
}
message Samples { repeated Sample sample = 1; }
"""


def start(name, *more):
    """Steps up to the first sample."""
    return [*kernel(), f"tell format {name}", "tell prof_btdepth 127", *more]


def converted(folder, stream, *words):
    path = os.path.join(folder, "stream")
    with open(path, "wb") as f:
        f.write(stream)
    return kscope("convert", path, "-o", "-", "-t", "dump", *words)


def counts(told):
    """The sums of taken, sent and dropped of all cpus in the last answer to status."""
    rows = re.findall(r"taken (\d+), sent (\d+), dropped (\d+)", told)[-CPUS:]
    return tuple(sum(map(int, column)) for column in zip(*rows))


# seL4

def split(stream):
    """The messages of a stream without text."""
    found = []
    while stream:
        size = int(stream[:2])
        found.append(stream[2:2 + size])
        if len(found[-1]) < size:
            raise ValueError("the stream ends in a message")
        stream = stream[2 + size:]
    return found


def protoc(folder, messages):
    """The samples as protoc decodes them: (Sample, number of addresses)."""
    path = os.path.join(folder, "sample.proto")
    with open(path, "w", encoding="ascii") as f:
        f.write(PROTO)
    wrapped = b"".join(b"\x0a" + bytes([len(message)]) + message for message in messages)
    done = run("protoc", "--decode=Samples", f"-I{folder}", path, input=wrapped)
    found = []
    for block in re.findall(r"sample \{\n(.*?)\}", done.stdout, re.S):
        rows = re.findall(r"(\w+): (\d+)", block)
        one = {key: int(value) for key, value in rows if key != "ips"}
        ips = [int(value) for key, value in rows if key == "ips"]
        found.append((Sample(one.get("time", 0), one.get("cpu", 0), one.get("pid", 0), one.get("period", 0),
                             (one.get("ip", 0), *ips[:one.get("nr", 0)])), len(ips)))
    check("sel4: protoc knows all fields", not re.search(r"^ *\d+[:{ ]", done.stdout, re.M), done.stderr)
    return found


def test_sel4(folder):
    """Several rounds. No message has 100 bytes, and none is shorter than it has to be."""
    rounds = [take(150, seed=1), take(150, seed=2, first=3 << 32), take(20, seed=3, first=4 << 32, depths=(1,))]
    steps = start("sel4", "connect", "serve", "say MAPPINGS")
    for samples in rounds:
        steps += ["say START", *map(step, samples), "say STOP", "serve"]
    stream, told = play(*steps, "tell status")
    want = [as_sel4(taken) for samples in rounds for taken in samples]
    head = sel4.GREETING + MAPPINGS
    check("sel4: the greeting and the mappings", stream.startswith(head), stream[:200])
    messages = split(stream[len(head):])
    no_problems("sel4: no message is too long", [m for m in messages if len(m) > LONGEST])
    equal("sel4: the messages, byte by byte", sorted(messages), sorted(map(sel4_message, want)))
    check("sel4: some stacks had to be shortened, and some not",
          {len(s.ips) for s in want} >= {1, 2, 5, 6, 17}, sorted({len(s.ips) for s in want}))
    equal("sel4: the counts of the last round", counts(told), (20, 20, 0))
    done = converted(folder, stream, *NAMES)
    exits("sel4: kscope reads it", done, 0)
    equal("sel4: and says nothing else", done.stderr, "")
    equal("sel4: the samples that kscope reads", sorted(read_dump(done.stdout)[0]), sorted(want))
    equal("sel4: the mappings that kscope reads",
          set(re.findall(r'^map .*task=(\d+)/\d+ .*path="[^"]*?([^/"]+)"', done.stdout, re.M)),
          {(pid, name) for name, pid in re.findall(r"(\S+): (\d+)", MAPPINGS.decode())})
    if not shutil.which("protoc"):
        skip("sel4: protoc", "it is not installed")
        return
    found = protoc(folder, messages)
    equal("sel4: the samples that protoc reads", sorted(s for s, _ in found), sorted(want))
    equal("sel4: always 16 addresses, as toperf wants them", {nr for _, nr in found}, {sel4.DEPTH})


def test_sel4_words(folder):
    """What the board says, before, in and after the stream."""
    one_cpu = [taken._replace(cpu=0) for taken in take(40, seed=4)]
    frames = [sel4.frame(sel4_message(as_sel4(taken))) for taken in one_cpu]
    talk = [  # what the host says, and what it gets; None: a text of ours
        ("connect\nserve", sel4.GREETING), ("say HELLO", READY), ("say EXIT", sel4.ERROR),
        ("say STOP", b""), ("say REFRESH", b""), ("say \nserve", b""), ("say HELLO\r\nserve", READY),
        ("say STARTX", sel4.ERROR), ("say " + "X" * 200, sel4.ERROR), ("say mappingz", None),
        ("say timer period 1000", None), ("say START", b""), ("say START", b""),
        *((step(taken), b"") for taken in one_cpu[:10]), ("say flush\nserve", b"".join(frames[:10])),
        ("say HELLO", READY), ("say QUIT", sel4.ERROR), ("say bogus", sel4.ERROR), ("say status", b""),
        ("say prof_btdepth 5", sel4.ERROR), ("say MAPPINGS", MAPPINGS),
        *((step(taken), b"") for taken in one_cpu[10:]), ("say REFRESH\nserve", b"".join(frames[10:])),
        ("say STOP\nserve", b""), ("say HELLO", READY), ("say status", None)]
    steps, stream, wrong, ours = start("sel4"), b"", [], b""
    for said, want in talk:
        steps.append(said)
        before, (stream, _) = len(stream), play(*steps)
        got = stream[before:]
        if want is None:
            ours += got
        elif got != want:
            wrong.append((said, got, want))
    no_problems("sel4: the conversation", wrong)
    check("sel4: commands of ours have their own answers",
          b"error: the commands are: start" in ours and b"stopped, format sel4" in ours, ours)
    done = converted(folder, b"".join(want or b"" for _, want in talk), *NAMES)
    exits("sel4: kscope reads a stream with answers in it", done, 0)
    equal("sel4: all samples of a stream with answers in it", read_dump(done.stdout)[0],
          [as_sel4(taken) for taken in one_cpu])


def test_sel4_links():
    """A host that connects again: the greeting comes first, and the message that was cut comes whole."""
    taken = take(1, seed=5)[0]
    frame = sel4.frame(sel4_message(as_sel4(taken)))
    steps = start("sel4", "budget 5", "connect", "serve", "budget 7", "serve", f"budget {NO_LIMIT}", "serve")
    equal("sel4: the greeting in pieces", play(*steps)[0], sel4.GREETING)
    steps = start("sel4", "budget 5", "connect", "serve", f"budget {NO_LIMIT}", "connect", "serve")
    equal("sel4: a new host gets all of the greeting", play(*steps)[0], sel4.GREETING[:5] + sel4.GREETING)
    steps = start("sel4", "connect", "serve", "say START", step(taken), "budget 9", "say REFRESH", "serve",
                  f"budget {NO_LIMIT}", "connect", "serve", "say HELLO")
    equal("sel4: a new host gets the message that was cut", play(*steps)[0],
          sel4.GREETING + frame[:9] + sel4.GREETING + frame + READY)
    steps = [*kernel(), "say format sel4", "say HELLO", "say format kpdata"]
    equal("sel4: who selects the format is greeted", play(*steps)[0], sel4.GREETING + READY)
    equal("sel4: no tasks and no maps", play("tell format sel4", "say MAPPINGS")[0], sel4.ERROR)


def test_sel4_names():
    """Names that would end too early, and more than fit an answer."""
    many = [f"map {pid} 1000 1000 0 0 /bin/{'x' * 100}-{pid}.elf" for pid in range(1, 40)]
    lines = play(*many, "tell format sel4", "say MAPPINGS")[0].decode().split("\n")
    equal("sel4: as many mappings as fit", lines, [f"{'x' * 100}-{pid}.elf: {pid}" for pid in range(1, len(lines) + 1)])
    check("sel4: that is some of them", 5 < len(lines) < 39, len(lines))
    odd = ["map 3 1000 1000 0 0 a: b", "tell format sel4", "say MAPPINGS"]
    equal("sel4: odd characters in a name", play(*odd)[0], b"a__b: 3")


# Both

def test_ends(name, begin, stop, as_bytes, head):
    """START while the rest of the last recording waits for the link: it goes on."""
    taken = [one._replace(cpu=0) for one in take(30, seed=6)]
    steps = start(name, f"say {begin}", *map(step, taken[:10]), "budget 0", f"say {stop}", f"tell {begin}",
                  *map(step, taken[10:]), f"budget {NO_LIMIT}", f"say {stop}", "serve", "tell status")
    stream, told = play(*steps)
    if head:  # it describes everything again at each start
        stream = stream.replace(head, b"")
    equal(f"{name}: start while it ends", stream, b"".join(map(as_bytes, taken)))
    equal(f"{name}: start while it ends: the counts", counts(told), (30, 30, 0))


def test_cuts(name, begin, stop, as_bytes, head):
    """The link breaks anywhere. The next host gets what the last one has not got as a whole."""
    taken = [one._replace(cpu=0) for one in take(25, seed=12)]
    greeting = sel4.GREETING if name == "sel4" else b""
    pieces = [as_bytes(one) for one in taken] + head
    ends = [len(b"".join(pieces[:nr])) for nr in range(len(pieces) + 1)]
    rest, wrong = b"".join(pieces), []
    for cut in range(0, len(rest) - 1, 29):
        stream, _ = play(*start(name, "connect", "serve", f"say {begin}", "serve", *map(step, taken), f"budget {cut}",
                                f"say {stop}", "serve", f"budget {NO_LIMIT}", "connect", "serve"))
        want = greeting + b"".join(head) + rest[:cut] + greeting + rest[max(end for end in ends if end <= cut):]
        if stream != want:
            wrong.append(cut)
    no_problems(f"{name}: a link that breaks anywhere", wrong)


def test_drops(name, begin, stop, as_bytes, head):
    """A ring that is too small: the stream has what was not dropped, and status counts both."""
    taken = [one._replace(cpu=0) for one in take(300, seed=7, depths=(1, 2, 3))]
    for policy in ("oldest", "newest"):
        steps = [*kernel(), f"tell format {name}", "tell prof_btdepth 4", "tell prof_qlimit 8",
                 f"tell drop {policy}", f"say {begin}", "serve", *map(step, taken), "serve", f"say {stop}", "serve",
                 "tell status"]
        stream, told = play(*steps)
        all_, sent, dropped = counts(told)
        kept = taken[:sent] if policy == "newest" else taken[dropped:]
        check(f"{name}: some {policy} are dropped", all_ == 300 and 10 < sent < 290 and dropped == 300 - sent,
              (all_, sent, dropped))
        if policy == "oldest":
            equal(f"{name}: the stream has the others", stream, head + b"".join(map(as_bytes, kept)) + head)
        else:
            # What is short may fit where something longer did not.
            first = head + b"".join(map(as_bytes, taken[:9]))
            check(f"{name}: the stream has the first ones", stream.startswith(first), len(stream))


def test_allocations(name, begin, stop):
    """They have no form in these formats, and take no room in the rings."""
    stream, told = play(f"tell format {name}", f"say {begin}", *["alloc 0"] * 50, f"say {stop}", "serve",
                        "tell status")
    equal(f"{name}: no allocations", (stream, counts(told)), (b"", (0, 0, 0)))


# Akaros

def records(stream):
    """The records of a stream, from the description of the format alone."""
    found, at = [], 0
    while at < len(stream):
        first, numbers = at, []
        for _ in range(2):
            value = shift = 0
            while True:
                byte = stream[at]
                at += 1
                value |= (byte & 0x7F) << shift
                shift += 7
                if not byte & 0x80:
                    break
            numbers.append(value)
        at += numbers[1]
        found.append(stream[first:at])
    return found


def dump_sample(taken, weight):
    """As kscope reads it: without a process, it belongs to the kernel's."""
    return Sample(taken.time, taken.cpu, process_of(taken.task), weight, taken.ips)


def test_kpdata(folder):
    rounds = [take(200, seed=8), take(100, seed=9, first=5 << 32)]
    steps = start("kpdata")
    for samples in rounds:
        steps += ["say start", "serve", *map(step, samples), "say stop", "serve"]
    stream, told = play(*steps, "tell status")
    head, found = kpdata_head(), records(stream)
    parts = []
    for samples in rounds:
        part, found = found[:len(samples) + 2 * len(head)], found[len(samples) + 2 * len(head):]
        parts.append(part)
        equal("kpdata: descriptions at the start", part[:len(head)], head)
        equal("kpdata: and at the end", part[-len(head):], head)
        equal("kpdata: the traces, byte by byte", sorted(part[len(head):-len(head)]), sorted(map(as_kpdata, samples)))
    equal("kpdata: nothing more", found, [])
    equal("kpdata: the counts of the last round", counts(told), (100, 100, 0))
    done = converted(folder, stream)
    check("kpdata: kscope reads it", done.returncode == 0 and "damage" not in done.stderr, done.stderr)
    equal("kpdata: the samples that kscope reads", sorted(read_dump(done.stdout)[0]),
          sorted(dump_sample(taken, 1000000) for samples in rounds for taken in samples))
    equal("kpdata: the processes that kscope reads",
          set(re.findall(r'^comm .*task=(\d+)/\d+ .*name="([^"]*)"', done.stdout, re.M)),
          {("0", "[kernel]"), ("1", "hasher"), ("7", "sorter"), ("9", "idle"), ("4294967280", "last")})
    equal("kpdata: the maps that kscope reads",
          {tuple(int(word, 0) for word in row[:4]) + row[4:] for row in re.findall(
              r'^map .*task=([1-9]\d*)/\d+ .*addr=(\w+) len=(\w+) offset=(\w+) .*path="([^"]*)"', done.stdout, re.M)},
          {(process, address, size, offset, path) for process, address, size, offset, _, path in MAPS
           if process and size})


def test_kpdata_events(folder):
    """Each event has its own info: the period of the timer, the number of a counter's event."""
    infos = [1 << 60 | 250, 2 << 60 | 1 << 16 | 1, 2 << 60 | 1 << 16, 2 << 60 | 0x412e, 2 << 60 | 0x1c2]
    taken = [one._replace(cpu=0) for one in take(100, seed=10, events=range(5))]
    steps = start("kpdata", "tell timer period 250", "tell event cycles period 1000", "tell event instructions freq 99",
                  "tell event cache-misses period 50", "tell event r1c2 period 7", "say start", "serve",
                  *map(step, taken), "say stop", "serve")
    stream, _ = play(*steps)
    head = b"".join(kpdata_head())
    equal("kpdata: five events, byte by byte", stream,
          head + b"".join(as_kpdata(one, infos[one.event]) for one in taken) + head)
    done = converted(folder, stream)
    sources = set(re.findall(r"^source .*type=(\d+) config=(\w+)", done.stdout, re.M))
    equal("kpdata: five events in kscope", sources,
          {("1", "0x0"), ("0", "0x0"), ("0", "0x1"), ("4", "0x412e"), ("4", "0x1c2")})
    equal("kpdata: all samples of five events", len(read_dump(done.stdout)[0]), len(taken))


def test_kpdata_changes(folder):
    """A process that comes later, with the name of one that is there: it has its own binary."""
    taken = [one._replace(cpu=0, task=task, user=True, ips=(0x401010,), user_ips=())
             for one, task in zip(take(2, seed=11), (5, 6))]
    stream, _ = play("map 5 401000 1000 1000 0 /bin/a", "task 5 0 0 worker", "tell format kpdata", "say start", "serve",
                     step(taken[0]), "task 6 0 1100000 worker", "map 6 401000 1000 1000 1100000 /bin/b", "changed",
                     "serve", step(taken[1]), "say stop", "serve")
    one = [kpdata.mapping(0, 5, 0x401000, 0x1000, 0x1000, "/bin/a"), kpdata.process(0, 5, "worker")]
    both = [one[0], kpdata.mapping(1100000, 6, 0x401000, 0x1000, 0x1000, "/bin/b"), one[1],
            kpdata.process(1100000, 6, "worker")]
    equal("kpdata: what comes later is described", sorted(records(stream)),
          sorted(one + both + both + list(map(as_kpdata, taken))))
    done = converted(folder, stream)
    equal("kpdata: it keeps its name",
          set(re.findall(r'^comm .*task=6/6 .*name="([^"]*)"', done.stdout, re.M)), {"worker"})
    check("kpdata: it is no fork", "\nfork " not in done.stdout, done.stdout)


def main():
    with scratch() as folder:
        test_sel4(folder)
        test_sel4_words(folder)
        test_sel4_links()
        test_sel4_names()
        for name, begin, stop, as_bytes, head in (
                ("sel4", "START", "STOP", lambda taken: sel4.frame(sel4_message(as_sel4(taken))), b""),
                ("kpdata", "start", "stop", as_kpdata, b"".join(kpdata_head()))):
            test_ends(name, begin, stop, as_bytes, head)
            test_drops(name, begin, stop, as_bytes, head)
            test_cuts(name, begin, stop, as_bytes, kpdata_head() if head else [])
            test_allocations(name, begin, stop)
        test_kpdata(folder)
        test_kpdata_events(folder)
        test_kpdata_changes(folder)
    finish()


if __name__ == "__main__":
    main()
