#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""kscope record tcp and listen: recordings that do not begin, disks that fill, a kscope that is killed, and the
status line."""
import fcntl
import glob
import os
import pty
import re
import resource
import select
import signal
import socket
import struct
import sys
import termios
import threading

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import HANGS, check, equal, exits, finish, read_folded, scratch, wait_for
from kit import sel4
from kit.board import CLOSE, Client, Recorder, Server, sel4_profiler
from kit.streams import KERNEL, NAMES, Sample, Wire, foreign, sel4_pb, take, wire, wire_samples


def outputs(recorder):
    """Everything that kscope left in its folder."""
    return sorted(name for name in os.listdir(recorder.folder) if not name.startswith("messages"))


def test_usage():
    with scratch() as folder:
        for words, want in (
                (["tcp"], "HOST:PORT"), (["tcp", "host"], "HOST:PORT"), (["tcp", "host:"], "HOST:PORT"),
                (["tcp", ":5"], "HOST:PORT"), (["tcp", "host:x"], "HOST:PORT"),
                (["tcp", "host:0"], "HOST:PORT"), (["tcp", "host:65536"], "HOST:PORT"),
                (["tcp", "[::1:5"], "HOST:PORT"), (["tcp", "::1:5"], "HOST:PORT"),
                (["tcp", "a:1", "b:2"], "b:2"),
                (["listen"], "PORT"), (["listen", "x:y"], "PORT"), (["listen", "65536"], "PORT"),
                (["listen", ""], "PORT"),
                (["tcp", "h:1", "--duration", "0"], "--duration"),
                (["tcp", "h:1", "--duration", "x"], "--duration"),
                (["tcp", "h:1", "--retry", "x"], "--retry"), (["tcp", "h:1", "--retry", "-1"], "--retry"),
                (["tcp", "h:1", "--until", ""], "--until"),
                (["tcp", "h:1", "--start-with", "\\q"], "--start-with"),
                (["tcp", "h:1", "--stop-with", "\\x4"], "--stop-with"),
                (["tcp", "h:1", "-t", "xyz"], "xyz"), (["tcp", "h:1", "-f", "xyz"], "xyz"),
                (["tcp", "h:1", "-o", "x.xyz"], "-t FORMAT"),
                (["tcp", "h:1", "-o", "x.kscope", "--keep", "y"], "only one file"),
                (["tcp", "h:1", "--no-such"], "--no-such"),
                (["tcp", "h:1", "--kernel", "nowhere"], "nowhere"),
                (["carrier-pigeon", "h:1"], "carrier-pigeon")):
            recorder = Recorder(folder, *words).end()
            exits(f"usage: {' '.join(words)}", recorder, 2, want)
        equal("usage: none of it left a file", outputs(recorder), [])


def test_nothing():
    with socket.socket() as closed:  # not listening: connections are refused
        closed.bind(("127.0.0.1", 0))
        with scratch() as folder:
            recorder = Recorder(folder, "tcp", f"127.0.0.1:{closed.getsockname()[1]}").end()
            exits("refused", recorder, 3, "cannot connect", "refused")
            equal("refused: no output", outputs(recorder), [])
    with scratch() as folder:
        recorder = Recorder(folder, "tcp", "no-such-host.invalid:1").end()
        exits("no such host", recorder, 3, "no-such-host.invalid")
    with scratch() as folder, Server([]) as board:
        recorder = Recorder(folder, "tcp", board.address, "--duration", "0.3").end()
        exits("a silent board", recorder, 3, f"{board.address}: received no data")
        equal("a silent board: no output", outputs(recorder), [])
    with scratch() as folder, Server([CLOSE]) as board:
        recorder = Recorder(folder, "tcp", board.address, "--no-retry").end()
        exits("a board that closes at once", recorder, 3, "received no data")
        equal("a board that closes at once: no output", outputs(recorder), [])
    with scratch() as folder, Server([]) as board:
        old = os.path.join(folder, "perf.data")
        with open(old, "wb") as f:
            f.write(b"old")
        recorder = Recorder(folder, "tcp", board.address)
        recorder.waits_for(lambda: board.connections)
        recorder.interrupt().end()
        exits("Ctrl-C before anything came", recorder, 3, "received no data")
        equal("Ctrl-C before anything came: the old output stays", recorder.bytes("perf.data"), b"old")


def test_unknown():
    """Bytes of no format that kscope knows: they may be precious, so they stay."""
    text = b"Welcome to the board.\r\n" * 40
    with scratch() as folder, Server([text, CLOSE]) as board:
        recorder = Recorder(folder, "tcp", board.address, "-o", "out.dump").end()
        exits("an unknown format", recorder, 3, "-f FORMAT")
        kept = glob.glob(recorder.path(".out.dump-*.kscope"))
        check("an unknown format: the raw stream stays, and the message says where",
              len(kept) == 1 and os.path.basename(kept[0]) in recorder.stderr, recorder.stderr)
        check("an unknown format: it is what came", kept and recorder.bytes(kept[0]) == text)
        check("an unknown format: no output", not os.path.exists(recorder.path("out.dump")))
    with scratch() as folder, Server([text, CLOSE]) as board:
        recorder = Recorder(folder, "tcp", board.address, "-o", "x.kscope").end()
        check("an unknown format, raw: it is kept", recorder.bytes("x.kscope") == text, recorder.stderr)


def is_listening(port):
    with open("/proc/net/tcp", encoding="ascii") as f, open("/proc/net/tcp6", encoding="ascii") as six:
        rows = [line.split() for line in f.readlines()[1:] + six.readlines()[1:]]
    return any(row[3] == "0A" and int(row[1].split(":")[1], 16) == port for row in rows)


def test_listen_nobody():
    board = Client()
    with scratch() as folder:
        recorder = Recorder(folder, "listen", board.port)
        recorder.waits_for(lambda: is_listening(board.port))
        recorder.interrupt().end()
        exits("nobody connects", recorder, 3, "received no data")
        equal("nobody connects: no output", outputs(recorder), [])
    with scratch() as folder, Server() as other:
        recorder = Recorder(folder, "listen", other.port).end()
        exits("the port is taken", recorder, 3, str(other.port), "in use")
    board.close()


def test_unwritable():
    """An output that cannot be written is refused before the board is disturbed."""
    with scratch() as folder, Server(wire(wire_samples(20))) as board:
        for words in (["-o", "nowhere/out.dump"], ["-o", "out.dump", "--keep", "nowhere/raw"],
                      ["-o", "out.dump", "-o", "nowhere/x.svg"]):
            recorder = Recorder(folder, "tcp", board.address, *words).end()
            exits(f"unwritable: {' '.join(words)}", recorder, 4, "nowhere")
        equal("unwritable: the board was left alone", board.connections, 0)
        equal("unwritable: nothing is left", outputs(recorder), [])


def limit(size):
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def test_full():
    """The disk is full at some byte. What came before is readable, and the result is not a success."""
    samples = wire_samples(3000)
    pieces = wire(samples)
    size = 30000
    with scratch() as folder, Server(pieces) as board:
        recorder = Recorder(folder, "tcp", board.address, "-o", "x.kscope", preexec_fn=limit(size)).end()
        check("full: the raw stream: exit code", recorder.returncode in (1, 4), recorder.returncode)
        check("full: the raw stream: a message", "x.kscope: " in recorder.stderr and "File too large" in
              recorder.stderr, recorder.stderr)
        kept = recorder.bytes("x.kscope")
        check("full: the raw stream: everything up to there", kept == b"".join(pieces)[:size], len(kept))
        got, done = recorder.converted("x.kscope")
        check("full: the raw stream: it is readable", done.returncode == 1 and got and
              not foreign(got, samples), done.stderr)
    with scratch() as folder, Server(pieces) as board:
        recorder = Recorder(folder, "tcp", board.address, "-o", "x.folded", "--keep", "raw", "-t", "folded",
                            preexec_fn=limit(size)).end()
        check("full: a small output: exit code", recorder.returncode in (1, 4), recorder.returncode)
        check("full: a small output: a message", "File too large" in recorder.stderr, recorder.stderr)
        if os.path.exists(recorder.path("x.folded")):
            before = recorder.converted("raw")[0]
            equal("full: a small output: it has what came before",
                  sum(read_folded(recorder.path("x.folded")).values()), sum(s.weight for s in before))
    with scratch() as folder, Server(pieces) as board:
        recorder = Recorder(folder, "tcp", board.address, "-o", "out.dump", preexec_fn=limit(size)).end()
        equal("full: the output, too: exit code", recorder.returncode, 4)
        check("full: the output, too: no half of one", not os.path.exists(recorder.path("out.dump")))
        kept = glob.glob(recorder.path(".out.dump-*.kscope"))
        check("full: the output, too: the raw stream stays, and the message says where",
              len(kept) == 1 and os.path.basename(kept[0]) in recorder.stderr, recorder.stderr)


def test_killed():
    samples = take(200)
    board = Server(**sel4_profiler())
    board.scripts = [[board.heard("START"), *sel4_pb(samples)]]
    with scratch() as folder, board:
        recorder = Recorder(folder, "tcp", board.address, "-o", "out.dump", *NAMES)
        size = len(sel4.GREETING + sel4.ERROR + b"".join(sel4_pb(samples)))
        kept = []

        def all_is_there():
            kept[:] = glob.glob(os.path.join(folder, ".out.dump-*.kscope"))
            return kept and os.path.getsize(kept[0]) >= size

        recorder.waits_for(all_is_there)
        recorder.interrupt(signal.SIGKILL).end()
        check("killed: the raw stream is beside the output", len(kept) == 1, os.listdir(folder))
        check("killed: it has everything", recorder.bytes(kept[0]) == board.sent)
        got, done = recorder.converted(kept[0], *NAMES)
        equal("killed: kscope convert reads it", (done.returncode, sorted(got)), (0, sorted(samples)))
        check("killed: no output", not os.path.exists(recorder.path("out.dump")))


class Terminal:
    """A pty for stderr, and what was written to it."""

    def __init__(self):
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("4H", 24, 200, 0, 0))
        self.text = ""
        self.over = False
        self.thread = threading.Thread(target=self.collect, daemon=True)
        self.thread.start()

    def collect(self):
        while not self.over:
            if select.select([self.master], [], [], 0.05)[0]:
                self.text += os.read(self.master, 4096).decode(errors="replace")

    def close(self):
        self.over = True
        self.thread.join(HANGS)
        os.close(self.master)
        os.close(self.slave)


def hot_samples(nr):
    """Two thirds of the samples are in hot_function, and none has callers."""
    return [Sample(1000000 * (i + 1), 0, 1, 1000000, (KERNEL + (0x2000 if i % 3 else 0x1000) + 4 * (i % 50),))
            for i in range(nr)]


def test_status():
    samples = hot_samples(900)
    with scratch() as folder:
        with open(os.path.join(folder, "System.map"), "w", encoding="ascii") as f:
            f.write(f"{KERNEL:016x} T _text\n{KERNEL + 0x1000:016x} T other_function\n"
                    f"{KERNEL + 0x2000:016x} T hot_function\n{KERNEL + 0x3000:016x} T last_function\n")
        stream = Wire(cpus=1)
        go_on, terminal = threading.Event(), Terminal()
        script = [*stream.head(), *stream.body(samples), go_on, *stream.tail()]
        with Server(script) as board:
            recorder = Recorder(folder, "tcp", board.address, "--kernel", "System.map", "-o", "out.dump",
                                stderr=terminal.slave)
            line = re.compile(r"\r[^\r\n]*\b900 samples[^\r\n]*/s[^\r\n]*\b0 lost[^\r\n]*6[67]% hot_function")
            recorder.waits_for(lambda: line.search(terminal.text))
            check("the status line", line.search(terminal.text), terminal.text[-500:])
            go_on.set()
            recorder.end()
        wait_for(lambda: "wrote" in terminal.text)
        equal("the status line: exit code", recorder.returncode, 0)
        equal("the status line: the samples", recorder.samples()[0], samples)
        check("the status line is erased at the end", "\r\x1b[K" in terminal.text, terminal.text[-300:])
        terminal.close()
    with scratch() as folder, Server(wire(samples)) as board:
        recorder = Recorder(folder, "tcp", board.address, "-o", "out.dump").end()
        check("no terminal, no status line", recorder.returncode in (0, 1) and "\r" not in recorder.stderr and
              "\x1b" not in recorder.stderr, recorder.stderr)


def main():
    test_usage()
    test_nothing()
    test_unknown()
    test_listen_nobody()
    test_unwritable()
    test_full()
    test_killed()
    test_status()
    finish()


if __name__ == "__main__":
    main()
