#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""sym_seeds.py FOLDER: writes inputs of fuzz_sym: binaries of each machine with DWARF of each kind, with their debug
files, object files and symbol lists. Without a tool that makes a kind, it is left out."""
import glob
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "unit"))
from sym_files import ASSEMBLER, KALLSYMS, NAMES, SOURCE, TARGETS

CLANG = ["clang", "-O2", "-g", "-nostdlib", "-static", "-fuse-ld=lld", "-fno-pic", "-Wl,--build-id=sha1", "-x"]
LISTS = {
    "kallsyms": KALLSYMS,
    "perf-1.map": "1000 10 a\n1000 20 moved here\n0x2000 0x8 f@1 (int)\nno\n3000 0 empty\n4000 ffffffffffffffff top\n",
    "app.sym": "# symbols: 4\n0000 10 T main\n10 20 t _ZN1aC1Ev\n30 P memcpy\n40 ? end\n50 5 K vfs_read\tmore\nbad\n",
}
CXX = """namespace box { template <class T> struct Item { T value; __attribute__((noinline)) T get(T more) {
return value * more + value; } }; } inline int twice(int x) { return x * 2; }
extern "C" void _start() { box::Item<int> a{3}; volatile int n = twice(a.get(4)); for (;;) n = twice(n); }"""
RUST = """#![no_std] #![no_main] #[panic_handler] fn p(_: &core::panic::PanicInfo) -> ! { loop {} }
#[inline(never)] fn work(x: u32) -> u32 { x.wrapping_mul(3) ^ x } #[inline(always)] fn twice(x: u32) -> u32 { work(x) + 1 }
#[no_mangle] pub extern "C" fn _start() -> ! { let mut x = 1u32; loop { x = twice(x); unsafe { core::ptr::write_volatile(
0x1000 as *mut u32, x) } } }"""


class Seeds:
    def __init__(self, to, work):
        self.to, self.work = to, work

    def path(self, name):
        return os.path.join(self.work, name)

    def run(self, *command):
        return subprocess.run(command, cwd=self.work, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, check=False).returncode == 0

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as f:
            f.write(text)

    def pack(self, seed, *files):
        """files: names, or pairs of the name in the folder and the file."""
        packed = b""
        for file in files:
            name, path = file if isinstance(file, tuple) else (file, file)
            if not os.path.exists(self.path(path)):
                return
            with open(self.path(path), "rb") as f:
                data = f.read()
            packed += f"{name}\n{len(data)}\n".encode() + data
        for odd in range(2):  # fuzz_sym.c looks into the folder, or not
            with open(os.path.join(self.to, f"{seed}-{odd}"), "wb") as f:
                f.write(packed + b"\n" * ((len(packed) + odd) % 2))


def machines(seeds):
    seeds.write("prog.c", SOURCE)
    seeds.write("asm.s", ASSEMBLER)
    for arch, flags in TARGETS.items():
        seeds.run(*CLANG, "c", *flags, "prog.c", "-o", arch)
        seeds.pack(arch, arch)
        seeds.run(*CLANG, "assembler", *flags, "asm.s", "-o", arch + "-asm")
        seeds.pack(arch + "-asm", arch + "-asm")
        seeds.run("clang", *flags, "-O2", "-g", "-c", "prog.c", "-o", arch + ".o")
        seeds.pack(arch + "-object", arch + ".o")
        seeds.run("clang", *flags, "-O1", "-nostdlib", "-shared", "-fPIC", "-fuse-ld=lld", "plt.c", "-o", arch + ".so")
        seeds.pack(arch + "-plt", arch + ".so")


def dwarf(seeds):
    for name, flags in {"2": ["-gdwarf-2"], "3": ["-gdwarf-3"], "4": ["-gdwarf-4"], "5": ["-gdwarf-5"],
                        "types": ["-fdebug-types-section"], "zlib": ["-gz=zlib"], "split": ["-gsplit-dwarf"],
                        "ranges": ["-ffunction-sections", "-Wl,--gc-sections"], "lines": ["-gmlt"],
                        "ibt": ["-fcf-protection"], "dwarf64": ["-gdwarf-5", "-gdwarf64"]}.items():
        seeds.run(*CLANG, "c", *flags, "prog.c", "-o", "dwarf-" + name)
        seeds.pack("dwarf-" + name, "dwarf-" + name, *(glob.glob("*.dwo", root_dir=seeds.work)))
        seeds.run(*CLANG, "c++", *flags, "prog.cc", "-o", "cxx-" + name)
        seeds.pack("cxx-" + name, "cxx-" + name)
    seeds.run("rustc", "-g", "-Copt-level=1", "-Cpanic=abort", "-Clink-arg=-nostdlib", "-Clink-arg=-static",
              "-Clink-arg=-nostartfiles", "-Crelocation-model=static", "prog.rs", "-o", "rust")
    seeds.pack("rust", "rust")


def debug_files(seeds):
    if not seeds.run(*CLANG, "c", "prog.c", "-o", "full"):
        return
    seeds.run("llvm-objcopy", "--only-keep-debug", "full", "prog.debug")
    seeds.run("llvm-objcopy", "--strip-all", "full", "bare")
    seeds.run("llvm-objcopy", "--add-gnu-debuglink=prog.debug", "bare", "linked")
    seeds.run("llvm-objcopy", "--add-gnu-debuglink=linked", "bare", "circle")
    seeds.run("llvm-objcopy", "--remove-section=.note.gnu.build-id", "linked", "no-id")
    build_id = subprocess.run(["llvm-readelf", "-n", "full"], cwd=seeds.work, stdout=subprocess.PIPE, text=True,
                              check=False).stdout.split("Build ID: ")[-1].split()[0]
    place = f".build-id:{build_id[:2]}:{build_id[2:]}.debug"
    seeds.pack("stripped", "bare")
    seeds.pack("beside", "linked", "prog.debug")
    seeds.pack("hidden", "linked", (".debug:prog.debug", "prog.debug"))
    seeds.pack("checksum", "no-id", "prog.debug")
    seeds.pack("by-id", "bare", (place, "prog.debug"))
    seeds.pack("symfs", "bare", ("usr:lib:debug:" + place, "prog.debug"))
    seeds.pack("circle", "linked", ("prog.debug", "circle"))
    seeds.pack("to-text", "linked", ("prog.debug", "prog.c"))
    seeds.run(*CLANG, "c", "-gdwarf-4", "prog.c", "-o", "alone")
    seeds.run("cp", "alone", "twin")
    if seeds.run("dwz", "-m", "common", "-M", "common", "alone", "twin"):
        seeds.pack("dwz", "alone", "common")


def lists(seeds):
    for name, text in LISTS.items():
        seeds.write(name, text)
        seeds.pack(name, name)
    functions = "".join(f'\t.globl "{name}"\n\t.type "{name}", %function\n"{name}": .long 0\n' for name in NAMES)
    seeds.write("names.s", "\t.text\n\t.globl _start\n_start: .long 0\n" + functions)
    seeds.run(*CLANG, "assembler", "names.s", "-o", "names")
    seeds.pack("names", "names")


def main():
    with tempfile.TemporaryDirectory() as work:
        seeds = Seeds(os.path.abspath(sys.argv[1]), work)
        seeds.write("plt.c", "void ext_a(int); void ext_b(int); void call(int x) { ext_a(x); ext_b(x + 1); ext_a(3); }\n")
        seeds.write("prog.cc", CXX)
        seeds.write("prog.rs", RUST)
        machines(seeds)
        dwarf(seeds)
        debug_files(seeds)
        lists(seeds)


if __name__ == "__main__":
    main()
