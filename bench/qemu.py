# SPDX-License-Identifier: GPL-2.0-or-later
"""The cost of recording a guest in QEMU: CPU and wall time against the same run without a plugin.

One guest is a Debian kernel that boots, does the work of tests/guests/init and powers off. The other is the
demo kernel, to compare kscope's trace with the plugin of QEMU that records calls, too; UFTRACE_PLUGIN is
the path of that plugin, UFTRACE_QEMU the qemu-system-x86_64 that it was built for.

Each variant runs once per round and the best round counts, so that other load on the machine affects all
of them alike.
"""
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests"))
from kit import guests  # noqa: E402 pylint: disable=wrong-import-position
ROUNDS = 3
PATIENCE = 150  # seconds: stop a boot that takes longer, and say how much slower it is at least


def run(command, folder=None):
    """(CPU seconds, wall seconds) of one boot, or of the part of it that ran within PATIENCE."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(["timeout", str(PATIENCE), *command], check=False, cwd=folder,
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True)
    wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 124):
        raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def measure(commands, rounds, once=(), folder=None):
    """The least times of each command, run in turn; those of `once` run only in the first round."""
    best = {}
    for number in range(rounds):
        for name, command in commands.items():
            if number and name in once:
                continue
            cpu, wall = run(command, folder)
            old = best.get(name, (cpu, wall))
            best[name] = min(old[0], cpu), min(old[1], wall)
    return best


def show(best):
    base = best["no plugin"]
    for name, (cpu, wall) in best.items():
        print(f"  {name:36} {cpu:6.2f} s {cpu / base[0]:5.2f}x {wall:6.2f} s {wall / base[1]:5.2f}x"
              f"{'  (stopped: at least)' if wall >= PATIENCE else ''}")
    sys.stdout.flush()


def every_instruction(build):
    """The plugin that reads the clock on every instruction."""
    plugin = os.path.join(build, "bench", "every_insn.so")
    subprocess.run([os.environ.get("CC", "cc"), "-O2", "-shared", "-fPIC", "-o", plugin,
                    os.path.join(ROOT, "bench", "every_insn.c")], check=True)
    return plugin


def event_size(build, recording):
    """Prints the bytes per event of a trace, and its number of events, returns and lost returns."""
    done = subprocess.run([os.path.join(build, "kscope"), "info", "--json", recording], check=True,
                          stdout=subprocess.PIPE, text=True)
    info = json.loads(done.stdout)
    events = info["branches"]
    print(f"  the trace: {events} events, {os.path.getsize(recording) / events:.2f} bytes per event; "
          f"{info['returns']} returns, {info['unmatched_returns']} of them without a matching call")


def bench_boot(build, quick):
    missing = guests.missing()
    if missing:
        print(f"\nRecording a guest: {missing}")
        return
    guest, out = guests.linux("amd64"), os.path.join(build, "bench", "recording.kscope")
    plugin, slow = f"{os.path.join(build, 'kscope-qemu.so')},out={out}", "a clock read on every instruction"
    ways = {
        "no plugin": None,
        "samples, every 1 ms": plugin,
        "samples, every 100 us": f"{plugin},period=100000",
        "trace": f"{plugin},mode=trace",
    }
    if not quick:  # it takes minutes
        ways[slow] = every_instruction(build)
    print(f"\nRecording a guest: a boot of Debian's kernel with some work, best of {ROUNDS}\n"
          f"  {'':36}     CPU             wall")
    best = measure({name: guests.command(guest, more=["-plugin", words] if words else [])
                    for name, words in ways.items()}, 2 if quick else ROUNDS, once=[slow])
    event_size(build, out)  # the trace is the last recording of a round
    show(best)


def uftrace_qemu():
    """Not Debian 12's QEMU, if possible: there, plugins cannot read registers, as uftrace's does."""
    backports = guests.qemu("qemu-system-x86_64", "backports")
    return (os.environ.get("UFTRACE_QEMU") or
            (backports if os.path.exists(backports) else "qemu-system-x86_64"))


def bench_calls(build, quick):
    """Every call of a kernel with frame pointers, which the uftrace plugin needs."""
    uftrace = os.environ.get("UFTRACE_PLUGIN")
    guest = guests.demo("x86_64", words=f"scale={5 if quick else 10}", cpus=1)
    plain = [uftrace_qemu(), *guests.command(guest)[1:]]
    commands = {
        "no plugin": plain,
        "kscope's trace": [*plain, "-plugin", os.path.join(build, "kscope-qemu.so") +
                           ",out=recording.kscope,mode=trace"],
    }
    if uftrace:
        commands["QEMU's uftrace plugin"] = [*plain, "-plugin", os.path.abspath(uftrace)]
    print(f"\nEvery call of a guest: the demo kernel on one CPU, best of {ROUNDS}\n"
          f"  {'':36}     CPU             wall")
    # The uftrace plugin writes to the folder that it runs in.
    with tempfile.TemporaryDirectory(dir=os.path.join(build, "bench")) as folder:
        try:
            show(measure(commands, ROUNDS, folder=folder))
        except RuntimeError as error:
            print(f"  failed: {error}")
    if not uftrace:
        print("  for QEMU's uftrace plugin: set UFTRACE_PLUGIN to the libuftrace.so of QEMU 10.2 or later,"
              "\n  and UFTRACE_QEMU to the qemu-system-x86_64 that it was built for")


def bench(build, quick):
    bench_calls(build, quick)
    bench_boot(build, quick)
