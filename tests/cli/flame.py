#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""kscope flame: title, totals, palettes, and the comparison of two profiles."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import ELFS, check, demo_samples, equal, exits, finish, kscope, scratch


def test_flame(samples, folder):
    svg = os.path.join(folder, "flame.svg")
    kscope("flame", samples, "-b", ELFS, "-o", svg, "--title", "A <title> & more")
    with open(svg, encoding="utf-8") as f:
        text = f.read()
    check("flame: total and title", "share of 10,000 samples" in text and
          "A &lt;title&gt; &amp; more" in text, text[:600])
    before, after = os.path.join(folder, "before.folded"), os.path.join(folder, "after.folded")
    for path, stacks in ((before, "a;b 90\na;c 10\n"), (after, "a;b 50\na;c 50\n")):
        with open(path, "w", encoding="ascii") as f:
            f.write(stacks)
    equal("flame: differential", kscope("flame", after, "--diff", before, "-o", svg).returncode, 0)
    with open(svg, encoding="utf-8") as f:
        text = f.read()
    check("flame: it tells the change",
          "40.00" in text or "+40" in text or "differ" in text.lower(), text[:600])
    for name, kinds in (("f_[k]", 1), ("f_[i]", 0)):
        with open(before, "w", encoding="ascii") as f:
            f.write(f"main;{name} 1\n")
        text = kscope("flame", before, "--palette", "kernel-user", "-o", "-").stdout
        equal(f"flame: {name} in the legend", text.count(">kernel<"), kinds)
    check("flame: upside down by another name", "<title>Icicle graph</title>" in
          kscope("flame", before, "--icicle", "-o", "-").stdout)
    exits("flame: no such file to compare with",
          kscope("flame", after, "--diff", "nowhere", "-o", svg), 3, "nowhere")


def main():
    with scratch() as folder:
        samples = demo_samples(folder)
        test_flame(samples, folder)
    finish()


if __name__ == "__main__":
    main()
