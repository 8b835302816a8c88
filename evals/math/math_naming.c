/* Recognises left sides that only name a value, as in \varphi(100) = 40. MATH_TRUTH needs this. */
#include <string.h>

#include "evals/math/math_rewriter.h"
#include "evals/math/math_wording.h"
#include "evals/pattern.h"

#define NAME                                                                                       \
    "(?:(?<![A-Za-z])(?:sin|cos|tan|cot|sec|csc|ln|log)(?=[^A-Za-z])|"                             \
    "\\\\(?:varphi|phi|Phi|sigma|tau|omega|mu|zeta|Gamma|gcd|det|dim|ln|log|lg|sin|cos|tan|cot|"   \
    "sec|csc|arg|max|min|Re|Im|operatorname\\{[A-Za-z]+\\}|(?:text|mathrm)\\{[A-Za-z]+\\}))"
#define ARGUMENT                                                                                   \
    "(?:_\\{?[A-Za-z0-9]+\\}?|\\^\\{?[0-9]\\}?)?\\s*"                                              \
    "(?:\\(|\\\\left|\\{|\\[|[A-Za-z\\\\\x80-\xFF])[^=<>]*"
#define CALL                                                                                       \
    "[a-zA-Z](?:_\\{?[A-Za-z0-9+-]+\\}?)?(?:\\^\\{?-1\\}?|'+)?\\s*(?:\\\\left)?\\([^()=<>]*\\)"
#define PARTIAL "(?:d|\u2202|\\\\partial)"
#define DERIVATIVE                                                                                 \
    "(?:\\\\frac\\s*\\{\\s*" PARTIAL "|" PARTIAL "\\^?2?\\s*[a-z]?\\s*/\\s*" PARTIAL               \
    "|\\\\nabla|\u2207|[a-z]'+|[a-z]_[a-z])[^=<>]*"

bool math_drop_call(const char *s, size_t n, char *out, size_t cap, size_t *len) {
    static pattern call = {.regex = "^[\\s$]*(?:" NAME ARGUMENT "|" CALL "|" DERIVATIVE
                                    "|\\|[^|=<>]+\\|)\\s*=(?!=)"};
    return memchr(s, '=', n) && pattern_find(&call, (span){s, n}, 0, NULL) &&
           math_drop_left_side(s, n, out, cap, len);
}

bool math_rename_argument(const char *g, size_t gn, const char *s, size_t n, char *out, size_t cap,
                          size_t *len) {
    static pattern head = {.regex = "^[\\s$]*([a-zA-Z])\\s*\\(\\s*([a-z])\\s*\\)\\s*=(?!=)"};
    span gold[PATTERN_GROUPS], answer[PATTERN_GROUPS];
    if (n > cap || !pattern_find(&head, (span){g, gn}, 0, gold) ||
        !pattern_find(&head, (span){s, n}, 0, answer) || *gold[1].s != *answer[1].s ||
        *gold[2].s == *answer[2].s)
        return false;
    for (size_t i = 0; i < n; i++) {
        bool command = false;
        for (size_t k = i; k && !command && (is_letter(s[k - 1]) || s[k - 1] == '\\'); k--)
            command = s[k - 1] == '\\';
        if (s[i] == *gold[2].s && !command)
            return false; /* the gold's name has another meaning */
        out[i] = s[i] == *answer[2].s && !command ? *gold[2].s : s[i];
    }
    *len = n;
    return true;
}

bool math_read_start_value(const char *s, size_t n, char *out, size_t cap, size_t *len) {
    static pattern value = {.regex = "(?<![A-Za-z\\\\])([A-Za-z])\\s*\\(\\s*0\\s*\\)"};
    if (n + 1 > cap || memchr(s, '\0', n))
        return false;
    memcpy(out, s, n);
    out[n] = '\0';
    (void)pattern_replace(&value, out, cap, "$1_{0}");
    *len = strlen(out);
    return *len != n || memcmp(out, s, n) != 0;
}

bool math_drop_quantifier(const char *s, size_t n, char *out, size_t cap, size_t *len) {
    static pattern quantifier = {
        .regex = "^[\\s$]*(?:\\\\text\\{\\s*)?(?:[Ff]or )?(?:[Aa]ll|[Aa]ny|[Ee]very|"
                 "[Ee]ach)\\b(?: (?:(?:"
                 "positive |natural |real )?(?:integers?|numbers?|values of)))*\\s*\\}?[\\s$]*"
                 "(?=[a-z][\\s$]*(?:[<>]|\\\\[gl]eq?(?![a-z])))"};
    span groups[PATTERN_GROUPS];
    if (n > cap || !pattern_find(&quantifier, (span){s, n}, 0, groups))
        return false;
    *len = n - groups[0].n;
    memcpy(out, s + groups[0].n, *len);
    return true;
}
