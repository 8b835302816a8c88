/* Left sides that only name a value, for MATH_TRUTH: \varphi(100) = 40. */
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
