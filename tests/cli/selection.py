#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The options that select samples: kscope info counts the selected ones."""
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import ELFS, demo_samples, equal, finish, kscope, scratch


def count(*words):
    return json.loads(kscope("info", *words, "--json").stdout)


def test_selection(samples):
    more = [samples, "-b", ELFS]
    equal("select by pid", count(*more, "--pid", "1")["samples"], 5000)
    equal("select by pids", count(*more, "--pid", "1-2")["samples"], 8000)
    equal("select by tid", count(*more, "--tid", "52")["samples"], 2000)
    equal("select by name", count(*more, "--comm", "sorter.elf")["samples"], 3000)
    equal("select by two names", count(*more, "--comm", "sorter.elf", "--comm", "echo.elf")
          ["samples"], 5000)
    equal("select by cpu", count(*more, "--cpu", "1")["samples"], 0)
    equal("select by event", count(*more, "--event", "cycles")["samples"], 10000)
    equal("select by another event", count(*more, "--event", "instructions")["samples"], 0)
    # The generator's first sample is at 99088495 ns, the others 10048 ns apart.
    equal("select by time", count(*more, "--time", "0.099088495,0.099178927")["samples"], 9)
    equal("select from a time", count(*more, "--time", "0.099088496,")["samples"], 9999)
    equal("the end of --time is excluded", count(*more, "--time", ",0.099088495")["samples"], 0)
    equal("select up to a time", count(*more, "--time", ",0.099088496")["samples"], 1)
    equal("select by time and length", count(*more, "--time", "0.099088495,+90432ns")["samples"], 9)
    equal("the end of a length is excluded",
          count(*more, "--time", "0.099088495,+.000090433")["samples"], 10)
    equal("a length from the start", count(*more, "--time", ",+0.099088496")["samples"], 1)
    equal("name the event", count(*more, "--event-name", "inst_retired")["events"][0]["name"],
          "inst_retired")


def main():
    with scratch() as folder:
        samples = demo_samples(folder)
        test_selection(samples)
    finish()


if __name__ == "__main__":
    main()
