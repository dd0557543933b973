#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""kscope record: its options, and the command line that it builds from them."""
import os
import shlex
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import DEMO, KSCOPE, check, equal, exits, finish, run, scratch
from kit.stand_in import Place, plugin_values

ELF = os.path.join(DEMO, "64k", "hasher.elf")


def test_line(place):
    words, _ = place.printed("-o", "a,b.kscope", "--vcpu", "0,2-3", "--level", "kernel",
                             "-F", "5000", "--stack", "0", "--control", "ctl", "--",
                             "qemu-system-x86_64", "-kernel", ELF, "-append", "it's  here", "")
    equal("print: the plugin comes first, the rest is as it was",
          words[:2] + words[3:], ["qemu-system-x86_64", "-plugin", "-kernel", ELF, "-append",
                                  "it's  here", ""])
    equal("print: the plugin's arguments", plugin_values(words[2]),
          [f"file={place.plugin}", f"out={place.path('a,b.kscope')}", "period=200000", "stack=0",
           "vcpu=0,2-3", "level=kernel", f"kernel={ELF}", f"control={place.path('ctl')}"])
    words, err = place.printed("--clock", "instructions", "--period", "500", "--trace", "--check",
                               "0.0015", "--",
                               "qemu-aarch64", "-L", "/", "-strace", ELF, "-kernel", "x")
    equal("print: a user-mode QEMU", words[:2] + words[3:],
          ["qemu-aarch64", "-plugin", "-L", "/", "-strace", ELF, "-kernel", "x"])
    equal("print: its arguments", plugin_values(words[2])[1:],
          [f"out={place.path('recording.kscope')}", "mode=trace", "check=1500",
           "clock=instructions", "period=500", f"elf={ELF}"])
    check("print: what to do next", "kscope convert recording.kscope -o perf.data" in err, err)
    words, _ = place.printed("./run.sh", "-x")
    equal("print: a script gets it at the end", words[:3], ["./run.sh", "-x", "-plugin"])


def test_hooks(place):
    def hooks(*words):
        done = run(KSCOPE, "record", "qemu", "--print", *words, "--", "qemu-system-aarch64",
                   "-kernel", ELF, env=place.env)
        if done.returncode:
            return done.stderr
        return [part for part in plugin_values(shlex.split(done.stdout)[2])
                if part.split("=")[0] not in ("file", "out", "kernel")]

    nm = dict(reversed(line.split()[::2]) for line in run("nm", ELF).stdout.splitlines())
    start, fill = (f"{int(nm[name], 16):#x}" for name in ("_start", "fill_block"))
    equal("hooks: symbols become addresses", hooks("--start-at", "_start", "--start-at", "0x10", "--stop-at",
                                                   "fill_block"),
          [f"from={start}+0x10", f"to={fill}"])
    equal("hooks: allocators", hooks("--alloc", "_start", "--free", "fill_block:arg2", "--realloc",
                                     "_start:arg3:arg1:ret", "--alloc", "32:arg1:ret"),
          [f"alloc=_start@{start}:arg0:ret", "alloc=0x20:arg1:ret", f"free=fill_block@{fill}:arg2",
           f"realloc=_start@{start}:arg3:arg1:ret"])
    equal("hooks: --slide moves the kernel", hooks("--start-at", "_start", "--slide", "0x1000"),
          [f"from={int(start, 16) + 0x1000:#x}"])
    for words, want in ((("--start-at", "no_such"), f"no function no_such in {ELF}"),
                        (("--alloc", "_start:arg0"), "--alloc expects FUNC or FUNC:arg0:ret"),
                        (("--alloc", "_start:ret:arg0"), "--alloc expects"),
                        (("--free", "_start:argx"), "--free expects"),
                        (("--free", "_start:arg8"), "--free expects"),
                        (("--free", "_start:arg0:ret"), "--free expects"),
                        (("--start-at", ""), "--start-at expects a symbol")):
        got = hooks(*words)
        check(f"hooks: {' '.join(words)}", want in got, got)


def test_usage(place):
    for words, emulator, want in (
            (["--check", "1"], [], "--check takes samples inside a trace: use --trace"),
            (["-F", "5", "--period", "5"], [], "--freq and --period cannot be used together"),
            (["-F", "5", "--clock", "instructions"], [], "--period"),
            (["-F", "0"], [], "--freq must not be 0"), (["--period", "999"], [], "1000 ns"),
            (["--period", "x"], [], "--period expects a number"),
            (["--stack", "65537"], [], "--stack expects a number up to 65536"),
            (["--clock", "sun"], [], "'sun'"), (["--level", "low"], [], "'low'"),
            (["--vcpu", "1-x"], [], "--vcpu"),
            (["--duration", "0"], [], "--duration expects seconds"),
            (["--paused"], [], "--control"), (["--until", ""], [], "--until"),
            (["--print", "--until", "x"], [], "--print"), (["-o", "-"], [], "standard output"),
            (["-o", "x.xyz"], [], "use -t FORMAT"), (["-t", "xyz"], [], "unknown output format 'xyz'"),
            (["--unwind", "x"], [], "--unwind expects auto, fp, cfi or orc"),
            (["-o", "x.kscope", "--keep", "y"], [], "the raw stream can go to only one file"),
            (["--control", "x" * 200], [], "at most 107 bytes"),
            (["--attach", "x"], ["start"], "start, stop, flush or status"),
            ([], ["-enable-kvm"], "TCG"), ([], ["-accel", "kvm"], "TCG"),
            ([], ["-M", "q35,accel=kvm:tcg"], "TCG"), ([], ["-daemonize"], "-daemonize"),
            (["--until", "x"], ["-serial", "pty"], "mon:stdio"),
            (["--until", "x"], ["-chardev", "socket,id=a", "-serial", "chardev:a"], "mon:stdio"),
            (["--kernel", "nowhere"], [], "nowhere")):
        exits(f"usage: {' '.join(words + emulator)[:60]}",
              place.record(*words, emulator=emulator), 2, want)
    exits("usage: no source", run(KSCOPE, "record"), 2, "needs a source", "qemu")
    exits("usage: another source", run(KSCOPE, "record", "vmware", "--", "x"), 2, "vmware")
    exits("usage: no command", run(KSCOPE, "record", "qemu", "-F", "5"), 2, "qemu-system-")
    done = run(KSCOPE, "record", "-F", "100", "qemu", "--print", "qemu-i386", "-h", env=place.env)
    check("usage: options before the source, no dashes before the command",
          done.returncode == 0 and ",period=10000000" in done.stdout, done.stderr)
    equal("usage: none of it left a file", place.litter(), [])


def main():
    with scratch() as folder:
        place = Place(folder)
        test_line(place)
        test_hooks(place)
        test_usage(place)
    finish()


if __name__ == "__main__":
    main()
