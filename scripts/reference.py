#!/usr/bin/env python3
"""reference.py [--check]: docs/api/*.md from the public headers, a page each. The headers are the source: what they say of a
function stands above it. --check writes nothing and fails if a page is not what the headers say."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = {
    "ggml.h": "Contexts, tensors, graphs, and the ops", "ggml-alloc.h": "Placing tensors", "ggml-backend.h": "Buffers, backends, devices, scheduler",
    "ggml-cpu.h": "The CPU backend", "ggml-opt.h": "Training", "gguf.h": "GGUF files", "llama.h": "The model library", "arenite.h": "What arenite adds",
}
SECTION = re.compile(r"/\* -{3,} (.*?) -{3,} \*/")
NOISE = re.compile(r'^(#\s*(if|ifdef|ifndef|endif|else|elif|include|undef|error)\b.*|extern "C" \{|\})$')


def comment_text(comment):
    """The words of a comment: paragraphs kept, lists and tables that are indented kept as they are."""
    lines = [re.sub(r"^ ?\* ?", "", line.rstrip()) for line in comment[2:-2].strip().splitlines()]
    text = "\n".join(lines).strip()
    return re.sub(r"([<>*_|])", r"\\\1", text)


def pieces(header):
    """Comments that begin a line, section headings, and code between them, in order."""
    text = re.sub(r"\\\n", "\x01", (ROOT/"include"/header).read_text())
    at, code = 0, []
    for match in re.finditer(r"^/\*.*?\*/[ \t]*$", text, re.M | re.S):
        yield from code_of(text[at:match.start()])
        section = SECTION.fullmatch(match[0].strip())
        at = match.end()
        if re.match(r"\s*#\s*if", text[at:]):               # what only compilers care about
            continue
        yield ("section", section[1]) if section else ("comment", comment_text(match[0].strip()))
    yield from code_of(text[at:])


def code_of(text):
    lines = [line for line in text.splitlines() if not NOISE.match(line.strip())]
    lines = [re.sub(r"\b(GGML|GGML_BACKEND|LLAMA)_API ", "", line).replace("\x01", "\\\n") for line in lines]
    lines = [line for line in lines if not re.match(r"# +define|#define (\w+_H|\w+_API)$", line)]
    for part in re.split(r"\n{2,}", "\n".join(lines).strip("\n")):
        if part.strip():
            yield "code", part.strip("\n")


def page(header):
    out = [f"# {header}: {PAGES[header].lower() if header != 'gguf.h' else PAGES[header]}", "",
           f"Written from [include/{header}](../../include/{header}) by `scripts/reference.py`."]
    for kind, text in pieces(header):
        out += ["", f"## {text[0].upper()}{text[1:]}"] if kind == "section" else ["", text] if kind == "comment" else ["", "```c", text, "```"]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out)) + "\n"


def main(check):
    folder, stale = ROOT/"docs"/"api", []
    headers = [h for h in PAGES if (ROOT/"include"/h).exists()]
    wanted = {f"{h[:-2]}.md": page(h) for h in headers}
    wanted["README.md"] = "# Reference\n\nA page for each public header.\n\n" + "".join(
        f"- [{h}]({h[:-2]}.md): {PAGES[h][0].lower() if h != 'gguf.h' else 'G'}{PAGES[h][1:]}\n" for h in headers)
    folder.mkdir(exist_ok=True)
    for name, text in wanted.items():
        if not (folder/name).exists() or (folder/name).read_text() != text:
            stale.append(name)
            if not check:
                (folder/name).write_text(text)
    for path in folder.glob("*.md"):
        if path.name not in wanted:
            stale.append(path.name)
            if not check:
                path.unlink()
    if check and stale:
        sys.exit(f"docs/api is not what the headers say, run scripts/reference.py: {' '.join(stale)}")
    print(f"{len(wanted)} pages, {sum(t.count(chr(10)) for t in wanted.values())} lines" + ("" if check else f", {len(stale)} written"))


main("--check" in sys.argv)
