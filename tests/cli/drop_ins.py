#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""kscope under the names of the converters that it replaces."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import ELFS, KSCOPE, check, demo_samples, equal, exits, finish, run, scratch


def test_toperf(samples, folder):
    link = os.path.join(folder, "toperf")
    os.symlink(os.path.abspath(KSCOPE), link)
    done = run(link, "--samples-path", samples, "--build-dir", ELFS, cwd=folder)
    check("toperf: perf.data here by default", done.returncode == 0 and
          os.path.exists(os.path.join(folder, "perf.data")), done.stderr)
    done = run(link, f"-s={samples}", f"-b={ELFS}", "-o=short.data", cwd=folder)
    check("toperf: values after an equals sign", done.returncode == 0 and
          os.path.exists(os.path.join(folder, "short.data")), done.stderr)
    done = run(link, "--samples-path", samples, "--build-dir", ELFS, "-p", cwd=folder)
    equal("toperf: the summary has every sample", done.stdout.count("\nsample "), 10000)
    exits("toperf: needs its arguments", run(link, "-s", samples), 2, "--build-dir")
    check("toperf: help", "--print-summary" in run(link, "--help").stdout)
    exits("toperf: no such folder", run(link, "-s", samples, "-b", "nowhere", cwd=folder), 2,
          "nowhere")


def main():
    with scratch() as folder:
        samples = demo_samples(folder)
        test_toperf(samples, folder)
    finish()


if __name__ == "__main__":
    main()
