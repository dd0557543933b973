#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Coverage of the demo's kernel, from a trace of it in QEMU and without any instrumentation, against gcov: gcc's counts
of the same files, run as a program of the host. And the calls of each function against the kernel's own counts."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import ROOT, check, coverage, equal, exits, finish, guests, kscope, no_problems, run, scratch, skip

KERNEL = os.path.join(ROOT, "demo", "kernel")
# The files of the kernel that run on the host, too, and how many of their lines and functions both know.
KNOWN = {"work.c": (30, 14), "heap.c": (20, 3), "dice.c": (7, 3), "knit.c": (9, 4), "kernel.h": (5, 0)}
PARTS = {"cpu": [["--cpu", "0"], ["--cpu", "1-2"], ["--cpu", "3"]],
         "pid": [["--pid", "1"], ["--pid", "2-99"]],
         "level": [["--level", "user"], ["--level", "kernel"]]}
# Most of a short trace would be the firmware's way to the kernel.
WITHOUT_FIRMWARE = {"riscv64": ["--start-at", "kernel_main"]}


def build_guest(folder, machine):
    """The kernel without optimization, as gcc compiles for gcov; mix() has lines."""
    elf = os.path.join(folder, "demo", "kernel", machine, "kernel-fp.elf")
    done = run("make", "-s", "-C", ROOT, f"BUILD={folder}", "KERNEL_OPTIMIZATION=-O0 -Dnodebug=unused", elf,
               env={**os.environ, "MAKEFLAGS": ""})
    if done.returncode:
        raise RuntimeError(done.stderr)
    guest = guests.demo(machine, words="scale=1")
    there, here = guests.DEMO_KERNELS, os.path.join(folder, "demo", "kernel")
    guest.args = [word.replace(there, here) for word in guest.args]
    guest.elfs = [path.replace(there, here) for path in guest.elfs]
    guest.kernel = elf
    return guest


def host_counts(folder, programs):
    """`programs`: the folder of the kernel's user programs, which work.c includes."""
    flags = ["-O0", "-g", "--coverage", "-w", f"-I{KERNEL}", f"-I{KERNEL}/x86_64", f"-I{ROOT}",
             "-DKSCOPE_CPUS=8", f"-Wa,-I{programs}"]
    objects = []
    for name in ["work", "heap", "user/dice", "user/knit", "host"]:
        path = f"{coverage.SOURCES}/host.c" if name == "host" else f"{KERNEL}/{name}.c"
        objects.append(os.path.basename(name) + ".o")
        done = run("gcc", *flags, "-c", path, "-o", objects[-1], cwd=folder)
        if not done.returncode and name.startswith("user/"):
            # Both programs have these names.
            stem = objects[-1].removesuffix(".o")
            done = run("objcopy", f"--redefine-sym=user_main={stem}_main", "--localize-symbol=_start",
                       objects[-1], cwd=folder)
        if done.returncode:
            raise RuntimeError(done.stderr)
    done = run("gcc", "--coverage", *objects, "-o", "host", cwd=folder)
    if done.returncode or run("./host", cwd=folder).returncode:
        raise RuntimeError(done.stderr)
    return coverage.gcov(folder, *objects)


def binaries(guest):
    return ["--kernel", guest.kernel, *(word for elf in guest.elfs for word in ("--elf", elf))]


def convert(guest, recording, *options):
    out = recording + ".info"
    done = kscope("convert", recording, *binaries(guest), "-o", out, *options)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return coverage.read_info(out)


def by_name(records):
    return {os.path.basename(path): record for path, record in records.items()}


def record(guest, machine, path, which):
    boot = guests.record(guest, path, ["--trace", *WITHOUT_FIRMWARE.get(machine, [])], which, guests.ICOUNT)
    check(f"{guest.name}, {which}: runs", boot.code == 0 and "demo: end" in boot.serial, boot.errors)
    return boot


def calls_are_known(name, records, boot):
    """Also of functions that were inlined."""
    counted = {function: count for record in records.values()
               for function, (_, count) in record.functions.items()}
    want = {function: calls for function, (calls, _) in guests.truth(boot.serial).items()}
    want |= guests.inlined(boot.serial)
    check(f"{name}: functions are known", len(want) > 15, want)
    equal(f"{name}: calls of every function", {function: counted.get(function) for function in want}, want)


def test_gcov(folder, machine, which, truth):
    name = f"{machine}, {which}"
    guest = build_guest(folder, machine)
    recording = os.path.join(folder, f"{machine}.kscope")
    boot = record(guest, machine, recording, which)
    if not truth:
        truth.update(host_counts(folder, os.path.dirname(guest.elfs[0])))
    ours = by_name(convert(guest, recording))
    for source, (lines, functions) in KNOWN.items():
        problems, same = coverage.differences(ours[source], truth[source])
        no_problems(f"{name}: {source}: {same[0]} lines, {same[1]} functions and {same[2]} lines with branches "
                    "are as in gcov", problems)
        check(f"{name}: {source}: much is compared", same[0] >= lines and same[1] >= functions, same)
    calls_are_known(f"{name}, -O0", ours, boot)
    return guest, recording


def test_parts(machine, guest, recording):
    whole = convert(guest, recording)
    want = {path: +record.lines for path, record in whole.items() if +record.lines}
    for what, selections in PARTS.items():
        parts = [convert(guest, recording, *selection) for selection in selections]
        sums = {path: +lines for path, lines in coverage.add_up(parts).items() if +lines}
        check(f"{machine}: several parts by {what}", len(parts) > 1 and all(parts))
        equal(f"{machine}: the parts by {what} add up",
              [(path, line) for path in want.keys() | sums.keys()
               for line in want.get(path, {}).keys() | sums.get(path, {}).keys()
               if want.get(path, {}).get(line) != sums.get(path, {}).get(line)][:10], [])


def test_optimized(folder, machine, which):
    """The kernel as it is: calls are the same, inlined or not."""
    recording = os.path.join(folder, f"{machine}-O2.kscope")
    guest = guests.demo(machine, words="scale=1")
    boot = record(guest, machine, recording, which)
    calls_are_known(f"{machine}, {which}, -O2", by_name(convert(guest, recording)), boot)


def test_samples(folder):
    recording = os.path.join(folder, "samples.kscope")
    guests.record(guests.demo("x86_64", words="scale=1"), recording, ["--clock", "instructions"], "debian",
                  guests.ICOUNT)
    out = os.path.join(folder, "samples.info")
    exits("samples have no coverage", kscope("convert", recording, "-o", out), 3, "coverage needs a trace")
    check("nothing is written", not os.path.exists(out))


def main():
    if guests.missing():
        skip("coverage", guests.missing())
        finish()
    with scratch() as folder:
        truth = {}
        for machine in ["x86_64", "aarch64", "riscv64", "cortex_m"]:
            for which in guests.QEMUS:
                guest, recording = test_gcov(folder, machine, which, truth)
                test_optimized(folder, machine, which)
            if machine != "cortex_m":  # it has one cpu
                test_parts(machine, guest, recording)
        test_samples(folder)
    finish()


if __name__ == "__main__":
    main()
