# SPDX-License-Identifier: GPL-2.0-or-later
"""target/microkit without an SDK: a stand-in of the SDK to build against, and a kernel that runs kscope's protection
domains as processes, with children whose doings are known.

    sdk = stand_in_sdk(folder)
    make(build, sdk, "debug")
    build_program(build, "debug")
    with World(build, "demo.system", script) as world:
        world.command("start")
        world.run(1_000_000_000)
"""
import collections
import ctypes
import mmap
import os
import re
import struct
import subprocess
import xml.etree.ElementTree as xml
from dataclasses import dataclass, field

from . import HANGS, ROOT, run

HERE = os.path.join(ROOT, "tests", "microkit")
SOURCES = os.path.join(ROOT, "target", "microkit")
DEMO = os.path.join(SOURCES, "demo")
ARM = ["clang", "--target=aarch64-none-elf"]
TIMER, COUNTERS, UART = 30, 23, 33
PMU_FAULT, VM_FAULT = 10, 5
TCB_CAP, USER_CAP = 202, 458
CLOCK = 0x08000000
REGISTERS = ["pc", "sp", "spsr", *(f"x{i}" for i in range(9)), "x16", "x17", "x18", "x29", "x30",
             *(f"x{i}" for i in range(9, 16)), *(f"x{i}" for i in range(19, 29)), "tpidr_el0", "tpidrro_el0"]


def must(*command, **more):
    done = run(*command, **more)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: {(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


def stand_in_sdk(folder, configs=("debug", "smp-debug", "profiling")):
    sdk = os.path.join(folder, "sdk")
    os.makedirs(os.path.join(sdk, "bin"))
    os.symlink(os.path.join(HERE, "tool"), os.path.join(sdk, "bin", "microkit"))
    for config in configs:
        board = os.path.join(sdk, "board", "qemu_virt_aarch64", config)
        lib = os.path.join(board, "lib")
        os.makedirs(lib)
        os.symlink(os.path.join(HERE, "include"), os.path.join(board, "include"))
        os.symlink(os.path.join(HERE, "microkit.ld"), os.path.join(lib, "microkit.ld"))
        must(*ARM, "-O1", "-ffreestanding", "-fno-omit-frame-pointer", *defines(config), f"-I{HERE}/include", "-c",
             f"{HERE}/stand_in_arm.c", "-o", f"{lib}/stand_in_arm.o")
        must("ar", "rcs", f"{lib}/libmicrokit.a",
             f"{lib}/stand_in_arm.o")
    return sdk


def defines(config):
    return ["-DCONFIG_PROFILER_ENABLE"] if config == "profiling" else []


def make(build, sdk, config, *more):
    cflags = " ".join(["-O2", "-g", *defines(config)])
    env = {k: v for k, v in os.environ.items() if k not in ("CFLAGS", "BUILD", "MAKEFLAGS", "CC")}
    return run("make", "-C", SOURCES, f"BUILD_DIR={build}", f"MICROKIT_SDK={sdk}",
               "MICROKIT_BOARD=qemu_virt_aarch64", f"MICROKIT_CONFIG={config}", f"CFLAGS={cflags}", *more, env=env)


def compile_part(build, name):
    """Compiles one file of target/microkit for AArch64, against the stand-ins."""
    return run(*ARM, "-std=gnu11", "-O2", "-ffreestanding", "-Wall", "-Wextra", "-Werror", f"-I{HERE}/include",
               f"-I{ROOT}", f"-I{ROOT}/target", f"-I{SOURCES}", "-c", os.path.join(SOURCES, f"{name}.c"), "-o",
               os.path.join(build, f"{name}.o"))


def build_program(build, config):
    """kscope's program for the host, with the tables of a build."""
    sampler = [os.path.join(ROOT, "target", name) for name in sorted(os.listdir(os.path.join(ROOT, "target")))
               if name.endswith(".c") and not name.startswith("pmu_")]
    parts = [os.path.join(SOURCES, f"{name}.c") for name in ("main", "port", "profiler", "children", "client")]
    program = os.path.join(build, "program")
    must("cc", "-std=gnu11", "-D_GNU_SOURCE", "-O1", "-g", "-no-pie", "-Wall", "-Wextra", "-Wno-unused-parameter",
         "-Werror", *defines(config), f"-I{HERE}/include", f"-I{ROOT}", f"-I{ROOT}/target", f"-I{SOURCES}", *sampler,
         *parts, f"{build}/tables.c", f"{HERE}/stand_in.c", "-o", program)
    return program


class Program:
    """An ELF file for AArch64, as the linker of the demo makes it: its code is in one piece."""

    def __init__(self, path):
        listing = [line.split() for line in must("nm", "-S", path).splitlines()]
        self.symbols = {words[-1]: int(words[0], 16) for words in listing}
        self.sizes = {words[-1]: int(words[1], 16) for words in listing if len(words) == 4}
        with open(path, "rb") as f:
            self.data = f.read()
        at, = struct.unpack_from("<Q", self.data, 32)
        _, _, self.offset, self.address = struct.unpack_from("<IIQQ", self.data, at)

    def call(self, caller, callee):
        """Where the first call of one function in another returns to."""
        start = self.symbols[caller]
        for address in range(start, start + self.sizes[caller], 4):
            word, = struct.unpack_from("<I", self.data, address - self.address + self.offset)
            distance = ((word & 0x3ffffff ^ 0x2000000) - 0x2000000) * 4
            if word >> 26 == 0x25 and address + distance == self.symbols[callee]:
                return address + 4
        raise RuntimeError(f"{caller} does not call {callee}")


@dataclass
class Child:
    """A profiled protection domain: where it is, and what its registers are."""
    name: str
    id: int
    cpu: int
    task: int
    window: int = 0   # where its stack is, for itself
    memory: object = None
    registers: dict = field(default_factory=lambda: dict.fromkeys(REGISTERS, 0))
    flags: int = 0
    consumed: int = 0

    def be_at(self, stack, link):
        """stack: from the pc to the outermost caller, without the one in the link register."""
        self.registers |= {"pc": stack[0], "x30": link, "x29": 0, "sp": self.window}
        frames = stack[1:]
        for i, address in enumerate(frames):
            last = i == len(frames) - 1
            here = self.window + 0x100 + 32 * i
            self.memory[here - self.window:here - self.window + 16] = struct.pack(
                "<QQ", 0 if last else here + 32, address)
        if frames:
            self.registers["x29"] = self.window + 0x100


@dataclass
class Stretch:
    """What a cpu does for a while. child None: nothing. waits: where the child waits afterwards."""
    child: object
    ns: int
    stack: list = field(default_factory=list)
    link: int = 0
    waits: int = 0


@dataclass
class Moment:
    """What was true when a profiler was interrupted."""
    child: object
    stack: tuple
    link: int
    since: int   # when it began to run
    before: bool  # whether the one before it goes on later


class Domain:
    """A protection domain of kscope, as a process."""

    def __init__(self, world, name, command):
        self.world, self.name = world, name
        self.pending, self.unacked = [], set()
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)

    def say(self, line):
        self.process.stdin.write(f"{line}\n".encode())
        self.process.stdin.flush()

    def until_done(self):
        """Answers what the domain asks for, until its entry point returns."""
        while True:
            what, first, second = self.process.stdout.readline().decode().split() or ["", 0, 0]
            first, second = int(first), int(second)
            if what == "done":
                self.say(0)
                return first
            data = self.process.stdout.read(first) if what == "send" else b""
            self.say(self.world.answer(self, what, first, second, data))

    def happen(self, line):
        self.say(line)
        return self.until_done()

    def end(self):
        self.process.stdin.close()
        errors = self.process.stderr.read().decode()
        self.process.stdout.close()
        self.process.stderr.close()
        self.process.wait(HANGS)
        return errors


class World:
    def __init__(self, build, system, script):
        """script: (world) -> {cpu: an endless iterator of Stretch}"""
        self.root = xml.parse(os.path.join(DEMO, system)).getroot()
        self.build, self.program = build, os.path.join(build, "program")
        self.now, self.alarm, self.owner = 1_000_000_000, None, None
        self.overflow, self.overflowed = None, 0
        self.output, self.input, self.errors = b"", collections.deque(), {}
        self.moments, self.acks = {}, collections.Counter()
        self.files = {}
        self.channels = self.find_channels()
        self.children, nodes = self.find_children()
        self.clock = self.shared("clock", 4096)
        self.tick(0)
        self.domains = {name: Domain(self, name, [self.program, name, f"{self.file('clock')}:{CLOCK:#x}",
                                                  *self.maps(node)]) for name, node in nodes.items()}
        self.plan = script(self)
        self.at = {cpu: [next(plan), 0] for cpu, plan in self.plan.items()}
        self.before = dict.fromkeys(self.plan)
        for cpu in self.plan:
            self.begin(cpu)

    def __enter__(self):
        for domain in self.domains.values():
            domain.until_done()
        self.deliver()
        return self

    def __exit__(self, *what):
        self.errors = {name: domain.end() for name, domain in self.domains.items()}

    # ---- the system description ----

    def find_channels(self):
        """{(domain, channel): (domain, channel)}"""
        channels = {}
        for node in self.root.findall("channel"):
            one, two = [(end.get("pd"), int(end.get("id"))) for end in node.findall("end")]
            channels[one], channels[two] = two, one
        return channels

    def find_children(self):
        """Children in the order of their tasks, and the nodes of kscope's domains."""
        children, nodes = [], {}
        for node in self.root.findall("protection_domain"):
            nodes[node.get("name")] = node
            for inner in node.findall("protection_domain"):
                child = Child(inner.get("name"), int(inner.get("id")), int(inner.get("cpu", "0")), len(children) + 1)
                if child.name == "client":
                    nodes["client"] = inner
                for found in inner.findall("map"):
                    if found.get("setvar_vaddr") == "kscope_stack":
                        child.window = int(found.get("vaddr"), 0)
                        child.memory = self.shared(found.get("mr"), self.size_of(found.get("mr")))
                children.append(child)
        return children, nodes

    def size_of(self, region):
        return next(int(node.get("size"), 0) for node in self.root.findall("memory_region")
                    if node.get("name") == region)

    def file(self, name):
        return os.path.join(self.build, f"{name}.region")

    def shared(self, name, size):
        if name not in self.files:
            with open(self.file(name), "w+b") as f:
                f.truncate(size)
                self.files[name] = mmap.mmap(f.fileno(), size)
        return self.files[name]

    def maps(self, node):
        """kscope's region first, as the stand-in expects it."""
        found = sorted(node.findall("map"), key=lambda m: m.get("setvar_vaddr") != "kscope_region")
        for m in found:
            if m.get("mr") != "uart":
                self.shared(m.get("mr"), self.size_of(m.get("mr")))
        return [f"{self.file(m.get('mr'))}:{m.get('vaddr')}" for m in found if m.get("mr") != "uart"]

    def interrupt(self, number):
        """(domain, channel) of an interrupt."""
        for node in self.root.iter("protection_domain"):
            for irq in node.findall("irq"):
                if int(irq.get("irq")) == number:
                    return self.domains[node.get("name")], int(irq.get("id"))
        return None, None

    def cpu_of(self, domain):
        return next(int(node.get("cpu", "0")) for node in self.root.iter("protection_domain")
                    if node.get("name") == domain.name)

    def child_of(self, domain, capability):
        return next(child for child in self.children
                    if child.cpu == self.cpu_of(domain) and child.id == capability - TCB_CAP)

    # ---- what domains ask for ----

    def answer(self, domain, what, first, second, data):
        if what == "registers":
            return " ".join(str(self.child_of(domain, first).registers[name]) for name in REGISTERS)
        if what == "consumed":
            return self.consumed_of(domain, first - USER_CAP)
        if what == "receive":
            return self.input.popleft() + 1 if self.input else 0
        if what == "overflows":
            bits, self.overflowed = self.overflowed, 0
            return bits
        if what == "send":
            self.output += data
            return first
        if what == "notify":
            name, channel = self.channels[domain.name, first]
            target = self.domains[name]
            if f"notified {channel}" not in target.pending:
                target.pending.append(f"notified {channel}")
        elif what == "ack":
            domain.unacked.remove(first)
            self.acks[first] += 1
        elif what == "alarm":
            self.alarm, self.owner = self.now + first if first else None, domain
        elif what == "counter":
            self.overflow = self.now + second if second else None
        elif what == "flags":
            self.child_of(domain, first).flags |= second
        else:
            raise RuntimeError(f"{domain.name} asks for {what}")
        return 0

    def consumed_of(self, domain, slot):
        caps = [cap for node in self.root.iter("protection_domain") if node.get("name") == domain.name
                for cap in node.findall("cspace/cap_sc") if int(cap.get("slot")) == slot]
        child = next(child for child in self.children if child.name == caps[0].get("pd"))
        consumed, child.consumed = child.consumed, 0
        return consumed // 1000

    # ---- time ----

    def tick(self, ns):
        self.now += ns
        ctypes.c_uint64.from_buffer(self.clock).value = self.now

    def begin(self, cpu):
        stretch, _ = self.at[cpu]
        self.at[cpu][1] = self.now
        if stretch.child:
            stretch.child.be_at(stretch.stack, stretch.link)

    def go_on(self, cpu, until):
        """Runs the stretches of a cpu up to a time."""
        while self.now < until:
            stretch = self.at[cpu][0]
            ns = min(stretch.ns, until - self.now)
            stretch.ns -= ns
            self.tick(ns)
            if stretch.child:
                stretch.child.registers["x0"] += ns
                stretch.child.consumed += ns
            if stretch.ns:
                continue
            if stretch.child and stretch.waits:
                stretch.child.registers["pc"] = stretch.waits
            self.before[cpu] = stretch
            self.at[cpu][0] = next(self.plan[cpu])
            self.begin(cpu)

    def pass_time(self, until):
        start = self.now
        for cpu in self.plan:
            self.now = start
            self.go_on(cpu, until)
        self.now = until
        self.tick(0)

    # ---- what happens ----

    def remember(self, cpu):
        stretch, since = self.at[cpu]
        before = self.before[cpu]
        self.moments[cpu, self.now] = Moment(stretch.child, tuple(stretch.stack), stretch.link, since,
                                             bool(before and before.child and not before.waits))

    def raise_interrupt(self, number):
        domain, channel = self.interrupt(number)
        domain.unacked.add(channel)
        domain.pending.append(f"notified {channel}")

    def deliver(self):
        """Lets the domains handle what is pending; kscope's profilers first."""
        order = sorted(self.domains.values(), key=lambda domain: domain.name == "client")
        while any(domain.pending for domain in order):
            domain = next(domain for domain in order if domain.pending)
            domain.happen(domain.pending.pop(0))

    def fire(self):
        for cpu in self.plan:
            self.remember(cpu)
        if self.alarm == self.now:
            self.alarm = None
            self.raise_interrupt(TIMER)
        if self.overflow == self.now:
            self.overflow, self.overflowed = None, 1
            child = self.at[0][0].child
            if child and child.flags & 2:
                domain, _ = self.interrupt(COUNTERS)
                domain.pending.append(f"fault {child.id} {PMU_FAULT} {child.registers['pc']} {child.registers['x29']}")
            self.raise_interrupt(COUNTERS)
        self.deliver()

    def run(self, ns):
        end = self.now + ns
        while True:
            due = [time for time in (self.alarm, self.overflow) if time is not None]
            until = max(self.now, min([end, *due]))
            self.pass_time(until)
            if until == end:
                return
            self.fire()

    def command(self, line):
        """What the client sends at once."""
        before = len(self.output)
        self.input.extend(f"{line}\n".encode())
        self.raise_interrupt(UART)
        self.deliver()
        return self.output[before:]

    # ---- children ----

    def child(self, name):
        return next(child for child in self.children if child.name == name)


def waits_in(build):
    """{program: addresses of its system calls}, from the tables."""
    with open(os.path.join(build, "tables.c"), encoding="ascii") as f:
        text = f.read()
    children = re.findall(r'\.elf = "([^"]+)".*?\.waits = (\w+)', text)
    lists = {name: [int(word, 16) for word in re.findall(r"0x\w+", body)]
             for name, body in re.findall(r"(waits_\d+)\[\] = \{([^}]*)\}", text)}
    return {elf: lists[name] for elf, name in children if name in lists}
