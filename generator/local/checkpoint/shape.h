/* shape.h - the shape of a model, read from a checkpoint's config.json.
 *
 * One struct serves the five published families (architectures) with MLA: DeepSeek-V2, DeepSeek-V3
 * (with R1, V3.1, Kimi-K2 and Moonlight), LongCat-Flash, MiniCPM3 and GLM-4.7-Flash. It also serves
 * models with grouped-query attention whose weights training/grouped.py has rewritten for MLA. What
 * a family lacks is 0, or 1 where 1 means none (a factor, a number of groups). Known settings that
 * would change the arithmetic and are not supported are errors that name them. Every number is
 * bounded, so that sizes computed from a valid shape in 64 bits don't overflow. */
#ifndef SNAPMLA_GENERATOR_LOCAL_CHECKPOINT_SHAPE_H
#define SNAPMLA_GENERATOR_LOCAL_CHECKPOINT_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"

typedef enum {
    ARCH_DEEPSEEK_V2,
    ARCH_DEEPSEEK_V3,
    ARCH_LONGCAT_FLASH,
    ARCH_MINICPM3,
    ARCH_GLM4_MOE_LITE, /* the layers of DeepSeek-V3 */
    ARCH_GROUPED_QUERY  /* written by training/grouped.py */
} model_arch;

typedef enum { SCORE_SOFTMAX, SCORE_SIGMOID } score_func;

typedef enum {
    TOPK_GREEDY,
    TOPK_GROUP_LIMITED, /* a group is rated by its best expert (V2) */
    TOPK_NOAUX,         /* with e_score_correction_bias; a group is rated by its best two experts
                           (V3) */
} topk_method;

typedef enum { ROPE_PLAIN, ROPE_YARN, ROPE_LONGROPE } rope_kind;

enum { SHAPE_ROPE_PAIRS = 128, SHAPE_EOS = 16 };

typedef struct {
    rope_kind kind;
    double theta;
    int original_max_position_embeddings;
    double factor, beta_fast, beta_slow, mscale, mscale_all_dim; /* yarn */
    double short_factor[SHAPE_ROPE_PAIRS],
        long_factor[SHAPE_ROPE_PAIRS]; /* longrope: the first qk_rope_head_dim / 2 are set */
} rope_shape;

typedef struct {
    model_arch arch;
    int vocab_size, hidden_size, num_hidden_layers, num_attention_heads, max_position_embeddings;
    bool tie_word_embeddings;             /* lm_head is embed_tokens */
    double rms_norm_eps, latent_norm_eps; /* eps of the norms of the hidden state, and of the q_a
                                             and kv_a norms */

    /* attention; a layer of LongCat-Flash has two, and two dense feed-forwards */
    int q_lora_rank; /* 0: a single q_proj */
    int kv_lora_rank, qk_nope_head_dim, qk_rope_head_dim, v_head_dim;
    double mla_scale_q,
        mla_scale_kv; /* LongCat-Flash: factors on the normalised q_a and on the normalised latent;
                         else 1 */
    rope_shape rope;
    int head_dim;      /* the softmax scale is 1 / sqrt(head_dim), times YaRN's factor. head_dim is
                          nope + rope or, for grouped queries, the size of a head of the original
                          model */
    int rope_period;   /* columns after which the frequencies of RoPE repeat: qk_rope_head_dim or,
                          for grouped queries, head_dim */
    bool plain_latent; /* grouped queries: the latent has no norm */
    int rotated_first, rotated_dim; /* grouped queries: these columns of the latent have RoPE, and
                                       so have all columns of the queries; 0: none */

    /* feed-forward */
    int intermediate_size;
    int first_k_dense_replace, moe_layer_freq; /* see shape_is_sparse() */
    int n_routed_experts, n_shared_experts, num_experts_per_tok, moe_intermediate_size;
    int zero_expert_num; /* LongCat-Flash: further experts, which return their input */
    int n_group, topk_group;
    score_func scoring;
    topk_method topk;
    bool norm_topk_prob;
    double routed_scaling_factor;

    /* MiniCPM3: the embeddings are multiplied by scale_emb, each branch by scale_depth /
     * sqrt(layers), and the last hidden state is divided by hidden_size / dim_model_base. Other
     * families: 1, 0 and 0. */
    double scale_emb, scale_depth, dim_model_base;

    int fp8_block; /* rows, and columns, of the blocks of e4m3 weights that have one scale each; 0:
                      not e4m3 */
    int bos_id;    /* -1 = none */
    int eos_ids[SHAPE_EOS], n_eos;
} model_shape;

/* Reads DIR/config.json, and the end-of-sequence ids of DIR/generation_config.json if it has any.
 * SNAP_E_IO; SNAP_E_INPUT, naming file and key; SNAP_E_UNSUPPORTED, naming what is not supported;
 * SNAP_E_NOMEM. */
snap_status model_shape_open(model_shape *out, const char *dir, snap_err *err) SNAP_CHECK_RESULT;

/* Like model_shape_open(), but reads the text of a config.json. @name is its name in messages. */
snap_status model_shape_parse(model_shape *out, const char *json, size_t n, const char *name,
                              snap_err *err) SNAP_CHECK_RESULT;

/* SHA-256 of all members. Shapes have the same digest only if they are equal. It is the same in all
 * processes of one build, but may change with the version of the program. SNAP_E_NOMEM, and any
 * error of hash_bytes(). */
snap_status model_shape_digest(const model_shape *s, char out[HASH_HEX],
                               snap_err *err) SNAP_CHECK_RESULT;

/* Whether the feed-forward of a layer consists of experts. Must not be used for LongCat-Flash,
 * where each layer has experts beside its dense feed-forwards. */
bool shape_is_sparse(const model_shape *s, int layer);

/* Whether the router of each layer of experts has a bias, e_score_correction_bias: with
 * topk_method noaux_tc, and always in LongCat-Flash. */
bool shape_has_router_bias(const model_shape *s);

#endif
