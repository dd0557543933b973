#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Akaros profiles in stock perf: names, shares, call chains and annotation.

The binaries are real; the kernel's text is linked 32 MiB above its base, as that of Akaros is. The
test makes profiles of all three versions with known shares, and checks what perf prints. perf must
print nothing on stderr.
"""
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import KSCOPE, finish, kpdata as kp, passes, skip

KERNEL_BASE = 0xFFFFFFFFC0000000
LIB_BASE = 0x7F0000000000
FLAGS = ["-g", "-O1", "-fno-omit-frame-pointer", "-ffreestanding", "-nostdlib", "-fuse-ld=lld",
         "-Wl,--build-id=sha1", "-Wl,-z,max-page-size=4096"]

# The stacks, leaf first, and how many of 1000 samples each has.
STACKS = [
    ("kernel", ["spin_lock", "rx_packet", "trap_entry"], 300),
    ("kernel", ["rx_packet", "trap_entry"], 100),
    ("app", ["leaf_work", "mid_work", "user_main"], 350),
    ("app", ["mid_work", "user_main"], 150),
    ("lib", ["lib_hash", "lib_open"], 100),
]
SHARES = {"spin_lock": 30.0, "rx_packet": 10.0, "leaf_work": 35.0, "mid_work": 15.0,
          "lib_hash": 10.0}


def need(condition, message):
    if not condition:
        raise AssertionError(message)


def run(command, **more):
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False, **more)
    need(done.returncode == 0, f"{command[:3]}: exit code {done.returncode}: {done.stderr[:300]}")
    need(done.stderr == "", f"{command[:3]}: stderr is not empty: {done.stderr[:300]}")
    return done.stdout


def source(names):
    """A chain of functions: each calls the one before it."""
    text = "#define F(n, call) __attribute__((noinline)) int n(int x) " \
           "{ volatile int i = x; i++; call; return i; }\n"
    callee = ""
    for name in names:
        text += f"F({name}, {callee})\n"
        callee = f"i += {name}(i)"
    return text


def compile_to(path, names, flags, entry=True):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    text = source(names) + (f"int _start(void) {{ return {names[-1]}(1); }}\n" if entry else "")
    with open(path + ".c", "w", encoding="utf-8") as f:
        f.write(text)
    subprocess.run(["clang", *FLAGS, *flags, path + ".c", "-o", path], check=True,
                   capture_output=True)


def symbols(path):
    out = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in out.splitlines()]
    return {row[2]: int(row[0], 16) for row in rows if len(row) == 3}


def text_segment(path):
    """Offset and address of the executable segment."""
    out = subprocess.run(["readelf", "-lW", path], capture_output=True, text=True,
                         check=True).stdout
    for line in out.splitlines():
        words = line.split()
        if words[:1] == ["LOAD"] and "E" in words[6:8]:
            return int(words[1], 16), int(words[2], 16)
    raise AssertionError(f"{path} has no code")


class Machine:
    """The binaries, and the addresses where they ran."""

    def __init__(self, folder):
        self.root = os.path.join(folder, "root")
        self.kernel = os.path.join(folder, "obj/akaros-kernel-64b")
        base = f"-Wl,--image-base={KERNEL_BASE + (32 << 20):#x}"
        compile_to(self.kernel, ["spin_lock", "rx_packet", "trap_entry"],
                   ["-mcmodel=kernel", "-fno-pic", "-static", base])
        compile_to(self.root + "/bin/app", ["leaf_work", "mid_work", "user_main"],
                   ["-fno-pic", "-static", "-Wl,--image-base=0x400000"])
        compile_to(self.root + "/lib/libwork.so", ["lib_hash", "lib_open"], ["-fPIC", "-shared"],
                   entry=False)
        self.addr = symbols(self.kernel)
        self.addr.update(symbols(self.root + "/bin/app"))
        self.addr.update({name: LIB_BASE + addr for name, addr in
                          symbols(self.root + "/lib/libwork.so").items()})
        self.maps = b""
        for path, load in (("/bin/app", 0), ("/lib/libwork.so", LIB_BASE)):
            offset, vaddr = text_segment(self.root + path)
            page = vaddr & 0xFFF
            self.maps += kp.mapping(1000, 5, load + vaddr - page, 0x1000, offset - page, path)
        self.maps += kp.process(2000, 5, "/bin/app")
        self.kallsyms = os.path.join(folder, "kallsyms")
        with open(self.kallsyms, "w", encoding="utf-8") as f:
            for name, addr in sorted(symbols(self.kernel).items(), key=lambda item: item[1]):
                f.write(f"{addr:016x} T {name}\n")

    def chain(self, names):
        """The leaf's pc, then return addresses."""
        return [self.addr[names[0]] + 4] + [self.addr[name] + 9 for name in names[1:]]

    def profile(self, version):
        """Kernel samples on core 1, others on core 0, in blocks; the maps come last."""
        leaf = (lambda pcs: pcs) if version == 3 else kp.twice
        samples = []
        for nth in range(1000):  # permuted, so that the stacks alternate
            at = nth * 7 % 1000
            for where, names, count in STACKS:
                if at < count:
                    break
                at -= count
            time = 10_000_000 + 1_000_000 * nth
            pcs = leaf(self.chain(names))
            samples.append((1, kp.kernel(version, time, 1, pcs, pid=5)) if where == "kernel"
                           else (0, kp.user(version, time, 5, 0, pcs)))
        blocks = b""
        for first in range(0, 1000, 250):
            for core in (1, 0):
                blocks += b"".join(data for cpu, data in samples[first:first + 250] if cpu == core)
        return blocks + self.maps


def rows(report):
    """{symbol: (percent, comm, binary)} of a report made with the options below."""
    found = {}
    for line in report.splitlines():
        if not line or line.startswith("#"):
            continue
        percent, comm, binary, symbol = (part.strip() for part in line.split("|"))
        name = symbol.split()[1]
        need(name not in found, f"{name} twice")
        found[name] = (float(percent.rstrip("%")), comm, binary, symbol.split()[0])
    return found


REPORT = ["report", "--stdio", "--no-children", "-g", "none", "-F", "overhead,comm,dso,sym", "-t",
          "|"]


class Tests:
    def __init__(self, folder):
        self.folder = folder
        self.machine = Machine(folder)
        self.env = {**os.environ, "HOME": folder, "PAGER": "cat"}
        self.data = {}

    def perf(self, *words):
        return run(["perf", *words], env=self.env, cwd=self.folder)

    def convert(self, version):
        path = os.path.join(self.folder, f"kpdata{version}")
        with open(path, "wb") as f:
            f.write(self.machine.profile(version))
        self.data[version] = os.path.join(self.folder, f"perf{version}.data")
        out = run([KSCOPE, "kprof2perf", "-k", self.machine.kernel, "-i", path, "-o",
                   self.data[version]], env=self.env)
        need(out == "", "kprof2perf prints something")

    def shares(self, found, version, names=tuple(SHARES)):
        for name in names:
            need(name in found, f"v{version}: no row for {name} in {sorted(found)}")
            percent, comm, binary, mode = found[name]
            in_kernel = name in ("spin_lock", "rx_packet")
            need(percent == SHARES[name], f"v{version}: {name} has {percent}%")
            need(comm == ("[kernel]" if in_kernel and version < 3 else "app"),
                 f"v{version}: {name} in {comm}")
            need(binary == ("[kernel.kallsyms]" if in_kernel else
                            "libwork.so" if name == "lib_hash" else "app"),
                 f"v{version}: {name} in {binary}")
            need(mode == ("[k]" if in_kernel else "[.]"), f"v{version}: {name} is {mode}")

    def test_vmlinux_symfs(self, version):
        self.convert(version)
        report = self.perf(*REPORT, "-i", self.data[version], "--vmlinux", self.machine.kernel,
                           "--symfs", self.machine.root)
        found = rows(report)
        self.shares(found, version)
        need(len(found) == len(SHARES), f"rows: {sorted(found)}")

    def test_kallsyms(self, version):
        report = self.perf(*REPORT, "-i", self.data[version], "--kallsyms", self.machine.kallsyms,
                           "--symfs", self.machine.root)
        self.shares(rows(report), version)

    def test_callers(self, version):
        report = self.perf("report", "--stdio", "--children", "-g", "none", "-F",
                           "overhead_children,sym", "-t", "|", "-i", self.data[version],
                           "--vmlinux", self.machine.kernel, "--symfs", self.machine.root)
        found = {}
        for line in report.splitlines():
            if line and not line.startswith("#"):
                percent, symbol = line.split("|")
                name = symbol.split()[1]
                found[name] = found.get(name, 0) + float(percent.strip().rstrip("%"))
        want = {"trap_entry": 40.0, "rx_packet": 40.0, "spin_lock": 30.0, "user_main": 50.0,
                "mid_work": 50.0, "leaf_work": 35.0, "lib_open": 10.0, "lib_hash": 10.0}
        need(found == want, f"{found}")

    def test_script(self, version):
        """Samples are in the order of time, chains are complete, and the leaf is there once."""
        out = self.perf("script", "-F", "time,ip,sym", "-i", self.data[version], "--vmlinux",
                        self.machine.kernel, "--symfs", self.machine.root)
        last, nr, counts = -1.0, 0, {}
        for block in out.strip().split("\n\n"):
            lines = block.splitlines()
            time = float(lines[0].split(":")[0])
            need(time >= last, f"{time} after {last}")
            last, nr = time, nr + 1
            chain = tuple(line.split()[1] for line in lines[1:])
            counts[chain] = counts.get(chain, 0) + 1
        need(nr == 1000, f"{nr} samples")
        need(counts == {tuple(names): count for _, names, count in STACKS}, f"{counts}")

    def annotated(self, *words):
        out = self.perf(*words)
        lines = [line for line in out.splitlines() if line.strip().startswith("100.00")]
        need(len(lines) == 1, f"annotation has {len(lines)} lines of 100%")
        need("volatile int i" in out, "no source lines")

    def test_annotate(self, version):
        self.annotated("annotate", "--stdio", "-i", self.data[version], "--vmlinux",
                       self.machine.kernel, "-s", "spin_lock")
        self.annotated("annotate", "--stdio", "-i", self.data[version], "--symfs",
                       self.machine.root, "-s", "leaf_work")
        self.annotated("annotate", "--stdio", "-i", self.data[version], "--symfs",
                       self.machine.root, "-s", "lib_hash")

    def test_event(self, version):
        out = self.perf("script", "-F", "event,period", "-i", self.data[version],
                        "--vmlinux", self.machine.kernel)
        want = "1 timer:" if version == 1 else "1000000 cpu-clock:"
        need({line.strip() for line in out.splitlines() if line.strip()} == {want}, out[:100])

    def test_cache_alone(self, version):
        """perf finds everything in the build-id cache after the binaries were removed."""
        gone = os.path.join(self.folder, f"gone{version}")
        cache = os.path.join(self.folder, f"cache{version}")
        data = os.path.join(self.folder, f"cached{version}.data")
        shutil.copytree(self.machine.root, gone)
        shutil.copy(self.machine.kernel, gone + "/kernel")
        out = run([KSCOPE, "convert", os.path.join(self.folder, f"kpdata{version}"), "-k",
                   gone + "/kernel", "--root-dir", gone, f"--buildid-cache={cache}", "-o", data],
                  env=self.env)
        need(out == "", "convert prints something")
        shutil.rmtree(gone)
        self.shares(rows(self.perf("--buildid-dir", cache, *REPORT, "-i", data)), version)
        for name in ("spin_lock", "leaf_work", "lib_hash"):
            self.annotated("--buildid-dir", cache, "annotate", "--stdio", "-i", data, "-s", name)

    def test_home_cache(self, version):
        """The same with perf's default cache, filled twice."""
        data = os.path.join(self.folder, f"home{version}.data")
        command = [KSCOPE, "convert", os.path.join(self.folder, f"kpdata{version}"), "-k",
                   self.machine.kernel, "--symfs", self.machine.root, "--buildid-cache", "-o", data]
        run(command, env=self.env)
        run(command, env=self.env)
        self.shares(rows(self.perf(*REPORT, "-i", data)), version)
        shutil.rmtree(os.path.join(self.folder, ".debug"))

    def test_pipe(self, version):
        """From stdin to stdout, the default of the original tool."""
        with open(os.path.join(self.folder, f"kpdata{version}"), "rb") as f:
            done = subprocess.run([KSCOPE, "kprof2perf", "-k", self.machine.kernel], stdin=f,
                                  capture_output=True, check=False, env=self.env)
        with open(self.data[version], "rb") as f:
            need(done.returncode == 0 and done.stdout == f.read(), "not the same bytes")
        need(done.stderr == b"", done.stderr)

    def test_host_files(self, version):
        """A file of this machine is not used for a path of the recorded machine."""
        path = os.path.join(self.folder, "host.kpdata")
        with open(path, "wb") as f:
            f.write(kp.mapping(1, 5, 0x400000, 0x1000, 0, "/bin/sh") +
                    kp.user(version, 2, 5, 0, [0x400100]) * 3)
        data = os.path.join(self.folder, "host.data")
        run([KSCOPE, "kprof2perf", "-i", path, "-o", data], env=self.env)
        out = self.perf("buildid-list", "-i", data)
        need(out.split() == ["/bin/sh"], f"a build id of this machine: {out}")

    def test_histogram(self, version):
        """The oldest table: its addresses get the kernel's complete names."""
        path, data = os.path.join(self.folder, "histogram"), os.path.join(self.folder, "h.data")
        ticks = {"spin_lock": 100 * version, "rx_packet": 100}
        with open(path, "w", encoding="ascii") as f:
            for name, nr in ticks.items():
                f.write(f"{self.machine.addr[name] + 8 & ~7:016x} {name[:3]:>29} {nr:016x}\n")
        run([KSCOPE, "kprof2perf", "-k", self.machine.kernel, "-i", path, "-o", data],
            env=self.env)
        found = rows(self.perf(*REPORT, "-i", data, "--vmlinux", self.machine.kernel))
        want = {name: (round(nr / (version + 1), 2), "akaros", "[kernel.kallsyms]", "[k]")
                for name, nr in ticks.items()}
        need(found == want, f"{found}")


NAMES = [name for name in vars(Tests) if name.startswith("test_")]


def main():
    missing = [tool for tool in ("perf", "clang", "ld.lld", "nm", "readelf", "objdump")
               if not shutil.which(tool)]
    if missing:
        skip("akaros_perf", f"no {', '.join(missing)}")
        finish()
    with tempfile.TemporaryDirectory() as folder:
        tests = Tests(folder)
        for version in (1, 2, 3):
            for name in NAMES:
                passes(f"akaros_v{version}_{name[5:]}", getattr(tests, name), version)
    finish()


if __name__ == "__main__":
    main()
