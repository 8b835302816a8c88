#include "evals/longtext/training.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "evals/longtext/conversation.h"

const char *const training_kinds[] = {"needle", "lookup", "variables", "count", "frequent",
                                      "order",  "copy",   "turns",     NULL};

/* ---- options by chance ---- */

static int between(rng *r, int low, int high) {
    return low >= high ? low : low + (int)rng_below(r, (uint32_t)(high - low + 1));
}

/* Draws a number in low..high. Each number of binary digits is about equally likely, so small
 * numbers are drawn as often as large ones. */
static int few_or_many(rng *r, int low, int high) {
    int bits = 0;
    while (low << (bits + 1) <= high)
        bits++;
    int from = low << between(r, 0, bits);
    return between(r, from, from * 2 - 1 < high ? from * 2 - 1 : high);
}

/* The largest number of things, from 1 to @most, whose statements fill at most half of the text.
 * @chars: of the statements of one thing. */
static int most_keys(const training_options *o, int chars, int most) {
    double fit = (double)o->length * o->chars_per_token / 2 / chars;
    return fit < 1 ? 1 : fit > most ? most : (int)fit;
}

static void draw_codes(const training_options *o, rng *r, longtext_options *t) {
    int chars = o->kind == LONGTEXT_NEEDLE ? 55 : 16;
    t->values = rng_below(r, 3) ? 1 : between(r, 2, 4);
    t->keys = few_or_many(r, 1, most_keys(o, chars * t->values, 40));
    t->queries = rng_below(r, 3) ? 1 : between(r, 1, t->keys < 4 ? t->keys : 4);
}

static longtext_options draw_options(const training_options *o, rng *r) {
    longtext_options t = {.kind = (longtext_kind)o->kind,
                          .length = o->length,
                          .depth = rng_uniform(r),
                          .distance = (name_distance)rng_below(r, 3),
                          .keys = 3,
                          .values = 1,
                          .queries = 1,
                          .split = o->split,
                          .questions = o->questions};
    switch (t.kind) {
    case LONGTEXT_LOOKUP:
        t.distance = t.distance == DISTANCE_WORD ? DISTANCE_CHARACTER : t.distance;
        draw_codes(o, r, &t);
        break;
    case LONGTEXT_NEEDLE:
        draw_codes(o, r, &t);
        break;
    case LONGTEXT_VARIABLES:
        t.hops = between(r, 0, 4);
        t.keys = few_or_many(r, 1, most_keys(o, 45 * (t.hops + 1), 10));
        break;
    case LONGTEXT_COUNT:
        t.keys = few_or_many(r, 1, most_keys(o, 120, 6));
        t.most = between(r, 2, most_keys(o, 40 * t.keys, 12) + 1);
        break;
    case LONGTEXT_ORDER:
        t.keys = between(r, 2, most_keys(o, 60, 6) + 1);
        break;
    case LONGTEXT_COPY:
        t.values = between(r, 2, 14);
        t.keys = few_or_many(r, 1, most_keys(o, 40 + 9 * t.values, 10));
        break;
    case LONGTEXT_FREQUENT:
        break;
    }
    return t;
}

/* ---- chats ---- */

static bool push_message(js *list, const char *role, const char *content) {
    js *m = js_new_object();
    bool ok = m && js_set_str(m, "role", role) && js_set_str(m, "content", content);
    return js_push_new(list, m) && ok;
}

/* Adds a message with a document, two line ends and what is asked for, as the templates of the task
 * files join them. */
static bool push_document(js *list, const char *role, const char *text_above, const char *rest) {
    buf text = {0};
    (void)buf_printf(&text, "%s\n\n", text_above);
    (void)buf_puts(&text, rest);
    bool ok = !text.failed && push_message(list, role, buf_str(&text));
    buf_release(&text);
    return ok;
}

static bool push_text(js *list, const longtext *t) {
    bool ok = push_document(list, "user", buf_str(&t->document), buf_str(&t->question)) &&
              push_message(list, "assistant", buf_str(&t->solution));
    for (int i = 0; i < t->n_further && ok; i++)
        ok = push_message(list, "user", buf_str(&t->further[i].question)) &&
             push_message(list, "assistant", buf_str(&t->further[i].solution));
    return ok;
}

static snap_status complete(bool ok, snap_err *err) {
    return ok ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for a chat");
}

static snap_status make_text(const training_options *o, uint64_t seed, const char *id, rng *r,
                             js *list, snap_err *err) {
    const token_counter counter = {NULL, o->chars_per_token};
    const longtext_options options = draw_options(o, r);
    longtext t = {0};
    snap_status st = longtext_make(&options, seed, id, &counter, &t, err);
    if (st == SNAP_OK)
        st = complete(push_text(list, &t), err);
    longtext_release(&t);
    return st;
}

static bool push_turns(js *list, const conversation *c, int turns) {
    bool ok = push_document(list, "system", c->document, c->instruction);
    for (int i = 0; i < turns && ok; i++) {
        char answer[64];
        (void)snprintf(answer, sizeof answer, "%s%s", conversation_answer, c->turns[i].answer);
        ok = push_message(list, "user", c->turns[i].question) &&
             push_message(list, "assistant", answer);
    }
    return ok;
}

static snap_status make_turns(const training_options *o, uint64_t seed, const char *id, rng *r,
                              js *list, snap_err *err) {
    const token_counter counter = {NULL, o->chars_per_token};
    conversation_options options = {.length = o->length,
                                    .turns = between(r, 1, o->questions + 1),
                                    .keys = few_or_many(r, 2, most_keys(o, 60, 12)),
                                    .distance = (name_distance)rng_below(r, 3),
                                    .split = o->split};
    options.turns = options.turns < CONVERSATION_TURNS ? options.turns : CONVERSATION_TURNS;
    arena mem = {0};
    conversation *c = arena_alloc(&mem, 1, sizeof *c);
    if (!c)
        return complete(false, err);
    snap_status st = conversation_make(&options, seed, id, &counter, &mem, c, err);
    if (st == SNAP_OK)
        st = complete(push_turns(list, c, options.turns), err);
    arena_release(&mem);
    return st;
}

/* Options for which the length is too small are drawn again. */
static snap_status make_messages(const training_options *o, uint64_t seed, const char *id,
                                 js **messages, snap_err *err) {
    enum { kAttempts = 16 };
    rng r = rng_make(seed, rng_stream_of(id));
    snap_status st = SNAP_E_INPUT;
    for (int i = 0; i < kAttempts && st == SNAP_E_INPUT; i++) {
        js_free(*messages);
        *err = (snap_err){0};
        *messages = js_new_array();
        st = complete(*messages != NULL, err);
        if (st == SNAP_OK)
            st = (o->kind == TRAINING_TURNS ? make_turns : make_text)(o, seed, id, &r, *messages,
                                                                      err);
    }
    return st;
}

snap_status training_chat(const training_options *o, uint64_t seed, int64_t number, buf *out,
                          snap_err *err) {
    char id[80];
    js *row = js_new_object(), *messages = NULL;
    (void)snprintf(id, sizeof id, "%s-%lld-%s-%lld", training_kinds[o->kind], (long long)o->length,
                   o->split == LONGTEXT_TRAIN ? "train" : "heldout", (long long)number);
    snap_status st = complete(row != NULL, err);
    if (st == SNAP_OK)
        st = make_messages(o, seed, id, &messages, err);
    if (st == SNAP_OK) {
        bool ok = js_set_str(row, "id", id) && js_set_int(row, "level", o->length) &&
                  js_set_str(row, "family", training_kinds[o->kind]) &&
                  js_set_new(row, "messages", messages);
        messages = NULL;
        st = complete(ok, err);
        if (st == SNAP_OK)
            st = js_write(row, JS_COMPACT, out, err);
        (void)buf_puts(out, "\n");
    } else {
        err_prefix(err, "chat %s", id);
    }
    js_free(messages);
    js_free(row);
    return st == SNAP_OK ? buf_check(out, "chats", err) : st;
}
