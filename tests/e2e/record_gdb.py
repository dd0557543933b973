#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""kscope record gdb with QEMU's own stub and with gdbserver: shares of known work, whole stacks, and targets that go
on however kscope ends.

Work is counted from the first instruction to the end: QEMU waits for kscope (-S), and kscope until the guest has powered off.
"""
import contextlib
import json
import math
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import cortex_m
import unwind_cortex_m
from kit import HANGS, KSCOPE, ROOT, check, exits, finish, guests, kscope, read_folded, run, scratch, skip, wait_for
from kit.wire_read import Stream

TASK = "kernel;task_start;task_run"
TREE = ";".join(["checksum_tree"] * 4)
# {stack that does work: units of work}, as in demo_kernel.py. Stops come between two blocks of QEMU, and each CPU's
# time is host time, so only CPUs with equal work compare: with 4 CPUs, the shares of each CPU's own tasks.
STACKS = {
    f"{TASK};compress_file;compress_block;find_match": 60,
    f"{TASK};compress_file;compress_block;encode_bits": 20,
    f"{TASK};checksum_disk;{TREE};checksum_page": 80,
    f"{TASK};route_packets;route_ipv4;lookup_prefix": 70 * 3 / 4,
    f"{TASK};route_packets;route_ipv6;lookup_prefix": 70 / 4,
    f"{TASK};cache_warm;cache_insert;fill_entry": 10,
    "dice.elf;_start;user_main;play_game;throw_dice": 60,
    "knit.elf;_start;user_main;knit_sock;knit_row;knit_stitch": 50,
}
# QEMU's speed at the same loop differs from function to function: by this share of each one's work.
SPEED = 0.25


@contextlib.contextmanager
def stopped_guest(guest, *more, which="debian"):
    """A guest in QEMU, whose gdb stub is at process.address. QEMU is ready when its monitor greets."""
    ours, theirs = socket.socketpair()
    with socket.create_server(("127.0.0.1", 0)) as listener, ours, theirs:
        process = subprocess.Popen(
            [*guests.command(guest, which), "-chardev", f"socket,id=gdb,fd={listener.fileno()},server=on,wait=off",
             "-gdb", "chardev:gdb", "-chardev", f"socket,id=monitor,fd={theirs.fileno()}",
             "-mon", "chardev=monitor,mode=control", *more],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            pass_fds=[listener.fileno(), theirs.fileno()])
        process.address = "127.0.0.1:%d" % listener.getsockname()[1]
        theirs.close()
        try:
            ours.settimeout(HANGS)
            ours.recv(1000)
            yield process
        finally:
            process.kill()
            process.wait()


def command(address, out, guest, *options):
    elfs = [word for path in guest.elfs for word in ("--elf", path)]
    return ["record", "gdb", address, "-o", out, "-k", guest.kernel, *elfs, *options]


def folded(path, *options):
    done = kscope("convert", path, "-t", "folded", "-o", "-", "--weight", *options)
    return read_folded(done.stdout) if done.stdout else {}


def shares_are_known(name, stacks, known, chance, sigmas=5):
    """Each stack has its share of the weight, within the error of so many samples and QEMU's differences in speed."""
    got = {stack: stacks.get(stack, 0) for stack in known}
    busy, units, wrong = sum(got.values()), sum(known.values()), []
    samples = busy * chance
    for stack, work in known.items():
        share, seen = work / units, got[stack] / max(busy, 1)
        bound = sigmas * math.sqrt(share * (1 - share) / max(samples, 1)) + SPEED * share * (1 - share)
        if abs(seen - share) > bound:
            wrong.append(f"{stack.rpartition(';')[2]}: {seen:.3f} is not {share:.3f} +- {bound:.3f}")
    check(name, samples >= 20 and not wrong, f"{samples:.0f} samples; {wrong}")


def stacks_are_whole(name, stacks, known):
    """The functions that work are only seen with their complete stacks."""
    leaves = {stack.rpartition(";")[2] for stack in known}
    mine = {stack: n for stack, n in stacks.items() if stack.rpartition(";")[2] in leaves}
    cut = {stack: n for stack, n in mine.items() if stack not in known}
    check(name, mine and sum(cut.values()) <= sum(mine.values()) / 50, cut)


def record_work(out, groups, guest_of, options=("-F", "200", "--max-stop", "30"), which="debian"):
    """Records a guest until it ends. On a busy host, few stops fit into its work: then it gets more of it. groups: lists
    of stacks, each of which needs samples."""
    for times in (1, 4, 16, 64):
        guest = guest_of(times)
        with stopped_guest(guest, "-S", which=which) as qemu:
            done = kscope(*command(qemu.address, out, guest, *options))
        stacks, chance = folded(out), Stream(out).chance()
        seen = [sum(n for stack, n in stacks.items() if stack.endswith(tuple(group))) for group in groups]
        if min(seen) * chance >= 40:
            break
    return done, guest


def test_demo(folder, machine, frames, cpus):
    name = f"{machine}, {frames}, {cpus} cpus"
    out = os.path.join(folder, "demo.kscope")
    # CPUs run side by side: shares of all work are only known on one.
    known = {stack: units for stack, units in STACKS.items() if cpus == 1 or "compress" in stack}
    scale = 40 if cpus == 1 else 100
    done, _ = record_work(out, [known],
                          lambda times: guests.demo(machine, frames, words=f"scale={times * scale}", cpus=cpus))
    exits(f"{name}: until the guest ends", done, 0, "the target has ended")
    got, stacks = Stream(out), folded(out)
    check(f"{name}: the stream", not got.faults() and got.cpus() == list(range(cpus)),
          f"{got.faults()} {got.cpus()}")
    shares_are_known(f"{name}: shares", stacks, known, got.chance())
    stacks_are_whole(f"{name}: stacks", stacks, STACKS)


def build_guest(folder, arch, *flags):
    kernel = os.path.join(folder, f"{arch}.elf")
    subprocess.run([os.path.join(ROOT, "tests", "guest", "build"), arch, kernel, *flags], check=True)
    return kernel


# Machine, and whether QEMU says goodbye to the debugger: not if a device ends it.
BARE = {
    "i386": (["-device", "isa-debug-exit,iobase=0xf4,iosize=4"], False),
    "arm": (["-M", "virt", "-cpu", "cortex-a15"], True),
    "riscv32": (["-M", "virt", "-bios", "none"], False),
    "riscv64": (["-M", "virt", "-bios", "none"], False),
}


def bare(folder, arch, cpus, rounds):
    """A guest of tests/guest."""
    kernel = build_guest(folder, arch, f"-DCPUS={cpus}", f"-DROUNDS={rounds}")
    return guests.Guest(arch, f"qemu-system-{arch}", kernel,
                        [*BARE[arch][0], "-net", "none", "-m", "128", "-smp", str(cpus), "-no-reboot",
                         "-kernel", kernel])


def test_bare(folder, arch, cpus):
    name = f"{arch}, {cpus} cpus"
    out = os.path.join(folder, "bare.kscope")
    known = {"kernel;_start;guest_main;work;hot": 3, "kernel;_start;guest_main;work;cold": 1}
    done, _ = record_work(out, [known], lambda times: bare(folder, arch, cpus, times * 150000 // cpus))
    if BARE[arch][1]:
        exits(f"{name}: until the guest ends", done, 0, "the target has ended")
    else:
        exits(f"{name}: until the guest ends", done, 1, "lost the connection to the stub")
    got, stacks = Stream(out), folded(out)
    check(f"{name}: the stream", not got.faults() and len(got.cpus()) == cpus, got.faults())
    shares_are_known(f"{name}: shares", stacks, known, got.chance())
    stacks_are_whole(f"{name}: stacks", stacks, known)


def cortex_m_guest(folder, machine, rounds):
    """Its leaf() has so much to do that QEMU's own time for exceptions does not count."""
    cortex_m.FLAGS[:] = [*unwind_cortex_m.COMMON, *unwind_cortex_m.BUILDS["frame pointers"], "-DLEAF=700",
                         "-DTICK=5000", f"-DROUNDS={rounds}"]
    elf = cortex_m.build(folder, machine)
    return guests.Guest(machine, "qemu-system-arm", elf,
                        ["-M", machine, "-semihosting-config", "enable=on,target=native", *cortex_m.ICOUNT,
                         "-kernel", elf], [elf])  # the second thread is a program


def test_cortex_m(folder, which, machine):
    """Stacks through exceptions, and of each function that calls itself a share for each depth."""
    name = f"{which} {machine}"
    out = os.path.join(folder, "cortex_m.kscope")
    threads = {thread: {";".join([thread, *["deep"] * n, "leaf"]): 1 for n in range(1, depth + 1)}
               for thread, depth in [("first_thread", 6), ("second_thread", 4)]}
    done, guest = record_work(out, threads.values(), lambda times: cortex_m_guest(folder, machine, 20000 * times),
                              ("-F", "300", "--max-stop", "50"), which)
    exits(f"{name}: until the guest ends", done, 0, "the target has ended")
    got, at = Stream(out), cortex_m.symbols(guest.kernel)
    stacks = folded(out, "--root", "none")
    total = sum(stacks.values())
    wrong = {stack: n for stack, n in stacks.items() if not unwind_cortex_m.is_right(stack)}
    check(f"{name}: every caller may call what it calls", len(got.samples) > 100 and not wrong and not got.faults(),
          f"{len(got.samples)} {got.faults()} {wrong}")
    for thread, known in threads.items():
        shares_are_known(f"{name}: shares of {thread}", stacks, known, got.chance())
    if which == "debian":  # 7.2 shows neither CONTROL nor the threads' stack pointer
        return
    whole = sum(n for stack, n in stacks.items() if stack.split(";")[0] in unwind_cortex_m.THREADS)
    switch = sum(n for stack, n in stacks.items() if stack.startswith("on_switch"))
    check(f"{name}: every stack begins in a thread", whole + switch == total and switch < total / 20,
          f"{whole} and {switch} of {total}")
    second = range(at["threads"] + cortex_m.THREADS_SIZE // 2, at["threads"] + cortex_m.THREADS_SIZE)
    users = [sample for sample in got.samples if sample.level != cortex_m.KERNEL]
    check(f"{name}: the second thread is unprivileged, nothing else",
          users and all(sample.registers[13] in second for sample in users), len(users))


def kernel_stacks(path, *options):
    """How many stacks the kernel's binary unwound, and how many of them to the end."""
    info = json.loads(kscope("info", path, "--json", *options).stdout)
    return info["kernel_unwound"], info["kernel_unwound_to_end"]


def test_kaslr(folder):
    """Debian's kernel, at a random address. kscope finds it by its code: a stop is at any instruction."""
    guest = guests.linux("amd64")
    out = os.path.join(folder, "kaslr.kscope")
    for _ in range(3):
        with stopped_guest(guest) as process:
            done = kscope(*command(process.address, out, guest))
        check("KASLR: the guest ends", done.returncode in (0, 1) and os.path.exists(out), done.stderr)
        note = re.search(r"(\d+) pages of its code ran at a slide of 0x([0-9a-f]+)",
                         kscope("info", "-v", out, "-k", guest.kernel).stderr)
        if not note or int(note.group(2), 16):
            break  # else this boot was at the address of the link: one in some hundreds
    check("KASLR: the kernel is found by its code", note and int(note.group(1)) >= 3 and int(note.group(2), 16),
          note)
    stacks, whole = kernel_stacks(out, "-k", guest.kernel)
    check("KASLR: the kernel's stacks are whole", stacks >= 50 and whole >= stacks * 0.9, (stacks, whole))
    wrong = kernel_stacks(out, "-k", guest.kernel, "--slide", hex(int(note.group(2), 16) + (1 << 24)))
    check("KASLR: at another address, they are not", wrong[1] < whole / 2, wrong)


def busy_time(pid):
    """Ticks of CPU time."""
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
        words = f.read().rpartition(")")[2].split()
    return int(words[11]) + int(words[12])


def goes_on(pid):
    """Whether a process that always works gets on: 20 ticks are more than a stopped one needs for anything else."""
    start = busy_time(pid)
    return wait_for(lambda: busy_time(pid) > start + 20)


def test_killed(folder):
    """SIGKILL at any moment: the guest goes on."""
    guest = bare(folder, "riscv64", 2, 100000000)
    out = os.path.join(folder, "killed.kscope")
    draw = random.Random(1)
    with stopped_guest(guest) as qemu:
        for i in range(8):
            with subprocess.Popen([KSCOPE, *command(qemu.address, out, guest, "-F", "1000", "--max-stop", "90")],
                                  stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
                wait_for(lambda: process.poll() is not None or
                         os.path.exists(out) and os.path.getsize(out) > 0)
                time.sleep(draw.random() * 0.3)  # any moment
                process.kill()
                process.communicate()
            check(f"killed, {i}: the guest goes on", goes_on(qemu.pid))
            check(f"killed, {i}: what was recorded is valid", Stream(out).info)
            os.remove(out)
        done = kscope(*command(qemu.address, out, guest, "--duration", "0.5"))
        exits("after that, another kscope records", done, 0, "the target was stopped")
        check("and then the guest goes on", goes_on(qemu.pid))


def test_second(folder):
    """A stub serves one debugger; the one that gives up must not stop the guest later."""
    guest = bare(folder, "riscv64", 1, 100000000)
    out = os.path.join(folder, "first.kscope")
    with stopped_guest(guest) as qemu:
        first = subprocess.Popen([KSCOPE, *command(qemu.address, out, guest)], stdin=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE)
        wait_for(lambda: first.poll() is not None or os.path.exists(out) and os.path.getsize(out) > 0)
        done = kscope(*command(qemu.address, os.path.join(folder, "second.kscope"), guest))
        exits("a second kscope", done, 3, f"{qemu.address}: no answer; another debugger may be connected")
        first.send_signal(signal.SIGINT)
        message = first.communicate()[1].decode()
        check("the first one", first.returncode == 0 and "the target was stopped" in message, message)
        # Now QEMU accepts the connection of the second one, which is gone.
        check("the guest goes on after both", goes_on(qemu.pid))
        done = kscope(*command(qemu.address, out, guest, "--duration", "0.5"))
        exits("a third one, after both", done, 0, "the target was stopped")
        check("and then the guest goes on again", goes_on(qemu.pid))


PROGRAM = r"""
#include <pthread.h>
static volatile unsigned long sinks[2];
__attribute__((noinline)) static void hot(volatile unsigned long *s) { for (int i = 0; i < 300000; i++) *s += i; }
__attribute__((noinline)) static void cold(volatile unsigned long *s) { for (int i = 0; i < 100000; i++) *s += i; }
__attribute__((noinline)) static void work(volatile unsigned long *s) { for (;;) { hot(s); cold(s); } }
static void *start(void *s) { work(s); return 0; }
int main(void)
{
	pthread_t t;

	pthread_create(&t, 0, start, (void *)&sinks[1]);
	work(&sinks[0]);
}
"""


def test_gdbserver(folder):
    source, program = os.path.join(folder, "program.c"), os.path.join(folder, "program")
    out = os.path.join(folder, "program.kscope")
    with open(source, "w", encoding="ascii") as f:
        f.write(PROGRAM)
    done = run("cc", "-O1", "-g", "-fno-omit-frame-pointer", "-pthread", source, "-o", program)
    if not check("gdbserver: a program", done.returncode == 0, done.stderr):
        return
    enough = False
    # Seconds; None: kscope is killed. On a busy host, few stops fit into the time: then it gets more of it.
    for duration in (3, 12, 48, None):
        if duration and enough:
            continue
        server = subprocess.Popen(["gdbserver", "127.0.0.1:0", program], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        text = ""
        while "port" not in text:
            line = server.stderr.readline()
            text += line
            if not line:
                break
        found = re.search(r"pid = (\d+)(?s:.*)port (\d+)", text)
        if not check("gdbserver: starts", found, text):
            server.kill()
            return
        pid, address = int(found[1]), f"127.0.0.1:{found[2]}"
        try:
            if not duration:
                os.remove(out)
                process = subprocess.Popen([KSCOPE, "record", "gdb", address, "-o", out, "-F", "500",
                                            "--max-stop", "90"], stderr=subprocess.DEVNULL,
                                           stdin=subprocess.DEVNULL)
                wait_for(lambda: process.poll() is not None or
                         os.path.exists(out) and os.path.getsize(out) > 0)
                process.kill()
                process.wait()
                check("gdbserver, killed: the program goes on", goes_on(pid))
                continue
            done = kscope("record", "gdb", address, "-o", out, "-F", "200", "--max-stop", "30",
                          "--duration", str(duration))
            exits("gdbserver: two threads", done, 0, "the target was stopped")
            check("gdbserver: the program goes on", goes_on(pid))
            got = Stream(out)
            check("gdbserver: the stream", not got.faults(), got.faults())
            sums = {"hot": 0, "cold": 0}
            for stack, weight in folded(out).items():
                for leaf in sums:
                    sums[leaf] += weight if stack.endswith(f";work;{leaf}") else 0
            enough = sum(sums.values()) * got.chance() >= 40 or duration == 48
            if not enough:
                continue
            shares_are_known("gdbserver: shares", sums, {"hot": 3, "cold": 1}, got.chance())
            report = kscope("convert", out, "-t", "folded", "-o", "-", "--root", "tid").stdout
            check("gdbserver: threads have their numbers", report.count(str(pid)) > 0, report[:300])
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            server.kill()
            server.communicate()


def main():
    with scratch() as folder:
        for machine in ["x86_64", "aarch64"]:
            test_demo(folder, machine, "fp", 1)
            test_demo(folder, machine, "nofp", 4)
        for arch in BARE:
            test_bare(folder, arch, 1)
        test_bare(folder, "riscv64", 4)
        test_killed(folder)
        test_second(folder)
        with tempfile.TemporaryDirectory(prefix="kscope-test-") as disk:  # --elf takes nothing in /dev
            test_cortex_m(disk, "debian", "lm3s6965evb")
            if guests.missing():
                skip("backports mps2-an505", guests.missing())
                skip("KASLR", guests.missing())
            else:
                test_kaslr(folder)
                test_cortex_m(disk, "backports", "mps2-an386")
                test_cortex_m(disk, "backports", "mps2-an505")
        if shutil.which("gdbserver"):
            test_gdbserver(folder)
        else:
            skip("gdbserver", "it is not installed")
    finish()


if __name__ == "__main__":
    main()
