#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""kscope record pt: the command line of perf, and what it refuses. See also tests/unit/pt_test.c. Where the
processor has Intel PT, a program is recorded."""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import check, equal, exits, finish, kscope, run, scratch

DEVICE = "/sys/bus/event_source/devices/intel_pt"
PROGRAM = """
#include <unistd.h>
__attribute__((noinline)) void target(void) { __asm__ volatile(""); }
int main(void) { write(1, "up", 2); target(); pause(); return 0; }
"""


def line(*words):
    """The command line of perf, without what depends on the processor."""
    done = kscope("record", "pt", "--print", *words)
    return done.stdout.strip().replace("intel_pt/cyc/", "intel_pt//").replace(" --kcore", "") or done.stderr


def test_lines():
    equal("a program", line("--", "ls", "-l"), "perf record -e intel_pt//u -o perf.data -- ls -l")
    equal("--dry-run is --print", kscope("record", "pt", "--dry-run", "ls").stdout,
          kscope("record", "pt", "--print", "--", "ls").stdout)
    equal("options of the program", line("ls", "-o", "x"), "perf record -e intel_pt//u -o perf.data -- ls -o x")
    equal("strange words are quoted", line("-o", "a b", "--", "echo", "it's", "$HOME"),
          "perf record -e intel_pt//u -o 'a b' -- echo 'it'\\''s' '$HOME'")
    equal("a process", line("-p", "12,13"), "perf record -e intel_pt//u -o perf.data -p 12,13")
    equal("for a time", line("-p", "12", "--duration", "1.5"),
          "perf record -e intel_pt//u -o perf.data -p 12 -- sleep 1.500000000")
    equal("all CPUs", line("-a"), "perf record -e intel_pt//u -o perf.data -a")
    equal("some CPUs, around a program", line("--cpu", "0,2-3", "--", "ls"),
          "perf record -e intel_pt//u -o perf.data -C 0,2-3 -- ls")
    equal("the kernel", line("--level", "kernel", "ls"), "perf record -e intel_pt//k -o perf.data -- ls")
    equal("both", line("--level", "all", "ls"), "perf record -e intel_pt// -o perf.data -- ls")
    equal("a snapshot", line("--snapshot", "ls"), "perf record -e intel_pt//u --snapshot=e -o perf.data -- ls")
    equal("a filter", line("--filter", "filter main @ ./app", "./app"),
          "perf record -e intel_pt//u --filter 'filter main @ ./app' -o perf.data -- ./app")
    equal("a buffer", line("--buffer", "4M", "ls"), "perf record -e intel_pt//u -m,4096K -o perf.data -- ls")
    equal("a trigger by address", line("--trigger", "0x1234", "ls"),
          "perf record -e '{intel_pt//u,mem:0x1234:x:u}' --aux-sample=61440 -o perf.data -- ls")


def symbol(path, name):
    return int(re.search(rf"^([0-9a-f]+) T {name}$", run("nm", path).stdout, re.M)[1], 16)


def test_trigger(folder):
    source = os.path.join(folder, "app.c")
    with open(source, "w", encoding="ascii") as f:
        f.write(PROGRAM)
    paths = {}
    for flag in ("-no-pie", "-pie"):
        paths[flag] = os.path.join(folder, "app" + flag)
        subprocess.run(["cc", "-g", "-fpie" if flag == "-pie" else "-fno-pie", flag, source, "-o", paths[flag]],
                       check=True)
    fixed = symbol(paths["-no-pie"], "target")
    equal("a trigger in a program", line("--trigger", "target", paths["-no-pie"]),
          f"perf record -e '{{intel_pt//u,mem:{fixed:#x}:x:u}}' --aux-sample=61440 -o perf.data -- {paths['-no-pie']}")
    exits("a program without a fixed address", kscope("record", "pt", "--print", "--trigger", "target",
                                                      paths["-pie"]), 3, "position-independent", "--pid")
    exits("a function that is not there", kscope("record", "pt", "--print", "--trigger", "nothing",
                                                 paths["-no-pie"]), 3, "no such function")
    for flag, path in paths.items():
        with subprocess.Popen([path], stdout=subprocess.PIPE) as process:
            process.stdout.read(2)
            with open(f"/proc/{process.pid}/maps", encoding="ascii") as f:
                first = next(row for row in f if path in row)
            base = int(first.split("-")[0], 16) if flag == "-pie" else 0
            want = base + symbol(path, "target")
            got = line("--trigger", "target", "-p", process.pid)
            equal(f"a trigger in a process, {flag}", got, f"perf record -e '{{intel_pt//u,mem:{want:#x}:x:u}}' "
                  f"--aux-sample=61440 -o perf.data -p {process.pid}")
            exits(f"a function that is not in the process, {flag}", kscope(
                "record", "pt", "--print", "--trigger", "nothing", "-p", process.pid), 3, "no such function")
            process.kill()


def test_refusals():
    cases = {
        "nothing": ([], 2, "nothing to trace"),
        "a process and a program": (["-p", "1", "--", "ls"], 2, "omit ls"),
        "a process and CPUs": (["-p", "1", "-a"], 2, "only one of"),
        "a duration of a program": (["--duration", "1", "ls"], 2, "--duration"),
        "no process": (["-p", "x"], 2, "--pid expects"),
        "a process that is not there": (["-p", "999999999", "--trigger", "main"], 3, "999999999"),
        "a trigger and a snapshot": (["--trigger", "f", "--snapshot", "ls"], 2, "--trigger and --snapshot"),
        "a trigger and a filter": (["--trigger", "f", "--filter", "x", "ls"], 2, "--trigger and --filter"),
        "a trigger on CPUs": (["--trigger", "f", "-a"], 2, "--pid"),
        "a buffer without a unit": (["--buffer", "4096", "ls"], 2, "such as 4M"),
        "a buffer of 3 MB": (["--buffer", "3M", "ls"], 2, "power of two"),
        "CPUs that are no list": (["--cpu", "x", "ls"], 2, "--cpu"),
        "an option for guests": (["--freq", "5", "ls"], 2, "--freq does not work with record pt"),
        "another format": (["-o", "x.svg", "ls"], 2, "kscope convert"),
        "two outputs": (["-o", "a.data", "-o", "b.data", "ls"], 2, "one -o"),
    }
    for name, (words, code, text) in cases.items():
        exits(name, kscope("record", "pt", "--print", *words), code, text)
    exits("its options are not for guests", kscope("record", "qemu", "--snapshot", "x"), 2,
          "--snapshot does not work with record qemu")


def test_real(folder):
    out = os.path.join(folder, "perf.data")
    if not os.path.exists(DEVICE):
        exits("without Intel PT", kscope("record", "pt", "-o", out, "--", "ls"), 3, "no Intel PT",
              "kscope record emulate")
        check("... nothing is written", not os.path.exists(out))
        return
    done = kscope("record", "pt", "-o", out, "--", "ls", "/")
    if not done.returncode:
        text = run("perf", "script", "-i", out, "--itrace=b", "-F", "sym").stdout
        check("with Intel PT: perf decodes it", "main" in text, text[:300])
    else:
        exits("with Intel PT: it says why not", done, 3, "sudo")


def main():
    test_lines()
    test_refusals()
    with scratch() as folder:
        test_trigger(folder)
        test_real(folder)
    finish()


if __name__ == "__main__":
    main()
