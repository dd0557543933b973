#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Intel PT of a kernel that changes its own code, with packets of newer processors, and of guests: kscope finds exactly
the instructions that ran, and so does perf."""
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import check, emulate, equal, finish, intelpt, kscope, ptkernel, scratch, skip

EXTRAS = ("at", "flag", "items", "event")  # see ptkernel


def decode(name, path, kernel, truth):
    """kscope decodes it, and finds the truth."""
    got, done = intelpt.by_kscope(path, "--kernel", kernel)
    equal(f"{name}: kscope decodes it", (done.returncode, done.stderr), (0, b""))
    want = intelpt.hexadecimal(truth)
    addresses = got.get(ptkernel.PID, [])
    intelpt.fill(addresses, want)
    check(f"{name}: the instructions that ran", addresses == want, intelpt.first_difference(addresses, want))


def ask_perf(name, path, truth):
    if not shutil.which("perf"):
        skip(f"{name}: perf", "perf is not installed")
        return
    got, errors = emulate.by_perf(path)
    equal(f"{name}: perf decodes it", errors, [])
    got, truth = (intelpt.hexadecimal(each) for each in (got.get(ptkernel.PID, []), truth))
    check(f"{name}: perf finds the same", got == truth, intelpt.first_difference(got, truth))


def test_kernel(folder, name, seed, rounds, extras=()):
    ran = ptkernel.Run(seed, rounds, extras)
    path, kernel = ptkernel.write(os.path.join(folder, name), ran)
    decode(name, path, kernel, ran.ran)
    decode(f"{name}, without kcore", os.path.join(path, "data"), kernel, ran.ran)
    ask_perf(name, path, ran.ran)
    return path, ran


def test_ignored(path, ran):
    """Without its changes, the code does not fit the packets."""
    ran.pokes = []
    with open(os.path.join(path, "data"), "wb") as f:
        f.write(ptkernel.perf_data(ran))
    done = kscope("info", path)
    check("without the changes, it cannot be decoded", done.returncode == 1, done.stderr)


def test_guests(folder):
    """perf takes a guest's code for the host's if it is not told otherwise."""
    ran = ptkernel.Run(11, 500, EXTRAS, guests=True)
    decode("guests", *ptkernel.write(os.path.join(folder, "guests"), ran), ran.ran)


def traced(folder, *cpus):
    """(instructions, those with a known root)"""
    path, kernel = ptkernel.write(os.path.join(folder, f"cpus {cpus}"), ptkernel.Cpus(cpus))
    done = kscope("info", path, "--kernel", kernel)
    equal(f"cpus {cpus}: kscope decodes it", (done.returncode, done.stderr), (0, ""))
    return tuple(map(int, re.search(r"branches, (\d+) instructions, (\d+) in stacks", done.stdout).groups()))


def test_cpus(folder):
    """Threads that nobody knows are one on each cpu: a pause of one does not concern the other."""
    first, second, both = traced(folder, 0), traced(folder, 1), traced(folder, 0, 1)
    equal("cpus: all instructions of the second", second, 2 * (4 * ptkernel.Cpus.ROUNDS + 8,))
    equal("cpus: each alone", both, tuple(map(sum, zip(first, second))))
    check("cpus: the roots are known", first[0] == first[1] > 0, first)


with scratch() as place:
    for number in range(3):
        test_kernel(place, f"changes {number}", number, 60)
        last = test_kernel(place, f"newer packets {number}", 10 + number, 60, EXTRAS)
    test_kernel(place, "much trace", 20, 3000, EXTRAS)
    test_ignored(*last)
    test_guests(place)
    test_cpus(place)
finish()
