#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""kscope record tcp and listen, against a simulated board: what the board sends is what kscope writes, and
the board gets its commands."""
import os
import signal
import socket
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import HANGS, check, equal, exits, finish, kscope, no_problems, read_folded, scratch, skip
from kit import sel4
from kit.board import CLOSE, Client, Recorder, Server, sel4_profiler
from kit.streams import (NAMES, byte_by_byte, foreign, in_bits, kpdata_v3, sel4_pb, take, wire,
                         wire_samples, Wire)


def same(name, got, want):
    """The same samples, in any order: a stream with several cpus is not in the order of time."""
    return equal(name, sorted(got), sorted(want))


def sel4_script(board, samples, rest=(), generation=2, change=list):
    yield board.heard("START")
    yield from change(sel4_pb(samples, generation))
    yield board.heard("STOP")
    yield from sel4_pb(rest, generation)


def sel4_board(samples, rest=(), generation=2, change=list, **more):
    board = Server(**sel4_profiler(generation), **more)
    board.heard("START"), board.heard("STOP")
    board.scripts = [sel4_script(board, samples, rest, generation, change)]
    return board


def sel4_size(samples, generation):
    """The bytes that a board has sent before STOP."""
    return (len(sel4.GREETING) + len(sel4_profiler(generation)["answers"][b"MAPPINGS"]) +
            len(b"".join(sel4_pb(samples, generation))))


def check_files(name, recorder, board, samples):
    """The outputs have what was sent, and the raw stream is what was sent."""
    same(f"{name}: the samples", recorder.samples()[0], samples)
    check(f"{name}: the raw stream is what the board sent", recorder.bytes("raw") == board.sent,
          (len(recorder.bytes("raw")), len(board.sent)))
    same(f"{name}: kscope convert reads the same", recorder.converted("raw", *NAMES)[0],
         recorder.samples()[0])


def check_more_files(name, recorder, samples, *words):
    done = kscope("convert", recorder.path("perf.data"), "-o", "-", "-t", "dump")
    equal(f"{name}: perf.data has all samples", done.stdout.count("\nsample "), len(samples))
    done = kscope("convert", recorder.path("raw"), "-o", "-", "-t", "folded", *words)
    equal(f"{name}: the stacks", read_folded(recorder.path("x.folded")), read_folded(done.stdout))
    check(f"{name}: the flame graph", recorder.bytes("x.svg").rstrip().endswith(b"</svg>"))
    check(f"{name}: nothing else is left",
          not [entry for entry in os.listdir(recorder.folder) if entry.startswith(".")],
          os.listdir(recorder.folder))


def test_sel4(generation, change, name, *words):
    """The conversation of seL4's profiler: the rest of the samples comes after STOP."""
    samples = take(330, seed=generation)
    before, rest = samples[:300], samples[300:]
    with scratch() as folder, sel4_board(before, rest, generation, change) as board:
        recorder = Recorder(folder, "tcp", board.address, "-o", "out.dump", "-o", "perf.data", "-o",
                            "x.folded", "-o", "x.svg", "--keep", "raw", *NAMES, *words)
        recorder.has("raw", sel4_size(before, generation))
        recorder.interrupt().end()
        exits(f"{name}: it ends", recorder, 0, "330 samples", "0 lost")
        check_files(name, recorder, board, samples)
        check_more_files(name, recorder, samples, *NAMES)
        equal(f"{name}: the commands", b"".join(board.packets), b"MAPPINGS\nSTART\nSTOP\nREFRESH\n")


def test_packets():
    """The board takes a packet for one command. On a busy machine it may read two commands at once, though
    kscope sent them on their own: one of three recordings has to show that it does."""
    want = [b"MAPPINGS\n", b"START\n", b"STOP\n", b"REFRESH\n"]
    seen = []
    for _ in range(3):
        with scratch() as folder, sel4_board(take(3)) as board:
            recorder = Recorder(folder, "tcp", board.address, "-o", "out.dump", "--keep", "raw", *NAMES)
            recorder.has("raw", sel4_size(take(3), 2))
            recorder.interrupt(signal.SIGTERM).end()
            exits("SIGTERM ends it, too", recorder, 0, "3 samples")
            seen.append(board.packets)
        if seen[-1] == want:
            break
    check("each command is a packet", want in seen, seen)


def test_commands():
    """--start-with and --stop-with replace the commands."""
    samples = wire_samples(40)
    board = Server()
    pieces = wire(samples)
    board.scripts = [[board.heard("go\t1\0"), *pieces[:-1], board.heard("halt\n"), pieces[-1]]]
    with scratch() as folder, board:
        recorder = Recorder(folder, "tcp", board.address, "--start-with", r"go\t1\0", "--stop-with",
                            r"\x68alt\n", "-o", "out.dump", "--keep", "raw")
        recorder.has("raw", len(b"".join(pieces[:-1])))
        recorder.interrupt().end()
        exits("own commands", recorder, 0, "40 samples")
        equal("own commands: the board gets them", b"".join(board.packets), b"go\t1\0halt\n")
        check_files("own commands", recorder, board, samples)


def test_slow_answer():
    """A board that answers MAPPINGS with nothing gets START all the same."""
    with scratch() as folder, sel4_board(take(5)) as board:
        board.answers = {}
        recorder = Recorder(folder, "tcp", board.address, "-o", "out.dump", "--keep", "raw", *NAMES)
        recorder.has("raw", len(sel4.GREETING + b"".join(sel4_pb(take(5)))))
        recorder.interrupt().end()
        exits("no answer to MAPPINGS", recorder, 0, "5 samples")


def test_wire_by_itself(name, board_class, how, change=list):
    """Our own stream says its end: the recording is over, though the board keeps the link open."""
    samples = wire_samples(400)
    board = board_class(change(wire(samples)))
    with scratch() as folder, board:
        recorder = Recorder(folder, how, board.address, "-o", "out.dump", "-o", "perf.data", "-o",
                            "x.folded", "-o", "x.svg", "--keep", "raw").end()
        exits(f"{name}: it ends by itself", recorder, 0, "400 samples", "0 lost")
        check_files(name, recorder, board, samples)
        check_more_files(name, recorder, samples)
        equal(f"{name}: no commands", board.packets, [])


def test_wire_with_commands():
    """With -f kscope, the board gets start and stop; what it sends after stop is read."""
    samples = wire_samples(200)
    stream = Wire()
    first, rest = stream.head() + stream.body(samples[:100]), stream.body(samples[100:]) + stream.tail()
    board = Server()
    board.scripts = [[board.heard("start\n"), *first, board.heard("stop\n"), *rest]]
    with scratch() as folder, board:
        recorder = Recorder(folder, "tcp", board.address, "-f", "kscope", "-o", "out.dump", "--keep", "raw")
        recorder.has("raw", len(b"".join(first)))
        recorder.interrupt().end()
        exits("wire with commands", recorder, 0, "200 samples", "0 lost")
        equal("wire with commands: the board gets them", b"".join(board.packets), b"start\nstop\n")
        check_files("wire with commands", recorder, board, samples)


def test_kpdata(board_class, how):
    """A format without commands: an orderly close is its end."""
    samples = take(200, base=0x401000)
    board = board_class([*in_bits(kpdata_v3(samples), 3), CLOSE])
    with scratch() as folder, board:
        recorder = Recorder(folder, how, board.address, "-o", "out.dump", "--keep", "raw").end()
        exits(f"kpdata by {how}: it ends by itself", recorder, 0, "200 samples")
        check_files(f"kpdata by {how}", recorder, board, samples)
        equal(f"kpdata by {how}: no commands", board.packets, [])


def test_address_six():
    if not socket.has_ipv6:
        return skip("IPv6", "Python has none")
    try:
        board = Server(wire(wire_samples(20)), family=socket.AF_INET6)
    except OSError as error:
        return skip("IPv6", error)
    with scratch() as folder, board:
        recorder = Recorder(folder, "tcp", board.address, "-o", "out.dump").end()
        return exits("IPv6 and brackets", recorder, 0, "20 samples")


def test_names():
    """A name instead of an address; an address to listen on, and none."""
    with scratch() as folder, Server(wire(wire_samples(20))) as board:
        exits("a host's name", Recorder(folder, "tcp", f"localhost:{board.port}", "-o", "out.dump").end(),
              0, "20 samples")
    with scratch() as folder, Client(wire(wire_samples(20))) as board:
        exits("listen on all addresses", Recorder(folder, "listen", board.port, "-o", "out.dump").end(),
              0, "20 samples")


def test_default_output():
    with scratch() as folder, Server(wire(wire_samples(20))) as board:
        recorder = Recorder(folder, "tcp", board.address).end()
        exits("the default output", recorder, 0, "20 samples", "perf.data")
        equal("the default output: one file", [name for name in os.listdir(folder)
                                               if not name.startswith("messages")], ["perf.data"])
    with scratch() as folder, Server(wire(wire_samples(20))) as board:
        recorder = Recorder(folder, "tcp", board.address, "-o", "x.kscope").end()
        exits("-o X.kscope", recorder, 0, "x.kscope")
        check("-o X.kscope is the raw stream", recorder.bytes("x.kscope") == board.sent)
    with scratch() as folder, Server(wire(wire_samples(20))) as board:
        recorder = Recorder(folder, "tcp", board.address, "-q", "-o", "x.folded", "-t", "folded").end()
        equal("quiet", (recorder.returncode, recorder.stderr), (0, ""))


def test_duration():
    samples = wire_samples(100)
    stream = Wire()
    body = stream.head() + stream.body(samples)
    board = Server()
    board.scripts = [[*body, board.heard("stop\n"), *stream.tail()]]
    with scratch() as folder, board:
        started = time.monotonic()
        recorder = Recorder(folder, "tcp", board.address, "-f", "kscope", "--duration", "1.5", "-o",
                            "out.dump", "--keep", "raw").end()
        exits("duration: it ends", recorder, 0, "100 samples", "0 lost")
        check("duration: not before", time.monotonic() - started >= 1.5)
        equal("duration: the board is stopped, once", b"".join(board.packets), b"start\nstop\n")


def test_until():
    """The text arrives in many packets."""
    samples = take(20)
    board = Server()
    text = b"$ done: 20 samples\n"
    board.scripts = [[*sel4_pb(samples), *byte_by_byte([text]), *sel4_pb(samples[:1])]]
    with scratch() as folder, board:
        recorder = Recorder(folder, "tcp", board.address, "-f", "sel4-pb", "--until", "done: 20",
                            "-o", "out.dump", "--keep", "raw", *NAMES).end()
        check("until: it ends", recorder.returncode in (0, 1), recorder.stderr)
        check("until: with the text in the raw stream", text[:-4] in recorder.bytes("raw"))
        check("until: STOP was sent", b"STOP\n" in b"".join(board.packets), board.packets)
        no_problems("until: the samples before it", foreign(samples, recorder.samples()[0]))
    board = Server([*kpdata_v3(take(20)), CLOSE])
    with scratch() as folder, board:
        recorder = Recorder(folder, "tcp", board.address, "--until", "done", "-o", "out.dump").end()
        exits("until: it does not come", recorder, 1, "'done'", "20 samples")


def test_twice():
    """A board that goes on after STOP: the second Ctrl-C does not wait for it."""
    board = Server(**sel4_profiler())
    samples = take(100)
    repeat = threading.Event()

    def script():
        yield board.heard("START")
        yield from sel4_pb(samples)
        yield board.heard("STOP")
        while True:  # never silent, never at an end
            yield from byte_by_byte(sel4_pb(samples))
            repeat.set()

    board.heard("START"), board.heard("STOP")
    board.scripts = [script()]
    with scratch() as folder, board:
        recorder = Recorder(folder, "tcp", board.address, "-o", "out.dump", "--keep", "raw", *NAMES)
        recorder.has("raw", sel4_size(samples, 2))
        recorder.interrupt()
        check("twice: once sends STOP", board.heard("STOP").wait(HANGS))
        check("twice: and reads on", repeat.wait(HANGS) and recorder.process.poll() is None)
        recorder.interrupt().end()
        check("twice: the second ends it", recorder.returncode in (0, 1), recorder.stderr)
        no_problems("twice: what came before is there", foreign(samples, recorder.samples()[0]))
        check("twice: the raw stream", board.sent.startswith(recorder.bytes("raw")))


def test_checked_end():
    """The checksum of the last chunk comes on its own, after what says that the stream is over."""
    samples = wire_samples(40)
    stream = b"".join(wire(samples, checked=True))
    board, later = Server(), threading.Event()
    board.scripts = [[stream[:-5], later, stream[-5:]]]
    with scratch() as folder, board:
        recorder = Recorder(folder, "tcp", board.address, "--keep", "raw", "-o", "out.dump")
        recorder.has("raw", len(stream) - 5)
        later.set()
        exits("late checksum", recorder.end(), 0, "40 samples")
        check_files("late checksum", recorder, board, samples)


class Endless(Server):
    """Goes on until the link is closed, whatever kscope sends."""

    def __init__(self, pieces, still):
        super().__init__()
        self.longest, self.last = 0, time.monotonic()
        self.scripts = [self.go_on(pieces, still)]

    def go_on(self, pieces, still):
        yield from pieces
        self.last = time.monotonic()
        while not self.over:
            yield still
            time.sleep(0.02)
            self.longest, self.last = self.pause(), time.monotonic()

    def pause(self):
        """The longest so far: a busy host may not let it send."""
        return max(self.longest, time.monotonic() - self.last)


def test_does_not_stop():
    """A target that goes on after the end of the recording does not keep kscope from ending."""
    board = Endless([], b"tick\n")
    with scratch() as folder, board:
        recorder = Recorder(folder, "tcp", board.address, "--keep", "raw", "--duration", "0.2", "-o",
                            "out.dump").end()
        exits("endless, no command stops it", recorder, 3, "kept the raw stream")
        check("endless, no command stops it: the raw stream", board.sent.startswith(recorder.bytes("raw")))
    samples = wire_samples(40)
    stream = wire(samples)[:-1]
    for attempt in range(20):
        board = Endless(stream, b"\0")
        with scratch() as folder, board:
            recorder = Recorder(folder, "tcp", board.address, "--keep", "raw", "-o", "out.dump")
            recorder.has("raw", len(b"".join(stream)))
            recorder.interrupt().end()
            if "still sends" not in recorder.stderr and board.pause() > 0.5 and attempt < 19:
                continue  # the board seemed to have stopped
            exits("endless, in spite of the command", recorder, 1, "still sends", "40 samples")
            same("endless, in spite of the command: the samples", recorder.samples()[0], samples)
            break


def main():
    test_sel4(1, list, "seL4, first generation")
    test_sel4(2, list, "seL4, second generation")
    test_sel4(2, byte_by_byte, "seL4, byte by byte", "-f", "sel4-pb")
    test_packets()
    test_commands()
    test_slow_answer()
    test_wire_by_itself("wire", Server, "tcp")
    test_wire_by_itself("wire in small packets", Server, "tcp", lambda pieces: in_bits(pieces, 1, 40))
    test_wire_by_itself("wire by listen", Client, "listen")
    test_wire_with_commands()
    test_kpdata(Server, "tcp")
    test_kpdata(Client, "listen")
    test_address_six()
    test_names()
    test_default_output()
    test_duration()
    test_until()
    test_twice()
    test_checked_end()
    test_does_not_stop()
    finish()


if __name__ == "__main__":
    main()
