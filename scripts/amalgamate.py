#!/usr/bin/env python3
"""The one-file edition: amalgamate.py DIST writes DIST/arenite.c and the headers beside it.

    cc -O2 app.c arenite.c -lm -pthread

The file holds the tensor library with its CPU backend: every source of the build is a section, the kernels once for each x86
instruction set. Headers of the library come first, each once. Names of one source that another source has too are renamed in
its section by #define; what a section defines is undefined at its end. The compiler's preprocessor (CC, or cc) says which
names a source has at file scope."""

import functools
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SRC = ROOT/"src"
CPU = SRC/"backends"/"cpu"
DIRS = [ROOT/"include", SRC/"core", SRC/"ops", SRC/"quant", SRC/"train", SRC/"backends", CPU, CPU/"kernels", CPU/"simd"]
PUBLIC = "ggml.h", "ggml-alloc.h", "ggml-backend.h", "ggml-cpu.h", "ggml-opt.h", "gguf.h", "arenite.h", "llama.h"
SHARED = {"kernels.h", "codes.h", "float_kernels.h", "attention.h", "quant_dot.h"}     # the headers of kernels/ that no instruction set changes
STARTS_TYPE = "struct", "union", "enum", "[", "{", ";", "(", "const"    # in the body of a struct what follows is a type or a constant
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<([^>]+)>|(\w+)).*$', re.M)
TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|[A-Za-z_]\w*|\.?\d[\w.]*|\S')


def find(name, start):
    for folder in [start, *DIRS]:
        path = (folder/name).resolve()
        if path.exists():
            return path
    sys.exit(f"{start}: no {name}")


def is_global(path):
    if path.suffix != ".h" or path.parent == CPU/"simd":
        return False
    return path.parent != CPU/"kernels" or path.name in SHARED


def instruction_sets():
    """Rows of cmake/kernels.cmake for x86: name, header, flags."""
    text = (ROOT/"cmake"/"kernels.cmake").read_text()
    rows = re.findall(r'"(\w+)\s+(\w+)\.h\s+(-m[^"]*)"', text[:text.index("aarch64")])
    return [(isa, header, flags.split()) for isa, header, flags in rows]


@functools.lru_cache(maxsize=None)
def resolved(path):
    return pathlib.Path(path).resolve()


class Section:
    def __init__(self, number, path, isa=None, header=None, flags=()):
        self.number, self.path, self.isa, self.flags = number, path, isa, list(flags)
        self.values = {"SIMD": f"{header}.h", "SIMD_INT": f"{header}_int.h"}
        self.defines = [f"ISA {isa}"] if isa else []

    def names(self, headers):
        """At file scope: what the source and its own headers keep to themselves, what shared headers hold, what is external."""
        command = [*os.environ.get("CC", "cc").split(), "-std=c11", "-D_POSIX_C_SOURCE=200809L", "-E", *self.flags, str(self.path)]
        command += [f"-I{d}" for d in DIRS] + [f"-D{d.replace(' ', '=')}" for d in self.defines]
        command += [f'-D{k}="{v}"' for k, v in self.values.items() if self.isa] + [f"-DHAVE_ISA_{row[0]}" for row in instruction_sets()]
        text = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        own, shared, stack = [], [], [None]
        for line in text.splitlines():
            if not line.startswith("#"):
                if stack[-1] is not None:
                    stack[-1].append(line)
                continue
            marker = re.match(r'# \d+ "([^"]*)"(?: ([12]))?', line)
            if not marker:
                continue
            path, step = resolved(marker[1]), marker[2]
            if step == "1":                                     # a file begins; rows of a table belong to who includes it
                into = shared if path in headers else None if not path.is_relative_to(SRC) else own if stack[-1] is None else stack[-1]
                stack.append(into)
            elif step == "2":
                stack.pop()
            elif path == self.path:
                stack = [own]
        mine, outside = file_scope("\n".join(own))
        theirs, more = file_scope("\n".join(shared))
        return mine, theirs, outside | more


@functools.lru_cache(maxsize=None)
def file_scope(text):
    """The names that declarations at file scope introduce: those of this scope alone (static, types, tags, constants), and the
    external ones."""
    found, external, depth, statement, tokens = set(), set(), 0, [], TOKEN.findall(text)

    def end():
        (found if {"static", "typedef"} & set(statement) else external).update(declared(statement))
        statement.clear()

    for i, token in enumerate(tokens):
        if token in ("struct", "union", "enum") and i + 2 < len(tokens) and tokens[i + 2] == "{":
            found.add(tokens[i + 1])
        if token == "enum" and "{" in tokens[i:i + 3]:
            at, nested = tokens.index("{", i) + 1, 0
            expect = True
            while tokens[at] != "}" or nested:
                nested += (tokens[at] in "([{") - (tokens[at] in ")]}")
                if expect and not nested:
                    found.add(tokens[at])
                expect = tokens[at] == "," and not nested
                at += 1
        if token in "{":
            if depth == 0:
                statement.append("{}")
            depth += 1
        elif token == "}":
            depth -= 1
            if depth == 0 and "(" in statement and "=" not in statement and "typedef" not in statement:
                end()                                                           # a function ends without a semicolon
        elif depth == 0 and token == ";":
            end()
        elif depth == 0:
            statement.append(token)
    return found, external - found


def declared(statement):
    """The names of one declaration."""
    names, level, last, done = set(), 0, None, False
    statement = re.sub(r"__(attribute__|asm__) \( \( .*? \) \)", "", " ".join(statement)).split()
    pointer = re.match(r"typedef .*?\( \* (\w+) \)", " ".join(statement))
    if pointer:
        return {pointer[1]}
    for token in statement:
        if token in ("(", "["):
            if level == 0 and last and not done:
                names.add(last)
                done = True
            level += 1
        elif token in (")", "]"):
            level -= 1
        elif level == 0 and token in (",", "="):
            if last and not done:
                names.add(last)
            done, last = token == "=", None
        elif level == 0 and re.match(r"[A-Za-z_]", token):
            last = token
    if last and not done and len(statement) > 1:
        names.add(last)
    return names - {"const", "void", "int", "char", "float", "double", "_Static_assert", "struct", "enum", "union"}


class Writer:
    def __init__(self):
        self.headers, self.system, self.top = [], [], []

    def expand(self, path, values):
        """The text of a file: shared headers move to the top, others are put in place."""
        def put(match):
            quoted, system, macro = match.groups()
            if system:
                if system not in self.system and system != "sys/auxv.h":
                    self.system.append(system)
                return match[0]
            if macro:
                quoted = values[macro]
            inner = find(quoted, path.parent)
            if inner.parent == ROOT/"include":
                if inner.name not in self.top:
                    self.top.append(inner.name)
                return ""
            if not is_global(inner):
                return f"/* {inner.relative_to(SRC)} */\n" + self.expand(inner, values)
            if inner not in [h for h, _ in self.headers]:
                self.headers.append((inner, None))
                text = self.expand(inner, values)
                self.headers.remove((inner, None))
                self.headers.append((inner, text))
            return ""
        return INCLUDE.sub(put, path.read_text())


def rewritten(text, names, number):
    """The text with these names renamed, but for members of structs, in their declarations and behind . and ->, and for what
    K_JOIN makes a part of another name."""
    if not names:
        return text
    pieces, before, stack = re.split(r'(/\*.*?\*/|"(?:\\.|[^"\\\n])*"|[A-Za-z_]\w*|->|\S)', text, flags=re.S), [""]*3, []
    parentheses = 0
    for i, piece in enumerate(pieces):
        if not piece.strip() or piece.startswith("/*"):
            continue
        parentheses += (piece == "(") - (piece == ")")
        if piece == "{":
            stack.append("struct" in before[-2:] or "union" in before[-2:])
        elif piece == "}" and stack:
            stack.pop()
        elif piece in names and before[-1] not in (".", "->") and before[-2:] != ["K_JOIN", "("] and \
                (not stack or not stack[-1] or before[-1] in STARTS_TYPE or (before[-1] == "," and parentheses)):
            pieces[i] = f"{piece}__{number}"
        before = [*before[-2:], piece]
    return "".join(pieces)


def target_of(flags):
    return ",".join(f[2:] for f in flags)


def opened(flags):
    """Code for an instruction set that the rest of the file may lack; clang does not define the macros that say so."""
    if not flags:
        return ""
    macros = [f"__{f[2:].upper()}__" for f in flags]
    return (f'#ifdef __clang__\n#pragma clang attribute push(__attribute__((target("{target_of(flags)}"))), apply_to = function)\n'
            + "".join(f"#ifndef {m}\n#define {m} 1\n#define {m}made\n#endif\n" for m in macros)
            + f'#else\n#pragma GCC push_options\n#pragma GCC target("{target_of(flags)}")\n#endif\n')


def closed(flags):
    if not flags:
        return ""
    macros = [f"__{f[2:].upper()}__" for f in flags]
    return ("#ifdef __clang__\n#pragma clang attribute pop\n"
            + "".join(f"#ifdef {m}made\n#undef {m}\n#undef {m}made\n#endif\n" for m in macros) + "#else\n#pragma GCC pop_options\n#endif\n")


HEAD = """/* arenite in one file: the tensor library with its CPU backend. Written by scripts/amalgamate.py.
 *     cc -O2 app.c arenite.c -lm -pthread
 * Results are the same bits as those of the library built from its sources: contraction is off whatever the flags say. */
#define _POSIX_C_SOURCE 200809L
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#elif defined __GNUC__
#pragma GCC optimize("fp-contract=off")
#endif
#if defined __x86_64__ && defined __GNUC__
#include <immintrin.h>
"""


def main(dist):
    dist = pathlib.Path(dist)
    dist.mkdir(parents=True, exist_ok=True)
    writer, sections = Writer(), []
    for folder in ("core", "ops", "quant", "train", "backends", "backends/cpu", "backends/cpu/ops", "backends/cpu/kernels/portable"):
        for path in sorted((SRC/folder).glob("*.c")):
            sections.append(Section(len(sections), path))
    for isa, header, flags in instruction_sets():
        for path in sorted((CPU/"kernels").glob("*.c")):
            sections.append(Section(len(sections), path, isa, header, flags))

    texts = [writer.expand(s.path, s.values) for s in sections]
    shared_files = {path for path, _ in writer.headers} | {ROOT/"include"/n for n in writer.top}
    seen = [s.names(shared_files) for s in sections]
    count = {}
    for own, _, _ in seen:
        for name in own:
            count[name] = count.get(name, 0) + 1
    everywhere = set().union(*(shared | external for _, shared, external in seen))

    out = [HEAD, "".join(f"#define HAVE_ISA_{row[0]} 1\n" for row in instruction_sets()), "#endif\n\n"]
    out += [f"#include <{name}>\n" for name in sorted(writer.system) if name != "immintrin.h"]
    out += [f'#include "{name}"\n' for name in writer.top]
    for path, text in writer.headers:
        out.append(f"\n/* ==== {path.relative_to(SRC)} ==== */\n{text}")
    macros = {}
    for _, text in writer.headers:
        gone = set(re.findall(r"^[ \t]*#[ \t]*undef[ \t]+(\w+)", text, re.M))
        found = re.finditer(r"^[ \t]*#[ \t]*define[ \t]+(\w+)(?:.*\\\n)*.*", text, re.M)
        macros |= {m[1]: m[0] + "\n" for m in found if m[1] not in gone}
    for section, text, (own, shared, external) in zip(sections, texts, seen):
        renamed = sorted(n for n in own - shared - external if count[n] > 1 or n in everywhere)
        members = set(renamed) & set(re.findall(r"(?:\.|->)\s*(\w+)", text))
        defined = sorted(set(re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", text, re.M)) | {d.split()[0] for d in section.defines}
                         - {"_GNU_SOURCE"})
        out.append(f"\n/* ==== {section.path.relative_to(SRC)}{' for ' + section.isa if section.isa else ''} ==== */\n")
        if section.isa:
            out.append(f"#ifdef HAVE_ISA_{section.isa}\n")
        out += [opened(section.flags)] + [f"#undef {n}\n" for n in defined if n in macros] + [f"#define {d}\n" for d in section.defines]
        out += [f"#define {n} {n}__{section.number}\n" for n in renamed if n not in defined and n not in members]
        out.append(rewritten(text, members, section.number))
        out += [f"#undef {n}\n" for n in sorted(set(renamed) | set(defined))]
        out += [macros[n] for n in defined if n in macros] + [closed(section.flags)]
        if section.isa:
            out.append("#endif\n")
    (dist/"arenite.c").write_text("".join(out))
    for name in PUBLIC:
        if (ROOT/"include"/name).exists():
            (dist/name).write_text((ROOT/"include"/name).read_text())
    lines = sum(t.count("\n") for t in out)
    print(f"{dist}/arenite.c: {lines} lines, {len(sections)} sections, {len(writer.headers)} headers")


if len(sys.argv) != 2 or sys.argv[-1].startswith("-"):
    sys.exit("usage: amalgamate.py FOLDER")
main(*sys.argv[1:])
