#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""kscope calls: the figures of a small trace, in text and JSON, and its options."""
import collections
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import check, equal, exits, finish, kscope, scratch

ENTRY, OPEN, WALK, TICK, END = range(0x10000, 0x15000, 0x1000)
USER = 0x400000
SYMBOLS = "".join(f"{address:016x} T {name}\n" for name, address in
                  [("entry", ENTRY), ("open_file", OPEN), ("walk", WALK), ("tick", TICK), ("end", END)])
HEAD = f"""kscope-dump 1
map addr={ENTRY:#x} len=0x5000 offset={ENTRY:#x} prot=r-x kernel linked path="[kernel.kallsyms]"
comm task=1/1 name="editor"
map task=1/1 addr={USER:#x} len=0x1000 offset=0 prot=r-x path="/bin/editor"
"""


class Trace:
    """Calls from code + 0x10, returns from code + 0x20. An instruction takes 10 ns."""

    def __init__(self, start=1000):
        self.time, self.lines = start, []
        self.code, self.sp, self.stack = USER, 0x700000, []
        self.add("begin", 0, f"to={USER:#x}")

    def add(self, kind, instructions, words):
        self.time += 10 * instructions
        level = "user" if self.code >= USER else "kernel"
        stack = {"call": "down=16 pushed=8", "return": "up=16"}.get(kind, f"sp={self.sp:#x}")
        self.lines.append(f"branch time=0.{self.time:09} cpu=0 task=1/1 {kind} {words} {stack} "
                          f"space=0x1 instructions={instructions} {level}")

    def enter(self, kind, to, instructions, more=4, sp=None):
        at = self.code + 0x10
        self.stack.append((kind, at + more, self.sp))
        self.sp = sp or self.sp - 16
        self.code = to
        self.add(kind, instructions, f"from={at:#x} to={to:#x} next={at + more:#x}")

    def call(self, to, instructions):
        self.enter("call", to, instructions)

    def mask(self, state, instructions, level="kernel"):
        """Interrupts are on or off, so many instructions after the last branch."""
        self.lines.append(f"mask time=0.{self.time + 10 * instructions:09} cpu=0 task=1/1 {state} "
                          f"instructions={instructions} {level}")

    def interrupt(self, to, instructions):
        self.enter("enter", to, instructions, 0)

    def syscall(self, instructions):
        self.enter("enter", ENTRY, instructions, sp=0x8000)

    def back(self, instructions):
        source = self.code + 0x20
        kind, to, self.sp = self.stack.pop()
        self.code = to & ~0xfff
        self.add("return" if kind == "call" else "leave", instructions, f"from={source:#x} to={to:#x}")

    def write(self, path):
        with open(path, "w", encoding="ascii") as f:
            f.write(HEAD + "\n".join(self.lines) + "\n")
        return path


def open_files():
    """Three system calls: one with everything, a short one, and one that does not end."""
    t = Trace()
    t.syscall(10)
    t.call(OPEN, 10)
    t.call(WALK, 10)
    t.call(WALK, 10)
    t.interrupt(TICK, 10)
    t.back(20)
    t.back(5)
    t.back(5)
    t.back(10)
    t.back(10)
    t.syscall(10)
    t.back(30)
    t.syscall(10)
    t.call(OPEN, 10)
    return t


SUMMARY = ("9 calls in 1 task, which ran for 1.600 us and 160 instructions; "
           "shares are of this time\n\n")
HEADING = ("    self    total      calls  self time  total time  self insns  total insns"
           "      min   median      p99      max  ")
KERNEL = " " * 36 + "[kernel.kallsyms]"
ROW_ENTRY = ("  37.50%   81.25%          3     600 ns     1.30 us          60          130"
             "   300 ns   300 ns   900 ns   900 ns  ")
ROW_TICK = ("  12.50%   12.50%          1     200 ns      200 ns          20           20"
            "   200 ns   200 ns   200 ns   200 ns  ")
ENTRY_NAME, TICK_NAME = f"entry{KERNEL}\n", f"tick {KERNEL}\n"
TABLE = f"""{SUMMARY}{HEADING}function
{ROW_ENTRY}{ENTRY_NAME}\
  18.75%  100.00%          1     300 ns     1.60 us          30          160\
        -        -        -        -  editor+0x0                               editor
  18.75%   31.25%          2     300 ns      500 ns          30           50\
   350 ns   350 ns   500 ns   500 ns  walk {KERNEL}
  12.50%   43.75%          2     200 ns      700 ns          20           70\
   700 ns   700 ns   700 ns   700 ns  open_file                                [kernel.kallsyms]
{ROW_TICK}{TICK_NAME}"""
BAR = "#" * 50
HISTOGRAM = f"""  ns                      count
  [256, 512)                  1  {BAR}
  [512, 1K)                   1  {BAR}
"""
FIRST = f"""{SUMMARY}{HEADING}function
{ROW_ENTRY}{ENTRY_NAME}{HISTOGRAM}{"(4 more rows: --limit 0)":>138}
"""
DETAILS = f"""{SUMMARY}entry{KERNEL}
  calls                  3, 1 of them not complete
  self              600 ns, running 600 ns, 37.50%, 60 instructions
  total            1.30 us, running 1.30 us, 81.25%, 130 instructions
      min   median      p99      max
   300 ns   300 ns   900 ns   900 ns
{HISTOGRAM}"""
TRAPS = f"""{SUMMARY}{HEADING}program                  handler of system calls
{ROW_ENTRY}editor                   {ENTRY_NAME}
{HEADING}program                  handler of traps
{ROW_TICK}editor                   {TICK_NAME}"""
BETWEEN = f"""{SUMMARY}from walk to tick: 1 time, and 1 unmatched
      min   median      p99      max
   100 ns   100 ns   100 ns   100 ns
  ns                      count
  [64, 128)                   1  {BAR}
"""


def calls(trace, *words):
    symbols = os.path.join(os.path.dirname(trace), "System.map")
    return kscope("calls", trace, "--kernel", symbols, *words)


def figures(trace, *words):
    done = calls(trace, "--json", *words)
    exits(f"JSON {' '.join(words)}", done, 0)
    return json.loads(done.stdout)


def test_text(trace):
    equal("the table", calls(trace).stdout, TABLE)
    equal("a limit and histograms", calls(trace, "-n", "1", "--histogram").stdout, FIRST)
    equal("one function", calls(trace, "--function", "entry").stdout, DETAILS)
    equal("system calls and traps", calls(trace, "--syscalls", "--traps").stdout, TRAPS)
    equal("of two entries of the first function, the later one counts",
          calls(trace, "--between", "walk", "tick").stdout, BETWEEN)
    equal("both values of an option are no inputs",
          calls(trace, "--between=walk", "tick", "-q").stdout, BETWEEN)


def test_sort(trace):
    def order(*words):
        return [row["name"] for row in figures(trace, *words)["functions"]]
    names = ["entry", "editor+0x0", "walk", "open_file", "tick"]
    equal("sort by self", order("--sort", "self"), names)
    equal("sort by total", order("--sort", "total"),
          ["editor+0x0", "entry", "open_file", "walk", "tick"])
    equal("sort by calls", order("--sort", "calls"),
          ["entry", "open_file", "walk", "editor+0x0", "tick"])
    equal("sort by max", order("--sort", "max"),
          ["entry", "open_file", "walk", "tick", "editor+0x0"])
    equal("sort by name", order("--sort", "name"), sorted(names))
    equal("one function in JSON", order("--function", "walk"), ["walk"])


def test_json(trace):
    got = figures(trace, "--between", "open_file", "walk")
    equal("all", {key: got[key] for key in ("count", "tasks", "time", "instructions", "gaps")},
          {"count": 9, "tasks": 1, "time": 1600, "instructions": 160, "gaps": 0})
    rows = {row["name"]: row for row in got["functions"]}
    equal("a recursive function", rows["walk"],
          {"name": "walk", "binary": "[kernel.kallsyms]", "count": 2, "open": 0, "self_time": 300,
           "total_time": 500, "self_running": 300, "total_running": 500, "self_instructions": 30, "total_instructions": 50,
           "self_percent": 18.75, "total_percent": 31.25, "min": 350, "median": 350, "p99": 500,
           "max": 500, "histogram": [{"from": 256, "count": 2}]})
    equal("a call that is not over has no latency", ("min" in rows["editor+0x0"],
                                                     rows["editor+0x0"]["open"]), (False, 1))
    equal("system calls", [(row["name"], row["program"], row["count"]) for row in got["syscalls"]],
          [("entry", "editor", 3)])
    equal("traps", [(row["name"], row["program"], row["count"]) for row in got["traps"]],
          [("tick", "editor", 1)])
    equal("latency", got["between"],
          {"from": "open_file", "to": "walk", "count": 1, "unmatched": 1, "min": 100, "median": 100,
           "p99": 100, "max": 100, "histogram": [{"from": 64, "count": 1}]})
    got = figures(trace, "--between", "walk", "walk")["between"]
    equal("from one entry to the next", (got["count"], got["unmatched"], got["min"]), (1, 1, 100))


SUMS = ["count", "self_time", "total_time", "self_running", "total_running", "self_instructions",
        "total_instructions"]


def sums(trace, *words):
    """{(kind, name): its sums}"""
    got = figures(trace, *words)
    rows = {(kind, row["name"]): [row[key] for key in SUMS]
            for kind in ("functions", "syscalls", "traps") for row in got[kind]}
    return collections.Counter({(*key, name): value for key, values in rows.items()
                                for name, value in zip(SUMS, values)})


def parts_add_up(name, trace, end, lengths):
    """Of a trace from 1000 ns on."""
    whole = sums(trace)
    for length in lengths:
        edges = ["", *(f"{time / 1e9:.9f}" for time in range(1000 + length, end, length)), ""]
        parts = [sums(trace, "--time", f"{a},{b}") for a, b in zip(edges, edges[1:])]
        equal(f"{name}: parts of {length} ns add up", sum(parts, collections.Counter()), whole)


def test_parts(trace):
    """Most parts begin or end inside calls."""
    parts_add_up("one task", trace, 2600, (30, 100, 450))
    got = figures(trace, "--time", "0.0000013,0.0000016", "--function", "open_file")["functions"]
    equal("a call that began before counts its time only",
          [(row["count"], row["total_time"], "max" in row) for row in got], [(0, 300, False)])
    got = figures(trace, "--time", "0.0000013,0.0000014", "--between", "walk", "tick", "-q")["between"]
    equal("what the selection cuts is not matched", (got["count"], got["unmatched"]), (0, 1))


def test_many(folder):
    """More calls than are kept one by one: 1000 to 2999 ns, twice."""
    t = Trace()
    t.syscall(1)
    for _ in range(2):
        for instructions in range(100, 300):
            t.call(WALK, 1)
            t.back(instructions)
    t.back(1)
    row = figures(t.write(os.path.join(folder, "many.dump")), "--function", "walk")["functions"][0]
    equal("many calls: exact figures", [row[key] for key in ("count", "min", "max", "total_time")],
          [400, 1000, 2990, 2 * sum(range(1000, 3000, 10))])
    equal("many calls: an exact histogram", row["histogram"],
          [{"from": 512, "count": 6}, {"from": 1024, "count": 204}, {"from": 2048, "count": 190}])
    check("many calls: quantiles", abs(row["median"] - 1990) <= 1990 / 128 and
          abs(row["p99"] - 2970) <= 2970 / 128, row)


def test_deep(folder):
    """Deep recursion: the outer call counts once."""
    t = Trace()
    depth = 3000
    t.enter("enter", ENTRY, 1, sp=0x80000)
    for _ in range(depth):
        t.call(WALK, 1)
    for _ in range(depth):
        t.back(1)
    row = figures(t.write(os.path.join(folder, "deep.dump")), "--function", "walk")["functions"][0]
    equal("deep recursion", [row[key] for key in SUMS],
          [depth, *4 * [(2 * depth - 1) * 10], 2 * depth - 1, 2 * depth - 1])


SWITCH = f"""begin to={ENTRY:#x} sp=0x8000
call from={ENTRY + 0x10:#x} to={OPEN:#x} next={ENTRY + 0x14:#x} down=16 pushed=8
call from={OPEN + 0x10:#x} to={WALK:#x} next={OPEN + 0x14:#x} down=16 pushed=8
return from={WALK + 0x10:#x} to={TICK:#x} sp=0x9000 left=0x7fe0 taken=0x8ff8
call from={TICK + 0x10:#x} to={WALK:#x} next={TICK + 0x14:#x} down=16 pushed=8
jump from={WALK + 0x4:#x} to={WALK + 0x8:#x} down=0
return from={WALK + 0x10:#x} to={OPEN + 0x14:#x} sp=0x7ff0 left=0x8ff0 taken=0x7fe0
return from={OPEN + 0x20:#x} to={ENTRY + 0x14:#x} up=16
"""


# The second task is left, and the third one uses its stack: it has ended.
ENDED = f"""begin to={ENTRY:#x} sp=0x8000
call from={ENTRY + 0x10:#x} to={WALK:#x} next={ENTRY + 0x14:#x} down=16 pushed=8
return from={WALK + 0x10:#x} to={TICK:#x} sp=0x9000 left=0x7ff0 taken=0x8ff8
call from={TICK + 0x10:#x} to={WALK:#x} next={TICK + 0x14:#x} down=16 pushed=8
return from={WALK + 0x10:#x} to={ENTRY + 0x14:#x} sp=0x8000 left=0x8ff0 taken=0x7ff0
call from={ENTRY + 0x18:#x} to={WALK:#x} next={ENTRY + 0x1c:#x} down=16 pushed=8
return from={WALK + 0x10:#x} to={OPEN:#x} sp=0x9100 left=0x7ff0 taken=0x90f8
call from={OPEN + 0x10:#x} to={WALK:#x} next={OPEN + 0x14:#x} down=512 pushed=8
return from={WALK + 0x10:#x} to={ENTRY + 0x1c:#x} sp=0x8000 left=0x8f00 taken=0x7ff0
jump from={ENTRY + 0x20:#x} to={ENTRY + 0x30:#x} down=0
"""


def write_rows(folder, name, rows):
    """A trace in the kernel. Each row takes 100 ns and 10 instructions."""
    path = os.path.join(folder, name)
    with open(path, "w", encoding="ascii") as f:
        f.write(HEAD)
        for i, row in enumerate(rows.splitlines()):
            f.write(f"branch time=0.{1000 + 100 * i:09} cpu=0 task=1/1 {row} space=0x1 "
                    f"instructions={10 * min(i, 1)} kernel\n")
    return path


def test_ended(folder):
    path = write_rows(folder, "ended.dump", ENDED)
    rows = {row["name"]: row for row in figures(path)["functions"]}
    equal("ended: a task that was left and ended took its time until then",
          [rows["tick"][key] for key in ("count", "open", "total_time")], [1, 0, 200])
    parts_add_up("ended", path, 1900, (50, 100, 250))


def test_waiting(folder):
    """walk switches from the task of entry to that of tick and back."""
    path = write_rows(folder, "switch.dump", SWITCH)
    parts_add_up("waiting", path, 1700, (50, 100, 250))
    got = figures(path)
    equal("waiting: two tasks", (got["tasks"], got["time"], got["running"]), (2, 1100, 700))
    keys = ["count", "self_time", "total_time", "self_running", "total_running", "total_instructions"]
    equal("waiting: counts as time, but not as running",
          {row["name"]: [row[key] for key in keys] for row in got["functions"]},
          {"entry": [1, 100, 700, 100, 400, 40], "open_file": [1, 200, 600, 200, 300, 30],
           "walk": [2, 700, 700, 300, 300, 30], "tick": [1, 100, 400, 100, 300, 30]})


def masked():
    """Interrupts are off from entry to open_file, in walk, and at the end."""
    t = Trace()
    t.mask("on", 0)
    t.syscall(10)
    t.mask("off", 0)
    t.call(OPEN, 20)
    t.mask("on", 5)
    t.call(WALK, 10)
    t.mask("off", 2)
    t.mask("on", 4)
    t.back(8)
    t.mask("off", 1)
    t.back(9)
    return t


def test_irqs_off(folder, trace):
    path = masked().write(os.path.join(folder, "masked.dump"))
    got = figures(path, "-n", "0")["interrupts_off"]
    keys = ["begin", "time", "instructions", "off_in", "on_in", "began_before", "goes_on"]
    equal("irqs-off: all stretches, the longest first", [[row[key] for key in keys]
                                                         for row in got["longest"]],
          [[1100, 250, 25, "entry", "open_file", False, False],
           [1490, 80, 8, "open_file", None, False, True],
           [1420, 20, 2, "walk", "walk", False, False]])
    equal("irqs-off: their sums", (got["recorded"], got["count"], got["time"], got["max"]),
          (True, 3, 350, 250))
    equal("irqs-off: a stack", got["longest"][2]["stack"][-3:], ["entry", "open_file", "walk"])
    lines = calls(path, "--irqs-off", "-n", "1").stdout.splitlines()
    equal("irqs-off: the summary", lines[1], "interrupts off: 3 times, 350 ns; longest: 250 ns, "
          "25 instructions, cpu 0, from entry to open_file")
    equal("irqs-off: the table", [line.split() for line in lines[4:]],
          [["250", "ns", "25", "0.000001100", "0", "editor", "entry", "open_file"],
           [lines[5].strip()]])
    check("irqs-off: the stack in the table", lines[5].strip().endswith("entry"), lines)
    parts = [figures(path, "-n", "0", "--time", span)["interrupts_off"]["longest"]
             for span in [",0.000001200", "0.000001200,"]]
    equal("irqs-off: parts", [[(row["off_in"], row["time"], row["began_before"], row["goes_on"])
                               for row in part] for part in parts],
          [[("entry", 100, False, True)],
           [("entry", 150, True, False), ("open_file", 80, False, True), ("walk", 20, False, False)]])
    equal("irqs-off: on another cpu", figures(path, "--cpu", "1")["interrupts_off"]["longest"], [])
    exits("irqs-off: a trace that does not have it", calls(trace, "--irqs-off"), 0,
          "the input does not record when interrupts are off: use kscope record qemu --trace of this version")
    equal("irqs-off: such a trace in JSON", figures(trace)["interrupts_off"]["recorded"], False)
    t = masked()
    t.lines = [line for line in t.lines if " off " not in line]
    check("irqs-off: never", "interrupts were never off" in
          calls(t.write(os.path.join(folder, "never.dump")), "--irqs-off").stdout)


def test_hostile_masks(folder):
    """Masks without a trace, backwards in time, and with wrong numbers of instructions."""
    t = masked()
    huge = 2 ** 64 - 1
    extra = [f"mask time=0.{1150:09} cpu={cpu} off instructions={huge} kernel" for cpu in (0, 7, 4095)]
    extra += [f"mask cpu=0 {state} instructions={count} user" for state in ("unknown", "on", "off")
              for count in (0, huge)]
    t.lines[4:4] = extra
    t.lines += extra
    path = t.write(os.path.join(folder, "hostile.dump"))
    for options in [["--irqs-off"], ["--json"], ["--irqs-off", "--instructions", "--histogram"]]:
        exits(f"irqs-off: hostile masks, {options[-1]}", calls(path, *options), 0)
    for end in ["pftrace", "fxt", "dump"]:
        exits(f"irqs-off: hostile masks to .{end}",
              kscope("convert", path, "-o", os.path.join(folder, f"written.{end}")), 0)
    rows = figures(path, "-n", "0")["interrupts_off"]["longest"]
    check("irqs-off: hostile masks have no huge sums",
          rows and all(row["instructions"] < 2 ** 40 and row["time"] < 10 ** 6 for row in rows), rows)


def test_wrong(folder, trace):
    exits("--between needs two values", kscope("calls", trace, "--between", "walk"), 2,
          "--between expects two values")
    exits("--between only once", kscope("calls", trace, *(2 * ["--between", "walk", "tick"])), 2,
          "--between cannot be given more than once")
    exits("a function that was not called", calls(trace, "--function", "wlak"), 0,
          "function 'wlak' was not called in the selection")
    exits("a pair that was not called", calls(trace, "--between", "walk", "tcik"), 0,
          "function 'tcik' was not called in the selection")
    other = os.path.join(folder, "other.folded")
    with open(other, "w", encoding="ascii") as f:
        f.write("a;b 1\n")
    exits("samples", kscope("calls", other), 3, "samples do not tell how often functions were called")
    other = os.path.join(folder, "other.dump")
    with open(other, "w", encoding="ascii") as f:
        f.write("kscope-dump 1\n")
    equal("data without calls", kscope("calls", other).stdout, "no calls\n")


def main():
    with scratch() as folder:
        with open(os.path.join(folder, "System.map"), "w", encoding="ascii") as f:
            f.write(SYMBOLS)
        trace = open_files().write(os.path.join(folder, "trace.dump"))
        test_text(trace)
        test_sort(trace)
        test_json(trace)
        test_parts(trace)
        test_many(folder)
        test_deep(folder)
        test_waiting(folder)
        test_ended(folder)
        test_irqs_off(folder, trace)
        test_hostile_masks(folder)
        test_wrong(folder, trace)
    finish()


if __name__ == "__main__":
    main()
