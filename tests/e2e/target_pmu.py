#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The demo's kernel samples by the counters of its processor, and by the timer at the same time.

Under -icount, QEMU's counters count each instruction, and every run is the same. A counter of a cpu counts the
instructions of all cpus there: they take turns.
"""
import os
import re
import sys
from collections import Counter

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import check, equal, exits, finish, guests, kscope, scratch, skip, target
import target as sampler  # tests/e2e/target.py

TIMER, CYCLES, INSTRUCTIONS = "cpu-clock", "cycles", "instructions"
# Under QEMU, it does 10^9 instructions and cycles a second.
HERTZ = 10**9


def events_of(path):
    """{event: (samples, sum of their weights)}"""
    found = {}
    for line in kscope("info", path).stdout.splitlines():
        words = line.split()
        if words and words[0] == "event":
            found[words[1]] = (int(words[2]), int(words[4]))
    return found


def seconds_of(path):
    """From the first sample to the last."""
    first, last = re.search(r"^time +(\S+) to (\S+) s", kscope("info", path).stdout, re.M).groups()
    return float(last) - float(first)


def shares_are_known(name, path, guest, serial, event, least):
    """Per task, function and cpu, by one event. With several cpus, only inside each task: a counter counts what all
    cpus execute, so what a task gets depends on what the others do meanwhile. The timer's samples do not."""
    wrong, samples = [], 0
    plan = sampler.plan_of(serial)
    for cpu, units in plan.items():
        stacks = sampler.interrupted(sampler.folded(path, guest, "--event", event, "--cpu", cpu))
        samples += sum(stacks.values())
        parts = [units] if len(plan) == 1 or event == TIMER else [Counter({task: 1}) for task in units]
        for part in parts:
            wrong += [f"cpu {cpu}: {text}" for text in sampler.off_by(stacks, part, 3.5)]
    check(f"{name}: shares by {event}", plan and samples >= least and not wrong, f"{samples} samples: {wrong}")


def boot(folder, machine, which, words, cpus):
    path = os.path.join(folder, f"{machine}.kscope")
    done = target.boot_to_file(machine, path, f"profile=2 {sampler.WORDS} {words}", which, guests.ICOUNT, cpus)
    return path, done


def test_shares(folder, machine, which, periods, cpus=1):
    """Events and the timer at the same time. Returns where the recording is."""
    name = f"{machine}, {which}, {cpus} cpus, {' and '.join(periods)}"
    words = " ".join(f"{event}={period}" for event, period in periods.items())
    path, done = boot(folder, machine, which, f"{words} period=499 jitter=20", cpus)
    guest = target.guest_of(machine, "")
    sampler.counts_agree(name, done.serial, path)
    events = events_of(path)
    equal(f"{name}: events", set(events), {TIMER, *periods})
    for event in {TIMER, *periods} & set(events):
        shares_are_known(name, path, guest, done.serial, event, 500 * cpus)
    return path


def test_periods(folder, machine, which, periods, counted):
    """counted: the part of all events that is counted at least. The rest is in interrupts."""
    name = f"{machine}, {which}, {' and '.join(periods)}"
    path = test_shares(folder, machine, which, periods)
    events, happened = events_of(path), seconds_of(path) * HERTZ
    for event, period in periods.items():
        samples, total = events.get(event, (0, 0))
        check(f"{name}: the periods of {event}", total and abs(total - samples * period) < 0.01 * total,
              f"{samples} samples, {total}")
        check(f"{name}: {event} are counted", counted * happened <= total <= happened + period,
              f"{total} of {happened}")


def test_frequency(folder, machine, which, event, hertz):
    name = f"{machine}, {which}, {hertz} Hz of {event}"
    path, done = boot(folder, machine, which, f"{event}_hz={hertz} period=1000000", 1)
    sampler.counts_agree(name, done.serial, path)
    samples, _ = events_of(path).get(event, (0, 0))
    reached = samples / seconds_of(path)
    check(f"{name}: is reached", 0.8 * hertz <= reached <= 1.2 * hertz, f"{reached}")


def test_names(folder):
    """The architecture's events and raw ones, by commands of the host."""
    name = "aarch64, names"
    done = target.record("aarch64", folder, "names.kscope", f"profile=1 {sampler.WORDS}",
                         "event ?\\nevent l1d_cache period 1000\\nevent r08 period 4294967296\\n"
                         "event inst_retired period 500009\\nevent r11 freq 500\\nevent cycles period 400009\\nstart\\n")
    with open(done.out, "rb") as f:
        answers = f.read(500).partition(b"\n\n")[0].decode().splitlines()
    equal(f"{name}: answers", answers[:3], [
        "error: no such event; this machine has, by name or by number: cycles cpu-cycles instructions sw_incr "
        "inst_retired cpu_cycles rXX",
        "error: no counter that counts this event is free",
        "error: the period must be from 1 to 4294967295"])
    kernel = sampler.counts_agree(name, done.boot.serial, done.out)
    exits(f"{name}: kscope", done.recorder, 0, f"kscope: {sum(sent for _, sent, _, _ in kernel.values())} samples",
          ", 0 lost, ")
    events = events_of(done.out)
    equal(f"{name}: events", set(events), {TIMER, CYCLES, "inst_retired", "r11"})
    check(f"{name}: all have samples", all(samples > 100 for samples, _ in events.values()), events)


def main():
    both = {CYCLES: 100003, INSTRUCTIONS: 90007}
    if guests.missing():
        skip("target_pmu", guests.missing())
        finish()
    with scratch() as folder:
        for which in guests.QEMUS:
            test_periods(folder, "aarch64", which, both, 0.95)
        test_shares(folder, "aarch64", "debian", both, 4)
        test_frequency(folder, "aarch64", "debian", CYCLES, 10000)
        test_frequency(folder, "aarch64", "debian", INSTRUCTIONS, 700)
        test_names(folder)
        # At each overflow of a counter, QEMU 7.2 says that both have overflowed.
        for event, period in both.items():
            test_periods(folder, "riscv64", "debian", {event: period}, 0.9)
        # QEMU 10 does not count in the firmware, which sets the counters.
        test_periods(folder, "riscv64", "backports", both, 0.8)
        test_frequency(folder, "riscv64", "backports", CYCLES, 10000)
    finish()


if __name__ == "__main__":
    main()
