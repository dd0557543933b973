#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""kscope record with links that break and streams that are damaged. Every sample in the output was sent, and
none is there twice; where the format has totals, samples read and samples lost are all that were sent."""
import os
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import check, equal, exits, finish, no_problems, scratch
from kit import sel4
from kit.board import CLOSE, RESET, Client, Recorder, Server, sel4_profiler
from kit.streams import (NAMES, cuts, foreign, kpdata_v3, missing, noise, repeats, sel4_pb, take, wire,
                         wire_samples, Wire)


def timeless(samples):
    """A board that starts again begins at time 0; its later times are moved behind the earlier ones."""
    return [s._replace(time=0) for s in samples]


def sel4_script(board, pieces, *last):
    yield board.heard("START")
    yield from pieces
    yield from last


def record_sel4(folder, board, *words):
    return Recorder(folder, "tcp", board.address, "-o", "out.dump", "--keep", "raw", *NAMES, *words)


def sel4_board(*scripts, **more):
    """Scripts are lists of pieces; the last may be an end."""
    board = Server(**sel4_profiler(), **more)
    board.heard("START")
    board.scripts = [sel4_script(board, script) for script in scripts]
    return board


def test_sel4_returns(name, last, wait):
    """The link breaks inside a sample; the board goes on with a later one on the next connection."""
    samples = take(100)
    pieces = sel4_pb(samples)
    got_it = threading.Event()
    first = [*pieces[:50], pieces[50][:20]]
    with scratch() as folder, sel4_board([*first, *([got_it] if wait else []), last], pieces[51:]) as board:
        recorder = record_sel4(folder, board)
        size = len(b"".join(first)) + len(sel4.GREETING + sel4.ERROR)
        recorder.has("raw", size)
        got_it.set()
        recorder.has("raw", size + len(b"".join(pieces[51:])) + len(sel4.GREETING))
        recorder.interrupt().end()
        exits(f"{name}: it ends", recorder, 1, f"the link broke after {size} bytes", "is back after",
              "99 samples")
        equal(f"{name}: the samples", sorted(recorder.samples()[0]), sorted(samples[:50] + samples[51:]))
        check(f"{name}: the raw stream has both connections", recorder.bytes("raw") == board.sent)
        equal(f"{name}: connections", board.connections, 2)
        equal(f"{name}: the commands of both", b"".join(board.packets),
              b"MAPPINGS\nSTART\n" * 2 + b"STOP\nREFRESH\n")


def test_sel4_reboots():
    """The board starts again, and its clock, too."""
    samples, later = take(60), take(60, seed=2, first=100)
    got_it = threading.Event()
    with scratch() as folder, sel4_board([*sel4_pb(samples), got_it, CLOSE], sel4_pb(later)) as board:
        recorder = record_sel4(folder, board)
        size = len(b"".join(sel4_pb(samples))) + len(sel4.GREETING + sel4.ERROR)
        recorder.has("raw", size)
        got_it.set()
        recorder.has("raw", size + len(sel4.GREETING) + len(b"".join(sel4_pb(later))))
        recorder.interrupt().end()
        exits("reboot: it ends", recorder, 1, "the link broke", "is back after", "120 samples")
        equal("reboot: the samples of both", sorted(timeless(recorder.samples()[0])),
              sorted(timeless(samples + later)))


def test_sel4_gone():
    samples = take(40)
    for name, words, want in (("the link does not come back", ["--retry", "0.3"], "40 samples"),
                              ("no retry", ["--no-retry"], "40 samples")):
        got_it = threading.Event()
        with scratch() as folder, sel4_board([*sel4_pb(samples), got_it, RESET], stays=False) as board:
            recorder = record_sel4(folder, board, *words)
            size = len(b"".join(sel4_pb(samples))) + len(sel4.GREETING + sel4.ERROR)
            recorder.has("raw", size)
            got_it.set()
            recorder.end()
            exits(f"{name}: it ends", recorder, 1, f"the link broke after {size} bytes", want)
            equal(f"{name}: the samples", sorted(recorder.samples()[0]), sorted(samples))
    with scratch() as folder, sel4_board([*sel4_pb(samples), CLOSE], stays=False) as board:
        recorder = record_sel4(folder, board, "--retry", "1000")
        recorder.said("the link broke")
        recorder.interrupt().end()
        exits("Ctrl-C while the link is away", recorder, 1, "40 samples")
        equal("Ctrl-C while the link is away: the samples", sorted(recorder.samples()[0]), sorted(samples))


def two_connections(name, board_class, how, first, rest, samples, lost, reboots=False):
    """A wire stream over two connections. Its totals are at the end."""
    got_it = threading.Event()
    with scratch() as folder, board_class([*first, got_it, CLOSE], rest) as board:
        recorder = Recorder(folder, how, board.address, "-o", "out.dump", "--keep", "raw")
        recorder.has("raw", len(b"".join(first)))
        got_it.set()
        recorder.end()
        exits(f"{name}: it ends", recorder, 1, "the link broke", "is back after")
        got, said = recorder.samples()
        if reboots:
            got, samples = timeless(got), timeless(samples)
        equal(f"{name}: the samples", sorted(got), sorted(samples))
        equal(f"{name}: lost", said, lost)
        check(f"{name}: the raw stream has both connections", recorder.bytes("raw") == board.sent)


def test_wire_returns():
    samples = wire_samples(200)
    for board_class, how in ((Server, "tcp"), (Client, "listen")):
        stream = Wire()
        first, rest = stream.head() + stream.body(samples[:100]), stream.body(samples[100:])
        two_connections(f"wire by {how}, the stream goes on", board_class, how, first,
                        stream.head() + rest + stream.tail(), samples, 0)
    stream = Wire(cpus=1)
    samples = wire_samples(200, cpus=1)
    first, rest = stream.head() + stream.body(samples[:100]), stream.body(samples[100:])
    two_connections("wire, broken inside a chunk", Server, "tcp", [*first, rest[0][:40]],
                    stream.head() + rest[1:] + stream.tail(), samples[:100] + samples[120:], 20)
    stream, again, later = Wire(), Wire(), wire_samples(100, seed=7, first=100)
    two_connections("wire, the board starts again", Server, "tcp", stream.head() + stream.body(samples[:100]),
                    again.head() + again.body(later) + again.tail(), samples[:100] + later, 0, True)


def test_kpdata_reset():
    """A reset is not an end, even for a format that has none."""
    samples = take(50, base=0x401000)
    got_it = threading.Event()
    pieces = kpdata_v3(samples)
    with scratch() as folder, Server([*pieces, got_it, RESET], stays=False) as board:
        recorder = Recorder(folder, "tcp", board.address, "--retry", "0.2", "-o", "out.dump", "--keep", "raw")
        recorder.has("raw", len(b"".join(pieces)))
        got_it.set()
        recorder.end()
        exits("kpdata, reset", recorder, 1, "the link broke", "reset", "50 samples")
        equal("kpdata, reset: the samples", sorted(recorder.samples()[0]), sorted(samples))


def damaged(name, pieces, samples, *words, code=1, exact=True):
    """Records a stream with faults. Returns what is missing."""
    with scratch() as folder, Server([*pieces, CLOSE]) as board:
        recorder = Recorder(folder, "tcp", board.address, "--no-retry", "-o", "out.dump", "--keep", "raw",
                            *words).end()
        equal(f"{name}: exit code", recorder.returncode, code)
        check(f"{name}: the raw stream is as it came", recorder.bytes("raw") == board.sent)
        got, lost = recorder.samples()
        no_problems(f"{name}: nothing that was not sent, nothing twice", foreign(got, samples))
        gone = missing(got, samples)
        check(f"{name}: most samples are there", len(gone) < len(samples) // 2, len(gone))
        if exact:
            equal(f"{name}: read and lost is all", len(got) + lost, len(samples))


def test_damage():
    samples = wire_samples(2000)
    pieces = wire(samples, checked=True)
    clear = len(pieces[0])
    for seed in (1, 2, 3):
        damaged(f"noise {seed}", noise(pieces[:-1], seed, clear=clear) + pieces[-1:], samples)
        damaged(f"cuts {seed}", cuts(pieces[:-1], seed, clear=clear) + pieces[-1:], samples)
        damaged(f"repeats {seed}", repeats(pieces, seed), samples)
        mixed = repeats(pieces, seed)
        damaged(f"all of it {seed}",
                noise(cuts(mixed[:-1], seed, clear=clear), seed + 9, clear=clear) + mixed[-1:], samples)


def test_sel4_damage():
    """Samples are lost, and nothing says how many."""
    samples = take(500)
    pieces = sel4_pb(samples)
    for seed in (1, 2, 3):
        damaged(f"seL4, cuts {seed}", [sel4.GREETING, *cuts(pieces, seed, longest=40)], samples, *NAMES,
                exact=False)


def main():
    test_sel4_returns("seL4, closed", CLOSE, False)
    test_sel4_returns("seL4, reset", RESET, True)
    test_sel4_reboots()
    test_sel4_gone()
    test_wire_returns()
    test_kpdata_reset()
    test_damage()
    test_sel4_damage()
    finish()


if __name__ == "__main__":
    main()
