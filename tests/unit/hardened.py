#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What the Makefile builds is hardened: the program, the plugin of QEMU, the filter of perf."""
import glob
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import BUILD, KSCOPE, ROOT, check, finish, run

# Each with a folder of its objects: static libraries in it are hardened in any case.
FILES = [(KSCOPE, "src/base"), (os.path.join(BUILD, "kscope-qemu.so"), "plugin"),
         (os.path.join(BUILD, "libkscope-dlfilter.so"), "src/base")]


def compiler_flags():
    """The CFLAGS of this run of make, which built the files."""
    return run("make", "-C", ROOT, "--no-print-directory", "-s", "print-link",
               f"BUILD={BUILD}").stdout.split()


def is_fortified(path, flags):
    """Whether it should be. The plugin never has sanitizers in it."""
    level = [flag for flag in flags if flag.startswith("-O")][-1:]
    sanitized = any(flag.startswith("-fsanitize") for flag in flags)
    return level not in ([], ["-O0"]) and not (sanitized and "qemu" not in os.path.basename(path))


def test_file(path, folder, flags):
    name = os.path.basename(path)
    show = {kind: run("readelf", "-W", kind, path, env=dict(os.environ, LC_ALL="C")).stdout
            for kind in ("-h", "-l", "-d")}
    wanted = run("nm", "-u", *glob.glob(os.path.join(BUILD, "obj", folder, "*.o"))).stdout
    check(f"{name}: at any address", re.search(r"Type:\s+DYN ", show["-h"]), show["-h"])
    check(f"{name}: no relocations in code", "TEXTREL" not in show["-d"], show["-d"])
    check(f"{name}: RELRO", "GNU_RELRO" in show["-l"], show["-l"])
    check(f"{name}: all of it, bound at the start", re.search(r"\(FLAGS_1\).*\bNOW\b", show["-d"]), show["-d"])
    check(f"{name}: no code on the stack", re.search(r"GNU_STACK.* RW +0x", show["-l"]), show["-l"])
    check(f"{name}: no segment is both written and run", not re.search(r"LOAD .* RWE ", show["-l"]), show["-l"])
    check(f"{name}: the stack is guarded", "__stack_chk_fail" in wanted, "no __stack_chk_fail")
    if is_fortified(path, flags):
        check(f"{name}: FORTIFY", re.search(r" U __\w+_chk$", wanted, re.M), "no checked functions")


def main():
    flags = compiler_flags()
    check("make prints its flags", flags, "nothing")
    for path, folder in FILES:
        test_file(path, folder, flags)
    done = run("readelf", "-W", "-d", KSCOPE)
    check("kscope: PIE", re.search(r"\(FLAGS_1\).*\bPIE\b", done.stdout), done.stdout)
    finish()


if __name__ == "__main__":
    main()
