# SPDX-License-Identifier: GPL-2.0-or-later
"""The demo's kernel with the sampler of target/ in it, recorded over its line by kscope.

    done = target.record("aarch64", folder, "out.kscope", words="profile=1 scale=5")
    done.boot, done.recorder
"""
import os
import pty
import re
import socket
import threading
import tty
from dataclasses import dataclass

from . import guests
from .board import Recorder


@dataclass
class Recording:
    boot: guests.Boot
    recorder: Recorder
    out: str


def counts(serial):
    """What the kernel counted: {cpu: (taken, sent, dropped, by the timer)}."""
    return {int(cpu): tuple(map(int, counts)) for cpu, *counts in re.findall(
        r"^samples: (\d+) (\d+) taken, (\d+) sent, (\d+) dropped, (\d+) by the timer$", serial, re.M)}


def guest_of(machine, words, cpus=4):
    return guests.demo(machine, "fp", words=words, **({} if machine == "cortex_m" else {"cpus": cpus}))


def binaries(guest):
    return ["-k", guest.kernel, *(word for path in guest.elfs for word in ("--elf", path))]


def listening():
    """A socket that QEMU gets from us: nobody else can take its port."""
    sock = socket.create_server(("127.0.0.1", 0))
    os.set_inheritable(sock.fileno(), True)
    return sock


def boot_to_file(machine, path, words, which="debian", more=(), cpus=4):
    """Boots it with the line in a file: nothing outside has an influence on what the kernel does."""
    guest = guest_of(machine, words, cpus)
    return guests.boot(guest, which, [*more, *guests.line(machine, f"file,path={path}")])


def record(machine, folder, out, words, start=None, options=(), which="debian", more=guests.ICOUNT, cpus=4):
    """Records it over TCP. start: the commands to send; None: those of kscope."""
    guest = guest_of(machine, words, cpus)
    with listening() as sock:
        recorder = Recorder(folder, "tcp", f"127.0.0.1:{sock.getsockname()[1]}", "-f", "kscope", "-o", out,
                            *(["--start-with", start] if start else []), *binaries(guest), *options)
        line = guests.line(machine, f"socket,fd={sock.fileno()},server=on,wait=on")
        boot = guests.boot(guest, which, [*more, *line], pass_fds=[sock.fileno()])
        recorder.end()
    return Recording(boot, recorder, os.path.join(folder, out))


def copy(source, sink):
    while data := read_some(source):
        os.write(sink, data)


def read_some(fd):
    try:
        return os.read(fd, 4096)
    except OSError:  # closed
        return b""


class SerialLine:
    """A serial line: a pty, and a socket for QEMU. With a pty of QEMU's own, the last bytes are lost if QEMU ends
    before kscope has read them."""

    def __init__(self):
        self.socket, self.qemu = socket.socketpair()
        os.set_inheritable(self.qemu.fileno(), True)
        self.master, self.slave = pty.openpty()
        tty.setraw(self.slave)
        self.path = os.ttyname(self.slave)
        for ends in ((self.socket.fileno(), self.master), (self.master, self.socket.fileno())):
            threading.Thread(target=copy, args=ends, daemon=True).start()

    def close(self):
        self.qemu.close()
        self.socket.shutdown(socket.SHUT_RDWR)


def record_serial(machine, folder, out, words, options=(), more=guests.ICOUNT):
    """Records it over a serial line."""
    guest, line = guest_of(machine, words), SerialLine()
    recorder = Recorder(folder, "serial", line.path, "-f", "kscope", "-o", out, *binaries(guest), *options)
    boot = guests.boot(guest, "debian", [*more, *guests.line(machine, f"socket,fd={line.qemu.fileno()}")],
                       pass_fds=[line.qemu.fileno()])
    recorder.end()
    line.close()
    return Recording(boot, recorder, os.path.join(folder, out))
