/* Opening models, decoding and generating for all subcommands, and the small services around them. */

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tool.h"

/* ---- errors: the library's first error line since the last call is the one that is shown ---- */

static bool bar;                    /* progress stands on the line */
static char first_error[1024];
static bool verbose;

static void on_log(enum ggml_log_level level, const char *text, void *user_data) {
    (void) user_data;
    if (verbose) fputs(text, stderr);
    if (level == GGML_LOG_LEVEL_ERROR && !first_error[0]) {
        const size_t n = strlen(text);
        snprintf(first_error, sizeof first_error, "%.*s", (int) (n && text[n - 1] == '\n' ? n - 1 : n), text);
    }
}

/* Names come from files: what could move a terminal's cursor or break the line is shown as a dot. */
static void say(const char *format, va_list args) {
    char line[2048] = "";
    if (bar) fputc('\n', stderr);
    bar = false;
    vsnprintf(line, sizeof line, format, args);
    fputs("arenite: ", stderr);
    text_put(stderr, line, sizeof line);
    fputc('\n', stderr);
}

int fail(const char *format, ...) {
    va_list args;
    va_start(args, format);
    say(format, args);
    va_end(args);
    return 1;
}

int usage(const char *format, ...) {
    va_list args;
    va_start(args, format);
    say(format, args);
    va_end(args);
    return 2;
}

void library_log(bool show) {
    verbose = show;
    first_error[0] = 0;
    llama_log_set(on_log, NULL);
    ggml_log_set(on_log, NULL);
}

int fail_library(const char *subject, const char *otherwise) {
    static const char *const prefixes[] = { "gguf: ", "input: " };         /* the subject says more */
    const char *text = first_error[0] ? first_error : otherwise;
    for (size_t i = 0; subject && i < sizeof prefixes/sizeof *prefixes; i++) {
        const size_t n = strlen(prefixes[i]);
        if (!strncmp(text, prefixes[i], n)) text += n;
    }
    if (subject && !strstr(text, subject)) fail("%s: %s", subject, text);
    else fail("%s", text);
    first_error[0] = 0;
    return 1;
}

/* ---- Ctrl-C, and a model file that changes under us ---- */

static volatile sig_atomic_t stop_wanted;

/* The second one ends the process, unless it comes with the first: some programs send it to us and to our group. */
static void on_interrupt(int number) {
    static double first;
    const double now = now_s();
    if (!stop_wanted) first = now;
    else if (now - first > 0.5) { signal(number, SIG_DFL); raise(number); }
    stop_wanted = 1;
}

static void on_bus_error(int number) {
    static const char line[] = "arenite: the model file became shorter while it was in use\n";
    (void) number;
    if (write(2, line, sizeof line - 1) < 0) _exit(1);
    _exit(1);
}

bool interrupted(void) { return stop_wanted; }
void interrupted_clear(void) { stop_wanted = 0; }
static bool on_abort(void *user_data) { (void) user_data; return stop_wanted; }

void signals_install(void) {
    struct sigaction interrupt = { .sa_handler = on_interrupt }, bus = { .sa_handler = on_bus_error };
    struct sigaction before;
    if (!sigaction(SIGINT, NULL, &before) && before.sa_handler != SIG_IGN) sigaction(SIGINT, &interrupt, NULL);
    sigaction(SIGBUS, &bus, NULL);
}

/* ---- models ---- */

static bool context_open(struct session *s, const struct model_args *a) {
    struct llama_context_params p = llama_context_default_params();
    const int n_train = llama_model_n_ctx_train(s->model);
    s->n_ctx   = a->n_ctx ? (int) a->n_ctx : n_train < 4096 ? n_train : 4096;
    s->n_batch = a->n_batch < s->n_ctx ? (int) a->n_batch : s->n_ctx;
    p.n_ctx    = (uint32_t) s->n_ctx;
    p.n_batch  = p.n_ubatch = (uint32_t) s->n_batch;
    p.n_threads = p.n_threads_batch = s->threads;
    p.swa_full = false;         /* layers with a sliding window need not keep what they cannot see */
    p.abort_callback = on_abort;
    p.type_k = a->type_k;
    p.type_v = a->type_v;
    s->cached = malloc(a->sizes_only ? 1 : (size_t) s->n_ctx*sizeof *s->cached);
    if (!s->cached) return !fail("out of memory");
    s->ctx = llama_init_from_model(s->model, p);
    return s->ctx || !fail_library(NULL, "no context could be made");
}

bool session_open(struct session *s, const struct model_args *a, bool context) {
    memset(s, 0, sizeof *s);
    library_log(a->verbose);
    signals_install();
    const double start = now_s();
    struct llama_model_params p = llama_model_default_params();
    p.vocab_only = !context;
    p.no_alloc   = a->sizes_only;
    s->threads = a->threads ? (int) a->threads : arn_cpu_default_threads();
    s->model = llama_model_load_from_file(a->model, p);
    if (!s->model) return !fail_library(a->model, "cannot be loaded");
    s->vocab   = llama_model_get_vocab(s->model);
    s->n_vocab = llama_vocab_n_tokens(s->vocab);
    if (context && (!context_open(s, a) || !adapters_open(s, a))) { session_close(s); return false; }
    s->load_s = now_s() - start;
    return true;
}

void session_close(struct session *s) {
    llama_free(s->ctx);
    llama_model_free(s->model);
    free(s->cached);
    memset(s, 0, sizeof *s);
}

llama_token *session_tokenize(const struct session *s, const char *text, bool special, int *n) {
    const size_t length = strlen(text);
    if (length > TEXT_MAX) { fail("the text is longer than %d bytes", TEXT_MAX); return NULL; }
    int32_t room = (int32_t) length + 8;
    for (int attempt = 0; attempt < 2; attempt++) {
        llama_token *tokens = malloc((size_t) room*sizeof *tokens);
        if (!tokens) { fail("out of memory"); return NULL; }
        *n = llama_tokenize(s->vocab, text, (int32_t) length, tokens, room, true, special);
        if (*n >= 0) return tokens;
        free(tokens);
        if (*n == INT32_MIN) break;
        room = -*n;
    }
    fail_library(NULL, "the text cannot be tokenized");
    return NULL;
}

void session_rewind(struct session *s, int n) {
    if (n > 0 && n <= s->n_cached && llama_memory_seq_rm(llama_get_memory(s->ctx), 0, n, -1)) { s->n_cached = n; return; }
    llama_memory_clear(llama_get_memory(s->ctx), false);
    s->n_cached = 0;
}

bool session_decode(struct session *s, const llama_token *tokens, int n, bool all) {
    struct llama_batch batch = llama_batch_init(s->n_batch, 0, 1);
    if (!batch.token) { fail("out of memory"); return false; }
    bool ok = true;
    for (int done = 0; ok && done < n; done += batch.n_tokens) {
        const int start = s->n_cached;
        batch.n_tokens = n - done < s->n_batch ? n - done : s->n_batch;
        for (int i = 0; i < batch.n_tokens; i++) {
            batch.token[i]     = tokens[done + i];
            batch.pos[i]       = start + i;
            batch.n_seq_id[i]  = 1;
            batch.seq_id[i][0] = 0;
            batch.logits[i]    = all || done + i == n - 1;
        }
        const bool fits = start + batch.n_tokens <= s->n_ctx;
        const int32_t status = fits ? llama_decode(s->ctx, batch) : 1;
        if (status == 1) { fail("the context of %d tokens is full (-c sets its size)", s->n_ctx); ok = false; }
        else if (status) { ok = false; if (!interrupted()) fail_library(NULL, "the model could not be computed"); }
        else {
            memcpy(s->cached + start, batch.token, (size_t) batch.n_tokens*sizeof *s->cached);
            s->n_cached += batch.n_tokens;
        }
    }
    llama_batch_free(batch);
    return ok;
}

/* The text of a token, in a buffer that grows with what it must hold; its length, or -1 after an error line. */
struct piece { char *bytes; int32_t room; };

static int32_t piece(const struct session *s, llama_token token, struct piece *p) {
    int32_t n = llama_token_to_piece(s->vocab, token, p->bytes, p->room, 0, false);
    if (n >= 0) return n;
    char *grown = realloc(p->bytes, (size_t) -(int64_t) n);
    if (!grown) { fail("out of memory"); return -1; }
    *p = (struct piece) { grown, -n };
    return llama_token_to_piece(s->vocab, token, p->bytes, p->room, 0, false);
}

static const char *special_text(const struct session *s, llama_token token) {
    return token == LLAMA_TOKEN_NULL ? NULL : llama_vocab_get_text(s->vocab, token);
}

/* A template that opens with the first token leaves it to the tokenizer where that adds it. */
char *session_chat(const struct session *s, const struct llama_chat_message *messages, size_t n, bool add_turn) {
    const char *template = llama_model_chat_template(s->model, NULL);
    if (!template) { fail("the model has no chat template (run --raw passes a text as it is)"); return NULL; }
    char error[256] = "the chat template failed";
    int32_t room = 4096;
    for (int attempt = 0; attempt < 2; attempt++) {
        char *text = malloc((size_t) room + 1);
        if (!text) { fail("out of memory"); return NULL; }
        const struct arn_chat chat = {
            .tmpl = template, .messages = messages, .n_messages = n, .add_generation_prompt = add_turn,
            .bos_token = llama_vocab_get_add_bos(s->vocab) ? NULL : special_text(s, llama_vocab_bos(s->vocab)),
            .eos_token = special_text(s, llama_vocab_eos(s->vocab)),
        };
        const int32_t needed = arn_chat_render(&chat, text, (size_t) room + 1, error, sizeof error);
        if (needed >= 0 && needed <= room) return text;
        free(text);
        if (needed < 0) break;
        room = needed;
    }
    fail("%s", error);
    return NULL;
}

/* ---- sampling and generating ---- */

/* Adds the grammar of a file; false after an error line. */
static bool add_grammar(const struct session *s, struct llama_sampler *chain, const char *path) {
    char *text = text_of_file(path);
    if (!text) return false;
    if (!*text) { free(text); return !fail("%s: the grammar is empty", path); }       /* to the library none */
    struct llama_sampler *grammar = llama_sampler_init_grammar(s->vocab, text, "root");
    free(text);
    if (!grammar) return !fail_library(path, "no grammar");
    llama_sampler_chain_add(chain, grammar);
    return true;
}

struct llama_sampler *sampler_new(const struct session *s, struct sample_args *p) {
    struct llama_sampler *chain = llama_sampler_chain_init(llama_sampler_chain_default_params());
    if (!chain) { fail("out of memory"); return NULL; }
    if (p->grammar && !add_grammar(s, chain, p->grammar)) { llama_sampler_free(chain); return NULL; }
    if (p->seed < 0) p->seed = (int64_t) ((uint64_t) time(NULL) & 0x7fffffff);
    if (p->repeat != 1) llama_sampler_chain_add(chain, llama_sampler_init_penalties(s->n_vocab, (int32_t) p->last_n, (float) p->repeat, 0, 0));
    if (p->temp == 0) {
        llama_sampler_chain_add(chain, llama_sampler_init_greedy());
        return chain;
    }
    if (p->top_k > 0)   llama_sampler_chain_add(chain, llama_sampler_init_top_k((int32_t) p->top_k));
    if (p->typical < 1) llama_sampler_chain_add(chain, llama_sampler_init_typical((float) p->typical, 1));
    if (p->top_p < 1)   llama_sampler_chain_add(chain, llama_sampler_init_top_p((float) p->top_p, 1));
    if (p->min_p > 0)   llama_sampler_chain_add(chain, llama_sampler_init_min_p((float) p->min_p, 1));
    llama_sampler_chain_add(chain, llama_sampler_init_temp((float) p->temp));
    llama_sampler_chain_add(chain, llama_sampler_init_dist((uint32_t) p->seed));
    return chain;
}

static bool put(FILE *out, const char *bytes, size_t n) {
    return (fwrite(bytes, 1, n, out) == n && !fflush(out)) || !fail("writing the answer: %s", strerror(errno));
}

bool session_generate(struct session *s, struct llama_sampler *chain, int64_t n, FILE *out, int *made, double *seconds, char **reply) {
    size_t length = 0, room = 0;
    struct piece word = { NULL, 0 };
    const double start = now_s();
    bool ok = true;
    *made = 0;
    if (reply) *reply = NULL;
    while (ok && !interrupted() && (n < 0 || *made < n)) {
        const llama_token token = llama_sampler_sample(chain, s->ctx, -1);
        if (token < 0 || !isfinite(llama_get_logits_ith(s->ctx, -1)[token])) { fail("no token can be drawn: the model's logits are not numbers"); ok = false; break; }
        if (llama_vocab_is_eog(s->vocab, token)) break;
        const int32_t bytes = piece(s, token, &word);
        if (bytes < 0) ok = false;
        if (bytes > 0 && out) ok = put(out, word.bytes, (size_t) bytes);
        if (bytes > 0 && reply && !text_append(reply, &length, &room, word.bytes, (size_t) bytes)) { fail("out of memory"); ok = false; }
        ++*made;
        if (s->n_cached >= s->n_ctx) {
            fprintf(stderr, "\narenite: the context of %d tokens is full (-c sets its size)\n", s->n_ctx);
            break;
        }
        if (n < 0 || *made < n || reply) ok = ok && (session_decode(s, &token, 1, false) || interrupted());
    }
    *seconds = now_s() - start;
    free(word.bytes);
    if (reply && ok && !*reply) ok = text_append(reply, &length, &room, "", 0);
    if (!ok && reply) { free(*reply); *reply = NULL; }
    return ok;
}

/* ---- services ---- */

double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double) t.tv_sec + 1e-9*(double) t.tv_nsec;
}

void memory_read(size_t *private_bytes, size_t *mapped_bytes) {
    *private_bytes = *mapped_bytes = 0;
    FILE *f = fopen("/proc/self/status", "r");
    if (!f) return;
    char line[256];
    size_t kib;
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, "RssAnon: %zu", &kib) == 1) *private_bytes = kib << 10;
        if (sscanf(line, "RssFile: %zu", &kib) == 1) *mapped_bytes  = kib << 10;
    }
    fclose(f);
}

bool is_terminal(FILE *f) { return isatty(fileno(f)); }

void progress(const char *what, double fraction) {
    static double shown;
    if (!is_terminal(stderr)) return;
    const double now = now_s();
    if (fraction < 1 && now - shown < 0.1) return;
    shown = now;
    const int width = 30, full = (int) (fraction*width);
    fprintf(stderr, "\r%s [%.*s%.*s] %3.0f%%", what, full, "##############################",
            width - full, "..............................", 100*fraction);
    bar = fraction < 1;
    if (!bar) fprintf(stderr, "\r%*s\r", (int) strlen(what) + width + 10, "");
    fflush(stderr);
}

const char *bytes_text(double bytes, char buf[32]) {
    static const char *const units[] = { "B", "KB", "MB", "GB", "TB" };
    int u = 0;
    while (bytes >= 1000 && u < 4) { bytes /= 1000; u++; }
    snprintf(buf, 32, u == 0 ? "%.0f %s" : "%.1f %s", bytes, units[u]);
    return buf;
}
