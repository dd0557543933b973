#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A stream of version 5 as perf.data: perf shows its tasks, events and chains, kernel and user code."""
import os
import re
import shutil
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import check, equal, finish, kscope, run, scratch
from kit.wire_write import Target, event, map_, sample, task

KERNEL = 0xffff000000080000

def build(folder, name, base, functions):
    """An ELF whose functions have 64 bytes each, from `base` on. Returns {function: address}."""
    source = os.path.join(folder, name + ".s")
    with open(source, "w", encoding="ascii") as f:
        f.write(".text\n")
        for function in functions:
            f.write(f".globl {function}\n.type {function}, %function\n{function}:\n.skip 64\n"
                    f".size {function}, 64\n")
    done = run("clang", "--target=aarch64-linux-gnu", "-nostdlib", "-fuse-ld=lld", "-static",
               "-Wl,--build-id=sha1", f"-Wl,-Ttext={base:#x}", f"-Wl,-e,{functions[0]}",
               "-o", os.path.join(folder, name), source)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return {function: base + 64 * n for n, function in enumerate(functions)}


def text_offset(path):
    """Where the code is in the file."""
    with open(path, "rb") as f:
        data = f.read()
    first, = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    for at in range(first, first + size * count, size):
        kind, flags, offset, address = struct.unpack_from("<IIQQ", data, at)
        if kind == 1 and flags & 1:
            return offset + KERNEL - address
    raise ValueError("no code")


def perf(home, *words):
    return run("perf", *words, env=dict(os.environ, PAGER="cat", PERF_PAGER="cat", HOME=home))


def blocks(text):
    """[(comm, pid, tid, event, [symbol (binary)...])] of perf script."""
    found = []
    for block in text.strip().split("\n\n"):
        head, *frames = block.splitlines()
        match = re.match(r"(\S+)\s+(-?\d+)/(-?\d+)\s+.*?(\S+):\s*$", head)
        names = [re.match(r"\s*[0-9a-f]+ (\S+) \((.*)\)", frame).groups() for frame in frames]
        found.append(match.groups() + ([f"{name} {os.path.basename(binary)}" for name, binary in names],))
    return found


def hints(name, folder, recording, kernel, *options):
    """Where perf cannot find the kernel's symbols in its cache, kscope says what to do, and that works."""
    data, home = os.path.join(folder, "hint.data"), os.path.join(folder, f"home {name}")
    env = dict(os.environ, HOME=home)
    os.mkdir(home)
    done = kscope("convert", recording, "-o", data, *options, env=env)
    equal(f"{name}: a hint", (done.returncode, done.stderr),
          (0, f"kscope: for the kernel's symbols: perf report -i {data} -k {kernel}\n"))
    equal(f"{name}: --quiet", kscope("convert", recording, "-qo", data, *options, env=env).stderr, "")
    script = "script", "-i", data, "-F", "ip,sym"
    check(f"{name}: perf does not know the kernel", "copy" not in perf(home, *script).stdout)
    check(f"{name}: the hint helps", "copy" in perf(home, *script, "-k", kernel).stdout)
    if "--no-buildid-cache" in options:
        equal(f"{name}: nothing is in the cache", os.listdir(home), [])


def refused(folder, recording):
    """A cache that cannot be written: the output is complete, and kscope says what else helps."""
    data, home = os.path.join(folder, "hint.data"), os.path.join(folder, "a file")
    with open(home, "w", encoding="ascii"):
        pass
    done = kscope("convert", recording, "-o", data, "--build-dir", folder, env=dict(os.environ, HOME=home))
    equal("no cache: a hint", (done.returncode, done.stderr.splitlines()), (0, [
        f"kscope: warning: {home}/.debug: cannot add to the build-id cache: Not a directory",
        f"kscope: for the kernel's symbols: perf report -i {data} -k {folder}/kernel.elf"]))
    check("no cache: the output is there", os.path.getsize(data))


def beside_cache(folder, recording):
    """A kernel in a folder whose name begins as the cache's is not in the cache."""
    data, home = os.path.join(folder, "hint.data"), os.path.join(folder, "home beside")
    kernel = os.path.join(home, ".debug-kernels", "kernel.elf")
    os.makedirs(os.path.dirname(kernel))
    shutil.copy(os.path.join(folder, "kernel.elf"), kernel)
    done = kscope("convert", recording, "-o", data, "--kernel", kernel, "--build-dir", folder,
                  env=dict(os.environ, HOME=home))
    equal("beside the cache: no messages", (done.returncode, done.stderr), (0, ""))
    done = perf(home, "script", "-i", data, "-F", "ip,sym")
    check("beside the cache: perf script", "copy" in done.stdout, done.stdout)


def without_build_id(folder, recording):
    kernel = os.path.join(folder, "plain.elf")
    run("llvm-objcopy", "--remove-section=.note.gnu.build-id", os.path.join(folder, "kernel.elf"), kernel)
    hints("without build ID", folder, recording, kernel, "--kernel", kernel, "--build-dir", folder)


def test(name, folder, kernel_map, slide, *options):
    kernel = build(folder, "kernel.elf", KERNEL, ["vectors", "syscall", "copy"])
    kernel = {function: address + slide for function, address in kernel.items()}
    user = build(folder, "shell.elf", 0x400000, ["_start", "main", "write"])
    main, write = user["main"] + 8, user["write"] + 4
    stream = Target()
    stream.describe(event(0, "timer", 1, 0, unit="ns", frequency=1000), event(1, "cycles", 0, 0, 100000),
                    task(3, "shell"), task(4, "helper", process=3), kernel_map, map_("shell.elf", 3))
    stream.take(
        sample(1000, kernel["copy"] + 4, space=0, task=3, weight=10,
               frames=[kernel["copy"] + 4, kernel["syscall"] + 8, write, main], user_frames=2),
        sample(2000, kernel["copy"] + 8, space=0, task=4, event=1, weight=100000,
               frames=[kernel["copy"] + 8, kernel["syscall"] + 8]),
        sample(3000, main, level=0, space=0, task=4, weight=20, frames=[main, user["_start"] + 4]),
        sample(4000, kernel["vectors"], space=0, weight=30, frames=[kernel["vectors"]]))
    data, recording = os.path.join(folder, "perf.data"), os.path.join(folder, "a.kscope")
    with open(recording, "wb") as f:
        f.write(stream.end())
    hints(f"{name}, --no-buildid-cache", folder, recording, os.path.join(folder, "kernel.elf"), "--build-dir", folder,
          "--no-buildid-cache", *options)
    done = kscope("convert", recording, "-o", data, "--build-dir", folder, *options, env=dict(os.environ, HOME=folder))
    equal(f"{name}: no messages", (done.returncode, done.stderr), (0, ""))
    done = perf(folder, "script", "-i", data, "-F", "comm,pid,tid,event,ip,sym,dso")
    equal(f"{name}: perf script says nothing else", done.stderr, "")
    image = "[kernel.kallsyms]"
    equal(f"{name}: perf script", [(comm, pid, tid, what, [frame.replace("kernel.elf", image) for frame in chain])
                                   for comm, pid, tid, what, chain in blocks(done.stdout)], [
        ("shell", "3", "3", "timer", [f"copy {image}", f"syscall {image}", "write shell.elf", "main shell.elf"]),
        ("helper", "3", "4", "cycles", [f"copy {image}", f"syscall {image}"]),
        ("helper", "3", "4", "timer", ["main shell.elf", "_start shell.elf"]),
        ("kernel", "0", "0", "timer", [f"vectors {image}"])])
    done = kscope("report", recording, "--build-dir", folder, "-e", "timer", *options)
    check(f"{name}: kscope's own report has the same names",
          all(word in done.stdout for word in ("copy", "syscall", "write", "main", "vectors")), done.stdout)
    return recording


with scratch() as SCRATCH:
    test("linked", SCRATCH, map_("kernel.elf"), 0)
    RECORDING = test("kernel option", SCRATCH, map_("os.elf"), 0, "--kernel", os.path.join(SCRATCH, "kernel.elf"))
    without_build_id(SCRATCH, RECORDING)
    beside_cache(SCRATCH, RECORDING)
    test("moved", SCRATCH, map_("/boot/kernel.elf", address=KERNEL + 0x200000, size=0x1000,
                                offset=text_offset(os.path.join(SCRATCH, "kernel.elf"))), 0x200000)
    refused(SCRATCH, RECORDING)
finish()
