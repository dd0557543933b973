#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""lcov and genhtml read our coverage: totals are those of the file. Counts are as in gcov, for programs without
optimization; lines and calls of optimized ones are those of the instructions that kscope insn prints."""
import collections
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import check, coverage, emulate, equal, exits, finish, kscope, no_problems, run, scratch, skip

BRANCHES = ["--rc", "lcov_branch_coverage=1"]
GENHTML_BRANCHES = ["--rc", "genhtml_branch_coverage=1"]
ODD = "it's \"odd\" <&> ü,\U0001f600.cc"
# The line of library.c that calls an inlined function
with open(f"{coverage.SOURCES}/library.c", encoding="ascii") as library_source:
    INLINING = 1 + next(at for at, text in enumerate(library_source) if "= inlined(" in text)
SUFFIX = re.compile(r"\.(isra|constprop|part|cold)\b.*")


def command(name, *words, cwd=None):
    # Perl's module for locales warns about those that the machine does not have.
    done = run(name, *words, cwd=cwd, env={**os.environ, "LC_ALL": "C"})
    check(f"{name} {words[0]}", done.returncode == 0, done.stdout[-300:] + done.stderr[-300:])
    return done.stdout + done.stderr


def totals(records):
    sums = collections.Counter()
    for record in records.values():
        sums.update(coverage.totals_of(record))
    return {what: (sums[key + "H"], sums[key + "F"])
            for what, key in (("lines", "L"), ("functions", "FN"), ("branches", "BR"))}


def test_readers(folder, name, info, records):
    """What lcov and genhtml make of it."""
    want = totals(records)
    text = command("lcov", "--summary", info, *BRANCHES)
    found = {what: (int(hit), int(all_)) for what, hit, all_ in
             re.findall(r"(lines|functions|branches)\.*: [\d.]+% \((\d+) of (\d+)", text)}
    equal(f"{name}: lcov --summary", found, want)
    text = command("lcov", "--list", info, *BRANCHES, "--list-full-path")
    missing = [path for path in records if path not in text]
    no_problems(f"{name}: lcov --list has all files", missing)
    # It reads, merges and writes all of it again.
    both = os.path.join(folder, "both.info")
    command("lcov", "--add-tracefile", info, "--add-tracefile", info, *BRANCHES, "--output-file", both)
    doubled = {path: {line: count / 2 for line, count in record.lines.items()}
               for path, record in coverage.read_info(both).items()}
    equal(f"{name}: lcov --add-tracefile", doubled, {path: dict(record.lines) for path, record in records.items()})
    pages = os.path.join(folder, "pages")
    text = command("genhtml", info, *GENHTML_BRANCHES, "--synthesize-missing", "--output-directory", pages) \
        if "--synthesize-missing" in run("genhtml", "--help").stdout else \
        command("genhtml", info, *GENHTML_BRANCHES, "--ignore-errors", "source", "--output-directory", pages)
    found = {what: (int(hit), int(all_)) for what, hit, all_ in
             re.findall(r"(lines|functions|branches)\.*: [\d.]+% \((\d+) of (\d+)", text)}
    equal(f"{name}: genhtml", found, want)


def compile_all(folder, name, *flags):
    """The programs of tests/coverage. Returns the one to start, and the library."""
    library, program = (os.path.join(folder, part) for part in (f"lib{name}.so", name))
    done = [run("gcc", *flags, "-fPIC", "-shared", f"{coverage.SOURCES}/library.c", "-o", library, "-pthread",
                cwd=folder),
            run("gcc", *flags, "-no-pie", f"{coverage.SOURCES}/shapes.c", library, "-o", program,
                f"-Wl,-rpath,{folder}", cwd=folder)]
    if any(one.returncode for one in done):
        raise RuntimeError("".join(one.stderr for one in done))
    return program, library


def record(program, path, qemu):
    done = kscope("record", "emulate", "--qemu", qemu, "-o", path, "--", program)
    exits(f"{os.path.basename(program)}: records", done, 0, "wrote")


def convert(path, *options):
    out = path + ".info"
    exits(f"{os.path.basename(path)}: converts", kscope("convert", path, "-o", out, *options), 0)
    return out, coverage.read_info(out)


def ours(records):
    return {os.path.basename(path): record for path, record in records.items()
            if path.startswith(coverage.SOURCES)}


def test_gcov(folder, name, qemu):
    """The same program twice: with gcov's counters, and without any, in a trace."""
    host = os.path.join(folder, "host")
    os.mkdir(host)
    flags = ["-O0", "-g", "--coverage", "-fprofile-update=atomic"]
    program, _ = compile_all(host, "program", *flags)
    exits(f"{name}: runs with gcov", run(program, cwd=host), 0)
    truth = coverage.gcov(host, *(part for part in os.listdir(host) if part.endswith(".gcda")))
    program, _ = compile_all(folder, "plain", "-O0", "-g")
    path = os.path.join(folder, "plain.data")
    record(program, path, qemu)
    info, records = convert(path)
    for source, least in {"shapes.c": 50, "library.c": 12, "shared.h": 1}.items():
        but = [INLINING] if source == "library.c" else []
        problems, same = coverage.differences(ours(records)[source], truth[source], but)
        no_problems(f"{name}: {source}: {same[0]} lines, {same[1]} functions and {same[2]} lines with branches "
                    "are as in gcov", problems)
        check(f"{name}: {source}: much is compared", same[0] >= least, same)
    # Each of three threads runs it once; gcov counts it again when the code of the inlined call ends.
    equal(f"{name}: a line with an inlined call", ours(records)["library.c"].lines[INLINING], 3)
    never = ours(records)["shapes.c"].functions["never"]
    equal(f"{name}: a function that never ran", never[1], 0)
    test_readers(folder, name, info, records)
    return path, records


def test_classes(folder, name, qemu):
    """Functions that the compiler made do not count on the lines of others, as in gcov."""
    source, program = f"{coverage.SOURCES}/classes.cc", os.path.join(folder, "classes")
    host = os.path.join(folder, "classes-host")
    os.mkdir(host)
    for words in (["--coverage", "-c", source, "-o", f"{host}/classes.o"],
                  ["--coverage", f"{host}/classes.o", "-o", f"{host}/classes"], [source, "-o", program]):
        done = run("g++", "-O0", "-g", *words)
        if done.returncode:
            raise RuntimeError(done.stderr)
    exits(f"{name}: classes: runs with gcov", run(f"{host}/classes", cwd=host), 0)
    record(program, program + ".data", qemu)
    found = ours(convert(program + ".data")[1])["classes.cc"]
    problems, same = coverage.differences(found, coverage.gcov(host, "classes.o")["classes.cc"])
    no_problems(f"{name}: classes: as in gcov", problems)
    check(f"{name}: classes: much is compared", same[0] >= 15 and same[1] >= 4, same)
    no_problems(f"{name}: no function that the compiler made",
                [function for function in found.functions if "static_init" in function or "GLOBAL" in function])


def test_selection(name, path, whole):
    """Threads add up to the whole."""
    threads = sorted(set(re.findall(r"^(\d+) ", kscope("insn", "--addresses", path).stdout, re.M)))
    parts = [convert(path, "--tid", tid)[1] for tid in threads]
    want = {path: +record.lines for path, record in whole.items() if +record.lines}
    sums = {path: +lines for path, lines in coverage.add_up(parts).items() if +lines}
    check(f"{name}: there are threads", len(threads) >= 4, threads)
    check(f"{name}: threads add up to the whole", sums == want,
          [(path, {line: (lines.get(line), sums.get(path, {}).get(line)) for line in lines
                   if lines[line] != sums.get(path, {}).get(line)}) for path, lines in want.items()
           if sums.get(path) != lines][:5])


def executed(path):
    """{address: how often}"""
    return collections.Counter(int(line.split()[1], 16)
                               for line in kscope("insn", "--addresses", path).stdout.splitlines()
                               if re.fullmatch(r"\d+ [0-9a-f]+", line))


def line_rows(program):
    """[(source, line, start, end, whether a statement begins there)], by LLVM"""
    text = run("llvm-dwarfdump", "--debug-line", program).stdout
    rows = []
    for table in text.split("debug_line[")[1:]:
        names = dict(re.findall(r"file_names\[ *(\d+)\]:\n +name: \"(.*)\"", table))
        found = re.findall(r"^(0x[0-9a-f]+) +(\d+) +\d+ +(\d+) +\d+ +\d+ *(.*)$", table, re.M)
        for (start, line, file, flags), (end, *_) in zip(found, found[1:] + [("0x0", 0, 0, "")]):
            if "end_sequence" not in flags and line != "0":
                rows.append((names.get(file), int(line), int(start, 16), int(end, 16), "is_stmt" in flags))
    return rows


def test_optimized(folder, name, qemu, flag):
    """Without gcov: which lines ran, and how often each function, by the addresses that ran."""
    program, _ = compile_all(folder, f"optimized{flag}", flag, "-g")
    path = os.path.join(folder, f"optimized{flag}.data")
    record(program, path, qemu)
    counts, records = executed(path), ours(convert(path)[1])
    problems, seen = [], 0
    began, ran = set(), set()
    for source, line, start, end, stmt in line_rows(program):
        if stmt and counts[start]:
            began.add((source, line))
        if any(counts[address] for address in range(start, max(end, start + 1))):
            ran.add((source, line))
    for source in ["shapes.c"]:
        for line, count in records[source].lines.items():
            seen += 1
            if (count > 0 and (source, line) not in ran) or (not count and (source, line) in began):
                problems.append(f"{source}:{line}: {count}")
    no_problems(f"{name} {flag}: {seen} lines ran, or not", problems)
    check(f"{name} {flag}: there are lines of both kinds", seen > 40 and began, (seen, len(began)))
    starts = collections.Counter()
    for symbol, address in emulate.symbols(program).items():
        # A clone is the function, as are its inlined copies, which have no symbol.
        starts[SUFFIX.sub("", symbol)] += counts[address]
    called = {function: count for function, (_, count) in records["shapes.c"].functions.items()}
    for function in ["main", "rec", "gcd"]:
        if starts[function]:
            check(f"{name} {flag}: calls of {function}", called[function] >= starts[function],
                  (called[function], starts[function]))


def test_names(folder, name, qemu):
    """Odd names of files and functions."""
    source = os.path.join(folder, ODD)
    shutil.copy(f"{coverage.SOURCES}/odd.cc", source)
    program = os.path.join(folder, "odd")
    done = run("g++", "-O0", "-g", "-no-pie", source, "-o", program)
    if done.returncode:
        raise RuntimeError(done.stderr)
    path = os.path.join(folder, "odd.data")
    record(program, path, qemu)
    info, records = convert(path)
    mine = {os.path.basename(path): record for path, record in records.items()}.get(ODD)
    check(f"{name}: the file has its name", mine, list(records)[:5])
    found = {function: count for function, (_, count) in mine.functions.items()}
    equal(f"{name}: a template", [count for function, count in found.items() if "larger" in function], [1])
    equal(f"{name}: a lambda", [count for function, count in found.items() if "lambda" in function or
                                function.startswith("_ZZ")], [7])
    no_problems(f"{name}: no name ends at a comma", [function for function in found if "," in function])
    # Of the headers, all that is used; readers cope with their names, too.
    test_readers(folder, f"{name}: odd names", info, records)


def test_folders(folder, name, qemu):
    """A path in a line table may be relative to the folder in which the compiler ran."""
    os.mkdir(os.path.join(folder, "sub"))
    source = os.path.join(folder, "sub", "small.c")
    with open(source, "w", encoding="ascii") as f:
        f.write("int main(void)\n{\n\treturn 0;\n}\n")
    for version in ["4", "5"]:
        program = os.path.join(folder, f"small{version}")
        done = run("gcc", "-O0", "-g", f"-gdwarf-{version}", "-no-pie", "sub/small.c", "-o", program, cwd=folder)
        if done.returncode:
            raise RuntimeError(done.stderr)
        record(program, program + ".data", qemu)
        found = {path: dict(record.lines) for path, record in convert(program + ".data")[1].items()
                 if os.path.basename(path) == "small.c"}
        equal(f"{name}: a relative path in DWARF {version}", found, {os.path.realpath(source): {2: 1, 3: 1, 4: 1}})


TWICE = """
#ifdef FIRST
static int twice(int n)
{
	return n + 1;
}
#else
static int twice(int n)
{
	return n + 2;
}
#endif
int NAME(int n)
{
	return twice(n);
}
"""


def test_twice(folder, name, qemu):
    """Two functions of one name in a file: readers know functions by their names."""
    source, program = (os.path.join(folder, part) for part in ("twice.h", "twice"))
    for path, text in ((source, TWICE), (program + ".c", "int one(int n), two(int n);\nint main(void)\n{\n"
                                                         "\treturn one(0) + two(1) + two(2) - 8;\n}\n")):
        with open(path, "w", encoding="ascii") as f:
            f.write(text)
    objects = [program + part for part in ("1.o", "2.o")]
    for words in (["-DFIRST", "-DNAME=one", "-xc", "-c", source, "-o", objects[0]],
                  ["-DNAME=two", "-xc", "-c", source, "-o", objects[1]], [program + ".c", *objects, "-o", program]):
        done = run("gcc", "-O0", "-g", *words)
        if done.returncode:
            raise RuntimeError(done.stderr)
    record(program, program + ".data", qemu)
    info, records = convert(program + ".data")
    found = records[os.path.realpath(source)]
    equal(f"{name}: two functions of one name", (found.functions["twice"], found.lines[5], found.lines[10]), ((3, 3), 1, 2))
    test_readers(folder, f"{name}: two functions of one name", info, records)


ODD_CODE = """
#define REST ".loc 1 99 0 is_stmt 0\\n\\tnop\\n\\t.loc 1 3 0 is_stmt 1"
static void first(void)
{
	__asm__ volatile(REST);
}
static void second(void)
{
	__asm__ volatile(REST);
}
__attribute__((naked)) static void spin(int n)
{
	__asm__("1: dec %edi; jnz 1b; ret");
}
static int plain(int n)
{
	return n;
}
__attribute__((always_inline)) static inline int inlined(int n)
{
	while (n > 3)
		n /= 2;
	return n;
}
int main(void)
{
	int sum = plain(1) + inlined(20) + plain(3); /* between calls */
	for (int i = 0; i < 7; i++)
		i < 3 ? first() : second();
	spin(5);
	spin(6);
	return sum - 6;
}
"""


def test_odd_code(folder, name, qemu):
    """Of line 99, which no statement begins, there are two copies. A loop begins where spin() is entered."""
    source, program = (os.path.join(folder, part) for part in ("odd_code.c", "odd_code"))
    with open(source, "w", encoding="ascii") as f:
        f.write(ODD_CODE)
    done = run("gcc", "-O0", "-g", "-no-pie", "-fcf-protection=none", source, "-o", program)
    if done.returncode:
        raise RuntimeError(done.stderr)
    record(program, program + ".data", qemu)
    found = convert(program + ".data")[1][os.path.realpath(source)]
    equal(f"{name}: copies of a line without statements add up", found.lines[99], 7)
    between = 1 + ODD_CODE[:ODD_CODE.index("between calls")].count("\n")
    equal(f"{name}: a line with an inlined call between calls", found.lines[between], 1)
    equal(f"{name}: calls of a function that is a loop", found.functions["spin"][1], 2)


PLUGIN = """
int work(int n)
{
	return n + 1;
}
"""
LOADER = """
#include <dlfcn.h>
int main(int argc, char **argv)
{
	for (int i = 1; i <= 5; i++) {
		void *library = dlopen(i % 2 ? ONE : TWO, RTLD_NOW);
		int (*work)(int) = library ? (int (*)(int))dlsym(library, "work") : 0;

		if (!work)
			return 1;
		work(i);
		dlclose(library);
	}
	return 0;
}
"""


def test_unloaded(folder, name, qemu):
    """Two libraries that are loaded in turns, at the same addresses if the kernel chooses so."""
    names = [os.path.join(folder, part) for part in ("one", "two")]
    for path in names:
        with open(path + ".c", "w", encoding="ascii") as f:
            f.write(PLUGIN)
        done = run("gcc", "-O0", "-g", "-fPIC", "-shared", path + ".c", "-o", path + ".so")
        if done.returncode:
            raise RuntimeError(done.stderr)
    program = os.path.join(folder, "loader")
    with open(program + ".c", "w", encoding="ascii") as f:
        f.write(LOADER)
    done = run("gcc", "-O0", "-g", *(f'-D{path.rpartition("/")[2].upper()}="{path}.so"' for path in names),
               program + ".c", "-o", program, "-ldl")
    if done.returncode:
        raise RuntimeError(done.stderr)
    record(program, program + ".data", qemu)
    records = convert(program + ".data")[1]
    found = [records[os.path.realpath(path + ".c")].lines[4] for path in names]
    equal(f"{name}: libraries that are loaded in turns", found, [3, 2])


def main():
    why = emulate.why_not()
    if why or not shutil.which("genhtml"):
        skip("lcov", why or "lcov is not installed")
        finish()
    for name, qemu in emulate.qemus()[:1]:
        with scratch() as folder:
            path, records = test_gcov(folder, name, qemu)
            test_selection(name, path, records)
            for flag in ["-O1", "-O2"]:
                test_optimized(folder, name, qemu, flag)
            shutil.rmtree(os.path.join(folder, "pages"), ignore_errors=True)
            test_names(folder, name, qemu)
            test_classes(folder, name, qemu)
            test_folders(folder, name, qemu)
            shutil.rmtree(os.path.join(folder, "pages"), ignore_errors=True)
            test_twice(folder, name, qemu)
            test_odd_code(folder, name, qemu)
            test_unloaded(folder, name, qemu)
    finish()


if __name__ == "__main__":
    main()
