#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The truth test: at every sample inside a trace, the unwound stack is the traced one."""
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import BUILD, check, finish, guests, kscope, read_folded, scratch, skip, styles

PLUGIN = os.path.join(BUILD, "kscope-qemu.so")
EVERY = "0.0001"  # seconds between two samples


def trace(guest, which, recording):
    return guests.record(guest, recording, ["--trace", "--check", EVERY, "--clock", "instructions", "--stack", str(styles.STACK),
                                            *guest.start], which, guests.ICOUNT)


def elfs(guest):
    return ["--kernel", guest.kernel, *(word for elf in guest.elfs for word in ("--elf", elf))]


def test_style(folder, which, arch, style):
    guest = styles.build(arch, style)
    name = f"{which} {guest.name}"
    recording = os.path.join(folder, f"{guest.name}.kscope")
    done = trace(guest, which, recording)
    check(f"{name}: runs to its end", done.ended and guests.END in done.serial, done.errors)
    got = kscope("info", "-v", "--json", recording, *elfs(guest))
    info = json.loads(got.stdout) if got.stdout else {}
    same, partial, other = (info.get(f"checks_{word}", 0) for word in ["equal", "partial", "different"])
    print(f"# {name}: {same} {partial} {other} doubt {info.get('doubtful')} strayed {info.get('strayed')} rooted {info.get('rooted')}/{info.get('instructions')} unm {info.get('unmatched_returns')}")
    check(f"{name}: samples have the traced stack", same > 100 and other * 1000 <= same, got.stderr[:1500])
    folded = kscope("convert", recording, *elfs(guest), "-t", "folded", "-o", "-", "--weight")
    wrong = {}
    for stack, count in read_folded(folded.stdout).items():
        text = ";".join(frame.removesuffix("_[k]") for frame in stack.split(";")[1:])
        if not styles.legal(guest, text):
            wrong[text] = count
    total = sum(read_folded(folded.stdout).values())
    check(f"{name}: no stack mixes threads", guest.stacks and not wrong,
          f"{sum(wrong.values())} of {total}\n" + "\n".join(f"{c} {s}" for s, c in sorted(wrong.items(), key=lambda x: -x[1])[:8]))


def main():
    if guests.missing():
        skip("truth", guests.missing())
        finish()
    wanted = sys.argv[1:]
    with scratch() as folder:
        for arch, style in styles.all_names():
            if wanted and not any(word in f"{style}-{arch}" for word in wanted):
                continue
            for which in guests.QEMUS:
                test_style(folder, which, arch, style)
    finish()


if __name__ == "__main__":
    main()
