#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Damages the Intel PT trace of a perf.data, as processors and perf do:

    ptdamage.py IN OUT overflow TID AT fup|tip|pge|psb   packets are lost behind AT
    ptdamage.py IN OUT scramble TID AT COUNT SEED        COUNT random bytes at AT
    ptdamage.py IN OUT cut TID NR KEEP                   AUXTRACE record NR has only KEEP bytes
    ptdamage.py IN OUT drop TID NR                       AUXTRACE record NR is lost, as perf reports it
    ptdamage.py IN OUT split TID SIZE [anywhere]         AUXTRACE records of about SIZE bytes

TID selects a queue: the thread, or with cpu=C a CPU. AT counts the bytes of its AUXTRACE records, put
together in the order of their offsets, as pt_oracle does. OUT has no feature sections: their offsets
would be wrong.
"""
import random
import struct
import sys

AUX, AUXTRACE_INFO, AUXTRACE = 11, 70, 71
AUX_TRUNCATED = 1
ID_ALL = 1 << 18  # of the attribute's flags
# What stands behind a record, in this order: (bit of the sample type, name).
TRAILER = [(1 << 1, "tid"), (1 << 2, "time"), (1 << 6, "id"), (1 << 9, "stream"), (1 << 7, "cpu"),
           (1 << 16, "identifier")]

OVF = b"\x02\xf3"
PSB = b"\x02\x82" * 8
IP_PACKETS = {0x0d: "tip", 0x11: "tip.pge", 0x01: "tip.pgd", 0x1d: "fup"}
IP_BYTES = {0: 0, 1: 2, 2: 4, 3: 6, 4: 6, 6: 8}
FULL_IP = 6
TIMING = {"tsc", "tma", "mtc", "cyc", "cbr", "pad"}
# Behind 0x02: second byte, name and size.
EXTENDED = {0x82: ("psb", 16), 0x23: ("psbend", 2), 0x83: ("stop", 2), 0xf3: ("ovf", 2),
            0xa3: ("tnt", 8), 0x43: ("pip", 8), 0xc8: ("vmcs", 7), 0x03: ("cbr", 4),
            0x73: ("tma", 7), 0xc3: ("mnt", 11), 0x12: ("ptw", 6), 0x92: ("ptw", 6),
            0x32: ("ptw", 10), 0xb2: ("ptw", 10), 0x62: ("exstop", 2), 0xe2: ("exstop", 2),
            0xc2: ("mwait", 10), 0x22: ("pwre", 4), 0xa2: ("pwrx", 7)}


class Packet:
    def __init__(self, at, name, size, ip=None):
        self.at, self.name, self.size, self.ip = at, name, size, ip
        self.end = at + size


def _cyc_size(data, at):
    size = 1
    more = data[at] & 4
    while more:
        more = data[at + size] & 1
        size += 1
    return size


def _shape(data, at):
    """(name, size) of the packet there."""
    first = data[at]
    if first == 0x02:
        return EXTENDED[data[at + 1]]
    if first == 0:
        return "pad", 1
    if first & 3 == 3:
        return "cyc", _cyc_size(data, at)
    if first & 1 == 0:
        return "tnt", 1
    if first & 0x1f in IP_PACKETS:
        return IP_PACKETS[first & 0x1f], 1 + IP_BYTES[first >> 5]
    return {0x19: ("tsc", 8), 0x59: ("mtc", 2), 0x99: ("mode", 2)}[first]


def _full_ip(last, data, at, size):
    """The address of an IP packet: it may have only the lower bytes."""
    kind = data[at] >> 5
    payload = int.from_bytes(data[at + 1:at + size], "little")
    if kind in (1, 2, 4):
        bits = 8 * IP_BYTES[kind]
        return last >> bits << bits | payload
    if kind == 3 and payload >> 47:
        return payload | 0xffff << 48
    return payload


def packets(data):
    """All packets of a trace that begins at a packet and has no errors."""
    at = last = 0
    while at < len(data):
        name, size = _shape(data, at)
        ip = None
        if name == "psb":
            last = 0
        elif size > 1 and name in IP_PACKETS.values():
            ip = last = _full_ip(last, data, at, size)
        yield Packet(at, name, size, ip)
        at += size


def ip_packet(name, ip):
    """With all its bytes, so that it does not depend on packets before it."""
    code = next(code for code, known in IP_PACKETS.items() if known == name)
    return struct.pack("<BQ", FULL_IP << 5 | code, ip)


class Part:
    """An AUXTRACE record."""
    FORM = "<IHHQQQIiiI"

    def __init__(self, record):
        size = struct.calcsize(self.FORM)
        fields = struct.unpack(self.FORM, record[:size])
        self.offset, self.reference, self.idx, self.tid, self.cpu = fields[4:9]
        self.data = record[size:]

    def bytes(self):
        assert len(self.data) % 8 == 0
        return struct.pack(self.FORM, AUXTRACE, 0, struct.calcsize(self.FORM), len(self.data),
                           self.offset, self.reference, self.idx, self.tid, self.cpu, 0) + self.data

    def like(self, offset, data):
        """Another one of the same queue."""
        new = Part(self.bytes())
        new.offset, new.data = offset, data
        return new


class File:
    """A perf.data: its records as bytes, or as Part."""

    def __init__(self, path):
        with open(path, "rb") as f:
            whole = f.read()
        assert whole[:8] == b"PERFILE2", path
        attrs, data, size = (struct.unpack_from("<Q", whole, at)[0] for at in (24, 40, 48))
        self.sample_type, _, self.flags = struct.unpack_from("<QQQ", whole, attrs + 24)
        self.head = whole[:data]
        self.records = list(self._records(whole, data, data + size))

    @staticmethod
    def _records(whole, at, end):
        while at < end:
            kind, _, size = struct.unpack_from("<IHH", whole, at)
            if kind == AUXTRACE:
                size += struct.unpack_from("<Q", whole, at + 8)[0]
            record = whole[at:at + size]
            yield Part(record) if kind == AUXTRACE else record
            at += size

    def write(self, path):
        data = b"".join(r.bytes() if isinstance(r, Part) else r for r in self.records
                        if not isinstance(r, Part) or r.data)
        head = bytearray(self.head)
        struct.pack_into("<Q", head, 48, len(data))
        head[72:104] = bytes(32)  # no features
        with open(path, "wb") as f:
            f.write(head + data)

    def queue(self, tid=None, cpu=None):
        """Its parts, by offset."""
        parts = [r for r in self.records if isinstance(r, Part) and
                 (r.cpu == cpu if tid is None else r.tid == tid)]
        assert parts, "no such queue"
        return sorted(parts, key=lambda part: part.offset)

    def replace(self, part, *news):
        at = self.records.index(part)
        self.records[at:at + 1] = news

    def aux(self, part, flags):
        """An AUX record for a part, as the kernel writes it."""
        values = {"tid": struct.pack("<ii", part.tid, part.tid),
                  "time": struct.pack("<Q", self.time(part.reference)),
                  "cpu": struct.pack("<ii", part.cpu, 0)}
        trailer = b"".join(values.get(name, bytes(8)) for bit, name in TRAILER
                           if self.flags & ID_ALL and self.sample_type & bit)
        body = struct.pack("<QQQ", part.offset, len(part.data), flags) + trailer
        return struct.pack("<IHH", AUX, 0, 8 + len(body)) + body

    def time(self, tsc):
        info = next(r for r in self.records
                    if not isinstance(r, Part) and struct.unpack_from("<I", r)[0] == AUXTRACE_INFO)
        shift, mult, zero = struct.unpack_from("<QQQ", info, 24)
        return zero + (tsc * mult >> shift)


def joined(parts):
    return b"".join(part.data for part in parts)


def pad(data):
    """With PAD packets, so that records behind it are aligned."""
    return data + bytes(-len(data) % 8)


def _substitute(parts, begin, end, new):
    """Puts new bytes in place of those from begin to end, which are packet boundaries."""
    at = moved = 0
    for part in parts:
        size = len(part.data)
        first, last = max(begin - at, 0), min(end - at, size)
        inside = new if at <= begin < at + size else b""
        if first < last or inside:
            rest = part.data[last:] if last > first else part.data[first:]
            pad = bytes(-(first + len(inside) + len(rest)) % 8)
            part.data = part.data[:first] + inside + pad + rest
        part.offset += moved
        moved += len(part.data) - size
        at += size


def _header_ends(all_packets):
    """For each packet, the packet at which its PSB+ ends, or None outside of one."""
    inside, ends = None, [None] * len(all_packets)
    for i, packet in reversed(list(enumerate(all_packets))):
        if packet.name == "psbend":
            inside = i
        ends[i] = inside
        if packet.name == "psb":
            inside = None
    return ends


def _resume(all_packets, ends, first, form):
    """Where the overflow ends: (the first packet that is not lost, what is written for it)."""
    before = ""  # the packet before, without those that have only a time
    for i in range(first, len(all_packets)):
        packet = all_packets[i]
        if packet.name == "psb" and form in ("fup", "psb"):
            header = all_packets[i:ends[i]]
            ip = next((p.ip for p in header if p.name == "fup"), None)
            if ip is not None:
                return packet.at, ip_packet("fup", ip) if form == "fup" else b""
        elif packet.name == "tip" and form == "tip" and packet.ip and before not in ("fup", "mode"):
            return packet.end, ip_packet("fup", packet.ip)
        elif packet.name == "tip.pge" and form == "pge":
            return packet.end, ip_packet("tip.pge", packet.ip)
        if packet.name not in TIMING:
            before = packet.name
    raise ValueError(f"no packet behind {all_packets[first].at:#x} to go on with ({form})")


def overflow(file, parts, at, form):
    """The processor's buffer overflows at the first packet behind AT, and packets are lost:

    fup  up to the next PSB, before which tracing goes on: OVF, FUP
    tip  up to and with the next TIP, where tracing goes on: OVF, FUP. A processor forgets the
         addresses of its return stack; here bits for returns to calls from before remain, so
         that a decoder may find an error behind it.
    pge  up to the next TIP.PGE: tracing was disabled when the overflow ended
    psb  up to the next PSB, which follows directly

    Between OVF and the next packet stands the last TSC that was lost. Returns (begin, end) of what
    was replaced.
    """
    data = joined(parts)
    everything = list(packets(data))
    ends = _header_ends(everything)
    first = next(i for i, p in enumerate(everything) if p.at >= at and ends[i] is None)
    begin = everything[first].at
    end, new = _resume(everything, ends, first + 1, form)
    clock = b""
    for packet in everything[first:]:
        if packet.at >= end:
            break
        if packet.name == "tsc":
            clock = data[packet.at:packet.end]
        elif packet.name == "tma" and clock:
            clock = clock[:8] + data[packet.at:packet.end]
    _substitute(parts, begin, end, OVF + clock + new)
    return begin, end


def scramble(file, parts, at, count, seed):
    """Random bytes, the same ones for the same seed."""
    noise = random.Random(seed).randbytes(count)
    for part in parts:
        size = len(part.data)
        if at < size and count:
            n = min(count, size - at)
            part.data = part.data[:at] + noise[:n] + part.data[at + n:]
            noise, count, at = noise[n:], count - n, 0
        else:
            at -= min(at, size)


def cut(file, parts, nr, keep):
    """The end of a record is missing, and nothing says so but the offset of the next one."""
    parts[nr].data = pad(parts[nr].data[:keep])


def drop(file, parts, nr):
    """perf was too slow, and the kernel's buffer was full: the next AUX record says TRUNCATED."""
    lost = parts[nr]
    if nr + 1 < len(parts):
        after = parts[nr + 1]
        file.replace(after, file.aux(after, AUX_TRUNCATED), after)
    else:
        file.records.append(file.aux(lost, AUX_TRUNCATED))
    file.records.remove(lost)


def _cuts(part, size, anywhere):
    """Where to cut a record: at packets, or after a multiple of 8 bytes."""
    if anywhere:
        return list(range(size // 8 * 8, len(part.data), size // 8 * 8))
    found, last = [], 0
    for packet in packets(part.data):
        if packet.at - last >= size:
            found.append(packet.at)
            last = packet.at
    return found


def split(file, parts, size, anywhere=False):
    """Smaller records, each filled up to a multiple of 8 bytes with PAD; packets are cut in two only if
    `anywhere`. Like perf's, offsets do not count what fills up a record."""
    for part in parts:
        bounds = [0, *_cuts(part, size, anywhere), len(part.data)]
        news = [part.like(part.offset + a, pad(part.data[a:b]))
                for a, b in zip(bounds, bounds[1:])]
        file.replace(part, *news)


def main(args):
    path, out, what, queue, *rest = args
    file = File(path)
    which = {"cpu": int(queue[4:])} if queue.startswith("cpu=") else {"tid": int(queue)}
    words = {"fup", "tip", "pge", "psb", "anywhere"}
    rest = [word if word in words else int(word, 0) for word in rest]
    {"overflow": overflow, "scramble": scramble, "cut": cut, "drop": drop,
     "split": split}[what](file, file.queue(**which), *rest)
    file.write(out)


if __name__ == "__main__":
    if len(sys.argv) < 6:
        sys.exit(__doc__)
    main(sys.argv[1:])
