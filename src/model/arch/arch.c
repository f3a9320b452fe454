/* The architectures this library knows: a new one is a file beside this one and a row here. */

#include "keys.h"

#include <string.h>

const char *const rope_scaling_names[] = { "none", "linear", "yarn", NULL };

static const struct arch *const all[] = { &arch_llama, &arch_gemma3 };

const struct arch *arch_find(const char *name) {
    for (size_t i = 0; i < sizeof all/sizeof *all; i++) {
        if (!strcmp(all[i]->name, name)) return all[i];
    }
    return NULL;
}
