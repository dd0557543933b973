# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads the data in an HTML report, from the specification in web/README.md, and sums it up."""
import base64
import collections
import gzip
import json
import re
import types

BLOCK = re.compile(rb'<script type="application/octet-stream" id="([a-z-]+)" data-packing="(\w+)">([^<]*)</script>')


def numbers(data, count, kind):
    """A column: LEB128 numbers, or (kind d) signed differences."""
    out, at, last = [], 0, 0
    for _ in range(count):
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        if kind == "d":
            last = value = last + ((value >> 1) ^ -(value & 1))
            last = value = (value + (1 << 63)) % (1 << 64) - (1 << 63)
        out.append(value)
    assert at == len(data), "bytes are left in a column"
    return out


def block(packing, text):
    data = base64.b64decode(text, validate=True)
    if packing == b"gzip":
        data = gzip.decompress(data)
    size = int.from_bytes(data[-4:], "little")
    found = json.loads(data[-4 - size:-4])
    at, tables = 0, collections.defaultdict(types.SimpleNamespace)
    for name, count, length, kind, value in found["columns"]:
        column = [value] * count if kind == "c" else numbers(data[at:at + length], count, kind)
        table, field = name.split(".")
        setattr(tables[table], field, column)
        tables[table].nr = count
        at += length
    assert at == len(data) - 4 - size, "bytes are left in a block"
    return found, dict(tables)


class Page:
    """A recording in a page: tables by name, `head`, `strings`, and what else the blocks have, in `more`."""

    def __init__(self, path, which="data"):
        with open(path, "rb") as file:
            self.html = file.read()
        self.tables, self.more = {}, {}
        for name, packing, text in BLOCK.findall(self.html):
            side, name = name.decode().split("-")
            if side == which:
                found, tables = block(packing, text)
                self.tables.update(tables)
                self.more[name] = found
        self.head, self.strings = self.more["core"]["head"], self.more["core"]["strings"]

    def __getattr__(self, name):
        return self.__dict__["tables"][name]

    def function(self, number):
        return (self.strings[self.functions.name[number]], self.strings[self.functions.binary[number]])

    def path(self, stack):
        """Functions from the innermost on."""
        while stack:
            yield self.stacks.function[stack]
            stack = self.stacks.parent[stack]

    def sums(self, event, wanted=lambda row: True):
        """{(function, binary): (self, total, samples)} of an event, as `kscope report --json` has them."""
        selves, totals, samples = collections.Counter(), collections.Counter(), collections.Counter()
        values = self.rows.weight if self.head["events"][event]["weighs"] else self.rows.count
        for i in range(self.rows.nr):
            if self.rows.event[i] != event or not wanted(i):
                continue
            path = [self.function(number) for number in self.path(self.rows.stack[i])]
            for name in set(path):
                totals[name] += values[i]
            selves[path[0]] += values[i]
            samples[path[0]] += self.rows.count[i]
        return {name: (selves[name], totals[name], samples[name]) for name in totals}

    def events(self):
        return [event["name"] for event in self.head["events"]]


def of_report(event):
    """The same of an event of `kscope report --json --limit 0`."""
    return {(row["name"], row.get("binary", "")): (row["self"], row["total"], row["samples"]) for row in event["functions"]}
