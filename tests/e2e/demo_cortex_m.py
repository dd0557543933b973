#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The demo's kernel on a Cortex-M: its work, kscope's recording of it, and what a profiler in it needs.

There is no MMU: everything is in one address space. Debian's QEMU shows plugins neither who is privileged
nor the stack pointer of threads, so all code counts as the kernel's, and stacks of handlers begin there.
"""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import demo_kernel
from kit import board, check, equal, finish, guests, scratch, skip, wait_for

SCALE = 5
ROUNDS = 32000  # of a unit
# {stack without its process: its units}
KNOWN = {stack.partition(";")[2]: units for stack, units in demo_kernel.STACKS.items()}
TICK_NS = 10_000_000
IDLE = "boot_entry;kernel_main;idle;idle_wait;cpu_idle"


def guest_with(words, frames="fp"):
    return guests.demo("cortex_m", frames, words=words)


def folded(path, *options):
    return demo_kernel.folded(path, "--samples", "--root", "none", *options)


def number(pattern, text):
    found = re.search(pattern, text, re.M)
    return int(found[1]) if found else 0


def test_work():
    """It finishes, and prints what it did."""
    done = guests.boot(guest_with(f"scale={SCALE}"), more=guests.ICOUNT)
    check("powers off", done.code == 0 and "demo: end" in done.serial, f"{done.code} {done.errors} {done.serial}")
    want = {}
    for stack, units in KNOWN.items():
        function = demo_kernel.leaf(stack)
        want[function] = want.get(function, 0) + units * SCALE * ROUNDS
    equal("prints the truth", {function: rounds for function, (_, rounds) in guests.truth(done.serial).items()
                               if rounds}, want)


def test_shares(folder, frames, which):
    name = f"{frames}, {which}"
    out = os.path.join(folder, "shares.kscope")
    guest = guest_with(f"scale={SCALE}", frames)
    demo_kernel.ended(f"{name}: runs", guests.record(guest, out, demo_kernel.BY_INSTRUCTIONS, which, guests.ICOUNT))
    stacks = folded(out)
    demo_kernel.shares_are_known(f"{name}: shares by instructions", stacks, 3.5, 2000, KNOWN)
    demo_kernel.stacks_are_whole(f"{name}: by instructions", stacks, KNOWN)
    equal(f"{name}: there is one process", sorted({stack.partition(";")[0] for stack in demo_kernel.folded(out)}),
          ["kernel"])
    if frames == "fp":
        own = demo_kernel.own
        equal(f"{name}: frame pointers and CFI agree", own(folded(out, "--unwind", "fp")),
              own(folded(out, "--unwind", "cfi")))


def test_traps(folder, frames):
    """From the tick to the work that it interrupted, in a QEMU that shows the stack of threads."""
    out = os.path.join(folder, "traps.kscope")
    guests.record(guest_with("scale=2", frames), out,
                  ["--clock", "instructions", "--period", "5", "--start-at", "tick", "--stop-at", "use_space"],
                  "backports", guests.ICOUNT)
    good, bad = 0, {}
    for stack, count in folded(out).items():
        before, found, _ = stack.partition(";trap_entry;trap;tick")
        if found and (before in KNOWN or before == IDLE):
            good += count
        elif found:
            bad[stack] = count
    check(f"{frames}: stacks go through traps", good > 50 and sum(bad.values()) <= good / 20,
          f"{good} good, bad: {bad}")


def test_line():
    """Bytes that come from the line go back to it, each of them."""
    data = bytes(range(256)) * 4
    with board.Server([data]) as line:
        done = guests.boot(guest_with(f"scale=1 line={len(data)}"),
                           more=[*guests.ICOUNT, "-serial", f"tcp:{line.address}"])
        arrived = f"line: {len(data)}\n" in done.serial
        wait_for(lambda: len(b"".join(line.packets)) >= len(data) or not arrived)
    check("the line: all bytes arrive", arrived, done.errors + done.serial[-200:])
    equal("the line: they come back", b"".join(line.packets), data)


def test_sample_timer():
    """It is set again in each of its interrupts, which takes less than a hundredth of the time."""
    in_user = sum(units for stack, units in KNOWN.items() if stack.startswith("_start")) / demo_kernel.UNITS
    for period in [1_000_000, 170_000]:
        done = guests.boot(guest_with(f"scale={SCALE} sample={period}"), more=guests.ICOUNT)
        samples = number(r"^samples: 0 (\d+)", done.serial)
        ticks = number(r"^ticks: 0 (\d+)", done.serial)
        most, least = (ticks + 1) * TICK_NS / period, ticks * TICK_NS / period * 0.99
        check(f"the timer of samples, every {period} ns", ticks > 50 and least <= samples <= most,
              f"{samples} in {ticks} ticks: {least} to {most}")
        users = number(r"^samples: .* (\d+) in user code", done.serial)
        sigma = (samples * in_user * (1 - in_user)) ** 0.5
        check(f"samples of user code, every {period} ns", samples and abs(users - samples * in_user) < 3.5 * sigma,
              f"{users} of {samples}")


def main():
    if guests.missing():
        skip("demo_cortex_m", guests.missing())
        finish()
    test_work()
    test_line()
    test_sample_timer()
    with scratch() as folder:
        for frames in ["fp", "nofp"]:
            for which in guests.QEMUS:
                test_shares(folder, frames, which)
            test_traps(folder, frames)
    finish()


if __name__ == "__main__":
    main()
