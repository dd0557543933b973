#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A program in place of QEMU and the plugin, which fails where a real QEMU would not: copied to the
name of an emulator, it accepts -plugin and answers on the control socket. Its other options:

    -say TEXT        prints the text (to FILE, with -serial file:FILE)
    -wait            ends at SIGTERM
    -deaf            prints "deaf" at SIGTERM and does not end
    -status N        exit status
    -late            waits a long time before it starts
    -no-stream       ends before the plugin is loaded
    -no-flush        the command flush fails
    -cut             the stream has no end
    -samples N       samples of each of two vCPUs
    -args FILE       writes the command line to FILE, and what is known of the stream's file
"""
import contextlib
import json
import os
import re
import signal
import socket
import sys
import threading
import time


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + bytes([value]))


def number(field, value):
    return varint(field << 3) + varint(value)


def text(field, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


def fixed(field, value):
    return varint(field << 3 | 1) + value.to_bytes(8, "little")


def chunk(body):
    return text(1, b"\x0dKSCP" + body)


def stream(samples, cut):
    info = number(1, 1) + text(2, "x86_64") + text(3, "stand-in") + number(4, 2) + number(6, 1000000)
    yield chunk(text(5, info))
    for cpu in range(2):
        looks = b"".join(text(6, number(1, 1000 * i + 1) + fixed(2, 0x200000 + 4 * i) + number(4, 1) +
                              number(5, 1000000)) for i in range(samples))
        yield chunk(number(2, cpu) + number(3, 0) + looks)
    if not cut:
        counts = b"".join(text(2, number(1, cpu) + number(2, samples) + number(5, 1))
                          for cpu in range(2))
        yield chunk(text(11, text(1, "guest ended") + counts))


class Guest:
    def __init__(self, words):
        self.words = words
        self.samples = int(self.value("-samples", "10"))
        self.running = True
        self.flushed = 0
        plugin = self.value("-plugin", "")
        self.arguments = dict(part.split("=", 1) for part in
                              (part.replace("\0", ",") for part in
                               plugin.replace(",,", "\0").split(",")) if "=" in part)
        self.running = self.arguments.get("start") != "off"

    def value(self, option, default=None):
        return self.words[self.words.index(option) + 1] if option in self.words else default

    def answer(self, command):
        if command == "status":
            return (f"ok running={int(self.running)} cpus=2 samples={2 * self.samples} allocs=0 "
                    f"branches=0 dropped=0 bytes=4096 time=1 instructions=0 later=1")
        if command == "flush":
            self.flushed += 1
            return "ok" if "-no-flush" not in self.words else "error the disk\x1b is full"
        if command in ("start", "stop"):
            self.running = command == "start"
            return "ok"
        return "error what?"

    def serve(self, listener):
        while True:
            peer, _ = listener.accept()
            with peer, contextlib.suppress(OSError):  # on a busy host, it may not have waited for the answer
                for line in peer.makefile(encoding="utf-8"):
                    peer.sendall(self.answer(line.strip()).encode() + b"\n")

    def listen(self):
        if "control" not in self.arguments:
            return
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self.arguments["control"])
        listener.listen()
        threading.Thread(target=self.serve, args=(listener,), daemon=True).start()

    def say(self):
        out = sys.stdout.buffer
        serial = self.value("-serial", "")
        if serial.startswith("file:"):
            out = open(serial[5:], "wb")
        text = self.value("-say", "").encode().decode("unicode_escape").encode("latin-1")
        # In pieces: kscope must find a text that arrives in two of them.
        for piece in re.findall(b"(?s).{1,3}", text):
            out.write(piece)
            out.flush()

    def mode_of_out(self):
        path = self.arguments.get("out", "")
        return oct(os.stat(path).st_mode & 0o777) if os.path.exists(path) else "missing"

    def run(self):
        if "-args" in self.words:
            with open(self.value("-args"), "w", encoding="utf-8") as f:
                json.dump({"words": self.words, "terminal": os.isatty(1), "out": self.mode_of_out()}, f)
        if "-late" in self.words:
            time.sleep(60)
        if "-no-stream" in self.words:
            print("stand-in: I do not like this", file=sys.stderr)
            return int(self.value("-status", "1"))
        ended = threading.Event()
        if "-deaf" in self.words:
            signal.signal(signal.SIGTERM, lambda *_: print("deaf", flush=True))
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        else:
            signal.signal(signal.SIGTERM, lambda *_: ended.set())
            signal.signal(signal.SIGINT, lambda *_: ended.set())
        self.listen()
        with open(self.arguments["out"], "wb") as out:
            parts = list(stream(self.samples, "-cut" in self.words))
            for part in parts[:-1]:
                out.write(part)
            out.flush()
            self.say()
            while ("-wait" in self.words or "-deaf" in self.words) and not ended.is_set():
                time.sleep(0.02)
            out.write(parts[-1])
        return int(self.value("-status", "0"))


if __name__ == "__main__":
    if sys.argv[1:] == ["-help"]:
        print("no word of it\n" * 100)
        sys.exit(0)
    sys.exit(Guest(sys.argv[1:]).run())
