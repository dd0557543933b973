#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""make deb builds a package from a tree without git and leaves the tree as it was; lintian finds
nothing; the package can be installed in a small Debian, works there and leaves nothing behind."""
import glob
import gzip
import lzma
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import BUILD, DEMO, ROOT, check, equal, finish, kscope, read_folded, run, scratch
from kit.pack import lz4

DROP_INS = ["toperf", "netconn", "kprof2perf", "kern-profile"]
WORK = "/data"
ROOT_TAR = os.path.join(BUILD, "root.tar")


def files_in(folder, without=()):
    """The names of all files and folders in a folder, without those in `without`."""
    found = set()
    for at, folders, files in os.walk(folder):
        base = os.path.relpath(at, folder)
        folders[:] = [name for name in folders
                      if os.path.normpath(os.path.join(base, name)) not in without]
        found |= {os.path.normpath(os.path.join(base, name)) for name in folders + files}
    return found


def copy_sources(to):
    """Copies the files of a release: neither git's nor built ones."""
    out = [os.path.join(ROOT, name) for name in (".git", "build", "demo/out", "tests/node_modules")]
    shutil.copytree(ROOT, to, symlinks=True, ignore=lambda folder, names: [
        name for name in names if name == "__pycache__" or
        os.path.join(folder, name) in [*out, os.path.abspath(BUILD)]])


def make(tree, *words):
    """Runs make without the variables of a make that may run this test."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("MAKE") and
           key not in ("MFLAGS", "DESTDIR", "PREFIX", "BUILD")}
    return run("make", "-C", tree, *words, env=env)


def build_package(folder):
    """Builds the package. Returns its .changes file. The flags of another build must not matter."""
    tree = os.path.join(folder, "tree")
    copy_sources(tree)
    before = files_in(tree)
    done = make(tree, "deb", "BUILD=out", "CFLAGS=-O0")
    made = glob.glob(os.path.join(tree, "out", "deb", "*.changes"))
    if not check("it builds", done.returncode == 0 and len(made) == 1, done.stderr[-500:]):
        finish()
    equal("the tree is as before, but for BUILD", files_in(tree, ["out"]), before)
    return made[0]


def test_package(changes, package):
    done = run("lintian", "--allow-root", "--display-info", "--pedantic", "--fail-on",
               "error,warning,info,pedantic", changes)
    check("lintian finds nothing", done.returncode == 0 and not done.stdout,
          done.stdout + done.stderr)
    equal("its version is kscope's", run("dpkg-deb", "-f", package, "Version").stdout.strip(),
          kscope("--version").stdout.split()[1])


class Root:
    """A small Debian to run programs in."""

    # Programs there get their own /proc, which ends with them.
    UNSHARE = ["unshare", *(["--map-root-user"] if os.geteuid() else []), "--mount", "--pid",
               "--fork", "--kill-child", "--mount-proc"]

    def __init__(self, folder):
        self.folder = folder
        os.mkdir(folder)
        # Only root can create devices, and this test does not need them.
        done = run("tar", "-x", "-C", folder, "--exclude=./dev/*", "-f", ROOT_TAR)
        if not check("there is a root", done.returncode == 0, done.stderr):
            finish()
        os.mkdir(self.path(WORK))

    def path(self, name):
        return os.path.join(self.folder, name.lstrip("/"))

    def run(self, *words):
        return run(*self.UNSHARE, f"--root={self.folder}", f"--wd={WORK}", *words,
                   env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"})

    def files(self):
        """All files except those that this test and dpkg itself write."""
        return files_in(self.folder, [WORK.strip("/"), "var/lib/dpkg", "var/log"])


def test_programs(root):
    for words in (["--version"], ["formats"]):
        equal(f"kscope {words[0]}", root.run("kscope", *words).stdout, kscope(*words).stdout)
    for name in DROP_INS:
        done = root.run(name, "-h")
        check(f"{name} runs by its name", done.returncode == 0 and
              done.stdout.startswith(f"Usage: {name} "), done.stdout + done.stderr)


def test_files(root, before):
    """The package has what make install installs, and documentation; man pages are compressed."""
    with scratch() as folder:
        done = make(ROOT, "install", f"BUILD={BUILD}", f"DESTDIR={folder}", "PREFIX=/usr")
        check("make install", done.returncode == 0, done.stderr)
        want = files_in(folder) - before
    got = {name for name in root.files() - before if not name.startswith("usr/share/doc/")}
    equal("every file is there", sorted(got), sorted(
        f"{name}.gz" if name.endswith(".1") else name for name in want))
    for path in sorted(glob.glob(os.path.join(ROOT, "man", "*.1"))):
        page = os.path.basename(path)
        with open(path, "rb") as f, \
             gzip.open(root.path(f"usr/share/man/man1/{page}.gz")) as packed:
            check(f"{page} is whole", f.read() == packed.read())


def make_inputs(folder):
    """The demo's recording, in every compressed form, and its binaries."""
    elfs = os.path.join(folder, "elfs")
    shutil.copytree(os.path.join(DEMO, "64k"), elfs)
    run(sys.executable, os.path.join(ROOT, "demo", "sel4", "generate.py"), elfs, folder)
    samples = os.path.join(folder, "samples.json")
    with open(samples, "rb") as f:
        data = f.read()
    packed = {"gz": gzip.compress(data), "xz": lzma.compress(data), "lz4": lz4(data),
              "zst": run("zstd", "-c", samples, binary=True).stdout}
    for ending, content in packed.items():
        with open(f"{samples}.{ending}", "wb") as f:
            f.write(content)
    return [os.path.basename(path) for path in sorted(glob.glob(f"{samples}*"))]


def test_conversion(root):
    """The installed kscope finds the same samples as this build, also through perf.data."""
    folder = root.path(WORK)
    inputs = make_inputs(folder)
    want = kscope("convert", "samples.json", "-b", "elfs", "-t", "folded", "-o", "-",
                  cwd=folder).stdout
    check("there is something to convert", len(want.splitlines()) > 10 and len(inputs) == 5, inputs)
    done = root.run("kscope", "convert", "samples.json", "-b", "elfs", "-o", "perf.data")
    check("samples.json to perf.data", done.returncode == 0 and not done.stderr, done.stderr)
    with open(os.path.join(folder, "perf.data"), "rb") as f:
        equal("perf.data begins as one does", f.read(8), b"PERFILE2")
    for name in [*inputs, "perf.data"]:
        done = root.run("kscope", "convert", name, "-b", "elfs", "-t", "folded", "-o", "-")
        check(f"{name} to folded stacks", done.returncode == 0 and done.stdout == want,
              done.stderr + done.stdout)


def test_plugin(root):
    done = root.run("kscope", "record", "qemu", "--print", "--", "qemu-system-x86_64")
    plugin = re.search(r"-plugin '?file=([^,]+),", done.stdout)
    if not check("the plugin is found", plugin and os.path.isfile(root.path(plugin[1])),
                 done.stdout + done.stderr):
        return
    # The root has no QEMU; the machine's QEMU loads the installed plugin.
    env = {key: value for key, value in os.environ.items() if key != "KSCOPE_PLUGIN"}
    done = run(root.path("usr/bin/kscope"), "record", "qemu", "--trace", "-t", "folded", "-o",
               "true.folded", "--", "qemu-x86_64", "/bin/true", cwd=root.path(WORK), env=env)
    if check("QEMU loads it", done.returncode == 0, done.stderr):
        stacks = read_folded(os.path.join(root.path(WORK), "true.folded"))
        check("and it records", sum(stacks.values()) > 10000, stacks)


def test_in_root(root, package):
    shutil.copy(package, root.path(WORK))
    before = root.files()
    done = root.run("dpkg", "--install", os.path.basename(package))
    if not check("it can be installed", done.returncode == 0, done.stdout + done.stderr):
        return
    test_programs(root)
    test_files(root, before)
    test_conversion(root)
    test_plugin(root)
    done = root.run("dpkg", "--purge", "kscope")
    check("it can be purged", done.returncode == 0, done.stdout + done.stderr)
    after = root.files()
    equal("and leaves nothing behind", (after - before, before - after), (set(), set()))


def main():
    with scratch() as folder:
        changes = build_package(folder)
        package = glob.glob(os.path.join(os.path.dirname(changes), "kscope_*.deb"))[0]
        test_package(changes, package)
        done = run(*Root.UNSHARE, "true")
        if done.returncode:
            print(f"skip the package in a root: {done.stderr.strip()}")
        elif not os.path.exists(ROOT_TAR):
            print(f"skip the package in a root: {ROOT_TAR} is not there: make test")
        else:
            test_in_root(Root(os.path.join(folder, "root")), package)
    finish()


if __name__ == "__main__":
    main()
