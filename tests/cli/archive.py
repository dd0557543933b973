#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""kscope archive: what kscope makes of an archive is what it makes of the recording, byte for byte, also
where the binaries are missing or others have their names."""
import glob
import os
import shutil
import subprocess
import sys
import tarfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import (ELFS, KSCOPE, ROOT, check, demo_samples, equal, exits, finish, kscope, perf, run,
                 scratch, skip)

GOLDEN = os.path.join(ROOT, "tests", "golden")
MANIFEST = "kscope-archive.txt"


def views(path, *options, cwd=None):
    """What a user gets to see: {view: output}"""
    lines = {"report": ["report", path], "calls": ["report", path, "--by", "task"],
             "folded": ["convert", path, "-t", "folded", "-o", "-"],
             "lines": ["convert", path, "-t", "dump", "-o", "-"],
             "perf.data": ["convert", path, "-t", "perfdata", "-o", "-"]}
    return {name: kscope(*words, *options, cwd=cwd, binary=True).stdout for name, words in lines.items()}


def same_views(name, path, want, *options, cwd=None):
    got = views(path, *options, cwd=cwd)
    differ = [view for view in want if got[view] != want[view] or not got[view]]
    check(f"{name}: every view is the same", not differ, differ)


def manifest(path):
    return run("tar", "-xOf", path, MANIFEST).stdout


# ---- seL4: binaries by name under --build-dir, or by --elf ----


def test_sel4(samples, folder):
    elfs, there = os.path.join(folder, "build"), os.path.join(folder, "there")
    shutil.copytree(ELFS, elfs)
    os.mkdir(there)
    want = views(samples, "-b", elfs)
    packed, plain = os.path.join(folder, "a.tar.zst"), os.path.join(folder, "a.tar")
    exits("seL4: archive", kscope("archive", samples, "-b", elfs, "-o", packed), 0, "wrote", packed)
    exits("seL4: without compression", kscope("archive", samples, "-b", elfs, "-o", plain), 0)
    exits("seL4: with gzip", kscope("archive", samples, "-b", elfs, "-o", plain + ".gz"), 0)
    again = os.path.join(folder, "again")
    exits("seL4: another name", kscope("archive", samples, "-b", elfs, "-o", again), 0)
    with open(packed, "rb") as a, open(again, "rb") as b:
        equal("the same input gives the same bytes, and zstd is the default", a.read(), b.read())
    os.utime(samples, (1, 1))
    os.utime(os.path.join(elfs, "echo.elf"), (1, 1))
    exits("seL4: archive, other times", kscope("archive", samples, "-b", elfs, "-o", again), 0)
    with open(packed, "rb") as a, open(again, "rb") as b:
        equal("times of files do not matter", a.read(), b.read())
    names = run("tar", "-tf", packed).stdout.split()
    equal("tar lists it", (names[0], "recording/0/samples.json" in names,
                           sum(name.endswith("/elf") for name in names)), (MANIFEST, True, 3))
    os.rename(elfs, elfs + ".away")
    for path in (packed, plain, plain + ".gz"):
        same_views(f"seL4: {path[len(folder) + 1:]}", path, want)
    with open(packed, "rb") as f:
        done = run(KSCOPE, "convert", "-", "-t", "folded", "-o", "-", stdin=f, binary=True)
    equal("from stdin", done.stdout, want["folded"])
    same_views("in another folder", packed, want, cwd=there)
    # Files of this machine that have the same names are not used.
    os.mkdir(elfs)
    for name in ("hasher.elf", "echo.elf", "sorter.elf"):
        shutil.copy("/bin/true", os.path.join(elfs, name))
        shutil.copy("/bin/true", os.path.join(there, name))
    same_views("other files have these names", packed, want, cwd=there)
    done = kscope("info", packed)
    check("info says where the binaries are", done.stdout.count(f"{packed}:.build-id/") == 3 and
          f"archive   {packed}" in done.stdout, done.stdout)
    exits("an archive is not archived again", kscope("archive", packed, "-o", again), 2,
          "is an archive already")
    exits("a selection works", kscope("report", packed, "--comm", "echo.elf"), 0)
    exits("an option without effect is still reported", kscope("report", packed, "--tick-hz", "5"), 0)


def test_cache(samples, folder):
    """The binaries of an archive go into perf's cache."""
    out, cache = os.path.join(folder, "c.tar"), os.path.join(folder, "cache")
    kscope("archive", samples, "-b", ELFS, "-o", out)
    exits("cache: convert", kscope("convert", out, "-o", os.path.join(folder, "c.data"),
                                   f"--buildid-cache={cache}"), 0)
    found = sorted(glob.glob(os.path.join(cache, ".build-id", "*", "*", "elf")))
    want = sorted(glob.glob(os.path.join(ELFS, "*.elf")))
    contents = []
    for paths in (found, want):
        contents.append(set())
        for path in paths:
            with open(path, "rb") as f:
                contents[-1].add(f.read())
    check("cache: it has the binaries", len(found) == 3 and contents[0] <= contents[1], found)


def test_options(samples, folder):
    """--elf and options of readers are kept."""
    elf = os.path.join(folder, "renamed.elf")
    shutil.copy(os.path.join(ELFS, "hasher.elf"), elf)
    words = ["--elf", f"1={elf}", "-b", ELFS, "--event-name", "ticks"]
    want = views(samples, *words)
    out = os.path.join(folder, "o.tar.zst")
    exits("options: archive", kscope("archive", samples, *words, "-o", out), 0)
    text = manifest(out)
    check("options: the manifest has them, but no folders", 'option event-name "ticks"' in text and
          f'option elf "1={elf}"' in text and "build-dir" not in text, text)
    os.unlink(elf)
    same_views("options", out, want)
    other = kscope("convert", out, "--event-name", "other", "-t", "dump", "-o", "-").stdout
    check("options: given ones win", 'name="other"' in other and 'name="ticks"' not in other)
    both = kscope("convert", out, samples, "-b", ELFS, "-t", "folded", "-o", "-", "--samples").stdout
    total = sum(int(line.rsplit(" ", 1)[1]) for line in both.splitlines())
    equal("an archive and a recording are merged", total, 20000)


# ---- perf ----


def perf_case(name, folder, options, more=(), record=()):
    """Records a program, archives it, and takes the program away."""
    place = os.path.join(folder, name)
    os.mkdir(place)
    os.mkdir(os.path.join(place, "bin"))
    load = perf.build(os.path.join(place, "bin"))
    data = os.path.join(place, "perf.data")
    # -N: perf's cache of binaries would hide that the program is gone.
    done = perf.record(data, ["-N", *options, *record], load)
    if not check(f"{name}: perf record", done.returncode == 0, done.stderr):
        return None
    for words in more:
        subprocess.run([word.replace("LOAD", load) for word in words], check=True)
    return place, load, data


def test_perf(folder):
    split = [["objcopy", "--only-keep-debug", "LOAD", "LOAD.debug"], ["strip", "LOAD"],
             ["objcopy", "--add-gnu-debuglink=LOAD.debug", "LOAD"]]
    cases = {"frame-pointers": (["-e", "cpu-clock:u", "-g"], []),
             "dwarf": (["-e", "cpu-clock:u", "--call-graph", "dwarf,8192"], []),
             "debuglink": (["-e", "cpu-clock:u", "-g"], split),
             "kernel": (["-e", "cpu-clock", "-g"], [])}
    for name, (options, more) in cases.items():
        case = perf_case(name, folder, options, more)
        if not case:
            continue
        place, load, data = case
        want, out = views(data), data + ".tar.zst"
        exits(f"{name}: archive", kscope("archive", data), 0, "perf.data.tar.zst")
        os.rename(os.path.join(place, "bin"), os.path.join(place, "away"))
        if name != "kernel":
            check(f"{name}: without the archive, names are missing",
                  views(data)["report"] != want["report"])
        home = dict(os.environ, HOME=place)
        same_views(name, out, want)
        # A different program at the same path.
        os.mkdir(os.path.join(place, "bin"))
        shutil.copy("/bin/true", load)
        same_views(f"{name}, another program", out, want)
        folded = run(KSCOPE, "convert", out, "-t", "folded", "-o", "-", env=home, binary=True).stdout
        equal(f"{name}: without perf's cache", folded, want["folded"])
        text = manifest(out)
        if name == "debuglink":
            check(f"{name}: the debug file is in it", f'debug "{load}"' in text, text)
        # perf itself finds the binaries when the archive is extracted into its cache.
        os.makedirs(os.path.join(place, ".debug"))
        subprocess.run(["tar", "-xf", out, "-C", os.path.join(place, ".debug")], check=True)
        os.unlink(load)
        script = run("perf", "script", "-i", os.path.join(place, ".debug/recording/0/perf.data"), "-F",
                     "ip,sym", env=home).stdout
        check(f"{name}: perf finds names", "leaf" in script and "outer" in script, script[:300])


SHARED = """
struct inner { int x, y, z; struct inner *next; unsigned long m[4]; };
struct outer { struct inner in[3]; long q; char name[40]; };
volatile unsigned sink;
struct outer all;
static inline __attribute__((always_inline)) unsigned twist(unsigned x, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		x = x * 1103515245u + 12345u + (x >> 3);
	return x;
}
static inline __attribute__((always_inline)) unsigned turn(struct outer *o, unsigned n)
{
	return twist(o->q, n) ^ twist(o->in[1].y, n);
}
int main(void)
{
	for (int i = 0; i < 1000; i++)
		sink += turn(&all, 100000);
	return 0;
}
"""


def test_shared_dwarf(folder):
    """dwz moves what several debug files have in common to a file of its own."""
    place = os.path.join(folder, "shared")
    programs = os.path.join(place, "bin")
    os.makedirs(programs)
    common, data = os.path.join(programs, "common"), os.path.join(place, "perf.data")
    paths = [os.path.join(programs, name) for name in ("one", "two")]
    for path in paths:
        with open(path + ".c", "w", encoding="ascii") as f:
            f.write(f"{SHARED}int {os.path.basename(path)};\n")
        for words in (["cc", "-O1", "-g", path + ".c", "-o", path],
                      ["objcopy", "--only-keep-debug", path, path + ".debug"], ["strip", path],
                      ["objcopy", f"--add-gnu-debuglink={path}.debug", path]):
            subprocess.run(words, check=True)
    subprocess.run(["dwz", "-m", common, *[path + ".debug" for path in paths]], check=True)
    done = perf.record(data, ["-N", "-e", "cpu-clock:u", "-g"], paths[0])
    exits("shared: perf record", done, 0)
    want, out = views(data), os.path.join(place, "shared.tar.zst")
    check("shared: inlined functions have names", b"main;turn;twist" in want["folded"], want["folded"])
    exits("shared: archive", kscope("archive", data, "-o", out), 0)
    os.unlink(common)
    check("shared: without the common file, they have none", b"twist" not in views(data)["folded"])
    os.rename(programs, programs + ".away")
    same_views("shared", out, want)


PLAIN = r"""
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
int main(int argc, char **argv)
{
	/* mov $1000000,%ecx; 1: dec %ecx; jnz 1b; ret */
	int fd = open(argv[argc - 1], O_RDONLY);
	void (*run)(void) = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

	for (int i = 0; i < 300; i++)
		run();
	return 0;
}
"""


def test_plain_code(folder):
    """Code that is no ELF is kept: a decoder of traces needs it."""
    if os.uname().machine != "x86_64":
        skip("plain code", "this machine is not x86-64")
        return
    place = os.path.join(folder, "plain")
    os.mkdir(place)
    app, code, data = (os.path.join(place, name) for name in ("app", "app.code", "perf.data"))
    with open(app + ".c", "w", encoding="ascii") as f:
        f.write(PLAIN)
    with open(code, "wb") as f:
        f.write(bytes.fromhex("b940420f00ffc975fcc3"))
    subprocess.run(["cc", "-O1", app + ".c", "-o", app], check=True)
    exits("plain: perf record", perf.record(data, ["-N", "-e", "cpu-clock:u"], app, code), 0)
    want, out = views(data), os.path.join(place, "out.tar")
    exits("plain: archive", kscope("archive", data, "-o", out), 0)
    with tarfile.open(out) as tar:
        found = [tar.extractfile(name).read() for name in tar.getnames() if name.endswith("/app.code")]
    equal("plain: the code is in it", found, [bytes.fromhex("b940420f00ffc975fcc3")])
    os.unlink(app)
    os.unlink(code)
    same_views("plain", out, want)


def test_perf_folder(folder):
    """perf record --threads and --kcore write a folder."""
    case = perf_case("folder", folder, ["-e", "cpu-clock:u", "-g"], record=["--threads"])
    if not case:
        return
    place, _, data = case
    want, out = views(data), os.path.join(place, "out.tar.zst")
    exits("folder: archive", kscope("archive", data + "/", "-o", out), 0)
    names = run("tar", "-tf", out).stdout.split()
    check("folder: all its files are in it", "recording/0/perf.data/data" in names and
          "recording/0/perf.data/data.0" in names, names)
    shutil.rmtree(data)
    os.rename(os.path.join(place, "bin"), os.path.join(place, "away"))
    same_views("folder", out, want)


def test_two_versions(folder):
    """A program that was replaced while both were recorded: both are in the archive."""
    place = os.path.join(folder, "versions")
    os.makedirs(os.path.join(place, "bin"))
    old = perf.build(os.path.join(place, "bin"))
    recordings = [os.path.join(place, name) for name in ("old.data", "new.data")]
    env = dict(os.environ, HOME=place)
    run("perf", "record", "-q", "-e", "cpu-clock:u", "-g", "-o", recordings[0], old, env=env)
    perf.build(os.path.join(place, "bin"), flags=("-O1", "-g", "-fno-omit-frame-pointer", "-Dleaf=sheet"))
    run("perf", "record", "-q", "-e", "cpu-clock:u", "-g", "-o", recordings[1], old, env=env)
    words = ["-t", "folded", "-o", "-"]
    want = run(KSCOPE, "convert", *recordings, *words, env=env).stdout
    out = os.path.join(place, "both.tar.zst")
    done = run(KSCOPE, "archive", *recordings, "-o", out, env=env)
    exits("versions: archive", done, 0)
    shutil.rmtree(os.path.join(place, "bin"))
    shutil.rmtree(os.path.join(place, ".debug"), ignore_errors=True)
    got = run(KSCOPE, "convert", out, *words, env=env).stdout
    check("versions: both have their names", got == want and "leaf" in got and "sheet" in got,
          f"{len(got)} {len(want)} {'leaf' in got} {'sheet' in got}")


def test_replaced(folder):
    """A program that was replaced after the recording is not put in its place."""
    case = perf_case("replaced", folder, ["-e", "cpu-clock:u", "-g"])
    if not case:
        return
    place, load, data = case
    shutil.copy("/bin/true", load)
    out = os.path.join(place, "out.tar")
    exits("replaced: archive", kscope("archive", data, "-o", out), 0, "1 binary was not found")
    text = manifest(out)
    check("replaced: the other program is not in it", load not in text, text)


# ---- every format ----


def test_golden(folder):
    """Each golden input that has a recording in one file or folder, without its other files."""
    wrong, nr = [], 0
    for place in sorted(glob.glob(os.path.join(GOLDEN, "*", ""))):
        name = os.path.basename(place[:-1])
        inputs = glob.glob(os.path.join(place, "input*"))
        if name.startswith("archive") or len(inputs) != 1 or inputs[0].endswith(".gz"):
            continue
        copy = os.path.join(folder, name)
        shutil.copytree(place, copy)
        args = []
        if os.path.exists(os.path.join(copy, "args")):
            with open(os.path.join(copy, "args"), encoding="utf-8") as f:
                args = f.read().split()
        source = os.path.basename(inputs[0])
        words = ["-t", "dump", "-o", "-"]
        want = kscope("convert", source, *args, *words, cwd=copy)
        done = kscope("archive", source, *args, "-o", "../golden.tar", cwd=copy)
        if done.returncode == 2:  # it has no outputs, so no options for them
            continue
        # It decodes hardware traces, as info does; a dump does not.
        code = kscope("info", source, *args, cwd=copy).returncode if name.startswith("pt-") else want.returncode
        if done.returncode != code:
            wrong.append(f"{name}: {done.returncode}, not {code}")
        if want.returncode > 1:
            continue
        shutil.rmtree(copy)
        os.mkdir(copy)
        got = kscope("convert", "../golden.tar", *words, cwd=copy)
        nr += 1
        if (got.stdout, got.returncode) != (want.stdout, want.returncode):
            wrong.append(f"{name}: {done.stderr} {got.returncode} {got.stderr}")
    check("every format", nr > 100 and not wrong, f"{nr} {len(wrong)} {wrong[:4]}")


# ---- hostile archives ----


def test_hostile(samples, folder):
    place = os.path.join(folder, "tmp")
    os.mkdir(place)
    env = dict(os.environ, TMPDIR=place)
    for name in ("/tmp/escape", os.path.join(GOLDEN, "escape"), os.path.join(GOLDEN, "..", "escape")):
        check(f"golden archives write no {os.path.basename(os.path.dirname(name))}/escape",
              not os.path.exists(name))
    bomb = os.path.join(folder, "bomb.tar")
    with open(os.path.join(GOLDEN, "archive", "input.tar"), "rb") as f:
        head = f.read(1024)
    info = tarfile.TarInfo("recording/0/stacks.folded")
    info.size = 1 << 33
    with open(bomb, "wb") as f:
        f.write(head + info.tobuf(tarfile.GNU_FORMAT))
        f.truncate(1 << 29)
    run("zstd", "-q", "--rm", bomb)
    done = run(KSCOPE, "info", bomb + ".zst", env=env)
    check("a bomb", done.returncode == 3 and ("1000 times" in done.stderr or "no room" in done.stderr),
          done.stderr)
    equal("... leaves nothing", os.listdir(place), [])
    packed = os.path.join(folder, "cut.tar.zst")
    kscope("archive", samples, "-b", ELFS, "-o", packed)
    with open(packed, "r+b") as f:
        f.truncate(os.path.getsize(packed) // 2)
    exits("a compressed archive that is cut", run(KSCOPE, "info", packed, env=env), 3, "cut short")
    kscope("archive", samples, "-b", ELFS, "-o", packed)
    with open(packed, "r+b") as f:
        f.seek(os.path.getsize(packed) // 2)
        f.write(b"damage")
    exits("a compressed archive that is damaged", run(KSCOPE, "info", packed, env=env), 3, "zstd")
    exits("no room for temporary files", run(KSCOPE, "info", os.path.join(GOLDEN, "archive/input.tar"),
                                             env=dict(os.environ, TMPDIR="/nonexistent")), 3, "TMPDIR")
    equal("nothing is left behind", os.listdir(place), [])


def test_usage(samples, folder):
    exits("an output that is the input", kscope("archive", samples, "-o", samples), 2, "is an input")
    exits("stdin", kscope("archive", "-", "-o", "x.tar"), 2, "save the recording")
    pipe = os.path.join(folder, "pipe")
    os.mkfifo(pipe)
    exits("a pipe", kscope("archive", pipe, "-o", "x.tar"), 2, "save the recording")
    exits("several inputs without a name", kscope("archive", samples, samples), 2, "-o FILE")
    exits("no input", kscope("archive"), 2, "no input")
    exits("a folder that does not exist", kscope("archive", samples, "-o", "/no/x.tar"), 4, "/no/x.tar")
    exits("a file that does not exist", kscope("archive", "/no/samples"), 4, "/no/samples.tar")
    text = os.path.join(folder, "text")
    with open(text, "w", encoding="ascii") as f:
        f.write("\x01\x02 no recording")
    out = os.path.join(folder, "no.tar")
    exits("no recording", kscope("archive", text, "-o", out), 3, "unknown format")
    check("... no archive", not os.path.exists(out))
    done = kscope("archive", samples, "-o", out)
    exits("binaries that are missing", done, 1, "3 binaries were not found")
    done = run(KSCOPE, "archive", samples, "-b", ELFS, "-o", "-", binary=True)
    with open(out, "wb") as f:
        f.write(done.stdout)
    exits("to a pipe", kscope("report", out), 0)
    odd = os.path.join(folder, "a \"b\n\xff;.json".encode("utf-8", "surrogateescape").decode())
    shutil.copy(samples, odd)
    exits("a strange name", kscope("archive", odd, "-b", ELFS, "-o", out), 0)
    exits("... is read", kscope("report", out), 0)


def main():
    with scratch() as folder:
        samples = demo_samples(folder)
        test_sel4(samples, folder)
        test_options(samples, folder)
        test_cache(samples, folder)
        test_golden(os.path.join(folder))
        test_hostile(samples, folder)
        test_usage(samples, folder)
        why = perf.why_not()
        if why:
            skip("perf", why)
        else:
            test_perf(folder)
            test_perf_folder(folder)
            test_shared_dwarf(folder)
            test_plain_code(folder)
            test_two_versions(folder)
            test_replaced(folder)
    finish()


if __name__ == "__main__":
    main()
