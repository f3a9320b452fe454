/* The rules of the mixtures, as a table: what ends up in which type is what files of these names have had since they exist. */

#include "mixture.h"

#include <stdlib.h>
#include <string.h>

#define BIT(ftype) ((uint64_t) 1 << LLAMA_FTYPE_MOSTLY_##ftype)

/* File types: the name, and the type that most matrices have. */
static const struct { enum llama_ftype ftype; const char *name; enum ggml_type type; } ftypes[] = {
    { LLAMA_FTYPE_ALL_F32,            "F32",      GGML_TYPE_F32     },
    { LLAMA_FTYPE_MOSTLY_F16,         "F16",      GGML_TYPE_F16     },
    { LLAMA_FTYPE_MOSTLY_BF16,        "BF16",     GGML_TYPE_BF16    },
    { LLAMA_FTYPE_MOSTLY_Q4_0,        "Q4_0",     GGML_TYPE_Q4_0    },
    { LLAMA_FTYPE_MOSTLY_Q4_1,        "Q4_1",     GGML_TYPE_Q4_1    },
    { LLAMA_FTYPE_MOSTLY_Q5_0,        "Q5_0",     GGML_TYPE_Q5_0    },
    { LLAMA_FTYPE_MOSTLY_Q5_1,        "Q5_1",     GGML_TYPE_Q5_1    },
    { LLAMA_FTYPE_MOSTLY_Q8_0,        "Q8_0",     GGML_TYPE_Q8_0    },
    { LLAMA_FTYPE_MOSTLY_Q2_K,        "Q2_K",     GGML_TYPE_Q2_K    },
    { LLAMA_FTYPE_MOSTLY_Q2_K_S,      "Q2_K_S",   GGML_TYPE_Q2_K    },
    { LLAMA_FTYPE_MOSTLY_Q3_K_S,      "Q3_K_S",   GGML_TYPE_Q3_K    },
    { LLAMA_FTYPE_MOSTLY_Q3_K_M,      "Q3_K_M",   GGML_TYPE_Q3_K    },
    { LLAMA_FTYPE_MOSTLY_Q3_K_L,      "Q3_K_L",   GGML_TYPE_Q3_K    },
    { LLAMA_FTYPE_MOSTLY_Q4_K_S,      "Q4_K_S",   GGML_TYPE_Q4_K    },
    { LLAMA_FTYPE_MOSTLY_Q4_K_M,      "Q4_K_M",   GGML_TYPE_Q4_K    },
    { LLAMA_FTYPE_MOSTLY_Q5_K_S,      "Q5_K_S",   GGML_TYPE_Q5_K    },
    { LLAMA_FTYPE_MOSTLY_Q5_K_M,      "Q5_K_M",   GGML_TYPE_Q5_K    },
    { LLAMA_FTYPE_MOSTLY_Q6_K,        "Q6_K",     GGML_TYPE_Q6_K    },
    { LLAMA_FTYPE_MOSTLY_IQ1_S,       "IQ1_S",    GGML_TYPE_IQ1_S   },
    { LLAMA_FTYPE_MOSTLY_IQ1_M,       "IQ1_M",    GGML_TYPE_IQ1_M   },
    { LLAMA_FTYPE_MOSTLY_IQ2_XXS,     "IQ2_XXS",  GGML_TYPE_IQ2_XXS },
    { LLAMA_FTYPE_MOSTLY_IQ2_XS,      "IQ2_XS",   GGML_TYPE_IQ2_XS  },
    { LLAMA_FTYPE_MOSTLY_IQ2_S,       "IQ2_S",    GGML_TYPE_IQ2_XS  },
    { LLAMA_FTYPE_MOSTLY_IQ2_M,       "IQ2_M",    GGML_TYPE_IQ2_S   },
    { LLAMA_FTYPE_MOSTLY_IQ3_XXS,     "IQ3_XXS",  GGML_TYPE_IQ3_XXS },
    { LLAMA_FTYPE_MOSTLY_IQ3_XS,      "IQ3_XS",   GGML_TYPE_IQ3_S   },
    { LLAMA_FTYPE_MOSTLY_IQ3_S,       "IQ3_S",    GGML_TYPE_IQ3_S   },
    { LLAMA_FTYPE_MOSTLY_IQ3_M,       "IQ3_M",    GGML_TYPE_IQ3_S   },
    { LLAMA_FTYPE_MOSTLY_IQ4_NL,      "IQ4_NL",   GGML_TYPE_IQ4_NL  },
    { LLAMA_FTYPE_MOSTLY_IQ4_XS,      "IQ4_XS",   GGML_TYPE_IQ4_XS  },
    { LLAMA_FTYPE_MOSTLY_TQ1_0,       "TQ1_0",    GGML_TYPE_TQ1_0   },
    { LLAMA_FTYPE_MOSTLY_TQ2_0,       "TQ2_0",    GGML_TYPE_TQ2_0   },
    { LLAMA_FTYPE_MOSTLY_MXFP4_MOE,   "MXFP4",    GGML_TYPE_MXFP4   },
    { LLAMA_FTYPE_MOSTLY_NVFP4,       "NVFP4",    GGML_TYPE_NVFP4   },
    { LLAMA_FTYPE_MOSTLY_Q1_0,        "Q1_0",     GGML_TYPE_Q1_0    },
    { LLAMA_FTYPE_MOSTLY_Q2_0,        "Q2_0",     GGML_TYPE_Q2_0    },
};
enum { N_FTYPES = sizeof ftypes/sizeof *ftypes };

enum ggml_type mixture_main_type(enum llama_ftype ftype) {
    for (int i = 0; i < N_FTYPES; i++) if (ftypes[i].ftype == ftype) return ftypes[i].type;
    return GGML_TYPE_COUNT;
}

const char *llama_ftype_name(enum llama_ftype ftype) {
    const int plain = (int) ftype & ~LLAMA_FTYPE_GUESSED;
    for (int i = 0; i < N_FTYPES; i++) if ((int) ftypes[i].ftype == plain) return ftypes[i].name;
    return "unknown";
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

enum role { OTHER, EMBEDDING, OUTPUT, V, K, Q, QKV, ATTN_OUT, DOWN, GATE, UP };

/* A part of a tensor's name and what it says; the first that fits. */
static const struct { const char *part; enum role role; } roles[] = {
    { "attn_qkv.weight", QKV }, { "attn_v.weight", V }, { "attn_k.weight", K }, { "attn_q.weight", Q }, { "attn_v_b.weight", V },
    { "attn_kv_b.weight", V }, { "attn_output.weight", ATTN_OUT }, { "ffn_down", DOWN }, { "ffn_gate", GATE }, { "ffn_up", UP },
};

/* Matrices by shape that are none by use: they are small, or kernels want them as floats. */
static const char *const left_alone[] = {
    "_norm.weight", "ffn_gate_inp.weight", "position_embd.weight", "token_types.weight", "altup", "laurel", "per_layer_model_proj",
    "ssm_conv1d", "shortconv.conv.weight", "time_mix_", "attn_rel_b.weight", ".position_embd.", "sam.pos_embd", "sam.neck.", "sam.net_",
    ".rel_pos", ".patch_embd", ".patch_merger", "ssm_dt.weight",
};

int mixture_layer(const char *name) {
    if (strncmp(name, "blk.", 4)) return -1;
    char *end;
    const long n = strtol(name + 4, &end, 10);
    return end > name + 4 && *end == '.' && n >= 0 && n < 1 << 20 ? (int) n : -1;
}

bool mixture_takes(const struct ggml_tensor *t) {
    const size_t length = strlen(t->name);
    if (length < 6 || strcmp(t->name + length - 6, "weight") || ggml_n_dims(t) < 2) return false;
    for (size_t i = 0; i < sizeof left_alone/sizeof *left_alone; i++) if (strstr(t->name, left_alone[i])) return false;
    return true;
}

bool mixture_is_output(const struct mixture *m, const char *name) {
    return !strcmp(name, "output.weight") || (!m->has_output && !strcmp(name, "token_embd.weight"));
}

static enum role role_of(const struct mixture *m, const char *name) {
    if (mixture_is_output(m, name))                                                   return OUTPUT;
    if (!strcmp(name, "token_embd.weight") || !strcmp(name, "per_layer_token_embd.weight")) return EMBEDDING;
    for (size_t i = 0; i < sizeof roles/sizeof *roles; i++) if (strstr(name, roles[i].part)) return roles[i].role;
    return OTHER;
}

/* ---- conditions -------------------------------------------------------------------------------------------------- */

/* The layers at both ends, and every third between them. */
static bool wants_more(int i, int n) { return i < n/8 || i >= 7*n/8 || (i - n/8)%3 == 2; }

enum when { ALWAYS, ODD, FIRST_2, FIRST_4, FIRST_8TH, FIRST_16TH, MIDDLE, MORE, GQA_4, SHARED_4, LAYERS_80, EXPERTS_8, EXPERTS_8_MORE, MATRIX,
            GUESSED, FIRST_8TH_GUESSED, FIRST_8TH_KNOWN };      /* without and with importance data */

static bool holds(enum when when, const struct mixture *m, const struct ggml_tensor *t) {
    const int i = mixture_layer(t->name), n = m->n_layer, groups = m->n_head_kv > 0 ? m->n_head/m->n_head_kv : 1;
    switch (when) {
        case ALWAYS:            return true;
        case ODD:               return t->ne[0] % 256 != 0;
        case FIRST_2:           return i < 2;
        case FIRST_4:           return i < 4;
        case FIRST_8TH:         return i < n/8;
        case FIRST_16TH:        return i < n/16;
        case MIDDLE:            return i >= n/8 && i < 7*n/8;
        case MORE:              return wants_more(i, n);
        case GQA_4:             return groups >= 4;
        case SHARED_4:          return groups >= 4 || m->n_expert >= 4;
        case LAYERS_80:         return n == 80 && groups > 1;
        case EXPERTS_8:         return m->n_expert == 8;
        case EXPERTS_8_MORE:    return m->n_expert == 8 && wants_more(i, n);
        case MATRIX:            return t->ne[2] <= 1;
        case GUESSED:           return !m->has_importance;
        case FIRST_8TH_GUESSED: return !m->has_importance && i < n/8;
        case FIRST_8TH_KNOWN:   return  m->has_importance && i < n/8;
    }
    return false;
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

#define IQ1     (BIT(IQ1_S) | BIT(IQ1_M))
#define IQ2_LOW (IQ1 | BIT(IQ2_XXS) | BIT(IQ2_XS))
#define IQ2_TOP (BIT(IQ2_S) | BIT(IQ2_M))
#define IQ2     (IQ2_LOW | IQ2_TOP)
#define IQ4     (BIT(IQ4_NL) | BIT(IQ4_XS))
#define ALL     (~(uint64_t) 0)

/* The first row that fits says the type; without one it is the main type. */
static const struct { uint64_t ftypes; enum role role; enum when when; enum ggml_type type; } rules[] = {
    { ALL,                                       OUTPUT,    ODD,               GGML_TYPE_Q8_0 },
    { IQ2 | BIT(IQ3_XXS),                        OUTPUT,    ALWAYS,            GGML_TYPE_Q5_K },
    { ALL & ~(BIT(Q8_0) | BIT(MXFP4_MOE)),       OUTPUT,    ALWAYS,            GGML_TYPE_Q6_K },
    { BIT(MXFP4_MOE),                            OUTPUT,    ALWAYS,            GGML_TYPE_Q8_0 },
    { IQ2_LOW,                                   EMBEDDING, ALWAYS,            GGML_TYPE_Q2_K },
    { IQ2_TOP | BIT(IQ3_XXS),                    EMBEDDING, ALWAYS,            GGML_TYPE_IQ3_S },
    { BIT(TQ1_0) | BIT(TQ2_0),                   EMBEDDING, ALWAYS,            GGML_TYPE_Q4_K },
#define NOT_EXPERTS(role) { BIT(MXFP4_MOE), role, MATRIX, GGML_TYPE_Q8_0 }
    NOT_EXPERTS(EMBEDDING), NOT_EXPERTS(V), NOT_EXPERTS(K), NOT_EXPERTS(Q), NOT_EXPERTS(QKV), NOT_EXPERTS(ATTN_OUT),
    NOT_EXPERTS(DOWN), NOT_EXPERTS(GATE), NOT_EXPERTS(UP), NOT_EXPERTS(OTHER),

    { IQ2,                                       V,         SHARED_4,          GGML_TYPE_Q4_K },
    { IQ2_TOP,                                   V,         ALWAYS,            GGML_TYPE_IQ3_S },
    { IQ2_LOW,                                   V,         ALWAYS,            GGML_TYPE_Q2_K },
    { IQ2,                                       K,         EXPERTS_8,         GGML_TYPE_Q4_K },
    { IQ2_TOP,                                   DOWN,      FIRST_8TH,         GGML_TYPE_IQ3_S },
    { IQ2_LOW,                                   DOWN,      FIRST_8TH,         GGML_TYPE_Q2_K },
    { IQ2,                                       ATTN_OUT,  EXPERTS_8,         GGML_TYPE_Q5_K },
    { IQ1,                                       ATTN_OUT,  ALWAYS,            GGML_TYPE_IQ2_XXS },
    { IQ2_TOP,                                   ATTN_OUT,  ALWAYS,            GGML_TYPE_IQ3_S },

    { ALL & ~IQ2,                                V,         EXPERTS_8,         GGML_TYPE_Q8_0 },
    { BIT(Q4_K_M) | BIT(Q5_K_M),                 V,         MORE,              GGML_TYPE_Q6_K },
    { BIT(Q2_K) | BIT(Q2_K_S) | BIT(Q3_K_S) | BIT(Q3_K_M) | BIT(Q4_K_S) | BIT(Q4_K_M) | BIT(IQ3_XXS) | BIT(IQ3_XS) | BIT(IQ3_S) |
      BIT(IQ3_M),                                V,         LAYERS_80,         GGML_TYPE_Q5_K },
    { BIT(Q2_K) | BIT(Q2_K_S) | BIT(IQ3_XXS) | BIT(IQ3_XS) | BIT(IQ3_S), V, GQA_4, GGML_TYPE_Q4_K },
    { BIT(Q2_K),                                 V,         ALWAYS,            GGML_TYPE_Q3_K },
    { BIT(IQ3_XXS),                              V,         GUESSED,           GGML_TYPE_IQ3_S },
    { BIT(IQ3_M),                                V,         ALWAYS,            GGML_TYPE_Q4_K },
    { BIT(Q3_K_M),                               V,         FIRST_2,           GGML_TYPE_Q5_K },
    { BIT(Q3_K_M),                               V,         ALWAYS,            GGML_TYPE_Q4_K },
    { BIT(Q3_K_L),                               V,         ALWAYS,            GGML_TYPE_Q5_K },
    { IQ4,                                       V,         GQA_4,             GGML_TYPE_Q5_K },
    { BIT(Q4_K_S),                               V,         FIRST_4,           GGML_TYPE_Q5_K },

    { ALL & ~IQ2,                                K,         EXPERTS_8,         GGML_TYPE_Q8_0 },
    { BIT(IQ3_XS),                               K,         ALWAYS,            GGML_TYPE_IQ3_XXS },
    { BIT(IQ3_XXS),                              K,         ALWAYS,            GGML_TYPE_IQ2_S },
    { BIT(IQ3_XS),                               Q,         ALWAYS,            GGML_TYPE_IQ3_XXS },
    { BIT(IQ3_XXS),                              Q,         ALWAYS,            GGML_TYPE_IQ2_S },

    { BIT(Q2_K),                                 DOWN,      ALWAYS,            GGML_TYPE_Q3_K },
    { BIT(Q2_K_S),                               DOWN,      FIRST_8TH,         GGML_TYPE_Q4_K },
    { BIT(IQ3_XXS),                              DOWN,      FIRST_8TH_GUESSED, GGML_TYPE_Q4_K },
    { BIT(IQ3_XXS),                              DOWN,      GUESSED,           GGML_TYPE_Q3_K },
    { BIT(Q3_K_M),                               DOWN,      FIRST_16TH,        GGML_TYPE_Q5_K },
    { BIT(Q3_K_M),                               DOWN,      ALWAYS,            GGML_TYPE_Q4_K },
    { BIT(IQ3_M),                                DOWN,      FIRST_8TH,         GGML_TYPE_Q4_K },
    { BIT(IQ3_M),                                DOWN,      EXPERTS_8_MORE,    GGML_TYPE_Q4_K },
    { BIT(Q3_K_L),                               DOWN,      ALWAYS,            GGML_TYPE_Q5_K },
    { BIT(Q4_K_M) | BIT(Q5_K_M),                 DOWN,      MORE,              GGML_TYPE_Q6_K },
    { IQ4,                                       DOWN,      FIRST_8TH_GUESSED, GGML_TYPE_Q5_K },
    { BIT(Q4_K_S),                               DOWN,      FIRST_8TH,         GGML_TYPE_Q5_K },
    { BIT(Q4_0),                                 DOWN,      FIRST_8TH_KNOWN,   GGML_TYPE_Q4_1 },
    { BIT(Q5_0),                                 DOWN,      FIRST_8TH_KNOWN,   GGML_TYPE_Q5_1 },

    { BIT(Q2_K) | BIT(IQ3_XS) | BIT(IQ3_XXS) | BIT(Q3_K_S) | BIT(Q3_K_M) | BIT(Q4_K_S) | BIT(Q4_K_M) | BIT(IQ3_S) | BIT(IQ3_M) | IQ4,
                                                 ATTN_OUT,  EXPERTS_8,         GGML_TYPE_Q5_K },
    { BIT(Q3_K_L),                               ATTN_OUT,  EXPERTS_8,         GGML_TYPE_Q3_K },
    { BIT(Q2_K),                                 ATTN_OUT,  ALWAYS,            GGML_TYPE_Q3_K },
    { BIT(IQ3_XXS),                              ATTN_OUT,  ALWAYS,            GGML_TYPE_IQ3_S },
    { BIT(Q3_K_M) | BIT(IQ3_M),                  ATTN_OUT,  ALWAYS,            GGML_TYPE_Q4_K },
    { BIT(Q3_K_L),                               ATTN_OUT,  ALWAYS,            GGML_TYPE_Q5_K },

    { BIT(Q3_K_M) | BIT(Q3_K_L) | BIT(IQ3_M),    QKV,       ALWAYS,            GGML_TYPE_Q4_K },
    { BIT(Q4_K_M),                               QKV,       ALWAYS,            GGML_TYPE_Q5_K },
    { BIT(Q5_K_M),                               QKV,       ALWAYS,            GGML_TYPE_Q6_K },
    { BIT(IQ3_XS),                               GATE,      MIDDLE,            GGML_TYPE_IQ3_XXS },
    { BIT(IQ3_XS),                               UP,        MIDDLE,            GGML_TYPE_IQ3_XXS },
};

enum ggml_type mixture_type(const struct mixture *m, const struct ggml_tensor *t) {
    const enum ggml_type main_type = mixture_main_type(m->ftype);
    if (!ggml_is_quantized(main_type)) return main_type;
    const enum role role = role_of(m, t->name);
    for (size_t i = 0; i < sizeof rules/sizeof *rules; i++) {
        if (rules[i].ftypes >> m->ftype & 1 && rules[i].role == role && holds(rules[i].when, m, t)) return rules[i].type;
    }
    return main_type;
}

/* ---- rows that are no whole blocks ------------------------------------------------------------------------------- */

static const struct { enum ggml_type type, instead; } fallbacks[] = {
    { GGML_TYPE_TQ1_0,   GGML_TYPE_Q4_0   }, { GGML_TYPE_TQ2_0,  GGML_TYPE_Q4_0   }, { GGML_TYPE_Q2_K,   GGML_TYPE_IQ4_NL },
    { GGML_TYPE_Q3_K,    GGML_TYPE_IQ4_NL }, { GGML_TYPE_IQ1_S,  GGML_TYPE_IQ4_NL }, { GGML_TYPE_IQ1_M,  GGML_TYPE_IQ4_NL },
    { GGML_TYPE_IQ2_XXS, GGML_TYPE_IQ4_NL }, { GGML_TYPE_IQ2_XS, GGML_TYPE_IQ4_NL }, { GGML_TYPE_IQ2_S,  GGML_TYPE_IQ4_NL },
    { GGML_TYPE_IQ3_XXS, GGML_TYPE_IQ4_NL }, { GGML_TYPE_IQ3_S,  GGML_TYPE_IQ4_NL }, { GGML_TYPE_IQ4_XS, GGML_TYPE_IQ4_NL },
    { GGML_TYPE_Q4_K,    GGML_TYPE_Q5_0   }, { GGML_TYPE_Q5_K,   GGML_TYPE_Q5_1   }, { GGML_TYPE_Q6_K,   GGML_TYPE_Q8_0   },
};

enum ggml_type mixture_fallback(enum ggml_type type, int64_t n) {
    if (n % ggml_blck_size(type) == 0) return type;
    for (size_t i = 0; i < sizeof fallbacks/sizeof *fallbacks; i++) {
        if (fallbacks[i].type == type && n % ggml_blck_size(fallbacks[i].instead) == 0) return fallbacks[i].instead;
    }
    return GGML_TYPE_F16;
}
