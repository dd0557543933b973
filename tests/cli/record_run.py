#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""kscope record: the files that it writes, the guest's output, and the end of a recording."""
import fcntl
import glob
import json
import os
import signal
import struct
import subprocess
import sys
import termios
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import (HANGS, KSCOPE, check, equal, exits, finish, read_folded, run, scratch,
                 wait_for)
from kit.stand_in import Place, plugin_values


def test_outputs(place):
    done = place.record(emulator=["-samples", "30", "-say", "hello\\n", "-nographic"])
    exits("record: the summary", done, 0, "60 samples (by vCPU: 30 30)", "0 lost",
          "every 1 ms of host time", "next: kscope report perf.data, or perf report -i perf.data")
    equal("record: the guest's output is as it is", done.stdout, "hello\n")
    for name, more in (("x.folded", []), ("x.svg", []), ("x.kscope", []), ("x.dump", []),
                       ("y.out", ["-t", "folded"]), ("z.out", ["-t", "kscope"])):
        done = place.record("-o", name, *more)
        exits(f"record: {name}", done, 0, "20 samples", f"wrote {name}")
    equal("record: perf.data is for this user alone",
          os.stat(place.path("perf.data")).st_mode & 0o777, 0o600)
    for name in ("perf.data", "x.kscope", "z.out"):
        info = run(KSCOPE, "info", "--json", name, cwd=place.folder)
        check(f"record: {name} can be read", info.returncode == 0 and
              json.loads(info.stdout)["samples"] == (60 if name == "perf.data" else 20),
              info.stdout + info.stderr)
    for name in ("x.folded", "y.out"):
        equal(f"record: {name} has the samples", sum(read_folded(place.path(name)).values()),
              20 * 1000000)
    done = place.record("-o", "a.data", "-o", "b.folded", "-o", "c.kscope")
    exits("record: several outputs", done, 0, "20 samples", "wrote a.data; next: kscope report a.data",
          "wrote b.folded", "kept the raw stream: c.kscope")
    for name in ("a.data", "c.kscope"):
        info = run(KSCOPE, "info", "--json", name, cwd=place.folder)
        equal(f"record: {name} of several", json.loads(info.stdout)["samples"], 20)
    equal("record: b.folded of several", read_folded(place.path("b.folded")),
          read_folded(place.path("x.folded")))
    done = place.record("-q", "-o", "q.folded", "--keep", "raw.kscope")
    equal("record: quiet", (done.returncode, done.stderr, done.stdout), (0, "", ""))
    check("record: --keep", run(KSCOPE, "info", place.path("raw.kscope")).returncode == 0)
    equal("record: nothing else is left", place.litter(), [])
    exits("record: the message has the exit status of the guest",
          place.record(emulator=["-status", "33"]), 0, "exited with status 33")
    exits("record: a cut stream", place.record(emulator=["-cut"]), 1, "samples")
    with open(place.path("perf.data"), "rb") as f:
        good = f.read()
    done = place.record(emulator=["-samples", "0", "-status", "1"])
    exits("record: a QEMU that gives up", done, 3, "status 1 before anything was recorded")
    with open(place.path("perf.data"), "rb") as f:
        check("record: and the old output is still there", f.read() == good)
    with open(place.path("raw.kscope"), "rb") as f:
        good = f.read()
    exits("record: a QEMU that gives up, over a raw stream", place.record(
        "-o", "raw.kscope", emulator=["-samples", "0", "-status", "1"]), 3, "status 1")
    with open(place.path("raw.kscope"), "rb") as f:
        check("record: and the old stream is still there", f.read() == good)
    exits("record: over a raw stream", place.record("-o", "raw.kscope"), 0, "wrote raw.kscope")
    check("record: nothing of the old one is left",
          not os.path.exists(place.path("raw.kscope.old")))
    for name in ("raw.kscope.old", "raw.kscope.old2"):
        with open(place.path(name), "w", encoding="ascii") as f:
            f.write("another file")
    os.chmod(place.path("raw.kscope"), 0o640)
    exits("record: beside files with the names of old streams", place.record("-o", "raw.kscope"), 0)
    for name in ("raw.kscope.old", "raw.kscope.old2"):
        with open(place.path(name), encoding="ascii") as f:
            equal(f"record: {name} is another file", f.read(), "another file")
        os.unlink(place.path(name))
    equal("record: nothing else is there", place.litter(), [])
    equal("record: the new stream has the old one's permissions",
          os.stat(place.path("raw.kscope")).st_mode & 0o777, 0o640)
    os.symlink("raw.kscope", place.path("link.kscope"))
    exits("record: through a link", place.record("-o", "link.kscope"), 0)
    check("record: the link is still one", os.path.islink(place.path("link.kscope")))
    os.unlink(place.path("link.kscope"))
    exits("record: no samples", place.record(emulator=["-samples", "0"]), 0, "nothing was recorded")


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
    exits("until: it does not come", done, 1, "did not print 'password'", "20 samples")


def test_ends(place):
    started = time.monotonic()
    done = place.record("--duration", "0.5", emulator=["-wait"])
    exits("duration", done, 0, "20 samples")
    check("duration: not before", time.monotonic() - started >= 0.5)
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        child = place.start(emulator=["-wait", "-nographic", "-say", "running\\n"])
        child.stdout.readline()
        child.send_signal(getattr(signal, name))
        _, err = child.communicate(timeout=HANGS)
        check(f"ends: {name}: the guest ends, the result is written",
              child.returncode == 0 and "20 samples" in err, err)
    child = place.start(emulator=["-wait", "-nographic", "-say", "running\\n"],
                        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    child.stdout.readline()
    child.send_signal(signal.SIGHUP)
    try:
        child.wait(1)
    except subprocess.TimeoutExpired:
        pass
    check("ends: not at a SIGHUP that nohup ignores", child.poll() is None)
    child.send_signal(signal.SIGTERM)
    _, err = child.communicate(timeout=HANGS)
    check("ends: ... but at SIGTERM", child.returncode == 0 and "20 samples" in err, err)
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
    exits("ends: the QEMU of a script ends, and then the script", done, 0, "20 samples")
    equal("ends: the script goes on", done.stdout, "script is done\n")
    equal("ends: nothing is left", place.litter(), [])


def fill(stream):
    """Waits until a pipe is full. After many small writes it holds fewer bytes than its size."""
    def waiting():
        return struct.unpack("i", fcntl.ioctl(stream, termios.FIONREAD, bytes(4)))[0]
    wait_for(waiting)
    before = 0
    while waiting() > before:
        before = waiting()
        time.sleep(0.3)


def test_reader(place):
    """Nothing reads the guest's output."""
    text = "x" * 120000
    guest = ["-wait", "-nographic", "-say", text]
    child = place.start("--until", "y", emulator=guest)
    fill(child.stdout)
    child.send_signal(signal.SIGTERM)
    check("no reader: it ends on SIGTERM", wait_for(lambda: child.poll() is not None))
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


def test_quit(place):
    """A signal that kscope does not handle: the raw stream stays, the folder of the socket does not."""
    flag = place.path("quit.args")
    child = place.start("-o", "quit.folded", emulator=["-wait", "-nographic", "-say", "running\\n", "-args", flag])
    child.stdout.readline()
    with open(flag, encoding="utf-8") as f:
        words = json.load(f)["words"]
    plugin = plugin_values(words[words.index("-plugin") + 1])
    folder = os.path.dirname(next(value[8:] for value in plugin if value.startswith("control=")))
    check("quit: there is a socket", os.path.exists(os.path.join(folder, "control")), folder)
    child.send_signal(signal.SIGQUIT)
    child.communicate(timeout=HANGS)
    equal("quit: the exit code", child.returncode, -signal.SIGQUIT)
    check("quit: the socket's folder is gone", not os.path.exists(folder), folder)
    check("quit: the raw stream is there", glob.glob(place.path(".quit.folded-*.kscope")), os.listdir(place.folder))


def test_named(place):
    """The raw stream in a file that the user named."""
    flag, stream, slow = place.path("named.args"), place.path("named.kscope"), place.path("slow.dump")
    place.record("-o", "named.kscope", emulator=["-args", flag])
    with open(flag, encoding="utf-8") as f:
        equal("named: it is there before QEMU, which may be another user's (sudo)", json.load(f)["out"], "0o600")
    os.mkfifo(slow)
    reader = open(slow, "r+b", buffering=0)
    child = place.start("-o", "named.kscope", "-o", "slow.dump", emulator=["-samples", "5000"])
    fill(reader)
    check("named: while it is converted, the old one is gone already", not os.path.exists(stream + ".old"))
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=HANGS)
    reader.close()
    equal("named: what ends the conversion leaves the stream",
          json.loads(run(KSCOPE, "info", "--json", stream).stdout)["samples"], 10000)
    exits("named: no command", run(KSCOPE, "record", "qemu", "-o", "none.kscope", "--", "./qemu-system-missing",
                                   cwd=place.folder, env=place.env), 3, "cannot run")
    check("named: no empty file stays", not os.path.exists(place.path("none.kscope")))


def main():
    with scratch() as folder:
        place = Place(folder)
        test_outputs(place)
        test_until(place)
        test_ends(place)
        test_reader(place)
        test_quit(place)
        test_named(place)
    finish()


if __name__ == "__main__":
    main()
