#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Names, inlined frames and lines of src/sym against `addr2line -afi`.

Usage: sym_addr2line.py [-v] [ELF...]

Without arguments, it compares the tool itself, C and C++ programs compiled by gcc and clang as
DWARF 4 and 5, Rust programs if there is a rustc, and the C library if it has a debug file. It asks
for the first, the middle and the last byte of each function, and for more bytes of large ones.

If the two differ, llvm-symbolizer decides: each of our names and lines must be in the output of one
of the two, in a chain of the same length. These differences were seen with binutils 2.40 (only the
symptoms; its source was not read):
  - an inlined function without a linkage name (extern "C", clang -gline-tables-only) gets the
    symbol of the function around it: "fold" inlined into "fold";
  - clang's DWARF 5: some inlined frames are missing, where DW_AT_ranges is an index;
  - gcc's DWARF 5: some rows of the line table get the main file of the unit with the line of a
    header, though readelf --debug-dump=decodedline shows the header;
  - without DWARF, of several symbols for one address a local one (.localalias) is shown;
  - code that the linker dropped stays described at address 0, over live code that follows soon;
  - DWARF 5 in .zdebug sections is not read;
  - DWARF 2: addresses outside of the first range of a unit are not found.
A difference in which llvm-symbolizer agrees with kscope is counted, and shown with -v; any other
fails.
"""
import os
import re
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import BUILD, ROOT, check, finish, run, skip

SYMTOOL = os.environ.get("SYMTOOL") or os.path.join(BUILD, "tests", "symtool")
LIMIT = int(os.environ.get("SYM_ADDRESSES", "6000"))  # addresses of one binary
VERBOSE = "-v" in sys.argv

CPP = r"""
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <regex>
#include <string>
#include <unordered_map>
#include <vector>
#include <sstream>
#include <cstdio>
namespace {
template <int N> struct Fold {
	template <class F> static inline int run(F f, int x) { return f(Fold<N - 1>::run(f, x) ^ N); }
};
template <> struct Fold<0> {
	template <class F> static inline int run(F f, int x) { return f(x); }
};
struct Shape { virtual ~Shape() {} virtual double area(double k) const = 0; };
template <class T> struct Box : Shape {
	T side;
	explicit Box(T s) : side(s) {}
	double area(double k) const override { return side * side * k; }
};
static int hidden(const std::string &s) { int n = 0; for (char c : s) n += c; return n; }
}
extern "C" int plain(int x) { return x * 3 + 1; }
struct Odd { int operator()(int a) const { return plain(a) % 7; } };
__attribute__((noinline)) int fold(int x)
{
	return Fold<12>::run(Odd(), x) + Fold<5>::run(plain, x);
}
int words(const std::string &text)
{
	std::regex word("([a-z]+)([0-9]*)");
	std::map<std::string, std::vector<int>> seen;
	std::unordered_map<int, std::function<int(int)>> table;
	std::sregex_iterator it(text.begin(), text.end(), word), end;
	for (; it != end; ++it)
		seen[(*it)[1]].push_back(it->position());
	for (auto &p : seen) {
		std::sort(p.second.begin(), p.second.end(), [](int a, int b) { return a > b; });
		table[hidden(p.first)] = [&p](int x) { return x + (int)p.second.size(); };
	}
	int sum = 0;
	for (auto &t : table) sum += t.second(t.first);
	return sum;
}
int main(int argc, char **argv)
{
	std::vector<std::unique_ptr<Shape>> shapes;
	for (int i = 0; i < argc; i++)
		shapes.emplace_back(i & 1 ? (Shape *)new Box<int>(i) : (Shape *)new Box<double>(i));
	std::ostringstream out;
	for (auto &s : shapes) out << s->area(2) << ' ';
	try {
		if (argc > 99) throw std::runtime_error(out.str());
	} catch (std::exception &e) { std::puts(e.what()); }
	std::printf("%s %d %d\n", out.str().c_str(), fold(argc), words(argv[0]));
	return 0;
}
"""

# A function that the linker drops, larger than the address at which live code begins.
DROPPED = "\n".join(["volatile int g;", "int dead(int x) {"] +
                    [f"g += x * {i}; g ^= {i * 7 + 1};" for i in range(1500)] +
                    ["return g; }", "int live(int x) {"] + [f"g += x * {i};" for i in range(99)] +
                    ["return g; }", "int main(int c, char **v) { return live(c) + !v; }", ""])

RUST = r"""
use std::collections::{BTreeMap, HashMap};
struct Tree<T> { kids: Vec<Tree<T>>, value: T }
impl<T: Copy + std::ops::Add<Output = T>> Tree<T> {
    fn sum(&self) -> T { self.kids.iter().fold(self.value, |a, k| a + k.sum()) }
}
fn main() {
    let mut words: HashMap<String, usize> = HashMap::new();
    let mut order = BTreeMap::new();
    for (i, arg) in std::env::args().enumerate() {
        *words.entry(arg.to_uppercase()).or_insert(0) += i;
        order.insert(i, format!("{arg:>20}"));
    }
    let kids = (0..9).map(|v| Tree { kids: vec![], value: v }).collect();
    let tree = Tree { kids, value: 1u64 };
    println!("{:?} {:?} {}", words, order, tree.sum());
}
"""


def functions(elf):
    """(start, size) of functions with a size, in order."""
    out = run("nm", "-S", "--defined-only", elf).stdout
    found = set()
    for line in out.splitlines():
        part = line.split()
        if len(part) == 4 and part[2] in "tTwWi" and int(part[1], 16):
            found.add((int(part[0], 16), int(part[1], 16)))
    return sorted(found)


def sample(elf):
    """The same addresses in every run: starts, middles and ends, and bytes in between."""
    all_functions = functions(elf)
    addresses = set()
    for start, size in all_functions:
        addresses.update((start, start + size // 2, start + size - 1))
        addresses.update(range(start, start + size, 13 if len(all_functions) < 99 else 61))
    ordered = sorted(addresses)
    step = max(1, len(ordered) // LIMIT)
    return ordered[::step]


def ask(command, addresses):
    text = "".join(f"{a:#x}\n" for a in addresses)
    done = run(*command, input=text.encode())
    if done.returncode:
        raise RuntimeError(f"{command[0]}: exit code {done.returncode}: {done.stderr[:300]}")
    return done.stdout


def place(text):
    """(file name, line), without the folder, which has several spellings, and the discriminator."""
    path, _, line = text.split(" (disc")[0].rpartition(":")
    # If it has no line, addr2line shows the STT_FILE symbol, which may be an object file.
    return (os.path.basename(path), line) if line not in ("?", "", "0") else ("?", "0")


def chains(text):
    """address -> [(function, (file, line))...] from the output of addr2line -afi."""
    result, frames, lines = {}, None, text.splitlines()
    at = 0
    while at < len(lines):
        if lines[at].startswith("0x"):
            frames = result.setdefault(int(lines[at], 16), [])
            at += 1
            continue
        frames.append((lines[at], place(lines[at + 1])))
        at += 2
    return result


def referee_chains(elf, addresses):
    out = ask(["llvm-symbolizer", f"--obj={elf}", "--output-style=GNU", "--no-demangle",
               "--inlines", "--functions=linkage", "--addresses"], addresses)
    return chains(out.replace("\n\n", "\n"))


def unclone(name):
    """foo of foo.isra.0.cold and of foo@VERSION, and one name for C1 and C2 constructors.

    llvm takes the outermost name from the symbol table, which may have several for one address."""
    return re.sub(r"([CD])[0124](?=E|I)", r"\1x", re.split("[.@]", name)[0] or name)


def confirmed(ours, binutils, llvm):
    """Whether each of our names and lines is in one of the other two chains."""
    if not ours or len(ours) not in (len(binutils or []), len(llvm or [])):
        return False
    for i, (name, where) in enumerate(ours):
        others = [c[i] for c in (binutils, llvm) if c and len(c) == len(ours)]
        if (unclone(name) not in [unclone(other[0]) for other in others] or
                where not in [other[1] for other in others]):
            return False
    return True


def compare(name, elf, symbols=None):
    """symbols: the file that lists the functions, if elf itself is stripped."""
    addresses = sample(symbols or elf)
    if not addresses:
        return skip(name, "no functions with a size")
    ours = chains(ask([SYMTOOL, elf], addresses))
    theirs = chains(ask(["addr2line", "-afi", "-e", elf], addresses))
    differ = [a for a in addresses if ours.get(a) != theirs.get(a)]
    wrong = []
    if differ and not shutil.which("llvm-symbolizer"):
        return skip(name, f"{len(differ)} differences, and no llvm-symbolizer to judge them")
    if differ:
        referee = referee_chains(elf, differ)
        wrong = [a for a in differ if not confirmed(ours.get(a), theirs.get(a), referee.get(a))]
        for a in differ if VERBOSE else wrong[:10]:
            print(f"# {a:#x}\n#   ours     {ours.get(a)}\n#   binutils {theirs.get(a)}"
                  f"\n#   llvm     {referee.get(a)}")
    frames = sum(len(c) for c in ours.values())
    summary = f"{len(addresses)} addresses, {frames} frames, {len(differ)} differ from addr2line"
    if check(name, not wrong, f"{summary}, {len(wrong)} of them unexplained"):
        print(f"# {summary}; llvm-symbolizer confirms ours" if differ else f"# {summary}")


def compile_and_compare(name, command, source, suffix, folder):
    if not shutil.which(command[0]):
        return skip(name, f"no {command[0]}")
    path = os.path.join(folder, name + suffix)
    elf = os.path.join(folder, name)
    with open(path, "w") as f:
        f.write(source)
    done = run(*command, path, "-o", elf, cwd=folder, env=dict(os.environ, RUSTC_BOOTSTRAP="1"))
    if done.returncode:
        return skip(name, f"{command[0]} failed: {done.stderr.strip()[:200]!r}")
    compare(name, elf)


def tool_sources():
    base, sym = (os.path.join(ROOT, "src", d) for d in ("base", "sym"))
    return [os.path.join(d, f) for d in (base, sym) for f in sorted(os.listdir(d))
            if f.endswith(".c")]


def compile_tool(name, command, folder):
    """Compiles our own C without the libraries, whose headers may be missing."""
    if not shutil.which(command[0]):
        return skip(name, f"no {command[0]}")
    elf = os.path.join(folder, name)
    done = run(*command, "-std=gnu11", "-D_GNU_SOURCE", "-I", os.path.join(ROOT, "src"),
               os.path.join(ROOT, "tests/tools/symtool.c"), *tool_sources(), "-o", elf, "-lm")
    if done.returncode:
        return check(name, False, done.stderr)
    return compare(name, elf)


def large_library():
    """The C library and its debug file (Debian: libc6-dbg), which its build id names."""
    for line in run("ldd", SYMTOOL).stdout.splitlines():
        if line.strip().startswith("libc.so"):
            path = line.split("=>")[1].split()[0]
            note = run("readelf", "-n", path).stdout
            build_id = note.partition("Build ID: ")[2].split()[0]
            debug = f"/usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug"
            return (path, debug) if os.path.exists(debug) else None
    return None


def standard_set(folder):
    compare("symtool", SYMTOOL)
    for cc, cxx in (("gcc", "g++"), ("clang", "clang++")):
        for version in ("4", "5"):
            flags = ["-O2", "-g", f"-gdwarf-{version}"]
            compile_tool(f"c-{cc}-dwarf{version}", [cc] + flags, folder)
            compile_and_compare(f"cpp-{cc}-dwarf{version}", [cxx, "-std=c++14"] + flags, CPP, ".cc",
                                folder)
        compile_tool(f"c-{cc}-gc-sections", [cc, "-O1", "-g", "-ffunction-sections",
                                             "-Wl,--gc-sections"], folder)
    compile_and_compare("cpp-gcc-dwarf2", ["g++", "-O2", "-gdwarf-2", "-gstrict-dwarf"], CPP, ".cc",
                        folder)
    compile_and_compare("cpp-gcc-compressed", ["g++", "-O3", "-g", "-gz"], CPP, ".cc", folder)
    compile_and_compare("cpp-gcc-zdebug", ["g++", "-O2", "-g", "-gz=zlib-gnu"], CPP, ".cc", folder)
    for cc in ("gcc", "clang"):
        compile_and_compare(f"dropped-code-{cc}", [cc, "-O1", "-g", "-ffunction-sections",
                                                  "-Wl,--gc-sections"], DROPPED, ".c", folder)
    compile_and_compare("cpp-clang-lines-only", ["clang++", "-O2", "-gline-tables-only"], CPP,
                        ".cc", folder)
    for scheme in ("legacy", "v0"):
        compile_and_compare(f"rust-{scheme}", ["rustc", "-O", "-g", "-Zunstable-options", "-C",
                                               f"symbol-mangling-version={scheme}"], RUST, ".rs",
                            folder)
    library = large_library()
    if library:
        compare("large-library", *library)
    else:
        skip("large-library", "no debug file of the C library (Debian: libc6-dbg)")


def main():
    given = [a for a in sys.argv[1:] if a != "-v"]
    missing = [need for need in ("addr2line", "nm", "readelf") if not shutil.which(need)]
    if missing:
        skip("sym_addr2line", f"no {' '.join(missing)}")
        finish()
    for elf in given:
        compare(os.path.basename(elf), elf)
    if not given:
        with tempfile.TemporaryDirectory() as folder:
            standard_set(os.environ.get("KEEP") or folder)
    finish()


if __name__ == "__main__":
    main()
