#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""kscope diff does not take noise for a change, and does not take a change for noise: hundreds of pairs of recordings that
are drawn by chance, with seeds, from the same or from another distribution.

Of pairs without a change, at most 5 % may have a significant row; the p-values of single rows keep their promise, too."""
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import check, finish, kscope, scratch
from kit.samples import drawn, shares

LEVEL = 0.05
SAMPLES = 3000


class Trial:
    """Pairs of recordings, or of groups of `runs` recordings, drawn with these options."""

    def __init__(self, folder, options=(), runs=1, **how):
        self.folder, self.options, self.runs, self.how = folder, options, runs, how

    def compare(self, seed, before, after):
        """The event as --json has it."""
        sides = []
        for side, functions in enumerate((before, after)):
            paths = [os.path.join(self.folder, f"{side}-{run}.dump") for run in range(self.runs)]
            for run, path in enumerate(paths):
                with open(path, "w", encoding="ascii") as f:
                    f.write(drawn(1000 * seed + 100 * side + run, SAMPLES, functions, **self.how))
            sides.append(paths)
        words = sides[0] if self.runs == 1 else [word for path in sides[0] for word in ("--before", path)]
        return json.loads(kscope("diff", *words, *sides[1], "--json", *self.options).stdout)["events"][0]


def alarms(events):
    return sum(event["slower"] + event["faster"] > 0 for event in events)


def test_noise(folder):
    """(what, pairs, where the noise is from, how they are drawn)"""
    for what, nr, method, trial in (
            ("independent samples", 100, "blocks", Trial(folder)),
            ("samples in bursts", 100, "blocks", Trial(folder, burst=10)),
            ("samples in long bursts", 60, "blocks", Trial(folder, burst=30)),
            ("bursts and weights", 60, "blocks", Trial(folder, burst=5, weights=3000)),
            ("numbers instead of shares", 60, "blocks", Trial(folder, ["--absolute"])),
            ("numbers of weights", 60, "blocks", Trial(folder, ["--absolute"], weights=3000)),
            ("no times", 60, "counts", Trial(folder, times=False)),
            ("weights without times", 100, "counts", Trial(folder, times=False, weights=3000)),
            ("several runs", 30, "runs", Trial(folder, runs=3)),
            ("several runs of bursts", 60, "runs", Trial(folder, runs=3, burst=20))):
        events = [trial.compare(seed, shares(), shares()) for seed in range(nr)]
        check(f"{what}: the noise is from {method}", {event["noise_from"] for event in events} == {method})
        check(f"{what}: at most {LEVEL:.0%} of {nr} pairs have a false alarm", alarms(events) <= LEVEL * nr, alarms(events))
        ps = [row["p"] for event in events for row in event["rows"] if row["tested"]]
        for level in (.05, .01, .001):
            below = sum(p <= level for p in ps) / len(ps)
            check(f"{what}: {len(ps)} rows, p is as rare as it says: {level}", len(ps) > 500 and below <= 1.1 * level, below)


def test_why_blocks(folder):
    """No test can recognize the same bursts without times: this shows that the pairs above are hard."""
    trial = Trial(folder, times=False, burst=10)
    events = [trial.compare(seed, shares(), shares()) for seed in range(20)]
    check("bursts taken for independent samples are false alarms", alarms(events) >= 10, alarms(events))


def test_power(folder):
    """A function that takes three times as long, or a new one, is found, and little else is."""
    changed = shares(f4=3, new=.3)
    for what, nr, least, trial in (("independent samples", 40, 1, Trial(folder)),
                                   ("small bursts", 40, .7, Trial(folder, burst=3)),
                                   ("numbers", 20, 1, Trial(folder, ["--absolute"])),
                                   ("no times", 40, 1, Trial(folder, times=False)),
                                   ("weights", 40, 1, Trial(folder, weights=3000)),
                                   ("several runs", 20, .9, Trial(folder, runs=4))):
        events = [trial.compare(seed, shares(), changed) for seed in range(nr)]
        found = [{row["name"]: row["change"] for row in event["rows"] if row["change"] in ("slower", "faster")}
                 for event in events]
        for name in ("f4", "new"):
            hits = sum(rows.get(name) == "slower" for rows in found)
            check(f"{what}: {name} is found", hits >= least * nr, f"{hits} of {nr}")
        others = sum(change == "slower" for rows in found for name, change in rows.items() if name not in ("f4", "new"))
        check(f"{what}: nothing else is slower", others <= LEVEL * nr, f"{others} in {nr}")


def main():
    with scratch() as folder:
        test_noise(folder)
        test_why_blocks(folder)
        test_power(folder)
    finish()


if __name__ == "__main__":
    main()
