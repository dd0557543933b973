#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""From the sampler to perf, in the formats of other profilers: kprof2perf converts the one of Akaros, toperf the one of
seL4. perf script prints each sample as it was taken, with the names of its functions."""
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from akaros_perf import LIB_BASE, STACKS, Machine, text_segment
from kit import ELFS, KSCOPE, equal, exits, finish, run, scratch, skip
from kit.target_formats import Target, Taken, play, step

# The stacks of the user's programs, as they were when one of them entered the kernel.
ENTRY = ["mid_work", "user_main"]
LINE = re.compile(r"^\s*(\S+)\s+(\d+)\s+\[(\d+)\]\s+([\d.]+):\s+(\d+)\s+(\S+?):", re.M)


def perf_script(data, *words):
    """[(comm, pid, cpu, time, period, event, names of functions)], and what perf complains about."""
    env = dict(os.environ, PAGER="cat")
    done = run("perf", "script", "--ns", "-F", "comm,pid,cpu,time,period,event,ip,sym", "-i", data, *words, env=env)
    found = []
    for block in done.stdout.strip().split("\n\n"):
        head = LINE.match(block)
        comm, pid, cpu, time, period, event = head.groups()
        found.append((comm, int(pid), int(cpu), int(time.replace(".", "")), int(period), event,
                      tuple(line.split()[1] for line in block.splitlines()[1:])))
    return found, done.stderr


def drop_in(folder, name):
    path = os.path.join(folder, name)
    os.symlink(KSCOPE, path)
    return path


def akaros_samples(machine):
    """Each stack in turn; those in the kernel have a user's stack behind them, or no task."""
    for nth in range(200):
        where, names, _ = STACKS[nth % len(STACKS)]
        in_kernel = where == "kernel"
        task = (5, 0)[nth // len(STACKS) % 2] if in_kernel else (5, 6)[nth // len(STACKS) % 2]
        yield names, Taken(10_000_000 + 1_000_000 * nth, nth % 4, 0, 1_000_000, task, not in_kernel,
                           tuple(machine.chain(names)), tuple(machine.chain(ENTRY)) if in_kernel and task else ())


def test_kprof2perf(folder):
    machine = Machine(folder)
    steps = ["task 5 0 0 app", "task 6 5 0 thread", "tell format kpdata"]
    for path, load in (("/bin/app", 0), ("/lib/libwork.so", LIB_BASE)):
        offset, address = text_segment(machine.root + path)
        page = address & 0xFFF
        steps.append(f"map 5 {load + address - page:x} 1000 {offset - page:x} 0 {path}")
    taken = list(akaros_samples(machine))
    stream, _ = play(*steps, "say start", "serve", *(step(one) for _, one in taken), "say stop", "serve")
    source, data = os.path.join(folder, "kpdata"), os.path.join(folder, "kpdata.data")
    with open(source, "wb") as f:
        f.write(stream)
    done = run(drop_in(folder, "kprof2perf"), "-k", machine.kernel, "-i", source, "-o", data)
    exits("kprof2perf", done, 0)
    equal("kprof2perf: no complaints", done.stderr, "")
    found, complaints = perf_script(data, "--vmlinux", machine.kernel, "--symfs", machine.root)
    equal("kprof2perf: perf script has no complaints", complaints, "")
    equal("kprof2perf: perf script prints all samples", found,
          [("app" if one.task else "[kernel]", 5 if one.task else 0, one.cpu, one.time, 1_000_000, "cpu-clock",
            tuple(names)) for names, one in taken])


def sel4_samples():
    """Stacks of the demo's programs, of functions that are there."""
    found = []
    for pid, elf in enumerate(("hasher.elf", "sorter.elf"), 1):
        rows = re.findall(r"^\s*\d+: (\w+)\s+(\d+) FUNC .* (\w+)$", run("readelf", "-sW", os.path.join(ELFS, elf)).stdout,
                          re.M)
        functions = sorted((name, int(address, 16) + 8) for address, size, name in rows if int(size) > 8)
        for nth in range(60):
            stack = [functions[(nth + i) % len(functions)] for i in range(1 + nth % 12)]
            time = (3 << 32) + 1_000_000 * (2 * nth + pid)
            found.append((elf, tuple(name for name, _ in stack),
                          Taken(time, nth % 4, 0, 1_200_000 + nth, pid, True, tuple(ip for _, ip in stack), ())))
    return sorted(found, key=lambda row: row[2].time)


def test_toperf(folder):
    """netconn records, toperf converts: the way of the original's users."""
    taken = sel4_samples()
    steps = ["task 1 0 0 one", "task 2 0 0 two", "map 1 0 0 0 0 /x/hasher.elf", "map 2 0 0 0 0 /x/sorter.elf",
             "tell format sel4", "connect", "await running", *(step(one) for _, _, one in taken), "await gone"]
    with Target(folder, *steps) as target:
        done = run(drop_in(folder, "netconn"), "--ip", "127.0.0.1", "--port", target.port,
                   input=b"connect\nstart\nstop\nexit\n", cwd=folder)
        exits("netconn", done, 0)
    data = os.path.join(folder, "sel4.data")
    done = run(drop_in(folder, "toperf"), "-s", os.path.join(folder, "samples.json"), "-b", ELFS, "-o", data)
    exits("toperf", done, 0)
    equal("toperf: no complaints", done.stderr, "")
    found, complaints = perf_script(data)
    equal("toperf: perf script has no complaints", complaints, "")
    equal("toperf: perf script prints all samples", found,
          [(elf, one.task, one.cpu, one.time, one.weight, "cycles", names) for elf, names, one in taken])


def main():
    missing = [tool for tool in ("perf", "clang", "ld.lld", "nm", "readelf") if not shutil.which(tool)]
    if missing:
        skip("target_formats", f"no {', '.join(missing)}")
        finish()
    with scratch() as folder:
        test_kprof2perf(folder)
        test_toperf(folder)
    finish()


if __name__ == "__main__":
    main()
