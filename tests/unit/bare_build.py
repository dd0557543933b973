#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""kscope builds and works without the optional libraries, and its messages name what is missing."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import ELFS, ROOT, check, demo_samples, equal, finish, run, scratch


def main():
    with scratch() as folder:
        env = {k: v for k, v in os.environ.items() if k not in ("CFLAGS", "BUILD", "MAKEFLAGS")}
        none = [f"HAVE_{name}=" for name in ("LIBDW", "LIBIBERTY", "ZSTD", "ZLIB", "LZMA", "LZ4")]
        built = run("make", "-C", ROOT, "-j2", f"BUILD={folder}/build", "CFLAGS=-O0 -Werror", *none,
                    env=env)
        if not check("it builds", built.returncode == 0, built.stderr[-500:]):
            finish()
        bare = os.path.join(folder, "build", "kscope")
        samples = demo_samples(folder)
        done = run(bare, "convert", samples, "-b", ELFS, "-t", "folded", "-o", "-")
        check("it says why there are no names", done.returncode == 1 and "built without lib" in
              done.stderr, done.stderr)
        equal("every sample is there all the same",
              sum(int(line.rsplit(" ", 1)[1]) for line in done.stdout.splitlines()), 10000)
        done = run(bare, "archive", samples, "-b", ELFS)
        check("an archive is not compressed", done.returncode in (0, 1) and
              os.path.exists(samples + ".tar"), done.stderr)
        again = run(bare, "convert", samples + ".tar", "-t", "folded", "-o", "-")
        equal("... and is read", again.stdout,
              run(bare, "convert", samples, "-b", ELFS, "-t", "folded", "-o", "-").stdout)
        packed = os.path.join(folder, "a.zst")
        with open(packed, "wb") as f:
            f.write(run("zstd", "-c", samples, binary=True).stdout)
        done = run(bare, "info", packed)
        check("it says why it cannot unpack", done.returncode == 3 and "built without" in done.stderr,
              done.stderr)
    finish()


if __name__ == "__main__":
    main()
