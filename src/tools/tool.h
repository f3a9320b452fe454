#ifndef TOOL_H
#define TOOL_H
/* What the subcommands of the command line tool share: options, errors, models, figures. The tool uses the public headers
 * only. Exit codes: 0 done, 1 one clear line on stderr says what failed, 2 wrong usage. */

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "arenite.h"
#include "llama.h"

/* ---- args.c: options are a table ---- */

enum arg_kind { ARG_FLAG, ARG_INT, ARG_FLOAT, ARG_TEXT, ARG_TYPE, ARG_LEVEL, ARG_LIST, ARG_RANGE };

enum { LIST_MAX = 16 };             /* far more adapters than are used at once */
struct text_list {                  /* what an option was given, in order */
    const char *items[LIST_MAX];
    int         n;
};

struct arg {
    const char   *name;         /* "-n", "--temp"; an operand has no dash and comes in order */
    enum arg_kind kind;
    void         *target;       /* bool, int64_t, double, const char *, enum ggml_type, struct text_list or int64_t[2]: left as it is when
                                 * absent; an instruction level needs none, it is in force at once */
    const char   *value;        /* how the help calls the value; "[NAME]" marks an operand as optional */
    const char   *help;
    double        least, most;  /* range of a number, checked when least < most */
};

struct command {
    const char *name, *summary;
    int (*run)(int argc, char **argv);
};

/* Fill the targets from argv (without the command's name). Returns true to go on; otherwise *status is the exit code and
 * the help or one line of error has been printed. */
bool args_read(const char *command, const char *summary, const struct arg *args, int argc, char **argv, int *status);

bool type_named(const char *text, enum ggml_type *type);    /* a type that data can have, by its name in either case */

/* ---- common.c ---- */

/* One line "arenite: ..." on stderr; returns 1, the exit code. */
int fail(const char *format, ...) GGML_ATTRIBUTE_FORMAT(1, 2);
int usage(const char *format, ...) GGML_ATTRIBUTE_FORMAT(1, 2);     /* the same; returns 2 */

/* Keep what the library logs, and show it when wanted; fail_library then prints its first error line since the last call,
 * after the subject if the line does not name it, or `otherwise`; returns 1. */
void library_log(bool show);
int  fail_library(const char *subject, const char *otherwise);

/* Options that every command over a model takes. */
struct model_args {
    const char *model;
    int64_t     n_ctx, n_batch, threads;
    enum ggml_type type_k, type_v;
    struct text_list lora, control;             /* FILE or FILE:SCALE */
    int64_t control_layers[2];                  /* from, to; 0: all */
    bool        json, verbose;
    bool        sizes_only;                     /* nothing is computed: plan what may be beyond memory */
};
#define MODEL_ARGS_DEFAULT { .n_ctx = 0, .n_batch = 512, .type_k = GGML_TYPE_F16, .type_v = GGML_TYPE_F16 }
#define ARG_MODEL(m)    { "MODEL", ARG_TEXT, &(m).model, "MODEL", "a GGUF file", 0, 0 }
#define ARG_COMMON(m) \
    { "-c",        ARG_INT,  &(m).n_ctx,   "CTX",     "tokens of context (default: the model's, at most 4096)", 0, 1 << 27 }, \
    { "-b",        ARG_INT,  &(m).n_batch, "BATCH",   "tokens per step of a prompt (default: 512)", 1, 1 << 20 }, \
    { "-t",        ARG_INT,  &(m).threads, "THREADS", "threads (default: the cores that this process may use)", 1, 512 }, \
    { "--cache-k", ARG_TYPE, &(m).type_k,  "TYPE",    "type of cached keys: f16, q8_0, f32 (default: f16)", 0, 0 }, \
    { "--cache-v", ARG_TYPE, &(m).type_v,  "TYPE",    "type of cached values (default: f16)", 0, 0 }, \
    ARG_CPU(m)
#define ARG_ADAPTERS(m) \
    { "--lora",    ARG_LIST, &(m).lora,    "FILE[:SCALE]", "use this adapter of the model too (scale: 1; may be repeated)", 0, 0 }, \
    { "--control-vector", ARG_LIST, &(m).control, "FILE[:SCALE]", "add these vectors to what layers give (scale: 1; may be repeated)", 0, 0 }, \
    { "--control-layers", ARG_RANGE, (m).control_layers, "FROM:TO", "only to layers FROM to TO (default: all; the first is 0 and has none)", 1, 1 << 20 }
#define ARG_CPU(m) \
    { "--cpu",     ARG_LEVEL, NULL,        "LEVEL",   "instructions to use: portable, avx2, ... (default: the best; all give the same bits)", 0, 0 }, \
    { "--verbose", ARG_FLAG, &(m).verbose, NULL,      "show what the library logs", 0, 0 }
#define ARG_JSON(m)     { "--json", ARG_FLAG, &(m).json, NULL, "print JSON", 0, 0 }
#define ARG_END         { NULL, ARG_FLAG, NULL, NULL, NULL, 0, 0 }

struct session {
    struct llama_model       *model;
    const struct llama_vocab *vocab;
    struct llama_context     *ctx;
    int                       n_ctx, n_batch, n_vocab, threads;
    double                    load_s;       /* opening the file to a model that can compute */
    llama_token              *cached;       /* [n_ctx]: what the context holds, in order */
    int                       n_cached;
};

/* Open the model and, with `context`, a context on it. False: the error has been printed. Free with session_close. */
bool session_open(struct session *s, const struct model_args *a, bool context);
void session_close(struct session *s);

/* adapters.c: what the options say is used by the context. False after an error line. */
bool adapters_open(struct session *s, const struct model_args *a);

/* Tokens of text, malloc'd; *n their number; NULL after an error line. */
llama_token *session_tokenize(const struct session *s, const char *text, bool special, int *n);

/* Compute tokens[0..n) at the end of what the context holds, in steps of the batch. `all`: keep every row's logits (n must
 * not exceed the batch then). False after an error line, or quietly when interrupted. */
bool session_decode(struct session *s, const llama_token *tokens, int n, bool all);

/* Forget all but the first n tokens of the context, or all of them where the cache cannot be cut there. */
void session_rewind(struct session *s, int n);

/* The conversation as the model's own template writes it; malloc'd; NULL after an error line. */
char *session_chat(const struct session *s, const struct llama_chat_message *messages, size_t n, bool add_turn);

/* Options of sampling, and the chain that they describe. */
struct sample_args {
    double  temp, top_p, min_p, typical, repeat;
    int64_t top_k, seed, last_n;
    const char *grammar;                        /* a file */
};
#define SAMPLE_ARGS_DEFAULT { .temp = 0.8, .top_k = 40, .top_p = 0.95, .min_p = 0.05, .typical = 1, .repeat = 1, .last_n = 64, .seed = -1 }
#define ARG_SAMPLE(p) \
    { "--temp",    ARG_FLOAT, &(p).temp,    "T", "temperature; 0 takes the likeliest token (default: 0.8)", 0, 1000 }, \
    { "--top-k",   ARG_INT,   &(p).top_k,   "K", "keep the K likeliest tokens; 0: all (default: 40)", 0, 1 << 30 }, \
    { "--top-p",   ARG_FLOAT, &(p).top_p,   "P", "keep the likeliest tokens that make up P (default: 0.95)", 0, 1 }, \
    { "--min-p",   ARG_FLOAT, &(p).min_p,   "P", "drop tokens less likely than P times the likeliest (default: 0.05)", 0, 1 }, \
    { "--typical", ARG_FLOAT, &(p).typical, "P", "locally typical sampling (default: 1, off)", 0, 1 }, \
    { "--repeat",  ARG_FLOAT, &(p).repeat,  "R", "divide the logits of recent tokens by R (default: 1, off)", 0, 100 }, \
    { "--last-n",  ARG_INT,   &(p).last_n,  "N", "how many recent tokens --repeat looks at (default: 64)", 0, 1 << 20 }, \
    { "--seed",    ARG_INT,   &(p).seed,    "S", "seed of the draw (default: from the clock)", 0, 4294967295.0 }, \
    { "--grammar", ARG_TEXT,  &(p).grammar, "FILE", "answer with a text of this GBNF grammar, from its rule root", 0, 0 }
struct llama_sampler *sampler_new(const struct session *s, struct sample_args *p);  /* sets p->seed when it was -1 */

/* Generate until the turn or the context ends, n tokens are made (n < 0: no bound) or Ctrl-C. Each token goes to `out`; *made
 * and *seconds count them. `reply`, when not NULL, receives the text, malloc'd. False after an error line. */
bool session_generate(struct session *s, struct llama_sampler *chain, int64_t n, FILE *out, int *made, double *seconds, char **reply);

bool   interrupted(void);           /* Ctrl-C since the last interrupted_clear */
void   interrupted_clear(void);
void   signals_install(void);      /* catches Ctrl-C, and a mapped file that became shorter */
double now_s(void);                 /* a monotonic clock, seconds */
void   memory_read(size_t *private_bytes, size_t *mapped_bytes);    /* resident now, as the kernel counts it */
bool   is_terminal(FILE *f);
void   progress(const char *what, double fraction);                 /* a bar on stderr, if that is a terminal; 1 ends it */
const char *bytes_text(double bytes, char buf[32]);                 /* "4.1 GB" */

/* ---- output.c ---- */

struct output { FILE *file; const char *path; char *part; };       /* part: the name until it is whole, or NULL */
bool output_open(struct output *o, const char *path);               /* false after an error line */
bool output_close(struct output *o, bool whole);                    /* not whole: it is dropped. False then, and after an error line */

/* ---- text.c ---- */

enum { TEXT_MAX = 1 << 28 };        /* bytes of a text from outside: its tokens are still counted by an int32_t, with room to spare */

char *text_of_file(const char *path);  /* "-": stdin; malloc'd, terminated, without zero bytes; NULL after an error line */
/* The text that a command is about, malloc'd: given itself or as a file, or else stdin's. NULL after an error line, with the
 * exit code in *status, which is 1 in any other case. */
char *text_choose(const char *command, const char *option, const char *text, const char *file, int *status);
char *line_read(FILE *f, bool *failed);     /* the next line without its end, malloc'd; NULL at the end or, *failed, after an error line */

/* Append to a growing text, malloc'd and terminated; false when out of memory. */
bool text_append(char **text, size_t *length, size_t *room, const char *bytes, size_t n);

/* Show a text on one line: control characters and bytes that are no UTF-8 as dots, at most `most` bytes and then "...". */
void text_put(FILE *f, const char *text, size_t most);
void xml_put(FILE *f, const char *text);            /* the same, whole, as text of an XML file */

char *json_text(cJSON *json);       /* valid UTF-8 whatever the strings hold; malloc'd, or NULL when out of memory; deletes json */
int   print_json(cJSON *json);      /* the same on stdout; 0, or 1 after an error line */

#endif
