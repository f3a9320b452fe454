/* Any bytes as a template, and any bytes as its variables, give text or one line of error. The part behind the first zero byte
 * is the JSON of the variables. */

#include "fuzz.h"

#include "arenite.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct text_and_rest in = text_and_rest(data, size);
    const char *variables = in.rest ? in.text + (size - in.n_rest) : NULL;         /* terminated as the copy is */
    char buf[256], error[256];
    if (!in.text) return 0;
    const struct llama_chat_message messages[] = { { "system", "be brief" }, { "user", "hi" }, { "assistant", "yes" } };
    const struct arn_chat chat = {
        .tmpl = in.text, .messages = messages, .n_messages = 3, .add_generation_prompt = true, .bos_token = "<s>", .now = 1,
        .extra_json = variables,
    };
    arn_chat_render(&chat, buf, sizeof buf, error, sizeof error);
    free(in.text);
    return 0;
}
