# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes the inputs of archive and archive-*."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import inputs

MANIFEST = 'kscope-archive.txt'
RECORDING = 'recording/0/stacks.folded'
STACKS = b'main;work 3\nmain;rest 1\n'
TEXT = f'kscope-archive 1\ninput "stacks.folded" folded\nfile {RECORDING} "/home/me/stacks.folded"\n' \
       'name "stacks.folded"\n'


def octal(value, width):
    return b'%0*o\0' % (width - 1, value)


def header(name, size, kind=b'0', link=b'', magic=b'ustar\x0000'):
    """size: a number, or the bytes of the field."""
    field = size if isinstance(size, bytes) else octal(size, 12)
    data = bytearray(name.encode().ljust(100, b'\0') + b'0000644\0' + b'0000000\0' * 2 + field +
                     octal(0, 12) + b' ' * 8 + kind + link.ljust(100, b'\0') + magic)
    data = data.ljust(512, b'\0')
    data[148:156] = b'%06o\0 ' % sum(data)
    return bytes(data)


def member(name, data, **more):
    return header(name, more.pop('size', len(data)), **more) + data + b'\0' * (-len(data) % 512)


END = b'\0' * 1024
FIRST = member(MANIFEST, TEXT.encode())
SECOND = member(RECORDING, STACKS)


def put(name, data):
    inputs.put(name, 'input.tar', data)


def with_manifest(text):
    return member(MANIFEST, text.encode()) + SECOND + END


put('archive', FIRST + SECOND + END)
put('archive-binary-size', FIRST + member(RECORDING, STACKS, size=b'\x80' + bytes(10) + bytes([len(STACKS)])) +
    END)
put('archive-later-version', with_manifest(TEXT + 'colour "red"\n'))

# What never is in an archive of kscope.
put('archive-parent', FIRST + SECOND + member('../escape', b'x') + END)
put('archive-parent-inside', FIRST + SECOND + member('recording/../../escape', b'x') + END)
put('archive-absolute', FIRST + SECOND + member('/tmp/escape', b'x') + END)
put('archive-no-name', FIRST + SECOND + member('', b'x') + END)
put('archive-symbolic-link', FIRST + member(RECORDING, b'', kind=b'2', link=b'/etc/passwd') + END)
put('archive-hard-link', FIRST + member(RECORDING, b'', kind=b'1', link=b'/etc/passwd') + END)
put('archive-device', FIRST + member(RECORDING, b'', kind=b'3') + END)
put('archive-directory', FIRST + member('recording', b'', kind=b'5') + SECOND + END)
put('archive-long-name', FIRST + member('././@LongLink', b'a' * 200, kind=b'L') + END)
put('archive-escapes', FIRST + SECOND + member('a\x1b[31mb', b'x') + END)

# Members and the manifest disagree.
put('archive-twice', FIRST + SECOND + SECOND + END)
put('archive-unknown-member', FIRST + SECOND + member('file/7/x', b'x') + END)
put('archive-missing-member', FIRST + END)
put('archive-manifest-twice', FIRST + FIRST + SECOND + END)

# Sizes.
put('archive-huge-size', FIRST + member(RECORDING, STACKS, size=b'\x80\0\0\0\x7f' + b'\xff' * 7) + END)
put('archive-larger-than-any', FIRST + member(RECORDING, STACKS, size=b'\x80' + b'\xff' * 11) + END)
put('archive-size-no-number', FIRST + member(RECORDING, STACKS, size=b'twelve bytes') + END)
put('archive-size-too-large', FIRST + member(RECORDING, STACKS, size=100000) + END)
put('archive-size-too-small', FIRST + member(RECORDING, STACKS + b'x' * 1000, size=3) + END)
put('archive-huge-manifest', member(MANIFEST, TEXT.encode(), size=1 << 30) + SECOND + END)

# Damage.
put('archive-cut-in-header', (FIRST + SECOND)[:1100])
put('archive-cut-in-member', FIRST + member(RECORDING, STACKS)[:520])
put('archive-cut-in-manifest', FIRST[:600])
put('archive-cut-at-end', FIRST + SECOND)
put('archive-bad-sum', FIRST + SECOND[:10] + b'X' + SECOND[11:] + END)
put('archive-no-header', FIRST + b'garbage ' * 64 + SECOND + END)

# The manifest.
put('archive-other-version', with_manifest(TEXT.replace('archive 1', 'archive 2')))
put('archive-no-input', with_manifest('kscope-archive 1\n'))
put('archive-open-quote', with_manifest(TEXT.replace('stacks.folded"\n', 'stacks.folded\n')))
put('archive-key-of-no-file', with_manifest('kscope-archive 1\nname "x"\n'))
put('archive-file-twice', with_manifest(TEXT + f'file {RECORDING} "/other"\n'))
for name, path in {'relative': 'stacks', 'parent': '/home/../x', 'last-parent': '/home/..', 'empty': '',
                   'folder': '/home/me/', 'slashes': '//home', 'dot': '/./x'}.items():
    put(f'archive-path-{name}', with_manifest(TEXT.replace('/home/me/stacks.folded', path)))
put('archive-input-missing', with_manifest(TEXT.replace('input "stacks', 'input "other')))
put('archive-unknown-format', with_manifest(TEXT.replace('" folded', '" nonsense')))
put('archive-unknown-option', with_manifest(TEXT + 'option output "/tmp/escape"\n'))
put('archive-bad-option', with_manifest(TEXT + 'option slide "x"\n'))
# Another recording is another archive: it is not opened.
put('archive-in-archive', FIRST + member(RECORDING, FIRST + SECOND + END) + END)
