#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Records Debian's kernels on two QEMUs, and checks that their known work is found.

The kernels are Linux (amd64, arm64, riscv64; without debug package, the first two moved by KASLR) and
GNU Mach (i386).
tests/guests has the work. Linux reads /dev/zero and /dev/urandom, hashes in busybox, and runs a
program with symbols; Mach allocates, touches and frees memory.
"""
import collections
import hashlib
import json
import math
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import check, equal, finish, guests, kscope, read_folded, run, scratch, skip
from kit.wire_read import Stream

# {a caller: the function below it that must have the most samples}
LINUX_WORK = {"amd64": {"read_zero": "clear_user_rep_good"},
              "arm64": {"read_zero": "__arch_clear_user",
                        "get_random_bytes_user": "chacha_permute"},
              "riscv64": {"read_zero": "__clear_user",
                          "_copy_to_iter": "fallback_scalar_usercopy"}}
# The functions in which Linux's stacks begin, if they do not begin in user mode.
LINUX_ROOTS = {"ret_from_fork", "secondary_startup_64_no_verify", "secondary_startup_64",
               "__secondary_switched", "__primary_switched", "_start_kernel",
               "secondary_start_sbi"}
# Firmware at the start of a RISC-V's memory: it is in no binary of the recording, and has its own stack.
FIRMWARE = "[kernel.kallsyms]+0x800"
# QEMU 7.2 flushes its TLB whenever a RISC-V kernel begins or ends to access user memory.
LESS_WORK = {("riscv64", "debian"): "kscope.part=4"}


def leaves(stacks, below=""):
    """Samples by function, of the stacks in which `below` is a caller."""
    count = collections.Counter()
    for stack, samples in stacks.items():
        frames = stack.split(";")
        if not below or below in frames[:-1]:
            count[frames[-1]] += samples
    return count


def is_share(part, whole, share, sigmas):
    return whole and abs(part - whole * share) <= sigmas * math.sqrt(whole * share * (1 - share))


def folded(path, *options):
    return read_folded(kscope("convert", path, "-t", "folded", "-o", "-", *options).stdout or "\n")


def record(guest, which, folder):
    """The stacks of a boot, by samples and by weight, and the guest's output."""
    out = os.path.join(folder, f"{guest.name}-{which}.kscope")
    boot = guests.record(guest, out, ["-F", "2000"], which)
    # With --clock host, QEMU does not wait for a slow disk: samples may be lost, and are counted.
    check(f"{guest.name}, {which}: runs to its end",
          boot.ended and guests.END in boot.serial and " lost," in boot.errors,
          f"{boot.code} {boot.errors} {boot.serial[-300:]}")
    ends = json.loads(kscope("info", out, "--json").stdout or "{}")
    check(f"{guest.name}, {which}: the kernel's stacks are found to their end",
          ends.get("kernel_unwound", 0) > 500 and
          ends["kernel_unwound_to_end"] >= 0.95 * ends["kernel_unwound"],
          {key: value for key, value in ends.items() if "unwound" in key})
    chance = Stream(out).chance()
    weighed = {stack: weight * chance for stack, weight in folded(out, "--weight").items()}
    return folded(out, "--samples"), weighed, boot.serial


def test_linux(architecture, which, folder):
    name = f"linux-{architecture}, {which}"
    guest = guests.linux(architecture, LESS_WORK.get((architecture, which), ""))
    stacks, weighed, serial = record(guest, which, folder)
    for caller, function in LINUX_WORK[architecture].items():
        top = leaves(stacks, caller).most_common(3)
        check(f"{name}: {function} is on top",
              top and top[0][0] == function and top[0][1] > 100, top)
    work = leaves({s: n for s, n in weighed.items() if s.startswith("work;_start;begin;user_round")})
    mix, both = work["user_mix"], work["user_mix"] + work["user_sum"]
    check(f"{name}: user_mix is three quarters of the program work",
          both > 1 and is_share(mix, both, 0.75, 7), work.most_common(4))
    with open(guest.elfs[1], "rb") as f:
        digest = hashlib.sha256(f.read()).hexdigest()
    in_busybox = sum(n for s, n in stacks.items()
                     if s.startswith("busybox;") and s.rpartition(";")[2].startswith("busybox"))
    check(f"{name}: busybox hashes", digest in serial and in_busybox > 100,
          f"{in_busybox} samples, {digest} in {serial[-600:]}")
    test_linux_stacks(name, stacks)


def test_random(which, folder):
    """By instructions, chacha_permute is 80 to 95 % of get_random_bytes_user on amd64.

    By host time it is 35 to 80 %, the same during a boot, another in the next: the block to which chacha_permute
    returns, which QEMU looks up at each return, takes up to five times as long in some boots as in others.
    """
    name = f"linux-amd64, {which}"
    guest = guests.linux("amd64", "kscope.work=random nokaslr")
    out = os.path.join(folder, "random.kscope")
    boot = guests.record(guest, out, ["--clock", "instructions", "--period", "1000003"], which)
    stacks = folded(out, "--samples")
    found = leaves(stacks, "get_random_bytes_user")
    share = found["chacha_permute"] / max(1, found.total())
    check(f"{name}: chacha_permute is nearly all of the random numbers", found.total() > 500 and 0.8 < share < 0.95,
          f"{found.most_common(4)} {boot.errors}")
    test_perf(name, out, folder, leaves(stacks)["chacha_permute"])


def test_perf(name, recording, folder, samples):
    """perf finds the symbols of a packed kernel that runs where it was linked."""
    data, env = os.path.join(folder, "perf.data"), dict(os.environ, HOME=folder)
    kscope("convert", recording, "-o", data, env=env)
    script = run("perf", "script", "-i", data, "-F", "ip,sym", env=env)
    leaf = [block.split(maxsplit=2)[1] for block in script.stdout.split("\n\n") if block.strip()]
    equal(f"{name}: perf finds chacha_permute", leaf.count("chacha_permute"), samples)


def test_linux_stacks(name, stacks):
    """Nearly all stacks of the programs' samples in the kernel begin in user mode or at a root."""
    whole = cut = 0
    examples = collections.Counter()
    for stack, samples in stacks.items():
        frames = stack.split(";")
        if (frames[0] not in ("work", "busybox") or
                frames[-1].startswith(("busybox", FIRMWARE))):
            continue
        if frames[1] in LINUX_ROOTS or frames[1] == "_start" or frames[1].startswith("busybox"):
            whole += samples
        else:
            cut += samples
            examples[stack] += samples
    check(f"{name}: stacks are whole", whole > 500 and whole >= 0.9 * (whole + cut),
          f"{whole} of {whole + cut}; {examples.most_common(5)}")


def test_mach(which, folder):
    name = f"gnumach, {which}"
    stacks, _, _ = record(guests.gnumach(), which, folder)
    faults = leaves(stacks, "vm_fault")
    check(f"{name}: touching memory fills it with zeros",
          faults and faults.most_common(1)[0][0] == "memset" and faults["memset"] > 100,
          faults.most_common(5))
    user = stacks.get("bootstrap;_start;begin;user_mix", 0)
    check(f"{name}: user_mix is the work in user mode", user > 50, user)
    check(f"{name}: memory is given back", leaves(stacks, "vm_deallocate"),
          "nothing below vm_deallocate")


def main():
    if guests.missing():
        skip("debian_guests", guests.missing())
        finish()
    with scratch() as folder:
        for which in guests.QEMUS:
            test_linux("amd64", which, folder)
            test_random(which, folder)
            test_linux("arm64", which, folder)
            test_linux("riscv64", which, folder)
            test_mach(which, folder)
    finish()


if __name__ == "__main__":
    main()
