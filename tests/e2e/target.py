#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The sampler of target/ inside the demo's kernel, whose work is known, on four machines.

Where shares are compared, the kernel starts by itself and writes to a file, under -icount: every run is the same, so
that no result depends on chance. The other runs are controlled by kscope, over TCP and over a serial line.
"""
import collections
import math
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import ROOT, check, equal, exits, finish, guests, kscope, read_folded, scratch, skip, target
from kit.wire_read import Stream

MACHINES = ["x86_64", "aarch64", "riscv64", "cortex_m"]
RUN = "task_start;task_run"
TREE = ";".join(["checksum_tree"] * 4)
# {task: {stack that does work: its share of the task's}}
WORK = {
    "compress": {f"{RUN};compress_file;compress_block;find_match": 3 / 4,
                 f"{RUN};compress_file;compress_block;encode_bits": 1 / 4},
    "checksum": {f"{RUN};checksum_disk;{TREE};checksum_page": 1},
    "route": {f"{RUN};route_packets;route_ipv4;lookup_prefix": 3 / 4,
              f"{RUN};route_packets;route_ipv6;lookup_prefix": 1 / 4},
    "cache": {f"{RUN};cache_warm;cache_insert;fill_entry": 1},
    "dice": {"_start;user_main;play_game;throw_dice": 1},
    "knit": {"_start;user_main;knit_sock;knit_row;knit_stitch": 1},
}
STACKS = {f"{task};{stack}": share for task, stacks in WORK.items() for stack, share in stacks.items()}
LEAVES = {stack.rpartition(";")[2] for stack in STACKS}
# Idle cpus do not wait, so that all cpus have the same share of QEMU's time at all times.
WORDS = "scale=5 spin=1"


def folded(path, guest, *options):
    done = kscope("convert", path, "-t", "folded", "-o", "-", "--samples", *target.binaries(guest), *options)
    return read_folded(done.stdout) if done.stdout else {}


def plan_of(serial):
    """{cpu: {task: units}}"""
    plan = collections.defaultdict(collections.Counter)
    for cpu, task, units in re.findall(r"^plan: (\d+) (\S+) (\d+)$", serial, re.M):
        plan[int(cpu)][task] += int(units)
    return plan


def interrupted(stacks):
    """The stacks without what the tick did in them: it interrupts the work evenly."""
    merged = collections.Counter()
    for stack, n in stacks.items():
        merged[stack.partition(";trap_entry;")[0]] += n
    return merged


def off_by(stacks, units, sigmas):
    """What does not have its share of the samples of a cpu, by so many standard deviations."""
    want = {stack: units[stack.partition(";")[0]] / sum(units.values()) * share
            for stack, share in STACKS.items() if units[stack.partition(";")[0]]}
    busy = sum(stacks[stack] for stack in want)
    for stack, share in want.items():
        off = (stacks[stack] - busy * share) / math.sqrt(max(busy, 1) * share * (1 - share) or 1)
        if abs(off) > sigmas:
            yield f"{stack}: {stacks[stack]} of {busy}, {off:+.1f} sigma"


def shares_are_known(name, path, guest, serial, sigmas, least):
    """Per task, function and cpu."""
    wrong, samples = [], 0
    plan = plan_of(serial)
    for cpu, units in plan.items():
        stacks = interrupted(folded(path, guest, "--cpu", cpu))
        samples += sum(stacks.values())
        wrong += [f"cpu {cpu}: {text}" for text in off_by(stacks, units, sigmas)]
    check(f"{name}: shares", plan and samples >= least and not wrong, f"{samples} samples: {wrong}")


def stacks_are_whole(name, stacks):
    """The functions that work are seen only with all their callers, also those without a frame."""
    mine = {stack: n for stack, n in stacks.items() if stack.rpartition(";")[2] in LEAVES}
    cut = {stack: n for stack, n in mine.items() if stack not in STACKS}
    check(f"{name}: stacks are whole", mine and sum(cut.values()) <= sum(mine.values()) / 1000, cut)


def goes_through_ticks(name, stacks):
    """A sample of the tick has the stack of the tick, and below it the stack that the tick interrupted."""
    good, bad = collections.Counter(), {}
    for stack, n in stacks.items():
        before, found, inside = stack.partition(";trap_entry;")
        if not found:
            continue
        if before in STACKS and "tick;profile_tick;slow_tick" in inside:
            good["user" if before.startswith(("dice", "knit")) else "kernel"] += n
        elif before.rpartition(";")[2] in LEAVES:
            bad[stack] = n
    check(f"{name}: stacks go through interrupts",
          good["user"] > 5 and good["kernel"] > 5 and sum(bad.values()) <= sum(good.values()) / 20,
          f"{good}, bad: {bad}")


def counts_agree(name, done_or_serial, path, info=""):
    """taken = sent + dropped for the kernel, for the stream, and for kscope."""
    stream = Stream(path)
    kernel = target.counts(done_or_serial)
    check(f"{name}: the kernel's counts", kernel and all(
        taken == sent + dropped for taken, sent, dropped, _ in kernel.values()), kernel)
    equal(f"{name}: the stream has what the kernel sent and dropped", stream.counted(),
          {cpu: (sent, dropped) for cpu, (_, sent, dropped, _) in kernel.items()})
    return kernel


def kscope_counted(name, done, kernel):
    sent, dropped = (sum(count[i] for count in kernel.values()) for i in (1, 2))
    exits(f"{name}: kscope", done.recorder, 0, f"kscope: {sent} samples", f", {dropped} lost, ")


def test_alone(folder, machine):
    """Every run is the same, the shares are the known ones, stacks are whole."""
    guest = target.guest_of(machine, "")
    paths = [os.path.join(folder, f"{machine}-{i}.kscope") for i in range(2)]
    words = f"profile=2 {WORDS} period=97 jitter=20 slow=3000 alloc=1"
    for path in paths:
        boot = target.boot_to_file(machine, path, words, more=guests.ICOUNT)
    with open(paths[0], "rb") as first, open(paths[1], "rb") as second:
        check(f"{machine}: two runs are the same, byte by byte", first.read() == second.read())
    counts_agree(f"{machine}, alone", boot.serial, paths[0])
    shares_are_known(f"{machine}, alone", paths[0], guest, boot.serial, 3.5, 5000)
    stacks = folded(paths[0], guest, "--event", "cpu-clock")
    stacks_are_whole(f"{machine}, alone", stacks)
    goes_through_ticks(f"{machine}, alone", stacks)


def test_allocations(folder, machine):
    path = os.path.join(folder, f"{machine}-alloc.kscope")
    boot = target.boot_to_file(machine, path, "profile=2 scale=1 period=10000 alloc=1", more=guests.ICOUNT)
    known = guests.truth(boot.serial)
    taken, given = known["kmalloc"][0], known["kfree"][0]
    report = kscope("alloc", path, *target.binaries(target.guest_of(machine, ""))).stdout
    check(f"{machine}: every call of the allocator",
          f"{taken} allocated, 0 resized, {given} freed" in report, report)
    left = re.search(r"(\d+) +(\d+)  (cache_insert <- .*)", report)
    equal(f"{machine}: what is forgotten, and by whom", left.groups() if left else report,
          (str(64 * (taken - given)), str(taken - given),
           "cache_insert <- cache_warm <- task_run <- task_start"))


def test_link(folder, machine, which="debian"):
    """kscope starts it over TCP. The shares are random here."""
    name = f"{machine}, {which}, TCP"
    done = target.record(machine, folder, "tcp.kscope", f"profile=1 {WORDS}",
                         "timer period 211\\njitter 20\\nstart\\n", which=which)
    kernel = counts_agree(name, done.boot.serial, done.out)
    kscope_counted(name, done, kernel)
    shares_are_known(name, done.out, target.guest_of(machine, ""), done.boot.serial, 6, 2000)


def test_serial(folder, machine):
    done = target.record_serial(machine, folder, "serial.kscope", f"profile=1 {WORDS}")
    kernel = counts_agree(f"{machine}, serial", done.boot.serial, done.out)
    kscope_counted(f"{machine}, serial", done, kernel)
    shares_are_known(f"{machine}, serial", done.out, target.guest_of(machine, ""), done.boot.serial, 6, 500)


def test_flood(folder, machine):
    """With the shortest period and small rings, the kernel still does its work, and each sample is counted."""
    done = target.record(machine, folder, "flood.kscope", f"profile=1 scale=1 spin=1",
                         "timer period 1\\nprof_cpubufsz 8\\nstart\\n")
    kernel = counts_agree(f"{machine}, flood", done.boot.serial, done.out)
    taken, sent, dropped = (sum(count[i] for count in kernel.values()) for i in range(3))
    check(f"{machine}, flood: the work is done", done.boot.code == 0 and "demo: end" in done.boot.serial,
          done.boot.serial[-200:])
    check(f"{machine}, flood: there were too many", dropped > 100 and sent > 100, kernel)
    check(f"{machine}, flood: the timer's interrupts were taken",
          all(taken <= fired <= taken + 1 for taken, _, _, fired in kernel.values()), kernel)
    kscope_counted(f"{machine}, flood", done, kernel)
    equal(f"{machine}, flood: all are known", sent + dropped, taken)


def documented():
    """The figures of doc/porting.md: {machine: instructions for a sample with 16 frames}."""
    with open(os.path.join(ROOT, "doc", "porting.md"), encoding="utf-8") as f:
        row = re.search(r"^\| a sample with 16 frames, in the interrupt \|(.*)\|$", f.read(), re.M)
    return dict(zip(["aarch64", "x86_64", "riscv64", "cortex_m"], map(int, row[1].split("|"))))


def test_cost(folder, machine):
    """The instructions of a sample with 16 frames, as kscope traces them in the kernel that takes the sample."""
    words = "profile=2 scale=1 period=100 depth=16 slow=40000 deep=12"
    guest = target.guest_of(machine, words, cpus=1)
    trace, line = (os.path.join(folder, f"{machine}-{name}.kscope") for name in ("cost", "cost-line"))
    guests.record(guest, trace, ["--trace"], "debian",
                  [*guests.ICOUNT, *guests.line(machine, f"file,path={line}")])
    done = kscope("convert", trace, "-t", "folded", "-o", "-", "--weight", "--no-inline", *target.binaries(guest))
    instructions = sum(n for stack, n in read_folded(done.stdout).items()
                       if ";kscope_timer" in stack and "deep_tick;slow_tick" in stack)
    samples = sum(n for stack, n in folded(line, guest, "--no-inline").items() if "deep_tick" in stack)
    cost, told = instructions / max(samples, 1), documented()[machine]
    check(f"{machine}: doc/porting.md is right about the cost", samples > 5 and abs(cost - told) < told / 10,
          f"{cost:.0f} instructions in {samples} samples, the page says {told}")


def main():
    if guests.missing():
        skip("target", guests.missing())
        finish()
    with scratch() as folder:
        for machine in MACHINES:
            test_alone(folder, machine)
            test_allocations(folder, machine)
            test_link(folder, machine)
            test_flood(folder, machine)
            test_cost(folder, machine)
        for machine in ["aarch64", "riscv64"]:
            test_link(folder, machine, "backports")
        for machine in ["x86_64", "cortex_m"]:
            test_serial(folder, machine)
    finish()


if __name__ == "__main__":
    main()
