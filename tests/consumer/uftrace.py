#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Folders that kscope writes, in the real uftrace, and folders that uftrace records, in kscope.

The demo kernel prints how often its functions were called: each command of uftrace has to count the same.
"""
import collections
import os
import pty
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import HANGS, ROOT, check, equal, exits, finish, guests, kscope, run, scratch, skip, uftrace

PROGRAM = r"""
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int sum;
int leaf(int a, const char *text, double d) { sum += a + text[0] + (int)d; return sum; }
int work(int n) { for (int i = 0; i < n; i++) leaf(i, "some text", 1.5); return sum; }
int fall(int n) { return n ? fall(n - 1) + 1 : work(2); }
void *thread(void *n) { work(*(int *)n); return NULL; }
int main(int argc, char **argv)
{
	pthread_t threads[3];
	int n = 4;

	fall(20);
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, thread, &n);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	if (argc > 1) {
		void *plug = dlopen(argv[1], RTLD_NOW);
		((void (*)(void))dlsym(plug, "plug"))();
	}
	if (!fork()) {
		work(7);
		exit(0);
	}
	wait(NULL);
	return 0;
}
"""
PLUG = "void inside(void) { __asm__ volatile(\"\"); } void plug(void) { for (int i = 0; i < 9; i++) inside(); }\n"
ARGUMENTS = ["-A", "leaf@arg1,arg2/s,fparg1", "-R", "leaf@retval", "-A", "work@arg1", "-R", "fall@retval/i64"]
COMMANDS = {"report": uftrace.report, "graph": uftrace.graph, "replay": uftrace.replay,
            "dump": uftrace.dump}


def write(name, recording, folder, *options):
    done = kscope("convert", recording, "-t", "uftrace", "-o", folder, *options)
    return exits(name, done, 0)


def known(counted, names):
    return {name: counted.get(name, 0) for name in names}


def truth(serial):
    """{function: calls} that the guest prints."""
    return {name: int(calls) for name, calls in re.findall(r"^truth: \S+ (\S+) (\d+) ", serial, re.M)}


def shows_tui(folder):
    """Whether uftrace tui offers a graph on a terminal, and ends when it is told to."""
    shown, (master, slave) = b"", pty.openpty()
    process = subprocess.Popen(["uftrace", "tui", "-d", folder], stdin=slave, stdout=slave,
                               stderr=slave, env=dict(os.environ, TERM="xterm", LINES="40", COLUMNS="120"))
    os.close(slave)
    os.set_blocking(master, False)
    end = time.monotonic() + HANGS
    while process.poll() is None and time.monotonic() < end:
        try:
            shown += os.read(master, 65536)
        except BlockingIOError:
            time.sleep(0.1)
        except OSError:
            break
        if b"call Graph for session" in shown:
            os.write(master, b"q")
    process.kill()
    process.wait()
    os.close(master)
    return process.returncode == 0 and shown.count(b"call Graph for session") < 9, \
        f"{process.returncode} {shown[-300:]}"


def test_demo(folder, machine):
    """The demo kernel: with all four cpus, tasks, programs, interrupts and system calls."""
    recording, out = os.path.join(folder, "demo.kscope"), os.path.join(folder, "demo")
    boot = guests.record(guests.demo(machine, words="scale=1"), recording, ["--trace"], "backports")
    want = truth(boot.serial)
    if not check(f"{machine}: the guest says what it did", len(want) > 15, boot.errors):
        return
    if not write(f"{machine}: is written", recording, out):
        return
    for command, count in COMMANDS.items():
        equal(f"{machine}: calls in uftrace {command}", known(count(out), want), want)
    check(f"{machine}: uftrace tui", *shows_tui(out))
    tasks = run("uftrace", "report", "--no-pager", "--task", "-d", out).stdout
    check(f"{machine}: names of tasks", {"dice.elf", "knit.elf", "task_start"} <= set(tasks.split()),
          tasks)
    test_addresses(machine, out)
    test_round(machine, recording, out)
    test_windows(machine, recording, out, want)
    if write(f"{machine}: is written with inlined functions", recording, out, "--inlines"):
        want.update(guests.inlined(boot.serial))
        for command, count in COMMANDS.items():
            equal(f"{machine}: calls and inlined functions in uftrace {command}", known(count(out), want), want)


def test_addresses(machine, out):
    """Addresses are those of the binaries, and the binary has its name."""
    guest = guests.demo(machine)
    symbols = dict(line.split()[::2][::-1] for line in run("nm", guest.kernel).stdout.splitlines())
    text = run("uftrace", "dump", "--no-pager", "-d", out).stdout
    got = re.search(r"\[entry\] compress_block\(([0-9a-f]+)\)", text)
    equal(f"{machine}: the address of a function", got and got[1].zfill(12),
          symbols["compress_block"][-12:])
    text = run("uftrace", "replay", "--no-pager", "-f", "module", "-d", out).stdout
    modules = {function: module for module, function in re.findall(r"^ *(\S+) \| *(\w+)\(", text, re.M)}
    equal(f"{machine}: binaries of functions",
          {name: modules.get(name) for name in ["compress_block", "throw_dice", "knit_row"]},
          {"compress_block": "kernel-fp.elf", "throw_dice": "dice.elf", "knit_row": "knit.elf"})


def test_round(machine, recording, out):
    """What was written, read and written again, has the same calls and the same names."""
    again = out + "-again"
    if not write(f"{machine}: is read", out, again):
        return
    equal(f"{machine}: calls after a round", uftrace.report(again), uftrace.report(out))
    flat = [kscope("report", path).returncode for path in (recording, out)]
    equal(f"{machine}: kscope report takes it", flat, [0, 0])
    first, second = uftrace.read(out), uftrace.read(again)
    dats = sorted(name for name in first if name.endswith(".dat") and first[name])
    equal(f"{machine}: the same threads", sorted(n for n in second if n.endswith(".dat")), dats)
    differ = [name for name in dats if times(first[name]) != times(second[name])]
    equal(f"{machine}: the same times and depths", differ, [])


def times(records):
    """Of all records, without their addresses, which may be moved."""
    return [(records[at:at + 8], records[at + 8:at + 10]) for at in range(0, len(records), 16)]


def test_windows(machine, recording, out, want):
    """A part of a trace: what began before is entered where it begins, what goes on has no exit."""
    stamps = [float(line.split()[0]) for line
              in run("uftrace", "dump", "--no-pager", "-d", out).stdout.splitlines()
              if re.match(r" *\d+\.\d{9} ", line)]
    middle = f"{stamps[len(stamps) // 2]:.9f}"
    parts = []
    for part, span in [("first", f",{middle}"), ("second", f"{middle},")]:
        folder = f"{out}-{part}"
        if not write(f"{machine}: the {part} half", recording, folder, "--time", span):
            return
        parts.append(collections.Counter(uftrace.report(folder)))
    whole, both = uftrace.report(out), parts[0] + parts[1]
    # A call that is in both halves counts in each. Only those on the stack in the middle are.
    fewer = {name: (both[name], whole[name]) for name in want if both[name] < whole[name]}
    equal(f"{machine}: no call is in neither half", fewer, {})
    more = sum(both[name] - whole[name] for name in want)
    check(f"{machine}: few calls are in both halves", more < 40, more)


def compile_program(folder, flags):
    program, plug = os.path.join(folder, "program"), os.path.join(folder, "plug.so")
    for source, out, more in [(PROGRAM, program, ["-ldl", "-lpthread"]), (PLUG, plug, ["-shared", "-fPIC"])]:
        done = run("cc", "-g", "-O0", *flags, "-x", "c", "-", "-o", out, *more, input=source.encode())
        if done.returncode:
            raise RuntimeError(done.stderr)
    return [program, plug]


def test_perfetto(name, data, out, want):
    """The same calls, in Perfetto's trace processor."""
    exits(f"{name}: a timeline for Perfetto", kscope("convert", data, "-o", out), 0)
    done = run("node", os.path.join(ROOT, "tests", "tools", "perfetto.mjs"), out,
               "select name, count(*) from slice group by name")
    got = dict(line.split("\t") for line in done.stdout.splitlines()[1:])
    equal(f"{name}: calls in Perfetto", {key: int(nr) for key, nr in got.items()} or done.stderr, want)


def test_recorded(folder, name, flags, options):
    """What uftrace records: kscope counts the calls that uftrace does, and names them alike."""
    data, again = os.path.join(folder, "data"), os.path.join(folder, "again")
    shutil.rmtree(data, ignore_errors=True)
    done = run("uftrace", "record", *options, "-d", data, *compile_program(folder, flags))
    want = uftrace.report(data)
    if not check(f"{name}: uftrace records it", want.get("leaf") == 2 + 3 * 4 + 7 and
                 want.get("inside") == 9, f"{want} {done.stderr}"):
        return
    if not write(f"{name}: kscope reads it", data, again):
        return
    equal(f"{name}: calls", uftrace.report(again), want)
    folded = kscope("convert", data, "-t", "folded", "-o", "-").stdout
    stack = "program;" + ";".join(["main"] + ["fall"] * 21 + ["work", "leaf"])
    test_perfetto(name, data, os.path.join(folder, "data.pftrace"), want)
    check(f"{name}: a stack", f"\n{stack} " in "\n" + folded, folded)


def main():
    if not shutil.which("uftrace"):
        skip("uftrace", "uftrace is not installed")
        finish()
    with scratch() as folder:
        test_recorded(folder, "-pg", ["-pg"], [])
        test_recorded(folder, "-finstrument-functions", ["-finstrument-functions"], [])
        test_recorded(folder, "arguments", ["-pg"], ARGUMENTS)
        for machine in ["x86_64", "aarch64"]:
            if guests.missing():
                skip(machine, guests.missing())
            else:
                test_demo(folder, machine)
    finish()


if __name__ == "__main__":
    main()
