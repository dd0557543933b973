#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The Firefox Profiler reads our profiles, as its command line shows: the functions of each thread and event are those of
kscope report, slices those that Perfetto finds, and allocations those of kscope alloc."""
import collections
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import (HANGS, ROOT, check, equal, exits, finish, kscope, no_problems, perfetto, profiles, run, scratch,
                 wait_for)
from kit.branches import odd_calls
from kit.inputs import GOLDEN

CLI = os.path.join(ROOT, "tests", "node_modules", ".bin", "profiler-cli")
ALLOCS = """kscope-dump 1
alloc time=0.000000010 cpu=0 task=1/1 new by="kmalloc" ptr=0x10 size=64 at=0 : kernel 0x5000 0x6000
alloc time=0.000000020 cpu=0 task=1/1 new by="kmalloc" ptr=0x20 size=100 at=0 : kernel 0x5000 0x6000
alloc time=0.000000030 cpu=1 task=2/2 new by="kmalloc" ptr=0x30 size=7 at=0 : kernel 0x5000 0x7000
alloc time=0.000000040 cpu=0 task=1/1 free by="kmalloc" ptr=0x20 at=0 : kernel 0x8000
alloc time=0.000000050 cpu=0 task=1/1 new by="slab" ptr=0x10 size=4096 at=0 : kernel 0x9000
alloc time=0.000000060 cpu=0 task=1/1 resize by="slab" ptr=0x10 size=8192 at=0 : kernel 0xa000
alloc time=0.000000060 cpu=0 task=1/1 resize by="slab" ptr=0x10 size=9000 at=0 : kernel 0xa000
alloc time=0.000000060 cpu=0 task=1/1 resize by="slab" ptr=0x10 size=8192 at=0 : kernel 0xa000
alloc time=0.000000060 cpu=0 task=1/1 new by="slab" ptr=0x90 size=50 at=0 : kernel 0x9000
alloc time=0.000000060 cpu=0 task=1/1 resize by="slab" ptr=0x90 size=60 at=0 : kernel 0x9000
alloc time=0.000000060 cpu=1 task=1/1 free by="slab" ptr=0xb0 at=0 : kernel 0x9000
alloc time=0.000000070 cpu=0 task=1/1 free by="pool" ptr=0x999 at=0 : kernel 0x9000
"""
SLICES = """select s.ts, s.dur, s.category as kind, s.name, ifnull(tid, -1) as tid,
            ifnull(extract_arg(s.arg_set_id, 'kscope.instructions'), '') as instructions
            from slice s left join thread_track on s.track_id = thread_track.id left join thread using (utid)
            where s.category != 'note'"""


class Firefox:
    """The front end, in a process that the command line talks to. The command line would also start the process,
    but wait only half a second for it; and it forgets a process that does not listen yet."""

    def __init__(self, name, path):
        self.name = name
        self.folder = tempfile.mkdtemp(dir=os.path.dirname(path))
        self.env = {**os.environ, "PROFILER_CLI_SESSION_DIR": self.folder}
        self.process = subprocess.Popen([CLI, "--daemon", path, "--session", "test"], env=self.env,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def __enter__(self):
        wait_for(lambda: self.process.poll() is not None or self.has_loaded())
        if not exits(f"{self.name}: the Firefox Profiler opens it", self.run("profile", "info"), 0):
            self.__exit__()
            finish()
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(HANGS)

    def has_loaded(self):
        log = os.path.join(self.folder, "test.log")
        if not os.path.exists(log):
            return False
        with open(log, encoding="utf-8") as file:
            return re.search("Profile loaded|Failed to load", file.read())

    def run(self, *words):
        return run(CLI, *words, "--session", "test", env=self.env)

    def ask(self, *words):
        done = self.run(*words, "--json")
        if done.returncode:
            check(f"{self.name}: profiler-cli {' '.join(words)}", False, done.stderr)
            finish()
        return json.loads(done.stdout)

    def threads(self):
        return self.ask("thread", "list")["threads"]

    def functions(self, thread, *options):
        """{function!library: (self, total)}"""
        rows = self.ask("thread", "functions", "--thread", thread, "--limit", "0", "--include-idle", *options)["functions"]
        return {(row["name"], row.get("library", "")): (row["selfSamples"], row["totalSamples"]) for row in rows}

    def categories(self, thread):
        rows = self.ask("thread", "samples", "--thread", thread, "--include-idle")["categoryBreakdown"]["categories"]
        return {row["name"]: row for row in rows}

    def markers(self, thread=None):
        where = ("--thread", thread) if thread else ()
        return self.ask("profile", "markers", "--limit", "100000", *where)["markers"]


def library(binary):
    """The Firefox Profiler shows no more than the file name."""
    return os.path.basename(binary or "")


def reported(event):
    return {(row["name"], library(row["binary"])): (row["self"], row["total"]) for row in event["functions"]}


def compare_functions(name, got, want):
    want = {key: numbers for key, numbers in want.items() if any(numbers)}
    equal(f"{name}: functions", sorted(got), sorted(want))
    no_problems(f"{name}: self and total of each", [
        f"{key[0][:80]}: {got.get(key)}, not {numbers}" for key, numbers in want.items() if got.get(key) != numbers])


# ---- samples ----


def selection(thread):
    """The options of report that select what a thread shows, and its event."""
    name, event = re.fullmatch(r"(.*) \((\w+)\)", thread["name"], re.S).groups()
    idle = re.fullmatch(r"idle/(\d)", name)
    tid = str(thread["tid"]).split(".", maxsplit=1)[0]
    return event, ["--pid", "0", "--cpu", idle[1]] if idle else ["--pid", str(thread["pid"]), "--tid", tid]


def test_threads(odd, front):
    seen = []
    for thread in front.threads():
        if thread["pid"] == "cpus":
            continue
        event, options = selection(thread)
        want = odd.report(*options, "--event", event)["events"][0]
        compare_functions(thread["name"], front.functions(thread["threadHandle"]), reported(want))
        seen.append((event, *options))
        pid = int(thread["pid"])
        main = next(name for number, tid, name, _ in profiles.TASKS if number == tid == pid)
        equal(f"{thread['name']}: its process", thread["processName"], main)
    tasks = [task for task in profiles.TASKS if task[0]]
    equal("a thread for each task, cpu that was idle, and event", len(set(seen)),
          (len(tasks) + profiles.CPUS) * len(profiles.EVENTS))
    equal("and no other", len(seen), len(set(seen)))


def test_categories(odd, front):
    """Kernel, user and interrupt code, by level and by functions; idle threads."""
    wrong = []
    for thread in front.threads():
        if thread["pid"] == "cpus":
            continue
        event, options = selection(thread)
        found = {name: row["samples"] for name, row in front.categories(thread["threadHandle"]).items()}
        rows = {level: odd.report(*options, "--event", event, "--level", level) for level in ("user", "kernel")}
        weights = {level: sum(one["weight"] for one in report["events"]) for level, report in rows.items()}
        if options[1] == "0":
            want = {"Idle": weights["kernel"]}
        else:
            timer = next((row["total"] for one in rows["kernel"]["events"] for row in one["functions"]
                          if row["name"] == "handle_timer_interrupt"), 0)
            want = {"User": weights["user"], "Kernel": weights["kernel"] - timer, "Interrupt": timer}
        if found != want:
            wrong.append((thread["name"], found, want))
    no_problems("categories", wrong)
    row = next(row for thread in front.threads() if thread["name"] == "main (cycles)" and str(thread["pid"]) == "200"
               for name, row in front.categories(thread["threadHandle"]).items() if name == "User")
    binaries = {part["name"]: part["samples"] for part in row["subcategories"]}
    # By the binary of the leaf; samples end in the kernel, too.
    check("categories: a part for each binary", {"program", library(profiles.MISSING)} <= set(binaries), binaries)
    equal("categories: parts add up", sum(binaries.values()), row["samples"])


def test_meta(odd, front):
    meta = front.ask("profile", "meta")
    report = odd.report()
    want = {"lost": sum(count for _, count in profiles.LOST)}
    for event in report["events"]:
        want[event["name"]] = event["weight"]
        want[f"{event['name']}: samples"] = event["samples"]
    equal("the totals of the recording", {row["label"]: row["value"] for row in meta["extra"][0]["entries"]}, want)
    equal("facts", [meta["device"], meta["abi"], meta["symbolicated"]], ["odd <host>", "x86_64", True])


def test_markers(odd, front):
    """Losses, and the cpus that threads ran on."""
    found = front.markers()
    lost = [marker for marker in found if marker.get("markerType") == "Lost"]
    equal("losses are markers", sorted((one["data"]["cpu"], one["data"]["samples"], one["data"]["reason"]) for one in lost),
          [(cpu, count, "while recording") for cpu, count in profiles.LOST])
    threads = {thread["threadHandle"]: thread["name"] for thread in front.threads()}
    busy = next(handle for handle, name in threads.items() if name == "main (cycles)")
    runs = collections.Counter()
    for marker in front.markers(busy):
        if marker.get("markerType") == "CPU":
            runs[f"cpu {marker['data']['cpu']}"] += marker["data"]["samples"]
    pid = next(thread["pid"] for thread in front.threads() if thread["threadHandle"] == busy)
    rows = odd.report("--pid", str(pid), "--tid", str(pid), "--by", "cpu", "--samples")["events"]
    want = collections.Counter()
    for event in rows:
        want.update({row["name"]: row["self"] for row in event["cpus"]})
    equal("samples of all events on each cpu", dict(runs), dict(want))


def test_view(path):
    """The first view shows where something was lost, and hides threads that were idle."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        profile = json.load(file)
    names = [thread["name"] for thread in profile["threads"]]
    seen = {names[number] for number in profile["meta"]["initialVisibleThreads"]}
    equal("the first view", seen, {name for name in names if not name.startswith("idle/")})
    check("the first view: losses", {f"cpu {cpu}" for cpu, _ in profiles.LOST} <= seen, seen)


def test_places(odd, path):
    """Addresses are those of the binary, and binutils finds the same functions, inlined ones, and lines there."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        profile = json.load(file)
    shared, libs = profile["shared"], profile["libs"]
    text, frames, funcs = shared["stringArray"], shared["frameTable"], shared["funcTable"]
    chains = collections.defaultdict(dict)  # (lib, address): {depth: (function, line)}
    for row in range(frames["length"]):
        func, address = frames["func"][row], frames["address"][row]
        resource = funcs["resource"][func]
        lib = shared["resourceTable"]["lib"][resource] if resource >= 0 else None
        if lib is not None and address >= 0:
            chains[lib, address][frames["inlineDepth"][row]] = text[funcs["name"][func]], frames["line"][row]
    for path_of, base in ((odd.program, 0x400000), (odd.kernel, profiles.KERNEL_BASE)):
        lib = next(number for number, one in enumerate(libs) if one["path"] == path_of)
        note = run("readelf", "-n", path_of).stdout
        equal(f"{library(path_of)}: build ID", libs[lib]["codeId"], re.search(r"Build ID: ([0-9a-f]+)", note)[1])
        here = {base + address: chain for (number, address), chain in chains.items() if number == lib}
        done = run("addr2line", "-a", "-i", "-e", path_of, *map(hex, here))
        wrong, deepest = [], 0
        for (address, chain), block in zip(here.items(), re.split(r"^0x.*\n", done.stdout, flags=re.M)[1:]):
            want = [line.split(" (disc")[0].rsplit(":", 1)[1] for line in block.splitlines()][::-1]
            got = [str(chain[depth][1]) for depth in range(len(chain))]
            if want != ["?"] and want != got:
                wrong.append((hex(address), got, want))
            deepest = max(deepest, len(chain))
        no_problems(f"{library(path_of)}: lines, of inlined functions, too, as addr2line has them", wrong)
        check(f"{library(path_of)}: inlined functions are there", deepest > 1, deepest)


def test_odd(folder):
    odd = profiles.odd(folder)
    path = os.path.join(folder, "odd.profile.json.gz")
    exits("converts the odd profile", kscope("convert", odd.path, *odd.options, "-o", path), 0)
    with Firefox("odd", path) as front:
        test_threads(odd, front)
        test_categories(odd, front)
        test_meta(odd, front)
        test_markers(odd, front)
    test_view(path)
    test_places(odd, path)
    test_same_bytes(odd, path)


def test_same_bytes(odd, path):
    """However it is written."""
    plain = os.path.join(odd.folder, "profile.json")
    exits("the usual name", kscope("convert", odd.path, *odd.options, "-o", plain), 0)
    stdout = kscope("convert", odd.path, *odd.options, "-t", "firefox", "-o", "-", binary=True).stdout
    with open(plain, "rb") as file, gzip.open(path) as packed:
        data = file.read()
        equal("the same bytes", [packed.read() == data, stdout == data], [True, True])


# ---- other units ----


def test_units(folder):
    source, path = (os.path.join(folder, f"units.{ext}") for ext in ("dump", "profile.json"))
    with open(source, "w", encoding="utf-8") as file:
        file.write(profiles.UNITS)
    exits("converts samples without times", kscope("convert", source, "-o", path), 0)
    with Firefox("units", path) as front:
        threads = {(str(one["tid"]), one["name"][-6:]): one["threadHandle"] for one in front.threads()}
        heap, work = threads["7", "(heap)"], next(handle for (tid, name), handle in threads.items()
                                                  if tid.startswith("7.") and name == "(work)")
        equal("units", [front.ask("thread", "functions", "--thread", handle)["weightType"] for handle in (heap, work)],
              ["bytes", "tracing-ms"])
        equal("bytes", front.functions(heap),
              {("main", "a"): (3 << 20, 3 << 20), ("main", "b"): (0, 1 << 20), ("leaf", "b"): (1 << 20, 1 << 20)})
        equal("ms", front.functions(work), {("main", "a"): (2.5, 2.5)})
    with open(path, encoding="utf-8") as file:
        profile = json.load(file)
    last = next(one for one in profile["threads"] if one["tid"] == 8)
    equal("a sample without a stack", [last["samples"]["stack"], last["samples"]["weight"]], [[None], [0.0015]])


def test_folded(folder):
    source, path = (os.path.join(folder, name) for name in ("t.folded", "t.profile.json"))
    with open(source, "w", encoding="utf-8") as file:
        file.write("main;a;b 3\nmain;a 4\nmain;c;a;a 5\n")
    exits("converts folded stacks", kscope("convert", source, "-o", path), 0)
    with Firefox("folded", path) as front:
        thread, = front.threads()
        equal("functions of folded stacks", front.functions(thread["threadHandle"]),
              {("main", ""): (0, 12), ("a", ""): (9, 12), ("b", ""): (3, 3), ("c", ""): (0, 5)})


def test_formats(folder):
    """Samples of kernels' own formats, with and without times, of unknown tasks, and damaged."""
    for name in ("managarm", "sel4-json", "sel4-pb-connected-inside", "wire-two-cpus", "zephyr-cut"):
        place = os.path.join(GOLDEN, name)
        source = next(os.path.join(place, file) for file in os.listdir(place) if file.startswith("input."))
        path = os.path.join(folder, f"{name}.profile.json")
        kscope("convert", source, "-t", "firefox", "-o", path)
        events = json.loads(kscope("report", source, "--json").stdout)["events"]
        got, units = 0, set()
        with Firefox(name, path) as front:
            for thread in front.threads():
                rows = front.ask("thread", "functions", "--thread", thread["threadHandle"], "--limit", "0",
                                 "--include-idle")
                unit = 10**6 if rows["weightType"] == "tracing-ms" else 1
                got += round(unit * sum(row["selfSamples"] for row in rows["functions"]))
                units.add(rows["weightType"])
        equal(f"{name}: weight", got, sum(event["weight"] for event in events))
        # The samples of Zephyr are those of a clock, but have no weights.
        equal(f"{name}: a time is a time", "tracing-ms" in units, name == "wire-two-cpus")


# ---- allocations ----


def compare_allocs(name, source, path, *options):
    def asked(verb, *words):
        return json.loads(kscope(verb, source, "--json", *options, *words).stdout)

    done = kscope("convert", source, "-o", path, *options)
    heaps = {heap["name"]: heap for heap in asked("alloc")["allocators"]}
    problems = dict(collections.Counter(f"{heap}: {row['what']}" for heap in heaps for row in heaps[heap]["findings"]))
    exits(f"{name}: converts", done, 0)
    equal(f"{name}: problems in messages", re.findall(r"warning: (.*?: .*?: \d+); kscope alloc", done.stderr),
          [f"{problem}: {number}" for problem, number in problems.items()])
    events = {value: {event["name"]: reported(event) for event in asked("report", "--value", value)["events"]}
              for value in ("live", "total")}
    with Firefox(name, path) as front:
        threads = {thread["name"]: thread["threadHandle"] for thread in front.threads()}
        equal(f"{name}: a thread for each allocator", sorted(threads),
              sorted(heap for heap in heaps if heaps[heap]["allocs"]))
        for heap, thread in threads.items():
            for value, key, strategy in (("live", "live_bytes", "native-retained-allocations"),
                                         ("total", "total_bytes", "native-allocations")):
                found = front.functions(thread, "--strategy", strategy)
                equal(f"{name}: {heap}: {key}", sum(own for own, _ in found.values()), heaps[heap][key])
                compare_functions(f"{name}: {heap}, {value}",
                                  {key: numbers for key, numbers in found.items() if any(numbers)},
                                  events[value].get(heap, {}))
        meta = front.ask("profile", "meta")["extra"][0]["entries"]
        equal(f"{name}: problems", {row["label"]: row["value"] for row in meta if ":" in row["label"]}, problems)
    return problems


def test_allocs(folder):
    source, path = (os.path.join(folder, f"allocs.{ext}") for ext in ("dump", "profile.json"))
    with open(source, "w", encoding="utf-8") as file:
        file.write(ALLOCS)
    equal("the problem of these allocations", compare_allocs("allocations", source, path),
          {"pool: free of unknown pointer": 1})
    # Blocks of which only the begin or the end is selected.
    compare_allocs("by time", source, path, "--time", "0.000000015,0.000000035")
    compare_allocs("by cpu", source, path, "--cpu", "1")


# ---- calls ----


def test_calls(folder):
    """The slices of Perfetto's own format; the front end has them in the order of their begins."""
    source, path, other = (os.path.join(folder, f"calls.{ext}") for ext in ("dump", "profile.json", "pftrace"))
    with open(source, "w", encoding="utf-8") as file:
        file.write(odd_calls(10**9, (5, 6, 7)).text() + "lost time=1.000020500 cpu=1 count=3 bytes=70\n")
    exits("converts calls", kscope("convert", source, "-o", path, "-o", other), 0)
    rows, = perfetto.query(other, SLICES)
    begin = min(int(row["ts"]) for row in rows)
    names = [row["name"].replace("\\\\", "\\") for row in rows]  # as the tool escapes it
    want = collections.Counter(
        ("-1" if row["kind"] in ("run", "gap") and row["tid"] == "-1" else row["tid"], row["kind"],
         name, int(row["ts"]) - begin, int(row["dur"]), row["instructions"]) for row, name in zip(rows, names))
    got = collections.Counter()
    with Firefox("calls", path) as front:
        for thread in front.threads():
            tid = "-1" if thread["pid"] == "cpus" else str(thread["tid"])
            for marker in front.markers(thread["threadHandle"]):
                if marker.get("markerType") == "Call":
                    data = marker["data"]
                    got[tid, data["kind"], re.sub(r"[\0-\x1f]", "?", marker["name"]), round(marker["start"] * 1e6),
                        round(marker.get("duration", 0) * 1e6), str(data.get("instructions", ""))] += 1
        lost = [marker["data"] for marker in front.markers() if marker.get("markerType") == "Lost"]
    check("there are calls", len(want) > 100, len(want))
    no_problems("slices are markers", [*(want - got), *(got - want)])
    equal("losses", [(one["samples"], one["bytes"], one["cpu"]) for one in lost], [(3, 70, 1)])


def main():
    with scratch() as folder:
        test_odd(folder)
        test_units(folder)
        test_folded(folder)
        test_formats(folder)
        test_allocs(folder)
        test_calls(folder)
    finish()


if __name__ == "__main__":
    main()
