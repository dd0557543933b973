# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads the frames in the data of a flame graph, not the rectangles that it draws."""

SVG = "{http://www.w3.org/2000/svg}"


def numbers(text):
    """The numbers of a list: five bits in each character, the lowest first."""
    value = shift = 0
    for char in text:
        digit = ord(char) - 63
        value |= (digit & 31) << shift
        shift += 5
        if digit < 32:
            yield value
            value = shift = 0


def frames(root):
    """[(path from the root, own samples, hidden samples)], in the order of the file.

    Not for differential graphs. The list is empty if the graph has no samples."""
    data = {it.get("class"): it.text or "" for it in root.iter(SVG + "metadata")}
    if "frames" not in data:
        return []
    names = data["names"].split("\n")
    flat = list(numbers(data["looks"]))
    looks = [names[flat[i]] for i in range(0, len(flat), 4)]
    stream = numbers(data["frames"])
    path, found = [], []
    for head in stream:
        if found:
            path = path[:len(path) - head // 4]
            path.append(looks[next(stream)])
        else:
            next(stream)
        own = next(stream) if head & 1 else 0
        hidden = next(stream) if head & 2 else 0
        found.append((tuple(path), own, hidden))
    return found
