#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Records with perf record, and compares kscope's samples with those of perf script.

It compares of each sample time, cpu, pid, tid, task name, event, period, the address and binary of
every frame, and its symbol if both have one. explained() has the differences that are intended.
The test records whole machines, so it runs alone. It does not compare the frames of programs that
happened to run at the same time, whose memory and files it does not know.
"""
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import finish, kscope, no_problems, perf, run, skip

RECORDINGS = [
    # name, arguments of perf record, what the program does
    ("plain", ["-e", "cpu-clock"], "L"),
    ("frame pointers", ["-e", "cpu-clock", "-g", "--sample-cpu"], "SL"),
    ("fixed period", ["-e", "cpu-clock", "-c", "500000", "-g"], "L"),
    ("threads", ["-e", "cpu-clock", "-F", "999", "-g", "--sample-cpu"], "T"),
    ("fork-heavy", ["-e", "cpu-clock", "-F", "999", "-g", "--sample-cpu"], "F"),
    ("all cpus", ["-e", "cpu-clock", "-g", "-a"], "TFSL"),
    ("compressed", ["-z", "-e", "cpu-clock", "-g", "-a"], "TFSL"),
    ("several events", ["-e", "cpu-clock,page-faults,context-switches", "-g", "--sample-cpu",
                        "--switch-events"], "TFSL"),
    ("group", ["-e", "{cpu-clock,page-faults}:S", "-g", "--sample-cpu"], "TSL"),
    ("build ids in maps", ["--buildid-mmap", "-e", "cpu-clock", "-g"], "FL"),
    ("user only", ["-e", "cpu-clock:u", "-g"], "TSL"),
    ("DWARF", ["-e", "cpu-clock", "--call-graph", "dwarf", "--sample-cpu"], "SL"),
    ("DWARF, small stack", ["-e", "cpu-clock", "--call-graph", "dwarf,1024"], "TL"),
    ("DWARF, forks", ["-e", "cpu-clock", "--call-graph", "dwarf"], "FL"),
]
LEAST = 5  # samples: a tenth of what a slow machine records


def in_folded(name):
    """A name as it is in folded text, where our names come from and a semicolon ends a frame."""
    return name.replace(";", ":")


def explained(i, ours, theirs, name):
    """Whether the difference between our name and perf's for frame i is intended."""
    _, symbol, offset, dso = theirs[i]
    symbol = in_folded(symbol.split("@")[0])
    if symbol == "[unknown]" or name == "[unknown]" or "+0x" in name:
        return True  # one of the two has no name
    # A call at the very end of a function: perf looks up the return address, which is in the next
    # function; kscope looks up the call.
    if i > 0 and offset == 0:
        return True
    # DWARF has the name of the source, the symbol table that of a clone or a part.
    if symbol.split(".")[0] == name.split(".")[0]:
        return True
    # perf omits the parameters and the result of C++ functions, and does not demangle Rust.
    if symbol + "(" in name or symbol.startswith("_R"):
        return True
    return same_address(symbol, name, dso)


ALIASES = {}  # {binary: {name: addresses}}


def symbols_of(dso):
    if dso.startswith("[kernel"):
        with open("/proc/kallsyms") as f:
            return [line.split()[2::-2] for line in f]
    files, pairs = [dso], []
    notes = run("readelf", "-n", dso).stdout
    found = re.search(r"Build ID: (..)(\S+)", notes)
    if found:
        files.append("/usr/lib/debug/.build-id/%s/%s.debug" % found.groups())
    for file in files:
        for line in run("readelf", "-sW", file).stdout.splitlines():
            words = line.split()
            if len(words) == 8 and words[3] in ("FUNC", "NOTYPE", "IFUNC"):
                pairs.append((words[7].split("@")[0], words[1]))
    return pairs + demangled(pairs)


def demangled(pairs):
    """The names with parameters, as kscope has them, and without, as perf has them."""
    mangled = [p for p in pairs if p[0].startswith("_Z")]
    text = "\n".join(p[0] for p in mangled).encode()
    result = []
    for args in ((), ("-p",)):
        names = run("c++filt", *args, input=text).stdout.split("\n")
        result += [(name, p[1]) for name, p in zip(names, mangled)]
    return result


def aliases(dso):
    if dso not in ALIASES:
        ALIASES[dso] = {}
        for name, address in symbols_of(dso):
            ALIASES[dso].setdefault(name, set()).add(address)
    return ALIASES[dso]


def same_address(a, b, dso):
    """Whether both names have the same address: perf and kscope may prefer different ones."""
    return bool(aliases(dso).get(a, set()) & aliases(dso).get(b, set()))


def before_function(frame):
    """Whether perf's frame is the byte before a function: it took a pointer to the function for a return address."""
    address, _, _, dso = frame
    return not dso.startswith("[") and any(int(start, 16) == address + 1 for starts in aliases(dso).values()
                                           for start in starts)


OUTERMOST = {"_start", "_dl_start", "_dl_start_user", "clone3", "__clone3", "__GI___clone3"}


def as_perf_prints(ours, theirs, unwound):
    """Address and binary of our frames, as perf 6.1 prints them."""
    result = []
    for i, frame in enumerate(ours.frames):
        address = perf.relative(frame, theirs.one_line)
        # perf prints a frame that it has unwound with the address of the call, not of the return.
        first = i == 0 or ours.frames[i - 1][1] != frame[1]
        if unwound and frame[1] == "user" and not first:
            address -= 1
        dso = None
        if frame[1] == "user":
            dso = frame[2][3] if frame[2] else "[unknown]"
        result.append((address, dso))
    return result


def in_order(few, many):
    rest = iter(many)
    return all(any(a == b for b in rest) for a in few)


def same_frames(ours, theirs, unwound, child, names):
    """The difference, or None. Makes theirs.frames as long as ours."""
    # An empty chain: perf prints no frame, kscope prints the sampled pc.
    if not theirs.frames and len(ours.frames) == 1:
        return None
    # A value that looks like a context marker, because the kernel followed a register that is not a
    # frame pointer: perf discards the whole chain.
    if not theirs.frames and any(f[1] == "none" for f in ours.frames):
        return None
    if unwound:
        # At the end of the copied stack, perf with libunwind adds a frame at address -1.
        real = [f for f in theirs.frames if f[0] != (1 << 64) - 1]
        cut = len(real) < len(theirs.frames)
        theirs.frames = real
    mine = as_perf_prints(ours, theirs, unwound)
    if unwound and cut and len(mine) == len(theirs.frames) + 1:
        mine.pop()  # perf does not read the last word of the copy
    if unwound and child and len(mine) > len(theirs.frames):
        # After fork and exec, libunwind in perf often finds no rules and follows frame pointers,
        # which omits frames and ends at an address that is not a frame. Our chain must reach the
        # outermost function and have all frames of perf's. (Records of the fork or the exec may be
        # lost: this applies to all processes but the first.)
        last = theirs.frames[-1:]
        real = [f[0] for f in theirs.frames if f[1] != "[unknown]" and not (f in last and before_function(f))]
        if names[-1] in OUTERMOST and in_order(real, [f[0] for f in mine]):
            theirs.frames = []
            return None
    if len(mine) != len(theirs.frames):
        return "%d frames (%s), perf has %d (%s)" % (
            len(mine), ";".join(names), len(theirs.frames),
            ";".join(f[1] for f in theirs.frames))
    for i, ((address, dso), frame) in enumerate(zip(mine, theirs.frames)):
        if address != frame[0]:
            return "frame %d at %x, perf has %x" % (i, address, frame[0])
        if dso and dso != frame[3]:
            return "frame %d in %s, perf has %s" % (i, dso, frame[3])
    return None


def compare(path, folder, cpu, unwound):
    theirs, view = perf.perf_samples(path, cpu), perf.View(path)
    problems = []
    if view.code or (view.stderr and "the recording itself lost" not in view.stderr):
        problems.append("kscope exits with %d: %s" % (view.code, view.stderr.strip()))
    # perf's unit of cpu-clock, ms, belongs to perf stat: weights are ns.
    if any(line.startswith("source ") and " unit=" in line for line in view.lines):
        problems.append("a unit that the weights do not have")
    own = sum(sample.comm == "load" for sample in theirs)
    if own < LEAST:
        problems.append("only %d samples of the program were recorded" % own)
    if len(theirs) != len(view.samples):
        return problems + ["%d samples, perf has %d" % (len(view.samples), len(theirs))]
    names = view.names(path, folder)
    for nr, (a, b) in enumerate(zip(view.samples, theirs)):
        if a.key() != b.key():
            problems.append("sample %d is %r, perf has %r" % (nr, a.key(), b.key()))
            continue
        if a.comm != b.comm and not b.comm.startswith(":"):
            problems.append("sample %d is of %s, perf has %s" % (nr, a.comm, b.comm))
        if a.comm != "load":
            continue
        wrong = same_frames(a, b, unwound, a.pid != view.execed[0], names[nr])
        if wrong:
            problems.append("sample %d: %s" % (nr, wrong))
            continue
        if len(names[nr]) < len(b.frames):
            problems.append("sample %d of %s has frames %r and names %r" % (nr, a.comm, a.frames,
                                                                            names[nr]))
            continue
        for i, frame in enumerate(b.frames):
            name = names[nr][i]
            if name != in_folded(frame[1]) and not explained(i, a.frames, b.frames, name):
                problems.append("sample %d frame %d is %s, perf has %s" % (nr, i, name, frame[1]))
    return problems


def kcore(folder, load):
    """A folder as perf record --kcore writes it, but without kcore, which is not read."""
    path = os.path.join(folder, "kcore.data")
    os.makedirs(os.path.join(path, "kcore_dir"))
    perf.record(os.path.join(path, "data"), ["-e", "cpu-clock", "-g", "-a"], load, "SL")
    before = kscope("convert", path, "-t", "folded", "-o", "-").stdout
    with open("/proc/kallsyms") as f, open(os.path.join(path, "kcore_dir/kallsyms"), "w") as to:
        for line in f:
            to.write(line.replace(" do_syscall_64", " renamed_in_the_folder"))
    after = kscope("convert", path, "-t", "folded", "-o", "-").stdout
    if "do_syscall_64" not in before:
        return ["no system call was sampled"]
    if "renamed_in_the_folder" not in after or "do_syscall_64" in after:
        return ["the folder's kallsyms are not used"]
    return []


def vdso(folder, load):
    """perf keeps a copy of the vdso and its symbols if it recorded samples in it."""
    path = os.path.join(folder, "vdso.data")
    perf.record(path, ["-e", "cpu-clock"], load, "V")
    theirs = {f[1] for s in perf.perf_samples(path, False) for f in s.frames if f[3] == "[vdso]"}
    ours = kscope("convert", path, "-t", "folded", "-o", "-").stdout
    missing = [name for name in theirs if ";%s " % name not in ours]
    return ["no %s in %s" % (missing, ours)] if missing else []


def main():
    why = perf.why_not()
    if why:
        skip("perf record", why)
        finish()
    with tempfile.TemporaryDirectory(prefix="kscope-perf-") as folder:
        load = perf.build(folder)
        for name, args, what in RECORDINGS:
            path = os.path.join(folder, "perf.data")
            made = perf.record(path, args, load, what)
            if made.returncode:
                skip(name, "perf record says " + made.stderr.strip()[:200])
                continue
            cpu = "-a" in args or "--sample-cpu" in args
            no_problems(name, compare(path, folder, cpu, "dwarf" in " ".join(args)))
        path = os.path.join(folder, "pipe.data")
        with open(path, "wb") as f:
            subprocess.run(["perf", "record", "-q", "-e", "cpu-clock", "-g", "-a", "-o", "-", load,
                            "TFSL"], stdout=f, stderr=subprocess.DEVNULL)
        no_problems("pipe", compare(path, folder, True, False))
        path = os.path.join(folder, "threads.data")
        made = perf.record(path, ["--threads", "-e", "cpu-clock", "-g", "-a"], load, "TFSL")
        if made.returncode:
            skip("folder of several streams", made.stderr.strip()[:200])
        else:
            no_problems("folder of several streams", compare(path, folder, True, False))
        no_problems("folder with kallsyms", kcore(folder, load))
        no_problems("code of the kernel in processes", vdso(folder, load))
    finish()


if __name__ == "__main__":
    main()
