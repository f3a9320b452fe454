/* run: one prompt, one answer. The answer alone on stdout, figures on stderr. */

#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "tool.h"

struct figures { int prompt, answer; double prompt_s, answer_s, load_s; };      /* the first token of an answer is the prompt's work */

static double rate(int n, double seconds) { return n > 0 && seconds > 0 ? n/seconds : 0; }

static void report(const struct figures *f, int64_t seed) {
    size_t private_bytes, mapped_bytes;
    char a[32], b[32];
    memory_read(&private_bytes, &mapped_bytes);
    fprintf(stderr, "\nload %.2f s; prompt %d tokens, %.1f tokens/s; answer %d tokens, %.1f tokens/s; memory %s private, %s mapped; seed %" PRId64 "\n",
            f->load_s, f->prompt, rate(f->prompt, f->prompt_s), f->answer, rate(f->answer - 1, f->answer_s),
            bytes_text((double) private_bytes, a), bytes_text((double) mapped_bytes, b), seed);
}

static int report_json(const struct figures *f, const char *answer, int64_t seed) {
    size_t private_bytes, mapped_bytes;
    memory_read(&private_bytes, &mapped_bytes);
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "answer", answer);
    cJSON_AddNumberToObject(o, "seed", (double) seed);
    cJSON_AddNumberToObject(o, "load_s", f->load_s);
    cJSON_AddNumberToObject(o, "prompt_tokens", f->prompt);
    cJSON_AddNumberToObject(o, "prompt_tok_s", rate(f->prompt, f->prompt_s));
    cJSON_AddNumberToObject(o, "answer_tokens", f->answer);
    cJSON_AddNumberToObject(o, "answer_tok_s", rate(f->answer - 1, f->answer_s));
    cJSON_AddNumberToObject(o, "private_bytes", (double) private_bytes);
    cJSON_AddNumberToObject(o, "mapped_bytes", (double) mapped_bytes);
    return print_json(o);
}

static int answer(struct session *s, const char *prompt, struct sample_args *sampling, int64_t n, bool json) {
    struct figures f = { .load_s = s->load_s };
    char *reply = NULL;
    llama_token *tokens = session_tokenize(s, prompt, true, &f.prompt);
    struct llama_sampler *chain = tokens ? sampler_new(s, sampling) : NULL;
    int status = 1;
    if (chain && f.prompt == 0) fail("the prompt is empty");
    else if (chain && f.prompt > s->n_ctx) fail("the prompt has %d tokens, the context only %d (-c sets its size)", f.prompt, s->n_ctx);
    else if (chain) {
        const double start = now_s();
        const bool ok = session_decode(s, tokens, f.prompt, false);
        if (ok) f.prompt_s = now_s() - start;
        if (ok && session_generate(s, chain, n, json ? NULL : stdout, &f.answer, &f.answer_s, json ? &reply : NULL)) status = 0;
        else if (interrupted()) status = 0;
    }
    if (status == 0 && json) status = report_json(&f, reply ? reply : "", sampling->seed);
    else if (status == 0) {
        if (is_terminal(stdout)) putchar('\n');
        report(&f, sampling->seed);
    }
    free(reply);
    free(tokens);
    llama_sampler_free(chain);
    return status;
}

int command_run(int argc, char **argv) {
    struct model_args m = MODEL_ARGS_DEFAULT;
    struct sample_args sampling = SAMPLE_ARGS_DEFAULT;
    const char *text = NULL, *file = NULL, *system = NULL;
    int64_t n = -1;
    bool raw = false;
    const struct arg args[] = {
        ARG_MODEL(m),
        { "-p",       ARG_TEXT, &text,   "TEXT", "the prompt", 0, 0 },
        { "-f",       ARG_TEXT, &file,   "FILE", "read the prompt from a file; - or neither -p nor -f: from stdin", 0, 0 },
        { "--system", ARG_TEXT, &system, "TEXT", "a system message before the prompt", 0, 0 },
        { "-n",       ARG_INT,  &n,      "N",    "at most N tokens (default: until the answer or the context ends)", -1, 1 << 30 },
        { "--raw",    ARG_FLAG, &raw,    NULL,   "pass the text as it is, without the chat template", 0, 0 },
        ARG_COMMON(m), ARG_ADAPTERS(m), ARG_SAMPLE(sampling), ARG_JSON(m), ARG_END };
    int status;
    if (!args_read("run", "Answer a prompt. The answer goes to stdout, figures to stderr; Ctrl-C ends it.", args, argc, argv, &status)) return status;

    char *prompt = text_choose("run", "-p", text, file, &status), *chat = NULL;
    if (!prompt) return status;
    struct session s;
    if (session_open(&s, &m, true)) {
        const struct llama_chat_message messages[] = { { "system", system }, { "user", prompt } };
        if (!raw) chat = session_chat(&s, messages + !system, 1 + (system != NULL), true);
        if (raw || chat) status = answer(&s, chat ? chat : prompt, &sampling, n, m.json);
        session_close(&s);
    }
    free(chat);
    free(prompt);
    return status;
}
