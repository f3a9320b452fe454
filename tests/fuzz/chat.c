/* Any bytes as a template, and any bytes as its variables, give text or one line of error. The part behind the first zero byte
 * is the JSON of the variables. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "arenite.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1), buf[256], error[256];
    if (!text) return 0;
    memcpy(text, data, size);
    text[size] = 0;
    const size_t n = strlen(text);
    const struct llama_chat_message messages[] = { { "system", "be brief" }, { "user", "hi" }, { "assistant", "yes" } };
    const struct arn_chat chat = {
        .tmpl = text, .messages = messages, .n_messages = 3, .add_generation_prompt = true, .bos_token = "<s>", .now = 1,
        .extra_json = n < size ? text + n + 1 : NULL,
    };
    arn_chat_render(&chat, buf, sizeof buf, error, sizeof error);
    free(text);
    return 0;
}
