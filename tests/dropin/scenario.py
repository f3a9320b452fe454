"""What a program does with the model library, through an unmodified llama-cpp-python: prints one JSON object of what came out.

    scenario.py MODEL WORK

Which libraries answer is the loader's matter: see dropin.py."""

import ctypes
import json
import os
import sys

import llama_cpp
import numpy

PROMPTS = "red green blue "*6 + "red green", "The capital of France is Paris. The capital of Germany is", "1, 2, 3, 4, 5,"
N_TOKENS = 12
Q8_0 = 8


def model(path, **more):
    return llama_cpp.Llama(path, n_ctx=256, n_threads=1, n_threads_batch=1, verbose=False, seed=1, **more)


def greedy(llm, tokens, n=N_TOKENS):
    """The n best tokens after `tokens`, and how far the best was ahead of the second, at the least."""
    out, margin = [], []
    llm.reset()
    llm.eval(tokens)
    for _ in range(n):
        scores = numpy.ctypeslib.as_array(llm._ctx.get_logits(), (llm.n_vocab(),))
        first, second = numpy.argsort(-scores, kind="stable")[:2]
        out.append(int(first))
        margin.append(float(scores[first] - scores[second]))
        llm.eval([out[-1]])
    return out, margin


def sequences(llm, prompts, unified):
    """All prompts in one batch, each a sequence, and a copy of the first; then a token of each at a time."""
    n = len(prompts)
    params = llama_cpp.llama_context_default_params()
    params.n_ctx, params.n_batch, params.n_seq_max, params.kv_unified = 1024, 256, n + 1, unified
    params.n_threads = params.n_threads_batch = 1
    ctx = llama_cpp.llama_init_from_model(llm._model.model, params)
    batch = llama_cpp.llama_batch_init(256, 0, 1)
    batch.n_tokens = 0

    def put(token, pos, seq, wanted):
        i = batch.n_tokens
        batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.logits[i] = token, pos, 1, wanted
        batch.seq_id[i][0] = seq
        batch.n_tokens += 1
        return i

    def best(rows):
        assert llama_cpp.llama_decode(ctx, batch) == 0
        batch.n_tokens = 0
        logits = (numpy.ctypeslib.as_array(llama_cpp.llama_get_logits_ith(ctx, i), (llm.n_vocab(),)) for i in rows)
        return [int(numpy.argmax(row)) for row in logits]

    at = [len(tokens) for tokens in prompts] + [len(prompts[0])]
    now = best([[put(token, pos, seq, pos == at[seq] - 1) for pos, token in enumerate(tokens)][-1]
                for seq, tokens in enumerate(prompts)])
    llama_cpp.llama_memory_seq_cp(llama_cpp.llama_get_memory(ctx), 0, n, -1, -1)
    now.append(now[0])
    out = [[token] for token in now]
    for step in range(N_TOKENS - 1):
        now = best([put(now[seq], at[seq] + step, seq, True) for seq in range(n + 1)])
        for seq, token in enumerate(now):
            out[seq].append(token)
    llama_cpp.llama_batch_free(batch)
    llama_cpp.llama_free(ctx)
    return out


def states(llm, tokens, work):
    """The tokens after a state was saved, after it was restored, and after a sequence went through a file."""
    llm.reset()
    llm.eval(tokens)
    state = llm.save_state()
    runs = []

    def go_on():
        out = []
        for _ in range(8):
            scores = numpy.ctypeslib.as_array(llm._ctx.get_logits(), (llm.n_vocab(),))
            out.append(int(numpy.argmax(scores)))
            llm.eval([out[-1]])
        runs.append(out)

    go_on()
    llm.load_state(state)
    llm.n_tokens = len(tokens) - 1              # the logits come from the last token again
    llm._ctx.kv_cache_seq_rm(-1, len(tokens) - 1, -1)
    llm.eval(tokens[-1:])
    go_on()

    ctx, path = llm._ctx.ctx, os.path.join(work, "sequence.state").encode()
    llm.reset()
    llm._ctx.kv_cache_clear()
    llm.eval(tokens[:-1])
    kept = (llama_cpp.llama_token*len(tokens))(*tokens[:-1])
    written = llama_cpp.llama_state_seq_save_file(ctx, path, 0, kept, len(tokens) - 1)
    llm._ctx.kv_cache_clear()
    count, back = ctypes.c_size_t(), (llama_cpp.llama_token*256)()
    read = llama_cpp.llama_state_seq_load_file(ctx, path, 0, back, 256, ctypes.byref(count))
    assert written == read > 0 and list(back[:count.value]) == tokens[:-1], (written, read, count.value)
    llm.eval(tokens[-1:])
    go_on()
    return runs


def main(path, work):
    result = {"system": llama_cpp.llama_print_system_info().decode()}
    llm = model(path)
    prompts = result["prompts"] = [llm.tokenize(text.encode()) for text in PROMPTS]
    result["greedy"], result["margins"] = zip(*(greedy(llm, tokens) for tokens in prompts))
    result["sequences"] = [sequences(llm, prompts, unified) for unified in (True, False)]
    result["states"] = states(llm, prompts[0], work)
    llm.close()

    llm = model(path, type_k=Q8_0, type_v=Q8_0, flash_attn=True)
    result["cache"], result["cache margins"] = zip(*(greedy(llm, tokens) for tokens in prompts))
    llm.close()

    llm = model(path, embedding=True)
    result["embeddings"] = [llm.embed(text, normalize=True) for text in PROMPTS]
    llm.close()
    result["objects"] = sorted({line.split()[-1] for line in open("/proc/self/maps") if "libggml" in line or "libllama" in line})
    json.dump(result, sys.stdout)


main(*sys.argv[1:])
