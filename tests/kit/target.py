# SPDX-License-Identifier: GPL-2.0-or-later
"""The demo's kernel with the sampler of target/ in it, recorded over its line by kscope.

    done = target.record("aarch64", folder, "out.kscope", words="profile=1 scale=5")
    done.boot, done.recorder
"""
import os
import re
import socket
import subprocess
import threading
from dataclasses import dataclass

from . import HANGS, guests, wait_for
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


class Watcher:
    """Collects what a program prints, in a thread."""

    def __init__(self, stream):
        self.text = ""
        threading.Thread(target=self.collect, args=(stream,), daemon=True).start()

    def collect(self, stream):
        for line in stream:
            self.text += line.decode(errors="replace").replace("\r", "")

    def find(self, pattern):
        """Waits for a text. Returns its first group, or all of it."""
        if not wait_for(lambda: re.search(pattern, self.text)):
            raise RuntimeError(f"{pattern} is missing: {self.text[-300:]}")
        found = re.search(pattern, self.text)
        return found[1] if found.groups() else found[0]


def record_serial(machine, folder, out, words, options=(), more=guests.ICOUNT):
    """Records it over a serial line, which is a pty of QEMU. QEMU stays until kscope has ended: with it, what is on
    the way in the pty would go."""
    guest = guest_of(machine, words)
    command = guests.command(guest, "debian", [*more, "-no-shutdown", *guests.line(machine, "pty")])
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    watcher = Watcher(process.stdout)
    pty = watcher.find(r"redirected to (/dev/pts/\d+) \(label line\)")
    recorder = Recorder(folder, "serial", pty, "-f", "kscope", "-o", out, *binaries(guest), *options).end()
    watcher.find(r"(?m)^ticks: 0[^\0]*^samples: %d .*\n" % (0 if machine == "cortex_m" else 3))
    process.terminate()
    code = process.wait(HANGS)
    return Recording(guests.Boot(watcher.text, "", code, True), recorder, os.path.join(folder, out))
