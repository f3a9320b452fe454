/* chat: a conversation. Each turn renders the whole conversation with the model's template and computes only what differs from
 * what the context holds already. Lines beginning with / are commands to the tool. */

#include <stdlib.h>
#include <string.h>

#ifdef HAVE_EDITLINE
#include <editline/readline.h>
#endif

#include "commands.h"
#include "tool.h"

struct chat {
    struct session             s;
    struct llama_sampler      *chain;
    struct llama_chat_message *messages;        /* role: a string constant; content: malloc'd */
    size_t                     n, room;
    size_t                     n_system;        /* messages at the beginning that /reset keeps */
    bool                       json;            /* answers as objects */
};

static bool push(struct chat *c, const char *role, char *content) {
    if (c->n == c->room) {
        const size_t room = 2*c->room + 8;
        struct llama_chat_message *grown = realloc(c->messages, room*sizeof *grown);
        if (!grown) { fail("out of memory"); free(content); return false; }
        c->messages = grown;
        c->room = room;
    }
    c->messages[c->n++] = (struct llama_chat_message) { role, content };
    return true;
}

static void cut(struct chat *c, size_t n) {
    while (c->n > n) free((char *) c->messages[--c->n].content);
}

/* ---- one turn ---- */

static int common_prefix(const struct session *s, const llama_token *tokens, int n) {
    int same = 0;
    while (same < n - 1 && same < s->n_cached && tokens[same] == s->cached[same]) same++;
    return same;                                /* at least one token is computed, for its logits */
}

static bool show_json(const char *reply) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "answer", reply);
    return !print_json(o);
}

static bool answer(struct chat *c) {
    char *text = session_chat(&c->s, c->messages, c->n, true), *reply = NULL;
    int n = 0, made;
    double seconds;
    llama_token *tokens = text ? session_tokenize(&c->s, text, true, &n) : NULL;
    bool ok = tokens != NULL;
    if (ok && n >= c->s.n_ctx) { fail("the conversation has %d tokens, the context only %d (/reset begins anew; -c sets its size)", n, c->s.n_ctx); ok = false; }
    if (ok) {
        session_rewind(&c->s, common_prefix(&c->s, tokens, n));
        ok = session_decode(&c->s, tokens + c->s.n_cached, n - c->s.n_cached, false)
          && session_generate(&c->s, c->chain, -1, c->json ? NULL : stdout, &made, &seconds, &reply);
        if (!c->json) putchar('\n');
    }
    if (ok && c->json) ok = show_json(reply);
    if (!ok) free(reply);
    if (ok) ok = push(c, "assistant", reply);
    free(tokens);
    free(text);
    return ok;
}

static char *copy(const char *text) {
    const size_t n = strlen(text) + 1;
    char *p = malloc(n);
    return p ? memcpy(p, text, n) : NULL;
}

static void turn(struct chat *c, const char *line) {
    const size_t before = c->n;
    char *content = copy(line);
    if (!content) { fail("out of memory"); return; }
    interrupted_clear();
    if (!push(c, "user", content) || !answer(c)) cut(c, before);       /* a turn that failed leaves no trace */
    interrupted_clear();
}

/* ---- /save and /load ---- */

static void save(const struct chat *c, const char *path) {
    cJSON *list = cJSON_CreateArray();
    for (size_t i = 0; i < c->n; i++) {
        cJSON *o = cJSON_CreateObject();
        cJSON_AddStringToObject(o, "role", c->messages[i].role);
        cJSON_AddStringToObject(o, "content", c->messages[i].content);
        cJSON_AddItemToArray(list, o);
    }
    char *text = json_text(list);
    struct output o;
    if (!text) fail("out of memory");
    else if (output_open(&o, path)) {
        fprintf(o.file, "%s\n", text);
        if (output_close(&o, true)) fprintf(stderr, "saved %zu messages to %s\n", c->n, path);
    }
    free(text);
}

static const char *role_of(const cJSON *message) {
    static const char *const roles[] = { "system", "user", "assistant" };
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(message, "role"));
    for (size_t i = 0; text && i < sizeof roles/sizeof *roles; i++) if (!strcmp(text, roles[i])) return roles[i];
    return NULL;
}

static void load(struct chat *c, const char *path) {
    char *text = text_of_file(path);
    if (!text) return;
    cJSON *list = cJSON_Parse(text);
    free(text);
    bool ok = cJSON_IsArray(list);
    const cJSON *o;
    cJSON_ArrayForEach(o, list) ok = ok && role_of(o) && cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, "content"));
    if (!ok) { fail("%s: not a list of messages with role and content", path); cJSON_Delete(list); return; }
    cut(c, 0);
    cJSON_ArrayForEach(o, list) {
        char *content = copy(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, "content")));
        if (!content) fail("out of memory");
        if (!content || !push(c, role_of(o), content)) { cut(c, 0); break; }
    }
    cJSON_Delete(list);
    for (c->n_system = 0; c->n_system < c->n && !strcmp(c->messages[c->n_system].role, "system"); ) c->n_system++;
    fprintf(stderr, "loaded %zu messages from %s\n", c->n, path);
}

/* ---- lines ---- */

static const char help[] =
    "/reset       forget the conversation\n/save FILE   write the conversation as JSON\n/load FILE   go on with a saved one\n"
    "/exit        leave (also Ctrl-D); Ctrl-C ends an answer\n";

/* A command line; false: leave. */
static bool command(struct chat *c, const char *line) {
    const char *space = strchr(line, ' '), *rest = space ? space + 1 : "";
    const size_t n = space ? (size_t) (space - line) : strlen(line);
    const struct { const char *name; bool file; } known[] = { { "/reset", false }, { "/save", true }, { "/load", true }, { "/exit", false }, { "/help", false } };
    size_t which = 0;
    while (which < 5 && !(strlen(known[which].name) == n && !strncmp(known[which].name, line, n))) which++;
    if (which < 5 && known[which].file && !*rest) { fail("%s needs a file name", known[which].name); return true; }
    switch (which) {
        case 0:  cut(c, c->n_system); session_rewind(&c->s, 0); fprintf(stderr, "a new conversation\n"); return true;
        case 1:  save(c, rest); return true;
        case 2:  load(c, rest); return true;
        case 3:  return false;
        case 4:  fputs(help, stderr); return true;
        default: fail("no such command: %.*s (/help lists them)", (int) n, line); return true;
    }
}

/* The next line, malloc'd, or NULL at the end and, *failed, after an error line. */
static char *next_line(bool *failed) {
    *failed = false;
#ifdef HAVE_EDITLINE
    if (is_terminal(stdin)) {
        char *line = readline("> ");
        if (line && *line) add_history(line);
        return line;
    }
#endif
    if (is_terminal(stdin)) { fputs("> ", stdout); fflush(stdout); }
    return line_read(stdin, failed);
}

/* Until the end of input, /exit, or an output that is gone; the exit code. */
static int converse(struct chat *c) {
    bool stay = true, failed = false;
    if (is_terminal(stdin)) fputs("A conversation; /help lists the commands.\n", stderr);
    for (char *line; stay && !ferror(stdout) && (line = next_line(&failed)) != NULL; free(line)) {
        if (line[0] == '/')  stay = command(c, line);
        else if (line[0])    turn(c, line);
    }
    if (is_terminal(stdin)) putchar('\n');
    return failed || ferror(stdout);
}

int command_chat(int argc, char **argv) {
    struct model_args m = MODEL_ARGS_DEFAULT;
    struct sample_args sampling = SAMPLE_ARGS_DEFAULT;
    const char *system = NULL;
    const struct arg args[] = {
        ARG_MODEL(m),
        { "--system", ARG_TEXT, &system, "TEXT", "a system message that opens the conversation", 0, 0 },
        ARG_COMMON(m), ARG_ADAPTERS(m), ARG_SAMPLE(sampling), ARG_JSON(m), ARG_END };
    int status;
    if (!args_read("chat", "Hold a conversation. /reset, /save FILE, /load FILE, /exit; Ctrl-C ends an answer.", args, argc, argv, &status)) return status;
    struct chat c = { .json = m.json };
    if (!session_open(&c.s, &m, true)) return 1;
    char *opening = system ? copy(system) : NULL;
    status = 1;
    if (!llama_model_chat_template(c.s.model, NULL)) { fail("%s: the model has no chat template", m.model); free(opening); }
    else if (system && !opening) fail("out of memory");
    else if (!opening || push(&c, "system", opening)) {
        c.n_system = c.n;
        c.chain = sampler_new(&c.s, &sampling);
        if (c.chain) status = converse(&c);
    }
    cut(&c, 0);
    free(c.messages);
    llama_sampler_free(c.chain);
    session_close(&c.s);
    return status;
}
