#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The plugin in two QEMUs (Debian stable and backports), with the guests of tests/guest."""
import collections
import json
import os
import shutil
import signal
import socket
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import BUILD, HANGS, ROOT, check, equal, finish, guests, kscope, run, scratch, wait_for
from kit.wire_read import Stream

PLUGIN = os.path.join(BUILD, "kscope-qemu.so")
LONG = 100000000  # rounds of a guest that does not end
VIRT = ["-M", "virt"]
DEBUG_EXIT = ["-device", "isa-debug-exit,iobase=0xf4,iosize=4"]


class Arch:
    """A machine and what its samples have.

    caller: where the address of a function's caller is: words from its frame pointer, or "lr"."""

    def __init__(self, name, machine, registers, sp, fp, level, word=8, caller=1):
        self.name, self.machine, self.registers, self.sp, self.fp = name, machine, registers, sp, fp
        self.level, self.word, self.caller = level, word, caller


ARCHES = [
    Arch("x86_64", DEBUG_EXIT, 17, 7, 6, 1),
    Arch("i386", DEBUG_EXIT, 9, 4, 5, 1, word=4),
    Arch("aarch64", VIRT + ["-cpu", "cortex-a57"], 33, 31, 30, 1, caller="lr"),
    Arch("arm", VIRT + ["-cpu", "cortex-a15"], 16, 13, 14, 1, word=4, caller="lr"),
    Arch("riscv64", VIRT + ["-bios", "none"], 32, 2, 8, 3, caller=-1),
    Arch("riscv32", VIRT + ["-bios", "none"], 32, 2, 8, 3, word=4, caller=-1),
]
BY_NAME = {arch.name: arch for arch in ARCHES}


class Guest:
    """Builds a guest of tests/guest, and reads its symbols."""

    def __init__(self, folder, arch, rounds=20000, cpus=1):
        self.arch = BY_NAME[arch]
        self.elf = os.path.join(folder, f"{arch}-{rounds}")
        run(os.path.join(ROOT, "tests", "guest", "build"), arch, self.elf, f"-DROUNDS={rounds}",
            f"-DCPUS={cpus}")
        lines = run("llvm-nm", "-n", self.elf).stdout.splitlines()
        symbols = [(int(line.split()[0], 16), line.split()[2]) for line in lines]
        self.at = {name: address for address, name in symbols}
        self.symbols = [symbol for symbol in symbols if not symbol[1].startswith(".L")]

    def function(self, address):
        under = [name for start, name in self.symbols if start <= address]
        return under[-1] if under and under[-1] in ("work", "hot", "cold", "guest_main") else None

    def command(self, which, plugin, *more):
        kernel = self.elf + ".boot" if self.arch.name == "x86_64" else self.elf
        return [guests.qemu(f"qemu-system-{self.arch.name}", which), *self.arch.machine,
                "-kernel", kernel, "-nodefaults", "-nographic", "-plugin", f"{PLUGIN},{plugin}", *more]

    def record(self, which, out, plugin="", *more):
        done = run(*self.command(which, f"out={out},{plugin}" if plugin else f"out={out}", *more))
        return Stream(out), done


def callers(guest, samples):
    """The callers of hot(), from the link register, or the frame pointer and the copied stack."""
    arch, found = guest.arch, collections.Counter()
    for sample in samples:
        if guest.function(sample.pc) != "hot" or sample.pc == guest.at["hot"]:
            continue
        if arch.caller == "lr":
            found[guest.function(sample.registers[arch.fp] - 1)] += 1
            continue
        place = sample.registers[arch.fp] - sample.registers[arch.sp] + arch.caller * arch.word
        address = int.from_bytes(sample.stack[place:place + arch.word], "little")
        found[guest.function(address - 1)] += 1
    return found


def is_three_quarters(part, rest):
    """Whether the share is 3/4, within 7 standard deviations of random samples."""
    whole = part + rest
    return whole and abs(part / whole - 0.75) < 7 * (0.75 * 0.25 / whole) ** 0.5


def code_is_right(guest, stream):
    """For each copy of a page of the guest's code, whether it is what the ELF has."""
    page = guest.at["hot"] & ~4095
    run("llvm-objcopy", "-O", "binary", guest.elf, guest.elf + ".bin")
    with open(guest.elf + ".bin", "rb") as f:
        want = f.read()
    start = guest.at["_start"] & ~4095
    return [code[5] == want[page - start:page - start + 64] for code in stream.codes
            if code.get(4) == page]


def one_arch(folder, arch, which):
    name = f"{arch.name}, QEMU of {which}"
    guest = Guest(folder, arch.name)
    stream, done = guest.record(which, os.path.join(folder, "out"), "period=200000")
    equal(f"{name}: nothing is missing", stream.faults(), "")
    equal(f"{name}: the architecture", stream.info.get(2, b"").decode(), arch.name)
    mine = [sample for sample in stream.samples if guest.function(sample.pc)]
    where = collections.Counter()
    for sample in mine:
        where[guest.function(sample.pc)] += sample.weight * stream.chance()
    check(f"{name}: shares", len(mine) > 30 and is_three_quarters(where["hot"], where["cold"]),
          f"{len(mine)} samples: {where} {done.stderr}")
    equal(f"{name}: registers", {len(sample.registers) for sample in mine}, {arch.registers})
    spaces = {sample.space if sample.has_space else None for sample in mine}
    table = guest.at["pml4"]
    if arch.name.startswith("riscv"):
        table = table >> 12 | (8 << 60 if arch.word == 8 else 1 << 31)
    equal(f"{name}: the address space", spaces, {table})
    equal(f"{name}: the level", {sample.level for sample in mine}, {arch.level})
    found = callers(guest, mine)
    check(f"{name}: the caller", found["work"] >= 0.9 * sum(found.values()) > 0, found)
    right = code_is_right(guest, stream)
    check(f"{name}: the code", right and all(right), right)
    # A thread cannot run longer than the time since the sample before.
    late = [(a.time, b.time, b.weight) for a, b in zip(stream.samples, stream.samples[1:])
            if not 0 < b.weight <= b.time - a.time]
    check(f"{name}: weights are of the time", not late, late[:5])


def four_cpus(folder, which):
    name = f"four vCPUs, QEMU of {which}"
    guest = Guest(folder, "riscv64", cpus=4)
    stream, _ = guest.record(which, os.path.join(folder, "out"), "period=100000", "-smp", "4")
    equal(f"{name}: nothing is missing", stream.faults(), "")
    equal(f"{name}: all of them", stream.cpus(), [0, 1, 2, 3])
    busy = [len([s for s in stream.of_cpu(cpu) if not s.idle]) for cpu in range(4)]
    check(f"{name}: each was seen", min(busy) > 20, busy)
    stream, _ = guest.record(which, os.path.join(folder, "out"), "vcpu=1+3,period=100000", "-smp", "4")
    equal(f"{name}: vcpu=", (stream.cpus(), stream.faults()), ([1, 3], ""))


def deterministic(folder, which):
    for arch, cpus, kind in (("aarch64", 1, "guest"), ("x86_64", 1, "instructions"),
                             ("riscv64", 4, "guest"), ("riscv64", 4, "instructions")):
        guest = Guest(folder, arch, rounds=3000, cpus=cpus)
        name = f"{kind} on {cpus} {arch}, QEMU of {which}"
        twice = [guest.record(which, os.path.join(folder, "out"), f"clock={kind},period=50000",
                              *guests.ICOUNT, "-smp", str(cpus))[0] for _ in range(2)]
        equal(f"{name}: nothing is missing", [stream.faults() for stream in twice], ["", ""])
        data = [[[s.data for s in stream.of_cpu(cpu)] for cpu in range(cpus)] for stream in twice]
        check(f"{name}: two runs are the same", data[0] == data[1] and len(data[0][0]) > 100,
              [[len(cpu) for cpu in one] for one in data])
        if kind == "instructions":
            total = sum(sample.weight for sample in twice[0].samples)
            ran = sum(count.get(4, 0) for count in twice[0].counts.values())
            check(f"{name}: weights are the instructions", 0 <= ran - total < cpus * 100000,
                  (total, ran))


def exact_count(folder, which):
    """With -icount, End has the exact number of instructions, which can be computed."""
    counts = []
    for rounds in (1000, 2000):
        guest = Guest(folder, "aarch64", rounds=rounds)
        stream, _ = guest.record(which, os.path.join(folder, "out"), "clock=instructions",
                                 *guests.ICOUNT)
        counts.append(stream.counts[0].get(4, 0))
    listing = run("llvm-objdump", "-d", "--no-show-raw-insn", "--disassemble-symbols=hot,cold,work",
                  guest.elf).stdout
    check(f"exact, QEMU of {which}: a round is a whole number of instructions",
          (counts[1] - counts[0]) % 1000 == 0, counts)
    loop = [line for line in listing.splitlines() if "b.ne" in line]
    per_round = (counts[1] - counts[0]) // 1000
    check(f"exact, QEMU of {which}: 400 loops in a round", per_round // 400 * 400 <= per_round <
          per_round // 400 * 400 + 100 and len(loop) == 3, (per_round, loop))


def size_of(path):
    return os.path.getsize(path) if os.path.exists(path) else 0


def killed(folder, which):
    out = os.path.join(folder, "killed")
    guest = Guest(folder, "aarch64", rounds=LONG)
    process = subprocess.Popen(guest.command(which, f"out={out},period=100000"))
    grown = wait_for(lambda: size_of(out) > 1000000 and len(Stream(out).samples) > 50)
    process.send_signal(signal.SIGKILL)
    process.wait()
    stream = Stream(out)
    check(f"killed, QEMU of {which}: what was written can be read",
          grown and stream.info and stream.end is None and len(stream.samples) > 50,
          (len(stream.samples), stream.cut))


class Control:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        wait_for(lambda: self.socket.connect_ex(path) == 0)
        self.file = self.socket.makefile("rw")

    def ask(self, line):
        self.file.write(line + "\n")
        self.file.flush()
        return self.file.readline().strip()

    def status(self):
        words = self.ask("status").split()
        return {name: int(value) for name, value in (word.split("=") for word in words[1:])}


def controlled(folder, which):
    out, path = os.path.join(folder, "controlled"), os.path.join(folder, "socket")
    guest = Guest(folder, "riscv64", rounds=LONG, cpus=2)
    process = subprocess.Popen(guest.command(which, f"out={out},start=off,control={path}", "-smp", "2"))
    name = f"control, QEMU of {which}"
    control = Control(path)
    wait_for(lambda: control.status()["cpus"] == 2)
    before = control.status()
    equal(f"{name}: start=off", (before["running"], before["samples"]), (0, 0))
    equal(f"{name}: start", control.ask("start"), "ok")
    check(f"{name}: it samples", wait_for(lambda: control.status()["samples"] > 100), "")
    equal(f"{name}: stop", control.ask("stop"), "ok")
    at_stop = control.status()["samples"]
    # Each vCPU may take one more sample.
    possible = range(at_stop, at_stop + 3)
    equal(f"{name}: flush", control.ask("flush"), "ok")
    stream = Stream(out)
    check(f"{name}: all is in the file", len(stream.samples) in possible,
          (len(stream.samples), possible))
    check(f"{name}: and a round", stream.rounds, "")
    check(f"{name}: nonsense", control.ask("dance").startswith("error "), "")
    mute = Control(path)  # sends but does not read: the plugin disconnects it, and QEMU can end
    mute.socket.settimeout(HANGS)
    try:
        for _ in range(10000):
            mute.socket.sendall(b"status\n" * 30)
        left = False
    except (BrokenPipeError, ConnectionResetError, TimeoutError) as why:
        left = not isinstance(why, TimeoutError)
    check(f"{name}: a client that does not read is left", left, "")
    process.send_signal(signal.SIGTERM)
    process.wait(HANGS)
    stream = Stream(out)
    check(f"{name}: the end", not stream.faults() and len(stream.samples) in possible,
          (stream.faults(), len(stream.samples), possible))
    check(f"{name}: the socket is gone", not os.path.exists(path), path)


def stalled(folder):
    """Nothing reads the pipe until samples are lost."""
    out, path, copy = (os.path.join(folder, name) for name in ("pipe", "socket", "stalled"))
    guest = Guest(folder, "aarch64", rounds=LONG)
    os.mkfifo(out)
    process = subprocess.Popen(guest.command("debian", f"out={out},period=50000,control={path}"))
    with open(out, "rb") as pipe, open(copy, "wb") as file:
        control = Control(path)
        lost = wait_for(lambda: control.status()["dropped"] > 10)
        process.send_signal(signal.SIGTERM)
        shutil.copyfileobj(pipe, file)
    process.wait(HANGS)
    stream = Stream(copy)
    check("a pipe that is not read: losses are counted", lost and not stream.faults(), stream.faults())
    info = json.loads(kscope("info", copy, "--json").stdout)
    equal("a pipe that is not read: kscope reads all that was there",
          (info["samples"], info["lost"], info["damaged"]),
          (len(stream.samples), sum(stream.dropped.values()), 0))


def masked(folder, which):
    """A loop with interrupts disabled, at an address where their entry could be."""
    image, path = os.path.join(folder, "image"), os.path.join(folder, "socket")
    with open(image, "wb") as f:
        f.write(bytes.fromhex("a0000014").ljust(0x280, b"\0") + bytes.fromhex("00000014"))
    process = subprocess.Popen([guests.qemu("qemu-system-aarch64", which), *BY_NAME["aarch64"].machine,
                                "-display", "none", "-kernel", image, "-plugin",
                                f"{PLUGIN},out={image}.out,control={path}"])
    wait_for(lambda: os.path.exists(path))
    control = Control(path)
    check(f"masked, QEMU of {which}: it samples", wait_for(lambda: control.status()["samples"] > 20))

    def places():
        control.ask("flush")
        return collections.Counter(sample.pc for sample in Stream(image + ".out").samples)

    # On a busy host, the first samples are of code before the loop.
    wait_for(lambda: places()[0x40080280] > 15 or control.status()["samples"] > 2000)
    check(f"masked, QEMU of {which}: where it is", places()[0x40080280] > 15, places())
    process.send_signal(signal.SIGTERM)
    process.wait(HANGS)


def maestro(folder, which):
    out = os.path.join(folder, "maestro")
    guest = Guest(folder, "i386")
    # Its samples have no weight: on a busy host, only samples by instructions are random.
    for how, least in (("delay=200", 30), ("clock=instructions,period=20000", 1000)):
        run(*guest.command(which, f"out={out},format=maestro,{how}"))
        done = kscope("convert", "--kernel", guest.elf, out, "-t", "folded", "-o", "-")
        stacks = collections.Counter()
        for line in done.stdout.splitlines():
            stacks[line.rsplit(" ", 1)[0].split(";", 1)[-1]] += int(line.rsplit(" ", 1)[1])
        hot, cold = (sum(n for stack, n in stacks.items() if stack.endswith(f"guest_main;work;{name}"))
                     for name in ("hot", "cold"))
        equal(f"format=maestro,{how}, QEMU of {which}: nothing in it looks damaged",
              (done.returncode, done.stderr), (0, ""))
        check(f"format=maestro,{how}, QEMU of {which}: kscope reads its stacks", hot + cold > least and
              (how.startswith("delay") or is_three_quarters(hot, cold)), stacks)


def filters(folder):
    guest = Guest(folder, "aarch64", rounds=3000)
    out = os.path.join(folder, "out")
    # Samples by instructions: their number does not depend on the host's load.
    often = "clock=instructions,period=100000"
    stream, _ = guest.record("debian", out, f"level=user,{often}")
    equal("level=user: a kernel has none", (len(stream.samples), stream.faults()), (0, ""))
    stream, _ = guest.record("debian", out, f"level=kernel,{often}")
    check("level=kernel", len(stream.samples) > 10, len(stream.samples))
    stream, _ = guest.record("debian", out, f"to={guest.at['guest_main']:#x},{often}")
    inside = [sample for sample in stream.samples if guest.function(sample.pc)]
    check("to=", len(inside) <= 2, len(inside))
    stream, _ = guest.record("debian", out, f"from={guest.at['cold']:#x},{often}")
    check("from=", len(stream.samples) > 10, len(stream.samples))
    for which in guests.QEMUS:  # the range is entered and left much faster than the clock ticks
        stream, _ = guest.record(which, out, f"from={guest.at['cold']:#x},to={guest.at['hot']:#x},"
                                 "clock=guest,period=50000", "-icount", "shift=0,sleep=off")
        share = sum(sample.weight for sample in stream.samples) / stream.samples[-1].time
        check(f"from= to=, QEMU of {which}: the time between them", 0.22 < share < 0.28, share)
    stream, _ = guest.record("debian", out, f"stack=0,{often}")
    equal("stack=0", {len(sample.stack) for sample in stream.samples}, {0})


def errors(folder):
    guest = Guest(folder, "aarch64", rounds=3000)
    done = run(*guest.command("debian", f"control={guest.elf}"), cwd=folder)
    check("error: control= a file that is no socket", done.returncode and "control=" in done.stderr and
          os.path.exists(guest.elf), done.stderr)
    for words, text in (("color=red", "color=red: not an argument"), ("period=often", "a number"),
                        ("clock=moon", "host|guest|instructions"), ("stack=1000000", "at most 65536"),
                        ("alloc=f:x", "FUNCTION:argN:ret"), ("out=/nowhere/at/all", "cannot write"),
                        ("vcpu=x", "a list such as"), ("check=1", "needs mode=trace"),
                        ("check=0,mode=trace", "out of range")):
        done = run(*guest.command("debian", words), cwd=folder)
        check(f"error: {words}", done.returncode and f"kscope-qemu: {words.split('=')[0]}" in done.stderr
              or "cannot write" in done.stderr, done.stderr)
        check(f"error: {words} says what was expected", text in done.stderr, done.stderr)


PROGRAM = """
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile unsigned long sinks[8];
static pthread_barrier_t all;
__attribute__((noinline)) void hot(long n) { for (unsigned i = 0; i < 3000; i++) sinks[n] += i; }
static void *work(void *n) { for (int i = 0; i < 20000; i++) hot((long)n); return 0; }
static void *together(void *n) { pthread_barrier_wait(&all); return work(n); }
int main(void) {
	pthread_t threads[3];
	pthread_barrier_init(&all, 0, 4);
	for (long i = 0; i < 3; i++)
		pthread_create(&threads[i], 0, together, (void *)i);
	pthread_barrier_wait(&all);
	if (!fork())
		_exit(0 * (long)work((void *)3));
	work((void *)4);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], 0);
	wait(0);
	usleep(100000);
	return 0;
}
"""


FORKS = """
#include <sys/wait.h>
#include <unistd.h>
static volatile long sink;
__attribute__((noinline)) void work(int n) { for (int i = 0; i < n; i++) sink += i; }
int main(void) {
	for (int i = 0; i < 50; i++) {
		pid_t child = fork();
		for (int n = 0; n < 3000; n++)
			work(child ? i % 5 : i % 7);
		if (!child)
			_exit(0);
		waitpid(child, 0, 0);
	}
	return 0;
}
"""


def forks_traced(folder):
    """Children are not traced, and do not change the trace of their parent."""
    program, out = os.path.join(folder, "forks"), os.path.join(folder, "forks.kscope")
    run("cc", "-O1", "-static", "-x", "c", "-", "-o", program, input=FORKS.encode())
    run(f"qemu-{os.uname().machine}", "-plugin", f"{PLUGIN},out={out},mode=trace", program)
    done = kscope("info", out)
    check("user mode, traced: children leave their parent alone", done.returncode == 0 and
          " 0 of them without" in done.stdout, done.stdout + done.stderr)


def user_mode(folder):
    """Programs in QEMU's user mode. The backports' qemu-user is static and loads no plugins."""
    program, out = os.path.join(folder, "program"), os.path.join(folder, "out")
    run("cc", "-O1", "-static", "-pthread", "-x", "c", "-", "-o", program, input=PROGRAM.encode())
    machine = os.uname().machine
    start = int([line for line in run("nm", program).stdout.splitlines() if line.endswith(" hot")][0]
                .split()[0], 16)
    for clock in ("host", "instructions"):
        done = run(f"qemu-{machine}", "-plugin", f"{PLUGIN},out={out},clock={clock}", program)
        stream = Stream(out)
        equal(f"user mode, {clock}: it ends well", (done.returncode, stream.faults()), (0, ""))
        equal(f"user mode, {clock}: threads", stream.cpus(), [0, 1, 2, 3])
        seen = [sample for sample in stream.samples if start <= sample.pc < start + 64]
        busy = [sample for sample in stream.samples if not sample.idle]
        check(f"user mode, {clock}: where", len(seen) > 0.7 * len(busy) > 20, (len(seen), len(busy)))
        equal(f"user mode, {clock}: the level", {sample.level for sample in busy}, {0})


def protobuf_agrees(folder):
    """kit.wire_read and protoc read the same."""
    guest, out = Guest(folder, "aarch64", rounds=3000), os.path.join(folder, "out")
    stream, _ = guest.record("debian", out)
    with open(out, "rb") as f:
        done = run("protoc", "--decode=kscope.Stream", "-I", os.path.join(ROOT, "wire"),
                   os.path.join(ROOT, "wire", "kscope.proto"), stdin=f)
    lines = collections.Counter(line.strip() for line in done.stdout.splitlines())
    equal("protoc reads the same", (done.returncode, lines["sample {"], lines["code {"]),
          (0, len(stream.samples), len(stream.codes)))
    check("protoc knows all fields", not any(line.strip()[:1].isdigit()
                                             for line in done.stdout.splitlines()), done.stderr)


def main():
    with scratch() as folder:
        for which in guests.QEMUS:
            for arch in ARCHES:
                one_arch(folder, arch, which)
            four_cpus(folder, which)
            deterministic(folder, which)
            exact_count(folder, which)
            killed(folder, which)
            controlled(folder, which)
            maestro(folder, which)
            masked(folder, which)
        stalled(folder)
        filters(folder)
        errors(folder)
        user_mode(folder)
        forks_traced(folder)
        protobuf_agrees(folder)
    finish()


if __name__ == "__main__":
    main()
