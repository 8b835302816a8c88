#include "base/json_line.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    const char *s, *end;
    long line;
} scan;

static bool at(scan *c, char wanted) {
    return c->s < c->end && *c->s == wanted;
}

static void step(scan *c) {
    c->line += *c->s == '\n';
    c->s++;
}

static void skip_space(scan *c) {
    while (c->s < c->end && (*c->s == ' ' || *c->s == '\t' || *c->s == '\r' || *c->s == '\n'))
        step(c);
}

/* Skips a string, with its quotes. */
static void skip_string(scan *c) {
    step(c);
    while (c->s < c->end && *c->s != '"') {
        if (*c->s == '\\' && c->s + 1 < c->end)
            step(c);
        step(c);
    }
    if (c->s < c->end)
        step(c);
}

/* Skips a value up to the comma or bracket that follows it. */
static void skip_value(scan *c) {
    for (size_t depth = 0; c->s < c->end;) {
        if (*c->s == '"') {
            skip_string(c);
            continue;
        }
        bool closes = *c->s == ']' || *c->s == '}';
        if (!depth && (closes || *c->s == ','))
            return;
        depth += *c->s == '[' || *c->s == '{';
        depth -= closes;
        step(c);
    }
}

/* Moves to the element whose index is @key. False if there is none. */
static bool enter_array(scan *c, const char *key) {
    char number[24];
    for (size_t i = 0; c->s < c->end && !at(c, ']'); i++) {
        skip_space(c);
        (void)snprintf(number, sizeof number, "%zu", i);
        if (strcmp(number, key) == 0)
            return !at(c, ']');
        skip_value(c);
        if (at(c, ','))
            step(c);
    }
    return false;
}

/* Moves to the value of a key. *line gets the line of the key. Returns false if the object does not
 * have the key. */
static bool enter_object(scan *c, const char *key, long *line) {
    size_t n = strlen(key);
    for (skip_space(c); c->s < c->end && at(c, '"'); skip_space(c)) {
        const char *name = c->s + 1;
        long here = c->line;
        skip_string(c);
        bool same = (size_t)(c->s - name) == n + 1 && memcmp(name, key, n) == 0;
        skip_space(c);
        if (at(c, ':'))
            step(c);
        skip_space(c);
        if (same) {
            *line = here;
            return true;
        }
        skip_value(c);
        if (at(c, ','))
            step(c);
    }
    return false;
}

long json_line(const char *text, size_t n, const char *const *path, size_t depth) {
    scan c = {text, text + n, 1};
    skip_space(&c);
    long line = c.line;
    for (size_t i = 0; i < depth; i++) {
        bool object = at(&c, '{');
        if (!object && !at(&c, '['))
            break;
        step(&c);
        if (object ? !enter_object(&c, path[i], &line) : !enter_array(&c, path[i]))
            break;
        if (!object)
            line = c.line;
        skip_space(&c);
    }
    return line;
}
