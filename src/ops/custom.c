/* Builders of ops that the program computes itself. */

#include "build.h"
#include "custom.h"

static tensor *custom(const char *call, tensor *t, void (*fun)(void), int n_tasks, void *userdata) {
    if (!t) return NULL;
    REQUIRE(call, fun && (n_tasks == GGML_N_TASKS_MAX || n_tasks > 0), t);
    const struct custom_call c = { fun, n_tasks, userdata };
    memcpy(t->op_params, &c, sizeof c);
    return t;
}

#define ANY(fun) ((void (*)(void)) (fun))

static tensor *map1(const char *call, context *ctx, tensor *a, ggml_custom1_op_t fun, int n_tasks, void *ud, bool inplace) {
    if (!a) return NULL;
    return custom(call, op_like(ctx, GGML_OP_MAP_CUSTOM1, a, inplace, SOURCES(a)), ANY(fun), n_tasks, ud);
}
tensor *ggml_map_custom1(context *ctx, tensor *a, ggml_custom1_op_t fun, int n_tasks, void *userdata) {
    return map1(__func__, ctx, a, fun, n_tasks, userdata, false);
}
tensor *ggml_map_custom1_inplace(context *ctx, tensor *a, ggml_custom1_op_t fun, int n_tasks, void *userdata) {
    return map1(__func__, ctx, a, fun, n_tasks, userdata, true);
}

static tensor *map2(const char *call, context *ctx, tensor *a, tensor *b, ggml_custom2_op_t fun, int n_tasks, void *ud,
                    bool inplace) {
    if (!a || !b) return NULL;
    return custom(call, op_like(ctx, GGML_OP_MAP_CUSTOM2, a, inplace, SOURCES(a, b)), ANY(fun), n_tasks, ud);
}
tensor *ggml_map_custom2(context *ctx, tensor *a, tensor *b, ggml_custom2_op_t fun, int n_tasks, void *userdata) {
    return map2(__func__, ctx, a, b, fun, n_tasks, userdata, false);
}
tensor *ggml_map_custom2_inplace(context *ctx, tensor *a, tensor *b, ggml_custom2_op_t fun, int n_tasks, void *userdata) {
    return map2(__func__, ctx, a, b, fun, n_tasks, userdata, true);
}

static tensor *map3(const char *call, context *ctx, tensor *a, tensor *b, tensor *c, ggml_custom3_op_t fun, int n_tasks,
                    void *ud, bool inplace) {
    if (!a || !b || !c) return NULL;
    return custom(call, op_like(ctx, GGML_OP_MAP_CUSTOM3, a, inplace, SOURCES(a, b, c)), ANY(fun), n_tasks, ud);
}
tensor *ggml_map_custom3(context *ctx, tensor *a, tensor *b, tensor *c, ggml_custom3_op_t fun, int n_tasks, void *userdata) {
    return map3(__func__, ctx, a, b, c, fun, n_tasks, userdata, false);
}
tensor *ggml_map_custom3_inplace(context *ctx, tensor *a, tensor *b, tensor *c, ggml_custom3_op_t fun, int n_tasks,
                                 void *userdata) {
    return map3(__func__, ctx, a, b, c, fun, n_tasks, userdata, true);
}

/* `first` (or nothing), then the arguments. False when an argument is NULL. */
static bool gather(tensor **sources, tensor *first, tensor **args, int n_args) {
    int n = 0;
    if (first) sources[n++] = first;
    for (int i = 0; i < n_args; i++) {
        if (!args[i]) return false;
        sources[n++] = args[i];
    }
    return true;
}

tensor *ggml_custom_4d(context *ctx, enum ggml_type type, int64_t ne0, int64_t ne1, int64_t ne2, int64_t ne3, tensor **args,
                       int n_args, ggml_custom_op_t fun, int n_tasks, void *userdata) {
    REQUIRE(__func__, n_args >= 0 && n_args < GGML_MAX_SRC, NULL);
    tensor *sources[GGML_MAX_SRC] = { NULL };
    if (!gather(sources, NULL, args, n_args)) return NULL;
    return custom(__func__, op_new(ctx, GGML_OP_CUSTOM, type, SHAPE(ne0, ne1, ne2, ne3), sources), ANY(fun), n_tasks, userdata);
}

tensor *ggml_custom_inplace(context *ctx, tensor *a, tensor **args, int n_args, ggml_custom_op_t fun, int n_tasks,
                            void *userdata) {
    if (!a) return NULL;
    REQUIRE(__func__, n_args >= 0 && n_args < GGML_MAX_SRC - 1, a);
    tensor *sources[GGML_MAX_SRC] = { NULL };
    if (!gather(sources, a, args, n_args)) return NULL;
    return custom(__func__, op_like(ctx, GGML_OP_CUSTOM, a, true, sources), ANY(fun), n_tasks, userdata);
}
