# SPDX-License-Identifier: GPL-2.0-or-later
"""A small kernel that changes its own code while it runs, traced with Intel PT: the packets, the records of its
changes, and which instructions ran. It is a perf.data folder, as `perf record --kcore` writes.

A change is as Linux makes it: first each CPU is interrupted, then the change is recorded, then each CPU is interrupted
again, and only then runs the new code. What ran is known, because this executes it.
"""
import os
import random
import struct

KERNEL, SIZE = 0xffffffff81000000, 8192
NEW = KERNEL + 0x4000  # code that appears, in no map
GUEST = 0x7000
PID, PMU, ID = 1000, 8, 77
MMAP, COMM, EXIT, KSYMBOL, TEXT_POKE, AUXTRACE_INFO, AUXTRACE = 1, 3, 4, 17, 20, 70, 71
CONFIG = 0x300e603  # pt, cyc, mtc, tsc, branch, mtc_period 3, psb_period 3
SHIFT, MULT = 31, 1022611261  # 2.1 GHz
FIRST, STEP = 10000, 4200  # ticks: perf's clock is not exact to the ns

NOP5, INT3 = bytes.fromhex("0f1f440000"), b"\xcc"
LOOP, TRACER, ON, HANDLER, OUT = 0, 0x30, 0x40, 0x50, 0x60
SUB, MOV, COND, VMRESUME, AFTER_GUEST = 0x0a, 0x0e, 0x11, 0x14, 0x17
TEXT = {
    LOOP: "0f1f440000"   # 00: nop, or jmp 40: a static key
          "0f1f440000"   # 05: nop, or call 30: a tracer
          "4883ec08"     # 0a: sub $8,%rsp, or with half of the next one: jmp 60, a probe
          "4889e5"       # 0e: mov %rsp,%rbp, or int3: a probe
          "74ed"         # 11: je 00
          "90"           # 13: nop
          "0f01c3"       # 14: vmresume
          "90"           # 17: nop
          "ffe0",        # 18: jmp *%rax
    TRACER: "907401" "90" "c3",
    ON: "9090" "ebc1",           # 42: jmp 05
    HANDLER: "9048cf",           # nop; iretq
    OUT: "4883ec08" "4889e5" "eba8",  # 67: jmp 11
}
LENGTHS = {0x90: 1, 0x0f: 5, 0x48: 3, 0xeb: 2, 0x74: 2, 0xe9: 5, 0xe8: 5, 0xff: 2, 0xc3: 1}


def jump(op, at, to):
    return bytes([op]) + struct.pack("<i", to - at - 5)


# Packets

PSB, PSBEND, CBR, MODE, MODE_IF = b"\2\x82" * 8, b"\2\x23", b"\2\3\x15\0", b"\x99\1", b"\x99\5"
TIP, FUP, PGD = 0x0d, 0x1d, b"\1"
HOST_TABLES, GUEST_TABLES = b"\2\x43" + bytes(6), b"\2\x43\1" + bytes(5)
EVENT_AT = b"\2\x13\x81\x20"  # CFE with an address
EVENT = b"\2\x53\0" + bytes(8) + b"\2\x13\1\x20"  # EVD, CFE
ITEMS = (b"\2\x63\4" + b"\x0c" + b"\2\x82" * 4 + b"\x14" + bytes(8),
         b"\2\x63\x84" + b"\4\4\4\4\4" + b"\x0b" + b"\x1c\x6d\0\0\0")
ITEMS_END, ITEMS_END_AT = b"\2\x33", b"\2\xb3"


def ip_packet(op, ip):
    return bytes([3 << 5 | op]) + struct.pack("<Q", ip)[:6]


def tsc(time):
    return b"\x19" + struct.pack("<Q", time)[:7]


class Run:
    """What ran and the packets of it, for some number of rounds. `extras`: names of newer packets."""

    def __init__(self, seed, rounds, extras=(), guests=False):
        self.random = random.Random(seed)
        self.extras, self.guests = extras, guests
        self.memory = bytearray(b"\x90" * SIZE)
        for at, code in TEXT.items():
            self.memory[at:at + len(code) // 2] = bytes.fromhex(code)
        if not guests:
            self.memory[VMRESUME:AFTER_GUEST] = b"\x90" * 3
        self.original = bytes(self.memory)
        self.memory += bytes(NEW - KERNEL - SIZE + 64)
        self.time, self.ip, self.bits = FIRST, LOOP, ""
        self.ran, self.pokes, self.calls = [], [], []
        self.packets = b""
        self.put_psb()
        for _ in range(rounds):
            self.round()
        self.interrupt_point()
        self.put_ip(FUP, self.ip)
        self.packets += PGD

    def flush(self):
        if self.bits:
            value = int("1" + self.bits, 2)
            self.packets += bytes([value << 1]) if len(self.bits) <= 6 else b"\2\xa3" + value.to_bytes(6, "little")
        self.bits = ""

    def put_ip(self, op, ip):
        self.flush()
        self.packets += ip_packet(op, KERNEL + ip)

    def put_psb(self):
        self.flush()
        self.packets += PSB + tsc(self.time) + CBR + MODE + HOST_TABLES * self.guests + \
            ip_packet(FUP, KERNEL + self.ip) + PSBEND

    # Execution

    def rel(self, size, wide):
        at = self.ip + size
        return at + struct.unpack_from("<i" if wide else "<b", self.memory, at - (4 if wide else 1))[0]

    def step(self):
        """One instruction."""
        op, second = self.memory[self.ip:self.ip + 2]
        if op == 0xcc:  # it is not executed: the handler goes on behind what it replaces
            self.interrupt(lambda: None, COND)
            return
        self.ran.append(KERNEL + self.ip)
        size = 4 if self.memory[self.ip:self.ip + 2] == b"\x48\x83" else LENGTHS[op]
        if op == 0x0f and second == 1:
            self.enter_guest()
        elif op in (0xeb, 0xe9):
            self.ip = self.rel(size, op == 0xe9)
        elif op == 0xe8:
            self.ip = self.rel(size, True)
            self.calls.append(self.ran[-1] - KERNEL + size)
        elif op == 0x74:
            taken = self.random.random() < .7
            self.bits += "01"[taken]
            self.ip = self.rel(size, False) if taken else self.ip + size
            if len(self.bits) == self.random.choice((6, 47)) or len(self.bits) == 47:
                self.flush()
        elif op == 0xc3:
            self.ip = self.calls.pop()
            self.put_ip(TIP, self.ip)
        elif op == 0xff:
            self.ip = NEW - KERNEL if self.memory[NEW - KERNEL] and self.ip < SIZE else LOOP
            self.put_ip(TIP, self.ip)
        else:
            self.ip += size

    def interrupt(self, inside, back):
        """The handler runs, and goes on elsewhere."""
        if "event" in self.extras and self.random.random() < .5:
            self.flush()
            self.packets += EVENT
        self.put_ip(FUP, self.ip)
        self.put_ip(TIP, HANDLER)
        inside()
        self.ran += [KERNEL + HANDLER, KERNEL + HANDLER + 1]
        self.put_ip(TIP, back)
        self.ip = back

    def set_time(self):
        self.time += STEP
        self.packets += tsc(self.time)

    def enter_guest(self):
        self.flush()
        self.packets += GUEST_TABLES + ip_packet(TIP, GUEST) + b"\x06\x1e" + \
            ip_packet(TIP, KERNEL + TRACER) + b"\x0e" + tsc(77) + ip_packet(FUP, GUEST + 8)
        self.packets += HOST_TABLES + ip_packet(TIP, KERNEL + AFTER_GUEST)
        self.ip = AFTER_GUEST

    def interrupt_point(self):
        """Runs until it is somewhere where nothing is changed under it."""
        self.step()
        while SUB < self.ip < COND or self.memory[self.ip] == 0xcc or self.ip == MOV:
            self.step()

    # Rounds

    def poke(self, at, new):
        """The kernel changes its code."""
        self.interrupt_point()
        self.interrupt(self.set_time, self.ip)
        old = bytes(self.memory[at:at + len(new)]) if at < SIZE else b""
        self.pokes.append((self.time + STEP // 2, KERNEL + at, old, new))
        self.interrupt(self.set_time, self.ip)
        self.memory[at:at + len(new)] = new

    def toggle(self, at, on, length):
        old = self.memory[at:at + length]
        self.poke(at, on if old != on else self.original[at:at + length])

    def round(self):
        for _ in range(self.random.randrange(1, 60)):
            self.step()
        choice = self.random.randrange(12)
        if choice < 3:
            self.toggle(0, jump(0xe9, 0, ON), 5)
        elif choice < 5:
            self.toggle(5, jump(0xe8, 5, TRACER), 5)
        elif choice == 5 and self.memory[MOV] != 0xcc:
            self.toggle(SUB, jump(0xe9, SUB, OUT), 5)
        elif choice == 6 and self.memory[SUB] != 0xe9:
            self.toggle(MOV, INT3, 1)
        elif choice == 7 and not self.memory[NEW - KERNEL]:
            self.poke(NEW - KERNEL, bytes.fromhex("90740190ffe0"))
        elif choice < 10:
            self.put_psb()
        else:
            self.put_extra()

    def put_extra(self):
        """Packets with the address at which something happened."""
        self.interrupt_point()
        self.flush()
        here = ip_packet(FUP, KERNEL + self.ip)
        if "at" in self.extras:
            self.packets += EVENT_AT + here
        if "items" in self.extras:
            self.packets += self.random.choice(ITEMS) + ITEMS_END_AT + here + self.random.choice(ITEMS) + ITEMS_END
        # No branch switches interrupts on or off, and perf takes the instruction there as executed.
        if "flag" in self.extras and self.memory[self.ip] in (0x90, 0x48):
            self.packets += self.random.choice((MODE, MODE_IF)) + here


# Files

    def traces(self):
        """[(packets, tid, cpu)]"""
        return [(self.packets, PID, -1)]


class Cpus:
    """Nobody knows which threads run: two cpus call f() in a loop, and the trace of the first one has a pause inside
    of it, while the second one goes on, in two pieces that kscope decodes apart."""
    original = bytes.fromhex("e802000000 ebf9 7401 90 c3").ljust(SIZE, b"\x90")
    pokes = ()
    time = 40000
    ROUNDS = 34000  # 4 instructions each: call, jz, ret, jmp

    def __init__(self, cpus):
        self.cpus = cpus

    @staticmethod
    def _sync(at, time):
        return PSB + b"\x19" + time.to_bytes(7, "little") + CBR + MODE + ip_packet(FUP, KERNEL + at) + PSBEND

    def _packets(self, cpu):
        start, stop = self._sync(0, 10000 + 2000 * cpu), ip_packet(FUP, KERNEL) + PGD
        taken = b"\x3e"  # TNT: jz and ret, twice
        if cpu:
            return start + taken * (self.ROUNDS // 2) + self._sync(0, 25000) + taken + stop
        pause = b"\x06" + ip_packet(FUP, KERNEL + 10) + PGD + b"\x19" + (24000).to_bytes(7, "little")
        return start + taken + pause + ip_packet(0x11, KERNEL + 10) + ip_packet(TIP, KERNEL + 5) + taken + stop

    def traces(self):
        return [(self._packets(cpu), -1, cpu) for cpu in self.cpus]


def record(kind, body, misc=0):
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def aligned(data):
    return data + bytes(-len(data) % 8)


def ns(ticks):
    return ticks * MULT >> SHIFT


def trailer(time):
    return struct.pack("<IIQQ", PID, PID, time, ID)


def text(s):
    return s.encode() + bytes(8 - len(s) % 8)


def poke_record(time, at, old, new):
    """New code has a name, too."""
    symbol = record(KSYMBOL, struct.pack("<QIHH", at, 64, 2, 0) + text("new_code") + trailer(ns(time) - 1))
    return symbol * (at == NEW) + record(
        TEXT_POKE, aligned(struct.pack("<QHH", at, len(old), len(new)) + old + new) + trailer(ns(time)), 1)


def trace_record(packets, tid, cpu):
    packets = aligned(packets)
    return record(AUXTRACE, struct.pack("<QQQIiiI", len(packets), 0, FIRST, max(cpu, 0), tid, cpu, 0)) + packets


def perf_data(run):
    pokes = b"".join(poke_record(*poke) for poke in run.pokes)
    by_cpu = run.traces()[0][2] >= 0
    info = [PMU, SHIFT, MULT, 0, 1, 0x400, 0x800, 0, 0, by_cpu, 0x200, 0x3c000, 126, 2, 2, 21]
    data = record(MMAP, struct.pack("<iIQQQ", -1, 0, KERNEL, SIZE, KERNEL) + text("[kernel.kallsyms]_text") +
                  trailer(0), 1) + \
        record(COMM, struct.pack("<II", PID, PID) + text("traced") + trailer(1), 1 << 13) + \
        record(AUXTRACE_INFO, struct.pack("<II16Q", 1, 0, *info)) + pokes + \
        b"".join(trace_record(*trace) for trace in run.traces()) + \
        record(EXIT, struct.pack("<IIIIQ", PID, 1, PID, 1, ns(run.time) + 1000) + trailer(ns(run.time) + 1000))
    # IP, TID, TIME and IDENTIFIER; mmap, comm, task, sample_id_all, ksymbol, text_poke
    attr = struct.pack("<IIQQQQQ", PMU, 112, CONFIG, 1, 7 | 1 << 16, 0,
                       1 << 8 | 1 << 9 | 1 << 13 | 1 << 18 | 1 << 29 | 1 << 33).ljust(112, b"\0")
    return b"PERFILE2" + struct.pack("<8Q", 104, 128, 112, 128, 240, len(data), 0, 0) + bytes(32) + \
        struct.pack("<Q", ID) + attr + struct.pack("<QQ", 104, 8) + data


NAMES = {LOOP: "loop", TRACER: "tracer", ON: "on", HANDLER: "handler", OUT: "out"}


def kcore(code):
    head = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 4, 62, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    head += struct.pack("<IIQQQQQQ", 1, 7, 4096, KERNEL, 0, len(code), len(code), 4096)
    return head.ljust(4096, b"\0") + code


def vmlinux(code):
    """With its functions in a symbol table."""
    names = {"_text": 0, **{name: at for at, name in NAMES.items()}}
    strings = b"\0" + b"".join(name.encode() + b"\0" for name in names)
    symbols = bytes(24) + b"".join(
        struct.pack("<IBBHQQ", strings.index(name.encode() + b"\0"), 0x12, 0, 1, KERNEL + at, 16)
        for name, at in names.items())
    sections = b"\0.text\0.symtab\0.strtab\0"
    at = 4096 + len(code)
    ends = [at + len(symbols), at + len(symbols) + len(strings)]
    table = bytes(64)
    for name, kind, flags, address, offset, size, link, info, entry in (
            (1, 1, 6, KERNEL, 4096, len(code), 0, 0, 0),
            (7, 2, 0, 0, at, len(symbols), 3, 1, 24),
            (15, 3, 0, 0, ends[0], len(strings), 0, 0, 0),
            (15, 3, 0, 0, ends[1], len(sections), 0, 0, 0)):
        table += struct.pack("<IIQQQQIIQQ", name, kind, flags, address, offset, size, link, info, 8, entry)
    head = b"\x7fELF\2\1\1" + bytes(9) + struct.pack(
        "<HHIQQQIHHHHHH", 2, 62, 1, KERNEL, 64, ends[1] + len(sections), 0, 64, 56, 1, 64, 5, 4)
    head += struct.pack("<IIQQQQQQ", 1, 5, 4096, KERNEL, KERNEL, len(code), len(code), 4096)
    return head.ljust(4096, b"\0") + code + symbols + strings + sections + table


def write(folder, run):
    """Returns (the recording, the kernel)."""
    recording = os.path.join(folder, "recording")
    os.makedirs(os.path.join(recording, "kcore_dir"))
    kallsyms = f"{KERNEL:x} T _text\n{KERNEL:x} T _stext\n" + "".join(
        f"{KERNEL + at:x} T {name}\n" for at, name in NAMES.items()) + f"{KERNEL + SIZE:x} T _etext\n"
    for name, data in (("data", perf_data(run)), ("kcore_dir/kcore", kcore(run.original)),
                       ("kcore_dir/kallsyms", kallsyms.encode()), ("kcore_dir/modules", b""),
                       ("../vmlinux", vmlinux(run.original))):
        with open(os.path.join(recording, name), "wb") as f:
            f.write(data)
    return recording, os.path.join(folder, "vmlinux")
