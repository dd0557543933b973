# SPDX-License-Identifier: GPL-2.0-or-later
"""What --help prints: of a verb, and of the commands that it consists of, as record does."""
import re

from . import kscope


def commands(verb):
    """The commands of a verb, by the list in its help; none: the verb is a command itself."""
    text = kscope(verb, "--help").stdout
    found = re.search(r"^Sources:\n((?:  [a-z].*\n)+)", text, re.M)
    return re.findall(r"^  (\S+)", found.group(1), re.M) if found else []


def helps(verb, option="--help"):
    """The texts that list its options."""
    return "\n".join(kscope(verb, *words, option).stdout
                     for words in [[name] for name in commands(verb)] or [[]])
