#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Completion in real shells: bash, zsh and fish complete verbs, the options of each verb,
the words of options, formats, files and folders; and make install installs the scripts."""
import json
import os
import pty
import re
import select
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import BUILD, HANGS, ROOT, check, equal, finish, kscope, run, scratch
from kit.helps import commands, helps

SHELLS = ["bash", "zsh", "fish"]
BASH = """
source "$1"; shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_kscope
((${#COMPREPLY[@]} == 0)) || printf '%s\\n' "${COMPREPLY[@]}"
"""
# zsh adds every match with compadd, so this replacement logs the matches. Calls that only ask which
# words match (-O, -A, -D) are not logged.
ZSH = """
PROMPT= RPROMPT= LISTMAX=10000
unsetopt beep auto_list auto_menu
fpath=("$PWD/.scripts" $fpath)
autoload -Uz compinit && compinit -u -d "$PWD/.zcompdump"
compadd() {
	local -a hits
	if [[ " ${(j: :)@[1,(i)--]} " != *' -'[a-zA-Z]#[OAD]\\ * ]]; then
		builtin compadd -O hits "$@"
		print -rl -- $hits >>$PWD/.answer
	fi
	builtin compadd "$@"
}
answered() { BUFFER=; print -r -- -answered- >>$PWD/.answer; }
zle -N answered
bindkey '^I' complete-word
bindkey '^X' answered
print -r -- -answered- >>$PWD/.answer
"""


def install_scripts(folder):
    """Writes the scripts that the program prints, under the names that the shells expect."""
    names = {"bash": "kscope.bash", "zsh": "_kscope", "fish": "kscope.fish"}
    os.mkdir(os.path.join(folder, ".scripts"))
    for shell in SHELLS:
        with open(os.path.join(folder, ".scripts", names[shell]), "w", encoding="utf-8") as f:
            f.write(kscope("completion", shell).stdout)


def environment(folder):
    home = os.path.join(folder, ".home")
    return dict(os.environ, HOME=home, ZDOTDIR=folder, TERM="dumb", LC_ALL="C.UTF-8",
                XDG_CONFIG_HOME=home, XDG_DATA_HOME=home, PATH=f"{BUILD}:{os.environ['PATH']}")


def ask_bash(folder, words):
    done = run("bash", "--norc", "-c", BASH, "bash", ".scripts/kscope.bash", *words, cwd=folder,
               env=environment(folder))
    return done.stdout.splitlines() + done.stderr.splitlines()


def ask_fish(folder, words):
    line = " ".join(words)
    done = run("fish", "--no-config", "-c",
               f"source .scripts/kscope.fish; complete -C {json.dumps(line)}", cwd=folder,
               env=environment(folder))
    return [hit.split("\t")[0] for hit in done.stdout.splitlines()] + done.stderr.splitlines()


class Zsh:
    """An interactive zsh with its own terminal; zsh completes only there."""

    def __init__(self, folder):
        self.answer = os.path.join(folder, ".answer")
        with open(os.path.join(folder, ".zshrc"), "w", encoding="utf-8") as f:
            f.write(ZSH)
        self.seen = b""
        self.end, other = pty.openpty()
        self.process = subprocess.Popen(["zsh", "-d", "-i"], cwd=folder, env=environment(folder),
                                        stdin=other, stdout=other, stderr=other,
                                        start_new_session=True)
        os.close(other)
        self.wait()

    def wait(self):
        """Waits for a complete answer and returns it."""
        for _ in range(HANGS * 50):
            if select.select([self.end], [], [], 0.02)[0]:
                self.seen += os.read(self.end, 4096)
            if os.path.exists(self.answer):
                with open(self.answer, encoding="utf-8") as f:
                    lines = f.read().splitlines()
                if "-answered-" in lines:
                    os.unlink(self.answer)
                    return lines[:lines.index("-answered-")]
        return [f"zsh does not answer: {self.seen!r}"]

    def ask(self, words):
        os.write(self.end, " ".join(words).encode() + b"\t\x18")
        return self.wait()

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.end)


def offered(verb):
    """The long options that --help lists."""
    return sorted(set(re.findall(r"^ .{4} (--[a-z-]+)", helps(verb), re.M)))


def formats(kind):
    return [entry["name"] for entry in json.loads(kscope("formats", "--json").stdout)[kind]]


def questions(verbs):
    """(name, words, expected completions)"""
    yield "a verb", ["kscope", "rec"], ["record"]
    yield "all verbs", ["kscope", ""], verbs
    for verb in verbs:
        yield f"the options of {verb}", ["kscope", verb, "--"], offered(verb)
    yield "an option", ["kscope", "convert", "--unw"], ["--unwind"]
    yield "no option of another verb", ["kscope", "report", "--tit"], []
    yield "no old spelling", ["kscope", "flame", "--col"], []
    yield "words", ["kscope", "convert", "x", "--unwind", ""], ["auto", "cfi", "fp", "orc"]
    yield "a word", ["kscope", "report", "--sort", "to"], ["total"]
    yield "output formats", ["kscope", "convert", "-t", ""], formats("writers")
    yield "output formats of record", ["kscope", "record", "qemu", "--type", ""], \
        formats("writers") + ["kscope"]
    yield "input formats", ["kscope", "info", "--from", ""], formats("readers")
    yield "files", ["kscope", "report", "in."], ["in.data", "in.json"]
    yield "files of an option", ["kscope", "report", "--kernel", "in."], ["in.data", "in.json"]
    yield "folders", ["kscope", "report", "--build-dir", "in"], ["inside"]
    yield "nothing for a free text", ["kscope", "flame", "--title", ""], []
    yield "no files after formats", ["kscope", "formats", ""], []
    yield "what can be recorded", ["kscope", "record", ""], sorted(commands("record"))
    yield "shells", ["kscope", "completion", ""], SHELLS


def plain(hits, words):
    """Removes the slash after folders, and the options that zsh also offers for an empty word."""
    return sorted({hit.rstrip("/") for hit in hits
                   if hit and (words[-1].startswith("-") or not hit.startswith("-"))})


def test_shells():
    verbs = re.findall(r"^  ([a-z]+) +[A-Z]", kscope("--help").stdout.split("Drop-ins")[0], re.M)
    check("the verbs are found", len(verbs) > 6, verbs)
    with scratch() as folder:
        for name in ("in.data", "in.json"):
            with open(os.path.join(folder, name), "w", encoding="utf-8"):
                pass
        for name in ("inside", ".home"):
            os.mkdir(os.path.join(folder, name))
        install_scripts(folder)
        zsh = Zsh(folder)
        asks = {"bash": lambda words: ask_bash(folder, words), "zsh": zsh.ask,
                "fish": lambda words: ask_fish(folder, words)}
        for name, words, want in questions(verbs):
            want = sorted(want)
            for shell in SHELLS:
                equal(f"{shell}: {name}", plain(asks[shell](words), words), want)
        zsh.close()


def test_usage():
    for words in ([], ["tcsh"], ["bash", "zsh"]):
        done = kscope("completion", *words)
        check(f"completion {' '.join(words)}: refused", done.returncode == 2 and
              "expects bash, zsh or fish" in done.stderr, done.stderr)


def test_install():
    """The installed scripts are those that the program prints."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("MAKE") and
           key not in ("MFLAGS", "DESTDIR", "PREFIX")}
    for prefix, zsh in (("/usr", "vendor-completions"), ("/usr/local", "site-functions")):
        with scratch() as folder:
            done = run("make", "-C", ROOT, "install", f"BUILD={BUILD}", f"DESTDIR={folder}",
                       f"PREFIX={prefix}", env=env)
            check(f"install: make PREFIX={prefix}", done.returncode == 0, done.stderr)
            share = os.path.join(folder, prefix.lstrip("/"), "share")
            for shell, path in (("bash", "bash-completion/completions/kscope"),
                                ("zsh", f"zsh/{zsh}/_kscope"),
                                ("fish", "fish/vendor_completions.d/kscope.fish")):
                with open(os.path.join(share, path), encoding="utf-8") as f:
                    equal(f"install: {shell} under {prefix}", f.read(),
                          kscope("completion", shell).stdout)


def main():
    test_shells()
    test_usage()
    test_install()
    finish()


if __name__ == "__main__":
    main()
