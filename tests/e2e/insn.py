#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""kscope insn: every instruction of a trace, against what QEMU executed, what perf decodes, and objdump.

Truth comes from tests/pt/truth.c, a plugin of its own in the same QEMU."""
import array
import bisect
import collections
import itertools
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import (BUILD, KSCOPE, ROOT, check, emulate, equal, exits, finish, guests, kscope,
                 no_problems, run, scratch, skip, styles)

PLUGIN = os.path.join(BUILD, "kscope-qemu.so")
LONGEST = 1000000  # instructions of a guest that are compared
EXIT = ["-device", "isa-debug-exit,iobase=0xf4,iosize=4"]
MACHINES = {
    "x86_64": EXIT,
    "i386": EXIT,
    "aarch64": ["-M", "virt", "-cpu", "cortex-a57"],
    "arm": ["-M", "virt", "-cpu", "cortex-a15"],
    "riscv64": ["-M", "virt", "-bios", "none"],
    "riscv32": ["-M", "virt", "-bios", "none"],
}
# A thread of a program that is killed, or a guest that powers off, ends in a block that QEMU has begun.
LAST_BLOCK = emulate.LAST_BLOCK
LINE = re.compile(r" *(?P<comm>.+?) +(?P<tid>\d+)(?: \[(?P<cpu>\d+)\])? +(?P<time>\d+\.\d{9}): +"
                  r"(?P<address>[0-9a-f]+) (?P<symbol>\S+) \((?P<binary>[^)]+)\) +(?P<text>.*?) *"
                  r"(?:  # (?P<source>.*))?$")


# ---- guests ----

def truth_of(folder):
    """The addresses of a guest with one CPU."""
    words = array.array("Q")
    names = sorted(os.listdir(folder), key=lambda name: os.path.getsize(os.path.join(folder, name)))
    with open(os.path.join(folder, names[-1]), "rb") as f:
        words.frombytes(f.read())
    return itertools.takewhile(bool, words)


def of_kernel(addresses, kernel):
    """
    Those in the kernel, from its main function on: before, a 64-bit kernel of x86 has 32-bit code, which its
    binary does not tell. QEMU begins an instruction with a rep prefix for each of its rounds.
    """
    ranges = sorted(code_ranges(kernel))
    starts = [start for start, _ in ranges]
    match = re.search(r"^([0-9a-f]+) . guest_main$", run("llvm-nm", kernel).stdout, re.M)
    last, main = None, int(match[1], 16) & ~1
    for address in itertools.dropwhile(lambda address: address != main, addresses):
        at = bisect.bisect(starts, address) - 1
        if at >= 0 and address < ranges[at][1] and address != last:
            yield address
        last = address


def code_ranges(elf):
    lines = run("llvm-readelf", "-lW", elf).stdout.splitlines()
    for words in (line.split() for line in lines if line.strip().startswith("LOAD") and " E " in
                  line[line.index("0x"):].replace("R E", " E ").replace("RWE", " E ")):
        start = int(words[2], 16)
        yield start, start + int(words[5], 16)


def addresses(recording, *words):
    """Ends when nobody reads on."""
    process = subprocess.Popen([KSCOPE, "insn", "-q", "--addresses", recording, *words], text=True,
                               stdout=subprocess.PIPE)
    for line in process.stdout:
        fields = line.split()
        if len(fields) == 2:
            yield int(fields[1], 16)
    process.stdout.close()
    process.wait()


def compare(name, recording, folder, kernel, *words):
    got = list(itertools.islice(of_kernel(addresses(recording, "--kernel", kernel, *words), kernel),
                                LONGEST))
    want = list(itertools.islice(of_kernel(truth_of(folder), kernel), LONGEST))
    same = next((i for i, (a, b) in enumerate(zip(got, want)) if a != b), min(len(got), len(want)))
    check(f"{name}: {len(want)} instructions are what QEMU executed",
          len(want) > 100000 and max(len(got), len(want)) - same <= (same < LONGEST) * LAST_BLOCK,
          f"{len(got)}, {len(want)}, number {same}: {list(map(hex, got[max(same - 3, 0):same + 3]))}, "
          f"want {list(map(hex, want[max(same - 3, 0):same + 3]))}")


def plugins(folder, recording, truth):
    os.makedirs(os.path.join(folder, "truth"))
    return ["-plugin", f"{PLUGIN},mode=trace,out={recording}",
            "-plugin", f"{truth},out={os.path.join(folder, 'truth')}"]


def test_machine(folder, truth, which, arch):
    """Straight code and loops, on every machine."""
    elf, recording = os.path.join(folder, "guest.elf"), os.path.join(folder, "guest.kscope")
    made = run(os.path.join(ROOT, "tests/guest/build"), arch, elf, "-DROUNDS=20")
    exits(f"{which} {arch}: builds", made, 0)
    run(guests.qemu(f"qemu-system-{arch}", which), *MACHINES[arch], "-display", "none", "-kernel",
        elf + ".boot" if arch == "x86_64" else elf, *plugins(folder, recording, truth))
    compare(f"{which} {arch}", recording, os.path.join(folder, "truth"), elf)
    test_disassembly(f"{which} {arch}", recording, elf, arch)


def test_interrupts(folder, truth, which, arch, style):
    """Threads that interrupts switch."""
    guest, recording = styles.build(arch, style), os.path.join(folder, "guest.kscope")
    done = guests.boot(guest, which, [*guests.ICOUNT, *plugins(folder, recording, truth)])
    check(f"{which} {arch} {style}: ends", done.ended, done.errors[-500:])
    compare(f"{which} {arch} {style}", recording, os.path.join(folder, "truth"), guest.kernel)


# ---- text ----

def disassemble(tool, *words):
    """{address: (its bytes as a number, the first word, the whole)}"""
    rows = {}
    for line in run(tool, "-d", *words).stdout.splitlines():
        match = re.match(r"\s*([0-9a-f]+):\s+((?:[0-9a-f]{2,8} )+)\s*(\S.*)?$", line)
        if match and match[3]:
            text = match[3].strip()
            digits = match[2].split()
            number = int("".join(digits if len(digits[0]) > 2 else reversed(digits)), 16)
            rows[int(match[1], 16)] = (number, text.split()[0], text)
    return rows


def lines_of(recording, *words):
    """The instructions in the text: {(binary, address): match}, and the lines that are none."""
    done = kscope("insn", recording, *words)
    found, others = {}, collections.Counter()
    for line in done.stdout.splitlines():
        match = LINE.match(line)
        if match:
            found[match["binary"], int(match["address"], 16)] = match
        else:
            others[line] += 1
    return found, others


def same_word(got, want):
    """x86 has many names for doing nothing, which may come with prefixes, and Arm has two for a constant."""
    text = want[2].split("#")[0]
    return got.split()[0] in (want[1], want[1] + "z", want[1] + "n") or (got.startswith("nop") and "nop" in text) or \
        (want[1] in ("rep", "repz", "repnz", "lock", "bnd", "notrack") and got.split()[0][:3] == want[1][:3])


def compare_text(name, got, want):
    """{address: text} against what objdump says."""
    problems = [f"{address:#x}: {text}, not {want.get(address, ('', '', 'an instruction'))[2]}"
                for address, text in got.items()
                if address not in want or not same_word(text, want[address])]
    no_problems(f"{name}: the {len(got)} instructions are those of objdump", problems[:20])
    check(f"{name}: has instructions to compare", len(got) > 20, len(got))


def test_disassembly(name, recording, elf, arch):
    got, _ = lines_of(recording, "--kernel", elf)
    want = disassemble("llvm-objdump", *(["--triple=armv7a", "--mattr=+virtualization"] if arch == "arm" else []), elf)
    got = {address: match["text"] for (_, address), match in got.items()}
    if arch.startswith("riscv"):
        # Capstone disassembles it since version 5; before, there are the bytes.
        raw = {address: text.split()[1] for address, text in got.items()
               if text.startswith((".word", ".short"))}
        no_problems(f"{name}: the bytes are those of objdump",
                    [f"{address:#x}: {word}" for address, word in raw.items()
                     if int(word, 16) != want.get(address, (0,))[0]])
        got = {address: text for address, text in got.items() if address not in raw}
        check(f"{name}: has instructions to compare", raw or got)
        return
    if arch in ("x86_64", "i386"):
        want = disassemble("objdump", elf)
    compare_text(name, got, want)


# ---- Intel PT ----

def by_thread(text):
    threads = {}
    for line in text.splitlines():
        tid, address = line.split()[:2]
        threads.setdefault(int(tid), []).append(int(address, 16))
    return threads


def test_pt(name, folder, qemu, truth, program, faults=()):
    """Equal to the truth and to perf, thread by thread. Returns the recording."""
    emulation = emulate.Emulation(folder, qemu, truth)
    exits(f"{name}: records", emulation.record(program), 0, "wrote")
    done = kscope("insn", "--addresses", emulation.path)
    exits(f"{name}: prints", done, 0)
    equal(f"{name}: knows all code", [line for line in done.stdout.splitlines() if "instr" in line], [])
    got, perf = by_thread(done.stdout), emulate.by_perf(emulation.path)[0]
    check(f"{name}: {sum(map(len, perf.values()))} instructions, as perf", got == perf,
          [(tid, len(got.get(tid, [])), len(perf.get(tid, []))) for tid in got.keys() | perf.keys()])
    executed = {tid: [[address for address in part if address not in faults] for part in programs]
                for tid, programs in emulation.truth().items()}
    no_problems(f"{name}: as executed",
                [f"{tid}: {why}" for tid in executed
                 if (why := emulate.first_difference(got.get(tid, []), executed[tid],
                                                     tid != min(executed)))])
    return emulation.path, got


def bases(recording):
    """Where binaries are: {path: address of its first byte}"""
    maps = run("perf", "script", "-i", recording, "--show-mmap-events").stdout
    found = {}
    for start, offset, path in re.findall(
            r"PERF_RECORD_MMAP2 .*?\[(0x[0-9a-f]+)\(0x[0-9a-f]+\) @ (0x[0-9a-f]+|0) .*?\]: r-xp (\S+)", maps):
        found[path] = int(start, 16) - int(offset, 16)
    return found


def test_pt_text(recording):
    """The loader and the C library: much of what compilers write."""
    maps = bases(recording)
    loaders = [path for path in maps if re.search(r"/ld-linux|/libc\.so", path)]
    check("Intel PT: the loader is in the trace", loaders, maps)
    for syntax in ["att", "intel"]:
        found, others = lines_of(recording, "--syntax", syntax)
        equal(f"Intel PT: {syntax}: all lines are instructions", dict(others), {})
        for path in loaders:
            want = disassemble("objdump", "-M", syntax, path)
            compare_text(f"Intel PT: {syntax}: {os.path.basename(path)}",
                         {address - maps[path]: match["text"]
                          for (binary, address), match in found.items()
                          if binary == os.path.basename(path)}, want)


def test_symbols(program, recording):
    """Functions, offsets and lines, against nm and addr2line."""
    found, _ = lines_of(recording)
    names, problems, mine = emulate.symbols(program), [], []
    for (binary, address), match in found.items():
        function, _, offset = match["symbol"].rpartition("+")
        if binary != os.path.basename(program) or function not in names:
            continue
        mine.append((address, match["source"]))
        if names[function] + int(offset, 16) != address:
            problems.append(match[0])
    no_problems("Intel PT: addresses are function+offset", problems[:10])
    check("Intel PT: functions of the program", len(mine) > 100, len(mine))
    asked = run("addr2line", "-e", program, *(hex(address) for address, _ in mine)).stdout.splitlines()
    want = [os.path.basename(line.split(" ")[0]) for line in asked]
    no_problems("Intel PT: source lines are those of addr2line",
                [f"{address:#x}: {source}, not {line}" for (address, source), line in zip(mine, want)
                 if "?" not in line and (source or "").split(" ")[0] != line][:10])


def test_selection(recording, whole):
    """Threads and times partition the instructions."""
    parts = {tid: by_thread(kscope("insn", "--addresses", "--tid", str(tid), recording).stdout)
             for tid in whole}
    check("Intel PT: --tid: each thread alone", parts == {tid: {tid: whole[tid]} for tid in whole})
    times = sorted(float(match["time"]) for match in lines_of(recording)[0].values())
    middle = f"{times[len(times) // 2]:.9f}"
    first, second = (by_thread(kscope("insn", "--addresses", "--time", span, recording).stdout)
                     for span in (f",{middle}", f"{middle},"))
    joined = {tid: first.get(tid, []) + second.get(tid, []) for tid in first.keys() | second.keys()}
    check("Intel PT: --time: two parts are the whole", joined == whole and first and second,
          [(tid, len(joined.get(tid, [])), len(whole[tid])) for tid in whole])


def test_words(folder, recording):
    samples = os.path.join(folder, "x.folded")
    with open(samples, "w", encoding="ascii") as f:
        f.write("main;work 3\n")
    exits("samples have no instructions", kscope("insn", samples), 3, "no trace of branches")
    exits("one output", kscope("insn", recording, "-o", "a", "-o", "b"), 2, "use one -o")
    out = os.path.join(folder, "out.txt")
    exits("-o writes a file", kscope("insn", "--addresses", recording, "-o", out), 0)
    with open(out, encoding="ascii") as f:
        check("the file is what stdout gets",
              f.read() == kscope("insn", "--addresses", recording).stdout)


def all_pt(truth):
    why = emulate.why_not()
    if why:
        skip("Intel PT", why)
        return
    for name, qemu in emulate.qemus():
        with scratch() as folder:
            signals = emulate.build("signals", folder, "-no-pie")
            faults = {address for label, address in emulate.symbols(signals).items()
                      if label.startswith("fault_")}
            recording, whole = test_pt(f"{name}: signals", os.path.join(folder, "s"), qemu, truth,
                                       signals, faults)
            test_symbols(signals, recording)
            test_pt_text(recording)
            threads = emulate.build("threads", folder)
            recording, whole = test_pt(f"{name}: threads", os.path.join(folder, "t"), qemu, truth, threads)
            test_selection(recording, whole)
            test_words(folder, recording)


def main():
    if guests.missing():
        skip("insn", guests.missing())
        return finish()
    with scratch() as programs:
        truth = emulate.build_truth(programs)
        all_pt(truth)
        for which in guests.QEMUS:
            for arch in MACHINES:
                with scratch() as folder:
                    test_machine(folder, truth, which, arch)
            for arch, style in [("x86_64", "trap"), ("aarch64", "trap"), ("riscv64", "trap"),
                                ("cortex-m3", "cortex")]:
                with scratch() as folder:
                    test_interrupts(folder, truth, which, arch, style)
    return finish()


if __name__ == "__main__":
    sys.exit(main())
