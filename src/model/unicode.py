#!/usr/bin/env python3
"""Prints unicode.def: the classes of code points that pre-tokenizers tell apart, as runs.

usage: pip install unicodedata2==16.0.0; python3 unicode.py > unicode.def

The version is that of the regular expression engine in Hugging Face's tokenizers: another one would cut words of newer
scripts elsewhere. The table is kept in the repository so that token ids do not depend on what is installed."""
import sys
import unicodedata2 as unicode

CLASS = {'Lu': 'UPPER', 'Lt': 'UPPER', 'Ll': 'LOWER', 'Lm': 'LETTER', 'Lo': 'LETTER',
         'M': 'MARK', 'N': 'NUMBER', 'P': 'PUNCT', 'S': 'SYMBOL', 'Z': 'SPACE', 'C': 'OTHER'}
SPACES = set(range(0x09, 0x0e)) | {0x85}        # White_Space outside the separators (PropList.txt)


def kind(code):
    category = unicode.category(chr(code))
    return 'SPACE' if code in SPACES else CLASS.get(category) or CLASS[category[0]]


def main():
    if unicode.unidata_version != '16.0.0':
        sys.exit(f'Unicode {unicode.unidata_version} found, 16.0.0 wanted')
    runs, last = [], None
    for code in range(0x110000):
        if kind(code) != last:
            last = kind(code)
            runs.append(f'R({code:x},{last})')
    print('/* Written by unicode.py from the Unicode Character Database 16.0.0: R(first code point, class), each up to the')
    print(' * next row; A(code point, class) for ASCII. UPPER: Lu Lt, LOWER: Ll, LETTER: Lm Lo, SPACE: White_Space. */')
    line = ''
    for run in [f'A({code:x},{kind(code)})' for code in range(128)] + runs:
        if len(line) + len(run) > 118:
            print(line.rstrip())
            line = ''
        line += run + ' '
    print(line.rstrip())


main()
