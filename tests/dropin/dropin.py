"""dropin.py CASE BUILD: our objects where an unmodified peer's stood. PEER_PYTHON names a Python with llama-cpp-python 0.3.36.

plugin-in-peer  our CPU backend as a plugin of the peer's tensor library, found by path and by GGML_BACKEND_PATH
peer-plugin     the peer's CPU backend as a plugin of our tensor library
models          the peer's model library over our tensor library, and our model library under the peer's Python package, must
                do what the peer does with its own (scenario.py), for every model of ARENITE_MODELS
tensor          the peer's model library over our meta device of 2 and of 3 CPUs, tensors divided, must do what it does over one
own-tests       the tests that the peer's Python package has for itself come out with our libraries as with its own; they are
                fetched with what they need into the build directory. Models that cannot be had have stand-ins (stand_ins.py)
Exit code 77: there is no peer, no model, or no network."""

import ctypes
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
MODELS = "smollm2-135m.gguf", "gemma3-270m.gguf"
CLOSE = 0.25            # two logits this close may change places: the rounding of activations moves them by that
LIKE = 0.98             # cosine of an embedding with the peer's own


def run(command, **environment):
    env = {k: v for k, v in os.environ.items() if not k.startswith("GGML_")}
    result = subprocess.run([str(c) for c in command], env=env | {k: str(v) for k, v in environment.items()},
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if result.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{environment}\nexit code {result.returncode}\n{result.stderr[-4000:]}")
    return result.stdout


def skip(why):
    print("skipped:", why)
    sys.exit(77)


def plugin_in_peer(build, peer):
    plugin, compare = build/"lib"/"libggml-arenite.so", build/"tests"/"dropin_compare"
    run([compare, plugin, "near"], LD_LIBRARY_PATH=peer)
    run([compare, "arenite", "near"], LD_LIBRARY_PATH=peer, GGML_BACKEND_PATH=plugin)


def peer_plugin(build, peer):
    run([build/"tests"/"dropin_compare", build/"tests"/"plugins"/"libggml-peer.so", "near"], LD_LIBRARY_PATH=build/"lib",
        PEER_CPU=peer/"libggml-cpu.so")


def same_tokens(name, ours, own, margins):
    """Equal up to where the peer's own choice hung by a hair. Returns how many were compared."""
    sure = next((i for i, m in enumerate(margins) if m < CLOSE), len(margins))
    assert ours[:sure] == own[:sure], f"{name}: {ours} instead of {own}, margins {margins}"
    return sure


def compare(name, ours, own):
    assert ours["prompts"] == own["prompts"], f"{name}: tokens of the prompts"
    margins, compared = own["margins"], 0
    for i, tokens in enumerate(own["greedy"]):
        compared += same_tokens(f"{name}: greedy {i}", ours["greedy"][i], tokens, margins[i])
        same_tokens(f"{name}: Q8_0 cache {i}", ours["cache"][i], own["cache"][i], own["cache margins"][i])
    assert compared > sum(map(len, margins))//2, f"{name}: prompts with too close choices, {margins}"
    for kind in range(len(own["sequences"])):
        for i, tokens in enumerate(own["sequences"][kind]):             # the last sequence is a copy of the first
            same_tokens(f"{name}: sequence {i} of {kind}", ours["sequences"][kind][i], tokens, margins[i % len(margins)])
        assert ours["sequences"][kind][-1] == ours["sequences"][kind][0], f"{name}: a copied sequence"
    for i, tokens in enumerate(ours["states"]):
        assert tokens == ours["greedy"][0][:len(tokens)], f"{name}: state {i}: {tokens} after {ours['greedy'][0]}"
    for i, vectors in enumerate(own["embeddings"]):
        assert len(vectors) == len(ours["embeddings"][i]), f"{name}: number of embeddings"
        for a, b in zip(ours["embeddings"][i], vectors):
            like = sum(x*y for x, y in zip(a, b))
            assert like > LIKE, f"{name}: an embedding of {i}: {like}"


def bound(package):
    """The functions that the package looks up when it is imported."""
    return re.findall(r'@ctypes_function\(\s*"(\w+)"', (package/"llama_cpp.py").read_text())


def models(build, peer):
    python, lib = os.environ["PEER_PYTHON"], build/"lib"
    ours = ctypes.CDLL(str(lib/"libllama.so"))
    missing = [name for name in bound(peer.parent) if not hasattr(ours, name)]
    assert not missing, f"our model library lacks {missing}"
    found = [m for m in (pathlib.Path(os.environ["ARENITE_MODELS"])/name for name in MODELS) if m.exists()]
    for model in found:
        with tempfile.TemporaryDirectory() as work:
            def scenario(**environment):
                return json.loads(run([python, HERE/"scenario.py", model, work], **environment))

            own = scenario()
            below = scenario(LD_LIBRARY_PATH=lib)
            assert sum(str(lib) in o for o in below["objects"]) == 1 and sum(str(peer) in o for o in below["objects"]) == 1, \
                f"their model library, our tensor library: {below['objects']}"
            compare(f"{model.name}, our tensor library", below, own)
            print(f"{model.name}: over our tensor library as over the peer's own")
            whole = scenario(LLAMA_CPP_LIB_PATH=lib)
            assert not any(str(peer) in o for o in whole["objects"]), f"ours alone: {whole['objects']}"
            compare(f"{model.name}, our model library", whole, own)
            print(f"{model.name}: our model library as the peer's own")
    return found or skip("no models")


def tensor(build, peer):
    python, lib = os.environ["PEER_PYTHON"], build/"lib"
    found = [m for m in (pathlib.Path(os.environ["ARENITE_MODELS"])/name for name in MODELS) if m.exists()]
    for model in found:
        one, *several = (json.loads(run([python, HERE/"tensor.py", model, lib/"libggml.so", n], LD_LIBRARY_PATH=lib)) for n in (0, 2, 3))
        for divided in several:
            for i, tokens in enumerate(one["greedy"]):
                same_tokens(f"{model.name}: divided, prompt {i}", divided["greedy"][i], tokens, one["margins"][i])
        print(f"{model.name}: divided over 2 and 3 devices as on one")
    return found or skip("no models")


def fetched(python, work):
    """The package's tests and the file they read, and the modules they need. None: not to be had."""
    version = run([python, "-c", "import importlib.metadata as m; print(m.version('llama-cpp-python'))"]).strip()
    source, modules = work/f"llama_cpp_python-{version}", work/"modules"
    pip = [python, "-m", "pip", "-q", "--disable-pip-version-check"]
    for there, command in ((work/f"{source.name}.tar.gz", ["download", "--no-binary", "llama-cpp-python", "--no-deps", "-d", work,
                                                           f"llama-cpp-python=={version}"]),
                           (modules, ["install", "--target", modules, "pytest", "scipy", "pydantic"])):
        if not there.exists() and subprocess.run([*pip, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
            return None
    with tarfile.open(work/f"{source.name}.tar.gz") as tar:
        wanted = re.compile(r"[^/]+/(tests/[^/]+\.py|vendor/llama\.cpp/models/ggml-vocab-llama-spm\.gguf)")
        tar.extractall(work, [m for m in tar if m.isfile() and wanted.fullmatch(m.name)], filter="data")
    return source, modules


def own_tests(build, peer):
    python, lib, work = os.environ["PEER_PYTHON"], build/"lib", build/"tests"/"peer"
    models = pathlib.Path(os.environ["ARENITE_MODELS"])
    if not all((models/name).exists() for name in MODELS):
        skip("no models")
    work.mkdir(parents=True, exist_ok=True)
    source, modules = fetched(python, work) or skip("the peer's tests cannot be fetched")

    def outcomes(**environment):
        report = work/"report.json"
        report.unlink(missing_ok=True)
        env = {"PYTHONPATH": f"{modules}:{HERE}", "PYTHONDONTWRITEBYTECODE": "1", "PEER_WORK": work, "PEER_REPORT": report} | environment
        subprocess.run([python, "-m", "pytest", "-q", "-p", "stand_ins", "-p", "no:cacheprovider", "tests"], cwd=source, check=False,
                       env=os.environ | {k: str(v) for k, v in env.items()}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return json.loads(report.read_text())

    own = outcomes()
    for name, environment in (("its model library over our tensor library", {"LD_LIBRARY_PATH": lib}),
                              ("our model library", {"LLAMA_CPP_LIB_PATH": lib})):
        ours = outcomes(**environment)
        other = {test: (how, ours.get(test)) for test, how in own.items() if ours.get(test) != how}
        assert not other, f"{name}: {other}"
        passed = sum(how == "passed" for how in ours.values())
        assert passed >= 12, f"{name}: {own}"
        print(f"{name}: {passed} tests pass, {sum(how == 'skipped' for how in own.values())} have no model, the rest as with its own libraries:",
              {test: how for test, how in own.items() if how not in ("passed", "skipped")})


def main(case, build):
    python = os.environ.get("PEER_PYTHON")
    if not python:
        skip("PEER_PYTHON names no Python")
    where = subprocess.run([python, "-c", "import importlib.util as u; print(u.find_spec('llama_cpp').origin)"],
                           capture_output=True, text=True)
    if where.returncode:
        skip(f"{python} has no llama_cpp")
    cases = {"plugin-in-peer": plugin_in_peer, "peer-plugin": peer_plugin, "models": models, "tensor": tensor, "own-tests": own_tests}
    cases[case](pathlib.Path(build).resolve(), pathlib.Path(where.stdout.strip()).parent/"lib")


main(*sys.argv[1:])
