#include "generator/local/tokenizer/vocab.h"

#include <stdlib.h>
#include <string.h>

#include "generator/local/tokenizer/mix.h"

/* The slot of a content: the one that holds it, or the empty one for it. */
static size_t slot_of(const vocab *v, const char *s, size_t n) {
    size_t i = mix_bytes(s, n) & (v->n_slots - 1);
    for (; v->slots[i]; i = (i + 1) & (v->n_slots - 1)) {
        const vocab_token *t = &v->tokens[v->slots[i] - 1];
        if (t->n == n && memcmp(t->s, s, n) == 0)
            break;
    }
    return i;
}

static bool grow_slots(vocab *v) {
    vocab old = *v;
    v->n_slots = old.n_slots ? 2 * old.n_slots : 1024;
    v->slots = calloc(v->n_slots, sizeof *v->slots);
    if (!v->slots) {
        *v = old;
        return false;
    }
    for (size_t i = 0; i < old.n_slots; i++)
        if (old.slots[i]) {
            const vocab_token *t = &v->tokens[old.slots[i] - 1];
            v->slots[slot_of(v, t->s, t->n)] = old.slots[i];
        }
    free(old.slots);
    return true;
}

static bool reach_id(vocab *v, int32_t id) {
    if (id >= v->cap) {
        int32_t cap = id < 512 ? 1024 : 2 * id;
        vocab_token *t = realloc(v->tokens, (size_t)cap * sizeof *t);
        if (!t)
            return false;
        memset(t + v->cap, 0, (size_t)(cap - v->cap) * sizeof *t);
        v->tokens = t;
        v->cap = cap;
    }
    if (id >= v->n)
        v->n = id + 1;
    return true;
}

snap_status vocab_add(vocab *v, int64_t id, const char *s, size_t n, bool special, snap_err *err) {
    int shown = (int)(n < 80 ? n : 80);
    if (id < 0 || id >= VOCAB_MAX_ID || n > UINT32_MAX)
        return err_set(err, SNAP_E_INPUT, "token '%.*s': id %lld lies outside 0..%d", shown, s,
                       (long long)id, VOCAB_MAX_ID - 1);
    int32_t have = vocab_find(v, s, n);
    if (have == (int32_t)id) {
        v->tokens[id].special |= special;
        return SNAP_OK;
    }
    if (have >= 0)
        return err_set(err, SNAP_E_INPUT, "token '%.*s' has two ids, %d and %lld", shown, s, have,
                       (long long)id);
    if (vocab_at(v, (int32_t)id))
        return err_set(err, SNAP_E_INPUT, "id %lld has two tokens, '%s' and '%.*s'", (long long)id,
                       v->tokens[id].s, shown, s);
    char *copy = arena_strndup(&v->mem, s, n);
    if (!copy || !reach_id(v, (int32_t)id) || (2 * (v->used + 1) > v->n_slots && !grow_slots(v)))
        return err_set(err, SNAP_E_NOMEM, "out of memory for a vocabulary");
    v->tokens[id] = (vocab_token){.s = copy, .n = (uint32_t)n, .special = special};
    v->slots[slot_of(v, copy, n)] = (int32_t)id + 1;
    v->used++;
    return SNAP_OK;
}

int32_t vocab_find(const vocab *v, const char *s, size_t n) {
    return v->n_slots ? v->slots[slot_of(v, s, n)] - 1 : -1;
}

const vocab_token *vocab_at(const vocab *v, int32_t id) {
    return id >= 0 && id < v->n && v->tokens[id].s ? &v->tokens[id] : NULL;
}

void vocab_release(vocab *v) {
    arena_release(&v->mem);
    free(v->tokens);
    free(v->slots);
    *v = (vocab){0};
}
