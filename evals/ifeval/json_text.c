#include "evals/ifeval/json_text.h"

#include <string.h>

enum { kLevels = 900 };

typedef struct {
    const char *at, *end;
    int level;
} reader;

static bool value(reader *r);

static void space(reader *r) {
    while (r->at < r->end && *r->at && strchr(" \t\n\r", *r->at))
        r->at++;
}

static bool take(reader *r, const char *word) {
    size_t n = strlen(word);
    if ((size_t)(r->end - r->at) < n || memcmp(r->at, word, n) != 0)
        return false;
    r->at += n;
    return true;
}

static bool is_digit(const reader *r) {
    return r->at < r->end && *r->at >= '0' && *r->at <= '9';
}

static bool digits(reader *r) {
    bool some = is_digit(r);
    while (is_digit(r))
        r->at++;
    return some;
}

static bool number(reader *r) {
    (void)take(r, "-");
    if (!take(r, "0") && !digits(r))
        return false;
    if (take(r, ".") && !digits(r))
        return false;
    if (!take(r, "e") && !take(r, "E"))
        return true;
    (void)(take(r, "+") || take(r, "-"));
    return digits(r);
}

static bool escape(reader *r) {
    if (!take(r, "u")) {
        bool known = r->at < r->end && *r->at && strchr("\"\\/bfnrt", *r->at);
        r->at += known;
        return known;
    }
    for (int i = 0; i < 4; i++, r->at++)
        if (r->at == r->end || !*r->at || !strchr("0123456789abcdefABCDEF", *r->at))
            return false;
    return true;
}

static bool string(reader *r) {
    if (!take(r, "\""))
        return false;
    while (r->at < r->end) {
        char c = *r->at++;
        if (c == '"')
            return true;
        if ((unsigned char)c < ' ' || (c == '\\' && !escape(r)))
            return false;
    }
    return false;
}

static bool member(reader *r, bool keyed) {
    space(r);
    if (keyed) {
        if (!string(r))
            return false;
        space(r);
        if (!take(r, ":"))
            return false;
    }
    return value(r);
}

/* Reads members up to and including the closing bracket. */
static bool members(reader *r, const char *close, bool keyed) {
    space(r);
    if (take(r, close))
        return true;
    do {
        if (!member(r, keyed))
            return false;
    } while (take(r, ","));
    return take(r, close);
}

/* Reads a value and the white space around it. */
static bool value(reader *r) {
    static const char *const words[] = {"true", "false", "null", "NaN", "Infinity", "-Infinity"};
    bool good = false;
    if (r->level == kLevels)
        return false;
    r->level++;
    space(r);
    for (size_t i = 0; i < sizeof words / sizeof *words && !good; i++)
        good = take(r, words[i]);
    if (!good && take(r, "{"))
        good = members(r, "}", true);
    else if (!good && take(r, "["))
        good = members(r, "]", false);
    else if (!good)
        good = r->at < r->end && *r->at == '"' ? string(r) : number(r);
    space(r);
    r->level--;
    return good;
}

bool json_text_valid(span text) {
    reader r = {.at = text.s, .end = text.s + text.n};
    return value(&r) && r.at == r.end;
}
