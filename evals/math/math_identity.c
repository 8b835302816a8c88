/* Names of matrices, for MATH_TRUTH: -2I for a multiple of the identity matrix, \mathbf{0} for a
 * matrix of zeros. */
#include <string.h>

#include "evals/math/math_rewriter.h"
#include "evals/math/math_wording.h"
#include "evals/pattern.h"

enum { kMaxSide = 6 };

/* Counts the rows and columns of a matrix in LaTeX. False if it is none, or too large. */
static bool count_cells(const char *g, size_t n, size_t *rows, size_t *columns) {
    static pattern matrix = {
        .regex = "(?s)^[\\s$]*\\\\begin\\{[pb]?matrix\\}((?:(?!\\\\begin|\\\\end).)*)"
                 "\\\\end\\{[pb]?matrix\\}[\\s$.]*$"};
    span groups[PATTERN_GROUPS];
    if (!pattern_find(&matrix, (span){g, n}, 0, groups))
        return false;
    const char *s = groups[1].s, *end = s + groups[1].n;
    while (end > s && is_space(end[-1]))
        end--;
    if (end - s > 2 && memcmp(end - 2, "\\\\", 2) == 0)
        end -= 2; /* a row separator after the last row */
    *rows = *columns = 1;
    for (; s < end; s++) {
        bool row = end - s > 1 && s[0] == '\\' && s[1] == '\\';
        *rows += row;
        *columns += *rows == 1 && *s == '&';
        s += row;
    }
    return *rows <= kMaxSide && *columns <= kMaxSide;
}

/* Writes a matrix with @diagonal on its diagonal and zeros elsewhere. */
static void put_matrix(rewriter *r, size_t rows, size_t columns, span sign, span diagonal) {
    puts_to(r, "\\begin{pmatrix}");
    for (size_t i = 0; i < rows; i++) {
        puts_to(r, i ? "\\\\" : "");
        for (size_t k = 0; k < columns; k++) {
            puts_to(r, k ? "&" : "");
            if (i != k) {
                puts_to(r, "0");
                continue;
            }
            put(r, sign.s, sign.n);
            put(r, diagonal.s, diagonal.n);
        }
    }
    puts_to(r, "\\end{pmatrix}");
}

bool math_read_matrix_name(const char *g, size_t gn, const char *s, size_t n, char *out, size_t cap,
                           size_t *len) {
    static pattern identity = {
        .regex = "^[\\s$]*(?:(?:\\\\mathbf\\{)?[A-HJ-Z]\\}?\\s*=\\s*)?(-?)\\s*"
                 "([0-9]*|\\\\[dt]?frac\\{?[0-9]+\\}?\\{?[0-9]+\\}?)[\\s,\\\\]*"
                 "(?:I|\\\\(?:mathbf|mathrm|mathbb|boldsymbol|text|bf)\\s*\\{?\\s*I\\s*\\}?)"
                 "(?:_\\{?([1-6])(?:\\s*\\\\times\\s*[1-6])?\\}?)?[\\s$.]*$"};
    static pattern zero = {
        .regex = "^[\\s$]*\\\\(?:mathbf|boldsymbol|vec|bf|overrightarrow|bm)\\s*\\{?\\s*0\\s*\\}?"
                 "[\\s$.]*$"};
    span groups[PATTERN_GROUPS], one = {"1", 1};
    size_t rows, columns;
    rewriter r = {.begin = s, .s = s, .end = s + n, .out = out, .cap = cap};
    if (!count_cells(g, gn, &rows, &columns))
        return false;
    if (pattern_find(&zero, (span){s, n}, 0, NULL)) {
        put_matrix(&r, rows, columns, (span){"", 0}, (span){"0", 1});
    } else {
        if (rows != columns || !pattern_find(&identity, (span){s, n}, 0, groups) ||
            (groups[3].n && (size_t)(*groups[3].s - '0') != rows))
            return false;
        put_matrix(&r, rows, columns, groups[1], groups[2].n ? groups[2] : one);
    }
    *len = r.used;
    return !r.full;
}
