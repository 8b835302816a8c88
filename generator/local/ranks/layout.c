#include "generator/local/ranks/layout.h"

#include <stdlib.h>
#include <string.h>

#include "generator/local/ranks/place.h"

/* Reads "DP" or "TP" and a number. Returns the first character after them, or NULL. */
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

snap_status rank_layout_parse(rank_layout *out, const char *text, snap_err *err) {
    *out = (rank_layout){1, 1};
    const char *after = read_part(text, "DP", &out->replicas);
    const char *at = after && *after == '/' ? after + 1 : after ? after : text;
    if (!after || at != after)
        at = read_part(at, "TP", &out->parts);
    if (!at || *at || out->replicas * out->parts > RANKS_MOST)
        return err_set(err, SNAP_E_USAGE,
                       "--layout must be DPd/TPt, DPd or TPt with at most %d ranks, got '%s'",
                       RANKS_MOST, text);
    return SNAP_OK;
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
