#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""src/base/stats: its p-values are those of sums of exact fractions, of the integral of Student's density, and of the
normal distribution for large counts."""
import math
import os
import random
import sys
from fractions import Fraction

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import BUILD, check, equal, finish, no_problems, run

STATSTOOL = os.path.join(BUILD, "tests", "statstool")


def ask(lines):
    done = run(STATSTOOL, input="".join(f"{line}\n" for line in lines).encode())
    check("statstool ends well", done.returncode == 0, done.stderr)
    return [[float(word) for word in line.split()] for line in done.stdout.splitlines()]


def compare(name, questions, precision):
    """questions: lines and the p-values that they should have."""
    got = [answer[0] for answer in ask(line for line, _ in questions)]
    wrong = [f"{line}: {p!r} instead of {want!r}" for (line, want), p in zip(questions, got)
             if not math.isclose(p, want, rel_tol=precision, abs_tol=1e-300)]
    no_problems(f"{name}: {len(questions)} tests", wrong + [""] * (len(got) != len(questions)))


def student(t, df, steps=40000):
    """Two tails of the density, with t = sqrt(df) / tan(u * u), where it is smooth, by Simpson's rule."""
    width = math.sqrt(math.atan2(math.sqrt(df), abs(t))) / steps
    heights = [2 * i * width * math.sin((i * width) ** 2) ** (df - 1) for i in range(steps + 1)]
    area = (heights[0] + heights[-1] + 4 * sum(heights[1:-1:2]) + 2 * sum(heights[2:-1:2])) * width / 3
    return 2 * area * math.exp(math.lgamma((df + 1) / 2) - math.lgamma(df / 2)) / math.sqrt(math.pi)


def two_tails(masses, at):
    """masses: of 0, 1, 2... Twice the smaller tail, as the tests define it."""
    return float(min(2 * min(sum(masses[:at + 1]), sum(masses[at:])), 1))


def fisher(hits, misses):
    n, first, k = sum(hits) + sum(misses), hits[0] + misses[0], sum(hits)
    all_ = math.comb(n, first)
    return two_tails([Fraction(math.comb(k, i) * math.comb(n - k, first - i), all_) if i <= first else Fraction(0)
                      for i in range(k + 1)], hits[0])


def binomial(hits, share):
    k, share = sum(hits), Fraction(share)
    return two_tails([math.comb(k, i) * share ** i * (1 - share) ** (k - i) for i in range(k + 1)], hits[0])


def holm(ps):
    """By the definition: step down through the sorted tests."""
    adjusted, largest = {}, 0
    for rank, i in enumerate(sorted(range(len(ps)), key=lambda i: ps[i])):
        largest = max(largest, min(1, ps[i] * (len(ps) - rank)))
        adjusted[i] = largest
    return [adjusted[i] for i in range(len(ps))]


def test_student():
    compare("Student's t", [(f"student {t!r} {df!r}", student(t, df)) for t in (0.01, 0.5, 1, 2, -3.5, 7, 20, 300)
                            for df in (1, 1.7, 2, 3, 4.25, 8, 31, 62.5, 500)], 1e-8)
    equal("Student's t: nothing, everything, nonsense",
          ask(["student 0 5", "student inf 5", "student nan 5", "student 3 0", "student 3 -1"]),
          [[1], [0], [1], [1], [1]])


def test_counts():
    rng = random.Random(5)
    tables = [([a, b], [c, d]) for a in range(4) for b in range(4) for c in (1, 2, 7) for d in (1, 5)
              if a + b]
    tables += [([rng.randrange(60), rng.randrange(1, 60)], [rng.randrange(1, 300), rng.randrange(1, 300)])
               for _ in range(200)]
    compare("Fisher", [(f"fisher {h[0]} {h[1]} {m[0]} {m[1]}", fisher(h, m)) for h, m in tables], 1e-9)
    pairs = [([rng.randrange(80), rng.randrange(1, 80)], rng.choice([.5, .25, .75, .0625])) for _ in range(200)]
    compare("binomial", [(f"binomial {h[0]} {h[1]} {e}", binomial(h, e)) for h, e in pairs], 1e-9)
    equal("no hits, no misses, no side: nothing to compare",
          ask(["fisher 0 0 5 5", "fisher 5 5 0 0", "fisher 0 5 0 5", "binomial 0 0 .5", "binomial 3 3 1"]), [[1]] * 5)


def test_large_counts():
    """The normal distribution is near enough; the largest counts are as if there were fewer."""
    questions = []
    for scale in (1e5, 1e6, 1e7, 1e8):
        for z in (0.5, 2, 4):
            # Half of each side hits: the variance of the hits of one side is scale / 8.
            off = round(z * math.sqrt(scale / 8))
            half = scale / 2
            questions.append((f"fisher {half + off!r} {half - off!r} {half - off!r} {half + off!r}",
                              math.erfc((off - .5) / math.sqrt(scale / 8) / math.sqrt(2))))
    got = [answer[0] for answer in ask(line for line, _ in questions)]
    no_problems("large counts", [f"{line}: {p} instead of {want}" for (line, want), p in zip(questions, got)
                                 if not .97 < p / want < 1.03])
    huge = ask(["fisher 9e18 9e18 9e18 9e18", "fisher 9e18 8e18 9e18 9e18", "fisher 100 200 9e18 9e18",
                "binomial 9e18 9e18 .5", "binomial 100 200 .5"])
    check("huge counts", huge[0] == [1] and huge[1][0] < 1e-9 and huge[3] == [1] and
          math.isclose(huge[2][0], huge[4][0], rel_tol=1e-4), huge)


def test_holm():
    rng = random.Random(3)
    for nr in (1, 2, 7, 100):
        ps = [rng.random() ** 6 for _ in range(nr)]
        got = ask([f"holm {' '.join(map(repr, ps))}"])[0]
        no_problems(f"Holm, {nr} tests", [pair for pair in zip(got, holm(ps)) if not math.isclose(*pair)])
    equal("Holm: the smallest counts most", ask(["holm 0.01 0.04 0.03"]), [[0.03, 0.06, 0.06]])


def main():
    test_student()
    test_counts()
    test_large_counts()
    test_holm()
    finish()


if __name__ == "__main__":
    main()
