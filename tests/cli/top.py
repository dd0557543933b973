#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The live view, in a real terminal and without one: its numbers are those that were sent, its keys work, and the
terminal is restored whatever ends it."""
import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import HANGS, KSCOPE, check, equal, finish, kscope, scratch, wait_for
from kit.terminal import Terminal
from kit.wire_write import chunk, end, info, round_, sample

BASE = 0xffffffff81000000
SECOND = 10**9
NAMES = ["main_loop", "copy_page", "read_block", "evil\x7f\u009b31mname", "größe_λ", "deep<" + "int," * 3000 + ">",
         "rare"]
# Calls of each round on cpu 0, from the leaf to the root, and how often; cpu 1 is idle half of the time, cpu 2 always.
STACKS = [((1, 2, 0), 50), ((2, 0), 20), ((0,), 10), ((3, 0), 8), ((4, 0), 6), ((5, 0), 4), ((6, 0), 2)]
# Of 300 samples a round: 100 + 50 are not idle. Self, total.
SHARES = {"copy_page": (25.0, 25.0), "read_block": (10.0, 35.0), "main_loop": (5.0, 50.0), "rare": (1.0, 1.0),
          "größe_λ": (3.0, 3.0), "[idle]": (50.0, 50.0), "evil??31mname": (4.0, 4.0)}


class Stream:
    """A recording that is written to a FIFO, and to a file, round by round."""

    def __init__(self, folder):
        self.fifo, self.path = os.path.join(folder, "fifo"), os.path.join(folder, "raw.kscope")
        self.kernel = os.path.join(folder, "System.map")
        with open(self.kernel, "w", encoding="utf-8") as f:
            f.writelines(f"{BASE + 0x100 * i:016x} T {name}\n" for i, name in enumerate(NAMES))
        if os.path.exists(self.fifo):
            os.unlink(self.fifo)
        os.mkfifo(self.fifo)
        self.file = open(self.path, "wb", buffering=0)
        self.rounds, self.sent, self.to = 0, [0, 0, 0], None

    def connect(self):
        try:
            self.to = os.open(self.fifo, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            return False
        return True

    def open(self, first=None):
        if not wait_for(self.connect):
            raise RuntimeError("nobody reads the stream")
        os.set_blocking(self.to, True)
        self.write(first or chunk(info(cpus=3, kernel=self.kernel)))
        return self

    def write(self, data):
        self.file.write(data)
        os.write(self.to, data)

    def records(self, cpu, start):
        found = []
        for chain, count in STACKS:
            for n in range(count):
                idle = cpu == 2 or (cpu == 1 and n % 2 == 0)
                ips = [BASE + 0x100 * i + 8 for i in chain]
                found.append(sample(start + len(found) * 1000, ips[0], chain=[] if idle else ips, idle=idle))
        return found

    def round(self, *only, lost=0):
        """One round of all stacks on all cpus, or only of one function on cpu 0."""
        self.rounds += 1
        start = self.rounds * SECOND
        for cpu in range(3):
            records = self.records(cpu, start)
            if only:
                at = BASE + 0x100 * NAMES.index(only[0]) + 8
                records = [sample(start + i, at, chain=[at]) for i in range(100 if cpu == 0 else 0)]
            self.sent[cpu] += len(records)
            self.write(chunk(*records, cpu=cpu, sequence=self.rounds - 1, dropped=lost if cpu == 1 else 0))
        self.write(round_(start + SECOND // 2))

    def finish(self):
        self.write(end(*((cpu, sent, 0) for cpu, sent in enumerate(self.sent))))
        self.close()

    def close(self):
        if self.to is not None:
            os.close(self.to)
        self.to = None
        self.file.close()


def rows(lines):
    """{function: (self, total)} of the table on a screen or in plain text."""
    pattern = re.compile(r" *([\d.]+)% +([\d.]+)% +[\d.]+% +\d+ +(\S.*?)(?:  .*)?$")
    found = (pattern.match(line) for line in lines)
    return {match[3].split(" [kernel")[0]: (float(match[1]), float(match[2])) for match in found if match}


def known(found):
    return {name: found.get(name) for name in SHARES}


def command(folder, source):
    return [KSCOPE, "top", "file", source, "--slide", "0", "--keep", os.path.join(folder, "kept.kscope")]


def start(folder, first=None, **more):
    stream = Stream(folder)
    terminal = Terminal(folder, *command(folder, stream.fifo), **more)
    return stream.open(first), terminal


def test_numbers(folder):
    stream, terminal = start(folder)
    check("before the first sample", terminal.shows("0 samples", "0 lost"), terminal.screen())
    stream.round(lost=7)
    stream.round()
    check("what was sent", terminal.shows("600 samples", "7 lost", "0 damaged", "3 cpus", "host-time"),
          terminal.screen())
    wait_for(lambda: known(rows(terminal.lines())) == SHARES)
    equal("shares", known(rows(terminal.lines())), SHARES)
    check("a long name is cut", terminal.shows(" deep<int,int,"))
    check("lost samples have a colour", wait_for(lambda: re.search(
        r"\x1b\[[0-9;]*41m[^\n]{0,20}7 lost", terminal.styled())),
          terminal.styled()[:400])
    check("the load of each cpu", wait_for(lambda: stream.round() or re.search(
        r"cpu  0 \[\|+\] 100% +cpu  1 \[\|+ +\]  5\d% +cpu  2 \[ +\]   0%", terminal.screen())), terminal.screen())
    check("the call tree: widths are shares", wait_for(lambda: re.search(
        r"^\|idle {40,60}\|kernel", terminal.screen(), re.M)), terminal.screen())
    # The last five seconds: only one function, which is not the hottest of all.
    check("now", wait_for(lambda: stream.round("rare") or re.search(
        r"[1-9][\d.]+%  ?100.00% +\d+ +rare", re.sub(r"^ *[\d.]+%", "", terminal.screen(), flags=re.M))),
        terminal.screen())
    return stream, terminal


def test_keys(folder, stream, terminal):
    terminal.keys("t")
    check("t: tasks", terminal.shows("kernel (pid 1)", "idle (pid 0)", "t tasks"), terminal.screen())
    terminal.keys("t")
    check("t t: cpus", terminal.shows(" cpu 0", " cpu 2", "t cpus"), terminal.screen())
    terminal.keys("t")
    check("t t t: functions", terminal.shows("copy_page", "t functions"), terminal.screen())
    for sort in "total", "now", "name", "self":
        terminal.keys("s")
        check(f"s: sort by {sort}", terminal.shows(f"s sort: {sort}"), terminal.screen())
        if sort == "name":
            check("the order of names", wait_for(lambda: [
                name for name in rows(terminal.lines()) if name in SHARES][:3] == [
                    "[idle]", "copy_page", "evil??31mname"]), terminal.screen())
        elif sort == "total":
            check("the order of totals", wait_for(lambda: list(rows(terminal.lines()))[:2] in (
                ["main_loop", "[idle]"], ["[idle]", "main_loop"], ["rare", "[idle]"], ["[idle]", "rare"])))
    terminal.keys("/")
    check("/: asks", terminal.shows("filter:"), terminal.screen())
    terminal.type("PAGE")
    check("/: filters as one types", wait_for(lambda: list(rows(terminal.lines())) == ["copy_page"]), terminal.screen())
    terminal.keys("BSpace", "BSpace", "Enter")
    check("the filter stays", terminal.shows("filter: PA (Esc: all)"), terminal.screen())
    terminal.keys("Escape")
    check("Esc: all", wait_for(lambda: len(rows(terminal.lines())) > 5), terminal.screen())
    terminal.keys("f")
    check("f: no call tree", terminal.hides("|kernel"), terminal.screen())
    terminal.keys("f")
    check("f f: the call tree", terminal.shows("|kernel"), terminal.screen())
    terminal.keys("h")
    check("h: help", terminal.shows("pause the view; the recording goes on", "Ctrl-L"), terminal.screen())
    terminal.keys("?")
    check("?: no help", terminal.hides("Ctrl-L"), terminal.screen())
    test_pause(stream, terminal)
    test_write(folder, stream, terminal)
    terminal.keys("r")
    check("r: nothing is counted", terminal.shows("0 samples", "0 lost"), terminal.screen())
    stream.round()
    check("r: new samples are", terminal.shows("300 samples"), terminal.screen())


def count(terminal):
    return int(re.search(r"(\d+) samples", terminal.screen())[1])


def test_pause(stream, terminal):
    terminal.keys("p")
    check("p: pauses, and says what goes on", terminal.shows("PAUSED (still recording)"), terminal.screen())
    before = count(terminal)
    for _ in range(3):
        stream.round()
    terminal.keys("Down")
    equal("p: the view stays", count(terminal), before)
    terminal.keys("Space")
    check("space: goes on", wait_for(lambda: count(terminal) >= before + 900) and terminal.hides("PAUSED"),
          terminal.screen())


def test_write(folder, stream, terminal):
    path = os.path.join(folder, "so far.folded")
    terminal.keys("w")
    check("w: asks for a file", terminal.shows("write to: flame.svg"), terminal.screen())
    terminal.keys("C-u")
    terminal.type(path)
    terminal.keys("Enter")
    check("w: writes it", terminal.shows("wrote "), terminal.screen())
    want = kscope("convert", stream.path, "-t", "folded", "-o", "-", "--slide", "0").stdout
    with open(path, encoding="utf-8", errors="surrogateescape") as f:
        equal("w: what kscope convert writes", f.read(), want)
    terminal.keys("w", "C-u")
    terminal.type("/nowhere/x.svg")
    terminal.keys("Enter")
    check("w: why not", terminal.shows("cannot write", "No such file"), terminal.screen())
    terminal.keys("w", "C-u")
    terminal.type("x.what")
    terminal.keys("Enter")
    check("w: an unknown extension", terminal.hides("write to") and terminal.shows("x.what"), terminal.screen())


def test_sizes(terminal):
    for columns, height in (20, 5), (200, 60), (40, 10), (9, 2), (1, 1), (80, 24):
        terminal.resize(columns, height)
        if columns > 9:
            check(f"{columns} x {height}: all of it is in use", wait_for(
                lambda high=height: len(terminal.lines()) == high and terminal.lines()[-1].startswith("q quit")
                and "self" in terminal.screen()), terminal.screen())
    check("and then all is there again", terminal.shows("copy_page", "cpu  0", "kscope top: "), terminal.screen())


def test_stalls(folder):
    """Keys work whatever has arrived."""
    info_chunk = chunk(info(cpus=3, kernel=os.path.join(folder, "System.map")))
    for name, first, words in (
            ("3 bytes", info_chunk[:3], "0 samples"), ("half a chunk", info_chunk[:40], "0 samples"),
            ("a format that is not live", b"PERFILE2" + bytes(9992), "no live view of perfdata: 10000 bytes"),
            ("a compressed stream", b"\x28\xb5\x2f\xfd" + bytes(996),
             "no live view of compressed streams: 1000 bytes")):
        stream, terminal = start(folder, first, columns=160)
        check(f"{name}: the state", terminal.shows(words), terminal.screen())
        terminal.keys("s")
        check(f"{name}: keys work", terminal.shows("sort: total"), terminal.screen())
        if name == "half a chunk":
            stream.write(info_chunk[40:])
            stream.round()
            check(f"{name}: then the rest comes", terminal.shows("300 samples"), terminal.screen())
        terminal.keys("q")
        check(f"{name}: q", terminal.shows("EXIT=") and terminal.modes() == "0 1", terminal.screen())
        stream.close()
        terminal.close()


def test_end(stream, terminal):
    stream.finish()
    check("the end", terminal.shows("the recording has ended"), terminal.screen())
    terminal.keys("t")
    check("keys still work", terminal.shows("t tasks", "idle (pid 0)"), terminal.screen())
    terminal.keys("q")
    check("q: the terminal is restored", terminal.restored(0), terminal.screen())
    terminal.close()


def test_deaths(folder):
    for name, victim, code in ("recorder", 0, 137), ("viewer", -1, 1):
        stream, terminal = start(folder)
        stream.round()
        check(f"{name}: it runs", terminal.shows("300 samples"), terminal.screen())
        pids = terminal.children()
        os.kill(pids[victim], signal.SIGKILL)
        if name == "viewer":
            stream.close()
        check(f"kill -9 of the {name}: the terminal is restored", wait_for(lambda t=terminal: t.modes() == "0 1"),
              terminal.screen())
        # The shell may print the code while the other process still has the screen, which it then clears.
        equal(f"kill -9 of the {name}: the exit code", terminal.code(), code)
        check(f"kill -9 of the {name}: nobody is left", wait_for(
            lambda p=pids: not any(os.path.exists(f"/proc/{pid}/exe") and "kscope" in os.readlink(f"/proc/{pid}/exe")
                                   for pid in p)))
        stream.close()
        terminal.close()


def test_interrupt(folder):
    stream, terminal = start(folder)
    stream.round()
    check("Ctrl-C: it runs", terminal.shows("300 samples"), terminal.screen())
    terminal.keys("C-c")
    check("Ctrl-C: the view ends with the recording", terminal.restored(1), terminal.screen())
    stream.close()
    terminal.close()


def test_interrupt_at_end(folder):
    """The view stays after the end of the recording; Ctrl-C closes it, and the outputs are written all the same."""
    stream, path = Stream(folder), os.path.join(folder, "end.folded")
    terminal = Terminal(folder, *command(folder, stream.fifo), "-o", path)
    stream.open().round()
    stream.finish()
    check("Ctrl-C after the end: the view stays", terminal.shows("the recording has ended"), terminal.screen())
    terminal.keys("C-c")
    check("Ctrl-C after the end: the terminal is restored", terminal.restored(0), terminal.screen())
    check("Ctrl-C after the end: the output is written", os.path.exists(path), terminal.screen())
    terminal.close()


def test_stdin(folder):
    """The recording comes from stdin: keys come from the terminal."""
    stream = Stream(folder)
    terminal = Terminal(folder, "sh", "-c", f"cat {stream.fifo} | " + " ".join(command(folder, "-")))
    stream.open().round()
    check("stdin: samples", terminal.shows("300 samples"), terminal.screen())
    terminal.keys("s")
    check("stdin: keys", terminal.shows("sort: total"), terminal.screen())
    terminal.keys("q")
    wait_for(lambda: terminal.modes() == "0 1")
    stream.close()
    check("stdin: q", terminal.restored(1), terminal.screen())
    terminal.close()


def test_simple_terminals(folder):
    stream, terminal = start(folder, TERM="vt100")
    stream.round(lost=2)
    check("vt100", terminal.shows("300 samples", "2 lost", "copy_page"), terminal.screen())
    check("vt100: no colours", not re.search(r"\x1b\[(?:\d+;)*[34][0-7][;m]", terminal.styled()),
          terminal.styled()[:300])
    terminal.keys("q")
    check("vt100: restored", terminal.shows("EXIT=1 MODES=icanon"), terminal.screen())
    stream.close()
    terminal.close()
    stream, terminal = start(folder, TERM="dumb", rows=60)
    stream.round()
    check("dumb: text", terminal.shows("300 samples", "copy_page"), terminal.screen())
    stream.finish()
    check("dumb: the end", terminal.shows("the recording has ended", "EXIT=0"), terminal.screen())
    terminal.close()


def test_no_terminal(folder):
    stream = Stream(folder)
    process = subprocess.Popen(command(folder, stream.fifo), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    stream.open().round(lost=3)
    first = process.stdout.readline().decode()
    check("no terminal: text comes while the stream goes on", first.startswith("kscope top: "), first)
    stream.round()
    stream.finish()
    out, errors = process.communicate(timeout=HANGS)
    last = out.decode().split("kscope top: ")[-1]
    check("no terminal: exit code, messages", process.returncode == 0 and b"warning" not in errors, errors)
    check("no terminal: no escape sequences", b"\x1b" not in out, out[:200])
    check("no terminal: the last text has everything", "the recording has ended" in last and
          "600 samples" in last and "3 lost" in last, last)
    check("no terminal: each cpu", "cpu 1: " in last and "200 samples, 3 lost\n" in last, last)
    equal("no terminal: shares", known(rows(last.splitlines())), SHARES)


def test_no_reader(folder):
    """Nobody reads the text: the view ends, and with it the recording."""
    stream = Stream(folder)
    process = subprocess.Popen(command(folder, stream.fifo), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL)
    process.stdout.close()
    stream.open().round()
    equal("no reader: exit code", process.wait(HANGS), 1)
    stream.close()


with scratch() as scratch_folder:
    view = test_numbers(scratch_folder)
    test_keys(scratch_folder, *view)
    test_sizes(view[1])
    test_end(*view)
    test_stalls(scratch_folder)
    test_deaths(scratch_folder)
    test_interrupt(scratch_folder)
    test_interrupt_at_end(scratch_folder)
    test_stdin(scratch_folder)
    test_simple_terminals(scratch_folder)
    test_no_terminal(scratch_folder)
    test_no_reader(scratch_folder)
finish()
