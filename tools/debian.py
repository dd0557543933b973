# SPDX-License-Identifier: GPL-2.0-or-later
"""Fetches and unpacks Debian packages without installing them.

apt uses the machine's settings, keys and mirrors, but private sources, lists and archives, so that
another suite or architecture does not affect the machine.
"""
import os
import re
import shutil
import subprocess
import sys

FIELDS = {"signed-by": "Signed-By", "trusted": "Trusted"}
APT_SOURCES = ["/etc/apt/sources.list", "/etc/apt/sources.list.d"]


def stop(message):
    sys.exit(f"{os.path.basename(sys.argv[0])}: {message}")


def output(*command):
    return subprocess.run(command, text=True, check=True, stdout=subprocess.PIPE).stdout.strip()


def release_name():
    with open("/etc/os-release", encoding="utf-8") as f:
        found = re.search(r'^VERSION_CODENAME="?(\w+)', f.read(), re.M)
    return found[1] if found else stop("/etc/os-release does not name a release of Debian")


def source_files():
    for path in APT_SOURCES:
        if os.path.isdir(path):
            yield from sorted(os.path.join(path, name) for name in os.listdir(path))
        elif os.path.exists(path):
            yield path


def read_stanzas(text):
    """deb822: stanzas, separated by empty lines, of fields with continuation lines."""
    text = re.sub(r"^#.*\n", "", text, flags=re.M)
    for stanza in re.split(r"\n\s*\n", text):
        fields = re.findall(r"^([\w-]+):[ \t]*(.*(?:\n[ \t].*)*)", stanza, re.M)
        if fields:
            yield {name.title(): value for name, value in fields}


def read_lines(text):
    """The one-line format: deb [option=value...] URI SUITE COMPONENT..."""
    for options, uri, suite in re.findall(r"^deb\s+(?:\[(.*?)\]\s+)?(\S+)\s+(\S+)", text, re.M):
        source = {"Types": "deb", "Uris": uri, "Suites": suite}
        for option in options.split():
            name, _, value = option.partition("=")
            if name in FIELDS:
                source[FIELDS[name]] = value
        yield source


def machine_source(suite):
    """The fields of the machine's apt source for a suite."""
    for path in source_files():
        read = {".sources": read_stanzas, ".list": read_lines}.get(os.path.splitext(path)[1])
        if not read:
            continue
        with open(path, encoding="utf-8") as f:
            for source in read(f.read()):
                if (suite in source.get("Suites", "").split() and "deb" in source["Types"].split()
                        and source.get("Enabled", "yes") != "no"):
                    return source
    return stop(f"no source of {suite} in {' or '.join(APT_SOURCES)}")


def write_source(path, architectures, suites):
    """Writes a source file for apt: these suites, from the machine's own mirror."""
    source = machine_source(release_name())
    source.update({"Types": "deb", "Suites": " ".join(suites), "Components": "main",
                   "Architectures": " ".join(architectures)})
    with open(path, "w", encoding="utf-8") as f:
        f.writelines(f"{name}: {value}\n" for name, value in source.items())


class Apt:
    """apt with a private folder."""

    def __init__(self, folder, architectures, suites, empty=False):
        """empty: for another machine, which has nothing installed."""
        self.folder = os.path.abspath(folder)
        for part in ["lists/partial", "archives/partial", "sources"]:
            os.makedirs(os.path.join(self.folder, part), exist_ok=True)
        write_source(os.path.join(self.folder, "sources", "debian.sources"), architectures, suites)
        self.config = os.path.join(self.folder, "apt.conf")
        with open(self.config, "w", encoding="utf-8") as f:
            f.write(f"""
#clear APT::Architectures;
APT::Architectures {{ {" ".join(f'"{a}";' for a in architectures)} }};
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "{self.folder}/sources";
Dir::State::lists "{self.folder}/lists/";
Dir::Cache "{self.folder}";
Dir::Cache::archives "{self.folder}/archives/";
Acquire::Languages "none";
Acquire::Retries "3";
APT::Sandbox::User "root";
APT::Keep-Downloaded-Packages "true";
Debug::NoLocking "true";
#clear Acquire::IndexTargets::deb::Contents-deb;
#clear Acquire::IndexTargets::deb::DEP-11;
#clear DPkg::Post-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
""")
            if empty:
                status = os.path.join(self.folder, "status")
                with open(status, "w", encoding="utf-8"):
                    f.write(f'Dir::State::status "{status}";\n'
                            f'APT::Architecture "{architectures[0]}";\n')

    def run(self, program, *words, cwd=None):
        done = subprocess.run([program, "-c", self.config, *words], cwd=cwd or self.folder,
                              text=True, check=False, stdin=subprocess.DEVNULL,
                              capture_output=True, env=dict(os.environ, LC_ALL="C.UTF-8"))
        if done.returncode != 0:
            stop(f"{program} {' '.join(words)} failed:\n{done.stderr.strip()}")
        return done.stdout

    def update(self):
        self.run("apt-get", "update", "-qq", "--error-on=any")

    def depends(self, package):
        """The direct dependencies of a package, without alternatives and versions."""
        text = self.run("apt-cache", "show", "--no-all-versions", package)
        needs = re.search(r"^Depends: (.*)", text, re.M)
        return re.findall(r"(?:^|, )([\w.+-]+)", needs[1]) if needs else []

    def download(self, *packages):
        """Downloads the packages without their dependencies; returns the files."""
        folder = os.path.join(self.folder, "archives")
        before = set(os.listdir(folder))
        self.run("apt-get", "download", "-qq", *packages, cwd=folder)
        return sorted(os.path.join(folder, name) for name in set(os.listdir(folder)) - before
                      if name.endswith(".deb"))

    def download_missing(self, suite, *packages):
        """Downloads packages of a suite and dependencies that the machine lacks; returns the files."""
        self.run("apt-get", "install", "-qq", "-y", "--download-only", "--no-install-recommends",
                 "-t", suite, *packages)
        folder = os.path.join(self.folder, "archives")
        return sorted(os.path.join(folder, name) for name in os.listdir(folder)
                      if name.endswith(".deb"))

    def remove(self):
        """Removes lists and archives, which are large and useless after unpacking."""
        shutil.rmtree(self.folder)


def unpack(files, folder):
    os.makedirs(folder, exist_ok=True)
    for path in files:
        subprocess.run(["dpkg-deb", "-x", path, folder], check=True)
