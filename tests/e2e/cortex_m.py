#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Cortex-M in two QEMUs: each exception of tests/guest/cortex_m.c in the trace, and samples."""
import os
import re
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import (BUILD, ROOT, check, equal, finish, guests, kscope, run, scratch, skip, wire_read,
                 wire_trace)

PLUGIN = os.path.join(BUILD, "kscope-qemu.so")
GUEST = os.path.join(ROOT, "tests", "guest", "cortex_m")
FLAGS = ["-O1", "-g", "-ffreestanding", "-fno-pic", "-fno-omit-frame-pointer",
         "-fno-stack-protector", "-nostdlib"]
# Machine: its core, where code and data are.
MACHINES = {
    "lm3s6965evb": (["-mcpu=cortex-m3", "-mfloat-abi=soft"], 0, 0x20000000),
    "mps2-an385": (["-mcpu=cortex-m3", "-mfloat-abi=soft"], 0, 0x20000000),
    "mps2-an386": (["-mcpu=cortex-m4", "-mfloat-abi=hard"], 0, 0x20000000),  # with FPU
    "mps2-an505": (["-mcpu=cortex-m33", "-mfloat-abi=hard"], 0x10000000, 0x38000000),  # v8-M
}
HANDLERS = ["svc", "switch", "tick", "fault", "high", "low"]
FAULT_SIZE = 2  # the handler of faults skips an instruction
THREADS_SIZE = 2 * (256 * 4 + 8)  # of the guest's array `threads`
KERNEL = 1
FROM_THREAD = 0xffffffad  # the value in lr that returns to a thread, without the FPU and v8-M's bit
THUMB = 1 << 24
ICOUNT = ["-icount", "shift=0,sleep=off"]


def build(folder, machine):
    flags, code, ram = MACHINES[machine]
    elf = os.path.join(folder, machine + ".elf")
    made = [run("clang", "--target=thumbv7m-none-eabi", *FLAGS, *flags, "-c", GUEST + ".c", "-o",
                elf + ".o"),
            run("ld.lld", f"--defsym=CODE={code}", f"--defsym=RAM={ram}", "-T", GUEST + ".ld",
                elf + ".o", "-o", elf)]
    check(f"{machine}: the guest is built", not any(one.returncode for one in made),
          made[0].stderr + made[1].stderr)
    return elf


def symbols(elf):
    lines = run("llvm-nm", elf).stdout.splitlines()
    return {line.split()[2]: int(line.split()[0], 16) & ~1 for line in lines}


def record(which, machine, elf, out, options):
    """Returns how often each handler ran: {name: count}."""
    done = run(guests.qemu("qemu-system-arm", which), "-M", machine, "-display", "none", "-serial",
               "none", "-monitor", "none", "-semihosting-config", "enable=on,target=native",
               *ICOUNT, "-kernel", elf, "-plugin", f"{PLUGIN},out={out}{options}")
    return {name: int(count) for name, count in re.findall(r"^(\w+) (\d+)$", done.stderr, re.M)}


def branches(recording):
    """[{kind, user, from, to, next, sp, left...}]"""
    dump = kscope("convert", recording, "-t", "dump", "-o", "-").stdout
    found = []
    for line in dump.splitlines():
        if line.startswith("branch "):
            words = line.split()
            values = {key: int(value, 16) for key, value in
                      (word.split("=") for word in words if "=0x" in word)}
            found.append({"kind": words[4], "user": words[-1] == "user", **values})
    return found


class Contexts:
    """Follows which code each exception interrupted, from the trace alone."""

    def __init__(self, threads, skipped):
        self.interrupted = {}  # {stack pointer: address}
        self.new = set(threads)  # entries of threads that have not run
        self.skipped = skipped  # the handler of faults
        self.wrong = []

    def enter(self, event):
        if event["left"] in self.interrupted and len(self.wrong) < 5:
            self.wrong.append(f"two exceptions at the stack pointer of {event}")
        after = FAULT_SIZE if event["to"] == self.skipped else 0
        self.interrupted[event["left"]] = event["next"] + after

    def leave(self, event):
        address = self.interrupted.pop(event.get("sp"), None)
        if address != event["to"] and event["to"] not in self.new and len(self.wrong) < 5:
            self.wrong.append(f"{event} leads to no interrupted code")
        if address is None:
            self.new.discard(event["to"])


def test_trace(folder, which, machine, elf):
    name = f"{which} {machine}"
    recording = os.path.join(folder, "trace.kscope")
    at = symbols(elf)
    want = record(which, machine, elf, recording, ",mode=trace")
    events = branches(recording)
    enters = [event for event in events if event["kind"] == "enter"]
    leaves = [event for event in events if event["kind"] == "leave"]
    got = {handler: sum(event["to"] == at["on_" + handler] for event in enters)
           for handler in HANDLERS}
    check(f"{name}: every handler ran", len(want) == 6 and all(want.values()), want)
    equal(f"{name}: as many exceptions as the guest counted", got, want)
    equal(f"{name}: every exception returns", (len(enters), len(leaves)),
          (sum(want.values()), sum(want.values())))
    counted, recorded = wire_trace.instructions(wire_trace.decode(recording))
    check(f"{name}: a decoder after wire/README.md counts what the recording tells",
          counted and counted == recorded, f"{counted}, {recorded}")
    # The last branch to `print` is from a thread, and so is everything after it.
    calls = [event for event in events if event["kind"] in ("call", "return")]
    check(f"{name}: calls and returns pair up",
          abs(sum(1 if event["kind"] == "call" else -1 for event in calls)) < 10, len(calls))
    return enters, leaves, events, at


def test_contexts(name, enters, events, at):
    """Each return from an exception has the stack pointer and the address of interrupted code."""
    known = [event for event in enters if event.get("left") and event.get("next")]
    equal(f"{name}: the interrupted code and its stack are known", len(known), len(enters))
    contexts = Contexts([at["first_thread"], at["second_thread"]], at["on_fault"])
    for event in events if len(known) == len(enters) else []:
        if event["kind"] == "enter":
            contexts.enter(event)
        elif event["kind"] == "leave":
            contexts.leave(event)
    equal(f"{name}: exceptions return to what they interrupted", contexts.wrong, [])
    check(f"{name}: both threads began", not contexts.new, contexts.new)
    # The last interrupted code is the loop in reset(): no exception returns to it.
    check(f"{name}: nothing else is left interrupted", len(contexts.interrupted) <= 2,
          contexts.interrupted)


def test_levels(name, events, at):
    user = {event["to"] for event in events if event["user"]}
    check(f"{name}: only the second thread and what it calls is unprivileged",
          user and all(at["second_thread"] <= to or to < at["ask"] + 64 for to in user) and
          not any(to == at["on_" + handler] for handler in HANDLERS for to in user), user)


def test_samples(folder, which, machine, elf):
    """Registers, level and stacks. In a handler, the stack of the threads is `outer`."""
    name = f"{which} {machine}"
    recording = os.path.join(folder, "samples.kscope")
    record(which, machine, elf, recording, ",clock=instructions,period=20")
    samples, at = wire_read.Stream(recording).samples, symbols(elf)
    stacks = range(at["threads"], at["threads"] + THREADS_SIZE)
    in_handlers = [sample for sample in samples if sample.registers[13] not in stacks and
                   not at["reset"] <= sample.pc < at["on_hard_fault"]]
    check(f"{name}: samples have registers, a stack, and one address space",
          samples and all(len(sample.registers) == 16 and sample.stack and sample.has_space and
                          not sample.space for sample in samples), len(samples))
    check(f"{name}: handlers are the kernel", in_handlers and
          all(sample.level == KERNEL for sample in in_handlers), len(in_handlers))
    users = [sample for sample in samples if sample.level != KERNEL]
    if which == "debian":  # 7.2 shows plugins neither CONTROL nor the threads' stack pointer
        equal(f"{name}: everything counts as privileged", len(users), 0)
        return
    check(f"{name}: the second thread is not", users and
          all(sample.registers[13] in stacks[THREADS_SIZE // 2:] for sample in users), len(users))
    outer = [dict(wire_read.fields(sample.data)) for sample in in_handlers
             if sample.registers[14] & ~0x50 == FROM_THREAD]
    frames = [struct.unpack_from("<8I", one.get(13, b"").ljust(32, b"\0")) for one in outer]
    check(f"{name}: in a handler, the interrupted stack begins with the interrupted code",
          frames and all(one.get(12) in stacks for one in outer) and
          all(at["reset"] <= frame[6] < at["end_of_code"] and frame[7] & THUMB
              for frame in frames), outer[:1])


def main():
    if guests.missing():
        skip("cortex_m", guests.missing())
        finish()
    with scratch() as folder:
        for machine in MACHINES:
            elf = build(folder, machine)
            for which in guests.QEMUS:
                test_samples(folder, which, machine, elf)
                enters, _, events, at = test_trace(folder, which, machine, elf)
                test_contexts(f"{which} {machine}", enters, events, at)
                if which != "debian":  # 7.2 does not show CONTROL to plugins
                    test_levels(f"{which} {machine}", events, at)
    finish()


if __name__ == "__main__":
    main()
