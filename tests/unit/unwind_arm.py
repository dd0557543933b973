#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The unwind tables of 32-bit Arm, against llvm-readelf's reading of them.

Each function has other rules. Every word of the stack is a return address into a function of its
own, which pops one more word. So the names of a chain tell from which words it came: where the
return address was, and where the stack pointer was after it. The same for what the hardware of
Cortex-M stores on the stack.
"""
import os
import random
import re
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import check, finish, kscope, read_folded, run, scratch, wire_write

WORDS = 400
STACK = 0x40000000
LINK = 390  # the word whose function lr points to
BASE = 100  # the word that r6 points to
SHOWN = 4  # frames of a chain that are compared
CASES = {
    "plain": ".save {lr}",
    "registers": ".save {r4, r5, r6, lr}",
    "room": ".save {r4, lr}\n.pad #40",
    "much room": ".save {r4, lr}\n.pad #1000",
    "gaps": ".save {r4, r6, r8, r11, lr}",
    "arguments": ".save {r4, lr}\n.pad #16\n.save {r0, r1, r3}",
    "frame pointer": ".save {r6, lr}\n.setfp r6, sp, #0",
    "frame pointer and room": ".save {r5, r6, lr}\n.setfp r6, sp, #4\n.pad #64",
    "doubles": ".save {r4, lr}\n.vsave {d8-d11}",
    "high doubles": ".save {r4, lr}\n.vsave {d16-d18}",
    "a leaf with room": ".pad #32",
    "in the table": ".save {r4, lr}\n.pad #24\n.handlerdata",
    "model 1": ".personalityindex 1\n.save {r4, lr}\n.pad #8\n.handlerdata",
    "model 2": ".personalityindex 2\n.save {r4, r10, lr}\n.pad #300\n.handlerdata",
    "a language's own": ".personality routine\n.save {r4, lr}\n.pad #8\n.handlerdata",
    "a language's own, long": ".personality routine\n.save {r4, r6, r8, lr}\n.vsave {d9}\n"
                              ".pad #8\n.vsave {d16}\n.pad #200\n.pad #4\n.handlerdata",
    "refused": ".unwind_raw 0, 0x80, 0x00",
    "pc is popped": ".unwind_raw 0, 0x88, 0x01",
    "lr and pc are popped": ".unwind_raw 0, 0x8c, 0x01",
    "fstmfdx": ".save {r4, lr}\n.unwind_raw 0, 0xb3, 0x81\n.unwind_raw 0, 0xba",
    "wmmx": ".save {lr}\n.unwind_raw 0, 0xc6, 0x12\n.unwind_raw 0, 0xc7, 0x05\n.unwind_raw 0, 0xc2",
    "down": ".save {r4, lr}\n.unwind_raw 0, 0x42\n.pad #40",
    "an authentication code": ".save {r4, lr}\n.unwind_raw 0, 0xb4",
    "spare": ".save {r4, lr}\n.unwind_raw 0, 0xb6",
    "spare mask": ".save {r4, lr}\n.unwind_raw 0, 0xb1, 0x00",
}
# readelf does not show these: where the return address is, and the stack pointer after it
OWN = {"a language's own": (3, 4), "a language's own, long": (60, 61)}
RANDOM_OPS = [[0x02], [0x41], [0x80, 0x31], [0x84, 0x08], [0xa1], [0xa9], [0xac], [0xb1, 0x05],
              [0xb2, 0x04], [0xb3, 0x22], [0xb9], [0xc1], [0xc6, 0x31], [0xc7, 0x03], [0xc8, 0x11],
              [0xc9, 0x02], [0xd3], [0x0f]]


def random_cases():
    rng = random.Random(5)
    for i in range(60):
        ops = [rng.choice(RANDOM_OPS) for _ in range(rng.randrange(1, 9))]
        yield f"random {i}", "\n".join(
            ".unwind_raw 0, " + ", ".join(hex(byte) for byte in op) for op in ops)


def source(cases, thumb):
    out = [".syntax unified", ".fpu neon", ".thumb" if thumb else ".arm", ".text", ".globl _start", "_start:",
           ".globl routine", "routine: bx lr"]

    def function(name, rules, body):
        out.extend([f".type {name}, %function", ".thumb_func" if thumb else "", f"{name}:",
                    ".fnstart", *body, *rules.split("\n"), ".fnend", f".size {name}, . - {name}"])
    for i, rules in enumerate(cases.values()):
        function(f"case_{i}", rules, ["nop", "nop", "bl routine", "nop"])
    for i in range(WORDS):
        function(f"word_{i}", ".save {lr}", ["nop" if thumb else "", "blx r3", "nop"])
    return "\n".join(out) + "\n"


def build(folder, cases, thumb):
    path, elf = os.path.join(folder, "t.s"), os.path.join(folder, "t.elf")
    with open(path, "w", encoding="ascii") as out:
        out.write(source(cases, thumb))
    for command in (["clang", "--target=armv7-none-eabi", "-c", path, "-o", elf + ".o"],
                    ["ld.lld", *(f"--defsym=__aeabi_unwind_cpp_pr{i}=0" for i in range(3)),
                     elf + ".o", "-o", elf]):
        done = run(*command)
        if done.returncode:
            raise RuntimeError(done.stderr)
    return elf


def symbols(elf):
    lines = run("llvm-nm", elf).stdout.split("\n")
    return {line.split()[2]: int(line.split()[0], 16) & ~1 for line in lines if line.strip()}


def read_tables(elf):
    """{address: [(first byte, meaning)]}"""
    text = run("llvm-readelf", "-u", elf).stdout
    return {int(at, 16) & ~1: re.findall(r"^ +0x(\w\w).*; (.*)$", rest, re.M)
            for at, rest in re.findall(r"FunctionAddress: 0x(\w+)(.*?)\n {6}}", text, re.S)}


class Refused(Exception):
    pass


def words_of(register):
    """Without the word that FSTMFDX adds to a list."""
    return 2 if register[0] == "d" or register.startswith("wR") else 1


def undo(rules, cells):
    """The return address and the stack pointer after it, as words of the stack."""
    regs, sp = {"r6": BASE, "lr": LINK}, 0

    def cell(at):
        if at not in cells:
            raise Refused
        return cells[at]
    for byte, meaning in rules:
        op = int(byte, 16)
        popped = re.match(r"pop \{(.*)\}", meaning)
        moved = re.match(r"vsp = vsp ([+-]) (\d+)", meaning)
        if meaning == "finish":
            break
        if moved:
            sp += int(moved.group(1) + moved.group(2)) // 4
        elif meaning.startswith("vsp = r"):
            if regs.get(meaning[6:]) is None:
                raise Refused
            sp = regs[meaning[6:]]
        elif op == 0xb4:  # newer than this readelf
            sp += 1
        elif popped:
            for register in popped.group(1).split(", "):
                if register[0] in "rlp":
                    regs[register] = cell(sp)
                sp += words_of(register)
            sp += op == 0xb3 or 0xb8 <= op <= 0xbf
        else:
            raise Refused  # refused, or spare
    return regs.get("pc", regs["lr"]), sp


def expected(name, rules):
    try:
        caller, sp = undo(rules, {at: at for at in range(WORDS)})
    except Refused:
        return [name]
    return chain_from(name, caller, sp)


def chain_from(name, caller, sp):
    more = range(sp, WORDS) if sp >= 0 else ()
    return ([name, f"word_{caller}"] + [f"word_{at}" for at in more])[:SHOWN]


def stack_words(at, thumb):
    return [at[f"word_{i}"] + 4 | thumb for i in range(WORDS)]


def record(folder, elf, pc, words, lr, outer=(0, ())):
    path = os.path.join(folder, "recording")
    regs = [0] * 16
    regs[6], regs[13], regs[14] = STACK + 4 * BASE, STACK, lr
    one = wire_write.sample(1, pc, registers=regs, stack=struct.pack(f"<{len(words)}I", *words),
                            weight=1, outer=(outer[0], struct.pack(f"<{len(outer[1])}I", *outer[1])))
    with open(path, "wb") as out:
        out.write(wire_write.chunk(wire_write.info(arch="arm", cpus=1, kernel=elf)))
        out.write(wire_write.chunk(one, cpu=0) + wire_write.end((0, 1, 0)))
    return path


def chain(path):
    done = kscope("convert", path, "-t", "folded", "--root", "none", "-o", "-")
    if done.returncode:
        raise RuntimeError(done.stderr)
    return next(iter(read_folded(done.stdout))).split(";")[::-1][:SHOWN]


def test_mode(folder, thumb):
    cases = {**CASES, **dict(random_cases())}
    elf, mode = build(folder, cases, thumb), "Thumb" if thumb else "Arm"
    at, tables = symbols(elf), read_tables(elf)
    wrong, found = {}, 0
    for i, case in enumerate(cases):
        name = f"case_{i}"
        rules = tables[at[name]]
        want = chain_from(name, *OWN[case]) if case in OWN else expected(name, rules)
        words = stack_words(at, thumb)
        got = chain(record(folder, elf, at[name] + (2 if thumb else 4), words, words[LINK]))
        found += len(got) > 1
        if case in CASES:
            check(f"{mode}: {case}", got == want, f"{got}, not {want}; {rules}")
        elif got != want:
            wrong[case] = (got, want, rules)
    check(f"{mode}: rules at random", not wrong, wrong)
    check(f"{mode}: most cases have a caller", found > len(cases) * 3 / 4, f"{found} of {len(cases)}")


# EXC_RETURN, xPSR, where the frame begins, the stack pointer after it
EXCEPTIONS = {
    "plain": (0xfffffff9, 0x01000000, 0, 8),
    "in a handler": (0xfffffff1, 0x01000003, 0, 8),
    "aligned": (0xfffffff9, 0x01000200, 0, 9),
    "floating point": (0xffffffe9, 0x01000000, 0, 26),
    "floating point, aligned": (0xffffffe9, 0x01000200, 0, 27),
    "v8-M": (0xffffffb8, 0x01000000, 0, 8),
    "v8-M, from the other security state": (0xffffff99, 0x01000000, 10, 18),
    "of a thread": (0xfffffffd, 0x01000000, 0, 8),
    "of a thread, floating point": (0xffffffed, 0x01000200, 0, 27),
}


def test_exceptions(folder):
    elf = build(folder, CASES, True)
    at = symbols(elf)
    for name, (value, xpsr, frame, after) in EXCEPTIONS.items():
        words, other = stack_words(at, True), [1] * WORDS
        words[0] = 0xfefa125b if frame else words[0]
        words[frame + 6:frame + 8] = [at["case_0"] + 2, xpsr]
        outer, on_thread = (STACK + 0x10000, words), value & 4
        got = chain(record(folder, elf, at["case_1"], other if on_thread else words, value,
                           outer if on_thread else (0, ())))
        want = ["case_1", "case_0", f"word_{after}", f"word_{after + 1}"]
        check(f"Cortex-M: {name}", got == want, f"{got}, not {want}")
    got = chain(record(folder, elf, at["case_1"], words, 0xfffffffd))
    check("Cortex-M: a thread's stack that is not there", got == ["case_1"], got)


def main():
    with scratch() as folder:
        test_mode(folder, False)
        test_mode(folder, True)
        test_exceptions(folder)
    finish()


if __name__ == "__main__":
    main()
