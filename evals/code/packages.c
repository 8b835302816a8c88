#include "evals/code/packages.h"

#include <string.h>

static const char *const names[] = {"numpy", "scipy", "sympy"};
enum { kNames = sizeof names / sizeof *names };

package_set packages_all(void) {
    return (1u << kNames) - 1;
}

static package_set package_of(span name) {
    for (unsigned i = 0; i < kNames; i++)
        if (name.n == strlen(names[i]) && memcmp(name.s, names[i], name.n) == 0)
            return 1u << i;
    return 0;
}

package_set packages_named(span text) {
    static pattern word = {.regex = "[A-Za-z_]\\w*+"};
    span found[PATTERN_GROUPS];
    package_set set = 0;
    for (size_t at = 0; at <= text.n && pattern_find(&word, text, at, found);) {
        set |= package_of(found[0]);
        at = (size_t)(found[0].s - text.s) + found[0].n;
    }
    return set;
}

package_set packages_not_found(span errors) {
    static pattern message = {.regex = "No module named '([A-Za-z_]\\w*+)"};
    span found[PATTERN_GROUPS];
    package_set set = 0;
    for (size_t at = 0; at < errors.n && pattern_find(&message, errors, at, found);) {
        set |= package_of(found[1]);
        at = (size_t)(found[0].s - errors.s) + found[0].n;
    }
    return set;
}

void packages_append(package_set set, const char *prefix, const char *between, buf *out) {
    const char *before = "";
    for (unsigned i = 0; i < kNames; i++)
        if (set & 1u << i) {
            (void)buf_printf(out, "%s%s%s", before, prefix, names[i]);
            before = between;
        }
}
