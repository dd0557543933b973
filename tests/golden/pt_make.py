# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes the inputs of pt-*."""
import os
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit.inputs import put

PID, AT = 1000, 0x400000
COMM, EXIT, SAMPLE, MMAP2, AUXTRACE_INFO, AUXTRACE = 3, 4, 9, 10, 70, 71
IP, TID, TIME, PERIOD, IDENTIFIER, AUX = 1, 2, 4, 1 << 8, 1 << 16, 1 << 20
PMU = 8
CONFIG = 0x300e603  # pt, cyc, mtc, tsc, branch, mtc_period 3, psb_period 3
SHIFT, MULT = 31, 1022611261  # 2.1 GHz

# Packets

PSB, PSBEND, OVF, PAD = b"\x02\x82" * 8, b"\x02\x23", b"\x02\xf3", b"\x00"
MODE_64, MODE_32 = b"\x99\x01", b"\x99\x02"
TSX_BEGIN, TSX_END, TSX_ABORT = b"\x99\x21", b"\x99\x20", b"\x99\x22"
CBR = b"\x02\x03\x15\x00"
PIP = b"\x02\x43" + (0x12340 << 1).to_bytes(6, "little")
VMCS = b"\x02\xc8\x01\x02\x03\x04\x05"
STOP = b"\x02\x83"
TMA = b"\x02\x73\x10\x00\x00\x10\x00"
LAST_2, LAST_4, SIGNED_6, LAST_6, ALL_8 = 1, 2, 3, 4, 6
SIZES = {LAST_2: 2, LAST_4: 4, SIGNED_6: 6, LAST_6: 6, ALL_8: 8}


def ip_packet(code, ip, form):
    if ip is None:
        return bytes([code])
    return bytes([form << 5 | code]) + (ip & (1 << 8 * SIZES[form]) - 1).to_bytes(SIZES[form], "little")


def tip(ip, form=SIGNED_6):
    return ip_packet(0x0d, ip, form)


def pge(ip, form=SIGNED_6):
    return ip_packet(0x11, ip, form)


def pgd(ip=None, form=SIGNED_6):
    return ip_packet(0x01, ip, form)


def fup(ip, form=SIGNED_6):
    return ip_packet(0x1d, ip, form)


def tnt(bits):
    """The first bit is the oldest: t taken, n not."""
    value = 1
    for bit in bits:
        value = value << 1 | (bit == "t")
    if len(bits) <= 6:
        return bytes([value << 1])
    return b"\x02\xa3" + value.to_bytes(6, "little")


def tsc(time):
    return b"\x19" + time.to_bytes(7, "little")


def psb_plus(ip=None, mode=MODE_64, time=1000, between=b""):
    return PSB + between + tsc(time) + between + CBR + between + mode + between + \
        (fup(ip) if ip is not None else b"") + between + PSBEND


# Files

def elf(code, address=AT, pages=1):
    """A file whose code is in as many segments, each of a page except the last."""
    size = 4096
    parts = [code[i * size:(i + 1) * size] for i in range(pages)] if pages > 1 else [code]
    offsets = [4096 * (2 * i + 1) for i in range(pages)]
    head = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack(
        "<HHIQQQIHHHHHH", 2, 62, 1, address, 64, 0, 0, 64, 56, pages, 0, 0, 0)
    for i, (part, offset) in enumerate(zip(parts, offsets)):
        head += struct.pack("<IIQQQQQQ", 1, 5, offset, address + size * i, address + size * i,
                            len(part), len(part), 4096)
    for part, offset in zip(parts, offsets):
        head = head.ljust(offset, b"\0") + part
    return head


def record(kind, body, misc=0):
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def text(s):
    return s.encode() + bytes(8 - len(s) % 8)


def trailer(time):
    return struct.pack("<IIQ", PID, PID, time)


def comm(name="traced"):
    return record(COMM, struct.pack("<II", PID, PID) + text(name) + trailer(0), 1 << 13)


def mmap2(path, size, offset=4096, address=AT, time=0):
    return record(MMAP2, struct.pack("<IIQQQ", PID, PID, address, size, offset) + bytes(24) +
                  struct.pack("<II", 5, 2) + text(path) + trailer(time), 2)


def info(**words):
    """perf's description of the trace: 16 words."""
    values = dict(pmu=PMU, shift=SHIFT, mult=MULT, zero=0, has_time=1, tsc_bit=0x400, noretcomp=0x800,
                  switches=0, snapshot=0, per_cpu=0, mtc_bit=0x200, mtc_bits=0x3c000, num=126, den=2,
                  cyc_bit=2, ratio=21)
    values.update(words)
    return record(AUXTRACE_INFO, struct.pack("<II", 1, 0) + struct.pack("<16Q", *values.values()))


def trace(data, offset=0, size=None, tid=PID, cpu=-1):
    data += PAD * (-len(data) % 8)
    return record(AUXTRACE, struct.pack("<QQQIiiI", len(data) if size is None else size, offset, 0,
                                        0, tid, cpu, 0)) + data


def perf_data(*records):
    data = b"".join(records)
    attr = struct.pack("<IIQQQQQ", PMU, 112, CONFIG, 1, TID | TIME, 0, 1 << 18 | 1 << 5).ljust(112, b"\0")
    head = b"PERFILE2" + struct.pack("<QQQQQQQQ", 104, 128, 104, 128, 232, len(data), 0, 0) + bytes(32)
    return head + attr + bytes(16) + data


def sample(data, time, size=None):
    """A sample with a trace: id, ip, task, time, period."""
    data += PAD * (-len(data) % 8)
    return record(SAMPLE, struct.pack("<QQIIQQQ", 2, AT, PID, PID, time, 1,
                                      len(data) if size is None else size) + data, 2)


def with_id(*records):
    """Their trailer also has the id of the first event."""
    return b"".join(r[:6] + struct.pack("<H", len(r) + 8) + r[8:] + struct.pack("<Q", 1) for r in records)


def sampled(*records):
    """A file with two events: the trace, and samples of branch-misses that have some of it."""
    data = b"".join(records)
    attrs = b"".join(
        struct.pack("<IIQQQQQ", kind, 120, config, 1, fields, 0, 1 << 18 | 1 << 5).ljust(112, b"\0") +
        struct.pack("<IIQQ", size, 0, ids, 8)
        for kind, config, fields, size, ids in (
            (PMU, CONFIG, TID | TIME | IDENTIFIER, 0, 376),
            (0, 5, IP | TID | TIME | PERIOD | IDENTIFIER | AUX, 4096, 384)))
    head = b"PERFILE2" + struct.pack("<QQQQQQQQ", 104, 136, 104, 272, 392, len(data), 0, 0) + bytes(32)
    return head + attrs + struct.pack("<QQ", 1, 2) + data


# Code; addresses are offsets from AT.

NOP, HLT, RET, CMP = b"\x90", b"\xf4", b"\xc3", b"\x85\xc0"
JMP_RAX, CALL_RAX, SYSCALL = b"\xff\xe0", b"\xff\xd0", b"\x0f\x05"


def je(distance):
    return b"\x74" + distance.to_bytes(1, "little", signed=True)


def jmp(distance):
    return b"\xe9" + distance.to_bytes(4, "little", signed=True)


def call(distance):
    return b"\xe8" + distance.to_bytes(4, "little", signed=True)


def good(packets, code, **more):
    return perf_data(comm(), mmap2("code.elf", len(code), **more), info(), trace(packets))


# 0 nop; 1 je 8; 3 call 0x20; 8 jmp 0x1000; d nop; e jmp *rax
FILTERED = (NOP + je(5) + call(0x18) + jmp(0xff3) + NOP + JMP_RAX).ljust(0x20, NOP) + RET


def filters():
    """Address filters: TIP.PGD has the address that is not traced."""
    begin = psb_plus() + pge(AT)
    for name, packets in (
            ("cond", begin + pgd(AT + 8) + pge(AT + 0xd) + pgd(AT + 0x3000)),
            ("cond-on", begin + tnt("n") + pgd(AT + 0x20) + pge(AT + 8, LAST_4) + pgd(AT + 0x1000)),
            ("jump", begin + tnt("t") + pgd(AT + 0x1000, LAST_2) + pge(AT + 0x20) + pgd(AT + 8)),
            ("no-address", begin + tnt("n") + pgd() + pge(AT + 0xd, ALL_8) + pgd())):
        yield f"filter-{name}", packets, FILTERED


# 0 cmp; 2 je 0; 4 call 0x10; 9 nop; a call *rax; c syscall; e hlt; 0x10 nop; 0x11 ret
USUAL = (CMP + je(-4) + call(7) + NOP + CALL_RAX + SYSCALL + HLT).ljust(0x10, HLT) + NOP + RET


def usual_cases():
    loop, out = tnt("ttn"), tip(AT + 0x10, LAST_2) + tnt("t") + pgd()
    rest = loop + tnt("t") + out  # also the return of the first call
    begin = psb_plus() + pge(AT)
    yield "all", begin + rest, USUAL
    yield "long-tnt", begin + tnt("t" * 20 + "nt") + out, USUAL
    yield "ip-forms", begin + loop + tnt("t") + tip(AT + 0x10, LAST_4) + tip(AT + 0xc, LAST_6) + pgd() + \
        pge(AT + 9, ALL_8) + tip(AT + 0x10, LAST_2) + tip(AT + 0xc, LAST_2) + pgd(), USUAL
    yield "pads-in-psb", psb_plus(between=3 * PAD) + PAD + pge(AT) + PAD + rest, USUAL
    yield "pip-vmcs", psb_plus(between=PIP + VMCS) + pge(AT) + loop + PIP + tnt("t") + VMCS + out, USUAL
    yield "bdm70", psb_plus(AT) + pge(AT) + rest, USUAL
    yield "second-psb", begin + loop + psb_plus(AT + 4) + tnt("") + tip(AT + 9) + out, USUAL
    yield "no-code-ran", psb_plus() + pge(AT) + fup(AT) + pgd() + pge(AT) + rest, USUAL
    yield "interrupt", begin + loop + fup(AT + 4) + pgd() + pge(AT + 4) + tnt("t") + out, USUAL
    yield "ovf-fup", begin + loop + OVF + fup(AT + 9) + out, USUAL
    yield "ovf-pge", begin + loop + OVF + tsc(2000) + pge(AT + 9) + out, USUAL
    yield "ovf-psb", begin + loop + OVF + psb_plus(AT + 9, time=2000) + out, USUAL
    yield "ovf-in-psb", begin + loop + PSB + tsc(2000) + OVF + fup(AT + 9) + out, USUAL
    yield "tsx", begin + TSX_BEGIN + fup(AT) + loop + tnt("t") + TSX_ABORT + fup(AT + 9) + \
        tip(AT + 9) + TSX_BEGIN + fup(AT + 9) + TSX_END + fup(AT + 0xa) + out, USUAL
    yield "tsx-off", psb_plus() + TSX_BEGIN + pge(AT) + fup(AT + 2) + pgd() + TSX_ABORT + \
        pge(AT + 9) + fup(AT + 0xa) + pgd(), USUAL
    yield "stop", begin + rest + STOP + TMA + pge(AT + 9) + out, USUAL
    # PTWRITE, EXSTOP, MWAIT, PWRE, PWRX; those with an address are followed by FUP.
    yield "events", begin + b"\x02\x12\x01\x02\x03\x04" + b"\x02\x92\x05\x06\x07\x08" + fup(AT + 2) + \
        loop + b"\x02\x62" + b"\x02\xe2" + fup(AT + 4) + tnt("t") + \
        b"\x02\x22\x00\x10" + b"\x02\xa2\x00\x01\x02\x03\x04" + out, USUAL
    # The bits behind the return's come before its target.
    yield "deferred-tip", psb_plus() + pge(AT + 0x11) + tnt("tnt") + tip(AT) + out, USUAL
    yield "eos-in-tnt", begin + tnt("tt"), USUAL
    yield "eos-in-packet", begin + loop + tnt("t") + b"\x6d\x10\x00", USUAL
    yield "begins-inside", b"\x40\x00\x19\x01" + begin + rest, USUAL


# 0 cmp; 2 ptwrite %rax; 7 je 0; 9 ptwrite %rax; e mwait; 11 nop; 12 syscall
WRITES = CMP + b"\xf3\x48\x0f\xae\xe0" + je(-9) + b"\xf3\x48\x0f\xae\xe0" + b"\x0f\x01\xc9" + NOP + SYSCALL


def notes():
    """In the middle of straight code, with addresses and without, between two frequencies, and while tracing is off."""
    write = b"\x02\xb2" + struct.pack("<Q", 0xfedcba9876543210)
    return psb_plus() + pge(AT) + write + fup(AT + 2) + tnt("t") + b"\x02\x12" + struct.pack("<I", 42) + \
        b"\x02\x03\x0a\x00" + tnt("n") + b"\x02\xc2" + struct.pack("<Q", 0x100000021) + b"\x02\x22\x80\x21" + \
        b"\x02\xe2" + fup(AT + 0xe) + b"\x02\xa2\x32\x01\x00\x00\x00" + b"\x02\x03\x14\x00" + pgd() + \
        b"\x02\x22\x00\x60" + b"\x02\x62" + tsc(5000) + pge(AT + 0x11) + pgd()


# 0 inc %eax; 1 je 4; 3 dec %eax; 4 call 0x10; 9 jmp *eax; 0x10 push %ebp; 0x11 ret
NARROW = (b"\x40" + je(1) + b"\x48" + call(7) + JMP_RAX).ljust(0x10, HLT) + b"\x55" + RET


def borders(maps):
    """movabs in the last bytes of a page, then a loop around the border."""
    code = bytes(4096 - 13).replace(b"\0", NOP) + b"\x48\xb8" + bytes(range(8)) + \
        CMP + je(-2) + b"\x74\xf0" + SYSCALL
    start = AT + 4096 - 13
    packets = psb_plus() + pge(start) + tnt("nttnn") + pgd()
    if maps == 1:
        return elf(code, pages=2), packets, [mmap2("code.elf", 4096, 4096),
                                             mmap2("code.elf", len(code) - 4096, 3 * 4096, AT + 4096)]
    return elf(code), packets, [mmap2("code.elf", 4096, 4096),
                                mmap2("code.elf", len(code) - 4096, 8192, AT + 4096)]


KERNEL = 0xffffffff81000000


def kernel_map():
    """Of a module whose binary is nowhere."""
    return record(1, struct.pack("<IIQQQ", 2**32 - 1, 0, KERNEL, 0x10000, 0) + text("[away]") + trailer(0), 1)


def foreign_cases():
    """(name, records): code that is mapped, but whose binary is missing. The kernel returns, and the calls of the
    program go on; other code may have changed them."""
    begin = comm() + mmap2("code.elf", len(USUAL)) + kernel_map() + \
        mmap2("nowhere.elf", 0x1000, address=AT + 0x10000) + info()
    # Code calls 0x10, where an interrupt comes; then it makes a system call.
    to_leaf = psb_plus(AT + 0xa) + tip(AT + 0x10)
    back = tnt("nt") + tip(AT + 0x11) + tsc(3000) + tip(AT + 0xc) + tsc(4000) + tip(KERNEL + 0x100) + tsc(5000) + \
        tnt("tntttn") + tip(AT + 0xe) + fup(AT + 0xe) + pgd()
    yield "kernel", begin + trace(to_leaf + tsc(2000) + fup(AT + 0x11) + tip(KERNEL) + back)
    # Branches inside the kernel.
    yield "kernel-parts", begin + trace(
        to_leaf + tsc(2000) + fup(AT + 0x11) + tip(KERNEL) + tip(KERNEL + 0x800) + PIP + back)
    yield "program", begin + trace(psb_plus(AT + 0xa) + tip(AT + 0x10000) + tnt("t") + tip(AT + 0x10040) + back)


def bad_cases():
    """(name, records): damage outside of the packets."""
    packets = psb_plus() + pge(AT) + tnt("ttnt") + tip(AT + 0x10) + tnt("t") + pgd()
    usual = comm() + mmap2("code.elf", len(USUAL))
    whole = trace(packets)
    yield "info-short", usual + record(AUXTRACE_INFO, struct.pack("<II3Q", 1, 0, PMU, SHIFT, MULT)) + whole
    yield "info-empty", usual + record(AUXTRACE_INFO, b"") + whole
    yield "info-10-words", usual + info()[:8 + 8 + 80].replace(struct.pack("<IHH", 70, 0, 144),
                                                               struct.pack("<IHH", 70, 0, 96)) + whole
    yield "no-info", usual + whole
    yield "info-other-trace", usual + record(AUXTRACE_INFO, struct.pack("<II16Q", 3, 0, *range(16))) + whole
    yield "mult-0", usual + info(mult=0) + whole
    yield "shift-200", usual + info(shift=200) + whole
    yield "shift-63", usual + info(shift=63, mult=2**64 - 1) + whole
    yield "no-clock", usual + info(has_time=0) + whole
    yield "ratios-0", usual + info(num=0, den=0, ratio=0) + whole
    yield "ratios-huge", usual + info(num=2**32 - 1, den=1, ratio=2**32 - 1, mtc_bits=2**64 - 1) + whole
    yield "size-beyond", usual + info() + trace(packets, size=1 << 40)
    yield "size-negative", usual + info() + trace(packets, size=2**64 - 8)
    yield "size-0", usual + info() + trace(b"") + whole
    half = len(packets) // 2 & ~7
    yield "overlap", usual + info() + trace(packets[:half + 8]) + trace(packets[half:], half)
    yield "twice", usual + info() + whole + whole
    yield "inside", usual + info() + whole + trace(packets[8:16], 8)
    yield "huge-offset", usual + info() + trace(packets, 2**64 - 8) + whole
    yield "hole", usual + info() + trace(packets) + trace(packets, 1 << 20)
    yield "backwards", usual + info() + trace(packets[half:], half) + trace(packets[:half])
    yield "no-psb", usual + info() + trace(packets[16:])
    yield "noise", usual + info() + trace(bytes(i * 37 % 251 for i in range(200)) + packets)
    yield "pads-only", usual + info() + trace(bytes(64))
    yield "missing-binary", comm() + mmap2("nowhere.elf", 0x100) + info() + whole
    yield "map-beyond", comm() + mmap2("code.elf", 0x100000, 1 << 40) + info() + whole
    yield "map-wraps", comm() + mmap2("code.elf", 2**63, 4096, 2**63 + 5) + info() + whole
    yield "map-huge", comm() + mmap2("code.elf", 2**48) + info() + whole
    yield "no-map", comm() + info() + whole


def pieces():
    """Four pieces of a trace, one after the other."""
    times = 1000, 200000, 300000, 400000
    return [psb_plus(time=time) + pge(AT) + tnt("t" * (i + 1) + "nt") + tip(AT + 0x10) + tnt("t") + pgd()
            for i, time in enumerate(times)]


def snapshot_cases():
    """Offsets are those in a buffer of 128 bytes: they do not tell the order."""
    first, second, third, last = pieces()
    usual = comm() + mmap2("code.elf", len(USUAL)) + info(snapshot=1)
    yield "snapshots", usual + trace(first + second, 64) + trace(second + third, 40) + trace(third[5:] + last, 8)
    yield "snapshots-contained", usual + trace(first + second) + trace(first + second) + \
        trace(second) + trace(third)
    yield "bad-snapshot-cut", usual + trace(first + second) + trace(second + third)[:-30]
    yield "bad-snapshot-ends-in-psb", usual + trace(first + PSB[:10]) + trace(second + PSB) + trace(PSB + third[16:])
    yield "bad-snapshot-no-psb", usual + trace(first[16:]) + trace(first) + trace(second[16:]) + trace(bytes(32))
    yield "bad-snapshots-backwards", usual + trace(third + last) + trace(first + second)


def sample_cases():
    first, second, third, last = pieces()
    usual = with_id(comm(), mmap2("code.elf", len(USUAL)))
    yield "samples", usual + info() + sample(first + second, 150000) + sample(second[9:] + third, 160000) + \
        sample(third + last, 200000)
    yield "bad-sample-size", usual + info() + sample(first, 100000) + sample(second, 110000, size=64) + \
        sample(second, 120000, size=1000) + sample(third, 130000, size=2**64 - 8) + sample(last, 200000)
    yield "bad-sample-cut", usual + info() + sample(first, 100000) + sample(second, 110000)[:-24]
    yield "bad-sample-empty", usual + info() + sample(b"", 100000) + sample(first, 110000)
    yield "bad-sample-no-info", usual + sample(first, 100000)


VERB = "insn --addresses\n"


def put_case(name, data, code=None, verb=VERB):
    put(f"pt-{name}", "input.data", data)
    put(f"pt-{name}", "verb", verb.encode())
    if code is not None:
        put(f"pt-{name}", "code.elf", code)


for name, packets, code in (*filters(), *usual_cases()):
    put_case(name, good(packets, code), elf(code))
put_case("32-bit", good(psb_plus(mode=MODE_32) + pge(AT) + tnt("nt") + tip(AT) + tnt("tt") + pgd(AT + 9),
                        NARROW), elf(NARROW), "report\n")
for name, verb in (("insn", "insn"), ("report", "report"), ("user", "insn --level user")):
    put_case(f"notes-{name}", good(notes(), WRITES), elf(WRITES), verb + "\n")
for maps in (1, 2):
    code, packets, records = borders(maps)
    name = {1: "border-of-segments", 2: "border-of-maps"}[maps]
    put_case(name, perf_data(comm(), *records, info(), trace(packets)), code, "report\n")
for name, records in foreign_cases():
    put_case(f"foreign-{name}", perf_data(records), elf(USUAL), "calls\n")
for name, records in bad_cases():
    put_case(f"bad-{name}", perf_data(records), elf(USUAL))
put_case("bad-elf-cut", good(psb_plus() + pge(AT) + tnt("tt"), USUAL), elf(USUAL)[:4097])
for name, records in snapshot_cases():
    put_case(name, perf_data(records), elf(USUAL))
for name, records in sample_cases():
    put_case(name, sampled(records), elf(USUAL))
