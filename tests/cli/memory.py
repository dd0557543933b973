#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Small inputs that ask for much memory, and what happens when there is none."""
import os
import resource
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "golden"))
from kit import KSCOPE, check, equal, exits, finish, kscope, read_folded, scratch, skip
from perfdata_make import File, USER

MEGABYTE = 1 << 20


def limited(megabytes, *words, **more):
    """kscope with so much address space."""
    limit = megabytes * MEGABYTE
    return kscope(*words, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
                  **more)


def forks(maps, children):
    """A process with many maps, and many children of it, each with one more map and a sample in each."""
    f = File()
    yield f.comm("parent")
    for n in range(maps):
        yield f.mmap2(0x1000000 + n * 0x2000, 0x1000, 0, f"/bin/parent{n}")
    for n in range(children):
        pid, time = 1000 + n, 10 + 10 * n
        yield f.fork(pid, pid, 100, time)
        yield f.mmap2(0x400000, 0x1000, 0, f"/bin/child{n % 3}", time + 1, pid=pid)
        yield f.sample([USER, 0x400100], time + 2, pid=pid, tid=pid)
        yield f.sample([USER, 0x1000100 + n % maps * 0x2000], time + 3, pid=pid, tid=pid)
    yield f.sample([USER, 0x400100], 10 + 10 * children)


def test_forks(folder):
    """20000 processes of 3000 maps each were 2 GB."""
    path, maps, children = os.path.join(folder, "forks.data"), 3000, 20000
    with open(path, "wb") as f:
        f.write(File().file(b"".join(forks(maps, children))))
    done = limited(400, "convert", path, "-t", "folded", "--root", "none", "-o", "-")
    exits("children share the maps of their parent", done, 0)
    stacks = read_folded(done.stdout)
    equal("each child has its own map", [stacks.get(f"child{n}+0x100") for n in range(3)],
          [6667, 6667, 6666])
    equal("and those of the parent",
          {stacks.get(f"parent{n}+0x100") for n in range(maps)}, {6, 7})
    equal("and the parent has no map of a child", stacks.get("[unknown]"), 1)


with open(KSCOPE, "rb") as program:
    has_sanitizer = b"__asan_init" in program.read()
with scratch() as temp:
    if has_sanitizer:
        skip("memory", "sanitizers need more address space than a limit leaves")
    else:
        test_forks(temp)
finish()
