#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Input that is still being written: kscope emits the events of a pipe as they arrive and finds the
kernel's address meanwhile. At the end, the output is the same as for a file."""
import glob
import os
import random
import shlex
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import HANGS, KSCOPE, ROOT, check, equal, finish, kscope, run, scratch, wait_for
from kit.inputs import read, unpacked
from kit.wire_write import chunk, end, info, round_, sample

ROUNDS, PER_ROUND = 6, 40
SLIDE = 0x1a00000
SECOND = 10**9


def functions():
    rng = random.Random(5)
    at, found = 0xffffffff81000000, []
    for i in range(400):
        found.append((at, f"function_{i}"))
        at += rng.randrange(1, 64) * 16
    return found


def recording(kernel, first=0):
    """The chunks that the plugin writes for a relocated kernel."""
    rng = random.Random(6 + first)
    pieces = [chunk(info(cpus=1, kernel=kernel))]
    for n in range(ROUNDS):
        start = (n + 1) * SECOND + first
        records = [sample(start + i * 1000, rng.choice(functions())[0] + SLIDE)
                   for i in range(PER_ROUND)]
        pieces += [chunk(*records, cpu=0, sequence=n), round_(start + SECOND // 2)]
    return pieces + [end((0, ROUNDS * PER_ROUND, 0))]


class Live:
    """kscope with pipes as inputs, and its output so far."""

    def __init__(self, *words, inputs=1, cwd=None):
        pipes = [os.pipe() for _ in range(inputs)]
        names = self.names = [f"/dev/fd/{read}" for read, _ in pipes]
        self.inputs = [write for _, write in pipes]
        self.output = b""
        self.process = subprocess.Popen([KSCOPE, "convert", *names, *words],
                                        pass_fds=[read for read, _ in pipes],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd)
        for read, _ in pipes:
            os.close(read)
        self.thread = threading.Thread(target=self.collect)
        self.thread.start()

    def collect(self):
        while True:
            data = os.read(self.process.stdout.fileno(), 65536)
            if not data:
                return
            self.output += data

    def write(self, data, which=0, step=0, ignore=False):
        """ignore: kscope may refuse the input, and end."""
        try:
            for at in range(0, len(data), step or len(data)):
                os.write(self.inputs[which], data[at:at + (step or len(data))])
        except BrokenPipeError:
            if not ignore:
                raise

    def samples(self):
        return [line for line in self.output.decode().splitlines() if line.startswith("sample")]

    def finish(self):
        for fd in self.inputs:
            os.close(fd)
        stderr = self.process.stderr.read().decode()
        code = self.process.wait(HANGS)
        self.thread.join()
        self.process.stdout.close()
        self.process.stderr.close()
        return code, stderr


def lines_of(text):
    return sorted(text.splitlines())


def test_flow(folder, kernel):
    pieces = recording(kernel)
    path = os.path.join(folder, "whole.kscope")
    with open(path, "wb") as f:
        f.write(b"".join(pieces))
    want = kscope("convert", path, "-t", "dump", "-o", "-").stdout
    live = Live("-t", "dump", "-o", "-")
    live.write(pieces[0] + pieces[1] + pieces[2], step=7)
    check("the first round comes out while the writer lives",
          wait_for(lambda: len(live.samples()) >= PER_ROUND), len(live.samples()))
    check("... and nothing else: the writer has not written it", len(live.samples()) == PER_ROUND,
          len(live.samples()))
    check("... with the kernel's place", b'anchor="function_0"' in live.output, live.output[:600])
    check("... and kscope waits", live.process.poll() is None)
    live.write(b"".join(pieces[3:6]) + pieces[6][:5])
    check("another round, and a piece of a chunk",
          wait_for(lambda: len(live.samples()) >= 2 * PER_ROUND), len(live.samples()))
    live.write(pieces[6][5:] + b"".join(pieces[7:]))
    code, stderr = live.finish()
    equal("exit code", (code, stderr), (0, ""))
    equal("in the end it is what the file gives", lines_of(live.output.decode()), lines_of(want))


def test_sums(folder):
    path = os.path.join(folder, "whole.kscope")
    with open(path, "rb") as f:
        piped = run(KSCOPE, "convert", "-", "-t", "folded", "-o", "-", input=f.read(), binary=True)
    equal("sums of a pipe and of a file", piped.stdout.decode(),
          kscope("convert", path, "-t", "folded", "-o", "-").stdout)
    check("they have the kernel's names", b"function_7 " in piped.stdout, piped.stdout[:300])


def test_merge(kernel):
    """An event must wait until all other inputs have an event."""
    one, two = recording(kernel), recording(kernel, first=500)
    live = Live("-t", "dump", "-o", "-", inputs=2)
    live.write(b"".join(one[:5]), which=0)
    live.write(b"".join(two[:3]), which=1)
    check("two pipes: what both have told", wait_for(lambda: len(live.samples()) >= PER_ROUND * 3 // 2),
          len(live.samples()))
    live.write(b"".join(two[3:]), which=1)
    live.write(b"".join(one[5:]), which=0)
    code, stderr = live.finish()
    times = [line.split("time=")[1].split()[0] for line in live.samples()]
    equal("two pipes: exit code", (code, stderr), (0, ""))
    equal("two pipes: all samples", len(times), 2 * ROUNDS * PER_ROUND)
    check("two pipes: in the order of time", times == sorted(times), times[:5])


def test_broken_off(kernel):
    pieces = recording(kernel)
    live = Live("-t", "dump", "-o", "-")
    live.write(b"".join(pieces[:4]) + pieces[5][:60])
    code, stderr = live.finish()
    equal("a writer that dies: exit code", code, 1)
    check("a writer that dies: what it wrote is there", len(live.samples()) >= 2 * PER_ROUND,
          len(live.samples()))
    check("a writer that dies: it is reported", "cut off" in stderr and "damaged" in stderr, stderr)


def stream_folders():
    """The golden tests of formats that come over links."""
    for name in ("wire-*", "sel4-pb*", "sel4-serial*", "kpdata-*"):
        yield from filter(os.path.isdir, sorted(glob.glob(os.path.join(ROOT, "tests", "golden", name))))


def pieces_of(data, rng):
    """One byte after the other, or pieces of any size if that takes too long."""
    most = 1 if len(data) < 4096 else len(data) // 50
    while data:
        n = rng.randint(1, most)
        yield data[:n]
        data = data[n:]


def test_goldens():
    """Every recording, good or bad, from a pipe, in small pieces."""
    rng = random.Random(7)
    for folder in stream_folders():
        args = os.path.join(folder, "args")
        words = shlex.split(open(args, encoding="utf-8").read()) if os.path.exists(args) else []
        with unpacked(folder) as place:
            path = glob.glob(os.path.join(place, "input*"))[0]
            live = Live("-t", "dump", "-o", "-", *words, cwd=folder)
            with open(path, "rb") as f:
                for piece in pieces_of(f.read(), rng):
                    live.write(piece, ignore=True)
            code, stderr = live.finish()
            whole = run(KSCOPE, "convert", path, "-t", "dump", "-o", "-", *words, cwd=folder,
                        binary=True)
        name = os.path.basename(folder)
        equal(f"{name} from a pipe: exit code", code, whole.returncode)
        equal(f"{name} from a pipe: the same events", sorted(live.output.splitlines()),
              sorted(whole.stdout.splitlines()))
        equal(f"{name} from a pipe: the same messages", stderr.replace(live.names[0], path),
              whole.stderr.decode())


def test_sel4():
    """A sample comes out as soon as it is certain."""
    golden = os.path.join(ROOT, "tests", "golden")
    protobuf = read(os.path.join(golden, "sel4-pb", "input.pb"))
    third = protobuf.rindex(b"37\x08")
    serial = read(os.path.join(golden, "sel4-serial-one-line", "input.txt"))
    for name, data, samples in (("sel4-pb", protobuf[:third + 2], 2),
                                ("sel4-serial", serial[:serial.index(b"\n") + 1], 1)):
        live = Live("-t", "dump", "-o", "-")
        live.write(data, step=1)
        check(f"{name}: samples come out while the writer lives",
              wait_for(lambda live=live, samples=samples: len(live.samples()) == samples), live.output)
        check(f"{name}: kscope waits", live.process.poll() is None)
        live.finish()


with scratch() as folder:
    kernel = os.path.join(folder, "System.map")
    with open(kernel, "w", encoding="utf-8") as f:
        f.writelines(f"{at:016x} T {name}\n" for at, name in functions())
    test_flow(folder, kernel)
    test_sums(folder)
    test_merge(kernel)
    test_broken_off(kernel)
    test_goldens()
    test_sel4()
finish()
