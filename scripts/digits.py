#!/usr/bin/env python3
"""Fetch the handwritten digits that examples/mnist.c learns: 1,797 lines of 64 pixels from 0 to 16 and the digit.

They come inside the package scikit-learn of the Python Package Index, are checked against their SHA-256 and kept in
models/digits.csv. Needs only python3 with pip. Prints the path; what is there already is not fetched again.
"""
import gzip
import pathlib
import subprocess
import sys
import tempfile
import zipfile

from models import FOLDER, digest

SHA256 = "6ebb3d2fee246a4e99363262ddf8a00a3c41bee6014c373ed9d9216ba7f651b8"
MEMBER = "sklearn/datasets/data/digits.csv.gz"


def fetch():
    target = FOLDER / "digits.csv"
    if target.exists() and digest(target) == SHA256:
        return target
    FOLDER.mkdir(exist_ok=True)
    print("fetching digits (9 MB)", file=sys.stderr)
    with tempfile.TemporaryDirectory(dir=FOLDER) as tmp:
        tmp = pathlib.Path(tmp)
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--no-deps", "--only-binary", ":all:",
               "--dest", str(tmp), "scikit-learn"]
        if subprocess.run(pip, stdout=sys.stderr).returncode:
            sys.exit("digits: pip could not download scikit-learn")
        part = tmp / "digits"
        with zipfile.ZipFile(next(tmp.glob("*.whl"))) as wheel:
            part.write_bytes(gzip.decompress(wheel.read(MEMBER)))
        found = digest(part)
        if found != SHA256:
            sys.exit(f"digits: SHA-256 is {found}, expected {SHA256}")
        part.rename(target)
    return target


if __name__ == "__main__":
    print(fetch())
