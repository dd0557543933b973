#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Records the demo's kernel, whose work is known, and compares the recording with that work.

Shares are compared with the number of samples that each function gets at random: by instructions,
with -icount, they are the same in every run, so the bound is narrow; by host time it is wide.
"""
import collections
import math
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import check, equal, finish, guests, kscope, read_folded, run, scratch, skip, wire_trace
from kit.wire_read import Stream

TASK = "kernel;task_start;task_run"
TREE = ";".join(["checksum_tree"] * 4)
# {stack that does work: its share of the 350 units}
STACKS = {
    f"{TASK};compress_file;compress_block;find_match": 60,
    f"{TASK};compress_file;compress_block;encode_bits": 20,
    f"{TASK};checksum_disk;{TREE};checksum_page": 80,
    f"{TASK};route_packets;route_ipv4;lookup_prefix": 70 * 3 / 4,
    f"{TASK};route_packets;route_ipv6;lookup_prefix": 70 / 4,
    f"{TASK};cache_warm;cache_insert;fill_entry": 10,
    "dice.elf;_start;user_main;play_game;throw_dice": 60,
    "knit.elf;_start;user_main;knit_sock;knit_row;knit_stitch": 50,
}
UNITS = sum(STACKS.values())
BY_INSTRUCTIONS = ["--clock", "instructions", "--period", "100000"]


def folded(path, *options):
    """The stacks, by the number of samples unless the options change that."""
    done = kscope("convert", path, "-t", "folded", "-o", "-", *(options or ["--samples"]))
    return read_folded(done.stdout) if done.stdout else {}


def own(stacks):
    """The stacks without those of the firmware, which has neither frame pointers nor CFI, and without those of
    traps: frame pointers do not lead to user code, nor to the caller of a leaf that was interrupted."""
    return {stack: n for stack, n in stacks.items() if "]+0x" not in stack and ";trap_entry" not in stack}


def leaf(stack):
    return stack.rpartition(";")[2]


def shares_are_known(name, stacks, sigmas, least, known=STACKS):
    """Checks that each stack has its share of the samples, within `sigmas` standard deviations."""
    got = {stack: sum(n for s, n in stacks.items() if s == stack) for stack in known}
    busy = sum(got.values())
    wrong = []
    for stack, units in known.items():
        share = units / UNITS
        off = (got[stack] - busy * share) / math.sqrt(max(busy, 1) * share * (1 - share))
        if abs(off) > sigmas:
            wrong.append(f"{leaf(stack)}: {got[stack]:.0f} of {busy:.0f}, {off:+.1f} sigma")
    check(name, busy >= least and not wrong, f"{busy:.0f} samples; {wrong}")


def stacks_are_whole(name, stacks, known=STACKS):
    """Checks that the functions that work are only seen with their complete stacks."""
    leaves = {leaf(stack) for stack in known}
    mine = {stack: n for stack, n in stacks.items() if leaf(stack) in leaves}
    cut = {stack: n for stack, n in mine.items() if stack not in known}
    check(f"{name}, stacks", sum(cut.values()) <= sum(mine.values()) / 1000, cut)


def ended(name, boot, lost=", 0 lost,"):
    return check(name, boot.code == 0 and "demo: end" in boot.serial and lost in boot.errors,
                 f"{boot.code} {boot.errors} {boot.serial[-200:]}")


def test_shares(folder, machine):
    out = os.path.join(folder, f"{machine}.kscope")
    first = None
    for frames, which in [("fp", "debian"), ("nofp", "debian"), ("nofp", "backports")]:
        name = f"{machine}, {frames}, {which}"
        guest = guests.demo(machine, frames, words="scale=5")
        ended(f"{name}: runs", guests.record(guest, out, BY_INSTRUCTIONS, which, guests.ICOUNT))
        stacks = folded(out)
        shares_are_known(f"{name}: shares by instructions", stacks, 3.5, 2000)
        stacks_are_whole(f"{name}: by instructions", stacks)
        if frames == "fp":
            first = stacks
            equal(f"{name}: frame pointers and CFI agree", own(folded(out, "--samples", "--unwind", "fp")),
                  own(folded(out, "--samples", "--unwind", "cfi")))
    guests.record(guests.demo(machine, "fp", words="scale=5"), out, BY_INSTRUCTIONS, "debian",
                  guests.ICOUNT)
    equal(f"{machine}: the same again", folded(out), first)


def test_host_time(folder, machine, which):
    out = os.path.join(folder, f"{machine}-host.kscope")
    # With --clock host, QEMU does not wait for a slow disk.
    ended(f"{machine}, {which}: runs by host time",
          guests.record(guests.demo(machine, "nofp", words="scale=60"), out, ["-F", "2000"], which),
          " lost,")
    chance = Stream(out).chance()
    stacks = {stack: weight * chance for stack, weight in folded(out, "--weight").items()}
    shares_are_known(f"{machine}, {which}: shares by host time", stacks, 7, 1)
    stacks_are_whole(f"{machine}, {which}: by host time", folded(out))


def test_traps(folder, machine):
    """From the timer's interrupt to the switch of tasks, stacks continue through the trap."""
    out = os.path.join(folder, f"{machine}-traps.kscope")
    handler = {"x86_64": ";trap_entry;trap;timer_interrupt;timer_fired;tick",
               "aarch64": ";trap_entry;trap;interrupt;tick",
               "riscv64": ";trap_entry;trap;interrupt;timer_fired;tick"}[machine]
    for frames in ["fp", "nofp"]:
        # On one cpu, every interrupt switches to another task.
        guests.record(guests.demo(machine, frames, words="scale=5", cpus=1), out,
                      ["--clock", "instructions", "--period", "5", "--start-at", "tick",
                       "--stop-at", "use_space"], "debian", guests.ICOUNT)
        good, bad = 0, {}
        for stack, count in folded(out).items():
            before, found, _ = stack.partition(handler)
            if not found:
                continue
            # A user program has only the interrupted frame.
            if before in STACKS or before.count(";") == 1:
                good += count
            else:
                bad[stack] = count
        check(f"{machine}, {frames}: stacks go through traps",
              good > 50 and sum(bad.values()) <= good / 20, f"{good} good, bad: {bad}")


def disassemble(path, function):
    """[(address, the target if it is a jump, or None)], up to the last return."""
    text = run("llvm-objdump", "-d", "--no-show-raw-insn", f"--disassemble-symbols={function}",
               path).stdout
    code, end = [], 0
    for address, name, operands in re.findall(r"^ *([0-9a-f]+):[ \t]+(\S+)[ \t]*(.*)$", text, re.M):
        jump = re.match(r"j|b\.|b(eq|ne|lt|ge)", name) and re.search(r"(?:^|, )0x([0-9a-f]+)", operands)
        code.append((int(address, 16), int(jump[1], 16) if jump else None))
        end = len(code) if name.startswith("ret") else end
    return code[:end]


def instructions(path, function, calls, rounds):
    """The instructions that `calls` of a function execute, with `rounds` of its loop in all."""
    code = disassemble(path, function)
    loops = [(target, address) for address, target in code if target is not None]
    if not loops:
        return len(code) * calls
    (first, last), = loops
    loop = sum(first <= address <= last for address, _ in code)
    return (len(code) - loop) * calls + loop * rounds


# {function with a loop over calls: rounds of the loop in one call}
CALL_LOOPS = {"compress_file": 8, "route_packets": 16, "cache_warm": 32}
# Functions whose instructions depend on more than calls and loops.
BRANCHY = {"checksum_tree", "cache_insert", "kmalloc", "kfree"}
# Most of a short trace would be the firmware's way to the kernel.
WITHOUT_FIRMWARE = {"riscv64": ["--start-at", "kernel_main"]}
USER = {"play_game", "throw_dice", "knit_sock", "knit_row", "knit_stitch"}


def test_trace(folder, machine, frames, which, more=()):
    """Each function executed exactly the instructions of its calls and loops."""
    name = f"{machine}, {frames}, {which}{', icount' if more else ''}"
    out = os.path.join(folder, f"{machine}-trace.kscope")
    guest = guests.demo(machine, frames, words="scale=1")
    boot = guests.record(guest, out, ["--trace", *WITHOUT_FIRMWARE.get(machine, [])], which, more)
    counted = collections.Counter()
    for stack, weight in folded(out, "--weight").items():
        counted[leaf(stack)] += weight
    want = {}
    for function, (calls, rounds) in guests.truth(boot.serial).items():
        if function in BRANCHY or function in USER:
            continue
        rounds = rounds or CALL_LOOPS.get(function, 0) * calls
        want[function] = instructions(guest.kernel, function, calls, rounds)
    check(f"{name}: what is traced is known", len(want) == 12, boot.serial[-300:])
    equal(f"{name}: instructions of every function", {f: counted[f] for f in want}, want)


def test_parts(folder, machine):
    """Selections that partition a trace add up to the whole trace, stack by stack."""
    path = os.path.join(folder, f"{machine}-trace.kscope")
    parts = {
        "time": wire_trace.time_parts(path, 3),
        "cpu": [["--cpu", "0"], ["--cpu", "1-2"], ["--cpu", "3"]],
        "pid": [["--pid", "1"], ["--pid", "2-99"]],
        "level": [["--level", "user"], ["--level", "kernel"]],
    }
    whole = collections.Counter(folded(path, "--weight", "--root", "pid"))
    for what, selections in parts.items():
        results = [collections.Counter(folded(path, "--weight", "--root", "pid", *selection))
                   for selection in selections]
        check(f"{machine}: several parts by {what}", sum(map(bool, results)) > 1,
              [len(r) for r in results])
        check(f"{machine}: the parts by {what} add up", sum(results, collections.Counter()) == whole,
              f"{[sum(r.values()) for r in results]} of {sum(whole.values())}")


def test_allocations(folder, machine, which):
    name = f"{machine}, {which}"
    out = os.path.join(folder, f"{machine}-alloc.kscope")
    boot = guests.record(guests.demo(machine, "nofp", words="scale=2"), out,
                         ["--alloc", "kmalloc", "--free", "kfree", "--stack", "512"], which)
    known = guests.truth(boot.serial)
    taken, given = known["kmalloc"][0], known["kfree"][0]
    report = kscope("alloc", out).stdout
    check(f"{name}: every call of the allocator",
          f"{taken} allocated, 0 resized, {given} freed" in report, report)
    left = re.search(r"(\d+) +(\d+)  (cache_insert <- .*)", report)
    equal(f"{name}: what is forgotten, and by whom", left.groups() if left else report,
          (str(64 * (taken - given)), str(taken - given),
           "cache_insert <- cache_warm <- task_run <- task_start"))


def main():
    if guests.missing():
        skip("demo_kernel", guests.missing())
        finish()
    with scratch() as folder:
        for machine in ["x86_64", "aarch64", "riscv64"]:
            test_shares(folder, machine)
            test_traps(folder, machine)
            test_trace(folder, machine, "fp", "debian", guests.ICOUNT)
            test_parts(folder, machine)
            for which in guests.QEMUS:
                test_host_time(folder, machine, which)
                test_trace(folder, machine, "nofp", which)
                test_allocations(folder, machine, which)
    finish()


if __name__ == "__main__":
    main()
