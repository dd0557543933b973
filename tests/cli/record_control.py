#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""kscope record: error messages, the control socket, and a terminal.

Tests that need a real QEMU are in tests/e2e/record_qemu.py.
"""
import json
import os
import pty
import re
import select
import shutil
import socket
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import HANGS, KSCOPE, check, equal, exits, finish, run, scratch, wait_for
from kit.stand_in import Place


def test_refusals(place):
    exits("refused: the plugin is missing", run(KSCOPE, "record", "qemu", "--", place.emulator,
                                                env=dict(place.env, KSCOPE_PLUGIN="nowhere.so")), 3,
          "nowhere.so", "KSCOPE_PLUGIN")
    bare = place.path("bin")
    os.mkdir(bare)
    shutil.copy(KSCOPE, bare)
    env = {key: value for key, value in place.env.items() if key != "KSCOPE_PLUGIN"}
    program = os.path.join(bare, "kscope")
    exits("refused: no plugin beside the program",
          run(program, "record", "qemu", "--", place.emulator, env=env), 3,
          f"{bare}/kscope-qemu.so", "make", "KSCOPE_PLUGIN")
    os.makedirs(place.path("lib/kscope"))
    shutil.copy(place.plugin, place.path("lib/kscope/kscope-qemu.so"))
    done = run(program, "record", "qemu", "--print", "--", "qemu-i386", env=env)
    check("the plugin is found where it is installed", done.returncode == 0 and
          f"file={place.folder}/lib/kscope/kscope-qemu.so," in done.stdout,
          done.stdout + done.stderr)
    exits("refused: no such emulator", run(KSCOPE, "record", "qemu", "--", "qemu-system-nothing",
                                           env=place.env), 3, "qemu-system-nothing", "installed")
    exits("refused: not a program",
          run(KSCOPE, "record", "qemu", "--", place.plugin, env=place.env), 3, "Permission denied")
    done = place.record("-o", "n.data", emulator=["-no-stream"])
    exits("refused: a QEMU without plugins", done, 3, "I do not like this", "status 1",
          "built without TCG plugins", "--enable-plugins")
    exits("refused: a script that keeps the plugin to itself",
          run(KSCOPE, "record", "qemu", "--", "true", cwd=place.folder, env=place.env), 3, "script",
          "--print")
    check("refused: no output", not os.path.exists(place.path("n.data")) and not place.litter(),
          os.listdir(place.folder))
    flag = place.path("started")
    for output, words in (("no/x.data", ("no/x.data", "No such file")),
                          ("no/x.kscope", ("No such",)), ("/dev/null", ("regular file",)),
                          ("bin/", ("bin/",))):
        more = {"bin/": ["-t", "perfdata"], "/dev/null": ["-t", "kscope"]}.get(output, [])
        exits(f"refused: {output} cannot be written",
              place.record("-o", output, *more, emulator=["-args", flag]), 4, *words)
    check("refused: before the guest starts", not os.path.exists(flag))
    done = place.record("-o", "/dev/full", "-t", "perfdata")
    exits("a full disk: the raw stream is kept", done, 4, "/dev/full", "kept the raw stream: ")
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
    exits("attach: somebody has the socket", place.record("--control", "ctl"), 2, "already exists")
    check("attach: status", "running=0\n" in attach("status").stdout)
    equal("attach: start", (attach("start").returncode, "running=1\n" in attach("status").stdout),
          (0, True))
    equal("attach: stop", (attach("stop").returncode, "running=0\n" in attach("status").stdout),
          (0, True))
    exits("attach: an error of the guest's", attach("flush"), 3, "flush: the disk? is full")
    exits("attach: another word", attach("jump"), 2, "start, stop, flush or status")
    child.terminate()
    child.communicate(timeout=HANGS)
    exits("attach: it has ended", attach("status"), 3, "ctl", "still run")
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(place.path("dead"))
    exits("attach: nobody listens", run(KSCOPE, "record", "qemu", "--attach", place.path("dead"),
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
    """Runs kscope with a terminal, and types Ctrl-C when the terminal shows `until`.

    Returns what the terminal shows, and the exit code."""
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
        place = Place(folder)
        test_refusals(place)
        test_attach(place)
        test_terminal(place)
    finish()


if __name__ == "__main__":
    main()
