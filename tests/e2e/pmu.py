#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The drivers of counters and timers, target/pmu_*.c and timer_*.h, in guests without a kernel, in two QEMUs.

Under -icount, an instruction takes a cycle and a nanosecond, and overflows come exactly.
"""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import ROOT, check, equal, finish, guests, run, scratch, skip

SOURCE = os.path.join(ROOT, "tests", "guest")
FLAGS = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O2", "-g", "-ffreestanding", "-fno-pic", "-nostdlib",
         f"-I{ROOT}", f"-I{SOURCE}"]
# Machine: the driver, where the guest is in memory, flags of the compiler.
MACHINES = {
    "aarch64": ("pmu_armv8", 0x40080000,
                ["--target=aarch64-none-elf", "-mgeneral-regs-only", "-mstrict-align"]),
    "riscv64": ("pmu_riscv", 0x80200000,
                ["--target=riscv64-none-elf", "-march=rv64ima", "-mabi=lp64", "-mcmodel=medany", "-mno-relax"]),
}
# The numbers of perf's general events, from linux/perf_event.h
GENERAL = {"cycles": 0, "cpu-cycles": 0, "instructions": 1, "cache-references": 2, "cache-misses": 3,
           "branches": 4, "branch-instructions": 4, "branch-misses": 5, "bus-cycles": 6,
           "stalled-cycles-frontend": 7, "stalled-cycles-backend": 8, "ref-cycles": 9}
# Some of the architecture's
ARMV8 = {"sw_incr": 0x00, "l1i_cache_refill": 0x01, "l1d_cache_refill": 0x03, "l1d_cache": 0x04,
         "inst_retired": 0x08, "exc_taken": 0x09, "br_mis_pred": 0x10, "cpu_cycles": 0x11, "br_pred": 0x12,
         "mem_access": 0x13, "l2d_cache": 0x16, "bus_cycles": 0x1d, "br_retired": 0x21, "stall_backend": 0x24,
         "l3d_cache": 0x2b, "ll_cache_miss_rd": 0x37, "stall_slot": 0x3f}
HARDWARE, RAW = 0, 4
# Instructions from the end of a period to its interrupt's handler, and from the start of a counter to the return of
# the function that starts it, which may be in the firmware.
LATE, EARLY = 100, 200


def build(folder, machine, *defines):
    driver, base, flags = MACHINES[machine]
    elf = os.path.join(folder, "-".join(["pmu", machine, *defines]) + ".elf")
    sources = [os.path.join(SOURCE, f"pmu_{machine}.S"), os.path.join(SOURCE, "pmu.c"),
               os.path.join(ROOT, "target", driver + ".c")]
    objects = [f"{elf}.{i}.o" for i in range(len(sources))]
    made = [run("clang", *flags, *FLAGS, *defines, "-c", source, "-o", out) for source, out in zip(sources, objects)]
    made.append(run("ld.lld", f"--defsym=BASE={base}", "-T", os.path.join(SOURCE, "guest.ld"), *objects, "-o", elf))
    check(f"{os.path.basename(elf)} is built", not any(one.returncode for one in made),
          "".join(one.stderr for one in made))
    return elf


class Result:
    """What the guest printed."""
    def __init__(self, serial):
        self.serial = serial
        self.value = {name: int(n) for name, n in re.findall(r"^([a-z0-9: ]+) (\d+)$", serial, re.M)}
        self.events = {name: tuple(map(int, rest)) for name, *rest in
                       re.findall(r"^event (\S+) (\d+) (\d+) (\d+)$", serial, re.M)}
        self.counts = [(name, *map(int, rest)) for name, *rest in re.findall(
            r"^count (\w+) (\d+) (\d+) (\d+) (\d+) (\d+) (\d+)$", serial, re.M)]

    def of(self, name):
        return [rest for what, *rest in self.counts if what == name]


def boot(name, elf, machine, which, options):
    guest = guests.Guest(name, f"qemu-system-{machine}", elf, [*options, "-kernel", elf])
    done = guests.boot(guest, which, guests.ICOUNT)
    check(f"{name}: runs to its end", done.code == 0 and done.serial.endswith("\n"),
          f"{done.code} {done.errors} {done.serial[-300:]}")
    return Result(done.serial)


def events_are_known(name, result, machine, numbers):
    equal(f"{name}: perf's events", {n: e[:2] for n, e in result.events.items() if e[0] == HARDWARE},
          {n: (HARDWARE, GENERAL[n]) for n in GENERAL if machine != "aarch64" or n != "ref-cycles"})
    if machine == "aarch64":
        equal(f"{name}: the architecture's events", {n: result.events[n][:2] for n in ARMV8 if n in result.events},
              {n: (RAW, number) for n, number in ARMV8.items()})
    equal(f"{name}: which counters take which event", {n: e[2] for n, e in result.events.items() if e[2]}, numbers)


def is_exact(row, overflows, user):
    _, period, nr, in_user, least, most = row
    return nr == overflows and in_user == user and period - EARLY <= least <= most <= period + LATE


def all_exact(name, rows, number, overflows, user=0):
    check(name, len(rows) == number and all(is_exact(row, overflows, user) for row in rows), rows)


def together(name, result, number, least):
    """Each counter has its own pace; what interrupts do is not part of it."""
    took, rows = result.value.get("together", 0), result.of("together")
    check(f"{name}: counters together", took and len(rows) == number and all(
        least * took <= period * nr <= took for _, period, nr, *_ in rows), f"{took}: {rows}")


def tests(name, result, counters, takers, longest):
    """takers: how many counters take cycles, and instructions."""
    equal(f"{name}: counters", result.value.get("counters"), counters)
    all_exact(f"{name}: cycles", result.of("cycles"), takers[0], 20)
    all_exact(f"{name}: instructions", result.of("instructions"), takers[1], 20)
    all_exact(f"{name}: in user mode", result.of("user"), 2, 20, 20)
    equal(f"{name}: how long a period can be",
          [int(n) for n in re.findall(r"^longest (\d+)$", result.serial, re.M)], longest)
    periods = [p for most in longest for p in (0x7fffffff, 0xfffffff0, 0xffffffff, 0x100000001, 10**10) if p <= most]
    rows = result.of("long")
    equal(f"{name}: long periods", [row[1] for row in rows], periods)
    all_exact(f"{name}: long periods end in time", rows, len(periods), 2)
    for what in ["stopped: interrupts", "stopped: running", "stopped late: overflows"]:
        equal(f"{name}: {what}", re.findall(rf"^{what} (\d+)$", result.serial, re.M), ["0", "0"])
    all_exact(f"{name}: what was set again", result.of("again"), 2, 1)
    equal(f"{name}: overflows that came twice", result.value.get("twice"), 0)
    check(f"{name}: the end", result.serial.endswith("end\n"), result.serial[-200:])


def test_aarch64(folder):
    elf = build(folder, "aarch64")
    cycles, wide, narrow = 2**64 - 1, 2**64 - 1, 2**32 - 1
    for which, processor, options, longest in [
            ("debian", "cortex-a53", "", narrow),
            ("debian", "cortex-a72", ",virtualization=on", narrow),  # in EL2
            ("debian", "max", "", wide),  # PMUv3p5
            ("backports", "cortex-a57", "", narrow),
            ("backports", "max", ",virtualization=on", wide)]:
        name = f"aarch64, {which}, {processor}{options}"
        result = boot(name, elf, "aarch64", which, ["-M", f"virt{options}", "-cpu", processor])
        tests(name, result, 4, (4, 3), [cycles, longest])
        together(name, result, 4, 0.95)
    name = "aarch64, all counters"
    result = boot(name, build(folder, "aarch64", "-DNO_COMPANIONS", "-DONLY_TOGETHER=1"), "aarch64", "debian",
                  ["-M", "virt", "-cpu", "cortex-a72"])
    equal(f"{name}: counters", result.value.get("counters"), 7)
    events_are_known(name, result, "aarch64", {"cycles": 7, "cpu-cycles": 7, "instructions": 6, "sw_incr": 6,
                                               "inst_retired": 6, "cpu_cycles": 7})
    # QEMU notices that an event counter is due only when the cycle counter is.
    together(name, result, 7, 0.45)
    result = boot("aarch64, no PMU", elf, "aarch64", "debian", ["-M", "virt", "-cpu", "cortex-a72,pmu=off"])
    equal("aarch64, no PMU: no counters", result.value.get("counters"), 0)


def test_riscv64(folder):
    elf = build(folder, "riscv64")
    for which in guests.QEMUS:
        name = f"riscv64, {which}"
        result = boot(name, elf, "riscv64", which, ["-M", "virt", "-cpu", "rv64,sscofpmf=on"])
        tests(name, result, 7, (7, 7), [2**64 - 1] * 2)
        for timer, ns in [("timer of 1000 us", 10**6), ("timer of 100 s", 10**11)]:
            check(f"{name}: {timer}", ns <= result.value.get(timer, 0) <= ns + 5000, result.serial[:200])
        events_are_known(name, result, "riscv64", {"cycles": 7, "cpu-cycles": 7, "instructions": 7})
        # At each overflow, QEMU 7.2 says that both counters have overflowed.
        if which != "debian":
            together(name, result, 2, 0.85)
        for options in ["rv64", "rv64,sscofpmf=on,pmu-num=0"]:
            result = boot(f"{name}, {options}", elf, "riscv64", which, ["-M", "virt", "-cpu", options])
            equal(f"{name}, {options}: no counters", result.value.get("counters"), 0)


def test_cortex_m(folder):
    """SysTick for some times. When it starts, QEMU 7.2 lets it take two turns instead of one."""
    elf, source = os.path.join(folder, "timer.elf"), os.path.join(SOURCE, "timer_cortex_m.c")
    made = [run("clang", "--target=thumbv7m-none-eabi", "-mcpu=cortex-m3", "-mfloat-abi=soft", *FLAGS, "-c", source,
                "-o", elf + ".o"),
            run("ld.lld", "--defsym=CODE=0", "--defsym=RAM=0x20000000", "-T", os.path.join(SOURCE, "cortex_m.ld"),
                elf + ".o", "-o", elf)]
    check("Cortex-M: the guest is built", not any(one.returncode for one in made), made[0].stderr + made[1].stderr)
    for which, turns in [("debian", 2), ("backports", 1)]:
        name = f"Cortex-M, {which}"
        done = run(guests.qemu("qemu-system-arm", which), "-M", "mps2-an385", "-display", "none", "-serial", "none",
                   "-monitor", "none", "-semihosting-config", "enable=on,target=native", *guests.ICOUNT, "-kernel", elf)
        rows = [tuple(map(int, row)) for row in re.findall(r"^timer (\d+) (\d+) (\d+)$", done.stderr, re.M)]
        equal(f"{name}: times", [ns for ns, _, _ in rows], [10**3, 10**6, 5 * 10**8, 10**10, 6 * 10**10])
        # 24 bits of ticks of 40 ns; each interrupt takes some instructions.
        check(f"{name}: SysTick", all(
            interrupts == -(-ns // 40 // 2**24) and 0 <= ticks - turns * ns // 40 <= 20 * (interrupts + 1)
            for ns, ticks, interrupts in rows), rows)
        check(f"{name}: QEMU has no cycle counter", "no cycles\n" in done.stderr, done.stderr)


def main():
    if guests.missing():
        skip("pmu", guests.missing())
        finish()
    with scratch() as folder:
        test_aarch64(folder)
        test_riscv64(folder)
        test_cortex_m(folder)
    finish()


if __name__ == "__main__":
    main()
