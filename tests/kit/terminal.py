# SPDX-License-Identifier: GPL-2.0-or-later
"""A real terminal for a program: tmux, without the user's settings."""
import os
import shlex
import tempfile

from kit import run, wait_for


class Terminal:
    """Runs a program in a shell in a terminal; after it, the shell prints EXIT=code and waits for commands."""

    def __init__(self, folder, *words, columns=100, rows=30, **variables):
        place = tempfile.mkdtemp(dir=folder)
        self.socket, script = os.path.join(place, "tmux"), os.path.join(place, "script")
        self.code_path = os.path.join(place, "code")
        with open(script, "w", encoding="utf-8") as f:
            f.write("trap : INT; stty -echo\n")  # Ctrl-C is for the program
            f.writelines(f"export {key}={shlex.quote(value)}\n" for key, value in variables.items())
            f.write(" ".join(shlex.quote(str(word)) for word in words) + "; code=$?\n"
                    f"echo $code >{shlex.quote(self.code_path)}.new\n"
                    f"mv {shlex.quote(self.code_path)}.new {shlex.quote(self.code_path)}\n"
                    "echo EXIT=$code MODES=$(stty -a | grep -ow -e '-icanon' -e icanon)\n"
                    "exec cat\n")
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows),
                  f"sh {shlex.quote(script)}", env=dict(os.environ, LC_ALL="C.UTF-8"))

    def tmux(self, *words, **more):
        return run("tmux", "-u", "-S", self.socket, *words, **more)

    def screen(self):
        return self.tmux("capture-pane", "-p").stdout

    def styled(self):
        """The screen with its colours, as escape sequences."""
        return self.tmux("capture-pane", "-p", "-e").stdout

    def lines(self):
        return self.screen().splitlines()

    def keys(self, *keys):
        self.tmux("send-keys", *keys)

    def type(self, text):
        self.tmux("send-keys", "-l", text)

    def resize(self, columns, rows):
        self.tmux("resize-window", "-x", str(columns), "-y", str(rows))

    def shows(self, *words):
        """Waits until all words are on the screen."""
        return wait_for(lambda: all(word in self.screen() for word in words))

    def hides(self, *words):
        return wait_for(lambda: not any(word in self.screen() for word in words))

    def modes(self):
        """Whether a program has the alternate screen, and whether the cursor is visible."""
        return self.tmux("display-message", "-p", "#{alternate_on} #{cursor_flag}").stdout.strip()

    def restored(self, code):
        """Waits until the program has ended with this code. Returns whether the terminal is as it was before."""
        return self.shows(f"EXIT={code} MODES=icanon") and wait_for(lambda: self.modes() == "0 1")

    def code(self):
        """Waits for the end of the program. Returns its exit code, also if something else cleared the screen."""
        if not wait_for(lambda: os.path.exists(self.code_path)):
            return None
        with open(self.code_path, encoding="ascii") as f:
            return int(f.read())

    def children(self):
        """The process ids of the program and what it started, in the order of their start."""
        found = [int(self.tmux("display-message", "-p", "#{pane_pid}").stdout)]
        for parent in found:
            with open(f"/proc/{parent}/task/{parent}/children", encoding="ascii") as f:
                found += map(int, f.read().split())
        return found[1:]

    def close(self):
        self.tmux("kill-server")
