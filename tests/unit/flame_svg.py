#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The flame graph as a file: well-formed, complete, and equal to the folded text that it shows.

Usage: flame_svg.py [path of flametool]
"""
import os
import random
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import BUILD, finish, passes, skip
from kit.svg import SVG, frames as decode

TOOL = sys.argv[1] if len(sys.argv) > 1 else os.path.join(BUILD, 'tests', 'flametool')


def draw(folded, *options):
    run = subprocess.run([TOOL, *options], input=folded, stdout=subprocess.PIPE, check=True)
    return run.stdout


def folded_of(stacks):
    return b''.join(b';'.join(stack) + b' %d\n' % count for stack, count in stacks)


def some_stacks(count, seed=1):
    rng = random.Random(seed)
    return [([b'main'] + [b'f%d_%d' % (level, rng.randint(0, 4) * rng.randint(0, 1))
                          for level in range(rng.randint(1, 15))], rng.randint(1, 50))
            for _ in range(count)]


def totals_of(stacks):
    """The sum of every path; the path of the root is ()."""
    totals = {}
    for stack, count in stacks:
        for end in range(len(stack) + 1):
            path = tuple(stack[:end])
            totals[path] = totals.get(path, 0) + count
    return totals


def decoded_totals(root):
    totals = {}
    for path, own, hidden in decode(root):
        for end in range(len(path) + 1):
            totals[path[:end]] = totals.get(path[:end], 0) + own + hidden
    return totals


def layer(root, name):
    return next(it for it in root.iter(SVG + 'g') if it.get('class') == name)


def rectangles(root):
    """[(row from the root, left, right)], in hundredths of a pixel, sorted."""
    found = [(int(it.get('y')), round(float(it.get('x')) * 100),
              round(float(it.get('x')) * 100) + round(float(it.get('width')) * 100))
             for name in ('narrow', 'wide') for it in layer(root, name)]
    ground = max(y for y, _, _ in found)
    return sorted(((ground - y) // 17, left, right) for y, left, right in found)


def data_equals_input():
    stacks = some_stacks(2000)
    root = ElementTree.fromstring(draw(folded_of(stacks), '--min', '0.0000001'))
    wanted = {tuple(name.decode() for name in path): total
              for path, total in totals_of(stacks).items()}
    assert decoded_totals(root) == wanted
    assert int(root.get('data-frames')) == len(wanted)


def siblings_in_order_of_bytes():
    names = [b'b', b'a', b'ab', b'abcdefgh', b'abcdefgh1', b'abcdefgh0', b'B', 'é'.encode(), b'z']
    many = [b'n%05d' % i for i in range(500)]
    random.Random(2).shuffle(many)
    stacks = [([name], 1) for name in names + many]
    frames = decode(ElementTree.fromstring(draw(folded_of(stacks))))
    assert [path[0].encode() for path, _, _ in frames[1:]] == sorted(names + many)


def narrow_frames_are_counted():
    stacks = some_stacks(3000, seed=3)
    root = ElementTree.fromstring(draw(folded_of(stacks), '--min', '1'))
    wanted = totals_of(stacks)
    least = wanted[()] / 100
    got = decoded_totals(root)
    assert got == {tuple(name.decode() for name in path): total
                   for path, total in wanted.items() if total >= least}
    assert 'not drawn' in ''.join(root.itertext())


def rectangles_nest():
    for options in ((), ('--width', '333'), ('--width', '4000')):
        stacks = some_stacks(3000, seed=4)
        root = ElementTree.fromstring(draw(folded_of(stacks), *options))
        width = int(root.get('width')) * 100
        rects = rectangles(root)
        assert rects[0] == (0, 1200, width - 1200), rects[0]
        rows = {}
        for row, left, right in rects:
            rows.setdefault(row, []).append((left, right))
        for row, boxes in rows.items():
            for (_, right), (left, _) in zip(boxes, boxes[1:]):
                assert left >= right, 'neighbours overlap'
            for left, right in boxes if row else ():
                assert any(a <= left and right <= b for a, b in rows[row - 1]), 'sticks out'


def widths_are_shares():
    stacks = [([b'a'], 1), ([b'b'], 2), ([b'c'], 5)]
    root = ElementTree.fromstring(draw(folded_of(stacks)))
    widths = [right - left for row, left, right in rectangles(root) if row == 1]
    assert widths == [14700, 29400, 73500], widths
    assert 'share of 8 samples' in ''.join(root.itertext())


def any_bytes_are_well_formed():
    rng = random.Random(5)
    nasty = [bytes(rng.choice([c for c in range(256) if c not in (10, 32, 59, 0)])
                   for _ in range(rng.randint(1, 60))) for _ in range(300)]
    nasty += [b']]>', b'</script>', b'\xed\xa0\x80', b'\xef\xbf\xbf', b'\xc0\x80',
              b'\xf5\x80\x80\x80', b'\xf0\x9f', b'\x01\x1b[31m', '\u202e'.encode(), b'A' * 5000]
    for options in ((), ('--icicle', '--title', ']]>&<'), ('--by-binary', '--marks')):
        text = draw(folded_of([([b'main', name], 10) for name in nasty]), *options).decode()
        root = ElementTree.fromstring(text)
        assert len(list(root.iter(SVG + 'script'))) == 1
    frames = decode(ElementTree.fromstring(draw(folded_of([([b'a\xff\x07b'], 1)]))))
    assert frames[1][0] == ('a\ufffd\ufffdb',), frames


def same_bytes_whatever_the_order():
    stacks = some_stacks(1000, seed=6)
    first = draw(folded_of(stacks))
    assert first == draw(folded_of(stacks))
    # Children are in the order of names, not of the input.
    random.Random(7).shuffle(stacks)
    assert first == draw(folded_of(stacks))


def empty_says_so():
    for folded in (b'', b'main;a 0\n'):
        root = ElementTree.fromstring(draw(folded, '--notes', 'nothing came'))
        text = ''.join(root.itertext())
        assert 'no samples' in text and 'nothing came' in text


def deep_and_huge():
    deep = [[b'f%d' % (i % 7) for i in range(20000)]]
    ElementTree.fromstring(draw(folded_of([(deep[0], 3)])))
    huge = folded_of([([b'a'], 2**64 - 1), ([b'b'], 2**64 - 1), ([b'c', b'd'], 2**63)])
    root = ElementTree.fromstring(draw(huge))
    assert all(1200 <= left <= right <= 118800 for _, left, right in rectangles(root))


def every_style_is_well_formed():
    stacks = folded_of([([b'task_[t]', b'user@bin_[u]', b'inl@bin_[i]', b'kern@vmlinux_[k]'], 5),
                        ([b'task_[t]', b'other@lib_[u]'], 3)])
    for palette in ('--hot', '--mem', '--kernel-user', '--by-binary'):
        for theme in ('--auto', '--light', '--dark'):
            ElementTree.fromstring(draw(stacks, '--marks', palette, theme))
    for more in ((), ('--negate',)):
        root = ElementTree.fromstring(draw(b'a;b 1 2\na;c 5 1\n', '--diff', *more))
        assert 'change in share' in ''.join(root.itertext())


def a_function_keeps_its_colour():
    def colour(folded, options):
        root = ElementTree.fromstring(draw(folded, *options))
        text = next(it for it in layer(root, 'labels') if it.text == 'the_function')
        left, top = float(text.get('x')) - 4, int(text.get('y')) - 12
        return next(it.get('fill') for it in layer(root, 'wide')
                    if float(it.get('x')) == left and int(it.get('y')) == top)
    for options in (('--hot',), ('--mem',)):
        assert colour(b'a;the_function 1\n', options) == \
            colour(b'x;y;the_function 5\nx;z 7\n', options)


def full_disk_is_told():
    if not os.path.exists('/dev/full'):
        return
    run = subprocess.run([TOOL, '-o', '/dev/full'], input=b'a 1\n', stderr=subprocess.PIPE)
    assert run.returncode == 4 and b'/dev/full: cannot write: No space' in run.stderr, run


def main():
    if not os.path.exists(TOOL):
        skip('flame_svg', f'{TOOL} is not built')
        finish()
    for test in (data_equals_input, siblings_in_order_of_bytes, narrow_frames_are_counted,
                 rectangles_nest, widths_are_shares, any_bytes_are_well_formed,
                 same_bytes_whatever_the_order, empty_says_so, deep_and_huge,
                 every_style_is_well_formed, a_function_keeps_its_colour, full_disk_is_told):
        passes('flame_svg.' + test.__name__, test)
    finish()


if __name__ == '__main__':
    main()
