#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""mode=trace and alloc= of the plugin: exact counts in two QEMUs, and a boot of Debian's kernel."""
import collections
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import (BUILD, KSCOPE, ROOT, check, equal, finish, guests, kscope, read_folded, run,
                 scratch, skip, wire_trace)
from kit.wire_read import Stream

PLUGIN = os.path.join(BUILD, "kscope-qemu.so")
EXIT = ["-device", "isa-debug-exit,iobase=0xf4,iosize=4"]
ICOUNT = ["-icount", "shift=0,sleep=off"]
ROUNDS = 2000  # of tests/guest/trace.S
MACHINES = {
    "x86_64": EXIT,
    "i386": EXIT,
    "aarch64": ["-M", "virt", "-cpu", "cortex-a57"],
    "arm": ["-M", "virt", "-cpu", "cortex-a15"],
    "riscv64": ["-M", "virt", "-bios", "none"],
    "riscv32": ["-M", "virt", "-bios", "none"],
}


def symbols(elf):
    lines = run("llvm-nm", elf).stdout.splitlines()
    return {line.split()[2]: int(line.split()[0], 16) for line in lines}


def trace(arch, which, kernel, out, options, *more):
    return run(guests.qemu(f"qemu-system-{arch}", which), *MACHINES[arch], "-display", "none",
               "-kernel", kernel, *more, "-plugin", f"{PLUGIN},mode=trace,out={out}{options}")


def info(recording, *more):
    done = kscope("info", "--json", recording, *more)
    return json.loads(done.stdout) if done.returncode == 0 else {"error": done.stderr}


def by_function(recording, elf):
    """{function: instructions} of the function itself: the last frame of every stack."""
    done = kscope("convert", recording, "--kernel", elf, "-t", "folded", "-o", "-", "--weight")
    sums = {}
    for stack, count in read_folded(done.stdout).items():
        name = stack.split(";")[-1].removesuffix("_[k]")
        sums[name] = sums.get(name, 0) + count
    return sums


def test_hard_counts(folder, which, arch):
    """Interrupts, faults, string instructions and devices, against what the guest counts."""
    name = f"{which} {arch}"
    elf, recording = os.path.join(folder, "trace.elf"), os.path.join(folder, "trace.kscope")
    printed = os.path.join(folder, "printed")
    at = symbols(elf)
    trace(arch, which, elf, recording, f",from={at['begin']:#x},to={at['end']:#x}", *ICOUNT,
          "-debugcon", f"file:{printed}")
    with open(printed, encoding="ascii") as f:
        want = int(f.read(), 16)
    got = info(recording)
    equal(f"{name}: as many instructions as the guest counted", got.get("instructions"), want)
    equal(f"{name}: every return has its call", got.get("unmatched_returns"), 0)
    equal(f"{name}: all under one root", got.get("rooted"), want)
    equal(f"{name}: a decoder after wire/README.md counts the same",
          wire_trace.instructions(wire_trace.decode(recording)), ({0: want}, {0: want}))
    sums = by_function(recording, elf)
    equal(f"{name}: the sum over all functions", sum(sums.values()), want)
    # leaf() has 12 instructions; work() calls it 102 times, a trap once, and so does the timer.
    timer = sums["leaf"] // 12 - 103 * ROUNDS
    check(f"{name}: leaf", sums["leaf"] % 12 == 0 and 0 < timer < 100, sums)
    equal(f"{name}: work", sums["work"], ROUNDS * (1 + 3 * 100 + 3))
    equal(f"{name}: faults", sums["faults"], ROUNDS * 10)
    # QEMU also counts the iteration that finds nothing left.
    equal(f"{name}: strings", sums["strings"], ROUNDS * (11 + 21 + 8))
    equal(f"{name}: devices", sums["devices"], ROUNDS * 7)


def check_moves(name, recording, least):
    """
    From one stack pointer that was read to the next, the moves in between make the difference. Reading
    one does not depend on the moves.
    """
    done = run(os.path.join(BUILD, "tests", "tracetool"), recording, "moves", "3")
    found = re.search("^events .* contradict .*", done.stdout, re.M)
    words = found[0].split() if found else []
    got = dict(zip(words[::2], map(int, words[1::2])))
    check(f"{name}: no stack pointer contradicts the moves before it",
          got.get("contradict") == 0 and got.get("agree", 0) >= least, done.stdout[-6000:])
    return got


def test_places(name, recording, decoded):
    """The trace has the place of every sample inside it, at the block where the plugin took it."""
    places = {(cpu, *place) for cpu, state in decoded[0].items() for place in state.places}
    taken = {(sample.cpu, sample.place, sample.pc) for sample in Stream(recording).samples}
    check(f"{name}: check points are in their places", taken and taken == places,
          sorted(taken ^ places)[:10])


def test_loops(folder, which, arch):
    """tests/guest: the loop of hot() runs 300 times, the same loop of cold() 100 times."""
    rounds = 100
    elf, recording = os.path.join(folder, arch), os.path.join(folder, "loops.kscope")
    run(os.path.join(ROOT, "tests", "guest", "build"), arch, elf, f"-DROUNDS={rounds}")
    trace(arch, which, elf + ".boot" if arch == "x86_64" else elf, recording, ",check=20,state=all")
    got = check_moves(f"{which} {arch}", recording, 15)
    # A PC's firmware runs 16-bit code, whose moves are not known.
    check(f"{which} {arch}: the moves are known", arch in ["i386", "x86_64"] or
          got.get("followed", 0) > 0.99 * got.get("events", 1), got)
    decoded = wire_trace.decode(recording)
    agree, wrong = wire_trace.moves(decoded)
    check(f"{which} {arch}: a decoder after wire/README.md finds the same", agree >= 15 and not wrong,
          f"{agree}, {wrong[:3]}")
    test_places(f"{which} {arch}", recording, decoded)
    counted, recorded = wire_trace.instructions(decoded)
    check(f"{which} {arch}: a decoder after wire/README.md counts what the recording tells",
          counted and counted == recorded, f"{counted}, {recorded}")
    sums = by_function(recording, elf)
    hot, cold = sums.get("hot", 0), sums.get("cold", 0)
    turn = (hot - cold) // (200 * rounds)
    frames = [(hot - 300 * turn * rounds) / rounds, (cold - 100 * turn * rounds) / rounds]
    check(f"{which} {arch}: loops to the instruction",
          turn and all(frame == int(frame) and 0 <= frame < 40 for frame in frames), sums)


def fields(line):
    return {key: int(value, 16) for key, value in re.findall(r" (from|to|next)=(\w+)", line)}


def around_checks(recording, cpu):
    """[(branch before, chain of a check point, branch after)] of a cpu, as lines of the dump."""
    with subprocess.Popen([KSCOPE, "convert", recording, "--cpu", str(cpu), "-t", "dump", "-o", "-"],
                          stdout=subprocess.PIPE) as dump:
        lines = run("grep", "-B9", "-A9", "^check ", stdin=dump.stdout).stdout.splitlines()
    found, before, waiting = [], None, []
    for line in lines:
        if line.startswith("check "):
            waiting.append((before, [int(word, 16) for word in line.split(" : ")[1].split()[1:]
                                     if word.startswith("0x")]))
        elif line.startswith("branch "):
            found += [(*one, line) for one in waiting]
            before, waiting = line, []
    return found


def test_checks(folder, which, arch):
    """Check points of the demo kernel, against the branches around them."""
    name, recording = f"{which} demo {arch}", os.path.join(folder, "checks.kscope")
    guest = guests.demo(arch, words="scale=1", cpus=2)
    done = guests.record(guest, recording, ["--trace", "--check", "0.0001"], which)
    check(f"{name}: is recorded", done.ended, done.errors)
    checks = [one for cpu in (0, 1) for one in around_checks(recording, cpu)]
    functions = {at for elf in [guest.kernel, *guest.elfs] for at in symbols(elf).values()}
    wrong, callers = [], collections.Counter()
    for before, chain, after in checks:
        start, end = fields(before), fields(after)
        # Blocks that follow each other without a branch are no events.
        if not start["to"] <= chain[0] <= end["from"]:
            wrong.append((before, chain, after))
        # A function that was just called has not changed its stack yet. Firmware cannot be unwound.
        if " call " in before and start["to"] == chain[0] and chain[0] in functions:
            callers[chain[1:2] == [start["next"]]] += 1
    check(f"{name}: each is where the branch before it led", not wrong, wrong[:3])
    exact = sum(fields(before)["to"] == chain[0] for before, chain, _ in checks)
    check(f"{name}: most are at the target", exact * 2 > len(checks), f"{exact} of {len(checks)}")
    check(f"{name}: those in a new call have its return address", callers[True] and
          not callers[False], callers)
    got = info(recording)
    equal(f"{name}: all are found, and nothing is lost",
          (len(checks), got.get("lost"), got.get("damaged")),
          (len(Stream(recording).samples), 0, 0))
    equal(f"{name}: none is in the profile", sum(by_function(recording, guest.kernel).values()),
          got.get("instructions"))


def test_rounds(folder, which, arch):
    """However long the host lets a vCPU wait, no trace is older than a round before it."""
    name, recording = f"{which} demo {arch}", os.path.join(folder, "rounds.kscope")
    with guests.busy_host():
        done = guests.record(guests.demo(arch, words="scale=8", cpus=4), recording,
                             ["--trace"], which)
    check(f"{name}: is recorded on a busy host", done.ended, done.errors)
    count, late = wire_trace.rounds(recording)
    check(f"{name}: rounds", count > 5 and not late, f"{count} rounds, {late} times before them")
    equal(f"{name}: kscope finds no trace that is late", info(recording).get("damaged"), 0)


def test_same_checks(folder, which, arch):
    """By instructions, check points are the same in every run with -icount."""
    elf, chains = os.path.join(folder, arch), []
    for turn in range(2):
        recording = os.path.join(folder, f"same{turn}.kscope")
        trace(arch, which, elf, recording, ",check=50,clock=instructions", *ICOUNT)
        dump = kscope("convert", recording, "-t", "dump", "-o", "-").stdout.splitlines()
        chains.append([line.split(" : ")[1] for line in dump if line.startswith("check ")])
    check(f"{which} {arch}: the same check points in every run",
          len(chains[0]) > 10 and chains[0] == chains[1], list(map(len, chains)))


def test_levels(folder):
    """Traces only user mode, on the one vCPU of two on which all programs run."""
    recording = os.path.join(folder, "linux.kscope")
    guest = guests.linux("amd64", "kscope.work=none isolcpus=0")
    done = guests.boot(guest, more=["-plugin", f"{PLUGIN},mode=trace,out={recording},vcpu=1,"
                                    "level=user"])
    check("Debian: boots with filters", done.ended, done.errors)
    dump = kscope("convert", recording, "-t", "folded", "-o", "-", "--weight")
    stacks = read_folded(dump.stdout)
    check("Debian: nothing of the kernel is in a trace of programs",
          stacks and not any("_[k]" in stack for stack in stacks), list(stacks)[:3])


def test_moves(folder, guest, which):
    """The plugin reads the stack pointer at every new block, which proves the moves before it."""
    recording, name = os.path.join(folder, "moves.kscope"), f"{which} {guest.name}"
    done = guests.boot(guest, which, ["-plugin",
                                      f"{PLUGIN},mode=trace,out={recording},state=all"])
    check(f"{name}: boots with all states", done.ended, done.errors)
    got = check_moves(name, recording, 1000)
    # Except in a PC's firmware, which runs 16-bit code.
    check(f"{name}: the stack pointer is known at most branches",
          got.get("followed", 0) > 0.85 * got.get("events", 1), got)
    if (which, guest.program) != ("debian", "qemu-system-aarch64"):  # which does not show SP_EL0
        check(f"{name}: the interrupted stack pointer is known",
              0 < got.get("lefts", 0) >= got.get("enters", 0) - 100, got)
    os.unlink(recording)


def test_boot(folder, which, arch):
    recording = os.path.join(folder, "linux.kscope")
    guest = guests.linux(arch, "kscope.work=none")
    done = guests.boot(guest, which, ["-plugin", f"{PLUGIN},mode=trace,out={recording}"])
    check(f"{which} Debian {arch}: boots to its end", done.ended, done.errors)
    got = info(recording, "--kernel", guest.kernel)
    missed, returns = got.get("unmatched_returns", 1), got.get("returns", 0)
    check(f"{which} Debian {arch}: nothing is lost", got.get("lost") == 0, got)
    check_moves(f"{which} Debian {arch}", recording, 100)
    check(f"{which} Debian {arch}: of 10000 returns at most one has no call",
          returns > 1000000 and missed * 10000 <= returns, f"{missed} of {returns}")
    # Except for a PC's firmware, about 4 million instructions.
    instructions = got.get("instructions", 0)
    check(f"{which} Debian {arch}: stacks are rooted in their task",
          instructions - got.get("rooted", 0) < max(10000000, instructions / 100), got)
    size, events = os.path.getsize(recording), got.get("branches", 1)
    check(f"{which} Debian {arch}: under 5 bytes an event", size < 5 * events, f"{size} of {events}")


def test_alloc(folder):
    """Uses hot() as allocator and cold() as its free: each is called once per round."""
    elf, recording = os.path.join(folder, "aarch64"), os.path.join(folder, "alloc.kscope")
    at = symbols(elf)
    for which in guests.QEMUS:
        run(guests.qemu("qemu-system-aarch64", which), *MACHINES["aarch64"], "-display", "none",
            "-kernel", elf, "-plugin",
            f"{PLUGIN},out={recording},period=10000000,alloc={at['hot']:#x}:arg0:ret,"
            f"free={at['cold']:#x}:arg0")
        dump = kscope("convert", recording, "-t", "dump", "-o", "-").stdout.splitlines()
        news = [line for line in dump if line.startswith("alloc ") and " new " in line]
        frees = [line for line in dump if line.startswith("alloc ") and " free " in line]
        equal(f"{which}: hooked calls that returned, and calls", (len(news), len(frees)), (100, 100))


def main():
    if guests.missing():
        skip("qemu_trace", guests.missing())
        finish()
    with scratch() as folder:
        made = [run("clang", "--target=i386-elf", "-c", os.path.join(ROOT, "tests/guest/trace.S"),
                    "-o", os.path.join(folder, "trace.o")),
                run("ld.lld", "--defsym=BASE=0x100000", "-T",
                    os.path.join(ROOT, "tests/guest/guest.ld"), os.path.join(folder, "trace.o"),
                    "-o", os.path.join(folder, "trace.elf"))]
        if not check("the guest is built", not any(one.returncode for one in made),
                     made[0].stderr + made[1].stderr):
            finish()
        for which in guests.QEMUS:
            for arch in ["i386", "x86_64"]:
                test_hard_counts(folder, which, arch)
            for arch in MACHINES:
                test_loops(folder, which, arch)
            for arch in ["x86_64", "aarch64"]:
                test_checks(folder, which, arch)
            test_rounds(folder, which, "aarch64")
            test_same_checks(folder, which, "aarch64")
        test_alloc(folder)
        for arch in ["x86_64", "aarch64"]:
            for which in guests.QEMUS:
                test_moves(folder, guests.demo(arch, words="scale=1"), which)
        for arch in ["amd64", "arm64"]:
            test_moves(folder, guests.linux(arch, "kscope.work=none"), "backports")
        test_boot(folder, "debian", "amd64")
        test_boot(folder, "backports", "arm64")
        test_boot(folder, "backports", "riscv64")
        test_levels(folder)
    finish()


if __name__ == "__main__":
    main()
