#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""kscope record serial, with a pty for the line, and kscope record file: files that grow, FIFOs, stdin."""
import os
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import check, equal, exits, finish, scratch
from kit import sel4
from kit.board import CLOSE, Recorder, Serial
from kit.streams import (NAMES, byte_by_byte, in_bits, kpdata_v3, sel4_pb, sel4_serial,
                         take, wire, wire_samples, Wire)


def same(name, got, want):
    return equal(name, sorted(got), sorted(want))


def check_raw(name, recorder, sent, *words):
    check(f"{name}: the raw stream is what was sent", recorder.bytes("raw") == sent,
          (len(recorder.bytes("raw")), len(sent)))
    same(f"{name}: kscope convert reads the same", recorder.converted("raw", *words)[0],
         recorder.samples()[0])


def test_sel4(name, given):
    """The profiler gets 1 and 2. It prints what it has after 2, and other output in between. If kscope does
    not know the format, the user starts it in another way."""
    samples = take(60)
    with scratch() as folder:
        board = Serial(os.path.join(folder, "tty"))
        start = [board.heard("1")] if given else []
        first = b"Booting\r\n" + b"".join(sel4_serial(samples[:40]))
        board.scripts = [[*start, *in_bits([first], 5), board.heard("2"), *sel4_serial(samples[40:]),
                          b"profiler: done\r\n"]]
        with board:
            words = ["-f", "sel4-serial"] if given else []
            recorder = Recorder(folder, "serial", board.path, "-o", "out.dump", "--keep", "raw", *words,
                                *NAMES)
            recorder.has("raw", len(first))
            recorder.interrupt().end()
            exits(f"{name}: it ends", recorder, 0, "60 samples")
            same(f"{name}: the samples", recorder.samples()[0], samples)
            check_raw(name, recorder, board.sent, *NAMES)
            equal(f"{name}: the commands", b"".join(board.packets), b"12" if given else b"2")
            equal(f"{name}: the speed", board.speed, 115200)


def test_boot_log():
    """What comes before the first sample may be longer than what detection looks at."""
    samples = take(20)
    log = b"[    0.000000] booting\r\n" * 900
    with scratch() as folder:
        board = Serial(os.path.join(folder, "tty"))
        board.scripts = [[log, *sel4_serial(samples[:10]), board.heard("2"), *sel4_serial(samples[10:])]]
        with board:
            recorder = Recorder(folder, "serial", board.path, "-o", "out.dump", "--keep", "raw", *NAMES)
            recorder.has("raw", len(log + b"".join(sel4_serial(samples[:10]))))
            recorder.interrupt().end()
            exits("boot log: it ends", recorder, 0, "20 samples")
            same("boot log: the samples", recorder.samples()[0], samples)
            equal("boot log: the commands", b"".join(board.packets), b"2")


def test_wire():
    """Every byte passes a serial line as it is: the line is raw."""
    samples = wire_samples(600)
    with scratch() as folder, Serial(os.path.join(folder, "tty"), wire(samples)) as board:
        recorder = Recorder(folder, "serial", f"{board.path},921600", "-o", "out.dump", "--keep",
                            "raw").end()
        exits("wire: it ends by itself", recorder, 0, "600 samples", "0 lost")
        same("wire: the samples", recorder.samples()[0], samples)
        check("wire: all values are among the bytes", len(set(board.sent)) == 256)
        check_raw("wire", recorder, board.sent)
        equal("wire: the speed", board.speed, 921600)
        equal("wire: the board gets nothing", board.packets, [])
        check("wire: the line has its own settings again", not board.is_raw())


def test_kpdata():
    """A line has no end: the user ends the recording."""
    samples = take(100, base=0x401000)
    pieces = kpdata_v3(samples)
    with scratch() as folder, Serial(os.path.join(folder, "tty"), byte_by_byte(pieces)) as board:
        recorder = Recorder(folder, "serial", board.path, "-o", "out.dump", "--keep", "raw")
        recorder.has("raw", len(b"".join(pieces)))
        recorder.interrupt().end()
        exits("kpdata: it ends", recorder, 0, "100 samples")
        same("kpdata: the samples", recorder.samples()[0], samples)
        check_raw("kpdata", recorder, board.sent)


def test_unplugged():
    samples = wire_samples(100)
    stream = Wire()
    first = stream.head() + stream.body(samples[:50])
    with scratch() as folder:
        got_it = threading.Event()
        with Serial(os.path.join(folder, "tty"), [*first, got_it, CLOSE]) as board:
            recorder = Recorder(folder, "serial", board.path, "--retry", "0.2", "-o", "out.dump", "--keep",
                                "raw")
            recorder.has("raw", len(b"".join(first)))
            got_it.set()
            recorder.end()
            exits("unplugged: it ends", recorder, 1, "the link broke", "50 samples")
            same("unplugged: what came before is there", recorder.samples()[0], samples[:50])
    with scratch() as folder:
        got_it = threading.Event()
        rest = stream.body(samples[50:]) + stream.tail()
        with Serial(os.path.join(folder, "tty"), [*first, got_it, CLOSE], rest) as board:
            recorder = Recorder(folder, "serial", board.path, "--retry", "100", "-o", "out.dump",
                                "--keep", "raw")
            recorder.has("raw", len(b"".join(first)))
            got_it.set()
            recorder.end()
            exits("plugged in again: it ends", recorder, 1, "the link broke", "is back after", "100 samples")
            same("plugged in again: the samples of both", recorder.samples()[0], samples)


def test_wrong():
    with scratch() as folder:
        def record(*words):
            return Recorder(folder, *words, "-o", "out.dump").end()

        exits("no such device", record("serial", "nowhere"), 3, "nowhere", "No such file")
        plain = os.path.join(folder, "plain")
        with open(plain, "wb"):
            pass
        exits("not a serial line", record("serial", plain), 3, "plain", "kscope record file")
        for speed in ("fast", "", "0", "49", "1e6", "99999999999999999999", "115200x"):
            exits(f"speed '{speed}'", record("serial", f"{plain},{speed}"), 2, "DEVICE[,BAUD]")
        exits("no device", record("serial"), 2)
        exits("no file", record("file"), 2)
        exits("a folder", record("file", folder), 3, "directory")
        exits("a file that is not there", record("file", "nowhere"), 3, "nowhere")
        check("wrong: no output", not os.path.exists(os.path.join(folder, "out.dump")))


def test_file_grows():
    samples = take(100)
    pieces = sel4_serial(samples)
    with scratch() as folder:
        path = os.path.join(folder, "log")
        with open(path, "wb", buffering=0) as log:
            log.write(b"".join(pieces[:30]))
            recorder = Recorder(folder, "file", path, "-o", "out.dump", "--keep", "raw", *NAMES)
            recorder.has("raw", log.tell())
            for piece in in_bits(pieces[30:], 9, 2000):
                log.write(piece)
            recorder.has("raw", log.tell())
        recorder.interrupt().end()
        exits("a file that grows: it ends", recorder, 0, "100 samples")
        same("a file that grows: the samples", recorder.samples()[0], samples)
        check_raw("a file that grows", recorder, b"".join(pieces), *NAMES)


def test_file_truncated():
    """A program that starts again truncates its file, and writes it from the start."""
    samples = take(100)
    pieces = sel4_serial(samples)
    with scratch() as folder:
        path = os.path.join(folder, "log")
        with open(path, "wb", buffering=0) as log:
            log.write(b"".join(pieces[:60]))
            recorder = Recorder(folder, "file", path, "-o", "out.dump", "--keep", "raw", *NAMES)
            before = log.tell()
            recorder.has("raw", before)
            log.truncate(0)
            log.seek(0)
            recorder.said("the link broke")
            log.write(b"".join(pieces[60:]))
            recorder.has("raw", before + log.tell())
        recorder.interrupt().end()
        exits("a file that is truncated: it ends", recorder, 1, "the link broke", "100 samples")
        same("a file that is truncated: the samples", recorder.samples()[0], samples)


def test_file_over():
    """Our own stream in a file has an end."""
    samples = wire_samples(100)
    with scratch() as folder:
        with open(os.path.join(folder, "log"), "wb") as log:
            log.write(b"".join(wire(samples)))
        recorder = Recorder(folder, "file", "log", "-o", "out.dump", "--keep", "raw").end()
        exits("a file with an end", recorder, 0, "100 samples", "0 lost")
        check_raw("a file with an end", recorder, b"".join(wire(samples)))


def test_file_of_socket():
    """A capture of a socket in a file: nobody hears the commands that its format has."""
    samples = take(50)
    data = sel4.GREETING + b"".join(sel4_pb(samples))
    with scratch() as folder:
        with open(os.path.join(folder, "log"), "wb") as log:
            log.write(data)
        recorder = Recorder(folder, "file", "log", "-o", "out.dump", "--keep", "raw", *NAMES)
        recorder.has("raw", len(data))
        recorder.interrupt().end()
        exits("a file of a socket", recorder, 0, "50 samples")
        same("a file of a socket: the samples", recorder.samples()[0], samples)
        check_raw("a file of a socket", recorder, data, *NAMES)


def test_fifo():
    samples = take(100, base=0x401000)
    data = b"".join(kpdata_v3(samples))
    with scratch() as folder:
        path = os.path.join(folder, "fifo")
        os.mkfifo(path)
        recorder = Recorder(folder, "file", path, "-o", "out.dump", "--keep", "raw")
        with open(path, "wb", buffering=0) as fifo:
            fifo.write(data)
        recorder.end()
        exits("a FIFO: its end is the end", recorder, 0, "100 samples")
        same("a FIFO: the samples", recorder.samples()[0], samples)
        check_raw("a FIFO", recorder, data)


def test_stdin_of_any_format():
    """The end of stdin is the end, also for a format whose links are expected to last."""
    samples = wire_samples(60)
    stream = Wire()
    cut = b"".join(stream.head() + stream.body(samples))
    for name, data, want, code, words in (
            ("seL4", b"".join(sel4_serial(take(20))), take(20), 0, NAMES),
            ("wire without its end", cut, samples, 1, [])):
        with scratch() as folder:
            with open(os.path.join(folder, "log"), "wb") as log:
                log.write(data)
            for how in ("file", "pipe"):
                with open(os.path.join(folder, "log"), "rb") as log:
                    recorder = Recorder(folder, "file", "-", "-o", "out.dump", "--keep", "raw", *words,
                                        stdin=log if how == "file" else subprocess.PIPE)
                if how == "pipe":
                    recorder.process.stdin.write(data)
                    recorder.process.stdin.close()
                recorder.end()
                exits(f"stdin is a {how}: {name}", recorder, code, f"{len(want)} samples")
                check(f"stdin is a {how}: {name}: it is no link that broke", "broke" not in recorder.stderr,
                      recorder.stderr)
                same(f"stdin is a {how}: {name}: the samples", recorder.samples()[0], want)


def test_stdin():
    samples = wire_samples(100)
    data = b"".join(wire(samples))
    with scratch() as folder:
        recorder = Recorder(folder, "file", "-", "-o", "out.dump", "--keep", "raw", stdin=subprocess.PIPE)
        for piece in in_bits([data], 4):
            recorder.process.stdin.write(piece)
            recorder.process.stdin.flush()
        recorder.end()
        recorder.process.stdin.close()
        exits("stdin: our own stream has an end", recorder, 0, "100 samples", "0 lost")
        check_raw("stdin", recorder, data)
    samples = take(40, base=0x401000)
    data = b"".join(kpdata_v3(samples))
    with scratch() as folder:
        recorder = Recorder(folder, "file", "-", "-o", "out.dump", "--keep", "raw", stdin=subprocess.PIPE)
        recorder.process.stdin.write(data)
        recorder.process.stdin.close()
        recorder.end()
        same("stdin: its end is the end", recorder.samples()[0], samples)
    with scratch() as folder:
        path = os.path.join(folder, "log")
        with open(path, "wb") as log:
            log.write(data)
        with open(path, "rb") as log:
            recorder = Recorder(folder, "file", "-", "-o", "out.dump", stdin=log).end()
        same("stdin is a file: its end is the end", recorder.samples()[0], samples)
    with scratch() as folder:
        recorder = Recorder(folder, "file", "-", "-o", "out.dump").end()
        exits("stdin is empty", recorder, 3, "received no data")
        check("stdin is empty: no output", not os.path.exists(recorder.path("out.dump")))


def main():
    test_sel4("seL4", True)
    test_sel4("seL4, not given", False)
    test_boot_log()
    test_wire()
    test_kpdata()
    test_unplugged()
    test_wrong()
    test_file_grows()
    test_file_truncated()
    test_file_over()
    test_file_of_socket()
    test_fifo()
    test_stdin()
    test_stdin_of_any_format()
    finish()


if __name__ == "__main__":
    main()
