# SPDX-License-Identifier: GPL-2.0-or-later
"""The cost of recording a guest in QEMU: CPU and wall time against the same boot without a plugin.

The guest is a Debian kernel that boots, does the work of tests/guests/init and powers off. Each
variant runs once per round and the best round counts, so that other load on the machine affects all
of them alike.
"""
import json
import os
import resource
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests"))
ROUNDS = 3
PATIENCE = 150  # seconds: stop a boot that takes longer, and say how much slower it is at least


def run(command):
    """(CPU seconds, wall seconds) of one boot, or of the part of it that ran within PATIENCE."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(["timeout", str(PATIENCE), *command], check=False,
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True)
    wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 124):
        raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


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


def bench(build, quick):
    from kit import guests  # pylint: disable=import-outside-toplevel
    missing = guests.missing()
    if missing:
        print(f"\nRecording a guest: {missing}")
        return
    guest, out = guests.linux("amd64"), os.path.join(build, "bench", "recording.kscope")
    plugin = f"{os.path.join(build, 'kscope-qemu.so')},out={out}"
    ways = {
        "no plugin": None,
        "samples, every 1 ms": plugin,
        "samples, every 100 us": f"{plugin},period=100000",
        "trace": f"{plugin},mode=trace",
        "a clock read on every instruction": every_instruction(build),
    }
    print(f"\nRecording a guest: a boot of Debian's kernel with some work, best of {ROUNDS}\n"
          f"  {'':36}     CPU             wall")
    best = {}
    for number in range(2 if quick else ROUNDS):
        for name, words in ways.items():
            if name.startswith("a clock") and (number or quick):
                continue  # it takes minutes: run it once, or not at all
            cpu, wall = run(guests.command(guest, more=["-plugin", words] if words else []))
            old = best.get(name, (cpu, wall))
            best[name] = min(old[0], cpu), min(old[1], wall)
            if name == "trace" and not number:
                event_size(build, out)
    for name, (cpu, wall) in best.items():
        base = best["no plugin"]
        print(f"  {name:36} {cpu:6.2f} s {cpu / base[0]:5.2f}x {wall:6.2f} s {wall / base[1]:5.2f}x"
              f"{'  (stopped: at least)' if wall >= PATIENCE else ''}")
    sys.stdout.flush()
