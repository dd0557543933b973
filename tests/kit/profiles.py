# SPDX-License-Identifier: GPL-2.0-or-later
"""A profile that has what writers get wrong: several cpus, processes, threads and events, user and kernel code,
inlined functions with lines, names that no compiler accepts and one of 10 kB, code without a name, and losses."""
import json
import os
import random
import re

from . import ROOT, kscope, run

SOURCES = os.path.join(ROOT, "tests", "profiles")
# Not in ELF files: tasks.
TASKS = [
    # pid, tid, name, how often it runs
    (0, 0, "idle", 4),
    (100, 100, "main", 3),
    (100, 101, 'say "hi" <b>&amp;</b>', 3),
    (100, 102, "wörker \\ 😀", 2),
    (200, 200, "main", 2),
    (300, 300, "</script><img src=x>", 1),
]
NAMES = {
    "odd_quotes": "say \"hi\" 'there' <b>&lt;</b> \\n %s",
    "odd_emoji": "wörk 😀 [i] (x) {y}",
    "odd_separators": "a;b,c:d|e=f #g //h</script>",
}
EVENTS = ["cycles", "instructions"]
KERNEL_BASE = 0xffffffff81000000
MISSING = "/nowhere/libmissing.so.1"
LOST = [(1, 12), (3, 30)]  # cpu, samples
# Bytes and nanoseconds, no times, equal names in two binaries, a sample without a stack.
UNITS = """kscope-dump 1
source id=1 name="heap" unit="bytes" no-time
source id=2 name="work" unit="ns" no-time
sample task=7/7 source=1 weight=3145728 : named "main"@"/bin/a"
sample task=7/7 source=1 weight=1048576 : named "leaf"@"/bin/b" "main"@"/bin/b"
sample task=7/7 source=2 weight=2500000 : named "main"@"/bin/a"
sample task=7/8 source=2 weight=1500 : user
"""
NR = 4000
CPUS = 4


def _built(command):
    done = run(*command)
    if done.returncode:
        raise RuntimeError(f"{command}: {done.stderr}")


def _functions(path):
    """{name: (address, size)} of an ELF file, by the names of the source."""
    found = {}
    for line in run("nm", "-S", "--defined-only", path).stdout.splitlines():
        words = line.split(" ", 3)
        if len(words) == 4 and words[2] in "tTwW":
            found[words[3]] = int(words[0], 16), int(words[1], 16)
    return found


def _quoted(text):
    return json.dumps(text, ensure_ascii=False)


class Profile:
    """In `path`; `options` are those that kscope needs to read it."""

    def __init__(self, folder):
        self.folder = folder
        self.program, self.kernel = os.path.join(folder, "program"), os.path.join(folder, "vmlinux")
        self.path = os.path.join(folder, "odd.dump")
        self.options = []
        self.build()
        self.write()

    def report(self, *options):
        """What kscope report --json says."""
        done = kscope("report", self.path, *self.options, "--json", "--limit", "0", *options)
        if done.returncode:
            raise RuntimeError(done.stderr)
        return json.loads(done.stdout)

    def build(self):
        def source(name):
            return os.path.join(SOURCES, name)

        odd = os.path.join(self.folder, "odd.o")
        # Without debug information, so that the symbol table has the only names.
        _built(["gcc", "-O1", "-g0", "-fno-asynchronous-unwind-tables", "-c", source("odd.c"), "-o", odd])
        _built(["g++", "-O1", "-g", "-static", "-nostartfiles", "-nostdlib", "-no-pie", "-Wl,--build-id",
                "-Wl,-e,main", "-fno-stack-protector", source("program.cpp"), odd, "-o", self.program])
        self.functions = _functions(self.program)
        for name, odd_name in NAMES.items():
            _built(["objcopy", "--redefine-sym", f"{name}={odd_name}", self.program])
        _built(["gcc", "-O1", "-g", "-static", "-nostartfiles", "-nostdlib", "-no-pie", "-ffreestanding",
                "-fno-stack-protector", "-Wl,--build-id", f"-Wl,-Ttext-segment={KERNEL_BASE:#x}",
                source("kernel.c"), "-o", self.kernel])
        self.kernel_functions = _functions(self.kernel)

    def _maps(self):
        for path, kernel in ((self.program, ""), (self.kernel, " kernel linked")):
            text = run("readelf", "-lW", path).stdout
            for words in (line.split() for line in text.splitlines()):
                if words[:1] == ["LOAD"] and "E" in words[6:-1]:
                    for pid in [0] if kernel else sorted({task[0] for task in TASKS} - {0}):
                        yield (f"map task={pid}/{pid} addr={int(words[2], 16):#x} len={int(words[5], 16):#x} "
                               f"offset={int(words[1], 16):#x} prot=r-x{kernel} path={_quoted(path)}")
        yield f'map task=200/200 addr=0x7f0000000000 len=0x1000 offset=0x0 prot=r-x path="{MISSING}"'

    def _inside(self, at, rng):
        start, size = at
        return start + rng.randrange(1, size)

    def _user_stack(self, pid, rng):
        def named(part):
            return next(at for name, at in self.functions.items() if re.search(rf"(?<![a-z_]){part}", name))

        chains = [["hash_all"], ["odd_separators"], ["of_type"], ["odd_quotes", "of_type"],
                  ["odd_emoji"] + ["recurse"] * 5, ["recurse"] * 3]
        chain = rng.choices(chains, [6, 1, 2, 2, 2, 1])[0] + ["thread_main", "main"]
        ips = [self._inside(named(part), rng) for part in chain]
        if pid == 200 and rng.random() < .3:
            ips.insert(0, rng.choice([0x7f0000000123, 0x7f0000000456, 0x5000]))
        return ips

    def _kernel_stack(self, pid, rng):
        chains = [["cpu_idle", "start_kernel", "_start"]] if not pid else [
            ["copy_to_user", "sys_read", "syscall_entry"], ["sys_read", "syscall_entry"],
            ["update_process_times", "trap"]]
        return [self._inside(self.kernel_functions[name], rng) for name in rng.choice(chains)]

    def _sample(self, number, rng):
        pid, tid, _, _ = rng.choices(TASKS, [task[3] for task in TASKS])[0]
        source = rng.choices([1, 2], [3, 1])[0]
        kernel = not pid or rng.random() < .4
        ips = []
        if kernel:
            ips += ["kernel"] + [f"{ip:#x}" for ip in self._kernel_stack(pid, rng)]
        if pid:
            ips += ["user"] + [f"{ip:#x}" for ip in self._user_stack(pid, rng)]
        weight = rng.randrange(500, 200000)
        return (f"sample time={1 + number / 10000:.9f} cpu={rng.randrange(CPUS)} task={pid}/{tid} source={source} "
                f"weight={weight} : " + " ".join(ips))

    def write(self):
        rng = random.Random(14)
        lines = ["kscope-dump 1", 'meta key="arch" value="x86_64"', 'meta key="hostname" value="odd <host>"']
        lines += [f'source id={number + 1} name="{name}" type=0 config={number:#x} period=100000'
                  for number, name in enumerate(EVENTS)]
        lines += [f"fork task={pid}/{tid} parent=0/0" for pid, tid, _, _ in TASKS if pid == tid and pid]
        lines += list(self._maps())
        lines += [f"fork time=0.500000000 task={pid}/{tid} parent={pid}/{pid}" for pid, tid, _, _ in TASKS if pid != tid]
        lines += [f"comm time=0.600000000 task={pid}/{tid} name={_quoted(name)}" for pid, tid, name, _ in TASKS]
        for number in range(NR):
            lines.append(self._sample(number, rng))
            if number in (NR // 3, NR // 2):
                cpu, count = LOST[number == NR // 2]
                lines.append(f"lost time={1 + number / 10000:.9f} cpu={cpu} count={count} bytes=0")
        with open(self.path, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")


def odd(folder):
    return Profile(folder)
