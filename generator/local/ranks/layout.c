#include "generator/local/ranks/layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "generator/local/ranks/place.h"

/* Reads @name, such as "DP", and a number. Returns the first character after them, or NULL. */
static const char *read_part(const char *text, const char *name, int *out) {
    char *end = NULL;
    if (strncmp(text, name, 2) != 0 || text[2] < '1' || text[2] > '9')
        return NULL;
    long n = strtol(text + 2, &end, 10);
    if (n > RANKS_MOST)
        return NULL;
    *out = (int)n;
    return end;
}

/* Like read_part(), for a part that may be missing. *@at moves to what follows, without a slash.
 * Returns whether the part was there. */
static bool read_optional(const char **at, const char *name, int *out) {
    const char *after = read_part(*at, name, out);
    if (!after || (*after && (*after != '/' || !after[1])))
        return false;
    *at = *after ? after + 1 : after;
    return true;
}

snap_status rank_layout_parse(rank_layout *out, const char *text, snap_err *err) {
    int ranks = 0;
    const char *at = text;
    *out = (rank_layout){1, 1, false};
    bool dp = read_optional(&at, "DP", &out->replicas), tp = read_optional(&at, "TP", &out->parts),
         ep = read_optional(&at, "EP", &ranks);
    if (ep && !dp && !tp)
        out->replicas = ranks;
    if (*at || !(dp || tp || ep) || rank_layout_size(out) > RANKS_MOST)
        return err_set(err, SNAP_E_USAGE,
                       "--layout must be DPd/TPt, DPd or TPt, which /EPn may follow, or EPn, with "
                       "at most %d ranks, got '%s'",
                       RANKS_MOST, text);
    if (ep && ranks != rank_layout_size(out))
        return err_set(err, SNAP_E_USAGE, "--layout '%s': EP must be the number of all GPUs, %d",
                       text, rank_layout_size(out));
    out->whole_experts = ep && ranks > 1;
    return SNAP_OK;
}

void rank_layout_text(const rank_layout *l, char out[RANK_LAYOUT_TEXT]) {
    int n = snprintf(out, RANK_LAYOUT_TEXT, "DP%d/TP%d", l->replicas, l->parts);
    if (l->whole_experts)
        (void)snprintf(out + n, RANK_LAYOUT_TEXT - (size_t)n, "/EP%d", rank_layout_size(l));
}

typedef struct {
    const char *name;
    int *size;
} divided;

snap_status rank_layout_split(model_shape *s, int parts, snap_err *err) {
    const divided all[] = {{"num_attention_heads", &s->num_attention_heads},
                           {"intermediate_size", &s->intermediate_size},
                           {"moe_intermediate_size", &s->moe_intermediate_size}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (*all[i].size % parts != 0)
            return err_set(err, SNAP_E_UNSUPPORTED, "%d ranks do not divide %s %d", parts,
                           all[i].name, *all[i].size);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        *all[i].size /= parts;
    return SNAP_OK;
}

snap_status rank_layout_shape(model_shape *s, const rank_layout *l, snap_err *err) {
    int inner = s->moe_intermediate_size, ranks = rank_layout_size(l);
    int64_t shared = (int64_t)s->n_shared_experts * inner;
    if (!l->whole_experts)
        return rank_layout_split(s, l->parts, err);
    if (s->n_routed_experts == 0)
        return err_set(err, SNAP_E_UNSUPPORTED, "EP divides experts, and this model has none");
    if (s->n_routed_experts % ranks != 0)
        return err_set(err, SNAP_E_UNSUPPORTED, "%d ranks do not divide n_routed_experts %d", ranks,
                       s->n_routed_experts);
    if (shared % l->parts != 0)
        return err_set(err, SNAP_E_UNSUPPORTED,
                       "%d ranks do not divide the inner width %lld of the shared experts",
                       l->parts, (long long)shared);
    s->moe_intermediate_size = l->parts; /* routed experts are not split */
    snap_status st = rank_layout_split(s, l->parts, err);
    s->moe_intermediate_size = inner;
    return st;
}
