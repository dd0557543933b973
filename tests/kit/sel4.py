# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes samples as the seL4 profiler does: protobuf over TCP, in both generations, and text on a
serial line."""
from .wire_write import varint

DEPTH = 16  # the profiler always sends this many addresses
GREETING = b"100 SEL4 PROFILING CLIENT\n"
ERROR = b"400 ERROR\n"


def padded(ips):
    return (list(ips) + [0] * DEPTH)[:DEPTH]


def message(ip=0x200098, pid=1, time=100, cpu=0, period=1200000, ips=(0x2000f8,), generation=2):
    """A sample; the first generation does not count its addresses."""
    fields = [(1, ip), (2, pid), (3, time), (4, cpu), (5, period)]
    if generation == 2:
        fields.append((6, len(ips)))
    out = b"".join(varint(number << 3) + varint(value) for number, value in fields if value)
    packed = b"".join(varint(ip) for ip in padded(ips))
    return out + varint((7 if generation == 2 else 6) << 3 | 2) + varint(len(packed)) + packed


def frame(data):
    """The sender prints two digits of the length, even if it has three."""
    return str(len(data)).zfill(2)[:2].encode() + data


def text(ip, pid, time, cpu, period, nr, ips):
    """A sample on the serial line: not JSON, because it has no commas."""
    rows = ",\n".join(f'\t\t"{ip}"' for ip in ips)
    return (f'{{\n\t"ip": "{ip:x}"\n\t"pid": {pid}\n\t"time": "{time}"\n\t"cpu": {cpu}\n'
            f'\t"period": "{period}"\n\t"nr": "{nr}"\n\t"ips": [\n{rows}\n]\n}}\n')
