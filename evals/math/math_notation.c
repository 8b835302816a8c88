/* Notations that are read as LaTeX, and conditions that are dropped, for MATH_TRUTH. */
#include <stdio.h>
#include <string.h>

#include "evals/math/math_rewriter.h"
#include "evals/math/math_wording.h"
#include "evals/pattern.h"

#define SPACES "(?:\\s|\\\\quad|\\\\qquad|\\\\[ ,;:])*+"
#define CHOOSE "(?:\\\\(?:mathrm|text)\\{C\\}|(?<![A-Za-z])C)"

/* Units that may be typed without a \text: the m and the s of "9.8 m/s^2". */
#define UNIT                                                                                       \
    "(?:[kcm]?m|[km]?g|s|h|hr|min|k?N|k?J|k?W|Pa|Hz|V|K|mol|m?L|ft|mi|in|lb|rad)(?![A-Za-z])"
#define POWER      "(?:\\s*+\\^\\s*+(?:-?\\d|\\{-?\\d\\}))?+"
#define TEXT       "\\\\(?:text|mathrm)\\{\\s*+"
#define TEXT_MACRO "\\\\(?:text|textbf|mathrm|mathbf)"
#define BY         "(?:\\s*+(?:/|\\\\cdot\\b|\\\\[,;: ]|\\*|~)\\s*+|\\s++)"

/* The beginning of an answer such as "k must be at least 4". */
#define RELATED                                                                                    \
    "^[\\s$]*([a-z])\\$? (?:(?:must be|is|has to be|should be|needs to be) )?(?:strictly )?"

/* A system of equations, each in a row of its own. */
#define SYSTEM     "\\\\begin\\{(?:cases|aligned|array|gathered|split|matrix)\\}(?:\\{[lcr]*\\})?"
#define EQUATION   "((?:(?!\\\\\\\\|\\\\end|&)[^=])*=(?:(?!\\\\\\\\|\\\\end|&)[^=])*)"
#define END_SYSTEM "(?:\\\\\\\\\\s*)?\\\\end\\{[a-z]+\\}[\\s.$]*$"

/* The dollars of an amount such as "18 dollars and 50 cents". */
#define DOLLARS_AND                                                                                \
    "(?:\\\\?\\$\\s*+)?(?<![0-9.])(\\d++)\\s*+(?:\\\\text\\{\\s*+)?dollars?\\s*+\\}?\\s*+"         \
    "(?:,|and|\\\\text\\{ ?and ?\\})\\s*+\\}?\\s*+"
#define CENTS "\\s*+(?:\\\\text\\{\\s*+)?cents?\\}?"

/* The beginning of an answer such as "all real numbers greater than 2". */
#define REALS                                                                                      \
    "^[\\s$]*(?:[Tt]he set of )?[Aa]ll (?:the )?real (?:numbers|values)(?: of)?(?: \\$?x\\$?)?"    \
    "(?: that are| which are)?,? "
#define BOUND "\\$?(-?[0-9][0-9./]*+|-?\\\\frac\\{[0-9]+\\}\\{[0-9]+\\})\\$?"
#define VALUE BOUND "[\\s.$]*$"

static struct {
    pattern pattern;
    const char *replacement;
} notations[] = {
    {{.regex = CHOOSE "\\s*\\((\\d+),\\s*(\\d+)\\)"}, "\\binom{$1}{$2}"},
    {{.regex = "[_^]\\{?(\\d+)\\}?\\s*" CHOOSE "_\\{?(\\d+)\\}?"}, "\\binom{$1}{$2}"},
    {{.regex = CHOOSE "_\\{?(\\d+)\\}?\\^\\{?(\\d+)\\}?"}, "\\binom{$1}{$2}"},
    {{.regex = "\\(\\s*(?:\\\\text\\{)?\\s*mod\\s*\\}?\\s*(\\d+)\\s*\\)"}, "\\pmod{$1}"},
    {{.regex = "^[\\s$]*[A-Za-z]\\s*\\\\equiv"}, ""},
    {{.regex =
          "^[\\s$]*\\\\(?:text|textbf|mathrm|mathbf)\\{\\s*\\(?[A-E]\\)\\s*\\}" SPACES "(?=\\S)"},
     ""},
    {{.regex = "^[\\s$]*\\([A-E]\\)" SPACES "(?=[^\\s,)])"}, ""},
    {{.regex = "^[\\s$]*(" TEXT_MACRO "\\{)\\s*\\([A-E]\\)\\s+(?=[^\\s}])"}, "$1"},
    {{.regex = "\\\\(?:text|mathrm|operatorname)\\{\\s*mod\\s*\\}(?:\\s|\\\\ |~)*(\\d+)"},
     "mod $1"},
    {{.regex = "\\(\\s*mod\\s*(\\d+)\\s*\\)|(?<![\\\\A-Za-z])mod(?:ulo)?\\s+(\\d+)(?=[\\s.$]*$)"},
     "\\pmod{$1$2}"},
    {{.regex = "(?<![A-Za-z0-9])(\\d+|[A-Za-z])\\s+(?:\\\\text\\{\\s*)?choose\\s*\\}?\\s*"
               "(\\d+|[A-Za-z])(?![A-Za-z0-9])"},
     "\\binom{$1}{$2}"},
    {{.regex = "(?:\\\\(?:text|mathrm|operatorname)\\{floor\\}|(?<![\\\\A-Za-z])floor)"
               "\\s*\\(([^()]*)\\)"},
     "\\lfloor $1 \\rfloor "},
    {{.regex =
          "(?:\\\\(?:text|mathrm|operatorname)\\{ceil(?:ing)?\\}|(?<![\\\\A-Za-z])ceil(?:ing)?)"
          "\\s*\\(([^()]*)\\)"},
     "\\lceil $1 \\rceil "},
    {{.regex = DOLLARS_AND "(\\d\\d)" CENTS}, "\\$$$1.$2"},
    {{.regex = DOLLARS_AND "(\\d)" CENTS}, "\\$$$1.0$2"},
    {{.regex = TEXT "(" UNIT POWER ")" BY "(" UNIT POWER ")\\s*\\}"}, "\\text{ $1 $2}"},
    {{.regex = "\\\\frac\\{" TEXT "([a-z]+)\\s*\\}\\}\\{" TEXT
               "([a-z]+)\\s*\\}\\s*\\^\\s*\\{?(\\d)\\}?\\}"},
     "\\text{ $1 per $2^$3}"},
    {{.regex = "(?<=[\\d}])(?:\\s|~|\\\\[,; ])*+(" UNIT POWER "/" UNIT POWER ")(?=[\\s.$]*$)"},
     "\\text{ $1}"},
    {{.regex =
          "(?<=[\\d}])(?:\\s|~|\\\\[,; ])++(" UNIT POWER ")" BY "(" UNIT POWER ")(?=[\\s.$]*$)"},
     "\\text{ $1 $2}"},
    {{.regex = TEXT "\\\\frac\\{([a-z]+)\\}\\{([a-z]+)\\s*\\^\\s*\\{?(\\d)\\}?\\}\\s*\\}"},
     "\\text{ $1 per $2^$3}"},
    {{.regex = TEXT "\\\\frac\\{([a-z]+)\\}\\{([a-z]+)\\}\\s*\\}"}, "\\text{ $1 per $2}"},
    {{.regex = "(10\\s*\\^\\s*(?:-?\\d+|\\{\\s*-?\\d+\\s*\\}))\\s+(" UNIT ")(?=[\\s.$]*$)"},
     "$1\\text{ $2}"},
    {{.regex = "\\^\\{?([0-9]+)\\}?/_\\{?([0-9]+)\\}?"}, "\\frac{$1}{$2}"},
    {{.regex = "^[\\s$]*([0-9]{1,2})\\s*([ap])\\.?\\s?m\\.?[\\s.$]*$"}, "$1:00\\text{ $2m}"},
    {{.regex = "^[\\s$]*([0-9]{1,2})\\s*(\\\\text\\{ [ap]m\\})[\\s.$]*$"}, "$1:00$2"},
    {{.regex = "/(?!d[a-z])([A-Za-z]{2,3})(?=[\\s})]|$)"}, "/($1)"},
    {{.regex = "^[\\s$]*(?:a )?([0-9]+) in ([0-9]+)[\\s.$]*$"}, "\\frac{$1}{$2}"},
    {{.regex = "([0-9]+) over ([0-9]+)"}, "\\frac{$1}{$2}"},
    {{.regex = "([0-9]+) out of ([0-9]+)"}, "\\frac{$1}{$2}"},
    {{.regex = "&\\s*="}, "="},
    {{.regex = "\\\\left\\s*\\\\\\{\\s*(?=\\\\begin\\{(?:array|aligned|matrix)\\})"}, ""},
    {{.regex = "(\\\\end\\{(?:array|aligned|matrix)\\})\\s*\\\\right\\s*\\."}, "$1"},
    {{.regex = "^[\\s$]*" SYSTEM EQUATION "\\\\\\\\" EQUATION END_SYSTEM}, "$1, $2"},
    {{.regex = "^[\\s$]*" SYSTEM EQUATION "\\\\\\\\" EQUATION "\\\\\\\\" EQUATION END_SYSTEM},
     "$1, $2, $3"},
    {{.regex = "^([^=]*=[^=]*?),?\\s*\\\\q?quad(?![a-z])\\s*([a-z]\\s*=[^=]*)$"}, "$1, $2"},
    {{.regex = "^[\\s$]*\\\\text\\{\\s*([Aa]ll real [^{}]*?)\\s*\\}\\s*"}, "$1 "},
    {{.regex = "\\\\text\\{\\s*\\\\&\\s*\\}"}, "\\text{ and }"},
    {{.regex = "([<>]|\\\\[lg]eq?(?:slant)?(?![a-z])|\u2264|\u2265)([^<>,]*)," SPACES
               "(?=[a-z]\\s*(?:\\\\neq?(?![a-z])|\u2260))"},
     "$1$2\\text{ and }"},
    {{.regex = "^(?!.*\\b(?:not|no|never|least|most|than|if|or|neither|nor|between)\\b).*"
               "\\\\text\\{[^{}]*\\b(?:is|are|equals)\\s*:?\\s*\\}"},
     ""},
    {{.regex =
          "([a-z])\\s*(?:\\\\neq?(?![a-z])|\u2260)\\s*\\\\pm\\s*([0-9a-z]+|\\\\sqrt\\{[0-9]+\\}|"
          "\\\\frac\\{[0-9]+\\}\\{[0-9]+\\})[\\s.$]*$"},
     "$1 \\ne -$2\\text{ and }$1 \\ne $2"},
    {{.regex = "([a-z])\\s*(?:\\\\neq?(?![a-z])|\u2260)\\s*(-?[0-9]+),\\s*(-?[0-9]+)[\\s.$]*$"},
     "$1 \\ne $2\\text{ and }$1 \\ne $3"},
    {{.regex = "^[\\s$]*\\\\text\\{\\s*(?:it |the (?:limit|series|integral|sum) )?(?:diverges|"
               "converges|tends|goes) to\\s*\\}"},
     ""},
    {{.regex = "(?<=[0-9])\\s*(?:\\^\\s*\\{?o\\}?|\\\\deg)(?![A-Za-z])"}, "^\\circ"},
    {{.regex =
          SPACES "\\(\\s*\\\\text\\{\\s*(?:double|repeated|triple|i\\.e\\.|that is|since|because|"
                 "as |with multiplicity|multiplicity|about|approximately)[^()]*\\)[\\s.$]*$"},
     ""},
    {{.regex = SPACES "\\\\text\\{[ ,]*(?:i\\.e\\.|that is),?\\s*\\}.*$"}, ""},
    {{.regex = SPACES "\\\\forall\\s*[a-z]\\s*\\\\in\\s*\\\\mathbb\\{?[RZNQC]\\}?[\\s.$]*$"}, ""},
    {{.regex = "(?<=[0-9}i]\\$)\\s*(" UNIT POWER ")(?=[\\s.]*$)"}, "\\text{ $1}"},
    {{.regex = "^[\\s$]*0x([0-9A-Fa-f]+)[\\s.$]*$"}, "$1_{16}"},
    {{.regex = "^[\\s$]*0b([01]+)[\\s.$]*$"}, "$1_{2}"},
    {{.regex = "^[\\s$]*0o([0-7]+)[\\s.$]*$"}, "$1_{8}"},
    {{.regex = "^[\\s$]*(?:\u2113|\\\\ell|[A-Za-z])(?:_\\{?[0-9A-Za-z]\\}?)?\\s*:\\s*"
               "(?=[^:,]*=[^:,]*$)"},
     ""},
    {{.regex = "(?<=[0-9}])\\s*(?:sq|square)\\.?\\s+(" UNIT ")[\\s.$]*$"}, "\\text{ $1}^2"},
    {{.regex = "(?<=[0-9}])\\s*(?:cu|cubic)\\.?\\s+(" UNIT ")[\\s.$]*$"}, "\\text{ $1}^3"},
    {{.regex = RELATED "(?:(?:greater|larger|more) than or equal to|at least|no less than) "},
     "$1 \\ge "},
    {{.regex = RELATED "(?:(?:less|smaller) than or equal to|at most|no more than) "}, "$1 \\le "},
    {{.regex = RELATED "(?:greater|larger|more) than "}, "$1 > "},
    {{.regex = RELATED "(?:less|smaller) than "}, "$1 < "},
    {{.regex = "cbrt\\(([^()]*)\\)"}, "\\sqrt[3]{$1}"},
    {{.regex = "[A-Za-z]\\s*:\\s*([A-Za-z])\\s*\\\\mapsto"}, "y="},
    {{.regex = "," SPACES "(?:\\\\text\\{ ?(?:where|for|with) ?\\})?" SPACES
               "[A-Za-z](?:_\\{?[0-9]\\}?)?\\s*\\\\in\\s*\\\\mathbb\\s*\\{?[RZNQC]\\}?[\\s.$]*$"},
     ""},
    {{.regex = SPACES "\\\\text\\{[ ,]*(?:for (?:all|every|any|each)|where)\\b[^}]*\\}[^,]*$"}, ""},
    {{.regex = "\\\\text\\{\\s*(?:both|either) ?\\}"}, ""},
    {{.regex = "\\\\text\\{ ?per cent\\}|(?<![a-z])per cent\\b"}, "\\%"},
    {{.regex =
          "\\\\frac\\{\\\\(?:text|mathrm)\\{([a-z]+)\\}\\}\\{\\\\(?:text|mathrm)\\{([a-z]+)\\}\\}"},
     "\\text{$1 per $2}"},
    {{.regex = "([<>]|\\\\[lg]eq?\\b)([^<>]*)\\\\cup(?=[^()]*(?:[<>]|\\\\[lg]e))"},
     "$1$2\\text{ or }"},
    {{.regex = "\\\\mathbb\\{R\\}_\\{?(?:\\\\geq?(?:slant)?|\u2265) *0\\}?"}, "[0,\\infty)"},
    {{.regex = "\\\\mathbb\\{R\\}(?:_\\{?> *0\\}?|\\^\\{?\\+\\}?)"}, "(0,\\infty)"},
    {{.regex = "_\\{? *\\\\text\\{ *(?:hex|sixteen)\\ *}\\}?"}, "_{16}"},
    {{.regex = "^[\\s$]*(?:\\(|\\\\(?:text|mathrm)\\{)([0-9A-Fa-f]+)[)}](?=_)"}, "$1"},
    {{.regex = "^[\\s$]*([0-9]*[A-F][0-9A-F]*) \\(?(?:in )?base (\\d+)\\)?[\\s.$]*$"}, "$1_{$2}"},
    {{.regex = "(?<=[0-9}i])\\s+((?:m|g|s|h|L|l|mL|ml|in|ft|yd|mi)" POWER ")(?=[\\s.$]*$)"},
     "\\text{ $1}"},
    {{.regex = "(?<=[0-9])\\s*[xX]\\s*(?=10\\s*\\^)"}, " \\cdot "},
    {{.regex = "^[\\s$]*[Aa]ll real (?:numbers|values|x)(?: of)?(?: \\$?x\\$?)? except (?:for )?"
               "(?:\\$?x ?= ?)?" VALUE},
     "\\mathbb{R} \\setminus \\{$1\\}"},
    {{.regex = REALS "(?:strictly )?(?:greater|larger|more) than or equal to " VALUE}, "x \\ge $1"},
    {{.regex = REALS "at least " VALUE}, "x \\ge $1"},
    {{.regex = REALS "(?:less|smaller) than or equal to " VALUE}, "x \\le $1"},
    {{.regex = REALS "at most " VALUE}, "x \\le $1"},
    {{.regex = REALS "(?:strictly )?(?:greater|larger|more) than " VALUE}, "x > $1"},
    {{.regex = REALS "(?:strictly )?(?:less|smaller) than " VALUE}, "x < $1"},
    {{.regex =
          REALS "(?:from|between) " BOUND " (?:to|and) " BOUND ",? \\(?inclusive\\)?[\\s.$]*$"},
     "[$1,$2]"},
    {{.regex = REALS "(?:strictly between|between) " BOUND " and " BOUND
                     ",? \\(?exclusive\\)?[\\s.$]*$"},
     "($1,$2)"},
    {{.regex = REALS "strictly between " BOUND " and " VALUE}, "($1,$2)"},
    {{.regex = "^[\\s$]*[0-9]+\\s*:\\s*[0-9]+\\s*=\\s*(?=[0-9]+\\s*:\\s*[0-9]+[\\s.$]*$)"}, ""},
    {{.regex = "(?<=[a-z]{2}) an? (second|minute|hour|day|week|month|year)(?![a-z])"}, " per $1"},
    {{.regex = " in the (?:afternoon|evening)"}, "\\text{ p.m.}"},
    {{.regex = " in the morning"}, "\\text{ a.m.}"},
    {{.regex = "\\\\math(?:bf|rm)\\{([RZNQC])\\}"}, "\\mathbb{$1}"},
    {{.regex = "\\\\([RZNQ])(?![A-Za-z])"}, "\\mathbb{$1}"},
    {{.regex = "\\\\\\\\\\s*\\\\\\\\"}, "\\\\ "},
};

/* Writes 14:15 as 2:15 p.m. */
static void read_clock(char *s, size_t cap) {
    static pattern clock = {.regex = "^[\\s$]*(1[3-9]|2[0-3]):([0-5][0-9])[\\s.$]*$"};
    span groups[PATTERN_GROUPS];
    if (!pattern_find(&clock, (span){s, strlen(s)}, 0, groups))
        return;
    int hour = 10 * (groups[1].s[0] - '0') + groups[1].s[1] - '0' - 12;
    char minutes[3] = {groups[2].s[0], groups[2].s[1], '\0'};
    (void)snprintf(s, cap, "%d:%s\\text{ p.m.}", hour, minutes);
}

bool math_read_notations(const char *s, size_t n, char *out, size_t cap, size_t *len) {
    if (n + 1 > cap || memchr(s, '\0', n))
        return false;
    memcpy(out, s, n);
    out[n] = '\0';
    for (size_t i = 0; i < sizeof notations / sizeof *notations; i++)
        (void)pattern_replace(&notations[i].pattern, out, cap, notations[i].replacement);
    read_clock(out, cap);
    *len = strlen(out);
    return *len != n || memcmp(out, s, n) != 0;
}

bool math_read_rows(const char *s, size_t n, char *out, size_t cap, size_t *len) {
    static pattern rows = {.regex =
                               "^[\\s$]*\\[([^\\[\\];,()]++(?:[,;][^\\[\\];,()]++)*)\\][\\s.$]*$"};
    rewriter r = {.begin = s, .s = s, .end = s + n, .out = out, .cap = cap};
    span groups[PATTERN_GROUPS];
    if (!memchr(s, ';', n) || !pattern_find(&rows, (span){s, n}, 0, groups))
        return false;
    puts_to(&r, "\\begin{pmatrix}");
    const char *end = groups[1].s + groups[1].n, *c = groups[1].s;
    bool inside = false, apart = false; /* in a row; a space or comma came before */
    for (; c < end && !r.full; c++) {
        bool minus = r.out[r.used - 1] == '-';
        if (*c == ';') {
            puts_to(&r, "\\\\");
            inside = apart = false;
        } else if (*c == ',' || is_space(*c)) {
            if (minus) /* "1 - 2" may be one entry or two */
                return false;
            apart = true;
        } else {
            puts_to(&r, inside && apart ? " & " : "");
            put(&r, c, 1);
            inside = true;
            apart = false;
        }
    }
    puts_to(&r, "\\end{pmatrix}");
    *len = r.used;
    return !r.full;
}
