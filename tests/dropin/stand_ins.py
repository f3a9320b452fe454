"""A pytest plugin for the peer's own tests: local models where the tests would fetch others, and what came out as JSON.

PEER_WORK is a directory for what is made here, ARENITE_MODELS has the models, PEER_REPORT names the file of outcomes: for each
test "passed", "skipped" or the line where it failed. A model that stands for another fails a test that knows the other's
tokens; with every library it must fail at the same line."""

import json
import os
import pathlib

import gguf
import huggingface_hub
import pytest

MODELS, WORK = pathlib.Path(os.environ["ARENITE_MODELS"]), pathlib.Path(os.environ["PEER_WORK"])
MEAN = 1
outcomes = {}


def embedding_model():
    """The smaller model as one for embeddings, that pools by the mean."""
    to = WORK/"embedding.gguf"
    if not to.exists():
        source = gguf.GGUFReader(MODELS/"smollm2-135m.gguf")
        arch = source.fields["general.architecture"].contents()
        out = gguf.GGUFWriter(to.with_suffix(".part"), arch)
        for name, field in source.fields.items():
            if not name.startswith("GGUF.") and name != "general.architecture":
                out.add_key_value(name, field.contents(), field.types[0], field.types[-1] if len(field.types) > 1 else None)
        out.add_uint32(f"{arch}.pooling_type", MEAN)
        for t in source.tensors:
            out.add_tensor(t.name, t.data, raw_shape=t.data.shape, raw_dtype=t.tensor_type)
        out.write_header_to_file()
        out.write_kv_data_to_file()
        out.write_tensors_to_file()
        out.close()
        to.with_suffix(".part").rename(to)
    return to


STAND_INS = (               # part of the file's name, what stands for it
    ("stories15M", lambda: MODELS/"smollm2-135m.gguf"),
    ("Qwen", lambda: MODELS/"gemma3-270m.gguf"),
    ("bge", embedding_model),
)


def local(repo, name, **_):
    for part, model in STAND_INS:
        if part in name:
            return str(model())
    pytest.skip(f"nothing stands for {name}")


huggingface_hub.hf_hub_download = local


def pytest_runtest_logreport(report):
    if report.outcome == "failed":
        crash = report.longrepr.reprcrash
        outcomes[report.nodeid] = f"{pathlib.Path(crash.path).name}:{crash.lineno}"
    elif report.when == "call" or report.outcome == "skipped":
        outcomes.setdefault(report.nodeid, report.outcome)


def pytest_sessionfinish():
    pathlib.Path(os.environ["PEER_REPORT"]).write_text(json.dumps(outcomes))
