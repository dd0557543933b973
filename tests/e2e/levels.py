#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels above the usual level: address spaces under a hypervisor, traps to EL2 and to machine mode."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import BUILD, ROOT, check, equal, finish, guests, kscope, run, scratch, skip, wire_read

PLUGIN = os.path.join(BUILD, "kscope-qemu.so")
GUESTS = os.path.join(ROOT, "tests", "guest")
MACHINES = {
    "aarch64": ["-M", "virt,virtualization=on", "-cpu", "max"],
    "riscv64": ["-M", "virt", "-bios", "none"],
    "riscv32": ["-M", "virt", "-bios", "none"],
}
TARGETS = {
    "aarch64": ("hyp.S", 0x40080000, ["--target=aarch64-none-elf"]),
    "riscv64": ("m_mode.S", 0x80000000, ["--target=riscv64-none-elf", "-march=rv64ima",
                                         "-mno-relax"]),
    "riscv32": ("m_mode.S", 0x80000000, ["--target=riscv32-none-elf", "-march=rv32ima",
                                         "-mno-relax"]),
}
ROUNDS = 100  # of tests/guest/m_mode.S


def build(folder, arch):
    source, base, flags = TARGETS[arch]
    elf = os.path.join(folder, arch + ".elf")
    made = [run("clang", *flags, "-c", os.path.join(GUESTS, source), "-o", elf + ".o"),
            run("ld.lld", f"--defsym=BASE={base}", "-T", os.path.join(GUESTS, "guest.ld"),
                elf + ".o", "-o", elf)]
    check(f"{arch}: the guest is built", not any(one.returncode for one in made),
          made[0].stderr + made[1].stderr)
    lines = run("llvm-nm", elf).stdout.splitlines()
    return elf, {line.split()[2]: int(line.split()[0], 16) for line in lines}


def record(which, arch, elf, out, options):
    return run(guests.qemu(f"qemu-system-{arch}", which), *MACHINES[arch], "-display", "none",
               "-kernel", elf, "-plugin", f"{PLUGIN},out={out},{options}")


def branches(recording):
    """[{kind, from, to, next, sp, space...}]"""
    dump = kscope("convert", recording, "-t", "dump", "-o", "-").stdout
    lines = [line.split() for line in dump.splitlines() if line.startswith("branch ")]
    return [{"kind": words[4], "user": words[-1] == "user",
             **{key: int(value, 16) for key, value in
                (word.split("=") for word in words if "=0x" in word)}} for words in lines]


def spaces_of(at):
    """{function: its address space} in tests/guest/hyp.S."""
    return {
        "guest_plain": at["stage1"],
        "guest_five": at["stage2"] | 5 << 48,
        "guest_six": at["stage2"] | 6 << 48,
        "guest_both": at["stage1"] | 6 << 48,
        "host_work": at["host_table"],
    }


def function_at(at, address):
    names = [name for name in spaces_of(at) if at[name] <= address]
    return max(names, key=at.get) if names and address < at["vectors"] else None


def test_spaces(folder, which):
    elf, at = build(folder, "aarch64")
    recording = os.path.join(folder, "spaces.kscope")
    record(which, "aarch64", elf, recording, "mode=trace")
    events = branches(recording)
    got = {event["to"]: event.get("space", 0) for event in events if event["kind"] != "end"}
    for name, space in spaces_of(at).items():
        equal(f"{which}: the trace has the address space of {name}", got.get(at[name]), space)
    # 7.2 does not show plugins where an exception returns to.
    enters = [event for event in events if event["kind"] == "enter"]
    equal(f"{which}: every exception to EL2", len(enters), 5)
    if which != "debian":
        equal(f"{which}: an exception to EL2 in the middle of a block",
              [event["next"] for event in enters].count(at["faults"]), 1)
    record(which, "aarch64", elf, recording, "clock=instructions,period=10")
    seen = {}
    for sample in wire_read.Stream(recording).samples:
        seen.setdefault(function_at(at, sample.pc), set()).add(sample.space)
    for name, space in spaces_of(at).items():
        equal(f"{which}: samples have the address space of {name}", seen.get(name), {space})


def test_machine_mode(folder, which, arch):
    elf, at = build(folder, arch)
    recording = os.path.join(folder, "machine.kscope")
    record(which, arch, elf, recording, "mode=trace")
    enters = [event for event in branches(recording) if event["kind"] == "enter"]
    equal(f"{which} {arch}: every trap to machine mode",
          [event["to"] for event in enters], [at["handler"]] * (ROUNDS + 2))
    if which != "debian":  # 7.2 does not show plugins where a trap returns to
        equal(f"{which} {arch}: a trap to machine mode in the middle of a block",
              [event["next"] for event in enters],
              [at["machine_fault"]] * ROUNDS + [at["user_fault"], at["user_fault"] + 12])
        check(f"{which} {arch}: and the interrupted stack pointer",
              all(event.get("left") == at["stack"] for event in enters), enters[:1])


def main():
    if guests.missing():
        skip("levels", guests.missing())
        finish()
    with scratch() as folder:
        for which in guests.QEMUS:
            test_spaces(folder, which)
            for arch in ["riscv64", "riscv32"]:
                test_machine_mode(folder, which, arch)
    finish()


if __name__ == "__main__":
    main()
