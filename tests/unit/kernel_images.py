#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernel images as distributions ship them: generated ones of every layout and packing, and hostile
ones. tests/e2e/kallsyms.py has real ones.
"""
import bz2
import gzip
import lzma
import os
import random
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import BUILD, check, equal, finish, run, scratch
from kit.pack import lz4

SYMTOOL = os.path.join(BUILD, "tests", "symtool")
BASE = 0xffffffff81000000
BANNER = b"Linux version 9.8.7-test (nobody@nowhere)\0"
WORDS = ["do", "sys", "kmem", "cache", "alloc", "free", "ext4", "inode", "page", "lock", "tcp"]


# ---- the tables of kallsyms, as scripts/kallsyms of the kernel writes them ----

def symbols(nr=1000, base=BASE):
    """[(address, type and name)] in order; some share an address, and data comes last."""
    rng = random.Random(nr)
    found, at = [(base, "T_text"), (base, "T_stext")], base
    for i in range(nr):
        at += rng.choice((0, 16, 32, 48, 1008))
        found.append((at, rng.choice("tTtTw") + "_".join(rng.sample(WORDS, 3)) + f"_{i}"))
    found.append((at + 16, "T_etext"))
    return found + [(at + 4096 * i, f"dvariable_{i}") for i in range(1, 9)]


def functions(table):
    """{address: names}, as symtool lists them."""
    found = {}
    for address, name in table:
        if name[0] in "tTw":
            found.setdefault(address, set()).add(name[1:])
    return found


def tokens():
    """The token table: a letter stands for itself, and the other codes for words."""
    found = [chr(code) if 32 < code < 127 else "" for code in range(256)]
    for code, word in zip(range(128, 256), [f"_{w}" for w in WORDS] + WORDS + ["T", "ab"]):
        found[code] = word
    return found


def pack_name(name, table):
    out = bytearray([ord(name[0])])
    rest = name[1:]
    words = sorted(((w, c) for c, w in enumerate(table) if len(w) > 1), key=lambda x: -len(x[0]))
    while rest:
        word, code = next(((w, c) for w, c in words if rest.startswith(w)), (rest[0], ord(rest[0])))
        out.append(code)
        rest = rest[len(word):]
    return bytes(out)


class Layout:
    """A layout of the tables.

    where: the addresses are before or after the names; form: offset, percpu, whole or place."""

    def __init__(self, where="after", form="offset", bits=64, order="<", long_markers=False,
                 base=None):
        self.where, self.form, self.bits, self.order = where, form, bits, order
        self.long_markers, self.base = long_markers, base

    def pointer(self, *values):
        mask = (1 << self.bits) - 1
        kind = "Q" if self.bits == 64 else "I"
        return struct.pack(f"{self.order}{len(values)}{kind}", *[v & mask for v in values])

    def words(self, values):
        return struct.pack(f"{self.order}{len(values)}I", *[v & 0xffffffff for v in values])

    def addresses(self, table, at):
        base = min(a for a, n in table if n[0] != "A")
        if self.form == "whole":
            return self.pointer(*[a for a, _ in table])
        if self.form == "place":
            return self.words([a - (at + 4 * i) for i, (a, _) in enumerate(table)])
        if self.form == "percpu":
            values = [a if n[0] == "A" else base - 1 - a for a, n in table]
        else:
            values = [a - base for a, _ in table]
        return self.pad(self.words(values)) + self.pointer(
            base if self.base is None else self.base)

    def pad(self, data):
        return data + bytes(-len(data) % (4 if self.form == "place" else self.bits // 8))

    def build(self, table, at, vaddr):
        """The tables, for offset `at` in a file that is loaded at vaddr."""
        words = tokens()
        out = bytearray(bytes(-at % 8))
        if self.where == "before":
            out += self.pad(self.addresses(table, 0))
        if self.long_markers:
            out += self.pointer(len(table))
        else:
            out += self.pad(self.words([len(table)]))
        names, markers = bytearray(), []
        for i, (_, name) in enumerate(table):
            if i % 256 == 0:
                markers.append(len(names))
            packed = pack_name(name, words)
            if len(packed) > 127:
                names += bytes([len(packed) & 127 | 128, len(packed) >> 7])
            else:
                names.append(len(packed))
            names += packed
        out += self.pad(bytes(names))
        out += self.pad(self.pointer(*markers) if self.long_markers else self.words(markers))
        index, strings = [], bytearray()
        for word in words:
            index.append(len(strings))
            strings += word.encode() + b"\0"
        out += self.pad(bytes(strings))
        out += struct.pack(f"{self.order}256H", *index)
        if self.where == "after":
            out += self.pad(self.addresses(table, vaddr + len(out)))
        out += bytes(random.Random(1).randrange(256) for _ in range(3 * len(table)))
        return bytes(out)


# ---- the files that contain the tables ----

def elf(table, layout, tables=True):
    """A vmlinux without section headers: one segment with code, then the tables."""
    head = 0x1000
    text = min(a for a, n in table if n[0] != "A")
    body = bytearray(BANNER + bytes(4096 - len(BANNER)))
    if tables:
        body += layout.build(table, head + len(body), text + len(body))
    kind, machine = (2, 62) if layout.bits == 64 else (1, 3)
    ident = b"\177ELF" + bytes([kind, 1 if layout.order == "<" else 2, 1]) + bytes(9)
    o = layout.order
    if layout.bits == 64:
        header = struct.pack(f"{o}HHIQQQIHHHHHH", 2, machine, 1, text, 64, 0, 0, 64, 56, 1, 0, 0, 0)
        load = struct.pack(f"{o}IIQQQQQQ", 1, 5, head, text, text, len(body), len(body), 0x1000)
    else:
        header = struct.pack(f"{o}HHIIIIIHHHHHH", 2, machine, 1, text, 52, 0, 0, 52, 32, 1, 0, 0, 0)
        load = struct.pack(f"{o}IIIIIIII", 1, head, text, text, len(body), len(body), 5, 0x1000)
    return (ident + header + load).ljust(head, b"\0") + bytes(body)


def bzimage(payload, mark=True, offset=None, length=None, version=0x20f, magic=b"HdrS"):
    head = bytearray(0x400)
    head[0x1f1] = 1
    head[0x202:0x206] = magic
    if mark:
        payload += struct.pack("<I", 123456)
    struct.pack_into("<H", head, 0x206, version)
    struct.pack_into("<II", head, 0x248, 0x100 if offset is None else offset,
                     len(payload) if length is None else length)
    return bytes(head) + bytes(0x100) + payload + b"more"


def zboot(payload):
    head = b"MZ\0\0zimg" + struct.pack("<IIII", 0x200, len(payload), 0, 0) + b"gzip\0"
    return head.ljust(0x200, b"\0") + payload


def image(table, layout, pointers=True, room=1 << 16, start=None):
    """A flat arm64 kernel, with pointers to its functions and calls of them."""
    start = min(a for a, _ in table) if start is None else start
    head = bytearray(64)
    head[56:60] = b"ARM\x64"
    body = bytes(head) + BANNER
    body += bytes(-len(body) % 8)
    if pointers:
        body += b"".join(struct.pack("<Q", a) for a, n in table if n[0] in "tT")
    for address, name in table:
        if name[0] in "tT":
            body += struct.pack("<I", 0x94000000 | (address - start - len(body)) // 4 & 0x3ffffff)
    body = body.ljust(room, b"\0")
    moved = [(a - start, n) for a, n in table]
    made = layout.build(moved if layout.form == "place" else
                        [(a + start, n) for a, n in moved], len(body), len(body))
    return (body + made).ljust(max(a for a, _ in moved) + 4096, b"\0")


# ---- what symtool finds ----

def write(folder, data):
    path = os.path.join(folder, "vmlinuz")
    with open(path, "wb") as f:
        f.write(data)
    return path


def ask(folder, data, *words):
    return run(SYMTOOL, *words, write(folder, data))


def listed(folder, data):
    done = ask(folder, data, "-l")
    return {int(line.split()[0], 16): line.split()[1] for line in done.stdout.splitlines()}, done


def same(folder, name, data, table):
    got, done = listed(folder, data)
    want = functions(table)
    wrong = [(hex(a), got.get(a), want.get(a)) for a in sorted(set(got) | set(want))
             if got.get(a) not in want.get(a, ())]
    check(name, want and not wrong, f"{len(wrong)} differ: {wrong[:3]} {done.stderr}")


def layouts(folder):
    table = symbols()
    percpu = [(8 * i, f"Apercpu_{i}") for i in range(40)] + table
    small = symbols(base=0xc1000000)
    same(folder, "2.6", elf(table, Layout("before", "whole", long_markers=True)), table)
    same(folder, "4.6", elf(table, Layout("before", "offset", long_markers=True)), table)
    same(folder, "4.6 per-cpu", elf(percpu, Layout("before", "percpu", long_markers=True)), table)
    same(folder, "5.0", elf(percpu, Layout("before", "percpu")), table)
    same(folder, "6.4", elf(percpu, Layout("after", "percpu")), table)
    same(folder, "6.4 whole addresses", elf(table, Layout("after", "whole")), table)
    same(folder, "6.15", elf(table, Layout("after", "offset")), table)
    same(folder, "7.0", elf(table, Layout("after", "place")), table)
    same(folder, "32 bits, 4.6", elf(small, Layout("before", "offset", bits=32)), small)
    same(folder, "32 bits, 6.4", elf(small, Layout("after", "offset", bits=32)), small)
    same(folder, "32 bits, 7.0", elf(small, Layout("after", "place", bits=32)), small)
    same(folder, "big-endian", elf(table, Layout("before", "offset", order=">")), table)
    same(folder, "big-endian, long markers",
         elf(table, Layout("before", "whole", order=">", long_markers=True)), table)
    long = sorted(table + [(BASE + 64, "t" + "x" * 300)])
    same(folder, "a long name", elf(long, Layout()), long)
    unrelocated = elf(table, Layout(base=0))
    same(folder, "base 0 in an ELF", unrelocated, table)


def packings(folder):
    table = symbols()
    plain = elf(table, Layout())
    zstd = run("zstd", "-c", "-", input=plain, binary=True).stdout
    packed = {"gzip": (gzip.compress(plain), False), "xz": (lzma.compress(plain), True),
              "lzma": (lzma.compress(plain, lzma.FORMAT_ALONE), True), "zstd": (zstd, True),
              "lz4": (lz4(plain), True)}
    for name, (data, mark) in packed.items():
        same(folder, f"bzImage, {name}", bzimage(data, mark), table)
        same(folder, f"packed with {name}", data, table)
        same(folder, f"EFI zboot, {name}", zboot(data), table)
    done = ask(folder, bzimage(packed["xz"][0]), "-v", "-l")
    check("the log tells", "Linux kernel 9.8.7-test, bzImage, xz, "
          f"{len(table)} built-in symbols" in done.stderr, done.stderr)
    same(folder, "System.map.gz", gzip.compress(
        "".join(f"{a:016x} {n[0]} {n[1:]}\n" for a, n in table).encode()), table)


def flat_images(folder):
    start = 0xffff800080000000
    table = symbols(base=start)
    same(folder, "Image", image(table, Layout(), pointers=False), table)
    same(folder, "Image, not yet relocated", image(table, Layout(base=0)), table)
    same(folder, "Image, 7.0", image(table, Layout(form="place")), table)
    same(folder, "Image.gz", gzip.compress(image(table, Layout())), table)
    headers = ask(folder, image(table, Layout()), "-i").stdout
    end = next(a for a, n in table if n == "T_etext")
    equal("Image, its code", headers.splitlines()[2:],
          [f"segment {start:#x} 0 {end - start:#x} {end - start:#x}"])
    nameless = [(a + 0x10000, n) for a, n in table if n != "T_text"]
    data = image(nameless, Layout(base=0), room=1 << 18, start=start)
    same(folder, "Image, its start has no name", data, nameless)
    equal("Image, its start by its calls", ask(folder, data, "-i").stdout.splitlines()[2:],
          [f"segment {start + 0x10000:#x} 0x10000 {end - start:#x} {end - start:#x}"])
    done = ask(folder, image(table, Layout(base=0), pointers=False))
    check("Image that says nowhere where it is", done.returncode == 3 and
          "cannot determine where this kernel was linked" in done.stderr, done.stderr)


# ---- hostile files ----

def refused(folder, name, data, why):
    done = ask(folder, data)
    path = os.path.join(folder, "vmlinuz")
    equal(name, (done.returncode, done.stderr.strip()), (3, f"kscope: error: {path}: {why}"))


def warned(folder, name, data, why):
    done = ask(folder, data, "-l")
    path = os.path.join(folder, "vmlinuz")
    equal(name, (done.returncode, done.stdout, done.stderr.strip()),
          (0, "", f"kscope: warning: {path}: {why}"))


def broken(folder):
    table = symbols()
    plain = elf(table, Layout())
    packed = lzma.compress(plain)
    whole = bzimage(packed)
    size = len(packed) + 4
    refused(folder, "cut short", whole[:3000],
            f"bzImage is cut short: its kernel is {size} bytes at offset 1280, but the file has "
            "only 3000 bytes")
    refused(folder, "a length that lies", bzimage(packed, length=0xffffffff),
            "bzImage is cut short: its kernel is 4294967295 bytes at offset 1280, but the file has "
            f"only {len(whole)} bytes")
    refused(folder, "an offset that lies", bzimage(packed, offset=0xfffffff0),
            f"bzImage is cut short: its kernel is {size} bytes at offset 4294968304, but the file "
            f"has only {len(whole)} bytes")
    refused(folder, "a length too short", bzimage(packed, length=500),
            "byte 1780: the xz stream is cut short")
    refused(folder, "an empty payload", bzimage(packed, length=0),
            "byte 1280: the xz stream is cut short")
    refused(folder, "an old boot protocol", bzimage(packed, version=0x203),
            "boot protocol 2.03 is too old: expected 2.08 (Linux 2.6.24) or later")
    refused(folder, "lzo", bzimage(b"\x89LZO\0\r\n\x1a\n"),
            "compressed with lzo, which kscope does not support; use the kernel's vmlinux instead")
    refused(folder, "bzip2", bzimage(bz2.compress(plain)),
            "compressed with bzip2, which kscope does not support; use the kernel's vmlinux "
            "instead")
    refused(folder, "unknown packing", bzimage(b"abcdefghijklmnop"),
            "byte 1280: the kernel in this bzImage is compressed in an unknown format")
    damaged = bytearray(gzip.compress(plain))
    damaged[2000:2010] = b"\xff" * 10
    done = ask(folder, bzimage(bytes(damaged), mark=False))
    check("a damaged stream", done.returncode == 3 and
          "the gzip stream is damaged" in done.stderr, done.stderr)
    five = plain
    for _ in range(5):
        five = gzip.compress(five)
    refused(folder, "packed too often", five, "more than 4 layers of compression")
    refused(folder, "nothing inside", bzimage(gzip.compress(b"hello"), False),
            "neither an ELF file, nor a Linux kernel, nor a symbol list like /proc/kallsyms "
            "or System.map")
    refused(folder, "a zImage without a kernel", bytes(0x24) + struct.pack("<I", 0x016f2818) +
            bytes(4000), "no compressed kernel found in this zImage")
    refused(folder, "a bomb", bzimage(gzip.compress(bytes(600 << 20), 1), False),
            "decompresses to over 512 MB: not a kernel")
    warned(folder, "no table", elf(table, Layout(), tables=False),
           "no symbol table in this kernel (built without CONFIG_KALLSYMS?)")


def broken_tables(folder):
    table = symbols()
    layout = Layout()
    names = elf(table, layout).index(pack_name(table[0][1], tokens()) +
                                     bytes([len(pack_name(table[1][1], tokens()))])) - 1
    data = bytearray(elf(table, layout))
    data[names + 5000] = 0
    warned(folder, "names with a hole", bytes(data),
           "the symbol table in this kernel is damaged")
    shuffled = table[:]
    random.Random(5).shuffle(shuffled)
    data = elf(shuffled, layout)
    done = ask(folder, data, "-l")
    check("addresses in no order", done.returncode == 0 and not done.stdout and
          f"names of {len(table)} symbols in this kernel, but no addresses in a known format"
          in done.stderr, done.stderr)
    # Every word could be the number of names that follow: many false starts, then the end.
    data = elf(table, layout)
    at = data.index(struct.pack("<I", len(table)))
    worst = data[:0x2000] + b"\3\3\3\0" * (4 << 20) + data[0x2000:at] + b"\3\3\3\0" + data[at + 4:]
    done = ask(folder, worst, "-l")
    check("false starts", done.returncode == 0, done.stderr)
    rng = random.Random(7)
    whole = elf(symbols(300), layout)
    start = whole.index(struct.pack("<I", len(symbols(300))))
    for i in range(150):
        data = bytearray(whole)
        for _ in range(rng.choice((1, 2, 8, 100))):
            data[rng.randrange(start, len(data))] = rng.randrange(256)
        done = ask(folder, bytes(data[:rng.choice((len(data), rng.randrange(len(data))))]), "-l")
        if done.returncode not in (0, 3):
            return check("damage anywhere", False, f"round {i}: {done.returncode} {done.stderr}")
    return check("damage anywhere", True)


def write_seeds(folder):
    """Writes small images for make fuzz."""
    table, flat = symbols(60), symbols(60, base=0xffff800080000000)
    percpu = [(8 * i, f"Apercpu_{i}") for i in range(40)] + table
    seeds = [elf(table, Layout("before", "whole", long_markers=True)),
             elf(percpu, Layout("before", "percpu")), elf(table, Layout()),
             elf(table, Layout("after", "place")), elf(symbols(60, base=0xc1000000),
                                                       Layout(bits=32, form="place")),
             image(flat, Layout(base=0), room=4096), image(flat, Layout(form="place"), room=4096),
             b"ffffffff81000000 T _stext\nffffffffc0001000 t one\t[module]\n"]
    seeds += [bzimage(pack(seeds[2])) for pack in (gzip.compress, lzma.compress, lz4)]
    seeds += [zboot(gzip.compress(seeds[6])), gzip.compress(seeds[-1])]
    for i, seed in enumerate(seeds):
        with open(os.path.join(folder, f"seed-{i}"), "wb") as f:
            f.write(seed)


def main():
    if sys.argv[1:]:
        return write_seeds(sys.argv[1])
    with scratch() as folder:
        layouts(folder)
        packings(folder)
        flat_images(folder)
        broken(folder)
        broken_tables(folder)
    finish()


if __name__ == "__main__":
    main()
