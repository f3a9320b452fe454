/* Writes the files that the transcripts of the command line tool are about into the working directory: small models, whole
 * and damaged, each named after what it is. */

#include "model/tiny_lora.h"

static const char template[] =
    "{% for m in messages %}[{{ m['role'] }}]{{ m['content'] }}\n{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}";

enum { AFTER_HI = 195 };          /* found by trying */

static void copy_part(const char *from, const char *to, size_t n) {
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    int c;
    while (in && out && n-- && (c = getc(in)) != EOF) putc(c, out);
    if (!in || !out || fclose(in) | fclose(out)) exit(fprintf(stderr, "%s: cannot write\n", to));
}

static void write_as(struct tiny *t, const char *name) {
    snprintf(t->path, sizeof t->path, "%s", name);
    tiny_write(t);
}

/* The token that follows a raw "hi" is a text of 600 letters. */
static void long_token(struct tiny *t) {
    static char text[601];
    const int64_t names = gguf_find_key(t->g, "tokenizer.ggml.tokens"), kinds = gguf_find_key(t->g, "tokenizer.ggml.token_type");
    const char *tokens[TINY_VOCAB];
    int32_t types[TINY_VOCAB];
    struct gguf_context *g = gguf_init_empty();
    gguf_set_kv(g, t->g);
    memset(text, 'L', sizeof text - 1);
    for (int i = 0; i < TINY_VOCAB; i++) tokens[i] = i == AFTER_HI ? text : gguf_get_arr_str(t->g, names, (size_t) i);
    memcpy(types, gguf_get_arr_data(t->g, kinds), sizeof types);
    types[AFTER_HI] = LLAMA_TOKEN_TYPE_NORMAL;
    gguf_set_arr_str(g, "tokenizer.ggml.tokens", tokens, TINY_VOCAB);
    gguf_set_arr_data(g, "tokenizer.ggml.token_type", GGUF_TYPE_INT32, types, TINY_VOCAB);
    for (struct ggml_tensor *x = ggml_get_first_tensor(t->ctx); x; x = ggml_get_next_tensor(t->ctx, x)) gguf_add_tensor(g, x);
    gguf_write_to_file(g, "long.gguf", false);
    gguf_free(g);
}

static void adapter_file(const struct tiny *t) {
    struct tiny_lora l = lora_new("llama", 4, 8, 0);
    snprintf(l.path, sizeof l.path, "lora.gguf");
    lora_pair(&l, t, "blk.0.attn_v.weight", GGML_TYPE_F32);
    lora_pair(&l, t, "blk.0.ffn_down.weight", GGML_TYPE_F16);
    lora_write(&l);
    gguf_free(l.g);
    ggml_free(l.ctx);
}

/* Control vectors for layer `layer` of gemma.gguf, and importance data for tiny.gguf: squares that grow with the column. */
static void vectors_file(const char *name, int layer, int64_t n, float scale) {
    struct ggml_context *ctx = ggml_init((struct ggml_init_params) { 1 << 16, NULL, false });
    struct gguf_context *g = gguf_init_empty();
    struct ggml_tensor *t = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, n);
    gguf_set_val_str(g, "general.architecture", "controlvector");
    ggml_format_name(t, "direction.%d", layer);
    for (int64_t i = 0; i < n; i++) ((float *) t->data)[i] = scale*(float) (i%5 - 2);
    gguf_add_tensor(g, t);
    gguf_write_to_file(g, name, false);
    gguf_free(g);
    ggml_free(ctx);
}
static void importance_file(void) {
    struct ggml_context *ctx = ggml_init((struct ggml_init_params) { 1 << 16, NULL, false });
    struct gguf_context *g = gguf_init_empty();
    gguf_set_val_str(g, "general.type", "imatrix");
    for (int k = 0; k < 2; k++) {
        const char *const names[] = { "blk.0.attn_q.weight", "blk.0.attn_v.weight" };
        struct ggml_tensor *sums = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 32, 1), *counts = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 1, 1);
        ggml_format_name(sums, "%s.in_sum2", names[k]);
        ggml_format_name(counts, "%s.counts", names[k]);
        for (int i = 0; i < 32; i++) ((float *) sums->data)[i] = k ? 3 : (float) (i*i*i);
        ((float *) counts->data)[0] = 3;
        gguf_add_tensor(g, sums);
        gguf_add_tensor(g, counts);
    }
    gguf_write_to_file(g, "importance.gguf", false);
    gguf_free(g);
    ggml_free(ctx);
}

static void llama_models(void) {
    struct tiny t = tiny_new(tiny_llama());
    write_as(&t, "plain.gguf");
    adapter_file(&t);
    gguf_set_val_str(t.g, "tokenizer.chat_template", template);
    write_as(&t, "tiny.gguf");
    long_token(&t);
    gguf_set_val_str(t.g, "tokenizer.chat_template", "{% for %}");
    write_as(&t, "template.gguf");
    gguf_set_val_str(t.g, "tokenizer.chat_template", "{% for i in range(100000000) %}{% endfor %}");
    write_as(&t, "endless.gguf");
    gguf_set_val_str(t.g, "tokenizer.chat_template", template);
    tiny_u32(&t, "attention.head_count", 0);
    write_as(&t, "heads.gguf");
    tiny_u32(&t, "attention.head_count", 4);
    ((float *) ggml_get_tensor(t.ctx, "blk.0.attn_k.weight")->data)[17] = NAN;
    write_as(&t, "nan.gguf");
    gguf_free(t.g);
    ggml_free(t.ctx);
    copy_part("tiny.gguf", "header.gguf", 20);
    copy_part("tiny.gguf", "metadata.gguf", 2000);
    copy_part("tiny.gguf", "data.gguf", 20000);
}

static void gemma_model(void) {
    struct tiny t = tiny_new((struct tiny_shape) { .arch = "gemma3", .n_layer = 2, .n_embd = 32, .n_head = 4, .n_head_kv = 2, .n_ff = 64,
                                                    .n_swa = 8, .type = GGML_TYPE_F16 });
    gguf_set_val_str(t.g, "tokenizer.chat_template", template);
    write_as(&t, "gemma.gguf");
    gguf_free(t.g);
    ggml_free(t.ctx);
}

/* No model, but one tensor of each kind, and a scale in the second block of one that is not a number. */
static void tensors_file(void) {
    static const enum ggml_type types[] = { GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_K, GGML_TYPE_Q6_K };
    struct ggml_context *ctx = ggml_init((struct ggml_init_params) { 1 << 20, NULL, false });
    struct gguf_context *g = gguf_init_empty();
    const int32_t numbers[] = { 1, -2, 3, 4, 5, 6, 7 };
    gguf_set_val_str(g, "general.name", "no model \"at all\"\n\x1b[31m");
    gguf_set_val_f32(g, "number", 0.1f);
    gguf_set_val_bool(g, "flag", true);
    gguf_set_arr_data(g, "list", GGUF_TYPE_INT32, numbers, 7);
    gguf_set_arr_str(g, "words", (const char *[]) { "one", "two" }, 2);
    for (size_t i = 0; i < sizeof types/sizeof *types; i++) {
        struct ggml_tensor *t = ggml_new_tensor_2d(ctx, types[i], 256, 2);
        ggml_format_name(t, "of.%s", ggml_type_name(types[i]));
        memset(t->data, 0, ggml_nbytes(t));
        gguf_add_tensor(g, t);
    }
    gguf_write_to_file(g, "tensors.gguf", false);
    uint16_t *block = (uint16_t *) ggml_get_tensor(ctx, "of.q8_0")->data;
    block[17] = 0x7e00;                                 /* blocks of 34 bytes open with their scale, a half */
    gguf_write_to_file(g, "scale.gguf", false);
    gguf_free(g);
    ggml_free(ctx);
}

/* Keys, names and texts with escape sequences, line breaks and bytes that are no UTF-8. */
static void odd_file(void) {
    struct ggml_context *ctx = ggml_init((struct ggml_init_params) { 1 << 16, NULL, false });
    struct gguf_context *g = gguf_init_empty();
    gguf_set_val_str(g, "a\x1b[2J\nb", "\xff\xc0\x80\xed\xa0\x80\xf4\x90\x80\x80");
    gguf_set_val_str(g, "good", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
    gguf_set_val_str(g, "long", "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789 and more");
    struct ggml_tensor *t = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 1);
    ggml_set_name(t, "t\n\x9b\x7f");
    ggml_set_zero(t);
    gguf_add_tensor(g, t);
    gguf_write_to_file(g, "odd.gguf", false);
    gguf_free(g);
    ggml_free(ctx);
}

int main(void) {
    (void) check_count, (void) check_failed;
    odd_file();
    importance_file();
    vectors_file("vectors.gguf", 1, 32, 0.25f);
    vectors_file("long_vectors.gguf", 1, 33, 1);
    vectors_file("deep_vectors.gguf", 2, 32, 1);
    vectors_file("endless_vectors.gguf", 1, 32, INFINITY);
    llama_models();
    gemma_model();
    tensors_file();
    return 0;
}
