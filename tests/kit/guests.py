# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests and the QEMUs that boot them.

    guest = guests.linux("amd64", words="kscope.work=zero")
    done = guests.boot(guest, "backports", ["-plugin", ...])
    done.serial, done.code

tools/get-guests and tools/get-qemu download them (`make test` runs both); missing() names what is
missing.
"""
import base64
import contextlib
import gzip
import os
import re
import select
import subprocess
import time
from dataclasses import dataclass, field

from . import BUILD, HANGS, KSCOPE

GUESTS = os.path.join(BUILD, "guests")
DEMO_KERNELS = os.path.join(BUILD, "demo", "kernel")
# The folder of the programs of each QEMU; "" stands for $PATH.
QEMUS = {"debian": "", "backports": os.path.join(BUILD, "qemu-backports", "bin")}
BEGIN, END = "kscope: begin", "kscope: end"
# Makes every run the same: instructions count as time, and the date is fixed.
ICOUNT = ["-icount", "shift=0,sleep=off", "-rtc", "base=2020-02-20,clock=vm"]


@dataclass
class Guest:
    """A machine to boot, and the binaries that run in it."""
    name: str
    program: str  # qemu-system-...
    kernel: str
    args: list
    elfs: list = field(default_factory=list)  # user programs of the guest
    until: str = ""  # a guest that does not power off prints this when it is done


@dataclass
class Boot:
    serial: str
    errors: str
    code: int  # None: the guest was terminated, because it printed `until` or took too long
    ended: bool  # the guest powered off or printed `until`


def missing():
    """Names what is missing, or returns None."""
    for path in [os.path.join(GUESTS, "version"), os.path.join(BUILD, "qemu-backports", "version")]:
        if not os.path.exists(path):
            return f"{path} is missing: run make test-guests"
    return None


def qemu(program, which="debian"):
    return os.path.join(QEMUS[which], program)


def linux(architecture, words="", cpus=2):
    """A Debian kernel that runs tests/guests/init: amd64, arm64 or riscv64."""
    folder = os.path.join(GUESTS, f"linux-{architecture}")
    # On a busy host, interrupts of the timer come too late for the test that x86 does of it at boot:
    # "IO-APIC + timer doesn't work". Linux has no_timer_check for virtual machines.
    program, machine, boot = {
        "amd64": ("qemu-system-x86_64", ["-M", "pc", "-vga", "none", "-net", "none"],
                  "console=ttyS0 no_timer_check"),
        "arm64": ("qemu-system-aarch64", ["-M", "virt,dtb-randomness=off", "-cpu", "cortex-a72",
                                          "-net", "none"], "console=ttyAMA0"),
        "riscv64": ("qemu-system-riscv64", ["-M", "virt", "-net", "none"], "console=ttyS0"),
    }[architecture]
    kernel = os.path.join(folder, "vmlinuz")
    return Guest(f"linux-{architecture}", program, kernel,
                 [*machine, "-m", "512", "-smp", str(cpus), "-no-reboot", "-kernel", kernel,
                  "-initrd", os.path.join(folder, "initrd"),
                  "-append", f"{boot} quiet panic=-1 {words}".strip()],
                 [os.path.join(folder, "work"), os.path.join(folder, "busybox")])


def gnumach():
    """GNU Mach, whose only task is tests/guests/bootstrap.c."""
    folder = os.path.join(GUESTS, "gnumach-i386")
    kernel, task = os.path.join(folder, "gnumach-dbg"), os.path.join(folder, "bootstrap")
    return Guest("gnumach", "qemu-system-i386", kernel,
                 ["-m", "256", "-vga", "none", "-net", "none", "-no-reboot", "-kernel", kernel,
                  "-append", "console=com0", "-initrd", f"{task} $(task-create) $(task-resume)"],
                 [task], until=END)


def demo(architecture, frames="fp", words="", cpus=4):
    """The kernel of demo/kernel, with frame pointers (fp) or without (nofp): x86_64, aarch64, riscv64, or
    cortex_m, which has one cpu."""
    kernel = os.path.join(DEMO_KERNELS, architecture, f"kernel-{frames}.elf")
    machine = {"x86_64": ["-M", "pc", "-vga", "none", "-net", "none"],
               "aarch64": ["-M", "virt,dtb-randomness=off", "-cpu", "cortex-a72", "-net", "none"],
               "riscv64": ["-M", "virt", "-cpu", "rv64,sscofpmf=on", "-net", "none"],
               "cortex_m": ["-M", "mps2-an385", "-semihosting", "-net", "none"],
               }[architecture]
    size = [] if architecture == "cortex_m" else ["-m", "128", "-smp", str(cpus)]
    program = {"cortex_m": "arm"}.get(architecture, architecture)
    return Guest(f"demo-{architecture}", f"qemu-system-{program}", kernel,
                 [*machine, *size, "-no-reboot", "-kernel", kernel, "-append", words],
                 [os.path.join(DEMO_KERNELS, architecture, frames, name)
                  for name in ["dice.elf", "knit.elf"]])


def line(architecture, backend):
    """Arguments for the line of the demo's kernel. The backend is one of QEMU: "socket,host=...", "pty"..."""
    kind, _, rest = backend.partition(",")
    device = ["-serial", "chardev:line"]
    if architecture in ("aarch64", "riscv64"):
        # Without ioeventfd, QEMU does what the guest asks for at once, not when its other thread gets to run: with
        # -icount, every run is the same.
        device = ["-global", "virtio-mmio.ioeventfd=off", "-device", "virtio-serial-device",
                  "-device", "virtserialport,chardev=line"]
    return ["-chardev", f"{kind},id=line,{rest}".rstrip(","), *device]


def command(guest, which="debian", more=()):
    """The command line; stdout has the serial port and nothing else."""
    return [qemu(guest.program, which), "-accel", "tcg", "-display", "none", "-serial", "stdio",
            "-monitor", "none", *guest.args, *more]


def boot(guest, which="debian", more=(), before=(), pass_fds=()):
    """Boots a guest and waits for its end. `before` is the command of a program that runs QEMU."""
    process = subprocess.Popen([*before, *command(guest, which, more)], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=pass_fds)
    until, deadline = guest.until.encode(), time.monotonic() + HANGS
    streams = {process.stdout: bytearray(), process.stderr: bytearray()}
    serial, errors = streams.values()
    open_streams = list(streams)
    seen = False
    while open_streams and not seen:
        ready = select.select(open_streams, [], [], max(0, deadline - time.monotonic()))[0]
        if not ready:
            break
        for stream in ready:
            data = os.read(stream.fileno(), 65536)
            streams[stream] += data
            if not data:
                open_streams.remove(stream)
        seen = bool(until) and until in serial
    ended = seen or not open_streams
    if open_streams:
        process.terminate()
    try:
        rest = process.communicate(timeout=HANGS)
    except subprocess.TimeoutExpired:
        process.kill()
        rest = process.communicate()
    serial += rest[0] or b""
    errors += rest[1] or b""
    return Boot(serial.decode(errors="replace").replace("\r", ""), errors.decode(errors="replace"),
                process.returncode if not open_streams else None, ended)


def record(guest, out, options=(), which="debian", more=()):
    """Records a boot with kscope record qemu, whose messages are in `errors`."""
    elfs = [word for path in guest.elfs for word in ("--elf", path)]
    return boot(guest, which, more,
                before=[KSCOPE, "record", "qemu", "-o", out, *options, *elfs, "--"])


@contextlib.contextmanager
def busy_host(processes=8):
    """Runs busy loops on the host's cores."""
    started = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def kallsyms(serial):
    """The text of the guest's /proc/kallsyms, if it was booted with words="kscope.kallsyms"."""
    found = re.search(r"kscope: kallsyms\n(.*?)kscope: end of kallsyms", serial, re.S)
    return gzip.decompress(base64.b64decode(found[1])).decode() if found else ""


def inlined(serial):
    """{function: calls} of the functions that are inlined in the demo's kernel."""
    return {function: int(calls)
            for function, calls in re.findall(r"^inlined: \S+ (\S+) (\d+)$", serial, re.M)}


def truth(serial):
    """{function: (calls, rounds)} that the demo's kernel prints."""
    return {function: (int(calls), 1000 * int(rounds)) for function, calls, rounds
            in re.findall(r"^truth: \S+ (\S+) (\d+) (\d+)$", serial, re.M)}
