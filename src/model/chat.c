/* Chat templates: the public calls over the interpreter, and a few templates by name. */

#include "jinja.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "arenite.h"

/* Templates for models that carry none, by the names that programs use. Formats: the model cards of the families. */
static const struct { const char *name, *source; } builtin_templates[] = {
    { "chatml",
      "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
      "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}" },
    { "gemma",
      "{% set ns = namespace(system='') %}"
      "{% for m in messages %}{% if m.role == 'system' %}{% set ns.system = m.content | trim ~ '\n\n' %}{% else %}"
      "<start_of_turn>{{ 'model' if m.role == 'assistant' else m.role }}\n{{ ns.system ~ (m.content | trim) }}<end_of_turn>\n"
      "{% set ns.system = '' %}{% endif %}{% endfor %}"
      "{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}" },
    { "llama3",
      "{% for m in messages %}<|start_header_id|>{{ m.role }}<|end_header_id|>\n\n{{ m.content | trim }}<|eot_id|>{% endfor %}"
      "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}" },
    { "phi3",
      "{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}<|end|>\n{% endfor %}{% if add_generation_prompt %}<|assistant|>\n{% endif %}" },
    { "zephyr",
      "{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}<|endoftext|>\n{% endfor %}{% if add_generation_prompt %}<|assistant|>\n{% endif %}" },
};
#define N_BUILTIN (sizeof builtin_templates/sizeof *builtin_templates)

static struct value message_list(struct jinja *j, const struct llama_chat_message *messages, size_t n) {
    struct value l = v_list(j, LIST, n);
    for (size_t i = 0; i < n && !j->failed; i++) {
        struct value d = v_dict(j, DICT);
        if (j->failed) break;
        dict_set(j, d.d, v_cstr("role"),    v_cstr(messages[i].role ? messages[i].role : ""));
        dict_set(j, d.d, v_cstr("content"), v_cstr(messages[i].content ? messages[i].content : ""));
        list_add(j, l.l, d);
    }
    return l;
}

static void set(struct jinja *j, const char *name, struct value v) { if (!j->failed) dict_set(j, &j->globals->vars, v_cstr(name), v); }

static void set_variables(struct jinja *j, const struct arn_chat *c) {
    set(j, "messages", c->messages_json ? jinja_parse_json(j, c->messages_json, strlen(c->messages_json)) : message_list(j, c->messages, c->n_messages));
    set(j, "add_generation_prompt", v_bool(c->add_generation_prompt));
    set(j, "bos_token", v_cstr(c->bos_token ? c->bos_token : ""));
    set(j, "eos_token", v_cstr(c->eos_token ? c->eos_token : ""));
    set(j, "tools", c->tools_json ? jinja_parse_json(j, c->tools_json, strlen(c->tools_json)) : v_none());
    set(j, "documents", v_none());
    if (!c->extra_json || j->failed) return;
    const struct value extra = jinja_parse_json(j, c->extra_json, strlen(c->extra_json));
    if (!j->failed && extra.kind != DICT) jinja_fail(j, "the further variables are not a JSON object");
    for (size_t i = 0; !j->failed && i < extra.d->n; i++) dict_set(j, &j->globals->vars, extra.d->keys[i], extra.d->values[i]);
}

int32_t arn_chat_render(const struct arn_chat *chat, char *buf, size_t size, char *error, size_t error_size) {
    struct jinja j = { .now = chat->now ? chat->now : (int64_t) time(NULL) };
    struct text out = { 0 };
    j.globals = jinja_alloc(&j, sizeof *j.globals);
    if (j.globals) globals_add(&j);
    if (!j.failed) set_variables(&j, chat);
    const struct node *tree = j.failed || !chat->tmpl ? NULL : jinja_parse(&j, chat->tmpl, strlen(chat->tmpl));
    if (!chat->tmpl) jinja_fail(&j, "there is no template");
    const bool ok = !j.failed && jinja_run(&j, tree, &out);
    if (!ok && error_size) snprintf(error, error_size, "%s", j.error);
    if (ok && size) {
        const size_t n = out.n < size - 1 ? out.n : size - 1;
        if (n) memcpy(buf, out.p, n);
        buf[n] = 0;
    }
    jinja_free(&j);
    return ok ? (int32_t) out.n : -1;
}

int32_t llama_chat_apply_template(const char *tmpl, const struct llama_chat_message *chat, size_t n_msg, bool add_ass, char *buf, int32_t length) {
    const char *source = tmpl ? tmpl : "chatml";
    char error[256];
    for (size_t i = 0; i < N_BUILTIN; i++) if (!strcmp(source, builtin_templates[i].name)) source = builtin_templates[i].source;
    const struct arn_chat c = { .tmpl = source, .messages = chat, .n_messages = n_msg, .add_generation_prompt = add_ass };
    return arn_chat_render(&c, buf, length > 0 && buf ? (size_t) length : 0, error, sizeof error);
}

int32_t llama_chat_builtin_templates(const char **output, size_t len) {
    for (size_t i = 0; i < N_BUILTIN && i < len; i++) output[i] = builtin_templates[i].name;
    return (int32_t) N_BUILTIN;
}
