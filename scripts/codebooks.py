#!/usr/bin/env python3
"""Prints src/quant/codebooks.inc from the Python package gguf (0.19.0, MIT licence), which holds the grids as hexadecimal text.

A grid entry becomes one 16-bit number: 8 elements of 2 bits, or 4 elements of 4 bits, the first element lowest; an element
is a level, whose value is in src/quant/iq.c. Usage: python3 scripts/codebooks.py > src/quant/codebooks.inc
"""
import sys

from gguf import quants

GRIDS = ["IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ1_S"]


def entries(cls):
    """The entries of a grid as numbers, checked against the values that the package itself expands them to."""
    cls.init_grid()
    count, elements = cls.grid_shape
    bits = 16 // elements
    levels = {value: level for level, value in enumerate(cls.grid_map)}
    rows = cls.grid.reshape(count, elements)
    return [sum(levels[int(v)] << bits * j for j, v in enumerate(row)) for row in rows]


def main():
    print("/* The codebooks of the IQ types, index order: data of the Python package gguf 0.19.0 (MIT licence, Copyright (c) 2023\n"
          " * Georgi Gerganov), put into this form by scripts/codebooks.py. An entry is 8 elements of 2 bits or 4 of 4 bits, the first\n"
          " * lowest; iq.c has the value of each level. */")
    for name in GRIDS:
        numbers = entries(getattr(quants, name))
        print(f"GRID({name.lower()}, {len(numbers)})")
        for i in range(0, len(numbers), 20):
            print("".join(f"0x{n:04x}," for n in numbers[i:i + 20]))
        print("END")
    return 0


if __name__ == "__main__":
    sys.exit(main())
