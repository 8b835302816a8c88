#include "generator/local/tokenizer/added.h"

#include <stdlib.h>

struct added_node {
    uint32_t child, sibling; /* 0 = none, because the root is neither a child nor a sibling */
    int32_t token;           /* index of the token whose content ends here; -1 = none */
    unsigned char byte;
};

static uint32_t child_of(const added_set *set, uint32_t node, unsigned char byte) {
    uint32_t c = set->nodes[node].child;
    while (c && set->nodes[c].byte != byte)
        c = set->nodes[c].sibling;
    return c;
}

static bool reserve_nodes(added_set *set, size_t more) {
    size_t need = set->n_nodes + more + 1;
    if (need <= set->cap_nodes)
        return true;
    if (need > INT32_MAX / 2)
        return false;
    struct added_node *p = realloc(set->nodes, 2 * need * sizeof *p);
    if (!p)
        return false;
    set->nodes = p;
    set->cap_nodes = 2 * need;
    if (!set->n_nodes)
        set->nodes[set->n_nodes++] = (struct added_node){.token = -1};
    return true;
}

static uint32_t add_child(added_set *set, uint32_t node, unsigned char byte) {
    uint32_t c = (uint32_t)set->n_nodes++;
    set->nodes[c] =
        (struct added_node){.sibling = set->nodes[node].child, .token = -1, .byte = byte};
    set->nodes[node].child = c;
    return c;
}

static bool reserve_token(added_set *set) {
    if (set->n < set->cap)
        return true;
    size_t cap = set->cap ? 2 * set->cap : 64;
    added_token *p = realloc(set->tokens, cap * sizeof *p);
    if (!p)
        return false;
    set->tokens = p;
    set->cap = cap;
    return true;
}

snap_status added_insert(added_set *set, const char *content, size_t n, added_token token,
                         snap_err *err) {
    if (!n)
        return err_set(err, SNAP_E_INPUT, "the added token %d is empty", token.id);
    if (!reserve_nodes(set, n) || !reserve_token(set))
        return err_set(err, SNAP_E_NOMEM, "out of memory for added tokens");
    uint32_t node = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned char byte = (unsigned char)content[i];
        uint32_t c = child_of(set, node, byte);
        node = c ? c : add_child(set, node, byte);
    }
    set->starts[(unsigned char)content[0]] = true;
    set->nodes[node].token = (int32_t)set->n;
    set->tokens[set->n++] = token;
    return SNAP_OK;
}

/* The longest content that starts at @at. */
static int32_t longest_at(const added_set *set, const char *s, size_t n, size_t at, size_t *end) {
    int32_t best = -1;
    uint32_t node = 0;
    while (at < n && (node = child_of(set, node, (unsigned char)s[at])) != 0) {
        at++;
        if (set->nodes[node].token >= 0) {
            best = set->nodes[node].token;
            *end = at;
        }
    }
    return best;
}

const added_token *added_find(const added_set *set, const char *s, size_t n, size_t from,
                              size_t *start, size_t *end) {
    if (!set->n)
        return NULL;
    for (size_t at = from; at < n; at++) {
        if (!set->starts[(unsigned char)s[at]])
            continue;
        int32_t i = longest_at(set, s, n, at, end);
        if (i >= 0) {
            *start = at;
            return &set->tokens[i];
        }
    }
    return NULL;
}

void added_release(added_set *set) {
    free(set->nodes);
    free(set->tokens);
    *set = (added_set){0};
}
