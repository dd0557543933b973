#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""kscope record qemu with a real QEMU, the plugin and a tiny guest. See also tests/cli/record_*."""
import collections
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import (HANGS, KSCOPE, TOOLS, check, equal, exits, finish, guests, kscope, read_folded,
                 run, scratch, skip, wait_for)

QEMU = ["qemu-system-i386", "-display", "none", "-net", "none", "-no-reboot"]
EXIT = ["-append", "exit", "-device", "isa-debug-exit,iobase=0xf4,iosize=1"]
SERIAL = ["-serial", "stdio"]


def build(folder):
    elf = os.path.join(folder, "tiny.elf")
    for command in (["clang", "--target=i386-none-elf", "-c", os.path.join(TOOLS, "tiny_guest.S"),
                     "-o", elf + ".o"],
                    ["ld.lld", "-m", "elf_i386", "--image-base=0x100000", "-z", "separate-code", "-z",
                     "max-page-size=0x1000", elf + ".o", "-o", elf]):
        done = run(*command)
        if done.returncode:
            check("the guest is built", False, done.stderr)
            finish()
    return elf


class Guest:
    def __init__(self, folder):
        self.folder = folder
        self.elf = build(folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def words(self, options, more):
        # timeout: if something goes wrong, no guest outlives the test.
        return ["timeout", str(HANGS), KSCOPE, "record", "qemu", *options, "--", *QEMU, "-kernel",
                self.elf, *more]

    def record(self, *options, more=(), **how):
        return run(*self.words(options, more), cwd=self.folder, **how)

    def start(self, *options, more=()):
        return subprocess.Popen(self.words(options, more)[2:], cwd=self.folder, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)

    def samples(self, name):
        done = kscope("info", "--json", self.path(name), "--kernel", self.elf)
        return json.loads(done.stdout)["samples"] if done.returncode < 2 else done.stderr


def leaf_weights(stacks):
    """The weights of the two functions that the guest works in."""
    leaves = {"heavy": 0, "light": 0}
    for stack, count in stacks.items():
        leaf = stack.split(";")[-1]
        if leaf in leaves:
            leaves[leaf] += count
    return leaves


def shares(stacks):
    """The weight of both functions, and the share of heavy, which should be 3/4."""
    leaves = leaf_weights(stacks)
    both = sum(leaves.values())
    return both, leaves["heavy"] / both if both else 0


def test_whole_run(guest):
    done = guest.record(more=EXIT + SERIAL)
    exits("a guest that ends by itself", done, 0, "samples", "exited with status 33",
          f"kscope report perf.data -k {guest.elf}")
    equal("its output", done.stdout, "ready\ndone\n")
    folded = kscope("convert", guest.path("perf.data"), "-k", guest.elf, "--samples", "-t", "folded",
                    "-o", "-")
    both, share = shares(read_folded(folded.stdout))
    check("the work it did", both >= 50 and abs(share - 0.75) < 7 * (0.75 * 0.25 / both) ** 0.5,
          (both, share, folded.stderr))
    done = run("perf", "report", "-f", "-i", guest.path("perf.data"), "-k", guest.elf, "--stdio")
    check("perf reads it", done.returncode == 0 and "heavy" in done.stdout, done.stdout + done.stderr)
    # By instructions the shares do not depend on the host's load.
    by_instructions = ["--clock", "instructions", "--period", "100000"]
    for name in ("x.folded", "x.svg", "x.kscope"):
        exits(f"output: {name}", guest.record(*by_instructions, "-o", name, more=EXIT + SERIAL), 0,
              f"wrote {name}")
    # 30 rounds of 8 million instructions. A sample stands for all instructions since the one before
    # it, at most one and a half periods and a block: it is wrong only where functions change.
    mistaken = 31 * 160000
    leaves = leaf_weights(read_folded(guest.path("x.folded")))
    check("folded: exactly the work it did", abs(leaves["heavy"] - 180e6) < mistaken and
          abs(leaves["light"] - 60e6) < mistaken, leaves)
    with open(guest.path("x.svg"), encoding="utf-8") as f:
        check("svg: the work it did", "heavy" in f.read())
    check("kscope: it has samples", guest.samples("x.kscope") >= 50, guest.samples("x.kscope"))


def test_places(guest):
    done = guest.record("-F", "10000", "--start-at", "light", "--stop-at", "heavy", "-o", "p.folded",
                        more=EXIT + SERIAL)
    both, share = shares(read_folded(guest.path("p.folded")))
    check("from one function to the other", done.returncode == 0 and both > 1e6 and share < 0.1,
          (both, share, done.stderr))


def test_ends(guest):
    done = guest.record("--until", "ready", "--duration", "50", more=SERIAL)
    exits("until it says so", done, 0, "samples")
    equal("until: its output goes through", done.stdout.strip(), "ready")
    done = guest.record("--until", "ready", "--duration", "50")
    exits("until, on a port that is added", done, 0, "samples")
    equal("until: what it says there is shown", done.stdout.strip(), "ready")
    exits("until, in a file", guest.record("--until", "ready", "--duration", "50",
                                           more=["-serial", "file:serial.txt"]), 0, "samples")
    with open(guest.path("a"), "w", encoding="utf-8") as f:
        f.write("another's\n")
    exits("until, in a file with a comma", guest.record(
        "--until", "ready", "--duration", "50",
        more=["-chardev", "file,path=a,,b.txt,id=s0", "-serial", "chardev:s0"]), 0, "samples")
    check("until: no other file is emptied", os.path.getsize(guest.path("a")) > 0)
    exits("duration", guest.record("--duration", "3"), 0, "samples")
    child = guest.start("-o", "c.kscope", "--control", "c.ctl", more=SERIAL)
    wait_for(lambda: samples_so_far(guest, "c.ctl") > 50)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=HANGS)
    check("Ctrl-C: the result is written", child.returncode == 0 and "wrote c.kscope" in err and
          guest.samples("c.kscope") > 50, err)
    child = guest.start("-o", "k.folded", "--control", "k.ctl", more=SERIAL)
    child.stdout.readline()
    at_ready = samples_so_far(guest, "k.ctl")
    wait_for(lambda: samples_so_far(guest, "k.ctl") > at_ready + 50)
    kscope("record", "qemu", "--attach", guest.path("k.ctl"), "flush")
    kill_qemu(guest.path("k.ctl"))
    _, err = child.communicate(timeout=HANGS)
    check("a QEMU that is killed: what it had written is there", child.returncode == 1 and
          "signal 9" in err and shares(read_folded(guest.path("k.folded")))[0] > 0, err)


def kill_qemu(control):
    """Kills the process that listens on the socket."""
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(control)
        pid = struct.unpack("iii", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
    os.kill(pid, signal.SIGKILL)


def status(guest, control="ctl"):
    done = kscope("record", "qemu", "--attach", guest.path(control), "status")
    return dict(line.split("=") for line in done.stdout.split())


def samples_so_far(guest, control="ctl"):
    return int(status(guest, control).get("samples", 0))


def test_attach(guest):
    child = guest.start("-o", "a.kscope", "--control", "ctl", "--paused", more=SERIAL)
    child.stdout.readline()
    time.sleep(0.3)
    first = status(guest)
    equal("attach: it is paused", (first.get("running"), first.get("samples")), ("0", "0"))

    def tell(word):
        return kscope("record", "qemu", "--attach", guest.path("ctl"), word).returncode

    equal("attach: start", (tell("start"), status(guest).get("running")), (0, "1"))
    wait_for(lambda: samples_so_far(guest) >= 50)
    equal("attach: flush", tell("flush"), 0)
    count = guest.samples("a.kscope")
    check("attach: what was flushed can be read while it runs", isinstance(count, int) and
          count >= 50, count)
    equal("attach: stop", (tell("stop"), status(guest).get("running")), (0, "0"))
    before = samples_so_far(guest)
    time.sleep(0.3)
    # One more sample may have been in progress.
    check("attach: and it has stopped", before <= samples_so_far(guest) <= before + 1, before)
    child.terminate()
    _, err = child.communicate(timeout=HANGS)
    check("attach: every sample is in the file", child.returncode == 0 and
          before <= guest.samples("a.kscope") <= before + 1, (before, guest.samples("a.kscope"), err))


def test_refusals(guest):
    exits("refused: a wrong option", guest.record(more=["-frobnicate"]), 3, "-frobnicate",
          "before anything was recorded", "without kscope")
    exits("refused: with a raw stream", guest.record(
        "-o", "none.kscope", more=["-kernel", guest.path("no.elf")]), 3, "no.elf")
    check("refused: nothing is left", not os.path.exists(guest.path("none.kscope")))
    env = dict(os.environ, KSCOPE_PLUGIN=guest.elf)
    exits("refused: a plugin that is none", guest.record(env=env), 3, "plugin", guest.elf)
    exits("refused: a kernel that is none", guest.record(more=["-kernel", guest.path("no.elf")]), 3,
          "no.elf")
    with open(guest.path("blob"), "wb") as f:
        f.write(bytes(100000))
    for option in ("--kernel", "--elf"):
        done = guest.record(option, "blob")
        exits(f"refused: {option} that has no symbols", done, 3, "neither an ELF file")
        check(f"refused: {option}, said once, before the guest runs", done.stderr.count("\n") == 1,
              done.stderr)
    done = run("timeout", str(HANGS), KSCOPE, "record", "qemu", "--duration", "3", "--",
               "qemu-system-aarch64", "-M", "virt", "-display", "none", "-kernel", "blob", cwd=guest.folder)
    exits("a guest's own kernel without symbols runs", done, 0, "wrote perf.data")
    equal("and that is said once", done.stderr.count("neither an ELF file"), 1)


def test_user_mode(guest):
    done = run(KSCOPE, "record", "qemu", "-F", "10000", "-o", "u.kscope", "--until", "kscope", "--",
               "qemu-x86_64", "/bin/echo", "kscope was here", cwd=guest.folder)
    check("a user-mode QEMU", done.returncode in (0, 1) and done.stdout.startswith("kscope ") and
          "wrote u.kscope" in done.stderr, done.stdout + done.stderr)


# Allocators that call each other, too often for a disk to keep up.
HEAP = """
#include <string.h>
static char pool[1 << 20];
static unsigned long at;
static volatile long sink;
__attribute__((noinline)) void *take(unsigned long n) { at += n; return pool + at % 1000000; }
__attribute__((noinline)) void give(void *p) { sink += *(char *)p; }
__attribute__((noinline)) void *take_zeroed(unsigned long n) { return memset(take(n), 0, n); }
__attribute__((noinline)) void *change(void *p, unsigned long n, int keep) {
	void *q = keep ? p : take(n);
	if (!keep)
		give(p);
	return q;
}
int main(void) {
	for (int i = 0; i < 3000; i++)
		give(change(i % 2 ? take_zeroed(16) : take(16), 64, i % 3 == 0));
	return 0;
}
"""


def test_heap(guest):
    source = guest.path("heap.c")
    with open(source, "w", encoding="ascii") as f:
        f.write(HEAP)
    run("cc", "-O1", "-static", "-no-pie", source, "-o", guest.path("heap"))
    done = run(KSCOPE, "record", "qemu", "-o", "heap.kscope", "--alloc", "take", "--alloc", "take_zeroed",
               "--free", "give", "--realloc", "change", "--", "qemu-x86_64", "./heap", cwd=guest.folder)
    check("heap: nothing is lost", done.returncode == 0 and " 0 lost" in done.stderr, done.stderr)
    report = kscope("alloc", guest.path("heap.kscope")).stdout
    check("heap: what allocators do for each other counts once",
          "take: 5000 allocated, 3000 resized, 5000 freed\n" in report and
          "at the end               0 bytes" in report and "problems found" not in report, report)


def test_full_disk(guest):
    small = guest.path("small")
    os.mkdir(small)
    words = guest.words(["--clock", "instructions", "--period", "100000", "-o", "small/f.kscope"],
                        EXIT)
    done = run("unshare", "-r", "-m", "sh", "-c",
               f"mount -t tmpfs -o size=1m none '{small}' && \"$@\"; echo $? $(stat -c %s small/*)",
               "sh", *words, cwd=guest.folder)
    if "unshare" in done.stderr or "mount" in done.stderr:
        skip("a full disk", done.stderr.strip())
        return
    code, size = (int(word) for word in done.stdout.split())
    check("a full disk: what found room is there, and it is said", code == 1 and
          "No space left" in done.stderr and "samples" in done.stderr and size > 500000,
          (code, size, done.stderr))


def perf_names(guest, data):
    """{function: weight} of perf report, which finds binaries only in the build-id cache.

    perf has one row for each function of several with the same name, and one for each address
    without a name: 0x..., or zeros. It replaces the separator in names, such as @ in those of linkers: e843419@02f1."""
    done = run("perf", "--buildid-dir", guest.path("cache"), "report", "-f", "-i", data, "--stdio",
               "--no-children", "-g", "none", "--sort", "sym", "-F", "period,sym", "-t", "\t")
    names = collections.Counter()
    for line in done.stdout.splitlines():
        weight, mark, name = line.partition("\t[k] ")
        if mark and not name.startswith(("0x", "00", "[idle]")):
            names[name.strip()] += int(weight)
    return names


def test_linux(guest, architecture):
    """Debian's kernel, moved by KASLR: kscope and perf have the same names."""
    if guests.missing():
        skip("linux", guests.missing())
        return
    name, data = f"linux, {architecture}", guest.path("linux.data")
    linux = guests.linux(architecture, words="kscope.work=none")
    done = guests.boot(linux, before=["timeout", str(HANGS), KSCOPE, "record", "qemu", "-o", data,
                                      f"--buildid-cache={guest.path('cache')}", "--"])
    check(f"{name}: it boots and is recorded", done.code == 0 and
          f"kscope report {data}, or perf report -i {data}\n" in done.errors and
          " lost," in done.errors, done.errors)
    rows = json.loads(kscope("report", data, "-k", linux.kernel, "-n", "0", "--json").stdout)
    rows = {row["name"]: row["self"] for row in rows["events"][0]["functions"]
            if row["binary"] == "[kernel.kallsyms]" and row["self"]}
    theirs = perf_names(guest, data)
    wrong = [(name, rows.get(name), theirs.get(name)) for name in {*rows, *theirs}
             if rows.get(name) != theirs.get(name)]
    check(f"{name}: perf has the same names for the same weights", len(rows) > 200 and not wrong,
          (len(rows), wrong))


def main():
    with scratch() as folder:
        guest = Guest(os.path.realpath(folder))
        test_whole_run(guest)
        test_places(guest)
        test_ends(guest)
        test_attach(guest)
        test_refusals(guest)
        test_user_mode(guest)
        test_heap(guest)
        test_full_disk(guest)
        for architecture in ["amd64", "arm64"]:
            test_linux(guest, architecture)
        left = [name for name in os.listdir(folder) if name.startswith(".")]
        equal("nothing is left behind", left, [])
    finish()


if __name__ == "__main__":
    main()
