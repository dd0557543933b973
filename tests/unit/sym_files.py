#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""src/sym with every kind of file: architectures, stripped ones, separate debug files, lists of
symbols, and broken files. For broken files, a build with sanitizers finds more errors:
SYMTOOL=build/asan/tests/symtool tests/unit/sym_files.py"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import BUILD, check, finish, run, skip

SYMTOOL = os.environ.get("SYMTOOL") or os.path.join(BUILD, "tests", "symtool")

SOURCE = r"""
static inline __attribute__((always_inline)) int inner(int x) { return x * 5 + (x ^ 3); }
static inline __attribute__((always_inline)) int middle(int x)
{
	return inner(x) - inner(x / 3);
}
__attribute__((noinline)) int outer(volatile int *p)
{
	int sum = 0;
	for (int i = 0; i < *p; i++)
		sum += middle(i + *p);
	return sum;
}
__attribute__((noinline, weak)) int other(volatile int *p) { return *p + 1; }
void _start(void) { volatile int n = 9; n = outer(&n) + other(&n); for (;;) ; }
"""

# Labels without type or size, a local label in a sized function, and several names of one address.
ASSEMBLER = r"""
	.text
	.globl label_one
label_one:
	.long 0, 0, 0, 0
label_two:
	.long 0, 0
	.globl sized
	.type sized, %function
sized:
	.long 0, 0
inside:
	.long 0, 0
	.size sized, . - sized
	.globl _start
	.type _start, %function
	.weak start_weak
	.type start_weak, %function
_start:
start_weak:
start_label:
	.long 0
	.size _start, . - _start
	.size start_weak, . - start_weak
last:
	.long 0, 0, 0
"""

NAMES = {
    "_ZNSt6vectorIiSaIiEE9push_backERKi":
        "std::vector<int, std::allocator<int> >::push_back(int const&)",
    "_Z3fooi.isra.0": "foo(int) [clone .isra.0]",
    "_ZN4core3ptr13drop_in_place17h0123456789abcdefE": "core::ptr::drop_in_place",
    "_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$3bar"
    "17h930b740aa94f1d3aE":
        "<Test + 'static as foo::Bar<Test>>::bar",
    "_RNvNtCs1234_7mycrate3foo3bar": "mycrate::foo::bar",
    "_RINvNtC3std3mem8align_ofdE": "std::mem::align_of::<f64>",
    "_Znonsense": "_Znonsense",
    "plain_c": "plain_c",
}

KALLSYMS = """ffffffff81000000 T _stext
ffffffff81000000 T startup_64
ffffffff81000100 t secondary
ffffffff81000200 W weak_one
ffffffff81000300 D some_data
ffffffff81000400 T after_data
0000000000000000 A fixed_percpu_data
ffffffffc0001000 t module_func\t[loop]
ffffffffc0001080 T module_other\t[loop]
"""


def must(*command, cwd=None):
    done = run(*command, cwd=cwd)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()[:300]}")
    return done.stdout


def sym(path, *options, addresses=()):
    return run(SYMTOOL, *options, path, input="".join(f"{a:#x}\n" for a in addresses).encode())


def names(path, addresses, *options):
    """The function names of each address, innermost first."""
    found = []
    for line in sym(path, *options, addresses=addresses).stdout.splitlines():
        if line.startswith("0x"):
            found.append([])
            at = 0
        else:
            if at % 2 == 0:
                found[-1].append(line)
            at += 1
    return found


def find(path, function, *options):
    out = sym(path, *options, "-f", function).stdout
    return int(out, 16) if out else None


def inside(path, function):
    """Every second address of a function."""
    start = find(path, function)
    _, extent, size = sym(path, "-e", addresses=[start]).stdout.splitlines()[1].split()
    return range(int(extent, 16), int(extent, 16) + int(size, 16), 2)


def crashed(done):
    return done.returncode < 0 or done.returncode > 4 or "Sanitizer" in done.stderr or \
        "runtime error" in done.stderr


# ---- architectures ----

TARGETS = {
    "x86_64": ["--target=x86_64-linux-gnu"],
    "i386": ["--target=i386-linux-gnu"],
    "arm": ["--target=armv7-linux-gnueabi", "-marm"],
    "thumb": ["--target=armv7-linux-gnueabi", "-mthumb"],
    "aarch64": ["--target=aarch64-linux-gnu"],
    "riscv64": ["--target=riscv64-linux-gnu", "-mno-relax"],
    "riscv32": ["--target=riscv32-linux-gnu", "-mno-relax"],
    "mips-big-endian": ["--target=mips-linux-gnu"],
}


def clang(folder, name, source, flags, suffix=".c"):
    path, elf = os.path.join(folder, name + suffix), os.path.join(folder, name)
    with open(path, "w") as f:
        f.write(source)
    must("clang", *flags, "-O2", "-g", "-nostdlib", "-static", "-fuse-ld=lld", "-fno-pic",
         "-Wl,--build-id=sha1", path, "-o", elf, cwd=folder)
    return elf


def llvm_chains(elf, addresses):
    out = run("llvm-symbolizer", f"--obj={elf}", "--output-style=GNU", "--no-demangle", "--inlines",
              "--functions=linkage", "--addresses",
              input="".join(f"{a:#x}\n" for a in addresses).encode())
    return [line.split(" (disc")[0] for line in out.stdout.splitlines() if line]


def normal(lines):
    """Makes the width of addresses, and 0 and ? for unknown lines, the same."""
    return [hex(int(l, 16)) if l.startswith("0x") else l[:-2] + ":0" if l.endswith(":?") else l
            for l in lines]


def one_target(folder, arch, flags):
    try:
        elf = clang(folder, "prog-" + arch, SOURCE, flags)
    except RuntimeError as why:
        return skip("arch-" + arch, why)
    start = find(elf, "outer")
    if start is None or start & 1:
        return check("arch-" + arch, False, f"outer is at {start}")
    addresses = [a for f in ("outer", "other", "_start") for a in inside(elf, f)]
    if shutil.which("llvm-symbolizer"):
        ours = normal(sym(elf, addresses=addresses).stdout.splitlines())
        theirs = normal(llvm_chains(elf, addresses))
        pairs = [(a, b) for a, b in zip(ours, theirs) if a != b]
        check("arch-" + arch, len(ours) == len(theirs) and not pairs, pairs[:4])
    chain = max(names(elf, addresses), key=len)
    check("inlines-" + arch, chain == ["inner", "middle", "outer"], chain)


def assembler(folder, arch, flags):
    try:
        elf = clang(folder, "asm-" + arch, ASSEMBLER, flags + ["-g0"], ".s")
    except RuntimeError as why:
        return skip("assembler-" + arch, why)
    base = find(elf, "label_one")
    want = {0: "label_one", 15: "label_one", 16: "label_two", 23: "label_two", 24: "sized",
            32: "sized", 39: "sized", 40: "_start", 43: "_start", 44: "last", 55: "last", 56: "??"}
    got = [n[0] for n in names(elf, [base + a for a in want])]
    check("assembler-" + arch, got == list(want.values()), f"{got}")


# ---- separate debug files ----

def split_debug(folder, build_id):
    """Makes prog, which is stripped, and prog.debug with its DWARF and symbols."""
    os.makedirs(folder)
    source = os.path.join(folder, "prog.c")
    with open(source, "w") as f:
        f.write(SOURCE)
    must("cc", "-O2", "-g", "-nostdlib", "-static", f"-Wl,--build-id={build_id}", source, "-o",
         "full", cwd=folder)
    must("objcopy", "--only-keep-debug", "full", "prog.debug", cwd=folder)
    must("objcopy", "--strip-all", "full", "bare", cwd=folder)
    must("objcopy", "--add-gnu-debuglink=prog.debug", "bare", "prog", cwd=folder)
    full = os.path.join(folder, "full")
    start = find(full, "outer")
    asked = range(start, start + 40)
    return os.path.join(folder, "prog"), asked, sym(full, addresses=asked).stdout


def debug_links(top):
    prog, asked, want = split_debug(os.path.join(top, "link"), "none")
    folder = os.path.dirname(prog)
    debug = os.path.join(folder, "prog.debug")
    bare = os.path.join(folder, "bare")
    check("inlines-native", "middle" in want, want[:300])
    check("stripped", [n[0] for n in names(bare, asked)] == ["??"] * len(asked), "has names")
    done = sym(prog, addresses=asked)
    check("debuglink-beside", done.stdout == want, done.stderr)
    os.makedirs(os.path.join(folder, ".debug"))
    hidden = os.path.join(folder, ".debug", "prog.debug")
    os.rename(debug, hidden)
    check("debuglink-.debug", sym(prog, addresses=asked).stdout == want, "not found")
    elsewhere = os.path.join(top, "elsewhere")
    os.makedirs(elsewhere)
    os.rename(hidden, os.path.join(elsewhere, "prog.debug"))
    done = sym(prog, "-d", elsewhere, addresses=asked)
    check("debuglink-folder", done.stdout == want, done.stderr)
    with open(os.path.join(elsewhere, "prog.debug"), "ab") as f:
        f.write(b"x")
    done = sym(prog, "-d", elsewhere, addresses=asked)
    refused = "checksum" in done.stderr and done.stdout != want
    check("debuglink-wrong-checksum", refused, done.stderr)
    with open(os.path.join(folder, "prog.debug"), "w") as f:
        f.write("not an ELF")
    done = sym(prog, addresses=asked)
    check("debuglink-to-text", done.returncode == 0 and "not an ELF" in done.stderr, done.stderr)
    os.unlink(os.path.join(folder, "prog.debug"))
    os.mkfifo(os.path.join(folder, "prog.debug"))
    done = sym(prog, addresses=asked)
    check("debuglink-to-fifo", done.returncode == 0 and "regular" in done.stderr, done.stderr)


def build_ids(top):
    prog, asked, want = split_debug(os.path.join(top, "id"), "sha1")
    debug = os.path.join(os.path.dirname(prog), "prog.debug")
    bare = os.path.join(os.path.dirname(prog), "bare")
    hex_id = sym(bare, "-i").stdout.splitlines()[1].split()[1]
    readelf = must("readelf", "-n", bare)
    check("build-id", hex_id in readelf and len(hex_id) == 40, hex_id)
    store = os.path.join(top, "store")
    place = os.path.join(".build-id", hex_id[:2], hex_id[2:] + ".debug")
    for root in (store, os.path.join(top, "symfs/usr/lib/debug")):
        os.makedirs(os.path.dirname(os.path.join(root, place)))
        shutil.copy(debug, os.path.join(root, place))
    check("build-id-folder", sym(bare, "-d", store, addresses=asked).stdout == want, "not found")
    done = sym(bare, "-s", os.path.join(top, "symfs"), addresses=asked)
    check("build-id-symfs", done.stdout == want, done.stderr)


def symfs(top):
    prog, asked, want = split_debug(os.path.join(top, "root"), "none")
    tree = os.path.join(top, "tree")
    os.makedirs(os.path.join(tree, "opt/x"))
    os.makedirs(os.path.join(tree, "usr/lib/debug/opt/x"))
    shutil.copy(prog, os.path.join(tree, "opt/x/prog"))
    shutil.copy(os.path.join(top, "root/prog.debug"), os.path.join(tree, "usr/lib/debug/opt/x"))
    done = sym("/opt/x/prog", "-s", tree, addresses=asked)
    check("symfs", done.stdout == want, done.stderr)
    done = sym(prog, "-s", tree, addresses=asked)
    check("symfs-not-there", done.stdout == want, done.stderr)


def circles(top):
    """Debug links in a circle. Only its build id makes such a file pass as the right one."""
    prog, asked, _ = split_debug(os.path.join(top, "circle"), "sha1")
    folder = os.path.dirname(prog)
    shutil.copy(os.path.join(folder, "bare"), os.path.join(folder, "b"))
    must("objcopy", "--add-gnu-debuglink=b", "bare", "a", cwd=folder)
    must("objcopy", "--add-gnu-debuglink=a", "bare", "b", cwd=folder)
    done = sym(os.path.join(folder, "a"), addresses=asked)
    check("debuglink-circle", done.returncode == 0 and "form a loop" in done.stderr, done.stderr)
    shutil.copy(os.path.join(folder, "bare"), os.path.join(folder, "self"))
    must("objcopy", "--add-gnu-debuglink=self", "self", "self", cwd=folder)
    done = sym(os.path.join(folder, "self"), addresses=asked)
    check("debuglink-to-itself", done.returncode == 0 and "form a loop" in done.stderr, done.stderr)


# ---- names ----

def demangling(top):
    text = "\t.text\n\t.globl _start\n_start: .long 0\n" + "".join(
        f'\t.globl "{n}"\n\t.type "{n}", %function\n"{n}": .long 0\n' for n in NAMES)
    elf = clang(top, "names", text, ["--target=x86_64-linux-gnu"], ".s")
    asked = [find(elf, n) for n in NAMES]
    got = [n[0] for n in names(elf, asked, "-C")]
    if got == list(NAMES):
        return skip("demangle", "built without libiberty")
    check("demangle", got == list(NAMES.values()), got)
    check("demangle-linkage", [n[0] for n in names(elf, asked)] == list(NAMES), "changed")


def hostile_names(top):
    """Deep, exponential and overlong names: kscope neither crashes nor hangs."""
    digits = "0123456789ABCDEFGHIJKLMNOP"
    hostile = {"deep": "_Z1f" + "P" * 4000 + "i", "deepest": "_Z1f" + "P" * 60000 + "i",
               "nested": "_ZN" + "1aI" * 1300 + "iE" * 1300 + "E",
               "doubling": "_Z1fI" + "".join(f"1aIS{s}_S{s}_E" for s in ["", *digits]) + "Evv",
               "rust": "_RINvC1a1b" + "T" * 2000 + "u" + "E" * 2000 + "E",
               "rust-doubling": "_RMC0" + "T" * 60 + "p" + "B4_E" * 60}
    text = "\t.text\n" + "".join(f'\t.globl "{n}"\n"{n}": .long 0\n' for n in hostile.values())
    elf = clang(top, "hostile", text, ["--target=x86_64-linux-gnu", "-Wl,-e,0"], ".s")
    base = int(must("nm", "-n", elf).split()[0], 16)
    done = sym(elf, "-C", addresses=range(base, base + 4 * len(hostile), 4))
    check("demangle-hostile", done.returncode == 0 and not crashed(done), done.stderr)


def kallsyms(top):
    path = os.path.join(top, "kallsyms")
    with open(path, "w") as f:
        f.write(KALLSYMS)
    base = 0xffffffff81000000
    want = {base: "_stext", base + 0xff: "_stext", base + 0x100: "secondary",
            base + 0x2ff: "weak_one", base + 0x300: "??", base + 0x3ff: "??",
            base + 0x400: "after_data",
            0xffffffffc000107f: "module_func", 0xffffffffc0001080: "module_other",
            0xffffffffc000207f: "module_other", 0xffffffffc0002080: "??", 0: "??"}
    got = [n[0] for n in names(path, want)]
    # Of two global names for one address, either may win, but always the same one.
    got = ["_stext" if n == "startup_64" else n for n in got]
    check("kallsyms", got == list(want.values()), got)
    check("kallsyms-find", find(path, "weak_one") == base + 0x200, find(path, "weak_one"))
    headers = sym(path, "-i").stdout
    check("kallsyms-headers", headers.startswith("machine 0 64"), headers)
    with open(path, "w") as f:
        f.write("0000000000000000 T _stext\n0000000000000000 t secondary\n")
    done = sym(path)
    check("kallsyms-hidden", done.returncode == 3 and "kptr_restrict" in done.stderr, done.stderr)
    with open(path, "wb") as f:
        f.write(KALLSYMS.encode() + b"\0\xff garbage\nffffffff T\n" + b"c0de T " + b"x" * 100000)
    done = sym(path, addresses=want)
    check("kallsyms-garbage", done.returncode == 0 and not crashed(done), done.stderr)


def perf_map(top):
    path = os.path.join(top, "perf-123.map")
    with open(path, "wb") as f:
        f.write(b"1000 10 a\n1000 20 moved here\n0x2000 0x8 f@1 (int)\nno\n3000 0 empty\n"
                b"\0\xff\n4000 ffffffffffffffff to the top")
    want = {0xfff: "??", 0x1000: "moved here", 0x101f: "moved here", 0x1020: "??",
            0x2007: "f@1 (int)", 0x2008: "??", 0x3000: "??", 0x4000: "to the top",
            0xfffffffffffffff0: "to the top"}
    got = [n[0] for n in names(path, want)]
    check("perf-map", got == list(want.values()), got)
    done = sym(path, addresses=[0x1000])
    check("perf-map-garbage", "skipped 2 lines that are not" in done.stderr, done.stderr)
    with open(path, "w") as f:
        f.write("")
    done = sym(path)
    check("perf-map-empty", done.returncode == 3 and "no functions" in done.stderr, done.stderr)


def stubs(top):
    """Calls into libraries: the stub is named after the function that it calls."""
    source = "".join(f"void ext_{c}(int); void call_{c}(void) {{ ext_{c}({i}); ext_{c}(9); }}\n"
                     for i, c in enumerate("dacb"))
    path = os.path.join(top, "stubs.c")
    with open(path, "w") as f:
        f.write(source)
    for arch, more in (("x86_64", []), ("x86_64", ["-fcf-protection", "-Wl,-z,force-ibt"]),
                       ("i386", []), ("aarch64", []), ("arm", [])):
        elf = os.path.join(top, "stubs-" + arch)
        must("clang", *TARGETS[arch], *more, "-O1", "-nostdlib", "-shared", "-fPIC",
             "-fuse-ld=lld", path, "-o", elf)
        text = must("llvm-objdump", "-d", "--no-show-raw-insn", elf)
        called = {}
        for function, body in re.findall(r"<call_(.)>:\n(.*?)\n\n", text + "\n\n", re.S):
            # All calls and jumps out of the function; addresses are printed with or without 0x.
            leads = re.findall(r"(?:call\w*|jmp|bl?|b)\s+#?(?:0x)?([0-9a-f]{4,})\b", body)
            called.update({int(a, 16): f"ext_{function}@plt" for a in leads
                           if f" {a}:" not in body})
        got = [n[0] for n in names(elf, called)]
        check("stubs-" + " ".join([arch, *more[:1]]),
              got == list(called.values()) and len(called) == 4, f"{got} {called}")


# ---- files that are not an ELF, or only a part of one ----

def strange_files(top):
    cases = {"text": b"hello, world\n", "empty": b"", "magic": b"\177ELF", "zeros": bytes(4096),
             "ident": b"\177ELF\2\1\1" + bytes(9), "class": b"\177ELF\9\1\1" + bytes(100),
             "ones": b"\177ELF\2\1\1\0" + b"\xff" * 500}
    for name, content in cases.items():
        path = os.path.join(top, "strange-" + name)
        with open(path, "wb") as f:
            f.write(content)
        done = sym(path, addresses=[0, 0x1000, 2 ** 64 - 1])
        fine = not crashed(done) and (done.returncode == 0 or path in done.stderr)
        check("strange-" + name, fine, f"exit {done.returncode}: {done.stderr}")
    for name, path in (("missing", os.path.join(top, "nothing")), ("folder", top)):
        done = sym(path)
        check("strange-" + name, done.returncode == 3 and path in done.stderr, done.stderr)
    fifo = os.path.join(top, "fifo")
    os.mkfifo(fifo)
    done = sym(fifo)
    check("strange-fifo", done.returncode == 3 and "regular" in done.stderr, done.stderr)
    locked = os.path.join(top, "locked")
    with open(locked, "w") as f:
        f.write("x")
    os.chmod(locked, 0)
    if os.access(locked, os.R_OK):  # root may read any file: run as another user
        tool = shutil.copy(SYMTOOL, top)
        for path in (top, tool):
            os.chmod(path, 0o755)
        done = subprocess.run([tool, locked], user=65534, capture_output=True, text=True, input="")
    else:
        done = sym(locked)
    check("strange-unreadable", done.returncode == 3 and "denied" in done.stderr, done.stderr)


def truncated(top):
    prog, asked, _ = split_debug(os.path.join(top, "cut"), "sha1")
    with open(os.path.join(os.path.dirname(prog), "full"), "rb") as f:
        whole = f.read()
    path = os.path.join(top, "cut.elf")
    cuts = sorted(set(range(0, 128, 5)) | set(range(0, len(whole), max(1, len(whole) // 200))))
    for cut in cuts:
        with open(path, "wb") as f:
            f.write(whole[:cut])
        done = sym(path, addresses=asked)
        if crashed(done):
            return check("truncated", False, f"at {cut} of {len(whole)}: {done.stderr}")
    check("truncated", True)
    check("truncated-is-said", "cut short" in done.stderr, done.stderr)


def wild_ranges(top):
    """Some versions of libdw do not check the index of range lists in 64-bit DWARF."""
    elf = clang(top, "wild", SOURCE, ["-gdwarf-5", "-gdwarf64", "-ffunction-sections"])
    where = {f: find(elf, f) for f in ("outer", "other", "_start")}
    section = re.search(r" \.debug_rnglists +PROGBITS +\w+ (\w+)", must("readelf", "-SW", elf))
    with open(elf, "r+b") as f:
        f.seek(int(section[1], 16) + 20)  # behind the header
        f.write(b"\xcc" * 8)
    done = sym(elf, addresses=where.values())
    check("wild-ranges", not crashed(done), f"exit {done.returncode}: {done.stderr}")
    got = [n[-1] for n in names(elf, where.values())]
    check("wild-ranges-names", got == list(where), f"{where} {got}")


def object_file(top):
    source = os.path.join(top, "object.c")
    with open(source, "w") as f:
        f.write(SOURCE)
    must("cc", "-O2", "-g", "-ffunction-sections", "-c", source, "-o", "object.o", cwd=top)
    path = os.path.join(top, "object.o")
    where = {f: find(path, f) for f in ("outer", "other", "_start")}
    got = [n[0] for n in names(path, where.values())]
    check("object-file", got == list(where), f"{where} {got}")
    check("object-file-headers", "relocatable" in sym(path, "-i").stdout, "not relocatable")


def guarded(name, test, *args):
    try:
        test(*args)
    except subprocess.TimeoutExpired as why:
        check(name, False, why)
    except (RuntimeError, FileNotFoundError) as why:
        skip(name, str(why)[:200])


def main():
    with tempfile.TemporaryDirectory() as top:
        top = os.path.realpath(top)
        for arch, flags in TARGETS.items():
            guarded("arch-" + arch, one_target, top, arch, flags)
            guarded("assembler-" + arch, assembler, top, arch, flags)
        for test in (debug_links, build_ids, symfs, circles, demangling, hostile_names, kallsyms,
                     perf_map, stubs, strange_files, truncated, wild_ranges, object_file):
            guarded(test.__name__, test, top)
    finish()


if __name__ == "__main__":
    main()
