#!/usr/bin/env python3
"""Time the peer the way `arenite bench` times us, through its Python package's C interface; one JSON list on stdout.

    peer.py MODEL -p N -n N -d DEPTH -t THREADS -r REPEAT [--cache-k TYPE --cache-v TYPE]
"""
import argparse
import ctypes
import json
import os
import statistics
import time

import llama_cpp


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("model")
    ap.add_argument("-p", type=int, default=512)
    ap.add_argument("-n", type=int, default=128)
    ap.add_argument("-d", type=int, default=0)
    ap.add_argument("-t", type=int, default=1)
    ap.add_argument("-r", type=int, default=3)
    for which in "kv":
        ap.add_argument(f"--cache-{which}", choices=["f16", "q8_0", "q4_0"], default="f16")
    a = ap.parse_args()

    quiet = llama_cpp.llama_log_callback(lambda level, text, data: None)
    llama_cpp.llama_log_set(quiet, None)
    llama_cpp.llama_backend_init()
    start = time.perf_counter()
    model = llama_cpp.llama_model_load_from_file(a.model.encode(), llama_cpp.llama_model_default_params())
    params = llama_cpp.llama_context_default_params()
    params.n_ctx = max(a.d + max(a.p, a.n), 64)
    params.n_batch = params.n_ubatch = 512
    params.n_threads = params.n_threads_batch = max(os.cpu_count(), a.t) if a.d else a.t      # the depth is filled with all
    params.type_k, params.type_v = (getattr(llama_cpp, "GGML_TYPE_" + t.upper()) for t in (a.cache_k, a.cache_v))
    params.swa_full = False                     # as ours: sliding layers keep no more than they need
    ctx = llama_cpp.llama_init_from_model(model, params)
    load_s = time.perf_counter() - start
    vocab = llama_cpp.llama_model_get_vocab(model)
    n_vocab = llama_cpp.llama_vocab_n_tokens(vocab)
    tokens = [1000003*(i + 1) % n_vocab for i in range(a.d + max(a.p, a.n))]

    def decode(part):
        array = (ctypes.c_int32*len(part))(*part)
        if llama_cpp.llama_decode(ctx, llama_cpp.llama_batch_get_one(array, len(part))):
            raise SystemExit("the peer could not decode")
        llama_cpp.llama_get_logits_ith(ctx, -1)

    def steps(first, last, step):
        for i in range(first, last, step):
            decode(tokens[i:min(i + step, last)])

    def once(n, step):
        llama_cpp.llama_memory_seq_rm(llama_cpp.llama_get_memory(ctx), -1, a.d, -1)
        start = time.perf_counter()
        steps(a.d, a.d + n, step)
        return n/(time.perf_counter() - start)

    steps(0, a.d, 512)
    llama_cpp.llama_set_n_threads(ctx, a.t, a.t)
    out = []
    for name, n, step in (("pp", a.p, 512), ("tg", a.n, 1)):
        if not n:
            continue
        once(min(n, 4) if step == 1 else n, step)
        speeds = [once(n, step) for _ in range(a.r)]
        rss = dict(line.split(":", 1) for line in open("/proc/self/status"))
        out.append(dict(model=a.model, threads=a.t, test=f"{name}{n}" + (f"@d{a.d}" if a.d else ""), tok_s=statistics.mean(speeds),
                        stdev=statistics.stdev(speeds) if len(speeds) > 1 else 0, load_s=load_s,
                        private_bytes=int(rss["RssAnon"].split()[0])*1024, mapped_bytes=int(rss["RssFile"].split()[0])*1024))
    print(json.dumps(out))


if __name__ == "__main__":
    main()
