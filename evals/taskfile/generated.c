/* generated.c - tasks whose rows are made by the program: the key "generator" of a task file
 * (evals/longtext). A made row has fields like a row of a data file, so all other keys of the task
 * file apply to it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/text.h"
#include "evals/longtext/conversation.h"
#include "evals/longtext/longtext.h"
#include "evals/taskfile/parts.h"

/* Part of the digest. Its number grows when other texts are made from the same options. */
static const char kVersion[] = "longtext-2";

static const double kCharsPerToken = 4;

/* ---- reading the key ---- */

/* Reads a list of numbers within bounds. An absent key leaves the list unchanged. */
static snap_status read_numbers(const keys *k, const char *key, double min, double max,
                                double out[GENERATED_VALUES], size_t *n, snap_err *err) {
    const js *list = js_get(k->object, key);
    if (!list)
        return SNAP_OK;
    size_t count = js_len(list);
    bool fine = js_is_array(list) && count >= 1 && count <= GENERATED_VALUES;
    for (size_t i = 0; fine && i < count; i++) {
        out[i] = js_num(js_at(list, i));
        fine = js_is_num(js_at(list, i)) && out[i] >= min && out[i] <= max;
    }
    *n = count;
    return fine ? SNAP_OK
                : keys_bad(k, key, err, "must be a list of 1 to %d numbers %.10g..%.10g",
                           GENERATED_VALUES, min, max);
}

static snap_status read_distances(generator_part *g, const keys *k, snap_err *err) {
    const char *texts[GENERATED_VALUES + 1];
    snap_status st = keys_texts(k, "distance", texts, GENERATED_VALUES, &g->n_distances, err);
    for (size_t i = 0; i < g->n_distances && st == SNAP_OK; i++) {
        int d = 0;
        while (name_distances[d] && strcmp(name_distances[d], texts[i]) != 0)
            d++;
        if (!name_distances[d])
            return keys_bad(k, "distance", err, "must be unlike, word or character");
        if (g->kind == LONGTEXT_LOOKUP && d == DISTANCE_WORD)
            return keys_bad(k, "distance", err, "of lookup must be unlike or character");
        g->distances[i] = (name_distance)d;
    }
    g->n_distances = g->n_distances ? g->n_distances : 1; /* DISTANCE_UNLIKE */
    return st;
}

/* Reads a whole number that only some kinds have. */
static snap_status read_part(const generator_part *g, const keys *k, const char *key,
                             unsigned kinds, int64_t min, int64_t max, int *out, snap_err *err) {
    int64_t value = *out;
    if (js_has(k->object, key) && !(kinds >> g->kind & 1))
        return keys_bad(k, key, err, "is not an option of this kind");
    snap_status st = keys_int(k, key, min, max, &value, err);
    *out = (int)value;
    return st;
}

#define KIND(k) (1U << (LONGTEXT_##k))
static const unsigned kCodes = KIND(NEEDLE) | KIND(LOOKUP);

static snap_status read_counts(generator_part *g, const keys *k, snap_err *err) {
    const unsigned all = ~0U, turns = 1U << GENERATED_TURNS;
    int most_keys = g->kind == LONGTEXT_ORDER ? 26 : g->kind == LONGTEXT_FREQUENT ? 5 : 400;
    bool few = g->kind == LONGTEXT_ORDER || g->kind == LONGTEXT_FREQUENT;
    snap_status st;
    g->keys = few ? 3 : 4;
    g->values = g->kind == LONGTEXT_COPY ? 12 : 1;
    g->queries = 1;
    g->hops = g->most = 4;
    g->turns = 8;
    TRY(read_part(g, k, "keys", all, g->kind == LONGTEXT_ORDER ? 2 : 1, most_keys, &g->keys, err));
    TRY(read_part(g, k, "values", kCodes | KIND(COPY), 1, 50, &g->values, err));
    TRY(read_part(g, k, "queries", kCodes, 1, 50, &g->queries, err));
    TRY(read_part(g, k, "hops", KIND(VARIABLES), 0, 50, &g->hops, err));
    TRY(read_part(g, k, "most", KIND(COUNT), 1, 200, &g->most, err));
    TRY(read_part(g, k, "turns", turns, 1, CONVERSATION_TURNS, &g->turns, err));
    if (g->queries > g->keys)
        TRY(keys_bad(k, "queries", err, "must be at most 'keys', which is %d", g->keys));
    if (g->values * g->keys > NAMES_MOST || (g->hops + 1) * g->keys > NAMES_MOST)
        TRY(keys_bad(k, "keys", err, "asks for more than %d names or values", NAMES_MOST));
cleanup:
    return st;
}

snap_status read_generator(task_file *f, const keys *k, snap_err *err) {
    static const char *const known[] = {"kind",     "lengths", "depths", "items", "seed",
                                        "distance", "keys",    "values", "hops",  "most",
                                        "queries",  "turns",   NULL};
    static const char *const kinds[] = {"needle", "lookup", "variables", "count", "frequent",
                                        "order",  "copy",   "turns",     NULL};
    generator_part *g = &f->generator;
    int64_t seed = 1, items = 1;
    int kind;
    keys sub;
    snap_status st;
    TRY(keys_object(k, "generator", &sub, &g->given, err));
    if (!g->given)
        goto cleanup;
    TRY(keys_check(&sub, known, err));
    TRY(keys_word(&sub, "kind", kinds, &kind, err));
    if (kind < 0)
        TRY(keys_bad(&sub, NULL, err, "needs a 'kind'"));
    g->kind = kind;
    TRY(read_distances(g, &sub, err));
    TRY(read_counts(g, &sub, err));
    TRY(read_numbers(&sub, "lengths", LONGTEXT_SHORTEST, LONGTEXT_LONGEST, g->lengths,
                     &g->n_lengths, err));
    if (!g->n_lengths)
        TRY(keys_bad(&sub, NULL, err, "needs 'lengths', a list of numbers of tokens"));
    g->has_depth = kind < GENERATED_TURNS && longtext_has_depth((longtext_kind)kind);
    if (js_has(sub.object, "depths") && !g->has_depth)
        TRY(keys_bad(&sub, "depths", err, "is not an option of this kind"));
    memcpy(g->depths, (const double[]){0, 0.25, 0.5, 0.75, 1}, 5 * sizeof *g->depths);
    g->n_depths = g->has_depth ? 5 : 1;
    TRY(read_numbers(&sub, "depths", 0, 1, g->depths, &g->n_depths, err));
    TRY(keys_int(&sub, "items", 1, 10000, &items, err));
    TRY(keys_int(&sub, "seed", 0, (int64_t)1 << 53, &seed, err));
    g->items = (int)items;
    g->seed = (uint64_t)seed;
    f->spec.generated = true;
cleanup:
    return st;
}

/* ---- making the rows of a set ---- */

/* A set while its rows are made. Its lengths are those of the user, or else those of the task
 * file. */
typedef struct {
    const generator_part *g;
    task_rows *rows;
    double lengths[GENERATED_VALUES];
    size_t n_lengths;
    tokenizer *tokenizer;
    token_counter counter;
} generation;

static snap_status take_length(void *ctx, const char *text, snap_err *err) {
    generation *m = ctx;
    int64_t length;
    if (!text_to_int(text, &length) || length < LONGTEXT_SHORTEST || length > LONGTEXT_LONGEST)
        return err_set(err, SNAP_E_USAGE, "--lengths: '%.40s' must be a number of tokens %d..%d",
                       text, LONGTEXT_SHORTEST, LONGTEXT_LONGEST);
    if (m->n_lengths == GENERATED_VALUES)
        return err_set(err, SNAP_E_USAGE, "--lengths: more than %d lengths", GENERATED_VALUES);
    m->lengths[m->n_lengths++] = (double)length;
    return SNAP_OK;
}

static snap_status choose_lengths(generation *m, snap_err *err) {
    const char *asked = m->rows->options->lengths;
    if (asked)
        return text_split(asked, ',', "--lengths", take_length, m, err);
    memcpy(m->lengths, m->g->lengths, sizeof m->lengths);
    m->n_lengths = m->g->n_lengths;
    return SNAP_OK;
}

static snap_status open_counter(generation *m, snap_err *err) {
    const task_options *o = m->rows->options;
    snap_status st = SNAP_OK;
    m->counter.chars_per_token = o->chars_per_token > 0 ? o->chars_per_token : kCharsPerToken;
    if (!o->tokenizer || o->chars_per_token > 0)
        return SNAP_OK;
    TRY(tokenizer_open(&m->tokenizer, o->tokenizer, err));
    TRY(tok_encoder_create(&m->counter.encoder, m->tokenizer, err));
cleanup:
    return st;
}

/* The digest of the set is that of all that determines its texts. The tokenizer determines them
 * only through the lengths that it counts, so the digest of the prompts shows whether it was the
 * same. */
static snap_status hash_recipe(const generation *m, snap_err *err) {
    const generator_part *g = m->g;
    buf text = {0};
    (void)buf_printf(&text, "%s kind %d keys %d values %d queries %d hops %d most %d turns %d ",
                     kVersion, g->kind, g->keys, g->values, g->queries, g->hops, g->most, g->turns);
    (void)buf_printf(&text, "items %d seed %llu chars %.17g", g->items, (unsigned long long)g->seed,
                     m->counter.encoder ? 0 : m->counter.chars_per_token);
    for (size_t i = 0; i < m->n_lengths; i++)
        (void)buf_printf(&text, " length %.17g", m->lengths[i]);
    for (size_t i = 0; i < g->n_depths; i++)
        (void)buf_printf(&text, " depth %.17g", g->depths[i]);
    for (size_t i = 0; i < g->n_distances; i++)
        (void)buf_printf(&text, " distance %d", (int)g->distances[i]);
    snap_status st = buf_check(&text, "a set", err);
    if (st == SNAP_OK)
        st = hash_bytes(text.data, text.len, m->rows->set->sha256, err);
    buf_release(&text);
    return st;
}

/* One item of the set. */
typedef struct {
    double length, depth;
    name_distance distance;
    char id[120];
} item;

static snap_status add_row(generation *m, js *row, bool complete, const char *id, snap_err *err) {
    char where[200];
    (void)snprintf(where, sizeof where, "%.60s (generated), problem %.100s",
                   m->rows->set->task->name, id);
    if (!complete)
        return err_set(err, SNAP_E_NOMEM, "%s: out of memory", where);
    return file_add_row(m->rows, row, where, err);
}

static js *start_row(const item *it, const char *id, int64_t tokens) {
    js *row = js_new_object();
    bool ok = row && js_set_str(row, "id", id) && js_set_int(row, "length", (int64_t)it->length) &&
              js_set_int(row, "tokens", tokens) &&
              js_set_str(row, "distance", name_distances[it->distance]);
    if (ok)
        return row;
    js_free(row);
    return NULL;
}

static snap_status make_text(generation *m, const item *it, snap_err *err) {
    const generator_part *g = m->g;
    const longtext_options o = {.kind = (longtext_kind)g->kind,
                                .length = (int64_t)it->length,
                                .depth = it->depth,
                                .distance = it->distance,
                                .keys = g->keys,
                                .values = g->values,
                                .queries = g->queries,
                                .hops = g->hops,
                                .most = g->most};
    longtext t = {0};
    snap_status st = longtext_make(&o, g->seed, it->id, &m->counter, &t, err);
    js *row = st == SNAP_OK ? start_row(it, it->id, t.tokens) : NULL;
    if (st != SNAP_OK) {
        err_prefix(err, "task '%s', problem %s", m->rows->set->task->name, it->id);
    } else {
        bool ok = row && (!g->has_depth || js_set_num(row, "depth", it->depth)) &&
                  js_set_str(row, "document", buf_str(&t.document)) &&
                  js_set_str(row, "question", buf_str(&t.question)) &&
                  js_set_str(row, "answer", buf_str(&t.answer));
        st = add_row(m, row, ok, it->id, err);
    }
    js_free(row);
    longtext_release(&t);
    return st;
}

/* Adds {"role", "content"} to a list. */
static bool push_message(js *list, const char *role, const char *content) {
    js *m = js_new_object();
    bool ok = m && js_set_str(m, "role", role) && js_set_str(m, "content", content);
    return js_push_new(list, m) && ok;
}

/* The messages before turn @turn, with the right answers. */
static js *history_of(const conversation *c, int turn) {
    js *list = js_new_array();
    char answer[64];
    bool ok = list != NULL;
    for (int i = 0; i < turn && ok; i++) {
        (void)snprintf(answer, sizeof answer, "%s%s", conversation_answer, c->turns[i].answer);
        ok = push_message(list, "user", c->turns[i].question) &&
             push_message(list, "assistant", answer);
    }
    if (ok)
        return list;
    js_free(list);
    return NULL;
}

static snap_status make_turn(generation *m, const item *it, const conversation *c, int turn,
                             snap_err *err) {
    char id[140];
    (void)snprintf(id, sizeof id, "%s-t%02d", it->id, turn + 1);
    js *row = start_row(it, id, c->tokens);
    bool ok = row && js_set_str(row, "conversation", it->id) && js_set_int(row, "turn", turn + 1) &&
              js_set_int(row, "age", c->turns[turn].age) &&
              js_set_str(row, "document", c->document) &&
              js_set_str(row, "instruction", c->instruction) &&
              js_set_str(row, "question", c->turns[turn].question) &&
              js_set_str(row, "answer", c->turns[turn].answer) &&
              js_set_new(row, "history", history_of(c, turn));
    snap_status st = add_row(m, row, ok, id, err);
    js_free(row);
    return st;
}

static snap_status make_conversation(generation *m, const item *it, snap_err *err) {
    const generator_part *g = m->g;
    const conversation_options o = {.length = (int64_t)it->length,
                                    .turns = g->turns,
                                    .keys = g->keys,
                                    .distance = it->distance};
    arena mem = {0};
    conversation *c = arena_alloc(&mem, 1, sizeof *c);
    if (!c)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a conversation");
    snap_status st = conversation_make(&o, g->seed, it->id, &m->counter, &mem, c, err);
    if (st != SNAP_OK)
        err_prefix(err, "task '%s', problem %s", m->rows->set->task->name, it->id);
    for (int turn = 0; turn < g->turns && st == SNAP_OK; turn++)
        st = make_turn(m, it, c, turn, err);
    arena_release(&mem);
    return st;
}

static snap_status make_item(generation *m, item it, int number, snap_err *err) {
    char depth[24] = "";
    if (m->g->has_depth)
        (void)snprintf(depth, sizeof depth, "-at%g", it.depth);
    (void)snprintf(it.id, sizeof it.id, "%lld%s-%s-%d", (long long)it.length, depth,
                   name_distances[it.distance], number);
    const task_rows *r = m->rows;
    if (r->limit && r->set->n >= r->limit)
        return SNAP_OK;
    return m->g->kind == GENERATED_TURNS ? make_conversation(m, &it, err) : make_text(m, &it, err);
}

/* The first items of all lengths, depths and distances come first, so that --limit takes some of
 * each. */
static snap_status make_all(generation *m, snap_err *err) {
    const generator_part *g = m->g;
    snap_status st = SNAP_OK;
    size_t cells = m->n_lengths * g->n_depths * g->n_distances;
    for (int number = 1; number <= g->items; number++)
        for (size_t i = 0; i < cells && st == SNAP_OK; i++) {
            const item it = {.length = m->lengths[i % m->n_lengths],
                             .depth = g->depths[i / m->n_lengths % g->n_depths],
                             .distance = g->distances[i / m->n_lengths / g->n_depths]};
            st = make_item(m, it, number, err);
        }
    return st;
}

snap_status generated_load(task_rows *r, snap_err *err) {
    generation m = {.g = &file_of(r)->generator, .rows = r};
    snap_status st;
    TRY(choose_lengths(&m, err));
    TRY(open_counter(&m, err));
    TRY(hash_recipe(&m, err));
    TRY(make_all(&m, err));
cleanup:
    tok_encoder_free(m.counter.encoder);
    tokenizer_free(m.tokenizer);
    return st;
}
