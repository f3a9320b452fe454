#!/usr/bin/env python3
"""run.py BUILD: every code block of README.md and docs/*.md is compiled and run, against an installed tree.

- ```c after a line that ends in `name.c`: is written to that file; it is built and run by the shell blocks that follow
- ```c with a main: a program, built and run
- ```c without one: a part of a function that has ctx, a, b and graph at hand; built
- ```sh: run in a directory of the page, with cc, pkg-config and arenite as after an installation
- ```text after it: exactly what it prints
- no language: a picture, or commands for a person

The pages under docs/api/ repeat the headers, which are compiled by tests of their own."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BLOCK = re.compile(r"(?:^`([\w.-]+)`:\n\n)?^```(\w+)\n(.*?)^```$", re.M | re.S)
PART = """#include <stdbool.h>
#include <stdio.h>
#include "ggml.h"
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "gguf.h"
#include "llama.h"
#include "arenite.h"
void part(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, struct ggml_cgraph *graph);
void part(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, struct ggml_cgraph *graph) {
    (void) ctx, (void) a, (void) b, (void) graph;
%s
}
"""
FLAGS = "-std=c11 -Wall -Wextra -Wno-unused-variable".split()


def shell(command, where, env):
    result = subprocess.run(["sh", "-eu", "-c", command], cwd=where, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if result.returncode:
        sys.exit(f"{command}\nexit code {result.returncode}\n{result.stdout}{result.stderr}")
    return result.stdout


def page(path, work, env):
    """The number of blocks."""
    printed, n = "", 0
    for name, language, text in BLOCK.findall(path.read_text()):
        n += 1
        where = f"{path.relative_to(ROOT)}, block {n}"
        if language == "c" and name:
            (work/name).write_text(text)
        elif language == "c":
            whole = re.search(r"\bmain\(", text)
            (work/"block.c").write_text(text if whole else PART % text)
            shell(f"cc {' '.join(FLAGS)} {'-o block' if whole else '-c'} block.c $(pkg-config --cflags --libs ggml llama) -lm" +
                  (" && ./block" if whole else ""), work, env)
        elif language == "sh":
            printed = shell(text, work, env)
        elif language == "text":
            assert text == printed, f"{where}: printed\n{printed}instead of\n{text}"
        elif language:
            sys.exit(f"{where}: a block in {language}, of which nothing is known here")
    return n


def main(build):
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        prefix = work/"installed"
        subprocess.run(["cmake", "--install", build, "--prefix", prefix], check=True, stdout=subprocess.DEVNULL)
        lib = next(prefix.glob("**/pkgconfig")).parent
        env = os.environ | {"PKG_CONFIG_PATH": str(lib/"pkgconfig"), "LD_LIBRARY_PATH": str(lib), "PATH": f"{prefix}/bin:{os.environ['PATH']}"}
        total = 0
        for path in [ROOT/"README.md", *sorted((ROOT/"docs").glob("*.md"))]:
            here = work/path.stem
            here.mkdir()
            n = page(path, here, env)
            total += n
            if n:
                print(f"{path.relative_to(ROOT)}: {n} blocks")
        assert total >= 8, total


main(sys.argv[1])
