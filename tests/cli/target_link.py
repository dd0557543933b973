#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The sampler for kernels, at the end of a link: kscope records it over TCP and over a serial line, also if the link is
slow, damages bytes, or breaks. Whatever the link does, read + lost = taken, and only damaged messages are lost."""
import os
import pty
import random
import re
import select
import socket
import subprocess
import sys
import threading
import tty

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import BUILD, HANGS, KSCOPE, check, equal, finish, no_problems, passes, run, scratch
from kit.board import Recorder
from kit.wire_read import Stream, fields, varint

BOARD = os.path.join(BUILD, "tests", "target_board")
SAMPLES, CPUS = 400, 4
ALL = SAMPLES * CPUS
# Faults are between these: a recording needs its beginning to be recognized, and its end to be over.
CLEAR = 1500
SEEDS = 60


class Relay:
    """Between the board and kscope. faults: {position in the stream: a function that changes the bytes from there on}.
    breaks: positions at which the link breaks, and so many bytes are lost."""

    def __init__(self, *words, faults=None, breaks=()):
        self.board = subprocess.Popen([BOARD, *map(str, words)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE)
        self.faults, self.breaks = faults or {}, list(breaks)
        self.starts = 0
        self.position = 0
        self.thread = threading.Thread(target=self.run, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *what):
        self.thread.join(HANGS)
        # taken, sent, dropped, as the board says at its end
        self.counts = tuple(map(int, re.findall(rb"\d+", self.board.communicate(timeout=HANGS)[1])))

    def run(self):
        while self.connect():
            if not self.play():
                return

    def read_board(self):
        """The next bytes, up to a fault or a break."""
        places = [at for at in [*self.faults, *self.breaks] if at > self.position]
        return os.read(self.board.stdout.fileno(), min([65536, *(at - self.position for at in places)]))

    def play(self):
        """One connection, from its `start` on. Returns whether there will be another one."""
        starts = self.starts
        while True:
            ready = select.select([self.fd] + [self.board.stdout] * (self.starts > starts), [], [], HANGS)[0]
            if self.fd in ready:
                typed = self.read()
                if not typed:
                    return False
                self.starts += typed.count(b"start\n")
                try:
                    self.board.stdin.write(typed)
                    self.board.stdin.flush()
                except BrokenPipeError:
                    pass
            elif self.board.stdout in ready:
                if self.position in self.breaks:
                    self.breaks.remove(self.position)
                    self.close()
                    return True
                data = self.read_board()
                if not data:
                    return self.linger()
                change = self.faults.get(self.position, lambda data: data)
                self.position += len(data)
                self.write_all(change(data))

    def linger(self):
        """The board is done: kscope closes the link."""
        while self.fd in select.select([self.fd], [], [], HANGS)[0] and self.read():
            pass
        self.close()
        return False

    def write_all(self, data):
        while data:
            data = data[os.write(self.fd, data):]


class Tcp(Relay):
    def __init__(self, *words, **more):
        super().__init__(*words, **more)
        self.server = socket.create_server(("127.0.0.1", 0))
        self.words = ["tcp", f"127.0.0.1:{self.server.getsockname()[1]}"]

    def connect(self):
        self.link, _ = self.server.accept()
        self.fd = self.link.fileno()
        return True

    def read(self):
        try:
            return self.link.recv(4096)
        except ConnectionError:
            return b""

    def close(self):
        self.link.close()


class Serial(Relay):
    def __init__(self, *words, **more):
        super().__init__(*words, **more)
        self.fd, self.slave = pty.openpty()
        tty.setraw(self.slave)
        self.words = ["serial", os.ttyname(self.slave)]

    def connect(self):
        return True

    def read(self):
        try:
            return os.read(self.fd, 4096)
        except OSError:
            return b""

    def linger(self):
        return False

    def close(self):
        pass


def record(folder, relay):
    """Returns the recorder, and what kscope info says about the raw stream."""
    recorder = Recorder(folder, *relay.words, "-f", "kscope", "-o", "out.kscope")
    recorder.end()
    return recorder, info(recorder.path("out.kscope"))


def info(path):
    done = run(KSCOPE, "info", path)
    found = {match[1]: int(match[2]) for match in re.finditer(r"^(samples|lost) +(\d+)$", done.stdout, re.M)}
    for match in re.finditer(r"^task +(\w+) +(\d+) samples", done.stdout, re.M):
        found[match[1]] = int(match[2])
    match = re.search(r"^event +cpu-clock .* (\d+) counted", done.stdout, re.M)
    found["counted"] = int(match[1]) if match else None
    return found


def stream(*words):
    """What the board sends over a good link, and what it counts."""
    done = run(BOARD, *words, input=b"start\n", binary=True)
    return done.stdout, tuple(map(int, re.findall(rb"\d+", done.stderr)))


def chunks(data):
    """(begin, end, samples) of each chunk, and the samples that it says were dropped."""
    at = 0
    while at < len(data):
        size, body = varint(data, at + 1)
        found = list(fields(data[body:body + size]))
        yield at, body + size, sum(number == 6 for number, _ in found), dict(found).get(4, 0)
        at = body + size


def test_rules(folder):
    """What the board sends keeps the rules of wire/README.md, however slow its link is: rounds, orders, totals."""
    path = os.path.join(folder, "clean.kscope")
    for window in (40, 60, 90, 130, 200, 100000):
        data, (_, sent, _) = stream(SAMPLES, window)
        with open(path, "wb") as f:
            f.write(data)
        passes(f"{window} bytes between two samples: the rules", Stream, path)
        equal(f"{window} bytes between two samples: all of them", sum(chunk[2] for chunk in chunks(data)), sent)
        equal(f"{window} bytes between two samples: rounds", round_problems(data), [])


def round_problems(data):
    """Samples that are older than a round before them, or than another one of their cpu."""
    last, rounds, wrong = {}, 0, []
    for begin, end, *_ in chunks(data):
        body = varint(data, begin + 1)[1]
        found = list(fields(data[body:end]))
        for number, value in found:
            if number == 10:
                rounds = value
            elif number == 6:
                cpu, time = dict(found)[2], dict(fields(value))[1]
                if time < max(rounds, last.get(cpu, 0)):
                    wrong.append((cpu, time, rounds))
                last[cpu] = time
    return wrong if rounds else ["there are none"]


def test_links(folder):
    for link in (Tcp, Serial):
        name = link.__name__.lower()
        with link(SAMPLES, 100000) as relay:
            recorder, found = record(folder, relay)
        equal(f"{name}: kscope is content", (recorder.returncode, recorder.stderr.count("warning")), (0, 0))
        equal(f"{name}: the board", relay.counts, (ALL, ALL, 0))
        equal(f"{name}: samples, by task", found, {"samples": ALL, "lost": 0, "half": ALL // 2, "third": ALL * 3 // 10,
                                                   "rest": ALL // 5, "counted": ALL * 1000000})


def test_slow(folder):
    """A link that takes 60 bytes between two samples."""
    with Tcp(SAMPLES, 60, 32) as relay:
        _, found = record(folder, relay)
    taken, sent, dropped = relay.counts
    check("slow link: some were dropped", dropped > 100 and sent > 100, (sent, dropped))
    equal("slow link: taken = sent + dropped", (taken, sent + dropped), (ALL, ALL))
    equal("slow link: kscope reads the same", (found["samples"], found["lost"]), (sent, dropped))
    equal("slow link: the time of all is counted", found["counted"], ALL * 1000000)


def flip(rng):
    return lambda data: bytes([data[0] ^ 1 << rng.randrange(8)]) + data[1:]


def test_noise_live(folder):
    data, _ = stream(SAMPLES, 100000)
    wrong, hit = [], 0
    for seed in range(4):
        rng = random.Random(seed)
        places = sorted(rng.sample(range(CLEAR, len(data) - CLEAR), 8))
        with Tcp(SAMPLES, 100000, faults={at: flip(rng) for at in places}) as relay:
            _, found = record(folder, relay)
        allowed = sum(nr for begin, end, nr, _ in chunks(data) if any(begin <= at < end for at in places))
        hit += found["lost"] > 0
        if found["samples"] + found["lost"] != ALL or found["lost"] > allowed:
            wrong.append(f"seed {seed}: {found}, at most {allowed} lost")
    no_problems("noise on a link: read + lost = taken, and only damaged messages are lost", wrong)
    check("noise on a link: some are lost", hit, hit)


def test_breaks(folder):
    """The link breaks in the middle of chunks; kscope connects again, and asks for the beginning again."""
    data, _ = stream(SAMPLES, 100000)
    wrong = []
    for seed in range(3):
        rng = random.Random(seed)
        places = sorted(rng.sample(range(CLEAR, len(data) - CLEAR), 2))
        with Tcp(SAMPLES, 100000, breaks=places) as relay:
            recorder, found = record(folder, relay)
        if relay.starts != 3:
            wrong.append(f"seed {seed}: {relay.starts} starts")
        if recorder.returncode not in (0, 1) or found["samples"] + found["lost"] != ALL or not found["samples"]:
            wrong.append(f"seed {seed}: {found}, {recorder.stderr}")
    no_problems("a link that breaks: read + lost = taken", wrong)


def damage(rng, data):
    """The data with one fault, and where the original was hit."""
    at, size = rng.randrange(CLEAR, len(data) - 2 * CLEAR), rng.randrange(1, 300)
    kind = rng.randrange(4)
    if kind == 0:
        return data[:at] + rng.randbytes(size) + data[at + size:], (at, at + size)
    if kind == 1:
        return data[:at] + data[at + size:], (at, at + size)
    if kind == 2:
        return data[:at] + rng.randbytes(size) + data[at:], (at, at + 1)
    begin, end, *_ = rng.choice([chunk for chunk in chunks(data) if chunk[0] > CLEAR])
    return data[:end] + data[begin:end] + data[end:], (0, 0)  # a chunk that comes twice


def test_noise(folder):
    """The same, with many more faults, in files. Also if the sampler has dropped samples."""
    path = os.path.join(folder, "damaged.kscope")
    for name, words in (("a fast link", (SAMPLES, 100000)), ("a slow link", (SAMPLES, 60, 32))):
        data, (taken, *_) = stream(*words)
        all_chunks, wrong, hit = list(chunks(data)), [], 0
        for seed in range(SEEDS):
            changed, place = damage(random.Random(seed), data)
            with open(path, "wb") as f:
                f.write(changed)
            found = info(path)
            lost = sum(chunk[3] for chunk in all_chunks)
            allowed = lost + sum(nr for begin, end, nr, _ in all_chunks if begin < place[1] and end > place[0])
            hit += found["lost"] > lost
            if found["samples"] + found["lost"] != taken or found["lost"] > allowed:
                wrong.append(f"seed {seed}: {found}, at most {allowed} lost of {taken}")
        no_problems(f"{name}: read + lost = taken, and only damaged messages are lost", wrong)
        check(f"{name}: some are lost", hit > SEEDS // 4, hit)


def main():
    with scratch() as folder:
        test_rules(folder)
        test_links(folder)
        test_slow(folder)
        test_noise_live(folder)
        test_breaks(folder)
        test_noise(folder)
    finish()


if __name__ == "__main__":
    main()
