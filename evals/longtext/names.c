#include "evals/longtext/names.h"

#include <stdio.h>
#include <string.h>

const char *const name_distances[] = {"unlike", "word", "character", NULL};

/* None of these words is in the filler. */
static const char *const kFirst[] = {
    "amber",   "linen",  "copper",  "silver",    "violet",  "scarlet", "ivory", "cobalt",
    "maple",   "velvet", "marble",  "indigo",    "crimson", "golden",  "jade",  "pearl",
    "saffron", "cedar",  "granite", "turquoise", "bronze",  "lilac",   "ebony", "coral",
    "emerald", "ruby",   "walnut",  "slate",     "quartz",  "olive",   "satin", "flint"};
static const char *const kSecond[] = {
    "falcon", "otter",  "badger",  "heron",  "lynx",   "salmon", "beetle",  "raven",
    "walrus", "gecko",  "bison",   "marten", "osprey", "turtle", "panther", "cricket",
    "donkey", "weasel", "pelican", "hornet", "jackal", "magpie", "seal",    "ibex",
    "finch",  "toad",   "camel",   "moth",   "stork",  "viper",  "mule",    "crane"};
enum { kWords = 32, kCode = 6, kTries = 10000 };
static const char kLetters[] = "BCDFGHJKLMNPQRSTVWXZ";

bool names_have(const text_name *names, size_t n, const char *text) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i].text, text) == 0)
            return true;
    return false;
}

static void name_pair(rng *r, text_name *out) {
    const char *first = kFirst[rng_below(r, kWords)];
    (void)snprintf(out->text, sizeof out->text, "%s %s", first, kSecond[rng_below(r, kWords)]);
}

void name_code(rng *r, text_name *out) {
    for (int i = 0; i < kCode; i++)
        out->text[i] = kLetters[rng_below(r, sizeof kLetters - 1)];
    out->text[kCode] = '\0';
}

/* True if two names of two words have a word in common. */
static bool shares_word(const char *a, const char *b) {
    size_t n = strcspn(a, " "), m = strcspn(b, " ");
    return (n == m && strncmp(a, b, n) == 0) || strcmp(a + n, b + m) == 0;
}

static bool near_one(const text_name *names, size_t n, const char *text) {
    for (size_t i = 0; i < n; i++)
        if (shares_word(names[i].text, text))
            return true;
    return false;
}

static void draw_word(rng *r, const text_name *asked, text_name *out) {
    size_t n = strcspn(asked->text, " ");
    if (rng_below(r, 2))
        (void)snprintf(out->text, sizeof out->text, "%.*s %s", (int)n, asked->text,
                       kSecond[rng_below(r, kWords)]);
    else
        (void)snprintf(out->text, sizeof out->text, "%s%s", kFirst[rng_below(r, kWords)],
                       asked->text + n);
}

static void draw_character(rng *r, const text_name *asked, text_name *out) {
    *out = *asked;
    out->text[rng_below(r, kCode)] = kLetters[rng_below(r, sizeof kLetters - 1)];
}

static void draw_one(name_distance distance, rng *r, const text_name *all, size_t i, size_t asked,
                     text_name *out) {
    bool distractor = asked > 0 && i >= asked;
    if (distance == DISTANCE_CHARACTER && distractor)
        draw_character(r, &all[i % asked], out);
    else if (distance == DISTANCE_CHARACTER)
        name_code(r, out);
    else if (distance == DISTANCE_WORD && distractor)
        draw_word(r, &all[i % asked], out);
    else
        name_pair(r, out);
}

/* True if @text may be name @i. Names to ask for share no word with each other. With
 * DISTANCE_UNLIKE, distractors share no word with them, either. With DISTANCE_CHARACTER, names need
 * only be distinct. */
static bool fits(name_distance distance, const text_name *all, size_t i, size_t asked,
                 const char *text) {
    if (names_have(all, i, text))
        return false;
    bool apart = distance != DISTANCE_CHARACTER && (i < asked || distance == DISTANCE_UNLIKE);
    return !apart || !near_one(all, i < asked ? i : asked, text);
}

snap_status names_draw(name_distance distance, rng *r, text_name *out, size_t n, size_t asked,
                       snap_err *err) {
    for (size_t i = 0; i < n; i++) {
        int tries = 0;
        do
            draw_one(distance, r, out, i, asked, &out[i]);
        while (!fits(distance, out, i, asked, out[i].text) && ++tries < kTries);
        if (tries == kTries)
            return err_set(err, SNAP_E_INPUT,
                           "there are fewer than %zu names at the distance '%s' from %zu names", n,
                           name_distances[distance], asked);
    }
    return SNAP_OK;
}

void codes_draw(rng *r, text_name *out, size_t n) {
    for (size_t i = 0; i < n; i++)
        do
            name_code(r, &out[i]);
        while (names_have(out, i, out[i].text));
}

void values_draw(rng *r, text_name *out, size_t n) {
    for (size_t i = 0; i < n; i++)
        do
            (void)snprintf(out[i].text, sizeof out[i].text, "%u", 100000 + rng_below(r, 900000));
        while (names_have(out, i, out[i].text));
}
