#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tables.py SYSTEM ELFS: prints the tables of system.h, for the system description SYSTEM and the programs in the
folder ELFS.

Protection domains that map a region with setvar_vaddr="kscope_region" are kscope's. Those that have an interrupt of the
timer or of the PMU, or children that are not kscope's, are profilers, and the other one is the client.
"""
import os
import struct
import sys
import xml.etree.ElementTree as xml

TIMER, COUNTERS = 30, 23  # the numbers of the interrupts, on all machines with a GIC
SVC = 0xd4000001
NONE = "SYSTEM_NONE"


def number(text):
    return int(text.replace("_", ""), 0)


class Domain:
    """A protection domain, as the description has it."""

    def __init__(self, node, parent):
        self.name, self.parent = node.get("name"), parent
        self.cpu = number(node.get("cpu", "0"))
        self.priority = number(node.get("priority", "0"))
        self.id = number(node.get("id", "0"))
        self.elf = node.find("program_image").get("path")
        self.maps = {m.get("mr"): m for m in node.findall("map")}
        self.irqs = {number(i.get("irq")): number(i.get("id")) for i in node.findall("irq")}
        self.times = {c.get("pd"): number(c.get("slot")) for c in node.findall("cspace/cap_sc")}
        regions = [m for m in node.findall("map") if m.get("setvar_vaddr") == "kscope_region"]
        self.region = number(regions[0].get("vaddr")) if regions else None
        self.is_profiler = bool(regions) and node.find("protection_domain") is not None


def domains(node, parent=None):
    for child in node.findall("protection_domain"):
        domain = Domain(child, parent)
        yield domain
        yield from domains(child, domain)


def check(good, why):
    if not good:
        sys.exit(f"tables.py: {why}")


class System:
    def __init__(self, path):
        root = xml.parse(path).getroot()
        self.domains = list(domains(root))
        self.sizes = {m.get("name"): number(m.get("size", "0")) for m in root.findall("memory_region")}
        self.channels = [[(e.get("pd"), number(e.get("id"))) for e in c.findall("end")]
                         for c in root.findall("channel")]
        ours = [d for d in self.domains if d.region is not None]
        clients = [d for d in ours if not d.is_profiler]
        self.profilers = {d.cpu: d for d in ours if d.is_profiler}
        check(len(clients) == 1, "there must be one client: a domain without children that maps the region kscope_region")
        self.client = clients[0]
        check(self.profilers, "there is no profiler: a domain with children that maps the region kscope_region")
        check(len({d.region for d in ours}) == 1, "all domains must map kscope_region at the same address")
        check(len(self.profilers) == len(ours) - 1, "two profilers have the same cpu")
        self.children = [d for d in self.domains if d.parent in self.profilers.values() and not d.is_profiler]
        for child in self.children:
            check(child.cpu == child.parent.cpu, f"{child.name} and its profiler have different cpus")
            check(child.id < 64, f"{child.name}: the id is too large")
        timers = {d.name: channel for d in self.profilers.values() for channel in [self.timer_of(d)] if channel != NONE}
        check(len(timers) < 2, "two profilers have the timer")
        self.timer = next((d for d in self.profilers.values() if d.name in timers), None)

    def channel(self, of, to):
        """The number that `of` uses for the channel to `to`."""
        for ends in self.channels:
            for (name, number_there), (other, _) in (ends, ends[::-1]):
                if name == of.name and other == to.name:
                    return number_there
        return NONE

    def timer_of(self, profiler):
        """The channel for the timer: of its interrupt, or to another domain that has the interrupt."""
        drivers = [d for d in self.domains if TIMER in d.irqs and d not in self.profilers.values()]
        return profiler.irqs.get(TIMER, self.channel(profiler, drivers[0]) if drivers else NONE)

    def profiler(self, cpu):
        domain = self.profilers.get(cpu)
        if not domain:
            return {"name": "0", **{key: NONE for key in
                                    ("timer", "counters", "tick", "client", "kick", "drive")}}
        row = {"name": f'"{domain.name}"', "timer": self.timer_of(domain),
               "counters": domain.irqs.get(COUNTERS, NONE), "tick": NONE, "drive": NONE,
               "client": self.channel(domain, self.client), "kick": self.channel(self.client, domain)}
        check(row["client"] != NONE, f"there is no channel between {domain.name} and {self.client.name}")
        if self.timer and domain is not self.timer:
            row["tick"] = self.channel(domain, self.timer)
            row["drive"] = self.channel(self.timer, domain)
            check(row["tick"] != NONE, f"there is no channel between {domain.name} and {self.timer.name}")
        return row

    def windows(self):
        """Regions that a child and its profiler both have."""
        for i, child in enumerate(self.children):
            for region, there in child.maps.items():
                here = child.parent.maps.get(region)
                if here is not None and there.get("setvar_vaddr") != "kscope_region":
                    yield {"child": i, "address": hex(number(there.get("vaddr"))),
                           "size": hex(self.sizes[region]), "here": hex(number(here.get("vaddr")))}


def waits(path):
    """Addresses of the instructions svc 0 in an ELF file for AArch64."""
    with open(path, "rb") as f:
        data = f.read()
    check(data[:6] == b"\x7fELF\x02\x01" and struct.unpack_from("<H", data, 18)[0] == 183,
          f"{path} is not an ELF file for AArch64")
    at, = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    found = []
    for i in range(count):
        kind, flags, offset, address, _, length = struct.unpack_from("<IIQQQQ", data, at + i * size)
        if kind == 1 and flags & 1:
            words = struct.unpack_from(f"<{length // 4}I", data, offset)
            found += [address + 4 * j for j, word in enumerate(words) if word == SVC]
    return sorted(found)


def table(kind, name, rows):
    print(f"\nconst struct system_{kind} system_{name}[] = {{")
    for row in rows:
        print("\t{ " + ", ".join(f".{key} = {value}" for key, value in row.items()) + " },")
    if not rows:
        print("\t{ 0 },")
    print(f"}};\nconst unsigned system_n_{name} = {len(rows)};")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    system = System(sys.argv[1])
    print("/* Made by tables.py. */\n#include \"system.h\"\n")
    children = []
    for i, child in enumerate(system.children):
        at = []
        if child is not system.client:  # whose program is not linked yet
            at = waits(os.path.join(sys.argv[2], child.elf))
            check(at, f"{child.elf} has no system calls")
            print(f"static const uint64_t waits_{i}[] = {{ {', '.join(map(hex, at))} }};")
        children.append({"name": f'"{child.name}"', "elf": f'"{os.path.basename(child.elf)}"', "cpu": child.cpu,
                         "id": child.id, "priority": child.priority,
                         "time": child.parent.times.get(child.name, NONE),
                         "waits": f"waits_{i}" if at else "0", "n_waits": len(at)})
    table("child", "children", children)
    table("window", "windows", list(system.windows()))
    table("profiler", "profilers", [system.profiler(cpu) for cpu in range(max(system.profilers) + 1)])


if __name__ == "__main__":
    main()
