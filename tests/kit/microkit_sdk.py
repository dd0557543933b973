# SPDX-License-Identifier: GPL-2.0-or-later
"""The demo of target/microkit on a real seL4 Microkit SDK, in QEMU.

    with Board(build, config) as board:
        before = board.counts()
"""
import json
import os
import re
import socket
import subprocess

from . import HANGS
from .target import listening

# Where the demo's programs count their work, in demo.system: {function: (address, index)}
COUNTS = {"digest": (0xb0000000, 0), "mix": (0xb0000000, 1), "merge": (0xb0001000, 0),
          "prepare": (0xb0002000, 0), "checksum": (0xb0003000, 0), "copy": (0xb0003000, 1)}


def configs(sdk):
    folder = os.path.join(sdk, "board", "qemu_virt_aarch64")
    return [name for name in ("debug", "profiling", "smp-debug") if os.path.isdir(os.path.join(folder, name))]


def cores(sdk, config):
    """How many cores the kernel wants to have."""
    path = os.path.join(sdk, "board", "qemu_virt_aarch64", config, "include", "kernel", "gen_config.h")
    with open(path, encoding="ascii") as f:
        found = re.search(r"CONFIG_MAX_NUM_NODES\s+(\d+)", f.read())
    return int(found[1]) if found else 1


class Board:
    """QEMU with the image of a build. Its serial line is a TCP port.

    The kernel and Microkit's monitor print to the same line while the system starts, even into the stream: see
    has_started()."""

    def __init__(self, build, cpus, *options):
        self.line = listening()
        self.port = self.line.getsockname()[1]
        self.control, theirs = socket.socketpair()
        os.set_inheritable(theirs.fileno(), True)
        self.process = subprocess.Popen(
            ["qemu-system-aarch64", "-M", "virt,virtualization=on", "-cpu", "cortex-a53", "-m", "2G", "-smp", str(cpus),
             "-display", "none", "-chardev", f"socket,id=line,fd={self.line.fileno()},server=on,wait=off",
             "-serial", "chardev:line", "-chardev", f"socket,id=control,fd={theirs.fileno()}",
             "-mon", "chardev=control,mode=control", *options,
             "-device", f"loader,file={build}/loader.img,addr=0x70000000,cpu-num=0"],
            pass_fds=[self.line.fileno(), theirs.fileno()], stdin=subprocess.DEVNULL)
        theirs.close()
        self.control.settimeout(HANGS)
        self.answers = self.control.makefile("r", encoding="utf-8")
        self.ask("qmp_capabilities")

    def __enter__(self):
        return self

    def __exit__(self, *what):
        self.process.kill()
        self.process.wait()
        self.answers.close()
        self.control.close()
        self.line.close()

    def ask(self, command, **arguments):
        self.control.sendall(json.dumps({"execute": command, "arguments": arguments}).encode() + b"\n")
        for line in self.answers:
            answer = json.loads(line)
            if "return" in answer or "error" in answer:
                return answer.get("return")
        raise RuntimeError("QEMU has ended")

    def has_started(self):
        """All programs run, and nothing more is printed."""
        return min(self.counts().values()) > 2

    def counts(self):
        """{function: units of work so far}"""
        counts = {}
        for function, (address, index) in COUNTS.items():
            text = self.ask("human-monitor-command", **{"command-line": f"xp /1gx {address + 8 * index:#x}"})
            counts[function] = int(text.split()[1], 16)
        return counts
