"""tensor.py MODEL LIBGGML N: the peer's model library over N devices that are all the CPU, its tensors divided (split mode TENSOR);
N = 0: not divided. Prints one JSON object: the best tokens after some prompts and how far each was ahead."""

import ctypes
import json
import sys

import llama_cpp as L
import numpy

PROMPTS = "The capital of France is Paris. The capital of Germany is", "1, 2, 3, 4, 5,"
N_TOKENS = 12
CPU, TENSOR, ALWAYS = 0, 3, 1


def main(path, libggml, n):
    ggml = ctypes.CDLL(libggml)
    ggml.ggml_backend_dev_by_type.restype = ctypes.c_void_p
    ggml.ggml_backend_dev_by_type.argtypes = [ctypes.c_int]
    L.llama_backend_init()
    quiet = L.llama_log_callback(lambda *_: None)
    L.llama_log_set(quiet, ctypes.c_void_p(0))
    params = L.llama_model_default_params()
    devices = (ctypes.c_void_p*(n + 1))(*([ggml.ggml_backend_dev_by_type(CPU)]*n + [None]))
    if n:
        params.devices, params.split_mode, params.n_gpu_layers = ctypes.cast(devices, ctypes.c_void_p), TENSOR, 999
        params.use_mmap = False
    model = L.llama_model_load_from_file(path.encode(), params)
    params = L.llama_context_default_params()
    params.n_ctx, params.n_threads, params.n_threads_batch, params.flash_attn_type = 256, 1, 1, ALWAYS
    ctx, vocab = L.llama_init_from_model(model, params), L.llama_model_get_vocab(model)
    result = {"greedy": [], "margins": []}
    for prompt in PROMPTS:
        buffer = (L.llama_token*64)()
        tokens = list(buffer[:L.llama_tokenize(vocab, prompt.encode(), len(prompt), buffer, 64, True, True)])
        L.llama_memory_clear(L.llama_get_memory(ctx), True)
        out, margins = [], []
        for _ in range(N_TOKENS):
            batch = (L.llama_token*len(tokens))(*tokens)
            assert L.llama_decode(ctx, L.llama_batch_get_one(batch, len(tokens))) == 0
            scores = numpy.ctypeslib.as_array(L.llama_get_logits_ith(ctx, -1), (L.llama_vocab_n_tokens(vocab),))
            first, second = numpy.argsort(-scores, kind="stable")[:2]
            tokens = [int(first)]
            out += tokens
            margins.append(float(scores[first] - scores[second]))
        result["greedy"].append(out)
        result["margins"].append(margins)
    json.dump(result, sys.stdout)


main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
