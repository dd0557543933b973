# SPDX-License-Identifier: GPL-2.0-or-later
"""Shared by the Python tests. Every test begins with

    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    from kit import check, finish, kscope

and ends with finish(). This module has paths, prints results and runs programs. The others:

    board       a simulated board at the end of a link, and the kscope that records it
    branches    writes a dump of branches, as a trace has them
    coverage    lcov's tracefiles, and the counts of gcov on the host
    emulate     programs in kscope record emulate, and what they execute
    fxt         reads the Fuchsia trace format and checks every record
    gdb_stub    a gdb stub, with faults if wanted
    guests      guests and the QEMUs that boot them
    html        the data in HTML reports
    inputs      files of golden tests
    intelpt     the instructions of Intel PT traces, by kscope and by libipt
    kpdata      Akaros profiles, record by record
    microkit    a stand-in of the seL4 Microkit SDK, and of the kernel, for target/microkit
    pack        data packed as kernels are
    perf        perf record, and its samples as perf and kscope print them
    profiles    a profile with what writers get wrong: odd names, inlined functions, losses
    ptdamage    damages Intel PT traces as processors and perf do
    ptmodes     turns Intel PT by thread into traces by cpu, snapshots and samples
    ptnotes     adds PTWRITE and power packets to them
    samples     samples of functions drawn by chance
    sel4        samples as the seL4 profiler sends them
    stand_in    kscope record with a program in place of QEMU
    streams     samples that a test knows, in the formats that boards send, and faults of streams
    target      the sampler of target/ in the demo kernel, recorded over its line
    styles      guests that switch between threads in many styles
    svg         the frames of a flame graph
    target_formats  the sampler for kernels in a made-up kernel, in the formats of seL4 and Akaros
    terminal    a real terminal for a program, its screen and its keys
    wire_read   reads a recording, wire_write writes one, wire_trace decodes its traces
"""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("BUILD", os.path.join(ROOT, "build")))
KSCOPE = os.path.abspath(os.environ.get("KSCOPE", os.path.join(BUILD, "kscope")))
TOOLS = os.path.join(ROOT, "tests", "tools")
DEMO = os.path.join(BUILD, "demo")
# The binaries of the demo's samples.
ELFS = os.path.join(DEMO, "64k")
# Seconds after which a program hangs for sure, even on a slow and busy machine.
HANGS = 500

_failed = []


def check(name, good, why=""):
    """Prints one result, in one piece: several threads may check. Returns whether it is good."""
    if good:
        print(f"ok {name}\n", end="", flush=True)
    else:
        _failed.append(name)
        why = str(why).replace("\n", " | ")[:600].encode(errors="backslashreplace").decode()
        print(f"not ok {name}: {why}\n", end="", flush=True)
    return bool(good)


def equal(name, got, want):
    return check(name, got == want, f"got {got!r}, want {want!r}")


def exits(name, done, code, *words):
    """Checks a program's exit code, and that these words are on its stderr."""
    return check(name, done.returncode == code and all(word in done.stderr for word in words),
                 f"exit code {done.returncode}, stderr: {done.stderr}")


def no_problems(name, problems):
    """Checks that the list is empty."""
    more = f" (and {len(problems) - 4} more)" if len(problems) > 4 else ""
    return check(name, not problems, "; ".join(map(str, problems[:4])) + more)


def passes(name, body, *args):
    """Checks that a function returns: any exception is a failure."""
    try:
        body(*args)
    except Exception as error:  # pylint: disable=broad-exception-caught
        return check(name, False, f"{type(error).__name__} {error}")
    return check(name, True)


def skip(name, why):
    print(f"skip {name}: {why}", flush=True)


def finish():
    sys.exit(1 if _failed else 0)


def run(*command, **more):
    """Runs a program; stdout and stderr are text, unless binary=True."""
    binary = more.pop("binary", False)
    more.setdefault("timeout", HANGS)
    if "input" not in more:
        more.setdefault("stdin", subprocess.DEVNULL)
    done = subprocess.run([str(word) for word in command], capture_output=True, check=False, **more)
    if not binary:
        done.stdout = done.stdout.decode(errors="surrogateescape")
        done.stderr = done.stderr.decode(errors="surrogateescape")
    return done


def kscope(*words, **more):
    return run(KSCOPE, *words, **more)


def wait_for(condition):
    """Waits until the condition is true; returns False if that takes longer than HANGS."""
    end = time.monotonic() + HANGS
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def default_signals():
    """For preexec_fn: nohup, and shells that start the tests in the background, let programs ignore these."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


def scratch():
    """A folder that is removed after the test.

    It is in memory if there is room, so that lost samples do not depend on the load of the disk."""
    memory = "/dev/shm"
    roomy = os.path.isdir(memory) and shutil.disk_usage(memory).free > 4 << 30
    return tempfile.TemporaryDirectory(prefix="kscope-test-", dir=memory if roomy else None)


def demo_samples(folder, elfs=ELFS):
    """Writes the demo's seL4 recording, samples.json, 10000 samples, and its stacks, truth.folded.

    Returns the path of the recording."""
    done = run(sys.executable, os.path.join(ROOT, "demo", "sel4", "generate.py"), elfs, folder)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return os.path.join(folder, "samples.json")


def read_folded(path_or_text):
    """{stack: count}"""
    text = path_or_text
    if "\n" not in text:
        with open(text, encoding="utf-8") as f:
            text = f.read()
    stacks = {}
    for line in text.splitlines():
        stack, _, count = line.rpartition(" ")
        stacks[stack] = stacks.get(stack, 0) + int(count)
    return stacks
