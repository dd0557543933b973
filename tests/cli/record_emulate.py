#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""kscope record emulate before it runs QEMU: what it refuses, and how it says so. See also tests/e2e/emulate.py."""
import os
import signal
import struct
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import KSCOPE, check, default_signals, equal, exits, finish, run, scratch, wait_for

X86_64, I386, AARCH64 = 62, 3, 183


def write(path, content, mode=0o755):
    with open(path, "wb") as f:
        f.write(content)
    os.chmod(path, mode)


def elf(machine, wide=True):
    ident = b"\x7fELF" + bytes([2 if wide else 1, 1, 1]) + bytes(9)
    return (ident + struct.pack("<HH", 2, machine)).ljust(64, b"\0")


class Place:
    """A folder to record in, with an emulator that does nothing."""

    def __init__(self, folder):
        self.folder = folder
        self.env = dict(os.environ)
        for name, content in {"program": elf(X86_64), "old": elf(I386, False),
                              "arm": elf(AARCH64), "text": b"echo hello\n", "short": b"\x7fELF",
                              "lost": b"#!/does/not/exist -x\n", "loop": b"#! ./loop\n",
                              "script": b"#!./arm\n", "qemu": b"#!/bin/sh\nexit 0\n",
                              "slow": b"#!/bin/sh\n>started\nexec sleep 100\n"}.items():
            write(os.path.join(folder, name), content)
        write(os.path.join(folder, "data"), b"#!/bin/sh\n", 0o644)

    def record(self, *words):
        return run(KSCOPE, "record", "emulate", *words, cwd=self.folder, env=self.env)


def test_programs(place):
    for program, words in {"./absent": ["./absent: No such file"],
                           "absent": ["absent: not found in $PATH"],
                           "./data": ["./data: not an executable file"],
                           "./old": ["./old: a 32-bit program", "x86-64"],
                           "./arm": ["./arm: a program for another machine", "183"],
                           "./text": ["./text: neither an x86-64 program", "#!"],
                           "./short": ["./short: neither an x86-64 program"],
                           "./lost": ["its interpreter '/does/not/exist'"],
                           "./loop": ["too many interpreters"],
                           "./script": ["./arm: a program for another machine"],
                           ".": [".: not"]}.items():
        exits(f"refuses {program}", place.record("--qemu", "./qemu", "--", program), 3, *words)


def test_options(place):
    for words, said in {("-F", "100", "--", "./program"): "--freq does not work",
                        ("--until", "x", "./program"): "--until does not work",
                        ("-t", "svg", "./program"): "--type does not work",
                        ("-o", "a.data", "-o", "b.data", "./program"): "one -o",
                        ("-o", "a.svg", "./program"): "kscope convert",
                        ("-o", "a.data.gz", "./program"): "a.data.gz",
                        ("-o", "-", "./program"): "regular file",
                        ("-o", "/dev/null", "./program"): "regular file",
                        (): "no program"}.items():
        exits(f"refuses {' '.join(words)}", place.record("--qemu", "./qemu", *words), 2, said)
    exits("--qemu is not for record qemu",
          run(KSCOPE, "record", "qemu", "--qemu", "x", "--", "qemu-x86_64", "y"), 2, "--qemu")
    exits("nothing else can be recorded", run(KSCOPE, "record", "it"), 2, "unknown source 'it'", "qemu",
          "emulate pt")


def test_set_up(place):
    exits("names a QEMU that is not there", place.record("--qemu", "./none", "--", "./program"), 3,
          "./none: No such file")
    place.env["PATH"] = place.folder
    exits("names the package of QEMU", place.record("--", "./program"), 3, "qemu-user", "--qemu")
    place.env["KSCOPE_PLUGIN"] = "/does/not/exist.so"
    exits("names the plugin", place.record("--", "./program"), 3, "/does/not/exist.so")
    del place.env["KSCOPE_PLUGIN"]
    exits("an output that cannot be written",
          place.record("--qemu", "./qemu", "-o", "none/a.data", "--", "./program"), 4, "none/a.data")


def test_refusal(place):
    """QEMU ends before it loads the plugin. An older recording stays."""
    write(os.path.join(place.folder, "perf.data"), b"older")
    done = place.record("--qemu", "./qemu", "--", "./program")
    exits("QEMU that does nothing", done, 3, "before anything was recorded")
    with open(os.path.join(place.folder, "perf.data"), "rb") as f:
        equal("an older file stays", f.read(), b"older")


def test_code_of_others(place):
    """The folder for generated code is a link that another user made in a folder like /tmp."""
    shared, home = os.path.join(place.folder, "shared"), os.path.join(place.folder, "home")
    link = os.path.join(shared, "x.data.code")
    os.mkdir(shared)
    os.chmod(shared, 0o1777)
    os.mkdir(home)
    os.symlink(home, link)
    exits("a link of this user", place.record("--qemu", "./qemu", "-o", "shared/x.data", "--", "./program"), 3,
          "before anything was recorded")
    if os.geteuid() == 0:
        os.lchown(link, 4321, 4321)
        exits("a link of another user", place.record("--qemu", "./qemu", "-o", "shared/x.data", "--", "./program"),
              4, "x.data.code: cannot write: another user created it")
    os.unlink(link)
    os.rmdir(home)
    os.rmdir(shared)


def test_quit(place):
    """A signal that kscope does not handle, while QEMU runs."""
    before, started = set(os.listdir(place.folder)), os.path.join(place.folder, "started")
    with subprocess.Popen([KSCOPE, "record", "emulate", "-o", "quit.data", "--qemu", "./slow", "--", "./program"],
                          cwd=place.folder, stderr=subprocess.DEVNULL, preexec_fn=default_signals) as child:
        wait_for(lambda: os.path.exists(started))
        check("quit: there is a folder for QEMU",
              any(name.startswith(".quit.data-") for name in os.listdir(place.folder)))
        child.send_signal(signal.SIGQUIT)
    equal("quit: the exit code", child.returncode, -signal.SIGQUIT)
    os.unlink(started)
    equal("quit: nothing is left", set(os.listdir(place.folder)) - before, set())


def main():
    with scratch() as folder:
        place = Place(folder)
        before = set(os.listdir(folder))
        place.env["PATH"] = os.environ["PATH"]
        test_programs(place)
        test_options(place)
        test_refusal(place)
        test_code_of_others(place)
        test_set_up(place)
        test_quit(place)
        equal("nothing is left over", set(os.listdir(folder)) - before, {"perf.data"})
    finish()


main()
