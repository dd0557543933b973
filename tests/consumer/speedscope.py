#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Profiles in speedscope's web page: files are valid by its schema, and the totals of each function, thread and event
that the page computes are those of kscope report; of calls in a trace, those that Perfetto finds in the same timeline."""
import collections
import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import TOOLS, check, equal, exits, finish, kscope, no_problems, perfetto, profiles, run, scratch
from kit.branches import Trace, late_callers

ODD = ['say "hi" <b>', "new\nline", "\u00e9\u20ac \U0001f600", "x" * 10000]
CALLS = """select s.id, ifnull(s.parent_id, -1) as parent, s.dur, s.name, tid, pid
           from slice s join thread_track on s.track_id = thread_track.id join thread using (utid)
           join process using (upid) where s.category != 'note'"""
CPUS = "select t.name as cpu, s.name, s.dur from slice s join track t on s.track_id = t.id where category in ('run', 'gap')"
MB = 1 << 20


def show(name, path):
    """What the page shows."""
    done = run("node", os.path.join(TOOLS, "speedscope.mjs"), path)
    if not exits(f"{name}: the page opens it", done, 0):
        finish()
    page = json.loads(done.stdout)
    equal(f"{name}: valid by the schema", page["invalid"], [])
    return page


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def totals(file, profile):
    """{function: (self, total)} of a profile that the page exports. A recursive function counts once."""
    selves, sums, stack = collections.Counter(), collections.Counter(), []
    last = profile["startValue"]
    for event in profile["events"]:
        if stack:
            selves[stack[-1][0]] += event["at"] - last
        last = event["at"]
        if event["type"] == "O":
            stack.append((event["frame"], event["at"]))
            selves[event["frame"]] += 0
        else:
            frame, begin = stack.pop()
            if frame not in [other for other, _ in stack]:
                sums[frame] += event["at"] - begin
    return {file["shared"]["frames"][frame]["name"]: (selves[frame], sums[frame]) for frame in selves}


def shown_names(report):
    """How the page names the functions of a report, by their binary: it is added if the name is not enough."""
    binaries = collections.defaultdict(set)
    for event in report["events"]:
        for row in event["functions"]:
            binaries[row["name"]].add(row["binary"])

    def shown(row):
        if len(binaries[row["name"]]) == 1:
            return row["name"]
        binary = row["binary"] or "unknown"
        return f"{row['name']} {binary}" if binary.startswith("[") else f"{row['name']} [{binary}]"

    return shown


def totals_of(report, shown):
    return {shown(row): (row["self"], row["total"]) for row in report["events"][0]["functions"]}


def by_name(page):
    return {profile["name"]: profile for profile in page["file"]["profiles"]}


# ---- samples ----


def test_threads(odd, page):
    """Each thread and event has a profile, with the totals of report."""
    found, shown = by_name(page), shown_names(odd.report())
    lost = sum(count for _, count in profiles.LOST)
    for pid, tid, comm, _ in profiles.TASKS:
        for event in profiles.EVENTS:
            name = f"{comm} {pid}/{tid}: {event} ({lost} samples lost)"
            if not check(f"there is {name}", name in found, list(found)):
                continue
            want = odd.report("--pid", str(pid), "--tid", str(tid), "--event", event)
            equal(f"{name}: functions", totals(page["file"], found.pop(name)), totals_of(want, shown))
    equal("and no others", list(found), [])


def test_first_view(odd, page):
    """The page begins with the busiest thread, and its table has the names and numbers of report."""
    pid, tid, comm, _ = profiles.TASKS[2]
    equal("the busiest thread", page["active"], f"{comm} {pid}/{tid}: cycles (42 samples lost)")
    check("the title tells losses", page["title"].startswith("kscope (42 lost)"), page["title"])
    rows = {row["name"]: (row["self"], row["total"]) for row in page["rows"]}
    want = odd.report("--pid", str(pid), "--tid", str(tid), "--event", "cycles")["events"][0]["functions"]
    for row in want:
        got = [text.split(" ")[0].replace(",", "") for text in rows.get(row["name"], ())]
        equal(f"the table has {row['name'][:60]}", got, [str(row["self"]), str(row["total"])])


def test_order(odd, path):
    """Samples are in the order of time: where the dump has one in the kernel, so has the profile."""
    file = read(path)
    names = [frame["name"] for frame in file["shared"]["frames"]]
    profile = next(one for one in file["profiles"] if " 100/102: cycles" in one["name"])
    with open(odd.path, encoding="utf-8") as lines:
        want = [(int(found[1]), found[2] == "kernel") for found in
                (re.match(r"sample .* task=100/102 source=1 weight=(\d+) : (\w+)", line) for line in lines) if found]
    wrong, at, until, rows = [], 0, 0, iter(zip(profile["samples"], profile["weights"]))
    stack = []
    for weight, kernel in want:
        if at >= until:
            stack, more = next(rows)
            until += more
        at += weight
        ran = any(names[frame] in odd.kernel_functions for frame in stack)
        if kernel != ran or at > until:
            wrong.append((at, until, kernel))
    no_problems("samples are in order", wrong)
    check("the order is tested", 100 < len(profile["samples"]) <= len(want), len(want))


def test_places(odd, path):
    """Files and lines of functions, once for each function."""
    frames = {frame["name"]: frame for frame in read(path)["shared"]["frames"]}
    source = os.path.join(profiles.SOURCES, "program.cpp")
    with open(source, encoding="utf-8") as lines:
        text = lines.read().splitlines()
    for name, word in (("main", "main("), ("thread_main(int)", "thread_main(")):
        line = frames[name].get("line", 0)
        check(f"{name} begins at its line", frames[name].get("file") == source and
              any(word in text[at] for at in range(max(0, line - 2), line)), frames[name])
    equal("an inlined function has a file", frames["mix"].get("file"), source)
    lines = read_lines(odd)
    check("--lines: more frames, with lines", len(lines) > len(frames) and
          any(re.fullmatch(r"mix program.cpp:\d+", name) for name in lines), sorted(lines)[:4])


def read_lines(odd):
    out = os.path.join(odd.folder, "lines.speedscope.json")
    exits("--lines", kscope("convert", odd.path, *odd.options, "--lines", "-o", out), 0)
    return {frame["name"] for frame in read(out)["shared"]["frames"]}


def test_options(odd, folder):
    out = os.path.join(folder, "options.speedscope.json")
    exits("--samples", kscope("convert", odd.path, *odd.options, "--samples", "--no-inline", "-o", out), 0)
    page = show("--samples --no-inline", out)
    profile = by_name(page)["idle 0/0: cycles (samples) (42 samples lost)"]
    want = odd.report("--pid", "0", "--event", "cycles")["events"][0]["samples"]
    equal("--samples: the number of samples", profile["endValue"] - profile["startValue"], want)
    names = {frame["name"] for frame in page["file"]["shared"]["frames"]}
    check("--no-inline: no inlined functions", "mix" not in names and "main" in names, names)


def test_odd(folder):
    odd = profiles.odd(folder)
    path = os.path.join(folder, "odd.speedscope.json")
    exits("converts the odd profile", kscope("convert", odd.path, *odd.options, "-o", path), 0)
    page = show("the odd profile", path)
    test_threads(odd, page)
    test_first_view(odd, page)
    test_order(odd, path)
    test_places(odd, path)
    test_options(odd, folder)


def test_units(folder):
    """Bytes, nanoseconds, samples without a time and without a stack, and equal names in two binaries."""
    source = os.path.join(folder, "units.dump")
    with open(source, "w", encoding="utf-8") as file:
        file.write(profiles.UNITS)
    path = os.path.join(folder, "units.speedscope.json")
    exits("converts samples without times", kscope("convert", source, "-o", path), 0)
    page = show("units", path)
    found = by_name(page)
    heap, work = found["? 7/7: heap"], found["? 7/7: work"]
    equal("units", [heap["unit"], work["unit"]], ["bytes", "nanoseconds"])
    equal("equal names are told apart", totals(page["file"], heap),
          {"main [a]": (3 * MB, 3 * MB), "main [b]": (0, MB), "leaf": (MB, MB)})
    equal("the table has the binary", sorted(row["name"] for row in page["rows"])[-2:], ["main [a]", "main [b]"])
    equal("no stack", totals(page["file"], found["? 7/8: work"]), {"[no stack]": (1500, 1500)})


def test_clock(folder):
    """cpu-clock counts ns, unless all its weights are 1, as in Zephyr; also if a thread has only few ns."""
    source = os.path.join(folder, "clock.dump")
    for weight, unit in ((250000, "nanoseconds"), (1, "none")):
        with open(source, "w", encoding="utf-8") as file:
            file.write('kscope-dump 1\nsource id=1 name="cpu-clock" type=1 config=0x0\n'
                       f'sample time=0.1 cpu=0 task=1/1 source=1 weight={weight} : named "main"\n'
                       'sample time=0.2 cpu=0 task=1/2 source=1 weight=1 : named "main"\n')
        rows = json.loads(kscope("convert", source, "-t", "speedscope", "-o", "-").stdout)["profiles"]
        equal(f"cpu-clock, {weight}: the unit", [(row["unit"], row["weights"]) for row in rows],
              [(unit, [weight]), (unit, [1])])


def test_folded(folder):
    source, path = (os.path.join(folder, name) for name in ("t.folded", "t.speedscope.json"))
    with open(source, "w", encoding="utf-8") as file:
        file.write("main;a;b 3\nmain;a 4\nmain;c;a;a 5\n")
    exits("converts folded stacks", kscope("convert", source, "-o", path), 0)
    page = show("folded stacks", path)
    profile, = page["file"]["profiles"]
    equal("functions of folded stacks", totals(page["file"], profile),
          {"main": (0, 12), "a": (9, 12), "b": (3, 3), "c": (0, 5)})


def test_nothing(folder):
    """The page waits forever for a file without profiles."""
    source, path = (os.path.join(folder, name) for name in ("nothing.dump", "nothing.speedscope.json"))
    with open(source, "w", encoding="utf-8") as file:
        file.write('kscope-dump 1\ncomm task=1/1 name="init"\n')
    exits("no samples: a warning", kscope("convert", source, "-o", path), 0, "the input has no samples or calls")


# ---- calls ----


def calls():
    """Two tasks on two cpus, with recursion, odd names, calls of no length and gaps."""
    trace = Trace(["main", "work", *ODD])
    for i in range(40):
        time, cpu, pid = 10**18 + 1000 * i, i % 2, 5 + i % 3
        name = ODD[i % len(ODD)]
        trace.begin(time, cpu, pid, "main")
        trace.call(time + 10, cpu, pid, "main", "work")
        trace.call(time + 20 + i, cpu, pid, "work", name)
        trace.call(time + 30 + i, cpu, pid, name, "work")
        trace.leave(time + 55 + i, cpu, pid, "work", name)
        trace.leave(time + (55 if i % 4 else 60) + i, cpu, pid, name, "work")
        trace.leave(time + 200, cpu, pid, "work", "main")
        trace.end(time + 300, cpu, pid, "main")
    return trace


def found_by_perfetto(path):
    """{(pid, tid): {function: [total, calls]}}, and {cpu: {name: time}}"""
    rows, runs = perfetto.query(path, CALLS, CPUS)
    by_id = {row["id"]: row for row in rows}
    threads = collections.defaultdict(lambda: collections.defaultdict(int))
    for row in rows:
        above, at = set(), row
        while at["parent"] != "-1":
            at = by_id[at["parent"]]
            above.add(at["name"])
        threads[row["pid"], row["tid"]][row["name"]] += 0 if row["name"] in above else int(row["dur"])
    cpus = collections.defaultdict(lambda: collections.defaultdict(int))
    for row in runs:
        cpus[row["cpu"]][row["name"]] += int(row["dur"])
    return threads, cpus


def compare_with_perfetto(name, folder, trace):
    """Returns what Perfetto found: see found_by_perfetto()."""
    source, path, other = (os.path.join(folder, f"{name}.{ext}") for ext in ("dump", "speedscope.json", "pftrace"))
    with open(source, "w", encoding="utf-8") as file:
        file.write(trace.text())
    folded = os.path.join(folder, f"{name}.folded")
    exits(f"converts {name}", kscope("convert", source, "-o", path, "-o", other, "-o", folded), 0)
    page = show(name, path)
    threads, cpus = found_by_perfetto(other)
    found = {profile["name"]: {name.replace("\n", "?"): total
                               for name, (_, total) in totals(page["file"], profile).items()}
             for profile in page["file"]["profiles"]}
    for (pid, tid), functions in threads.items():
        shown = next((one for one in found if one.endswith(f" {pid}/{tid}")), None)
        equal(f"{name}: calls of {pid}/{tid}", found.pop(shown, None), dict(functions))
    for cpu, names in cpus.items():
        got = collections.Counter()
        for function, total in found.pop(cpu, {}).items():
            got["gap" if function == "[gap]" else function.split(" ")[0]] += total
        equal(f"{name}: {cpu}: what ran on it, and gaps", got, collections.Counter(names))
        check(f"{name}: {cpu}: has gaps", names.get("gap"), names)
    equal(f"{name}: and nothing else, such as sums of the same calls", list(found), [])
    return threads, cpus


def test_calls(folder):
    threads, cpus = compare_with_perfetto("calls", folder, calls())
    check("there are threads and cpus", len(threads) > 2 and len(cpus) == 2, (threads.keys(), cpus.keys()))
    with open(os.path.join(folder, "calls.folded"), encoding="utf-8") as lines:
        check("another output of the same run has sums", "main;work" in lines.read())
    threads, _ = compare_with_perfetto("late-callers", folder, late_callers())
    equal("late callers: all stacks are in one thread", [set(names) for names in threads.values()],
          [{"main", "leaf", "other", "outer"}])


def test_axis(folder):
    """On the axis of instructions, numbers are no nanoseconds."""
    path = os.path.join(folder, "axis.speedscope.json")
    exits("--axis insns", kscope("convert", os.path.join(folder, "calls.dump"), "--axis", "insns", "-o", path), 0)
    equal("--axis insns: the unit", {profile["unit"] for profile in show("--axis insns", path)["file"]["profiles"]},
          {"none"})


def main():
    with scratch() as folder:
        test_odd(folder)
        test_units(folder)
        test_clock(folder)
        test_folded(folder)
        test_nothing(folder)
        test_calls(folder)
        test_axis(folder)
    finish()


if __name__ == "__main__":
    main()
