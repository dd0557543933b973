#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""kscope record qemu, as far as it does not need a QEMU: its command line, the guest's output and
end, the socket, and what is said when something is wrong. tests/e2e/record_qemu.py has the rest."""
import fcntl
import json
import os
import pty
import re
import select
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import (DEMO, HANGS, KSCOPE, TOOLS, check, equal, finish, read_folded, run, scratch,
                 wait_for)

ELF = os.path.join(DEMO, "64k", "hasher.elf")


class Place:
    """A folder with an emulator and a plugin that are none."""

    def __init__(self, folder):
        self.folder = folder
        self.emulator = self.path("qemu-system-none")
        self.plugin = self.path("plug,in.so")
        shutil.copy(os.path.join(TOOLS, "qemu_stand_in.py"), self.emulator)
        with open(self.plugin, "w", encoding="ascii"):
            pass
        self.env = dict(os.environ, KSCOPE_PLUGIN=self.plugin)

    def path(self, name):
        return os.path.join(self.folder, name)

    def record(self, *words, emulator=(), **more):
        return run(KSCOPE, "record", "qemu", *words, "--", self.emulator, *emulator, cwd=self.folder,
                   env=self.env, **more)

    def start(self, *words, emulator=(), **more):
        return subprocess.Popen([KSCOPE, "record", "qemu", *words, "--", self.emulator, *emulator],
                                cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)

    def printed(self, *words):
        done = run(KSCOPE, "record", "qemu", "--print", *words, cwd=self.folder, env=self.env)
        return shlex.split(done.stdout), done.stderr

    def litter(self):
        return [name for name in os.listdir(self.folder) if name.startswith(".")]


def said(name, done, code, *words):
    check(name, done.returncode == code and all(word in done.stderr for word in words),
          f"exit code {done.returncode}, stderr: {done.stderr}")


def values(text):
    """The plugin's arguments as QEMU takes them apart: two commas are one."""
    parts = text.replace(",,", "\0").split(",")
    return [part.replace("\0", ",") for part in parts]


def test_line(place):
    words, _ = place.printed("-o", "a,b.kscope", "--vcpu", "0,2-3", "--level", "kernel", "-F", "5000",
                             "--stack", "0", "--control", "ctl", "--", "qemu-system-x86_64",
                             "-kernel", ELF, "-append", "it's  here", "")
    equal("print: the plugin comes first, the rest is as it was",
          words[:2] + words[3:], ["qemu-system-x86_64", "-plugin", "-kernel", ELF, "-append",
                                  "it's  here", ""])
    equal("print: the plugin's arguments", values(words[2]),
          [f"file={place.plugin}", f"out={place.path('a,b.kscope')}", "period=200000", "stack=0",
           "vcpu=0,2-3", "level=kernel", f"kernel={ELF}", f"control={place.path('ctl')}"])
    words, err = place.printed("--clock", "instructions", "--period", "500", "--trace", "--",
                               "qemu-aarch64", "-L", "/", "-strace", ELF, "-kernel", "x")
    equal("print: a user-mode QEMU", words[:2] + words[3:],
          ["qemu-aarch64", "-plugin", "-L", "/", "-strace", ELF, "-kernel", "x"])
    equal("print: its arguments", values(words[2])[1:],
          [f"out={place.path('recording.kscope')}", "mode=trace", "clock=instructions", "period=500",
           f"elf={ELF}"])
    check("print: what to do next", "kscope convert recording.kscope -o perf.data" in err, err)
    words, _ = place.printed("./run.sh", "-x")
    equal("print: a script gets it at the end", words[:3], ["./run.sh", "-x", "-plugin"])


def test_hooks(place):
    def hooks(*words):
        done = run(KSCOPE, "record", "qemu", "--print", *words, "--", "qemu-system-aarch64", "-kernel",
                   ELF, env=place.env)
        if done.returncode:
            return done.stderr
        return [part for part in values(shlex.split(done.stdout)[2])
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
                        (("--alloc", "_start:arg0"), "--alloc wants FUNC or FUNC:arg0:ret"),
                        (("--alloc", "_start:ret:arg0"), "--alloc wants"),
                        (("--free", "_start:argx"), "--free wants"),
                        (("--free", "_start:arg8"), "--free wants"),
                        (("--free", "_start:arg0:ret"), "--free wants"),
                        (("--start-at", ""), "--start-at wants a symbol")):
        got = hooks(*words)
        check(f"hooks: {' '.join(words)}", want in got, got)


def test_usage(place):
    for words, emulator, want in (
            (["-F", "5", "--period", "5"], [], "--freq and --period exclude each other"),
            (["-F", "5", "--clock", "instructions"], [], "--period"),
            (["-F", "0"], [], "--freq must not be 0"), (["--period", "999"], [], "1000 ns"),
            (["--period", "x"], [], "--period expects a number"),
            (["--stack", "65537"], [], "--stack expects a number up to 65536"),
            (["--clock", "sun"], [], "'sun'"), (["--level", "low"], [], "'low'"),
            (["--vcpu", "1-x"], [], "--vcpu"), (["--duration", "0"], [], "--duration expects seconds"),
            (["--paused"], [], "--control"), (["--until", ""], [], "--until"),
            (["--print", "--until", "x"], [], "--print"), (["-o", "-"], [], "standard output"),
            (["-o", "x.xyz"], [], "use -t FORMAT"), (["-t", "xyz"], [], "unknown output format 'xyz'"),
            (["-o", "x.kscope", "--keep", "y"], [], "--keep"),
            (["--control", "x" * 200], [], "at most 107 bytes"),
            (["--attach", "x"], ["start"], "start, stop, flush or status"),
            ([], ["-enable-kvm"], "TCG"), ([], ["-accel", "kvm"], "TCG"),
            ([], ["-M", "q35,accel=kvm:tcg"], "TCG"), ([], ["-daemonize"], "-daemonize"),
            (["--until", "x"], ["-serial", "pty"], "mon:stdio"),
            (["--until", "x"], ["-chardev", "socket,id=a", "-serial", "chardev:a"], "mon:stdio"),
            (["--kernel", "nowhere"], [], "nowhere")):
        said(f"usage: {' '.join(words + emulator)[:60]}",
             place.record(*words, emulator=emulator), 2, want)
    said("usage: no source", run(KSCOPE, "record"), 2, "kscope record qemu")
    said("usage: another source", run(KSCOPE, "record", "vmware", "--", "x"), 2, "vmware")
    said("usage: no command", run(KSCOPE, "record", "qemu", "-F", "5"), 2, "qemu-system-")
    done = run(KSCOPE, "record", "-F", "100", "qemu", "--print", "qemu-i386", "-h", env=place.env)
    check("usage: options before the source, no dashes before the command",
          done.returncode == 0 and ",period=10000000" in done.stdout, done.stderr)
    equal("usage: none of it left a file", place.litter(), [])


def test_outputs(place):
    done = place.record(emulator=["-samples", "30", "-say", "hello\\n", "-nographic"])
    said("record: the summary", done, 0, "60 samples (by vCPU: 30 30)", "0 lost",
         "every 1 ms of host time", "next: kscope report perf.data, or perf report -i perf.data")
    equal("record: the guest's output is as it is", done.stdout, "hello\n")
    for name, more in (("x.folded", []), ("x.svg", []), ("x.kscope", []), ("x.dump", []),
                       ("y.out", ["-t", "folded"]), ("z.out", ["-t", "kscope"])):
        done = place.record("-o", name, *more)
        said(f"record: {name}", done, 0, "20 samples", f"wrote {name}")
    for name in ("perf.data", "x.kscope", "z.out"):
        info = run(KSCOPE, "info", "--json", name, cwd=place.folder)
        check(f"record: {name} can be read", info.returncode == 0 and
              json.loads(info.stdout)["samples"] == (60 if name == "perf.data" else 20),
              info.stdout + info.stderr)
    for name in ("x.folded", "y.out"):
        equal(f"record: {name} has the samples", sum(read_folded(place.path(name)).values()),
              20 * 1000000)
    done = place.record("-q", "-o", "q.folded", "--keep", "raw.kscope")
    equal("record: quiet", (done.returncode, done.stderr, done.stdout), (0, "", ""))
    check("record: --keep", run(KSCOPE, "info", place.path("raw.kscope")).returncode == 0)
    equal("record: nothing else is left", place.litter(), [])
    said("record: the exit status of the guest is said",
         place.record(emulator=["-status", "33"]), 0, "exited with status 33")
    said("record: a cut stream", place.record(emulator=["-cut"]), 1, "samples")
    with open(place.path("perf.data"), "rb") as f:
        good = f.read()
    done = place.record(emulator=["-samples", "0", "-status", "1"])
    said("record: a QEMU that gives up", done, 3, "status 1 before anything was recorded")
    with open(place.path("perf.data"), "rb") as f:
        check("record: and the old output is still there", f.read() == good)
    with open(place.path("raw.kscope"), "rb") as f:
        good = f.read()
    said("record: a QEMU that gives up, over a raw stream", place.record(
        "-o", "raw.kscope", emulator=["-samples", "0", "-status", "1"]), 3, "status 1")
    with open(place.path("raw.kscope"), "rb") as f:
        check("record: and the old stream is still there", f.read() == good)
    said("record: over a raw stream", place.record("-o", "raw.kscope"), 0, "wrote raw.kscope")
    check("record: nothing of the old one is left", not os.path.exists(place.path("raw.kscope.old")))
    said("record: no samples", place.record(emulator=["-samples", "0"]), 0, "nothing was recorded")


def test_until(place):
    text = "\\x1b[2J one\\r\\n\\x00\\xfflogin: \\n"
    raw = text.encode().decode("unicode_escape").encode("latin-1")
    for name, how in (("nographic", ["-nographic"]), ("stdio", ["-serial", "mon:stdio"]),
                      ("chardev", ["-chardev", "stdio,id=a,mux=on", "-serial", "chardev:a"]),
                      ("a port that is added", [])):
        done = place.record("--until", "login:", "--duration", "60", binary=True,
                            emulator=["-wait", "-say", text, *how])
        equal(f"until: {name}: the guest ends and its output is the same",
              (done.returncode, done.stdout), (0, raw))
    for name, how in (("a file", ["-serial", "file:serial.log"]),):
        with open(place.path("serial.log"), "w", encoding="ascii") as f:
            f.write("login: of yesterday")
        done = place.record("--until", "login:", "--duration", "60",
                            emulator=["-wait", "-say", text, *how])
        equal(f"until: {name}", (done.returncode, done.stdout), (0, ""))
    done = place.record("--until", "password", "--duration", "60", emulator=["-say", text])
    said("until: it does not come", done, 1, "did not print 'password'", "20 samples")


def test_ends(place):
    started = time.monotonic()
    done = place.record("--duration", "0.5", emulator=["-wait"])
    said("duration", done, 0, "20 samples")
    check("duration: not before", time.monotonic() - started >= 0.5)
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        child = place.start(emulator=["-wait", "-nographic", "-say", "running\\n"])
        child.stdout.readline()
        child.send_signal(getattr(signal, name))
        _, err = child.communicate(timeout=HANGS)
        check(f"ends: {name}: the guest ends, the result is written",
              child.returncode == 0 and "20 samples" in err, err)
    child = place.start("--until", "up", emulator=["-deaf", "-nographic", "-say", "running\\n"])
    child.stdout.readline()
    child.send_signal(signal.SIGINT)
    equal("ends: once: it is asked to", child.stdout.readline(), "deaf\n")
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=HANGS)
    check("ends: twice: it is killed, what it had written stays",
          child.returncode == 1 and "was killed" in err and "20 samples" in err, err)
    flag = place.path("late.args")
    child = place.start(emulator=["-late", "-args", flag])
    wait_for(lambda: os.path.exists(flag))
    child.send_signal(signal.SIGTERM)
    _, err = child.communicate(timeout=HANGS)
    check("ends: before it has begun", child.returncode == 3 and "too early" in err, err)
    script = place.path("run.sh")
    with open(script, "w", encoding="ascii") as f:
        f.write(f"#!/bin/sh\n'{place.emulator}' -wait \"$@\"\necho script is done\n")
    os.chmod(script, 0o755)
    done = run(KSCOPE, "record", "qemu", "--duration", "0.5", "--", script, cwd=place.folder,
               env=place.env)
    said("ends: the QEMU of a script ends, and then the script", done, 0, "20 samples")
    equal("ends: the script goes on", done.stdout, "script is done\n")
    equal("ends: nothing is left", place.litter(), [])


def fill(stream):
    """Waits until a pipe takes no more: of many small pieces, that is less than its size."""
    def waiting():
        return struct.unpack("i", fcntl.ioctl(stream, termios.FIONREAD, bytes(4)))[0]
    wait_for(waiting)
    before = 0
    while waiting() > before:
        before = waiting()
        time.sleep(0.3)


def test_reader(place):
    """Of the guest's output: one that does not read."""
    text = "x" * 120000
    guest = ["-wait", "-nographic", "-say", text]
    child = place.start("--until", "y", emulator=guest)
    fill(child.stdout)
    child.send_signal(signal.SIGTERM)
    check("no reader: it ends when it is told to", wait_for(lambda: child.poll() is not None))
    _, err = child.communicate()
    check("no reader: the result is written", child.returncode == 0 and "20 samples" in err, err)
    child = place.start("--until", "y", "--duration", "1", "-o", "read.folded", emulator=guest)
    check("no reader: the result is written before it",
          wait_for(lambda: os.path.exists(place.path("read.folded"))))
    out, err = child.communicate(timeout=HANGS)
    check("no reader: nothing is lost for one that comes late", out == text, (len(out), err))
    child = place.start("--until", "y", emulator=guest)
    fill(child.stdout)
    child.stdout.close()
    child.send_signal(signal.SIGTERM)
    err = child.stderr.read()
    check("no reader: one that goes", child.wait(HANGS) in (0, 1) and "20 samples" in err, err)


def test_refusals(place):
    said("refused: the plugin is missing", run(KSCOPE, "record", "qemu", "--", place.emulator,
                                               env=dict(place.env, KSCOPE_PLUGIN="nowhere.so")), 3,
         "nowhere.so", "KSCOPE_PLUGIN")
    bare = place.path("bin")
    os.mkdir(bare)
    shutil.copy(KSCOPE, bare)
    env = {key: value for key, value in place.env.items() if key != "KSCOPE_PLUGIN"}
    said("refused: no plugin beside the program", run(os.path.join(bare, "kscope"), "record", "qemu",
                                                      "--", place.emulator, env=env), 3,
         f"{bare}/kscope-qemu.so", "make", "KSCOPE_PLUGIN")
    os.makedirs(place.path("lib/kscope"))
    shutil.copy(place.plugin, place.path("lib/kscope/kscope-qemu.so"))
    done = run(os.path.join(bare, "kscope"), "record", "qemu", "--print", "--", "qemu-i386", env=env)
    check("the plugin is found where it is installed", done.returncode == 0 and
          f"file={place.folder}/lib/kscope/kscope-qemu.so," in done.stdout, done.stdout + done.stderr)
    said("refused: no such emulator", run(KSCOPE, "record", "qemu", "--", "qemu-system-nothing",
                                          env=place.env), 3, "qemu-system-nothing", "installed")
    said("refused: not a program", run(KSCOPE, "record", "qemu", "--", place.plugin, env=place.env), 3,
         "Permission denied")
    done = place.record("-o", "n.data", emulator=["-no-stream"])
    said("refused: a QEMU without plugins", done, 3, "I do not like this", "status 1",
         "built without TCG plugins", "--enable-plugins")
    said("refused: a script that keeps the plugin to itself",
         run(KSCOPE, "record", "qemu", "--", "true", cwd=place.folder, env=place.env), 3, "script",
         "--print")
    check("refused: no output", not os.path.exists(place.path("n.data")) and not place.litter(),
          os.listdir(place.folder))
    flag = place.path("started")
    for output, words in (("no/x.data", ("no/x.data", "No such file")), ("no/x.kscope", ("No such",)),
                          ("/dev/null", ("regular file",)),
                          ("bin/", ("bin/",))):
        more = {"bin/": ["-t", "perfdata"], "/dev/null": ["-t", "kscope"]}.get(output, [])
        said(f"refused: {output} cannot be written",
             place.record("-o", output, *more, emulator=["-args", flag]), 4, *words)
    check("refused: that is said before the guest starts", not os.path.exists(flag))
    done = place.record("-o", "/dev/full", "-t", "perfdata")
    said("a full disk: the raw stream is kept", done, 4, "/dev/full", "kept the raw stream: ")
    raw = re.search(r"kept the raw stream: (\S+)", done.stderr)
    if check("a full disk: it can be read", raw and run(KSCOPE, "info", raw[1]).returncode == 0):
        os.unlink(raw[1])


def test_attach(place):
    ctl = place.path("ctl")
    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(ctl)
    child = place.start("--control", "ctl", "--paused", emulator=["-wait", "-no-flush"])

    def attach(*words):
        return run(KSCOPE, "record", "qemu", "--attach", ctl, *words)

    wait_for(lambda: attach("status").returncode == 0)
    said("attach: somebody has the socket", place.record("--control", "ctl"), 2, "already exists")
    check("attach: status", "running=0\n" in attach("status").stdout)
    equal("attach: start", (attach("start").returncode, "running=1\n" in attach("status").stdout),
          (0, True))
    equal("attach: stop", (attach("stop").returncode, "running=0\n" in attach("status").stdout),
          (0, True))
    said("attach: an error of the guest's", attach("flush"), 3, "flush: the disk? is full")
    said("attach: another word", attach("jump"), 2, "start, stop, flush or status")
    child.terminate()
    child.communicate(timeout=HANGS)
    said("attach: it has ended", attach("status"), 3, "ctl", "still run")
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(place.path("dead"))
    said("attach: nobody listens", run(KSCOPE, "record", "qemu", "--attach", place.path("dead"),
                                       "status"), 3, "has ended")
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(place.path("other"))
        other.listen()

        def talk():
            for answer in (b"hello\x1b[31m\n", b"x" * 5000, b""):
                peer, _ = other.accept()
                with peer:
                    peer.recv(100)
                    peer.sendall(answer)

        threading.Thread(target=talk, daemon=True).start()
        for name in ("another program", "a long answer", "no answer"):
            done = run(KSCOPE, "record", "qemu", "--attach", place.path("other"), "status")
            check(f"attach: {name}", done.returncode == 3 and "answer" in done.stderr and
                  "\x1b" not in done.stderr, done.stderr)


def in_terminal(place, words, emulator, until):
    """Runs it with a terminal, and returns what that shows."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(place.folder)
        os.execve(KSCOPE, [KSCOPE, "record", "qemu", *words, "--", place.emulator, *emulator],
                  place.env)
    shown, sent = b"", False
    while True:
        ready, _, _ = select.select([terminal], [], [], HANGS)
        try:
            data = os.read(terminal, 4096) if ready else b""
        except OSError:
            data = b""
        if not data:
            break
        shown += data
        if not sent and until in shown:
            sent = True
            os.write(terminal, b"\x03")
    os.close(terminal)
    return shown.decode(errors="replace"), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_terminal(place):
    shown, code = in_terminal(place, [], ["-wait"], b"samples of 2 vCPUs")
    check("terminal: a line tells how it goes, and Ctrl-C ends the guest", code == 0 and
          "recording: 20 samples of 2 vCPUs, 0 dropped, 0.0 MB" in shown and
          "kscope: 20 samples" in shown, (code, shown))
    flag = place.path("terminal.args")
    shown, code = in_terminal(place, ["--until", "done"],
                              ["-wait", "-nographic", "-say", "it is done\\r\\n", "-args", flag],
                              b"nothing")
    check("terminal: what the guest prints is shown, and no line over it", code == 0 and
          shown.startswith("it is done\r\r\n") and "\033" not in shown, (code, shown))
    with open(flag, encoding="utf-8") as f:
        check("terminal: the guest has one, too", json.load(f)["terminal"])


def main():
    with scratch() as folder:
        place = Place(os.path.realpath(folder))
        test_line(place)
        test_hooks(place)
        test_usage(place)
        test_outputs(place)
        test_until(place)
        test_ends(place)
        test_reader(place)
        test_refusals(place)
        test_attach(place)
        test_terminal(place)
    finish()


if __name__ == "__main__":
    main()
