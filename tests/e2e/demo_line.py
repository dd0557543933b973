#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What the machines of the demo's kernel have for a profiler: the line, the sample timer, and reads that never fault."""
import contextlib
import os
import random
import re
import socket
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import HANGS, check, equal, finish, guests, skip

BYTES = bytes(range(256)) + random.Random(1).randbytes(65536 - 256)
PERIOD = 123457  # ns, not a multiple of any clock's step
MODERN = ["-global", "virtio-mmio.force-legacy=false"]


def samples(serial):
    """[(samples, in user code, wrong, microseconds)] of each cpu."""
    return [tuple(map(int, found)) for found in re.findall(
        r"^samples: \d+ (\d+), (\d+) in user code, (\d+) wrong, in (\d+) us$", serial, re.M)]


def receive(connection, size):
    """Returns less if the connection ends."""
    got = bytearray()
    with contextlib.suppress(ConnectionError, TimeoutError):
        while len(got) < size and (data := connection.recv(size - len(got))):
            got += data
    return bytes(got)


def send(connection, data):
    with contextlib.suppress(ConnectionError):
        connection.sendall(data)


def exchange(connection, data):
    """Sends and receives at the same time: neither side has to have room for all the data."""
    sender = threading.Thread(target=send, args=[connection, data], daemon=True)
    sender.start()
    got = receive(connection, len(data))
    sender.join(HANGS)
    return got


def test_line(machine, which, more=()):
    name = f"{machine}, {which}"
    guest = guests.demo(machine, "nofp", words=f"scale=1 sample={PERIOD} line={len(BYTES)}")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(HANGS)
        args = [*guests.line(machine, f"socket,host=127.0.0.1,port={server.getsockname()[1]}"), *more]
        process = subprocess.Popen(guests.command(guest, which, args), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, text=True)
        connection = server.accept()[0]
    with process, connection:
        connection.settimeout(HANGS)
        # What comes before a serial port is ready would be lost.
        ready = any(line == "line: ready\n" for line in process.stdout)
        check(f"{name}: the line is ready", ready)
        got = exchange(connection, BYTES)
        if not check(f"{name}: every byte comes back", got == BYTES, f"{len(got)} bytes"):
            process.kill()  # it may wait for ever
        serial = process.stdout.read()
    check(f"{name}: the work is done", process.returncode == 0 and "demo: end" in serial
          and f"line: {len(BYTES)}" in serial, serial[-300:])
    cpus = samples(serial)
    check(f"{name}: each cpu has a timer", len(cpus) == 4 and all(count for count, *_ in cpus), serial[-400:])
    equal(f"{name}: what a sample sees", [wrong for _, _, wrong, _ in cpus], [0] * 4)


def test_timer(machine):
    """On one cpu, because with -icount QEMU runs one after the other."""
    boot = guests.boot(guests.demo(machine, "nofp", words=f"scale=2 sample={PERIOD}", cpus=1), more=guests.ICOUNT)
    (count, user, wrong, time), *_ = samples(boot.serial) or [(0, 0, 0, 0)]
    ticks = re.search(r"^ticks: 0 (\d+)$", boot.serial, re.M)
    expected = time * 1000 / PERIOD
    check(f"{machine}: samples as often as they should", 0.95 * expected < count < 1.01 * expected,
          f"{count}, not {expected:.0f}: {boot.serial[-300:]}")
    check(f"{machine}: samples in user code, too", 0.2 * count < user < 0.5 * count, f"{user} of {count}")
    check(f"{machine}: the scheduler's ticks", ticks and abs(int(ticks[1]) - time / 10000) <= 1,
          f"{ticks and ticks[1]} in {time} us")
    equal(f"{machine}: what a sample sees, by instructions", wrong, 0)


def main():
    if guests.missing():
        skip("demo_line", guests.missing())
        finish()
    for machine in ["x86_64", "aarch64", "riscv64"]:
        test_line(machine, "debian")
        test_timer(machine)
    for machine in ["aarch64", "riscv64"]:
        test_line(machine, "backports", MODERN)
    finish()


if __name__ == "__main__":
    main()
