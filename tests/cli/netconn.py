#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""netconn: commands of the user, answers of a simulated seL4 board, and what it writes in the end."""
import glob
import json
import os
import pty
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import (HANGS, KSCOPE, check, default_signals, equal, exits, finish, kscope, no_problems, run, scratch,
                 wait_for)
from kit.wire_write import varint

GREETING = b"100 SEL4 PROFILING CLIENT\n"
MAPPINGS = {1: b"a.elf: 1\nb.elf: 2", 2: b"400 ERROR\n"}
NAMES = {"a.elf": 1, "b.elf": 2}
COMMANDS = (b"HELLO\n", b"START\n", b"STOP\n", b"REFRESH\n", b"MAPPINGS\n")


def sample(i, deep=False):
    """ip, pid, time, cpu, period, ips"""
    ips = [0x10000000 + 4 * (i + j) for j in range(16)] if deep else [0x200100 + 4 * i, 0x200200][:i % 3]
    return 0x200000 + i, 1 + i % 2, 1000 * i, i % 4, 1200000 + i, ips


def frame(sent, generation):
    """As the board sends it: 16 addresses, and two digits of the length. The first generation has no nr."""
    *numbers, ips = sent
    fields = list(enumerate(numbers, 1)) + ([(6, len(ips))] if generation == 2 else [])
    packed = b"".join(varint(ip) for ip in (ips + [0] * 16)[:16])
    data = b"".join(varint(number << 3) + varint(value) for number, value in fields if value)
    data += varint((7 if generation == 2 else 6) << 3 | 2) + varint(len(packed)) + packed
    return str(len(data)).zfill(2)[:2].encode() + data


class Board:
    """Listens. After START, it sends `nr` samples; then more until STOP if it is endless. connect: called with the
    socket instead of the conversation, for the nth connection."""

    def __init__(self, generation=2, nr=100, deep=False, segment=0, endless=False, deaf=False, strange=None):
        self.generation, self.nr, self.deep, self.segment = generation, nr, deep, segment
        self.endless, self.deaf, self.strange = endless, deaf, strange or {}
        self.sent, self.packets = [], []
        self.bytes = 0
        self.running = False
        self.over = False
        self.connections = 0
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.thread = threading.Thread(target=self.serve, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *what):
        self.over = True
        self.thread.join(HANGS)
        self.socket.close()

    def serve(self):
        while not self.over:
            if not select.select([self.socket], [], [], 0.05)[0]:
                continue
            link, _ = self.socket.accept()
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.connections += 1
            self.running = False
            try:
                with link:
                    self.strange.get(self.connections, self.talk)(link)
            except OSError:
                pass  # netconn is gone

    def talk(self, link):
        self.put(link, GREETING)
        left = 0
        while not self.over:
            if select.select([link], [], [], 0 if self.running else 0.05)[0]:
                packet = link.recv(4096)
                if not packet:
                    return
                left = self.obey(link, packet, left)
            if self.running:
                self.send_sample(link)
                left -= 1
                self.running = left > 0 or self.endless

    def obey(self, link, packet, left):
        """The board takes each packet for one command."""
        self.packets.append(packet)
        if packet.startswith(b"MAPPINGS\n"):
            self.put(link, MAPPINGS[self.generation])
        elif packet.startswith(b"START\n"):
            self.running, left = True, self.nr
        elif packet.startswith(b"STOP\n") and not self.deaf:
            for _ in range(20 if self.running else 0):  # the rest of the ring
                self.send_sample(link)
            self.running = False
        elif not packet.startswith(COMMANDS):
            self.put(link, b"400 ERROR\n")
        return left

    def send_sample(self, link):
        new = sample(len(self.sent), self.deep)
        self.put(link, frame(new, self.generation))
        self.sent.append(new)

    def put(self, link, data):
        size = self.segment or len(data)
        for at in range(0, len(data), size):
            link.sendall(data[at:at + size])
        self.bytes += len(data)

    def has_sent(self, nr):
        return wait_for(lambda: len(self.sent) >= nr)


class Netconn:
    """The program, in a folder of its own."""

    def __init__(self, folder, port, *words, limit=None, **more):
        self.folder = tempfile.mkdtemp(dir=folder)
        self.out, self.err = (os.path.join(self.folder, name) for name in (".out", ".err"))
        with open(self.out, "wb") as out, open(self.err, "wb") as err:
            self.process = subprocess.Popen(
                [KSCOPE, "netconn", "--ip", "127.0.0.1", "--port", str(port), *words],
                cwd=self.folder, **{"stdin": subprocess.PIPE, "stdout": out, "stderr": err, **more})
        if limit:
            resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, (limit, limit))
        self.returncode = None

    def type(self, text):
        self.process.stdin.write(text.encode())
        self.process.stdin.flush()
        return self

    @property
    def stdout(self):
        with open(self.out, encoding="utf-8") as f:
            return f.read()

    @property
    def stderr(self):
        with open(self.err, encoding="utf-8") as f:
            return f.read()

    def says(self, text, times=1):
        """Waits until it does, or ends."""
        def said():
            return (self.stdout + self.stderr).count(text) >= times
        wait_for(lambda: said() or self.process.poll() is not None)
        return said()

    def end(self):
        """The end of its input, if that is still open. Returns self, for exits()."""
        if self.process.stdin:
            self.process.stdin.close()
        try:
            self.returncode = self.process.wait(HANGS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.returncode = self.process.wait()
        return self

    def raw(self):
        return glob.glob(os.path.join(glob.escape(self.folder), ".samples.json-*.kscope"))

    def has_received(self, board):
        """Waits until all that the board has sent is in the raw stream."""
        return wait_for(lambda: sum(map(os.path.getsize, self.raw())) >= board.bytes)

    def document(self):
        path = os.path.join(self.folder, "samples.json")
        if not os.path.exists(path):
            return {"samples": []}
        with open(path, encoding="utf-8") as f:
            return json.load(f)

    def samples(self):
        """As the board sent them."""
        return [(int(s["ip"]), s["pid"], int(s["time"]), s["cpu"], int(s["period"]),
                 [int(ip) for ip in s["ips"]]) for s in self.document()["samples"]]

    def wrong_types(self):
        """Samples that the profiler's other tools cannot read: 64-bit numbers have to be strings."""
        def is_right(s):
            texts = [s[key] for key in ("ip", "time", "period", "nr")] + s["ips"]
            return (all(isinstance(text, str) for text in texts) and int(s["nr"]) == len(s["ips"]) and
                    isinstance(s["pid"], int) and isinstance(s["cpu"], int))
        return [s for s in self.document()["samples"] if not is_right(s)]


def same_samples(name, netconn, board, at_least=1):
    got, want = netconn.samples(), board.sent
    first = next((i for i, pair in enumerate(zip(got, want)) if pair[0] != pair[1]), min(len(got), len(want)))
    return check(name, got == want and len(got) >= at_least,
                 f"{len(got)} samples, sent {len(want)}, the first difference is at {first}")


def test_rounds(folder, generation):
    """Two rounds become one list of samples."""
    name = f"generation {generation}"
    with Board(generation, nr=300) as board:
        netconn = Netconn(folder, board.port)
        netconn.type("Connect\n").says("connected to")
        netconn.type("  START \r\n")
        board.has_sent(300)
        netconn.type("stop\n")
        check(f"{name}: STOP says how many samples there are", netconn.says("stopped: 300 samples"),
              netconn.stdout + netconn.stderr)
        netconn.type("start\n")
        board.has_sent(600)
        netconn.type("exit\n")
        exits(f"{name}: EXIT", netconn.end(), 0)
        equal(f"{name}: no complaints", netconn.stderr, "")
        check(f"{name}: no prompt if nobody types", ">" not in netconn.stdout, netconn.stdout)
        check(f"{name}: it says what it wrote", "wrote samples.json: 600 samples" in netconn.stdout,
              netconn.stdout)
        same_samples(f"{name}: the samples are those of the board", netconn, board, 600)
        no_problems(f"{name}: the types of numbers", netconn.wrong_types())
        equal(f"{name}: the mappings", netconn.document().get("elf_tcb_mappings"),
              NAMES if generation == 1 else None)
        equal(f"{name}: the raw stream is gone", netconn.raw(), [])
        equal(f"{name}: the commands, one in each packet",
              [packet for packet in board.packets if packet != b"REFRESH\n"],
              [b"MAPPINGS\n", b"START\n", b"STOP\n", b"START\n", b"STOP\n"])
        path = os.path.join(netconn.folder, "samples.json")
        done = kscope("toperf", "-s", path, "-b", netconn.folder, "-o", "-", binary=True)
        check(f"{name}: toperf reads it", done.returncode < 2 and done.stdout.startswith(b"PERFILE2"),
              done.stderr)


def test_at_once(folder):
    """All commands at once, as a script pipes them."""
    with Board(nr=50) as board:
        netconn = Netconn(folder, board.port).type("connect\nstart\nstop\nq")
        exits("all commands at once", netconn.end(), 0)
        equal("all commands at once: one in each packet",
              [packet for packet in board.packets if packet != b"REFRESH\n"],
              [b"MAPPINGS\n", b"START\n", b"STOP\n"])
        same_samples("all commands at once: the samples", netconn, board)


STREAMS = {
    "messages of 100 bytes and more": {"nr": 200, "deep": True},
    "segments of one byte": {"nr": 60, "segment": 1},
    "segments of seven bytes": {"generation": 1, "nr": 3000, "segment": 7},
    "segments that cut long messages": {"nr": 500, "segment": 50, "deep": True},
    "a long stream": {"nr": 30000}}


def test_stream(folder, name, options):
    with Board(**options) as board:
        netconn = Netconn(folder, board.port).type("connect\nstart\n")
        board.has_sent(board.nr)
        exits(name, netconn.end(), 0)
        same_samples(f"{name}: the samples", netconn, board, board.nr)


def test_stop(folder):
    with Board(endless=True) as board:
        netconn = Netconn(folder, board.port).type("connect\nstart\n")
        board.has_sent(500)
        netconn.type("stop\n").says("stopped:")
        exits("STOP in the middle", netconn.type("exit\n").end(), 0)
        same_samples("STOP in the middle: nothing is lost", netconn, board, 500)


def test_signals(folder):
    for which in (signal.SIGINT, signal.SIGTERM):
        with Board(endless=True) as board:
            netconn = Netconn(folder, board.port).type("connect\nstart\n")
            board.has_sent(200)
            netconn.process.send_signal(which)
            netconn.process.wait(HANGS)
            exits(which.name, netconn.end(), 0)
            check(f"{which.name}: it stops the board", b"STOP\n" in board.packets, board.packets)
            same_samples(f"{which.name}: the samples", netconn, board, 200)
    with Board(endless=True, deaf=True) as board:
        netconn = Netconn(folder, board.port).type("connect\nstart\n")
        board.has_sent(200)
        netconn.process.send_signal(signal.SIGINT)
        wait_for(lambda: b"STOP\n" in board.packets)
        netconn.process.send_signal(signal.SIGINT)
        netconn.process.wait(HANGS)
        check("a second Ctrl-C: it does not wait for a board that goes on", netconn.end().returncode < 2,
              netconn.stderr)
        check("a second Ctrl-C: the samples", netconn.samples()[:200] == board.sent[:200],
              len(netconn.samples()))


def test_broken(folder):
    """A reset in the middle of a sample. The session goes on."""
    lasts = threading.Event()

    def reset(link):
        board.put(link, GREETING)
        for _ in range(50):
            board.send_sample(link)
        board.put(link, frame(sample(0), 2)[:9])
        lasts.wait(HANGS)
        link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def close(link):
        board.put(link, GREETING)
        board.send_sample(link)
        link.recv(4096)

    board = Board(nr=40, strange={1: reset, 2: close})
    with board:
        netconn = Netconn(folder, board.port).type("connect\nstart\n")
        board.has_sent(50)
        check("a reset: all bytes are in the raw stream", netconn.has_received(board), netconn.raw())
        bytes_before = board.bytes
        lasts.set()
        check("a reset is reported", netconn.says(f"the link broke after {bytes_before} bytes (") and
              "enter CONNECT" in netconn.stderr, netconn.stderr)
        netconn.type("start\n")
        check("a reset: it is not connected any more", netconn.says("not connected"), netconn.stderr)
        netconn.type("connect\n")
        check("a closed connection is reported", netconn.says("the link broke after", 2), netconn.stderr)
        netconn.type("connect\n").says("connected to", 3)
        netconn.type("start\n")
        board.has_sent(91)
        exits("a reset: the exit code says that something is missing", netconn.end(), 1,
              "bytes of the stream are damaged")
        same_samples("a reset: the samples of all connections", netconn, board, 91)


def test_refusals(folder):
    def silent(link):
        link.recv(1)

    def other(link):
        link.sendall(b"SSH-2.0-\x1b[31mOpenSSH\r\n")
        link.recv(1)

    with Board(strange={1: silent, 2: other, 3: lambda link: None}) as board:
        netconn = Netconn(folder, board.port)
        check("no greeting", netconn.type("connect\n").says("sent no greeting; check"), netconn.stderr)
        check("another greeting", netconn.type("connect\n").says("not the seL4 profiler"),
              netconn.stderr)
        check("another greeting: no escapes", "\x1b" not in netconn.stderr, netconn.stderr)
        check("closed without a greeting", netconn.type("connect\n").says("no greeting ("), netconn.stderr)
        netconn.type("connect\nstart\n")
        board.has_sent(100)
        exits("then it works", netconn.end(), 0)
        same_samples("then it works: nothing of the others is in the samples", netconn, board, 100)
    netconn = Netconn(folder, board.port).type("connect\n")
    check("nobody listens", netconn.says("cannot connect"), netconn.stderr)
    check("nobody listens: the session goes on", netconn.type("help\n").says("CONNECT "), netconn.stdout)
    exits("nobody listens: the exit code", netconn.end(), 3, "received no data", "samples.json")
    equal("nobody listens: no files", sorted(os.listdir(netconn.folder)), [".err", ".out"])


def test_commands(folder):
    with Board(nr=10) as board:
        netconn = Netconn(folder, board.port)
        check("START before CONNECT", netconn.type("START\n").says("not connected: use CONNECT"),
              netconn.stderr)
        check("STOP before CONNECT", netconn.type("STOP\n").says("not connected", 2), netconn.stderr)
        check("an unknown command", netconn.type("\n\nfoo bar\n").says("unknown command: foo bar") and
              netconn.says("CONNECT "), netconn.stderr + netconn.stdout)
        check("a long line", netconn.type("x" * 20000 + "\n").says("unknown command: xxx"), "")
        netconn.type("connect\n").says("connected to")
        check("CONNECT twice", netconn.type("connect\n").says("already connected"), netconn.stdout)
        netconn.type("start\n").says("started")
        check("START twice", netconn.type("start\n").says("already started"), netconn.stdout)
        board.has_sent(10)
        exits("the session goes on", netconn.type(" Q \n").end(), 0)
        same_samples("the session goes on: the samples", netconn, board, 10)
    exits("EXIT at once", Netconn(folder, 9, ).type("exit\n").end(), 0)


def test_terminal(folder):
    """On a terminal, there are a prompt and a line with the number of samples."""
    terminal, end = pty.openpty()
    seen = b""

    def shows(text):
        nonlocal seen
        limit = time.monotonic() + HANGS
        while text not in seen and time.monotonic() < limit:
            if select.select([terminal], [], [], 0.1)[0]:
                seen += os.read(terminal, 4096)
        found = text in seen
        seen = seen.partition(text)[2]
        return found

    with Board(nr=77) as board:
        netconn = Netconn(folder, board.port, stdin=end, stdout=end, stderr=end)
        check("terminal: a prompt", shows(b"> "), seen)
        os.write(terminal, b"connect\n")
        check("terminal: connected", shows(b"connected to 127.0.0.1") and shows(b"> "), seen)
        os.write(terminal, b"start\n")
        check("terminal: the number of samples", shows(b"> ") and shows(b"77 samples"), seen)
        os.write(terminal, b"\x04")
        check("terminal: Ctrl-D ends it", shows(b"wrote samples.json: 77 samples"), seen)
        exits("terminal: the exit code", netconn.end(), 0)
        same_samples("terminal: the samples", netconn, board, 77)
    with Board(nr=5) as board:
        netconn = Netconn(folder, board.port, stdin=end, stdout=end, stderr=end, start_new_session=True,
                          preexec_fn=default_signals)
        os.write(terminal, b"connect\n")
        check("terminal: connected again", shows(b"connected to"), seen)
        netconn.process.send_signal(signal.SIGHUP)
        netconn.end()
        equal("terminal: it closes, and what arrived is written", netconn.document()["samples"], [])
    os.close(end)
    os.close(terminal)


def test_no_room(folder):
    for name, limit in {"no room for the raw stream": 8192, "no room for samples.json": 65536}.items():
        with Board(nr=900) as board:
            netconn = Netconn(folder, board.port, limit=limit).type("connect\nstart\n")
            if limit == 65536:
                board.has_sent(900)
            else:
                netconn.process.wait(HANGS)
            exits(name, netconn.end(), 4, "cannot write" if limit == 8192 else "samples.json",
                  "kept the received data", "kscope convert")
            check(f"{name}: it does not exist", "samples.json" not in os.listdir(netconn.folder),
                  os.listdir(netconn.folder))
            out = os.path.join(netconn.folder, "later.json")
            kscope("convert", *netconn.raw(), "-f", "sel4-pb", "-t", "sel4-json", "-o", out)
            os.rename(out, os.path.join(netconn.folder, "samples.json"))
            got = netconn.samples()
            check(f"{name}: the raw stream has the samples", got == board.sent[:len(got)] and
                  len(got) > (100 if limit == 8192 else 899), len(got))


def test_killed(folder):
    with Board(nr=400) as board:
        netconn = Netconn(folder, board.port).type("connect\nstart\n")
        board.has_sent(400)
        netconn.has_received(board)
        netconn.process.kill()
        netconn.end()
        done = kscope("convert", *netconn.raw(), "-t", "dump", "-o", "-")
        equal("kill -9: the raw stream has the samples", done.stdout.count("\nsample "), 400)


def test_formats(folder):
    for output, start in {"perf.data": b"PERFILE2", "flame.svg": b"<", "samples.json.gz": b"\x1f\x8b"}.items():
        with Board(generation=1, nr=30) as board:
            netconn = Netconn(folder, board.port, "--output", output).type("connect\nstart\n")
            board.has_sent(30)
            check(f"{output}: the exit code", netconn.end().returncode <= 1, netconn.stderr)
            with open(os.path.join(netconn.folder, output), "rb") as f:
                check(f"{output}: its format", f.read().startswith(start))
            done = kscope("info", os.path.join(netconn.folder, output))
            check(f"{output}: its samples", output == "flame.svg" or "30" in done.stdout, done.stdout)
    with Board(generation=2, nr=30) as board:
        with open(os.path.join(folder, "sample_header.json"), "w", encoding="utf-8") as f:
            json.dump({"elf_tcb_mappings": NAMES}, f)
        netconn = Netconn(folder, board.port, "--build-dir", folder).type("connect\nstart\n")
        board.has_sent(30)
        netconn.end()
        equal("--build-dir: the mappings of the second generation",
              netconn.document().get("elf_tcb_mappings"), NAMES)


def test_options(folder):
    exits("no --ip", kscope("netconn", "--port", "1"), 2, "--ip")
    exits("a wrong port", kscope("netconn", "--ip", "x", "--port", "12x"), 2, "12x")
    exits("a word too many", kscope("netconn", "--ip", "x", "y"), 2, "--ip")
    exits("no such folder for the output",
          kscope("netconn", "--ip", "x", "--output", os.path.join(folder, "none", "s.json")), 4, "none")
    exits("stdout as output", kscope("netconn", "--ip", "x", "--output", "-"), 2, "--output FILE")
    link = os.path.join(folder, "netconn")
    os.symlink(KSCOPE, link)
    check("help, by its name", "--output FILE" in run(link, "--help").stdout)


def main():
    tests = [(test_rounds, 1), (test_rounds, 2), (test_refusals,), (test_signals,), (test_broken,),
             (test_commands,), (test_at_once,), (test_stop,), (test_terminal,), (test_no_room,),
             (test_killed,), (test_formats,), (test_options,)]
    tests += [(test_stream, name, options) for name, options in STREAMS.items()]
    with scratch() as folder, ThreadPoolExecutor(6) as pool:  # most of the time, they wait
        for done in [pool.submit(test, folder, *more) for test, *more in tests]:
            done.result()
    finish()


if __name__ == "__main__":
    main()
