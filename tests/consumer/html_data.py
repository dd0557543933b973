#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The data in HTML reports, decoded by the specification in web/README.md: its sums are those of kscope report, its calls
those that Perfetto finds in the same timeline. What a page shows of them is in html.py."""
import collections
import glob
import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import ROOT, check, equal, exits, finish, kscope, no_problems, perfetto, profiles, run, scratch
from kit.branches import Trace, late_callers
from kit.html import Page, of_report

CALLS = """select s.id, s.ts, s.dur, s.name, s.category, tid, pid from slice s join thread_track on s.track_id = thread_track.id
           join thread using (utid) join process using (upid) where s.category not in ('note', 'gap')"""
HOSTILE = "</script><img src=x onerror=alert(1)><!--"


def page_of(name, folder, source, *options):
    path = os.path.join(folder, f"{name}.html")
    if not exits(f"{name}: converts", kscope("convert", source, *options, "-o", path), 0):
        finish()
    return Page(path)


def report(source, *options):
    return json.loads(kscope("report", source, "--json", "--limit", "0", *options).stdout)["events"]


def write(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def same_sums(name, page, source, *options):
    """Of all functions of all events, as in the report."""
    for event in report(source, *options):
        if check(f"{name}: has {event['name']}", event["name"] in page.events(), page.events()):
            equal(f"{name}: {event['name']}", page.sums(page.events().index(event["name"])), of_report(event))


# ---- samples ----


def test_odd(folder):
    """Odd names, several events, tasks, inlined functions, losses."""
    odd = profiles.odd(folder)
    page = page_of("odd", folder, odd.path, *odd.options)
    same_sums("odd", page, odd.path, *odd.options)
    names = [(page.strings[name], pid - 1, tid - 1)
             for name, pid, tid in zip(page.tasks.name, page.tasks.pid, page.tasks.tid)]
    for pid, tid, comm, _ in profiles.TASKS:
        for number, event in enumerate(page.events()):
            rows = odd.report("--pid", str(pid), "--tid", str(tid), "--event", event)["events"]
            got = page.sums(number, lambda row: names[page.rows.task[row]][1:] == (pid, tid))
            equal(f"odd: {comm} {tid}: {event}", got, of_report(rows[0]) if rows else {})
        check(f"odd: the name of {comm} {tid}", (comm, pid, tid) in names, names)
    equal("odd: losses, but no damage", [page.head["lost"][key] for key in ("samples", "damaged", "places")],
          [sum(count for _, count in profiles.LOST), 0, 0])
    equal("odd: times are in order", page.rows.time, sorted(page.rows.time))
    equal("odd: the idle task", [name for name, idle in zip(names, page.tasks.idle) if idle], [("idle", 0, 0)])
    again = page_of("again", folder, odd.path, *odd.options)
    check("odd: the same input gives the same page", again.html == page.html)
    inlined = {page.strings[page.functions.name[function]]
               for function, is_inlined in zip(page.stacks.function, page.stacks.inlined) if is_inlined}
    check("odd: inlined functions are marked", "mix" in inlined, inlined)
    test_code(page)


def test_code(page):
    """Source and instructions of the functions with samples."""
    with open(os.path.join(profiles.SOURCES, "program.cpp"), encoding="utf-8") as file:
        source = file.read().splitlines()
    code = page.more["code"]
    pieces = {page.strings[name]: lines for name, lines in code["sources"]}
    program = next((lines for name, lines in pieces.items() if name.endswith("program.cpp")), [])
    wrong = [(first + i, line) for first, lines in program for i, line in enumerate(lines)
             if source[first + i - 1] != line]
    check("code: there is the source", sum(len(lines) for _, lines in program) > 10, list(pieces))
    no_problems("code: source lines have their numbers", wrong)
    wrong, named = [], set()
    for number, _, insns in code["functions"]:
        offsets = [insn[0] for insn in insns]
        if offsets[:1] != [0] or offsets != sorted(set(offsets)):
            wrong.append((page.function(number), offsets))
        named |= {page.strings[file] for _, _, file, line in insns if line}
    no_problems("code: instructions are in order, from the start on", wrong)
    check("code: instructions have lines", any(name.endswith("program.cpp") for name in named), named)
    ends = {number: insns[-1][0] + 15 for number, _, insns in code["functions"]}
    places = {(page.places.function[place], page.places.offset[place]) for place in page.rows.place if place}
    check("code: samples have places", len(places) > 100, len(places))
    no_problems("code: places are in their functions",
                [place for place in places if place[1] >= ends.get(place[0], 1 << 20)])


def test_units(folder):
    source = write(folder, "units.dump", profiles.UNITS)
    page = page_of("units", folder, source)
    same_sums("units", page, source)
    equal("units", {event["name"]: event["unit"] for event in page.head["events"]}, {"heap": "bytes", "work": "ns"})
    check("units: without times", page.head["timed"] is False)
    page = page_of("samples", folder, source, "--samples")
    equal("--samples: numbers of samples", {event["unit"] for event in page.head["events"]}, {"samples"})
    same_sums("--samples", page, source, "--samples")


def test_folded(folder):
    source = write(folder, "t.folded", "main;a;b 3\nmain;a 4\nmain;c;a;a 5\n")
    same_sums("folded", page_of("folded", folder, source), source)


def test_hostile(folder):
    """Names are data: none is in the page as text."""
    source = write(folder, "hostile.dump", "kscope-dump 1\n" + "".join(
        f'meta key="{key}" value={json.dumps(HOSTILE)}\n' for key in ("cmdline", "hostname")) +
        'source id=1 name="cycles"\n' + f'comm task=1/1 name={json.dumps(HOSTILE[:15])}\n'
        f'sample time=0.1 cpu=0 task=1/1 source=1 weight=5 : named {json.dumps(HOSTILE)} "main"\n')
    page = page_of("hostile", folder, source)
    check("hostile: the name is in the data", HOSTILE in page.strings, page.strings)
    html = page.html.decode()
    html = html[:html.rindex("<script>")]  # without the program itself
    equal("hostile: blocks of the page", len(re.findall("<script", html, re.I)), len(page.more))
    equal("hostile: their ends", len(re.findall("</script", html, re.I)), len(page.more))
    check("hostile: no other element", "<img" not in html.lower())
    policy = re.search('Content-Security-Policy" content="([^"]*)"', html)[1]
    check("hostile: nothing is loaded", "default-src 'none'" in policy and "unsafe-eval" not in policy and
          "script-src 'sha256-" in policy, policy)


def test_damage(folder):
    source = write(folder, "damage.dump", 'kscope-dump 1\nsource id=1 name="cycles"\nsample time=x\n'
                   'sample time=0.1 cpu=0 task=1/1 source=1 weight=5 : named "main"\n')
    path = os.path.join(folder, "damage.html")
    exits("damage: the exit code tells", kscope("convert", source, "-o", path), 1)
    equal("damage: counted", Page(path).head["lost"], {"samples": 0, "damaged": 1, "bytes": 13, "places": 1})


def test_nothing(folder):
    source = write(folder, "nothing.dump", 'kscope-dump 1\ncomm task=1/1 name="init"\n')
    equal("nothing: no rows", page_of("nothing", folder, source).rows.nr, 0)


def test_many(folder):
    """More samples than a page has are summed up over equal times, and nothing is lost."""
    nr, period = 1200000, 1000
    path = os.path.join(folder, "many.dump")
    with open(path, "w", encoding="utf-8") as file:
        file.write('kscope-dump 1\nsource id=1 name="cycles"\n')
        for i in range(nr):
            name = "odd" if i % 3 else "even"
            at = i * period
            file.write(f'sample time={at // 10**9}.{at % 10**9:09} cpu={i % 2} task=1/1 source=1 weight=7 : '
                       f'named "{name}" "main"\n')
    page = page_of("many", folder, path)
    quantum = page.head["quantum"]
    check("many: summed up", quantum > 0 and 1000 < page.rows.nr <= 1 << 20, (quantum, page.rows.nr))
    no_problems("many: rows begin at a multiple of the time",
                [time for time in page.rows.time if (time + int(page.head["start"])) % quantum][:5])
    third = nr // 3
    equal("many: the sums", page.sums(0), {("even", ""): (7 * third, 7 * third, third), ("main", ""): (0, 7 * nr, 0),
                                           ("odd", ""): (14 * third, 14 * third, 2 * third)})
    half = nr * period // 2 // quantum * quantum
    want = -(-half // period) * 7  # samples before it
    got = sum(weight for time, weight in zip(page.rows.time, page.rows.weight) if time < half)
    equal("many: the sum of the first half", got, want)


ASSEMBLY = """	.text
	.file 1 "{folder}/{name}"
	.globl _start
	.type _start,@function
_start:
	.loc 1 1 0
	nop
	.loc 1 4294967290 0
	nop
	.loc 1 2 0
	nop
	ret
	.size _start,.-_start
"""


def sources_of(folder, name, *options):
    """The source lines in the page of a program whose instructions are at lines 1, 2^32-6 and 2 of that file."""
    code, program = (os.path.join(folder, f"lines.{end}") for end in ("s", "elf"))
    write(folder, "lines.s", ASSEMBLY.format(folder=folder, name=name))
    done = run("gcc", "-g", "-nostdlib", "-static", "-no-pie", "-Wl,-Ttext=0x401000", code, "-o", program)
    if not exits(f"{name}: builds", done, 0):
        finish()
    source = write(folder, "lines.dump", 'kscope-dump 1\nsource id=1 name="cycles"\n'
                   f'map task=1/1 whole path="{program}"\n' + "".join(
                       f"sample time=0.{i} cpu=0 task=1/1 source=1 weight=5 : user 0x40100{i}\n" for i in range(3)))
    page = page_of(f"lines of {name}", folder, source, *options)
    return {os.path.basename(page.strings[file]): parts for file, parts in page.more["code"]["sources"]}


def test_sources(folder):
    """Only source files are in a page, and only as far as they go."""
    write(folder, "whole.c", "int a;\nint b;")
    equal("sources: the last line needs no end", sources_of(folder, "whole.c"), {"whole.c": [[1, ["int a;", "int b;"]]]})
    write(folder, "secret.txt", "secret\n")
    equal("sources: no other files", sources_of(folder, "secret.txt"), {})
    os.symlink(os.path.join(folder, "secret.txt"), os.path.join(folder, "link.c"))
    equal("sources: nor a link to one", sources_of(folder, "link.c"), {})
    os.mkfifo(os.path.join(folder, "pipe.c"))
    equal("sources: nor a pipe", sources_of(folder, "pipe.c"), {})
    os.mkdir(os.path.join(folder, "tree"))
    os.rename(os.path.join(folder, "whole.c"), os.path.join(folder, "tree", "whole.c"))
    equal("sources: not where they were built", sources_of(folder, "whole.c"), {})
    equal("sources: --build-dir", list(sources_of(folder, "whole.c", "--build-dir", os.path.join(folder, "tree"))), ["whole.c"])


# ---- allocations ----


def test_allocations(folder):
    source = os.path.join(ROOT, "tests/golden/firefox-allocs/input.dump")
    page = page_of("allocations", folder, source)
    same_sums("allocations", page, source, "--value", "total")
    live, peak = collections.Counter(), collections.Counter()
    for heap, size in zip(page.allocs.heap, page.allocs.size):
        live[heap] += size
        peak[heap] = max(peak[heap], live[heap])
    for value, sums in (("live", live), ("peak", peak)):
        want = {event["name"]: event["weight"] for event in report(source, "--value", value)}
        equal(f"allocations: {value}", {page.head["heaps"][heap]: size for heap, size in sums.items() if size},
              {name: size for name, size in want.items() if size})


def test_empty_blocks(folder):
    """malloc(0) is a block, and one that is empty for a while is the same block."""
    source = write(folder, "empty.dump", "kscope-dump 1\n" + "".join(
        f'alloc time=0.00000000{i} cpu=0 task=1/1 {text} at=0 : kernel 0x5000\n' for i, text in enumerate((
            'new by="kmalloc" ptr=0x10 size=0', 'new by="kmalloc" ptr=0x20 size=100', 'resize by="kmalloc" ptr=0x20 size=0',
            'resize by="kmalloc" ptr=0x20 size=40', 'free by="kmalloc" ptr=0x20', 'free by="kmalloc" ptr=0x10'))))
    page = page_of("empty blocks", folder, source)
    equal("empty blocks: bytes", page.allocs.size, [0, 100, -100, 40, -40, 0])
    equal("empty blocks: blocks", page.allocs.blocks, [1, 1, 0, 0, -1, -1])


# ---- calls ----


def nested(page):
    """[(pid, tid, function, begin, length, depth)], nested by the rule of web/README.md."""
    slices, found = page.slices, []
    order = sorted(range(slices.nr), key=lambda i: (slices.track[i], slices.begin[i], -i))
    stack, last = [], None
    for i in order:
        track = page.more["slices"]["tracks"][slices.track[i]]
        if slices.track[i] != last:
            stack, last = [], slices.track[i]
        end = slices.begin[i] + slices.length[i]
        while stack and (stack[-1][0] < end or stack[-1][1] < i):
            stack.pop()
        if track["kind"] == "task":
            pid, tid = (getattr(page.tasks, key)[track["task"]] - 1 for key in ("pid", "tid"))
            found.append((pid, tid, page.function(slices.function[i] - 1)[0], slices.begin[i], slices.length[i], len(stack)))
        stack.append((end, i))
    return found


def calls():
    """Two tasks on two cpus, with recursion and calls of no length."""
    trace = Trace(["main", "work", "leaf"])
    for i in range(40):
        time, cpu, pid = 10**18 + 1000 * i, i % 2, 5 + i % 3
        trace.begin(time, cpu, pid, "main")
        trace.call(time + 10, cpu, pid, "main", "work")
        trace.call(time + 20 + i, cpu, pid, "work", "leaf")
        trace.call(time + 30 + i, cpu, pid, "leaf", "work")
        trace.leave(time + 55 + i, cpu, pid, "work", "leaf")
        trace.leave(time + (55 if i % 4 else 60) + i, cpu, pid, "leaf", "work")
        trace.leave(time + 200, cpu, pid, "work", "main")
        trace.end(time + 300, cpu, pid, "main")
    return trace


def test_calls(name, folder, trace):
    source = write(folder, f"{name}.dump", trace.text())
    other = os.path.join(folder, f"{name}.pftrace")
    page = page_of(name, folder, source, "-o", other)
    rows, = perfetto.query(other, CALLS)
    want = collections.Counter((row["pid"], row["tid"], row["name"], int(row["ts"]), int(row["dur"])) for row in rows)
    start = int(page.head["start"])
    got = collections.Counter((str(pid), str(tid), function, begin + start, length)
                              for pid, tid, function, begin, length, _ in nested(page))
    equal(f"{name}: calls", got, want)
    check(f"{name}: there are some", sum(got.values()) > 2, got)
    time = page.sums(page.events().index("time"))
    own, stack = collections.Counter(), []
    for pid, tid, function, begin, length, depth in nested(page):
        del stack[depth:]
        if stack:
            own[stack[-1]] -= length
        own[function] += length
        stack.append(function)
    return time, own


def test_time_of_calls(folder):
    """The time of rows is what a task ran. Here, all tasks run all the time of their calls, or are not traced."""
    time, _ = test_calls("calls", folder, calls())
    equal("calls: functions", {name for name, _ in time}, {"main", "work", "leaf"})
    test_calls("late-callers", folder, late_callers())
    for name in ("dump-calls-renamed-tool", "dump-calls-renamed-shell", "uftrace"):
        source = glob.glob(os.path.join(ROOT, f"tests/golden/{name}/input*"))[0]
        page = page_of(name, folder, source)
        equal(f"{name}: the time of functions", {function: row[:2] for function, row in page.sums(0).items()},
              {function: row[:2] for function, row in of_report(report(source)[0]).items()})


def test_many_calls(folder):
    """Of more calls than a page has, the long ones stay, and the sums of all."""
    source = os.path.join(folder, "many-calls.dump")
    trace = Trace(["main", "short", "long"])
    nr = 560000
    trace.begin(0, 0, 1, "main")
    for i in range(nr):
        callee, length = ("long", 80) if i % 16 == 0 else ("short", 9)
        trace.call(100 * i + 10, 0, 1, "main", callee)
        trace.leave(100 * i + 10 + length, 0, 1, callee, "main")
        if i % 2:
            trace.call(100 * i + 90, 0, 1, "main", "short")
            trace.leave(100 * i + 99, 0, 1, "short", "main")
    for i in range(nr, nr + 300000):
        trace.call(100 * i + 10, 0, 1, "main", "short")
        trace.leave(100 * i + 19, 0, 1, "short", "main")
    trace.end(100 * (nr + 300000), 0, 1, "main")
    with open(source, "w", encoding="utf-8") as file:
        file.write(trace.text())
    page = page_of("many calls", folder, source)
    names = collections.Counter(page.function(function - 1)[0] for function in page.slices.function if function)
    equal("many calls: all long ones are there", names["long"], nr // 16)
    total = nr + nr // 2 + 300000
    shorts = total - nr // 16
    equal("many calls: the others are counted", names["short"] + page.head["shorter"], shorts)
    check("many calls: none is shorter than what the page says", page.head["shortest"] > 9 and
          min(page.slices.length) >= page.head["shortest"], (page.head["shortest"], sorted(page.slices.length)[:3]))
    time = page.sums(page.events().index("time"))
    equal("many calls: the sums are of all", {name: (row[0], row[2]) for (name, _), row in time.items()},
          {"main": (100 * (nr + 300000) - 80 * (nr // 16) - 9 * shorts, 1), "long": (80 * (nr // 16), nr // 16),
           "short": (9 * shorts, shorts)})


def test_long_calls(folder):
    """A call that took longer than the times over which calls are summed up is in all of them."""
    source = os.path.join(folder, "long.dump")
    trace, second, nr = Trace(["main", "wait", "short"]), 10**9, 530000
    trace.begin(0, 0, 1, "main")
    trace.call(0, 0, 1, "main", "wait")
    trace.leave(second, 0, 1, "wait", "main")
    for i in range(nr):
        trace.call(second + 200 * i, 0, 1, "main", "short")
        trace.leave(second + 200 * i + 100, 0, 1, "short", "main")
    trace.end(second + 200 * nr, 0, 1, "main")
    with open(source, "w", encoding="utf-8") as file:
        file.write(trace.text())
    page = page_of("long calls", folder, source)
    time = page.events().index("time")
    rows = [(page.rows.time[i], page.rows.length[i], page.rows.weight[i]) for i in range(page.rows.nr)
            if page.rows.event[i] == time and page.function(page.stacks.function[page.rows.stack[i]])[0] == "wait"]
    quantum = page.head["quantum"]
    check("long calls: summed up", 1 < quantum < second // 100, quantum)
    equal("long calls: the time", sum(weight for _, _, weight in rows), second)
    no_problems("long calls: no row is heavier than it is long", [row for row in rows if row[2] > row[1]])
    half = sum(weight for at, _, weight in rows if at < second // 2)
    check("long calls: half of it is in the first half", abs(half - second // 2) <= quantum, half)


def main():
    with scratch() as folder:
        for test in (test_odd, test_units, test_folded, test_hostile, test_damage, test_nothing, test_many, test_sources,
                     test_allocations, test_empty_blocks, test_time_of_calls, test_many_calls, test_long_calls):
            test(folder)
    finish()


if __name__ == "__main__":
    main()
