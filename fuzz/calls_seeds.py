#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""calls_seeds.py FOLDER: writes inputs of fuzz_calls: random traces of each machine, mostly calls that return, for
each verb and its options."""
import os
import random
import sys

# Of step() in fuzz_calls.c, with weights.
CALL, RETURN, JUMP, TRAP, LEAVE, SWITCH, EDGE, OTHER, CHANGE = 0, 4, 7, 9, 10, 11, 12, 13, 15
STEPS = ((CALL, 30), (RETURN, 24), (JUMP, 12), (TRAP, 6), (LEAVE, 6), (SWITCH, 4), (EDGE, 2), (OTHER, 10), (CHANGE, 6))
MACHINES = (0, 1, 2, 4, 8, 9, 16, 32, 64, 65, 73)
RUNS, SELECTIONS = 24, 16


def trace(rng):
    kinds, weights = zip(*STEPS)
    steps = bytearray()
    for kind in rng.choices(kinds, weights, k=rng.choice((20, 100, 400))):
        steps += bytes((kind, rng.randrange(256)))
        if kind in (CALL, JUMP, TRAP, OTHER):
            steps.append(rng.randrange(256))
    return bytes(steps)


def main():
    rng = random.Random(1)
    for number in range(RUNS * len(MACHINES)):
        head = bytes((MACHINES[number % len(MACHINES)], number // len(MACHINES) % RUNS, number % SELECTIONS))
        with open(os.path.join(sys.argv[1], f"{number:04}"), "wb") as f:
            f.write(head + trace(rng))


if __name__ == "__main__":
    main()
