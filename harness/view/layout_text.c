#include "harness/view/layout_text.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { kSizeMax = 10000 };

/* Reads @name, such as "DP", and a number. Moves *@at past them and a slash. Returns whether the
 * part was there. */
static bool read_part(const char **at, const char *name, int *out) {
    const char *s = *at;
    int n = 0;
    if (strncmp(s, name, 2) != 0 || s[2] < '1' || s[2] > '9')
        return false;
    for (s += 2; *s >= '0' && *s <= '9' && n < kSizeMax; s++)
        n = 10 * n + (*s - '0');
    if ((*s && *s != '/') || n > kSizeMax)
        return false;
    *at = *s ? s + 1 : s;
    *out = n;
    return true;
}

layout_sizes layout_read(const char *text) {
    layout_sizes l = {.dp = 1, .tp = 1};
    const char *at = text;
    bool dp = read_part(&at, "DP", &l.dp), tp = read_part(&at, "TP", &l.tp);
    if (read_part(&at, "EP", &l.ep) && !dp && !tp)
        l.dp = l.ep;
    l.gpus = l.dp * l.tp;
    return *at ? (layout_sizes){0} : l;
}

static int by_size(int a, int b) {
    return (a > b) - (a < b);
}

int layout_compare(const layout_sizes *a, const layout_sizes *b) {
    int d = by_size(a->gpus, b->gpus);
    d = d ? d : by_size(a->tp, b->tp);
    return d ? d : by_size(a->ep, b->ep);
}

const char *layout_short(const char *text, char out[LAYOUT_SHORT_MAX]) {
    const layout_sizes l = layout_read(text);
    const struct {
        const char *name;
        int size;
    } parts[] = {{"DP", l.dp}, {"TP", l.tp}, {"EP", l.ep}};
    size_t n = 0;
    if (!l.gpus)
        return text;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].size > 1)
            n += (size_t)snprintf(out + n, LAYOUT_SHORT_MAX - n, "%s%s%d", n ? "/" : "",
                                  parts[i].name, parts[i].size);
    if (!n)
        (void)snprintf(out, LAYOUT_SHORT_MAX, "1 GPU");
    return out;
}
