#include "base/nearest.h"

#include <stdio.h>
#include <string.h>

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* The edit distance of optimal string alignment: no part is edited twice. */
static size_t distance(const char *a, size_t n, const char *b, size_t m) {
    size_t rows[3][NEAREST_MAX + 1];
    for (size_t j = 0; j <= m; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t *now = rows[i % 3], *last = rows[(i + 2) % 3], *older = rows[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= m; j++) {
            now[j] = least(last[j] + 1, now[j - 1] + 1);
            now[j] = least(now[j], last[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = least(now[j], older[j - 2] + 1);
        }
    }
    return rows[n % 3][m];
}

const char *nearest_name(const char *word, const char *const *names) {
    size_t n = strlen(word), best = n / 3 > 1 ? n / 3 : 1;
    const char *found = NULL;
    if (n < 2 || n > NEAREST_MAX)
        return NULL;
    for (; *names; names++) {
        size_t m = strlen(*names);
        size_t d = m <= NEAREST_MAX ? distance(word, n, *names, m) : best + 1;
        if (d > best || (found && d == best))
            continue;
        found = *names;
        best = d;
    }
    return found;
}

const char *nearest_hint(const char *word, const char *const *names, const char *prefix,
                         char out[NEAREST_HINT]) {
    const char *name = nearest_name(word, names);
    out[0] = '\0';
    if (name)
        (void)snprintf(out, NEAREST_HINT, " (did you mean '%s%s'?)", prefix, name);
    return out;
}
