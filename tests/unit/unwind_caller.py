#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Callers that frame pointers do not show, at every instruction that small programs execute.

QEMU executes a program step by step, so its calls are known. At each step, this test takes a sample as a sampler in
a kernel does: it walks frame pointers, and adds the link register or, on x86, the word on top of the stack. kscope has
to add the caller wherever that word is the caller and the chain lacks it, and must not change any other chain.
"""
import os
import re
import socket
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import check, equal, finish, kscope, no_problems, run, scratch, wait_for
from kit.wire_write import Target, sample

PROGRAM = r"""
#define NOINLINE __attribute__((noinline))
volatile int sink;
NOINLINE int leaf(int x) { return x * 3 + 1; }
NOINLINE int loops(const int *a, int n)
{
	int sum = 0;

	for (int i = 0; i < n; i++)
		sum += a[i] > 2 ? a[i] : -a[i];
	return sum;
}
NOINLINE int middle(int x) { return leaf(x) + leaf(x + 1); }
NOINLINE int tail(int x) { sink++; return leaf(x + 2); }
NOINLINE int early(int x)
{
	if (x < 3)
		return x;
	sink += leaf(x);
	return middle(x);
}
NOINLINE int recurse(int n) { return n ? recurse(n - 1) + leaf(n) : 7; }
NOINLINE int odd(int n);
NOINLINE int even(int n) { sink = n; return n ? odd(n - 1) + 1 : 0; }
NOINLINE int odd(int n) { sink = n; return n ? even(n - 1) + 1 : 1; }
NOINLINE int large(int n)
{
	volatile int room[40];
	int a = leaf(n), b = leaf(a), c = leaf(b), d = leaf(c), e = leaf(d), f = leaf(e);

	for (int i = 0; i < 3; i++)
		room[i] = leaf(i) + a + b + c + d + e + f;
	return room[n & 3] + a * b * c * d * e * f;
}
NOINLINE int by_pointer(int (*call)(int), int x) { return call(x) + 1; }
NOINLINE int select_one(int x)
{
	switch (x) {
	case 0: return leaf(x);
	case 1: return 5;
	case 2: return sink;
	case 3: return middle(x);
	case 4: return x * sink;
	}
	return 9;
}
NOINLINE int many(int a, int b, int c, int d, int e, int f, int g, int h, int i, int j)
{
	return leaf(a + b + c + d + e) + f + g + h + i + j;
}
int main(void)
{
	static const int numbers[] = { 1, 5, 2, 9 };

	sink = loops(numbers, 4) + middle(4) + tail(3) + early(1) + early(5) + recurse(4) + even(3);
	sink += large(2) + by_pointer(leaf, 3) + by_pointer(recurse, 2) + many(1, 2, 3, 4, 5, 6, 7, 8, 9, 10);
	for (int i = 0; i < 6; i++)
		sink += select_one(i);
	return 0;
}
"""
# The outermost function has no frame and no caller. At `done`, the program is over.
START = {
    "x86_64": "xor %ebp, %ebp\n and $-16, %rsp\n call main\n done: jmp done",
    "aarch64": "mov x29, #0\n mov x30, #0\n bl main\n done: b done",
    "arm": "mov r11, #0\n mov r7, #0\n mov lr, #0\n bl main\n done: b done",
    "thumb": "mov r11, #0\n mov r7, #0\n mov lr, r7\n bl main\n done: b done",
    "riscv64": "li s0, 0\n li ra, 0\n call main\n done: j done",
}


class Machine:
    """Registers in the order of gdb's packet g, and where a frame has its two words."""

    def __init__(self, arch, qemu, flags, word, pc, sp, fp, lr=None, frame=(0, 1)):
        self.arch, self.qemu, self.flags, self.word = arch, qemu, flags, word
        self.pc, self.sp, self.fp, self.lr, self.frame = pc, sp, fp, lr, frame


MACHINES = {
    "x86_64": Machine("x86_64", "qemu-x86_64", ["--target=x86_64-linux-gnu", "-mno-sse"], 8, 16, 7, 6),
    "aarch64": Machine("aarch64", "qemu-aarch64", ["--target=aarch64-linux-gnu"], 8, 32, 31, 29, 30),
    "arm": Machine("arm", "qemu-arm", ["--target=armv7-linux-gnueabi", "-marm", "-mfloat-abi=soft"], 4, 15, 13, 11, 14),
    "thumb": Machine("arm", "qemu-arm", ["--target=armv7-linux-gnueabi", "-mthumb", "-mfloat-abi=soft"], 4, 15, 13, 7, 14),
    "riscv64": Machine("riscv64", "qemu-riscv64", ["--target=riscv64-linux-gnu", "-march=rv64gc", "-mno-relax"],
                       8, 32, 2, 8, 1, (-2, -1)),
}
NO_FRAMES = "no frames"
STYLES = {
    "frames in leaves, too": ["-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer"],
    "no frames in leaves": ["-fno-omit-frame-pointer", "-momit-leaf-frame-pointer"],
    NO_FRAMES: ["-fomit-frame-pointer"],
}
PUSHED = 0xe58948  # mov %rsp,%rbp, after a push: the word on top of the stack is the caller's frame pointer
MAX_STEPS = 6000


def build(folder, name, machine, flags):
    """Returns the path of the program, and the address of `done`."""
    path = os.path.join(folder, "program")
    with open(path + ".c", "w", encoding="ascii") as f:
        f.write(PROGRAM)
    with open(path + ".s", "w", encoding="ascii") as f:
        kind = ".thumb\n.thumb_func\n" if name == "thumb" else ""
        f.write(f".syntax unified\n{kind}" if machine.arch == "arm" else "")
        f.write(".text\n.globl _start\n.type _start, %function\n" + kind[7:] + f"_start:\n {START[name]}\n"
                ".size _start, . - _start\n")
    done = run("clang", *machine.flags, *flags, "-ffreestanding", "-fno-pic", "-fno-stack-protector",
               "-fno-asynchronous-unwind-tables", "-fuse-ld=lld", "-nostdlib", "-static", path + ".c",
               path + ".s", "-o", path)
    if done.returncode:
        raise RuntimeError(done.stderr)
    names = run("llvm-nm", path).stdout
    return path, int(re.search(r"^(\w+) \S done$", names, re.M)[1], 16)


class Debugger:
    """Steps through a program in QEMU."""

    def __init__(self, machine, path):
        self.machine, self.address = machine, path + ".gdb"
        if os.path.exists(self.address):
            os.unlink(self.address)
        self.process = subprocess.Popen([machine.qemu, "-g", self.address, path], stdin=subprocess.DEVNULL)
        self.socket = socket.socket(socket.AF_UNIX)
        if not wait_for(lambda: self.socket.connect_ex(self.address) == 0 or self.process.poll() is not None):
            raise RuntimeError("QEMU does not listen")
        self.data = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.socket.close()

    def ask(self, text):
        self.socket.sendall(b"$%b#%02x" % (text.encode(), sum(text.encode()) & 255))
        while True:
            match = re.search(rb"\$([^#]*)#..", self.data, re.S)
            if match:
                break
            more = self.socket.recv(65536)
            if not more:
                raise RuntimeError("QEMU has ended")
            self.data += more
        self.data = self.data[match.end():]
        self.socket.sendall(b"+")
        # QEMU packs runs of characters: c*n is c and n - 29 more of them.
        return re.sub(r"(.)\*(.)", lambda run: run[1] * (ord(run[2]) - 28), match[1].decode("latin1"))

    def registers(self):
        data, word = bytes.fromhex(self.ask("g").replace("x", "0")), self.machine.word
        return [int.from_bytes(data[at:at + word], "little") for at in range(0, word * 33, word)]

    def words(self, address, count):
        """Words of memory; None where there is none."""
        word = self.machine.word
        reply = self.ask(f"m{address:x},{count * word:x}")
        if reply.startswith("E"):
            return [None] * count
        data = bytes.fromhex(reply)
        return [int.from_bytes(data[at:at + word], "little") for at in range(0, len(data), word)]


def walk(debugger, machine, registers):
    """The return addresses that frame pointers lead to."""
    frames, fp = [], registers[machine.fp]
    while fp and len(frames) < 40:
        first = min(machine.frame)
        words = debugger.words(fp + first * machine.word, 2)
        following, address = words[machine.frame[0] - first], words[machine.frame[1] - first]
        if not address:
            break
        frames.append(address)
        if following and following <= fp:
            break
        fp = following
    return frames


def plain(machine, address):
    return address & ~1 if machine.arch == "arm" else address


class Steps:
    """All steps of a program: [(pc, code, walked, link, truth)].

    code: the word at the pc. truth: the return addresses of all calls that have not returned, the last one first."""

    def __init__(self, machine, path, done):
        self.all = []
        calls, before = [], None  # calls: (return address, stack pointer after the return)
        with Debugger(machine, path) as debugger:
            while len(self.all) < MAX_STEPS:
                registers = debugger.registers()
                pc, sp = registers[machine.pc], registers[machine.sp]
                top = debugger.words(sp, 1)[0]
                link = registers[machine.lr] if machine.lr is not None else top
                if before:
                    last_pc, last_sp = before
                    returned = calls and pc == calls[-1][0] and sp == calls[-1][1]
                    if machine.lr is None:
                        called = sp == last_sp - 8 and pc != top and top in range(last_pc + 2, last_pc + 8)
                    else:
                        called = plain(machine, link) in (last_pc + 2, last_pc + 4) and pc != plain(machine, link)
                    if returned:
                        calls.pop()
                    elif called:
                        calls.append((plain(machine, link), sp if machine.lr is not None else sp + 8))
                if pc == done:
                    return
                self.all.append((pc, debugger.words(pc, 1)[0], walk(debugger, machine, registers), link or 0,
                                 [address for address, _ in reversed(calls)]))
                before = pc, sp
                debugger.ask("s")
        raise RuntimeError("the program does not end")


def chains(folder, title, machine, path, steps):
    stream = Target(arch=machine.arch)
    for n, (pc, _, walked, link, _) in enumerate(steps):
        stream.take(sample(n + 1, pc, level=0, space=0, task=1, weight=1, frames=[pc] + walked, link=link))
    recording = os.path.join(folder, "a.kscope")
    with open(recording, "wb") as f:
        f.write(stream.end())
    done = kscope("convert", recording, "-t", "dump", "-o", "-", "--elf", f"1={path}")
    equal(f"{title}: no messages", (done.returncode, done.stderr), (0, ""))
    return [[int(word, 16) for word in line.split(" : user ")[1].split()]
            for line in done.stdout.splitlines() if line.startswith("sample")]


def compare(name, style, title, path, steps, found):
    machine = MACHINES[name]
    symbols = sorted((int(address, 16), symbol) for address, symbol in
                     re.findall(r"^(\w+) [tT] (\w+)$", run("llvm-nm", path).stdout, re.M))

    def at(address):
        start, symbol = max((one for one in symbols if one[0] & ~1 <= address), default=(0, "?"))
        return f"{symbol}+{address - (start & ~1):#x}"

    problems, hopeless, added = [], [], 0
    for (pc, code, walked, link, truth), chain in zip(steps, found):
        walked = [plain(machine, address) for address in walked]
        got = [plain(machine, address) for address in chain[1:]]
        link = plain(machine, link)
        want = truth if truth and walked == truth[1:] and link == truth[0] else walked
        added += got != walked
        if style == NO_FRAMES:  # a chain may lack anything, but what is added must be right
            want = walked if got == walked else truth[:1] + walked
        elif want != truth and not (name == "x86_64" and code & 0xffffff == PUSHED):
            hopeless.append(at(pc))
        if got != want:
            problems.append(f"{at(pc)}: got {[at(a) for a in got]}, want {[at(a) for a in want]}, walked "
                            f"{[at(a) for a in walked]}, link {at(link)}")
    no_problems(f"{title}: the right callers", problems)
    no_problems(f"{title}: no caller is unknown", hopeless)
    check(f"{title}: some callers were missing", added > 10, added)


def test(name, style, level, folder):
    machine = MACHINES[name]
    path, done = build(folder, name, machine, STYLES[style] + [level])
    steps = Steps(machine, path, done).all
    title = f"{name} {level}, {style}"
    found = chains(folder, title, machine, path, steps)
    equal(f"{title}: a chain for each step", len(found), len(steps))
    compare(name, style, title, path, steps, found)


with scratch() as SCRATCH:
    for NAME in sys.argv[1:] or MACHINES:
        for STYLE in STYLES:
            for LEVEL in ("-O2",) if STYLE == NO_FRAMES else ("-O0", "-O2"):
                test(NAME, STYLE, LEVEL, SCRATCH)
finish()
