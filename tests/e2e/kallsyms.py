#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The symbols of Debian's kernel images against the /proc/kallsyms of the running kernels."""
import os
import random
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import BUILD, check, equal, finish, guests, run, scratch, skip

SYMTOOL = os.path.join(BUILD, "tests", "symtool")
PLACETOOL = os.path.join(BUILD, "tests", "placetool")


def own_names(text):
    """{address: names} of the kernel's functions, without those of modules."""
    found = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) == 3 and words[1] in "tTwW" and not words[2].startswith(("$", ".L")):
            found.setdefault(int(words[0], 16), set()).add(words[2])
    return found


def compare(name, kernel, theirs):
    """Checks that every function is at its address. Returns how far the kernel was moved."""
    lines = run(SYMTOOL, "-l", kernel).stdout.splitlines()
    ours = {int(line.split()[0], 16): line.split()[1] for line in lines}
    slide = min(theirs) - min(ours)
    check(f"{name}: it has moved by whole pages", slide >= 0 and slide % 65536 == 0, hex(slide))
    moved = {address - slide: names for address, names in theirs.items()}
    wrong = [(hex(a), ours.get(a), moved.get(a)) for a in sorted(set(ours) | set(moved))
             if ours.get(a) not in moved.get(a, ())]
    check(f"{name}: {len(ours) // 1000} thousand functions", len(ours) > 40000 and not wrong,
          f"{len(wrong)} of {len(ours)} and {len(moved)} differ: {wrong[:3]}")
    return slide


def place(kernel, addresses):
    lines = "".join(f"{address:x}\n" for address in addresses)
    done = run(PLACETOOL, kernel, input=lines.encode())
    return done.stdout.split("\n", 1)[0].split()


def ran(theirs, nr, seed):
    """Addresses that could be sampled: a few starts of functions, and many others."""
    rng = random.Random(seed)
    starts = sorted(theirs)[: len(theirs) * 3 // 4]  # without those that run only once, at boot
    return [rng.choice(starts) + (0 if i % 5 == 0 else 4 * rng.randrange(1, 60)) for i in range(nr)]


def find_slide(name, folder, kernel, text, slide):
    theirs = own_names(text)
    got = place(kernel, ran(theirs, 5000, 1))
    equal(f"{name}: the slide by votes", got[:2], ["slide", hex(slide)])
    got = place(kernel, ran(theirs, 100, 2))
    equal(f"{name}: by few votes", got[:2], ["slide", hex(slide)])
    saved, linked = os.path.join(folder, "kallsyms"), os.path.join(folder, "System.map")
    with open(saved, "w", encoding="utf-8") as f:
        f.write(text)
    with open(linked, "w", encoding="utf-8") as f:
        f.writelines(f"{address - slide:016x} T {min(names)}\n" for address, names in theirs.items())
    got = place(saved, ran(theirs, 5000, 3))
    equal(f"{name}: /proc/kallsyms of that boot is where it was", got[:2], ["slide", "0x0"])
    got = place(linked, ran(theirs, 5000, 4))
    equal(f"{name}: the slide of System.map", got[:2], ["slide", hex(slide)])
    got = place(kernel, [a + 8 for a in ran(theirs, 3000, 5) if a + 8 not in theirs])
    check(f"{name}: no votes for anything", got[0] == "none", got)


def main():
    if guests.missing():
        skip("kallsyms", guests.missing())
        finish()
    with scratch() as folder:
        for architecture in ("amd64", "arm64", "riscv64"):
            guest = guests.linux(architecture, words="kscope.kallsyms kscope.work=none", cpus=1)
            # Without randomness, the kernel would be where it was linked.
            guest.args = [word.replace(",dtb-randomness=off", "") for word in guest.args]
            text = guests.kallsyms(guests.boot(guest).serial)
            if not check(f"{architecture}: it tells", text):
                continue
            slide = compare(architecture, guest.kernel, own_names(text))
            find_slide(architecture, folder, guest.kernel, text, slide)
    finish()


if __name__ == "__main__":
    main()
