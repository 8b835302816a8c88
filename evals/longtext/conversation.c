#include "evals/longtext/conversation.h"

#include <stdio.h>
#include <string.h>

#include "base/fault.h"
#include "evals/longtext/filler.h"

const char conversation_answer[] = "Dispatch: ";
static const char kInstruction[] =
    "You keep the harbour's records. The text above says how many crates each ship carries at the "
    "start. Later messages may change that. Every answer of yours consists of one line: 'Dispatch: "
    "NUMBER', where NUMBER is the number of crates that the ship carries now.";

/* A conversation while it is made. */
typedef struct {
    const conversation_options *o;
    rng random;
    filler filler;
    arena *mem;
    document doc;
    text_name *ships; /* [o->keys] */
    int *crates;      /* [o->keys] how many crates each ship has now */
    int *stated;      /* [o->keys] the turn of the last statement; -1: the document */
    conversation *out;
} maker;

static void write_sentence(void *ctx, buf *out) {
    filler_sentence(ctx, out);
}

static bool is_taken(const maker *m, int n, int crates) {
    for (int i = 0; i < n; i++)
        if (m->crates[i] == crates)
            return true;
    return false;
}

/* A number of crates that none of the first @n ships has now. */
static int draw_crates(maker *m, int n) {
    enum { kLeast = 10, kMost = 9999 };
    int crates;
    do
        crates = kLeast + (int)rng_below(&m->random, kMost - kLeast + 1);
    while (is_taken(m, n, crates));
    return crates;
}

static snap_status state_start(maker *m, snap_err *err) {
    enum { kSteps = 1 << 20 };
    snap_status st = names_draw(m->o->distance, &m->random, m->ships, (size_t)m->o->keys, 1, err);
    m->doc.n = 0;
    for (int i = 0; i < m->o->keys && st == SNAP_OK; i++) {
        char text[200];
        double at = (double)rng_below(&m->random, kSteps + 1) / kSteps;
        m->crates[i] = draw_crates(m, i);
        m->stated[i] = -1;
        (void)snprintf(text, sizeof text, "The ship %s carries %d crates at the start.",
                       m->ships[i].text, m->crates[i]);
        st = document_add(&m->doc, at, text, err);
    }
    return st;
}

static snap_status find_split(const maker *m, longtext_split *out, snap_err *err) {
    buf names = {0}, numbers = {0};
    for (int i = 0; i < m->o->keys; i++) {
        (void)buf_printf(&names, "%s,", m->ships[i].text);
        (void)buf_printf(&numbers, "%d,", m->crates[i]);
    }
    snap_status st = buf_check(&names, "a conversation", err);
    if (st == SNAP_OK)
        st = buf_check(&numbers, "a conversation", err);
    *out = longtext_split_of(buf_str(&names), buf_str(&numbers));
    buf_release(&names);
    buf_release(&numbers);
    return st;
}

/* Draws the first state until it is of the wanted split. This ends, because there are very many
 * states and both splits are frequent. */
static snap_status draw_start(maker *m, snap_err *err) {
    longtext_split split;
    snap_status st;
    do {
        TRY(state_start(m, err));
        TRY(find_split(m, &split, err));
    } while (split != m->o->split);
cleanup:
    return st;
}

static snap_status keep(maker *m, const buf *text, const char **out, snap_err *err) {
    snap_status st = buf_check(text, "a conversation", err);
    if (st == SNAP_OK && !(*out = arena_strdup(m->mem, buf_str(text))))
        st = err_set(err, SNAP_E_NOMEM, "out of memory for a conversation");
    return st;
}

/* Chooses the ship that a question is about. In half of the cases it is one that was revised
 * before, if there is one, so that old values compete with the present one. */
static int choose_ship(maker *m) {
    int start = (int)rng_below(&m->random, (uint32_t)m->o->keys);
    if (rng_below(&m->random, 2))
        return start;
    for (int i = 0; i < m->o->keys; i++)
        if (m->stated[(start + i) % m->o->keys] >= 0)
            return (start + i) % m->o->keys;
    return start;
}

static snap_status add_turn(maker *m, int turn, snap_err *err) {
    conversation_turn *t = &m->out->turns[turn];
    char number[16];
    buf text = {0};
    if (rng_below(&m->random, 3)) {
        uint32_t ship = rng_below(&m->random, (uint32_t)m->o->keys);
        m->crates[ship] = draw_crates(m, m->o->keys);
        m->stated[ship] = turn;
        (void)buf_printf(&text, "The ship %s now carries %d crates. ", m->ships[ship].text,
                         m->crates[ship]);
    }
    int asked = choose_ship(m);
    (void)buf_printf(&text, "How many crates does the ship %s carry now?", m->ships[asked].text);
    (void)snprintf(number, sizeof number, "%d", m->crates[asked]);
    t->age = turn - m->stated[asked];
    t->answer = arena_strdup(m->mem, number);
    snap_status st = keep(m, &text, &t->question, err);
    if (st == SNAP_OK && !t->answer)
        st = err_set(err, SNAP_E_NOMEM, "out of memory for a conversation");
    buf_release(&text);
    return st;
}

static snap_status make(maker *m, const token_counter *counter, snap_err *err) {
    size_t keys = (size_t)m->o->keys;
    buf text = {0};
    snap_status st;
    m->ships = arena_alloc(m->mem, keys, sizeof *m->ships);
    m->crates = arena_alloc(m->mem, keys, sizeof *m->crates);
    m->stated = arena_alloc(m->mem, keys, sizeof *m->stated);
    if (!m->ships || !m->crates || !m->stated)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a conversation");
    TRY(draw_start(m, err));
    TRY(document_write(&m->doc, m->o->length, kInstruction, counter, &text, &m->out->tokens, err));
    TRY(keep(m, &text, &m->out->document, err));
    m->out->instruction = kInstruction;
    for (int i = 0; i < m->o->turns; i++)
        TRY(add_turn(m, i, err));
cleanup:
    buf_release(&text);
    return st;
}

snap_status conversation_make(const conversation_options *o, uint64_t seed, const char *name,
                              const token_counter *counter, arena *mem, conversation *out,
                              snap_err *err) {
    enum { kParagraph = 6 };
    fault_mark before = fault_begin();
    rng r = rng_make(seed, rng_stream_of(name));
    maker m = {.o = o, .mem = mem, .out = out};
    m.random = rng_make(rng_u64(&r), 0);
    m.filler.random = rng_make(rng_u64(&r), 0);
    m.doc = (document){.mem = mem,
                       .heading = "Notes on daily life",
                       .separator = ' ',
                       .paragraph = kParagraph,
                       .unit = write_sentence,
                       .ctx = &m.filler};
    return fault_result(before, make(&m, counter, err), err);
}
