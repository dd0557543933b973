# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests that switch between threads in every style of real kernels: tests/styles.

    for guest in styles.all_guests(): ...
    guest = styles.build("riscv64", "trap")
    done = guests.record(guest, "x.kscope", ["--stack", str(styles.STACK), ...], more=guests.ICOUNT)
    problems = [stack for stack in stacks if not styles.legal(guest, stack)]

A stack is text as in folded stacks, from the root, without the task's name, with or without inlined
functions. `python3 -m kit.styles` in tests/ builds all guests and prints their command lines.
"""
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from . import BUILD, ROOT, guests

SOURCE = os.path.join(ROOT, "tests", "styles")
OUT = os.path.join(BUILD, "tests", "styles")
# A copy of this size includes the interrupt stack and the stacks of all threads.
STACK = 32768

VIRT = ["-cpu", "cortex-a72", "-net", "none", "-m", "128", "-semihosting"]
MACHINES = {
    "x86_64": ("qemu-system-x86_64", ["-M", "pc", "-vga", "none", "-net", "none", "-m", "128",
                                      "-device", "isa-debug-exit,iobase=0xf4,iosize=1"]),
    "aarch64": ("qemu-system-aarch64", ["-M", "virt,dtb-randomness=off", *VIRT]),
    "aarch64-el2": ("qemu-system-aarch64",
                    ["-M", "virt,virtualization=on,dtb-randomness=off", *VIRT]),
    "riscv64": ("qemu-system-riscv64", ["-M", "virt", "-bios", "none", "-net", "none", "-m", "128"]),
    "riscv64-m": ("qemu-system-riscv64",
                  ["-M", "virt", "-bios", "none", "-net", "none", "-m", "128"]),
    "riscv64-h": ("qemu-system-riscv64", ["-M", "virt", "-cpu", "rv64,h=true", "-bios", "none",
                                          "-net", "none", "-m", "128"]),
    "cortex-m3": ("qemu-system-arm", ["-M", "mps2-an385", "-semihosting"]),
    "cortex-m4": ("qemu-system-arm", ["-M", "mps2-an386", "-semihosting"]),
}
LARGE = ["x86_64", "aarch64", "aarch64-el2", "riscv64", "riscv64-m"]
MICRO = ["cortex-m3", "cortex-m4"]
STYLES = {  # the architectures of each style
    "call": LARGE,
    "context": LARGE,
    "trap": LARGE,
    "trap-direct": LARGE,
    "small": LARGE,
    "small-call": LARGE,
    "coroutines": LARGE,
    "nested": LARGE,
    "ended": LARGE,
    "onestack": ["x86_64", "aarch64", "aarch64-el2", "riscv64", "riscv64-h"],
    "svm": ["x86_64"],
    "svm-nested": ["x86_64"],
    "svm-user": ["x86_64"],
    "cortex": MICRO,
}

COLORS = ["red", "green", "blue"]  # the user programs of onestack

# The functions of the workers under main, see tests/styles/work.c.
CHAIN = "(;{0}_work(;{0}_step(;{0}_leaf)?)?)?"
RECURSIVE = "(;{0}_work((;{0}_down)*(;{0}_leaf)?)?)?"
POINTERS = "(;{0}_work((;{0}_(left|right))?(;{0}_leaf)?)?)?"
TAIL = "(;{0}_work(;{0}_(step|leaf))?)?"
SHAPES = {"alpha": CHAIN, "beta": RECURSIVE, "gamma": POINTERS, "delta": TAIL,
          "epsilon": CHAIN, "zeta": RECURSIVE, "eta": POINTERS, "theta": TAIL,
          "escape": RECURSIVE}
WORKER = "(" + "|".join(f"{name}_main" + shape.format(name) for name, shape in SHAPES.items()) + ")"
# Other functions of the guest: the scheduler and interrupts. They differ by compiler, which inlines
# some of them. They call no function of a worker, and no thread begins in them.
ROOTS = ["boot_entry", "boot_64", "thread_start", "frame_start"]
OTHER = f"(;(?!({'|'.join(SHAPES)})_)(?!({'|'.join(ROOTS)})(;|$))[A-Za-z_]\\w*)"
BOOT = f"(boot_entry|boot_64)(;guest_main{OTHER}*)?"


@dataclass
class Style(guests.Guest):
    arch: str = ""
    style: str = ""
    start: list = field(default_factory=list)  # options of kscope record that skip the firmware
    stacks: list = field(default_factory=list)  # regular expressions of all legal stacks


def name_of(arch, style):
    return f"{style}-{arch}"


def all_names():
    """(architecture, style) of all guests"""
    return [(arch, style) for style, archs in STYLES.items() for arch in archs]


def sources():
    return [os.path.join(folder, name) for folder, _, names in os.walk(SOURCE) for name in names]


def build(arch, style, *flags, name=""):
    """Builds a guest, unless it is newer than its sources. Guests with other flags need a name."""
    program, machine = MACHINES[arch]
    os.makedirs(OUT, exist_ok=True)
    kernel = os.path.join(OUT, (name or name_of(arch, style)) + ".elf")
    if not os.path.exists(kernel) or flags or \
            os.path.getmtime(kernel) < max(map(os.path.getmtime, sources())):
        subprocess.run([os.path.join(SOURCE, "build"), arch, style, kernel, *flags], check=True)
    users = [f"{kernel}.{user}" for user in COLORS] if style == "onestack" else \
        [kernel] if style == "svm-user" else []
    return Style(name or name_of(arch, style), program, kernel,
                 [*machine, "-no-reboot", "-kernel", kernel], users, arch=arch, style=style,
                 start=["--start-at", "boot_entry"] if arch == "x86_64" else [],
                 stacks=STACKS.get(style, []))


def all_guests():
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(lambda name: build(*name), all_names()))


def thread(root, *run):
    """Stacks of threads that begin in `root`, call the functions `run`, and then a worker."""
    names = "(;" + "(;".join(run) + f"(;{WORKER})?" + ")?" * len(run)
    return f"{root}({names}){OTHER}*"


def programs():
    """Stacks of onestack's user programs, see user.c, and of its kernel."""
    found = ["(vectors|trap_stubs|trap_entry)(;kernel_trap" + OTHER + "*)?|restore_user"]
    for name in COLORS:
        call = f"(;{name}_yield)?(;user_call)?"
        found.append(f"user_start(;user_main(;{name}_main{CHAIN.format(name)}{call}|"
                     f";{name}_side_main{RECURSIVE.format(name + '_side')}{call}|;user_call)?)?")
    return found


STACKS = {
    "call": [BOOT, thread("thread_start", "thread_run")],
    "context": [BOOT, thread("thread_start", "thread_run")],
    "trap": [BOOT, thread("frame_start", "thread_run")],
    "coroutines": [BOOT, thread("thread_start", "thread_run")],
    "ended": [BOOT, thread("thread_start", "thread_run")],
    "nested": [BOOT, thread("thread_start", "thread_run")],
    "onestack": [BOOT, *programs()],
    "svm": [BOOT, thread("thread_start", "thread_run")],
}
STACKS["small-call"] = STACKS["call"]
STACKS["svm-nested"] = STACKS["svm-user"] = STACKS["svm"]
STACKS["small"] = STACKS["trap-direct"] = STACKS["cortex"] = STACKS["trap"]


# At the first instructions of a trap, and at the last one, the interrupted pc is only in a register
# that samples do not include. Such stacks have one frame.
ALONE = {"aarch64": "vectors|trap_entry", "aarch64-el2": "vectors|trap_entry",
         "riscv64": "trap_entry", "riscv64-m": "trap_entry", "riscv64-h": "trap_entry"}


def is_cut(guest, stack):
    """Whether the sample lacks the rest of this stack. onestack's kernel really begins there."""
    return guest.style != "onestack" and bool(re.fullmatch(ALONE.get(guest.arch, "(?!)"), stack))


def is_in_wrong_guest(stack, task):
    """In traces of guests in ring 0, guest-N is the task of the worker N, others are the hypervisor's."""
    worker = list(SHAPES)[int(task.removeprefix("guest-")) - 1] if task.startswith("guest-") else ""
    others = "|".join(set(SHAPES) - {worker})
    if worker:
        return not re.fullmatch(f"thread_start(;(?!({others})_)\\w+)*", stack)
    return stack.startswith("thread_start")


def legal(guest, stack, task=""):
    """Whether code of the guest can have this stack; in onestack and svm, in a task of this name."""
    color = task.rpartition(".")[2]
    if guest.style in ["svm", "svm-nested"] and task and is_in_wrong_guest(stack, task):
        return False
    if color in COLORS and re.search(f"(^|;)(?!{color})({'|'.join(COLORS)})_", stack):
        return False
    return is_cut(guest, stack) or any(re.fullmatch(form, stack) for form in guest.stacks)


if __name__ == "__main__":
    for each in all_guests():
        print(" ".join(guests.command(each)))
