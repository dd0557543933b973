#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""SQLite and DuckDB read our databases: the same numbers as kscope report, calls and alloc have, for each function,
task, cpu and event."""
import collections
import csv
import glob
import io
import json
import os
import shlex
import shutil
import sqlite3
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import BUILD, check, equal, exits, finish, kscope, no_problems, profiles, run, scratch, skip
from kit.branches import Trace
from kit.inputs import GOLDEN, unpacked

PACKAGES = os.path.join(BUILD, "python")  # make puts DuckDB there
ALLOCS = """kscope-dump 1
alloc time=0.000000010 cpu=0 task=1/1 new by="kmalloc" ptr=0x10 size=64 at=0 : kernel 0x5000 0x6000
alloc time=0.000000020 cpu=0 task=1/1 new by="kmalloc" ptr=0x20 size=100 at=0 : kernel 0x5000 0x6000
alloc time=0.000000025 cpu=0 task=1/1 new by="kmalloc" ptr=0xffffffffffff0000 size=0 at=0 : kernel 0x5000 0x6000
alloc time=0.000000030 cpu=1 task=2/2 new by="kmalloc" ptr=0x30 size=7 at=0 : kernel 0x5000 0x7000
alloc time=0.000000035 cpu=0 task=1/1 resize by="kmalloc" ptr=0x30 size=0 at=0 : kernel 0x8000
alloc time=0.000000040 cpu=0 task=1/1 free by="kmalloc" ptr=0x20 at=0 : kernel 0x8000
alloc time=0.000000045 cpu=0 task=1/1 free by="kmalloc" ptr=0x30 at=0 : kernel 0x8000
alloc time=0.000000050 cpu=0 task=1/1 new by="slab" ptr=0x10 size=4096 at=0 : kernel 0x9000
alloc time=0.000000060 cpu=0 task=1/1 resize by="slab" ptr=0x10 size=8192 at=0 : kernel 0xa000
alloc time=0.000000060 cpu=0 task=1/1 resize by="slab" ptr=0x10 size=9000 at=0 : kernel 0xa000
alloc time=0.000000060 cpu=0 task=1/1 new by="slab" ptr=0x90 size=50 at=0 : kernel 0x9000
alloc time=0.000000065 cpu=0 task=1/1 new by="slab" ptr=0x90 size=60 at=0 : kernel 0x9000
alloc time=0.000000070 cpu=0 task=1/1 free by="pool" ptr=0x999 at=0 : kernel 0x9000
alloc time=0.000000080 cpu=0 task=1/1 free by="kmalloc" ptr=0x20 at=0 : kernel 0x8000
alloc time=0.000000090 cpu=0 task=1/1 resize by="pool" ptr=0x777 size=5 at=0 : kernel 0x8000
"""


# ---- the readers ----


class Python:
    name = "Python's sqlite3"

    def __init__(self, path):
        self.db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)

    def __call__(self, sql):
        return self.db.execute(sql).fetchall()


class Cli:
    name = "sqlite3"

    def __init__(self, path):
        self.path = path

    def __call__(self, sql):
        done = run("sqlite3", "-readonly", "-json", self.path, sql)
        if done.returncode:
            raise RuntimeError(done.stderr)
        return [tuple(row.values()) for row in json.loads(done.stdout or "[]")]


class Kscope:
    """Of a database, or of a recording."""

    def __init__(self, path):
        self.path = path
        self.name = f"kscope sql {os.path.basename(path)}"

    def __call__(self, sql):
        done = kscope("sql", self.path, sql, "--json")
        if done.returncode:
            raise RuntimeError(done.stderr)
        return [tuple(row.values()) for row in json.loads(done.stdout)]


class Duck:
    name = "DuckDB"

    def __init__(self, path):
        import duckdb  # pylint: disable=import-outside-toplevel,import-error
        self.db = duckdb.connect(config={"autoinstall_known_extensions": "false",
                                         "autoload_known_extensions": "false", "threads": "1"})
        extension = glob.glob(os.path.join(glob.escape(PACKAGES), "duckdb_extension_sqlite_scanner", "extensions", "*",
                                           "*.duckdb_extension"))
        self.db.execute(f"LOAD '{extension[0]}'")
        self.db.execute(f"ATTACH '{path}' AS run (TYPE sqlite, READ_ONLY); USE run")

    def __call__(self, sql):
        return self.db.execute(sql).fetchall()


def duck_lacks():
    """Why DuckDB cannot be asked; None: it can."""
    sys.path.append(PACKAGES)
    try:
        import duckdb  # pylint: disable=import-outside-toplevel,import-error
        import duckdb_extension_sqlite_scanner as extension  # pylint: disable=import-outside-toplevel,import-error
        return None if duckdb and extension else "it is empty"
    except ImportError as error:
        return f"make test installs it in {PACKAGES}: {error}"


def askers(path, recording):
    yield Python(path)
    if shutil.which("sqlite3"):
        yield Cli(path)
    else:
        skip("the command line of SQLite", "sqlite3 is not installed")
    yield Kscope(path)
    yield Kscope(recording)
    lacks = duck_lacks()
    if lacks:
        skip("DuckDB", lacks)
    else:
        yield Duck(path)


# ---- samples ----


def reported(report):
    """What the views should have, of kscope report --json: {view: {key: numbers}}"""
    want = {view: collections.defaultdict(lambda: (0, 0)) for view in ("task_totals", "cpu_totals")}
    want["event_totals"] = {event["name"]: (event["samples"], event["weight"]) for event in report["events"]}
    want["functions"] = {}
    for event in report["events"]:
        for row in event["functions"]:
            want["functions"][event["name"], row["name"], row["binary"]] = row["samples"], row["self"], row["total"]
        for row in event["tasks"]:
            want["task_totals"][event["name"], row.get("pid"), row["name"]] = row["samples"], row["self"]
        for row in event["cpus"]:
            cpu = None if row["name"] == "[unknown]" else int(row["name"].removeprefix("cpu "))
            want["cpu_totals"][event["name"], cpu] = row["samples"], row["self"]
    return want


def found(ask):
    """The same of the database. Reports count samples where there are no weights."""
    weighs = {event: weight or unit for event, unit, weight in ask("select event, unit, weight from event_totals")}

    def of(event, samples, weight):
        return weight if weighs[event] else samples

    got = {"event_totals": {event: (samples, weight) for event, samples, weight in
                            ask("select event, samples, weight from event_totals")}}
    got["functions"] = {
        (event, name, binary or ""): (self_samples, of(event, self_samples, self_weight), of(event, samples, weight))
        for event, name, binary, self_samples, samples, self_weight, weight in
        ask("select event, function, binary_name, self_samples, total_samples, self_weight, total_weight "
            "from function_totals")}
    got["task_totals"] = {(event, pid, task): (samples, of(event, samples, weight)) for event, pid, task, samples, weight
                          in ask("select event, pid, task, samples, weight from task_totals")}
    got["cpu_totals"] = {(event, cpu): (samples, of(event, samples, weight)) for event, cpu, samples, weight
                         in ask("select event, cpu, samples, weight from cpu_totals")}
    return got


def compare(name, got, want):
    no_problems(name, [f"{view}: {str(key)[:90]}: {got[view].get(key)}, not {want[view].get(key)}" for view in want
                       for key in {**want[view], **got[view]} if got[view].get(key) != want[view].get(key)])


# Not with the SQL of the views.
SELF = """select e.name as event, coalesce(f.binary_name, ''), f.name, sum(s.weight) from samples s, stacks k, frames p, functions f, events e
          where s.stack = k.id and k.frame = p.id and p.function = f.id and s.event = e.id group by 1, 2, 3"""
KERNEL = "select sum(weight) from samples join stacks k on k.id = stack join frames f on f.id = frame where kernel = 1"


def check_odd(folder):
    profile = profiles.odd(folder)
    path = os.path.join(folder, "odd.db")
    exits("odd profile: converted", kscope("convert", profile.path, "-o", path), 0, "lost 42 samples")
    report = profile.report()
    want = reported(report)
    check("there are functions with odd names", sum(len(name) > 5000 or "<" in name for _, name, _ in want["functions"]) > 4)
    kernel = sum(event["weight"] for event in profile.report("--level", "kernel")["events"])
    for ask in askers(path, profile.path):
        compare(f"{ask.name}: functions, tasks, cpus and events", found(ask), want)
        equal(f"{ask.name}: self, asked in other words",
              {(event, name, binary): weight for event, binary, name, weight in ask(SELF)},
              {key: self for key, (_, self, _) in want["functions"].items() if self})
        equal(f"{ask.name}: losses", ask("select samples, damaged_places from lost"), [(report["lost"], 0)])
        equal(f"{ask.name}: samples by time", ask(f"select count(*) from samples where time < {1 * 10**9 + 1000 * 10**5}"),
              [(1000,)])
        equal(f"{ask.name}: facts", ask("select value from facts where key = 'hostname'"), [("odd <host>",)])
        equal(f"{ask.name}: inlined frames are below those they are inlined in",
              ask("select count(*) from stacks s join frames f on f.id = s.frame left join stacks p on p.id = s.parent "
                  "left join frames g on g.id = p.frame where f.inlined = 1 and (g.binary_id is null or "
                  "g.binary_id <> f.binary_id or g.address <> f.address or p.depth <> s.depth - 1)"), [(0,)])
        check(f"{ask.name}: there are some", ask("select count(*) from frames where inlined = 1")[0][0] > 5)
        check(f"{ask.name}: the kernel has its part", 0 < ask(KERNEL)[0][0] <= kernel)
        check(f"{ask.name}: addresses of 64 bits", ask(
            "select count(*) from samples_named where address like '0xffffffff81%'")[0][0] > 1000)
    check_folded(profile, path)
    check_cli(profile, path, folder)


def check_folded(profile, path):
    """The stacks, as the writer of folded stacks has them."""
    done = kscope("convert", profile.path, "-t", "folded", "--root", "none", "--samples", "-o", "-", "--event", "cycles")
    want = {line.rsplit(" ", 1)[0]: int(line.rsplit(" ", 1)[1]) for line in done.stdout.splitlines()}
    got = Python(path)("select stack, samples from folded where event = 'cycles'")
    equal("stacks are those of kscope convert -t folded", dict(got), want)


# ---- calls ----


def calls():
    """Tasks on two cpus, with recursion, odd names, calls of no length and gaps."""
    odd = ['say "hi" <b>&amp;</b>', "wörk 😀 [i]", "a;b,c:d", "</script>"]
    trace = Trace(["main", "work", *odd])
    for i in range(60):
        time, cpu, pid, name = 1000000000 + 1000 * i, i % 2, 1 + i % 3, odd[i % 4]
        chain = ["main", "work", "work", name] if i % 5 else ["main", "work", name]
        trace.begin(time, cpu, pid, "main")
        for j, (caller, callee) in enumerate(zip(chain, chain[1:])):
            trace.call(time + 10 + 20 * j + (i if j else 0), cpu, pid, caller, callee)
        for j, (callee, caller) in enumerate(zip(chain[:0:-1], chain[-2::-1])):
            trace.leave(time + 150 + i + 20 * j, cpu, pid, callee, caller)
        trace.end(time + 600, cpu, pid, "main")
    return trace


COLUMNS = ["count", "open", "self_time", "total_time", "self_running", "total_running", "self_instructions",
           "total_instructions", "min", "max"]
CALLS = """select function, coalesce(binary_name, ''), inlined, calls, open, self_time, total_time, self_running, total_running,
           self_instructions, total_instructions, min, max from call_durations"""


def calls_of(report):
    return {(row["name"], row["binary"], int(row.get("inlined", False))): tuple(row.get(column) for column in COLUMNS)
            for row in report["functions"]}


def check_calls(folder):
    recording, path = os.path.join(folder, "calls.dump"), os.path.join(folder, "calls.db")
    with open(recording, "w", encoding="utf-8") as file:
        file.write(calls().text() + "lost time=1.000020500 cpu=1 count=3 bytes=70\n")
    exits("converts calls", kscope("convert", recording, "-o", path), 0)
    report = json.loads(kscope("calls", recording, "--json").stdout)
    want = calls_of(report)
    check("there are recursive functions", len(want) == 6 and any(row[2] for row in want.values()), want)
    for ask in askers(path, recording):
        got = {tuple(row[:3]): tuple(row[3:]) for row in ask(CALLS)}
        equal(f"{ask.name}: sums of calls", got, want)
        equal(f"{ask.name}: gaps", ask("select count(*), coalesce(sum(time), 0) from slices where kind = 'gap'"),
              [(report["gaps"], report["gap_time"])])
        equal(f"{ask.name}: losses", ask("select samples, bytes from lost"), [(3, 70)])
        equal(f"{ask.name}: a slice is inside of its parent",
              ask("select count(*) from slices s join slices p on p.id = s.parent where s.began < p.began or "
                  "s.ended > p.ended or s.depth <> p.depth + 1 or s.task <> p.task"), [(0,)])
        equal(f"{ask.name}: no slice lacks its callees",
              ask("select count(*) from slices s where s.function is not null and s.self_time <> s.time - coalesce("
                  "(select sum(c.time) from slices c where c.parent = s.id), 0)"), [(0,)])
        check(f"{ask.name}: cpus run tasks", ask("select count(*) from slices where kind = 'run'")[0][0] > 50)


# ---- allocations ----


def allocators(report):
    return {row["name"]: (row["allocs"], row["resizes"], row["frees"], row["total_bytes"], row["live_bytes"],
                          row["live_blocks"], row["double_frees"], row["unknown_frees"], row["unknown_resizes"],
                          row["overlaps"], row["guesses"]) for row in report["allocators"] if row["allocs"] + row["frees"]}


ALLOCATORS = """select t.allocator, t.allocs, t.resizes, t.frees, t.total_bytes, t.live_bytes, t.live_blocks, a.double_frees,
                a.unknown_frees, a.unknown_resizes, a.overlaps, a.guesses
                from allocator_totals t join allocators a on a.name = t.allocator"""


def live_of(report):
    return sorted((row["name"], site["bytes"], site["blocks"]) for row in report["allocators"] for site in row["never_freed"])


def check_allocs(folder):
    recording, path = os.path.join(folder, "allocs.dump"), os.path.join(folder, "allocs.db")
    with open(recording, "w", encoding="ascii") as file:
        file.write(ALLOCS)
    for options in ([], ["--time", "0.000000015,0.000000045"], ["--cpu", "0"]):
        exits("converts allocations", kscope("convert", recording, "-o", path, *options), 0)
        report = json.loads(kscope("alloc", recording, "--json", *options).stdout)
        name = " ".join(["allocations", *options])
        for ask in askers(path, recording) if not options else [Python(path)]:
            equal(f"{ask.name}: {name}", {row[0]: tuple(row[1:]) for row in ask(ALLOCATORS)}, allocators(report))
            equal(f"{ask.name}: {name}: what is live",
                  sorted(tuple(row) for row in ask("select allocator, bytes, blocks from allocations_live")),
                  live_of(report))


# ---- all kinds of inputs ----


def check_golden(name, folder):
    """The problems."""
    with unpacked(os.path.join(GOLDEN, name)) as place:
        inputs = sorted(map(os.path.basename, glob.glob(f"{glob.escape(place)}/input*")))
        args = os.path.join(place, "args")
        options = []
        if os.path.exists(args):
            with open(args, encoding="utf-8", errors="surrogateescape") as file:
                options = shlex.split(file.read())
        path = os.path.join(folder, "golden.db")
        done = kscope("convert", *inputs, *options, "-o", path, cwd=place)
        if done.returncode > 1 or {"-t", "-o"} & set(options):
            return
        again = kscope("convert", *inputs, *options, "-t", "sqlite", "-o", "-", cwd=place, binary=True)

        def report(verb):
            return json.loads(kscope(verb, *inputs, *options, "--json", "--limit", "0", cwd=place).stdout)

        with open(path, "rb") as file:
            if file.read() != again.stdout:
                yield "the second time, the bytes are others"
        ask = Python(path)
        for pragma, want in (("integrity_check", [("ok",)]), ("foreign_key_check", [])):
            if ask(f"pragma {pragma}") != want:
                yield f"{pragma}: {ask(f'pragma {pragma}')[:3]}"
        yield from differences(ask, report)


def differences(ask, report):
    if ask("select 1 from slices limit 1"):
        got, want = {tuple(row[:3]): tuple(row[3:]) for row in ask(CALLS)}, calls_of(report("calls"))
        yield from (f"calls: {key}: {got.get(key)}, not {want.get(key)}" for key in {**got, **want}
                    if got.get(key) != want.get(key))
    elif ask("select 1 from allocations limit 1"):
        got, want = {row[0]: tuple(row[1:]) for row in ask(ALLOCATORS)}, allocators(report("alloc"))
        if got != want:
            yield f"allocations: {got}, not {want}"
    elif ask("select 1 from samples limit 1"):
        if ask("select total(weight) from samples")[0][0] > 2**62:
            return  # sums of SQL end there
        got, want = found(ask), reported(report("report"))
        yield from (f"{view}: {key}: {got[view].get(key)}, not {want[view].get(key)}" for view in want
                    for key in {**want[view], **got[view]} if got[view].get(key) != want[view].get(key))


def check_goldens(folder):
    names = [name for name in sorted(os.listdir(GOLDEN)) if os.path.isdir(os.path.join(GOLDEN, name)) and
             not os.path.exists(os.path.join(GOLDEN, name, "verb")) and name != "__pycache__"]
    no_problems(f"the inputs of {len(names)} golden tests: the same numbers, and the same bytes twice", [
        f"{name}: {problem}" for name in names for problem in check_golden(name, folder)])


# ---- the formats of kscope sql, and other outputs ----


def check_cli(profile, path, folder):
    sql = "select id, pid, name from tasks"
    want = Python(path)(sql)
    rows = list(csv.reader(io.StringIO(kscope("sql", path, sql, "--csv").stdout)))
    equal("CSV", rows, [["id", "pid", "name"]] + [list(map(str, row)) for row in want])
    packed, piped = path + ".gz", os.path.join(folder, "odd.sqlite")
    exits("a compressed database", kscope("convert", profile.path, "-o", packed), 0)
    equal("... can be asked", Kscope(packed)(sql), want)
    run("gunzip", packed)
    exits("the other extension", kscope("convert", profile.path, "-o", piped), 0)
    with open(path, "rb") as one, open(piped, "rb") as other:
        check("... has the same bytes", one.read() == other.read())
    both = os.path.join(folder, "both.db")
    exits("beside another output", kscope("convert", profile.path, "-o", os.path.join(folder, "x.folded"), "-o", both), 0)
    with open(path, "rb") as one, open(both, "rb") as other:
        check("... has the same bytes, too", one.read() == other.read())
    done = kscope("sql", profile.path, "select sum(samples) from samples", "--cpu", "0", "--tsv")
    equal("a selection", done.stdout, "sum(samples)\n" + str(sum(
        event["samples"] for event in profile.report("--cpu", "0")["events"])) + "\n")


def main():
    if "libsqlite3" in kscope("sql", "/dev/null", "select 1").stderr:
        skip("databases", "kscope was built without libsqlite3")
        finish()
    with scratch() as folder:
        check_odd(folder)
        check_calls(folder)
        check_allocs(folder)
        check_goldens(folder)
    finish()


if __name__ == "__main__":
    main()
