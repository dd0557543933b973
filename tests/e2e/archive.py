#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Archives of recordings of QEMU: what kscope makes of them is what it makes of the recordings, when the
kernel and the programs are gone."""
import os
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import check, exits, finish, guests, kscope, scratch, skip

CASES = {"samples": ["--clock", "instructions", "--period", "100000"],
         "trace": ["--trace", "--start-at", "kernel_main"],
         "allocations": ["--alloc", "kmalloc", "--free", "kfree", "--stack", "512"]}


def views(path):
    lines = {"report": ["report", path], "folded": ["convert", path, "-t", "folded", "-o", "-"],
             "perf.data": ["convert", path, "-t", "perfdata", "-o", "-"],
             "timeline": ["trace", path, "-o", "-", "-t", "perfetto"]}
    return {name: kscope(*words, binary=True).stdout for name, words in lines.items()}


def move_binaries(guest, folder):
    """The guest with copies of its binaries in this folder."""
    os.mkdir(folder)
    for path in [guest.kernel, *guest.elfs]:
        shutil.copy(path, folder)
    def new(word):
        return os.path.join(folder, os.path.basename(word)) if word == guest.kernel else word
    return guests.Guest(guest.name, guest.program, new(guest.kernel), [new(word) for word in guest.args],
                        [os.path.join(folder, os.path.basename(path)) for path in guest.elfs])


def test(folder, machine, which, name, options):
    title, place = f"{machine}, {which}, {name}", os.path.join(folder, "bin")
    guest = move_binaries(guests.demo(machine, words="scale=1"), place)
    recording, out = os.path.join(folder, "run.kscope"), os.path.join(folder, "run.tar.zst")
    boot = guests.record(guest, recording, options, which, guests.ICOUNT)
    if check(f"{title}: records", boot.code == 0, boot.errors):
        want = views(recording)
        exits(f"{title}: archive", kscope("archive", recording, "-o", out), 0)
        shutil.rmtree(place)
        # The recording names the kernel, so kscope complains that it is gone.
        check(f"{title}: without the archive, names are missing",
              views(recording)["report"] != want["report"])
        os.unlink(recording)
        got = views(out)
        differ = [view for view in want if got[view] != want[view]]
        check(f"{title}: every view is the same", not differ and want["report"], differ)
    shutil.rmtree(place, ignore_errors=True)


def main():
    if guests.missing():
        skip("archive", guests.missing())
        finish()
    with scratch() as folder:
        for machine in ("x86_64", "aarch64"):
            for name, options in CASES.items():
                test(folder, machine, "debian" if machine == "x86_64" else "backports", name, options)
    finish()


if __name__ == "__main__":
    main()
