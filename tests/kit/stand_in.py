# SPDX-License-Identifier: GPL-2.0-or-later
"""kscope record qemu with tests/tools/qemu_stand_in.py in place of QEMU, and an empty plugin."""
import os
import shlex
import shutil
import subprocess

from . import KSCOPE, TOOLS, default_signals, run


class Place:
    """A folder with the emulator and the plugin, in which kscope runs."""

    def __init__(self, folder):
        self.folder = os.path.realpath(folder)
        self.emulator = self.path("qemu-system-none")
        self.plugin = self.path("plug,in.so")
        shutil.copy(os.path.join(TOOLS, "qemu_stand_in.py"), self.emulator)
        with open(self.plugin, "w", encoding="ascii"):
            pass
        self.env = dict(os.environ, KSCOPE_PLUGIN=self.plugin)

    def path(self, name):
        return os.path.join(self.folder, name)

    def record(self, *words, emulator=(), **more):
        return run(KSCOPE, "record", "qemu", *words, "--", self.emulator, *emulator,
                   cwd=self.folder, env=self.env, **more)

    def start(self, *words, emulator=(), preexec_fn=default_signals, **more):
        return subprocess.Popen([KSCOPE, "record", "qemu", *words, "--", self.emulator, *emulator],
                                cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                preexec_fn=preexec_fn, **more)

    def printed(self, *words):
        """The command line that --print shows, as words, and stderr."""
        done = run(KSCOPE, "record", "qemu", "--print", *words, cwd=self.folder, env=self.env)
        return shlex.split(done.stdout), done.stderr

    def litter(self):
        """Temporary files that were not removed."""
        return [name for name in os.listdir(self.folder) if name.startswith(".")]


def plugin_values(text):
    """The plugin's arguments as QEMU splits them: a double comma is a comma in a value."""
    parts = text.replace(",,", "\0").split(",")
    return [part.replace("\0", ",") for part in parts]
