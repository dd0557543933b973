# SPDX-License-Identifier: GPL-2.0-or-later
"""Data folders of uftrace, written by the description of the format, and what uftrace says about one."""
import collections
import os
import re
import struct

from . import run

ENTRY, EXIT, LOST, EVENT = range(4)
FEATURES = 0x62  # sessions, relative symbols, a maximal depth


def record(kind, time, depth, addr, more=b""):
    """16 bytes, and the arguments that follow them."""
    word = kind | bool(more) << 2 | 5 << 3 | depth << 6 | (addr & (1 << 48) - 1) << 16
    return struct.pack("<QQ", time, word) + more + bytes(-len(more) % 8)


def calls(*steps, time=1000, step=10, depth=0):
    """Records of steps: an address is entered; None leaves what was entered last."""
    data, stack = b"", []
    for addr in steps:
        if addr is None:
            addr = stack.pop()
            data += record(EXIT, time, depth + len(stack), addr)
        else:
            data += record(ENTRY, time, depth + len(stack), addr)
            stack.append(addr)
        time += step
    return data


def info(tids, lines=(), version=4, endian=1, features=FEATURES, count=None):
    """The file info; lines are those before the list of threads."""
    head = struct.pack("<8sIHBBQQHHI", b"Ftrace!\0", version, 40, endian, 2, features, 0x80, 1024, 0, 0)
    text = [*lines, "taskinfo:lines=2", f"taskinfo:nr_tid={len(tids) if count is None else count}",
            "taskinfo:tids=" + ",".join(map(str, tids))]
    return head + "".join(line + "\n" for line in text).encode()


def report(folder):
    """{function: calls}, by uftrace report. Scheduling is no function of the program."""
    text = run("uftrace", "report", "--no-pager", "-f", "call", "-d", folder).stdout
    return {name: int(nr) for nr, name in re.findall(r"^ +(\d+)  (\S.*?) *$", text, re.M)
            if not name.startswith("linux:")}


def graph(folder):
    """{function: calls}, by uftrace graph, over all places of a function in the graph."""
    counted = collections.Counter()
    text = run("uftrace", "graph", "--no-pager", "-d", folder).stdout
    for nr, name in re.findall(r"\((\d+)\) (\S.*?) *$", text, re.M):
        counted[name] += int(nr)
    return counted


def replay(folder):
    """{function: calls}, by uftrace replay: lines that begin a function, or have all of it."""
    text = run("uftrace", "replay", "--no-pager", "-f", "tid", "-d", folder).stdout
    return collections.Counter(re.findall(r"^[ \[\d\]]+\| +(?! )(\S.*?)\(\)(?:;| \{)$", text, re.M))


def dump(folder):
    """{function: calls}, by uftrace dump."""
    text = run("uftrace", "dump", "--no-pager", "-d", folder).stdout
    return collections.Counter(re.findall(r"\[entry\] (\S.*?)\([0-9a-f]+\) depth", text))


def named(folder):
    """{tid: [(type, time, depth, name)]}, by the maps and symbols in a folder without arguments."""
    files, names = read(folder), {}
    for start, path in re.findall(r"^([0-9a-f]+)-\S+ \S+ \S+ \S+ \d+ ([^\[\s]\S*)$", "\n".join(
            data.decode() for name, data in files.items() if name.endswith(".map")), re.M):
        for offset, name in re.findall(r"^([0-9a-f]+) T (.*)$", files[path + ".sym"].decode(), re.M):
            names[int(start, 16) + int(offset, 16)] = name
    return {int(name[:-4]): [(kind, time, depth, names.get(addr, addr))
                             for kind, time, depth, addr in decode(data)]
            for name, data in files.items() if name[0].isdigit()}


def decode(data):
    """[(type, time, depth, address)]"""
    return [(word & 3, time, word >> 6 & 1023, word >> 16)
            for time, word in struct.iter_unpack("<QQ", data)]


def read(folder):
    """{file: content}"""
    found = {}
    for name in filter(lambda name: os.path.isfile(os.path.join(folder, name)), os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as f:
            found[name] = f.read()
    return found
