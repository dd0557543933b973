#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""go tool pprof reads our profiles: for each event, the same functions, tasks and CPUs as kscope report, and the same
allocations as kscope alloc."""
import collections
import gzip
import json
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import BUILD, check, equal, exits, finish, kscope, no_problems, profiles, run, scratch, skip
from kit.inputs import GOLDEN

ROW = re.compile(r" *(-?[\d.]+)\w* +[\d.]+% +[\d.]+% +(-?[\d.]+)\w* +[\d.]+%  (.*?)(?: \((?:partial-)?inline\))?$")
TAG = re.compile(r"^ *(-?\d+)\w* \( *[\d.e-]+%\): (.*)$")
LOCATION = re.compile(r"^ +(\d+): (0x[0-9a-f]+) (?:M=(\d+) )?(.*)$")
LINE = re.compile(r"^(.*) (\S*?):(\d+)(?::0)? s=\d+(?:\(.*\))?$")  # since Go 1.22 with a column
MAPPING = re.compile(r"^(\d+): (0x[0-9a-f]+)/(0x[0-9a-f]+)/(0x[0-9a-f]+) (\S*) (\S*) ?(\[.*\])?$")
ALLOCS = """kscope-dump 1
{}
alloc time=0.000000010 cpu=0 task=1/1 new by="kmalloc" ptr=0x10 size=64 at=0 : kernel 0x5000 0x6000
alloc time=0.000000020 cpu=0 task=1/1 new by="kmalloc" ptr=0x20 size=100 at=0 : kernel 0x5000 0x6000
alloc time=0.000000030 cpu=1 task=2/2 new by="kmalloc" ptr=0x30 size=7 at=0 : kernel 0x5000 0x7000
alloc time=0.000000040 cpu=0 task=1/1 free by="kmalloc" ptr=0x20 at=0 : kernel 0x8000
alloc time=0.000000050 cpu=0 task=1/1 new by="slab" ptr=0x10 size=4096 at=0 : kernel 0x9000
alloc time=0.000000060 cpu=0 task=1/1 resize by="slab" ptr=0x10 size=8192 at=0 : kernel 0x9000
alloc time=0.000000070 cpu=0 task=1/1 free by="pool" ptr=0x999 at=0 : kernel 0x9000
"""
SAMPLE = """source id=1 name="cycles" type=0 config=0x0
sample time=0.000000001 cpu=0 task=1/1 source=1 weight=5 : kernel 0x1000 0x2000"""


class Pprof:
    """go tool pprof, which neither reads nor writes anything outside of the build and the scratch folder."""

    def __init__(self, folder):
        self.env = {**os.environ, "HOME": folder, "PPROF_TMPDIR": folder, "PPROF_BINARY_PATH": folder, "TZ": "UTC",
                    "GOCACHE": os.path.join(BUILD, "tests", "go"), "GOPATH": folder, "GOFLAGS": "-mod=mod",
                    "GOPROXY": "off", "GOTOOLCHAIN": "local", "GOENV": "off"}

    def __call__(self, path, report, *options):
        done = run("go", "tool", "pprof", f"-{report}", *options, path, env=self.env)
        if done.returncode:
            check(f"pprof -{report} of {os.path.basename(path)}", False, done.stderr)
        return done.stdout

    def top(self, path, index, *options):
        """{function: (self, total)}"""
        text = self(path, "top", "-nodecount=0", "-nodefraction=0", "-edgefraction=0", f"-sample_index={index}",
                    *options)
        rows = {}
        for line in text.split("flat%", 1)[-1].splitlines()[1:]:
            match = ROW.match(line)
            rows[match[3]] = tuple(int(match[i]) for i in (1, 2))
        return rows

    def tags(self, path, index, *options):
        """{label: {value: sum}}, without those of 0"""
        tags = collections.defaultdict(dict)
        for line in self(path, "tags", f"-sample_index={index}", *options).splitlines():
            match = TAG.match(line)
            if match and int(match[1]):
                tags[label][match[2]] = int(match[1])
            elif ": Total " in line:
                label = line.split(":")[0].strip()
        return dict(tags)


def summed(rows, key, value):
    sums = collections.Counter()
    for row in rows:
        if row[value]:
            sums[row[key]] += row[value]
    return dict(sums)


def reported(event):
    """As in Pprof.top(). pprof does not distinguish binaries: a total of several functions is not known."""
    rows = collections.defaultdict(list)
    for row in event["functions"]:
        rows[row["name"]].append(row)
    return {name: (sum(row["self"] for row in same), same[0]["total"] if len(same) == 1 else None)
            for name, same in rows.items()}


def compare_functions(name, got, event):
    want = reported(event)
    equal(f"{name}: functions", sorted(got), sorted(want))
    no_problems(f"{name}: self and total of each", [
        f"{function[:80]}: {got.get(function)}, not {numbers}" for function, numbers in want.items()
        if function not in got or got[function][0] != numbers[0] or numbers[1] not in (None, got[function][1])])


def check_event(pprof, path, profile, event, measure):
    name = event["name"]
    index = name if not measure else f"{name}_samples"
    compare_functions(f"{index}", pprof.top(path, index), event)
    tags = pprof.tags(path, index)
    for row in event["cpus"] + event["tasks"]:
        row["name"] = row["name"].removeprefix("cpu ")
        row["pid"] = str(row.get("pid"))
    equal(f"{index}: by cpu", tags["cpu"], summed(event["cpus"], "name", "self"))
    equal(f"{index}: by task", tags["task"], summed(event["tasks"], "name", "self"))
    equal(f"{index}: by process", tags["pid"], summed(event["tasks"], "pid", "self"))
    equal(f"{index}: by event", tags["event"], {name: event["weight" if not measure else "samples"]})
    for option, number in (("cpu", 0), ("cpu", 2), ("tid", 101)):
        part = next(part for part in profile.report(f"--{option}", number, *measure)["events"] if part["name"] == name)
        compare_functions(f"{index}: {option} {number}", pprof.top(path, index, f"-tagfocus={option}={number}"), part)


class Raw:
    """What pprof -raw shows."""

    def __init__(self, text):
        self.text = text
        self.mappings = {m[1]: m for m in map(MAPPING.match, text.split("\nMappings\n")[1].splitlines()) if m}
        self.locations = []  # address, mapping, [(function, file:line)]
        for line in text.split("\nLocations\n")[1].split("\nMappings\n")[0].splitlines():
            match = LOCATION.match(line)
            if match:
                self.locations.append((int(match[2], 16), match[3], []))
            one = LINE.match(match[4] if match else line.strip())
            self.locations[-1][2].append((one[1], f"{one[2]}:{one[3]}"))

    def mapping(self, path):
        return next(m for m in self.mappings.values() if m[5] == path)


def build_id(path):
    return re.search(r"Build ID: ([0-9a-f]+)", run("readelf", "-n", path).stdout)[1]


def check_ranges(name, raw):
    """Also the addresses of calls, which are below those where they return."""
    wrong = []
    for address, number, _ in raw.locations:
        start, limit = (int(raw.mappings[number][i], 16) if number else 0 for i in (2, 3))
        if limit and not start <= address < limit:
            wrong.append(hex(address))
    no_problems(f"{name}: addresses are in their mappings", wrong)


def check_places(raw, path):
    """Addresses are those of the file, and binutils finds the same functions and lines there."""
    mapping = raw.mapping(path)
    name = os.path.basename(path)
    equal(f"{name}: build ID", mapping[6], build_id(path))
    here = [(address, lines) for address, number, lines in raw.locations if number == mapping[1]]
    check_ranges(name, raw)
    done = run("addr2line", "-a", "-i", "-f", "-C", "-e", path, *(hex(address) for address, _ in here))
    blocks = [block.splitlines()[1:] for block in re.split(r"^(?=0x)", done.stdout, flags=re.M)[1:]]
    wrong = []
    for (address, lines), block in zip(here, blocks):
        want = [line.split(" (disc")[0] for line in block[1::2]]
        if not want[0].endswith("?") and [line for _, line in lines] != want:
            wrong.append(f"{address:#x}: {lines}, not {want}")
    no_problems(f"{name}: lines, of inlined functions, too, as addr2line has them", wrong)
    return max(len(lines) for _, lines in here)


def check_odd(pprof, folder):
    profile = profiles.odd(folder)
    path = os.path.join(folder, "odd.pb.gz")
    exits("odd profile: converted", kscope("convert", profile.path, *profile.options, "-o", path), 0)
    report = profile.report()
    for measure in ([], ["--samples"]):
        for event in profile.report(*measure)["events"]:
            check_event(pprof, path, profile, event, measure)
    comments = pprof(path, "comments").splitlines()
    equal("losses are comments", f"lost: {report['lost']} samples while recording" in comments, True)
    check("facts are comments", "hostname: odd <host>" in comments, comments)
    raw = Raw(pprof(path, "raw"))
    check("the first event is the default", "cycles/count[dflt]" in raw.text)
    equal("inlined functions", [check_places(raw, binary) for binary in (profile.kernel, profile.program)], [2, 3])
    equal("a binary that is not there", raw.mapping(profiles.MISSING)[7], None)
    check("source lines", "volatile int n = cpu;" in pprof(path, "list=^cpu_idle$"))
    check_packing(folder, profile)


def check_packing(folder, profile):
    """Compressed once, if the name says so."""
    plain, zipped = os.path.join(folder, "odd.pb"), os.path.join(folder, "odd.pb.gz")
    kscope("convert", profile.path, "-o", plain)
    stdout = kscope("convert", profile.path, "-t", "pprof", "-o", "-", binary=True).stdout
    with open(plain, "rb") as f, gzip.open(zipped) as g:
        data = f.read()
        equal("the same in all ways", [g.read() == data, stdout == data], [True, True])
    strings = [text for field, text in fields(data) if field == 6]
    check("texts are UTF-8", strings[0] == b"" and all(text.decode() is not None for text in strings))
    equal("each text once", len(set(strings)), len(strings))


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7f) << shift
        shift += 7
        at += 1
        if not data[at - 1] & 0x80:
            return value, at


def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        value, at = varint(data, at)
        if key & 7 == 2:
            yield key >> 3, data[at:at + value]
            at += value


def check_allocs(pprof, folder):
    for name, first in (("alone", ""), ("with samples", SAMPLE)):
        source, path = os.path.join(folder, "allocs.dump"), os.path.join(folder, "allocs.pb.gz")
        with open(source, "w", encoding="utf-8") as f:
            f.write(ALLOCS.format(first))
        done = kscope("convert", source, "-o", path)
        exits(f"allocations {name}: the problem is reported", done, 0, "pool: free of unknown pointer: 1")
        heaps = {heap["name"]: heap for heap in json.loads(kscope("alloc", source, "--json").stdout)["allocators"]}
        for index, key in (("alloc_objects", "allocs"), ("alloc_space", "total_bytes"),
                           ("inuse_objects", "live_blocks"), ("inuse_space", "live_bytes")):
            equal(f"allocations {name}: {index}", pprof.tags(path, index, "-unit=B").get("allocator"),
                  {heap: numbers[key] for heap, numbers in heaps.items() if numbers[key]})
        for value, index in (("live", "inuse_space"), ("total", "alloc_space"), ("count", "alloc_objects")):
            events = json.loads(kscope("report", source, "--json", "--value", value).stdout)["events"]
            got = {function: numbers for function, numbers in pprof.top(path, index, "-unit=B").items() if any(numbers)}
            want = collections.Counter()
            for event in events:
                if event["name"] in heaps:
                    want.update({row["name"]: row["self"] for row in event["functions"]})
            equal(f"allocations {name}: {index} of each function", {f: n[0] for f, n in got.items()},
                  {function: want[function] for function in want})
        check(f"allocations {name}: the problem is a comment",
              "pool: free of unknown pointer: 1" in pprof(path, "comments"))


def check_units(pprof, folder):
    """The first event is not the main one; cpu-clock counts ns, unless all its weights are 1, as in Zephyr."""
    source, path = os.path.join(folder, "units.dump"), os.path.join(folder, "units.pb")
    for weight, unit, shown in ((250000, "nanoseconds", "500us"), (1, "count", "2")):
        with open(source, "w", encoding="utf-8") as f:
            f.write('kscope-dump 1\nsource id=1 name="faults" type=1 config=0x2\n'
                    'source id=2 name="cpu-clock" type=1 config=0x0 period=250000\n'
                    'sample time=0.1 cpu=0 task=1/1 source=1 weight=1 : named "main"\n'
                    + f'sample time=0.2 cpu=0 task=1/1 source=2 weight={weight} : named "main"\n' * 2)
        kscope("convert", source, "-o", path)
        check(f"cpu-clock, {weight}: the unit, and the default", f"cpu-clock/{unit}[dflt]" in pprof(path, "raw"))
        check(f"cpu-clock, {weight}: in words", re.search(rf"^ *{re.escape(shown)} .* main$", pprof(path, "top"), re.M))


def check_time(pprof, folder):
    source, path = os.path.join(folder, "time.dump"), os.path.join(folder, "time.pb")
    with open(source, "w", encoding="utf-8") as f:
        f.write('kscope-dump 1\nmeta key="clock" value="1 wall 1700000000000000000 at 5000000000"\n'
                'source id=1 name="cycles" type=0 config=0x0\n'
                'sample time=6 cpu=0 task=1/1 source=1 weight=1 : named "main"\n'
                'sample time=8.5 cpu=0 task=1/1 source=1 weight=1 : named "main"\n')
    kscope("convert", source, "-o", path)
    text = pprof(path, "raw")
    check("the time of day, and how long",
          "Time: 2023-11-14 22:13:21 +0000 UTC" in text and "Duration: 2.5s" in text, text)
    done = kscope("convert", source, "-t", "firefox", "-o", "-")
    equal("the time of day in Firefox", json.loads(done.stdout)["meta"]["startTime"], 1700000001000)


def check_large_sum(pprof, folder):
    """pprof has signed numbers."""
    source, path = os.path.join(folder, "large.dump"), os.path.join(folder, "large.pb")
    with open(source, "w", encoding="utf-8") as f:
        f.write('kscope-dump 1\nsource id=1 name="cycles" type=0 config=0x0\n'
                f'sample time=0.1 cpu=0 task=1/1 source=1 weight={(1 << 64) - 1} : named "main"\n')
    exits("a sum beyond 63 bits: reported", kscope("convert", source, "-o", path), 0,
          "the sums of some stacks are too small")
    # pprof rounds it.
    equal("a sum beyond 63 bits: not negative", pprof.top(path, "cycles"), {"main": (1 << 63, 1 << 63)})


def check_large_facts(pprof, folder):
    source, path = os.path.join(folder, "facts.dump"), os.path.join(folder, "facts.pb")
    with open(source, "w", encoding="utf-8") as f:
        f.write(f'kscope-dump 1\nsource id=1 name="cycles" type=0 config=0x0 period={(1 << 64) - 1}\n'
                'sample time=0 cpu=0 task=1/1 source=1 weight=1 : named "main"\n'
                'sample time=18446744073.709551614 cpu=0 task=1/1 source=1 weight=1 : named "main"\n')
    kscope("convert", source, "-o", path)
    text = pprof(path, "raw")
    check("a period and a time beyond 63 bits: not negative",
          f"Period: {(1 << 63) - 1}\n" in text and "Duration: -" not in text, text)


def check_names(pprof, folder):
    """Data with names and no addresses; names that are not UTF-8; recursion."""
    source, path = os.path.join(folder, "a.folded"), os.path.join(folder, "a.pb")
    with open(source, "wb") as f:
        f.write(b"main;a;b;a;c 5\nmain;a 2\nmain;\xff\xfe 3\nmain;x<int>::f(int)::operator() 4\n")
    exits("names: converted", kscope("convert", source, "-o", path), 0)
    equal("names", pprof.top(path, "samples"),
          {"main": (0, 14), "a": (2, 7), "b": (0, 5), "c": (5, 5), "??": (3, 3), "x<int>::f(int)::operator()": (4, 4)})
    # The first binaries that the data has are at the same addresses.
    lines = [f'map task={pid}/{pid} addr=0x1000 len=0x1000 offset=0x1000 prot=r-x path="/nowhere/{pid}"\n'
             f"sample time=0.{pid:09} cpu=0 task={pid}/{pid} source=1 weight={pid} : user 0x1010" for pid in range(1, 6)]
    source = os.path.join(folder, "same.dump")
    with open(source, "w", encoding="utf-8") as f:
        f.write('kscope-dump 1\nsource id=1 name="weird,event:u" type=0 config=0x0\n' + "\n".join(lines) + "\n")
    kscope("convert", source, "-o", path)
    raw = Raw(pprof(path, "raw"))
    ranges = sorted((int(m[2], 16), int(m[3], 16)) for m in raw.mappings.values())
    check("mappings do not overlap", len(ranges) == 5 and all(a[1] <= b[0] for a, b in zip(ranges, ranges[1:])), ranges)
    equal("any event", sum(numbers[0] for numbers in pprof.top(path, "weird,event:u").values()), 15)
    check_units(pprof, folder)
    check_time(pprof, folder)
    check_large_sum(pprof, folder)
    check_large_facts(pprof, folder)
    for name in ("wire-allocs", "perfdata-holes", "kpdata-many-sources", "wire-described-many-frames"):
        place = os.path.join(GOLDEN, name)
        source = next(os.path.join(place, file) for file in os.listdir(place) if file.startswith("input."))
        kscope("convert", source, "-o", path)
        raw = Raw(pprof(path, "raw"))
        check(f"{name}: pprof reads it", "Samples:" in raw.text)
        check_ranges(name, raw)


if shutil.which("go"):
    with scratch() as work:
        tool = Pprof(work)
        check_odd(tool, work)
        check_allocs(tool, work)
        check_names(tool, work)
else:
    skip("pprof", "go is not installed")
finish()
