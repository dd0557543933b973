# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs of tests/pt in kscope record emulate, and what they really executed.

Truth comes from tests/pt/truth.c, a plugin of its own in the same QEMU, because no two runs of a program are equal.
"""
import array
import os
import re
import shlex
import shutil
import signal
import subprocess

from . import BUILD, HANGS, KSCOPE, ROOT, run

SOURCES = os.path.join(ROOT, "tests", "pt")
FLAGS = ["-O1", "-g", "-pthread", "-fno-omit-frame-pointer"]
BARE = ["-nostdlib", "-static", "-no-pie", "-fno-stack-protector", "-fcf-protection=none"]
MACHINE = os.uname().machine


def why_not():
    """The reason why programs cannot be emulated here, or None."""
    if MACHINE != "x86_64":
        return "the programs are built for x86-64"
    return None if qemus() else "no qemu-x86_64 with plugins is installed"


def qemus():
    """[(name, path)] of all that have plugins. Debian's is static, and has none, since Debian 13."""
    found = [("QEMU", shutil.which("qemu-x86_64")),
             ("backports", os.path.join(BUILD, "qemu-backports", "bin", "qemu-x86_64")),
             ("$QEMU_X86_64", os.environ.get("QEMU_X86_64"))]
    return [(name, path) for name, path in found
            if path and os.path.exists(path) and "-plugin" in run(path, "-help").stdout]


def build(name, folder, *flags, source=None):
    """Compiles tests/pt/NAME.c. Returns the program's path."""
    path = os.path.join(folder, name)
    done = run("gcc", *FLAGS, os.path.join(SOURCES, (source or name) + ".c"), "-o", path, *flags)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return path


def build_truth(folder):
    """The plugin."""
    return build("truth.so", folder, "-shared", "-fPIC", source="truth")


class Programs:
    """The programs of tests/pt, which all QEMUs run."""

    def __init__(self, folder):
        self.folder = folder
        self.truth = build_truth(folder)
        self.bare = build("bare", folder, *BARE)
        self.static = build("static", folder, "-static", source="libraries")
        self.sorts = build("sorts", folder, "-no-pie")
        self.signals = build("signals", folder, "-no-pie")
        self.library = build("library.so", folder, "-shared", "-fPIC", source="library")
        for name in ("threads", "processes", "libraries", "crash"):
            setattr(self, name, build(name, folder))
        self.script = os.path.join(folder, "script")
        with open(self.script, "w", encoding="ascii") as f:
            f.write("#!/bin/sh -e\n[ \"$1\" = argument ] && exit 3\n")
        os.chmod(self.script, 0o755)

    def faults(self):
        """The addresses of the instructions of `signals` that do not end."""
        return {address for label, address in symbols(self.signals).items()
                if label.startswith("fault_")}


class Emulation:
    """A folder for one recording, PATH, and its truth."""

    def __init__(self, folder, qemu, plugin):
        self.folder = folder
        self.path = os.path.join(folder, "perf.data")
        self.truth_folder = os.path.join(folder, "truth")
        self.qemu = os.path.join(folder, "qemu")
        os.makedirs(self.truth_folder)
        with open(self.qemu, "w", encoding="utf-8") as f:
            f.write(f"#!/bin/sh\nexec {shlex.quote(qemu)} "
                    f"-plugin {shlex.quote(plugin)},out={shlex.quote(self.truth_folder)} \"$@\"\n")
        os.chmod(self.qemu, 0o755)

    def words(self, program):
        return ["timeout", str(HANGS), KSCOPE, "record", "emulate", "--qemu", self.qemu, "-o",
                self.path, "--", *program]

    def record(self, *program):
        return run(*self.words(program))

    def start(self, *program):
        # A shell that starts the tests in the background makes them, and their children, ignore SIGINT.
        return subprocess.Popen(self.words(program)[2:], text=True, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))

    def truth(self):
        """{tid: [the addresses of the instructions that it began, for each program that it ran]}"""
        threads = {}
        names = [name.split(".") for name in os.listdir(self.truth_folder)]
        for tid, nr in sorted((int(tid), int(nr)) for tid, nr in names):
            words = array.array("Q")
            with open(os.path.join(self.truth_folder, f"{tid}.{nr}"), "rb") as f:
                words.frombytes(f.read())
            end = len(words)
            while end and not words[end - 1]:
                end -= 1
            threads.setdefault(tid, []).append(words[:end].tolist())
        return threads


def by_perf(path):
    """What stock perf decodes: {tid: addresses}, and its complaints."""
    done = run("perf", "script", "-i", path, "--itrace=i0nse", "-F", "tid,ip", "--no-inline")
    threads, errors = {}, done.stderr.splitlines()
    if done.returncode:
        errors.append(f"exit code {done.returncode}")
    for line in done.stdout.splitlines():
        match = re.fullmatch(r"\s*(\d+)\s+([0-9a-f]+)\s*", line)
        if match:
            threads.setdefault(int(match[1]), []).append(int(match[2], 16))
        elif line.strip():
            errors.append(line)
    return threads, errors


def by_stepping(program, folder):
    """The addresses of the instructions that the real processor executes, or None if it may not be asked."""
    done = run(build("step", folder), program)
    return [int(line, 16) for line in done.stdout.split()] if done.returncode == 0 else None


# A thread that is killed may have begun a block of QEMU's: those instructions are not in the trace.
LAST_BLOCK = 64


def first_difference(got, programs, killed=False):
    """Compares the addresses of a thread with the truth of each of its programs. None: they are equal.

    killed: each program may end a little earlier."""
    at = 0
    for want in programs:
        part = got[at:at + len(want)]
        if part != want:
            same = next((i for i, (a, b) in enumerate(zip(part, want)) if a != b), len(part))
            if not killed or len(want) - same > LAST_BLOCK:
                return describe(got, at + same, want, same)
            at += same
        else:
            at += len(want)
    return None if at == len(got) else describe(got, at, [], 0)


def differs(got, programs, faults, killed):
    """Likewise. faults: the addresses of instructions that begin, but do not end."""
    want = [[address for address in program if address not in faults] for program in programs]
    return first_difference(got, want, killed)


def describe(got, at, want, same):
    return (f"{len(got)} instructions; number {at}: got "
            f"{list(map(hex, got[max(at - 3, 0):at + 3]))}, want "
            f"{list(map(hex, want[max(same - 3, 0):same + 3]))}")


def maps(path):
    """{file: {(address, size, offset)}}, as perf prints them"""
    done = run("perf", "script", "-i", path, "--show-mmap-events", "--itrace=e")
    found = {}
    for address, size, offset, name in re.findall(
            r"PERF_RECORD_MMAP2 .*: \[(\w+)\((\w+)\) @ (\w+) .*: r-xp (.*)", done.stdout):
        found.setdefault(name, set()).add((int(address, 16), int(size, 16), int(offset, 16)))
    return found


def symbols(path):
    """{name: address}"""
    return {name: int(address, 16) for address, _, name in
            (line.split() for line in run("nm", "--defined-only", path).stdout.splitlines())}
