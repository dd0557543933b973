#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""make install: programs, man pages, the links of the drop-ins, and the plugin."""
import glob
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import BUILD, ROOT, check, equal, finish, run, scratch

DROP_INS = ["toperf", "netconn", "kprof2perf", "kern-profile"]


def main():
    with scratch() as folder:
        # If make runs this test, its variables would change where `make install` installs.
        env = {key: value for key, value in os.environ.items() if not key.startswith("MAKE") and
               key not in ("MFLAGS", "DESTDIR", "PREFIX")}
        done = run("make", "-C", ROOT, "install", f"BUILD={BUILD}", f"DESTDIR={folder}",
                   "PREFIX=/p", env=env)
        check("install: make is content", done.returncode == 0, done.stderr)
        programs, pages = os.path.join(folder, "p/bin"), os.path.join(folder, "p/share/man/man1")
        equal("install: programs", sorted(os.listdir(programs)), sorted(["kscope"] + DROP_INS))
        equal("install: pages", sorted(os.listdir(pages)),
              sorted(map(os.path.basename, glob.glob(os.path.join(ROOT, "man", "*.1")))))
        for name in DROP_INS:
            equal(f"install: {name} is a link", os.readlink(os.path.join(programs, name)), "kscope")
            done = run(os.path.join(programs, name), "-h")
            check(f"install: {name} runs by its name", done.returncode == 0 and
                  done.stdout.startswith(f"Usage: {name} "), done.stdout + done.stderr)
        env.pop("KSCOPE_PLUGIN", None)
        done = run(os.path.join(programs, "kscope"), "record", "qemu", "--print", "--", "qemu-i386",
                   env=env)
        plugin = os.path.join(os.path.realpath(folder), "p/lib/kscope/kscope-qemu.so")
        check("install: the plugin is found", f"file={plugin}," in done.stdout and
              os.path.exists(plugin), done.stdout + done.stderr)
        filters = os.path.join(folder, "p/lib/kscope")
        equal("install: filters of perf", os.path.realpath(f"{filters}/libperf2perfetto.so"),
              os.path.realpath(f"{filters}/libkscope-dlfilter.so"))
        check("install: the filter is there", os.path.exists(f"{filters}/libperf2perfetto.so"), filters)
        done = run(os.path.join(programs, "toperf"), "--help")
        check("install: toperf --help", done.returncode == 0 and "--samples-path" in done.stdout,
              done.stderr)
    finish()


if __name__ == "__main__":
    main()
