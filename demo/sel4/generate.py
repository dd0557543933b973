#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes seL4 profiler data with known contents, in every format the profiler has had.

generate.py ELF_DIR OUT_DIR [--form json|json-last|json2|pb|serial] [--scale N] [--plan FILE]

The plan says how many samples each stack has. Addresses come from the ELFs: for the leaf any
instruction of the function, for a caller a return address after a call of the next function. Writes
the samples, and truth.folded with the stacks that a correct reader finds. The output is the same in
every run.
"""
import argparse
import json
import os
import random
import struct

PERIOD = 1200000
TICK_NS = 10048


class Elf:
    """Functions of an AArch64 ELF, and the calls in them."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read()
        shoff, = struct.unpack_from("<Q", self.data, 40)
        entsize, count = struct.unpack_from("<HH", self.data, 58)
        self.sections = [struct.unpack_from("<IIQQQQIIQQ", self.data, shoff + i * entsize)
                         for i in range(count)]
        self.functions = {}
        for section in self.sections:
            if section[1] == 2:  # SHT_SYMTAB
                self.read_symbols(section)

    def read_symbols(self, section):
        names = self.sections[section[6]][4]
        for at in range(section[4], section[4] + section[5], 24):
            name, info, _, _, value, size = struct.unpack_from("<IBBHQQ", self.data, at)
            if info & 15 == 2 and size:  # STT_FUNC
                end = self.data.index(b"\0", names + name)
                self.functions[self.data[names + name:end].decode()] = (value, size)

    def word(self, address):
        for section in self.sections:
            if section[3] and section[3] <= address < section[3] + section[5]:
                return struct.unpack_from("<I", self.data, section[4] + address - section[3])[0]
        raise ValueError(f"no code at {address:#x}")

    def returns(self, caller, callee):
        """Return addresses in `caller` after its calls (bl) of `callee`."""
        start, size = self.functions[caller]
        found = []
        for pc in range(start, start + size, 4):
            word = self.word(pc)
            if word >> 26 == 0b100101:
                offset = (word & 0x3ffffff) - ((word & 0x2000000) << 1)
                if pc + 4 * offset == self.functions[callee][0]:
                    found.append(pc + 4)
        if not found:
            raise ValueError(f"{caller} does not call {callee}")
        return found


def make_samples(plan, elf_dir, scale):
    rng = random.Random(1)
    samples = []
    for name, program in plan["programs"].items():
        elf = Elf(os.path.join(elf_dir, name))
        for stack, count in program["stacks"].items():
            frames = stack.split(";")
            start, size = elf.functions[frames[-1]]
            callers = [elf.returns(a, b) for a, b in zip(frames, frames[1:])]
            for _ in range(count * scale):
                ips = [rng.choice(choices) for choices in reversed(callers)]
                samples.append({"ip": start + 4 * rng.randrange(size // 4), "ips": ips,
                                "pid": program["pid"]})
    rng.shuffle(samples)
    for i, sample in enumerate(samples):
        sample["time"] = 99088495 + i * TICK_NS
        sample["cpu"] = i % 2 if plan.get("cpus", 1) > 1 else 0
    return samples


def padded(sample):
    """The profiler always sends 16 addresses; those after nr are left over from before."""
    return (sample["ips"] + [0xdead0000 + i for i in range(16)])[:16]


def as_json(sample):
    return {"ip": str(sample["ip"]), "pid": sample["pid"], "time": str(sample["time"]),
            "period": str(PERIOD), "ips": [str(ip) for ip in padded(sample)],
            "cpu": sample["cpu"], "nr": str(len(sample["ips"]))}


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def as_protobuf(sample):
    out = b""
    for number, value in ((1, sample["ip"]), (2, sample["pid"]), (3, sample["time"]),
                          (4, sample["cpu"]), (5, PERIOD), (6, len(sample["ips"]))):
        if value:
            out += varint(number << 3) + varint(value)
    packed = b"".join(varint(ip) for ip in padded(sample))
    return out + b"\x3a" + varint(len(packed)) + packed


def as_serial(sample):
    lines = ["{", f'\t"ip": "{sample["ip"]:x}"', f'\t"pid": {sample["pid"]}',
             f'\t"time": "{sample["time"]}"', f'\t"cpu": {sample["cpu"]}',
             f'\t"period": "{PERIOD}"', f'\t"nr": "{len(sample["ips"])}"', '\t"ips": [']
    ips = [f'\t\t"{ip}"' for ip in padded(sample)]
    return "\n".join(lines) + "\n" + ",\n".join(ips) + "\n]\n}\n"


def write_json(path, samples, mappings, where):
    mapping = f'"elf_tcb_mappings": {json.dumps(mappings)}'
    with open(path, "w", encoding="utf-8") as f:
        f.write("{\n" + (mapping + ",\n" if where == "first" else ""))
        f.write('"samples": [\n')
        f.write(",".join(json.dumps(as_json(s), indent=2) for s in samples))
        f.write("\n]\n" + (",\n" + mapping if where == "last" else "") + "}\n")
    if where == "apart":
        with open(os.path.join(os.path.dirname(path), "sample_header.json"), "w",
                  encoding="utf-8") as f:
            f.write("{" + mapping + "}\n")


def write_protobuf(path, samples, mappings):
    with open(path, "wb") as f:
        f.write(b"100 SEL4 PROFILING CLIENT\n200 OK (Ready to go)\n")
        for name, pid in mappings.items():
            f.write(f"{name}: {pid}\n".encode())
        for i, sample in enumerate(samples):
            message = as_protobuf(sample)
            # The board sends only two digits, whatever the length.
            f.write(str(len(message)).zfill(2)[:2].encode() + message)
            if i % 1000 == 999:
                f.write(b"400 ERROR\n")


def write_serial(path, samples):
    with open(path, "w", encoding="utf-8") as f:
        f.write("Booting all finished, dropped to user space\n")
        for i, sample in enumerate(samples):
            f.write(as_serial(sample))
            if i % 1000 == 999:
                f.write("MON|INFO: something else\n")


def write_truth(path, plan, scale):
    with open(path, "w", encoding="utf-8") as f:
        for name, program in plan["programs"].items():
            for stack, count in program["stacks"].items():
                f.write(f"{name};{stack} {count * scale}\n")


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("elf_dir")
    parser.add_argument("out_dir")
    parser.add_argument("--form", choices=["json", "json-last", "json2", "pb", "serial"], default="json")
    parser.add_argument("--scale", type=int, default=1)
    parser.add_argument("--plan", default=os.path.join(here, "plan.json"))
    args = parser.parse_args()

    with open(args.plan, encoding="utf-8") as f:
        plan = json.load(f)
    os.makedirs(args.out_dir, exist_ok=True)
    if args.form == "json2":  # there, a pid is the index among the profiler's children
        for place, program in enumerate(plan["programs"].values()):
            program["pid"] = place
    samples = make_samples(plan, args.elf_dir, args.scale)
    mappings = {name: program["pid"] for name, program in plan["programs"].items()}
    out = os.path.join(args.out_dir, "samples.json")
    if args.form == "json2":
        for sample in samples:  # nanoseconds, truncated to 32 bits
            sample["time"] = sample["time"] * 100 & 0xffffffff
        write_json(out, samples, mappings, "apart")
    elif args.form.startswith("json"):
        write_json(out, samples, mappings, "last" if args.form == "json-last" else "first")
    elif args.form == "pb":
        write_protobuf(os.path.join(args.out_dir, "samples.pb"), samples, mappings)
    else:
        write_serial(os.path.join(args.out_dir, "samples.txt"), samples)
    write_truth(os.path.join(args.out_dir, "truth.folded"), plan, args.scale)


if __name__ == "__main__":
    main()
