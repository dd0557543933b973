# SPDX-License-Identifier: GPL-2.0-or-later
"""Recordings of functions that a test draws by chance, with a seed: dumps of samples, as kscope diff compares them."""
import random

HEAD = 'kscope-dump 1\nsource id=1 name="cycles" type=0 config=0x0 period=1000\n'


def shares(nr=60, **changes):
    """{function: how often it runs}: few hot functions, many cold ones. changes: factors, f3=1.5."""
    base = {f"f{i}": 1 / (i + 1) for i in range(nr)}
    return {name: base.get(name, 1) * changes.get(name, 1) for name in [*base, *(set(changes) - set(base))]}


def drawn(seed, nr, functions, burst=1, weights=None, times=True):
    """nr samples, 1 ms from each other. burst: about how many in a row are in the same function. weights: each has a
    weight up to that; else 1000."""
    rng, lines, names = random.Random(seed), [], list(functions)
    while len(lines) < nr:
        name = rng.choices(names, functions.values())[0]
        for _ in range(min(rng.randint(1, 2 * burst - 1), nr - len(lines))):
            time = f"time={1 + len(lines) / 1000:.3f} " if times else ""
            weight = rng.randrange(1, weights + 1) if weights else 1000
            lines.append(f'sample {time}cpu=0 task=1/1 source=1 weight={weight} : named "{name}"@"p" "main"@"p"\n')
    return HEAD + "".join(lines)
