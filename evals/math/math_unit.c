#include "evals/math/math_unit.h"

#include <stdlib.h>
#include <string.h>

#include "evals/math/math_spelling.h"

/* Each line is one unit: its name, then other spellings of it. A plural s may follow each name of
 * more than two letters. */
static const char *const known[][6] = {
    {"cm", "centimeter", "centimetre"},
    {"m", "meter", "metre"},
    {"km", "kilometer", "kilometre"},
    {"mm", "millimeter", "millimetre"},
    {"in", "inch", "inches"},
    {"ft", "foot", "feet"},
    {"yd", "yard"},
    {"mi", "mile"},
    {"g", "gram"},
    {"kg", "kilogram"},
    {"mg", "milligram"},
    {"lb", "lbs", "pound"},
    {"oz", "ounce"},
    {"s", "sec", "second"},
    {"min", "mins", "minute"},
    {"h", "hr", "hrs", "hour"},
    {"day"},
    {"week"},
    {"month"},
    {"year", "yr"},
    {"deg", "degree"},
    {"rad", "radian"},
    {"gon", "grad", "gradian"},
    {"am"},
    {"pm"},
    {"L", "l", "liter", "litre"},
    {"mL", "ml", "milliliter", "millilitre"},
    {"dollar", "USD"},
    {"euro", "EUR"},
    {"sterling", "GBP"},
    {"yen", "JPY"},
    {"rupee"},
    {"cent"},
    {"C", "celsius", "Celsius"},
    {"F", "fahrenheit", "Fahrenheit"},
    {"J", "joule"},
    {"kJ", "kilojoule"},
    {"W", "watt"},
    {"kW", "kilowatt"},
    {"Pa", "pascal"},
    {"Hz", "hertz"},
};

/* Words that do not change the unit of a value. */
static const char *const ignored[] = {"cdot", "of", "units", "unit", "exactly", "the", "and"};

/* The powers of the units in an answer: m/s has m to the power 1 and s to the power -1. */
typedef struct {
    int power[COUNT(known)];
    int count;
    int sign, next; /* the next unit's power is their product: sign is -1 after "per", and next is 2
                       after "square" */
    int last;       /* index of the last unit; -1: none */
    bool unknown;
} units;

static int find_unit(const char *s, size_t n) {
    for (size_t i = 0; i < COUNT(known); i++)
        for (size_t k = 0; k < COUNT(known[i]) && known[i][k]; k++) {
            size_t len = strlen(known[i][k]);
            bool plural = n == len + 1 && len > 2 && s[len] == 's';
            if ((n == len || plural) && memcmp(s, known[i][k], len) == 0)
                return (int)i;
        }
    return -1;
}

static bool is_ignored(const char *s, size_t n) {
    for (size_t i = 0; i < COUNT(ignored); i++)
        if (span_is(s, n, ignored[i]))
            return true;
    return false;
}

/* NOLINTNEXTLINE(misc-no-recursion): one level, for mph */
static void add_word(units *u, const char *s, size_t n) {
    int i = find_unit(s, n);
    if (span_is(s, n, "per")) {
        u->sign = -1;
    } else if (span_is(s, n, "square") || span_is(s, n, "sq")) {
        u->next = 2;
    } else if (span_is(s, n, "cubic") || span_is(s, n, "cu")) {
        u->next = 3;
    } else if (span_is(s, n, "mph")) {
        add_word(u, "mi", 2);
        u->sign = -1;
        add_word(u, "h", 1);
    } else if (i >= 0) {
        u->power[i] = u->sign * u->next;
        u->last = i;
        u->count++;
        u->next = 1;
    } else if (!is_ignored(s, n)) {
        u->unknown = true;
    }
}

static void raise(units *u, char digit) {
    if (u->last >= 0)
        u->power[u->last] *= digit - '0';
    u->last = -1;
}

/* Adds a half of the day, such as "a.m." or "PM". False if the text is neither half. */
static bool add_half_of_day(units *u, math_span t) {
    char letters[2];
    size_t n = 0;
    for (uint32_t i = 0; i < t.len; i++) {
        if (is_letter(t.s[i]) && n == 2)
            return false;
        if (is_letter(t.s[i]))
            letters[n++] = (char)(t.s[i] | 32);
        else if (t.s[i] != '.' && !is_space(t.s[i]))
            return false;
    }
    if (n != 2 || letters[1] != 'm' || (letters[0] != 'a' && letters[0] != 'p'))
        return false;
    add_word(u, letters, n);
    return true;
}

static void add_text(units *u, math_span t) {
    if (add_half_of_day(u, t))
        return;
    for (const char *s = t.s, *end = t.s + t.len; s < end;) {
        const char *word = s;
        while (s < end && is_letter(*s))
            s++;
        if (s > word) {
            add_word(u, word, (size_t)(s - word));
        } else {
            if (*s == '/')
                u->sign = -1;
            if (*s == '-' && u->last >= 0) /* s^{-2} */
                u->power[u->last] = -u->power[u->last];
            if (is_digit(*s))
                raise(u, *s);
            s++;
        }
    }
}

/* Applies the exponent after a unit, ^2 or ^{2}, if @k is its caret. Returns the token of its
 * number, or @k itself. */
static const math_token *add_power(units *u, const math_token *k) {
    if (k->kind != TOK_CARET)
        return k;
    const math_token *number = k + 1 + (k[1].kind == TOK_LBRACE);
    if (number->kind == TOK_MINUS && u->last >= 0) {
        u->power[u->last] = -u->power[u->last];
        number++;
    }
    if (number->kind == TOK_NUM && number->text.len == 1)
        raise(u, *number->text.s);
    return number;
}

static void collect(units *u, const math_tokens *t) {
    *u = (units){.sign = 1, .next = 1, .last = -1};
    static const char *const currencies[] = {[MATH_DOLLAR] = "dollar",
                                             [MATH_EURO] = "euro",
                                             [MATH_POUND] = "sterling",
                                             [MATH_YEN] = "yen",
                                             [MATH_RUPEE] = "rupee"};
    if (t->currency)
        add_word(u, currencies[t->currency], strlen(currencies[t->currency]));
    for (const math_token *k = t->tok; k->kind != TOK_END; k++) {
        if (k->kind == TOK_DEGREE) {
            add_word(u, "deg", 3);
            if (k[1].kind == TOK_SYM && (span_is(k[1].text.s, k[1].text.len, "C") ||
                                         span_is(k[1].text.s, k[1].text.len, "F")))
                add_word(u, k[1].text.s, 1);
        } else if (k->kind == TOK_UNIT) {
            add_text(u, k->text);
            k = add_power(u, k + 1) - 1;
        } else if (k->kind == TOK_SLASH && k > t->tok && k[-1].kind == TOK_UNIT) {
            u->sign = -1;
        } else if (k->kind != TOK_RBRACE) {
            u->sign = 1;
            u->next = 1;
        }
    }
}

/* True if the units are exactly one radian. */
static bool is_radian(const units *u) {
    return u->count == 1 && !u->unknown && u->power[find_unit("rad", 3)] == 1;
}

bool math_in_radians(const math_tokens *t) {
    units u;
    collect(&u, t);
    return is_radian(&u);
}

static bool has_percent(const math_tokens *t) {
    for (size_t i = 0; i < t->count; i++)
        if (t->tok[i].kind == TOK_PERCENT)
            return true;
    return false;
}

/* True if one side has a degree sign, which math_equal() can convert, and the other is in radians.
 */
static bool is_angle_pair(const math_tokens *g, const math_tokens *a, const units *u,
                          const units *v) {
    const math_tokens *degrees = is_radian(u) ? a : g;
    bool sign = false;
    for (size_t i = 0; i < degrees->count; i++)
        sign |= degrees->tok[i].kind == TOK_DEGREE;
    return sign && is_radian(u) != is_radian(v);
}

/* The sizes of the units that are converted. A size is a multiple of the smallest unit with the
 * same `quantity`. */
enum { kQuantities = 8 };

static const struct {
    const char *name, *size;
    int quantity;
} sizes[] = {
    {"mm", "1", 0},      {"cm", "10", 0},       {"m", "1000", 0},     {"km", "1000000", 0},
    {"in", "1", 1},      {"ft", "12", 1},       {"yd", "36", 1},      {"mi", "63360", 1},
    {"mg", "1", 2},      {"g", "1000", 2},      {"kg", "1000000", 2}, {"oz", "1", 3},
    {"lb", "16", 3},     {"s", "1", 4},         {"min", "60", 4},     {"h", "3600", 4},
    {"day", "86400", 4}, {"week", "604800", 4}, {"mL", "1", 5},       {"L", "1000", 5},
    {"cent", "1", 6},    {"dollar", "100", 6},  {"month", "1", 7},    {"year", "12", 7},
};

/* The powers of the quantities in the units of a value: those of m/s are length 1 and time -1.
 * False if there is no unit, an unknown one or one without a size. */
static bool dimensions(const units *u, int power[kQuantities]) {
    int found = 0;
    memset(power, 0, kQuantities * sizeof *power);
    for (size_t i = 0; i < COUNT(sizes); i++) {
        int p = u->power[find_unit(sizes[i].name, strlen(sizes[i].name))];
        power[sizes[i].quantity] += p;
        found += p != 0;
    }
    return !u->unknown && found > 0 && found == u->count;
}

int64_t math_unit_ratio(const char *s, size_t n, const char *t, size_t m) {
    int64_t size[2] = {0, 0};
    int quantity[2] = {-1, -2}, row[2] = {find_unit(s, n), find_unit(t, m)};
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; row[k] >= 0 && i < COUNT(sizes); i++)
            if (row[k] == find_unit(sizes[i].name, strlen(sizes[i].name))) {
                size[k] = strtoll(sizes[i].size, NULL, 10);
                quantity[k] = sizes[i].quantity;
            }
    return quantity[0] == quantity[1] && size[0] % size[1] == 0 ? size[0] / size[1] : 0;
}

enum { kMaxUnits = 4, kMaxPower = 3 };
_Static_assert(kMathTokenRoom - kMathMaxTokens >= 4 * kMaxUnits * kMaxPower, "room for the tokens");

static math_token number_token(const char *digits) {
    return (math_token){.kind = TOK_NUM, .text = {digits, (uint32_t)strlen(digits)}};
}

/* The index of the first unit of an answer, or the end of the answer; 0 if anything else than a
 * number or a fraction, perhaps after a name ("v = 5"), comes before it. */
static size_t number_end(const math_tokens *a) {
    const math_token *k = a->tok;
    size_t start = k->kind == TOK_SYM && k[1].kind == TOK_REL && k[1].arg == REL_EQ ? 2 : 0;
    size_t i = start;
    while (i < a->count && a->tok[i].kind != TOK_UNIT) {
        math_token_kind kind = a->tok[i].kind;
        if (kind != TOK_NUM && kind != TOK_FRAC && kind != TOK_SLASH && kind != TOK_LBRACE &&
            kind != TOK_RBRACE)
            return 0;
        i++;
    }
    return i > start ? i : 0;
}

/* True if nothing but units follows the value, whose end is @i. */
static bool has_only_units(const math_tokens *a, size_t i) {
    for (; i < a->count; i++) {
        math_token_kind kind = a->tok[i].kind;
        math_token_kind before = a->tok[i - 1].kind;
        bool raised =
            kind == TOK_NUM && (before == TOK_CARET || before == TOK_LBRACE || before == TOK_MINUS);
        bool negative = kind == TOK_MINUS && (before == TOK_CARET || before == TOK_LBRACE);
        if (kind != TOK_UNIT && kind != TOK_CARET && kind != TOK_LBRACE && kind != TOK_RBRACE &&
            !raised && !negative && !(kind == TOK_SLASH && before == TOK_UNIT))
            return false;
    }
    return true;
}

/* Multiplies the value by the size of each unit to its power times @sign. */
static void multiply_sizes(math_tokens *a, const units *u, int sign) {
    for (size_t i = 0; i < COUNT(sizes); i++) {
        int power = sign * u->power[find_unit(sizes[i].name, strlen(sizes[i].name))];
        for (int k = power < 0 ? -power : power; k > 0; k--) {
            a->tok[a->count++] = (math_token){.kind = power > 0 ? TOK_TIMES : TOK_SLASH};
            a->tok[a->count++] = number_token(sizes[i].size);
        }
    }
}

/* True if no power of a unit is too large for a conversion. */
static bool has_small_powers(const units *u) {
    for (size_t i = 0; i < COUNT(known); i++)
        if (u->power[i] > kMaxPower || u->power[i] < -kMaxPower)
            return false;
    return u->count <= kMaxUnits;
}

bool math_convert_unit(const math_tokens *g, math_tokens *a) {
    units u, v;
    int to[kQuantities], from[kQuantities];
    collect(&u, g);
    collect(&v, a);
    size_t value = number_end(a);
    bool same = dimensions(&u, to) && dimensions(&v, from) && memcmp(to, from, sizeof to) == 0;
    if (!same || !value || !has_small_powers(&u) || !has_small_powers(&v) ||
        !has_only_units(a, value))
        return false;
    a->count = value;
    multiply_sizes(a, &v, 1);
    multiply_sizes(a, &u, -1);
    a->tok[a->count] = (math_token){.kind = TOK_END};
    return true;
}

/* True if the answer ends with its only unit, a degree. */
static bool ends_in_degrees(const math_tokens *t, const units *u) {
    math_token_kind last = t->count ? t->tok[t->count - 1].kind : TOK_END;
    bool degree = u->count == 1 && !u->unknown && u->power[find_unit("deg", 3)] == 1;
    return degree && (last == TOK_DEGREE || last == TOK_UNIT);
}

/* True if a noun that is no known unit and does not speak of percent follows a value. */
static bool counts_things(const math_tokens *t, const units *u) {
    static const char word[] = "percent";
    bool percent = false;
    for (size_t i = 0; i < t->count; i++)
        percent |= t->tok[i].kind == TOK_UNIT &&
                   memmem(t->tok[i].text.s, t->tok[i].text.len, word, sizeof word - 1);
    return u->unknown && !percent;
}

static bool has_pi(const math_tokens *t) {
    for (size_t i = 0; i < t->count; i++)
        if (t->tok[i].kind == TOK_CONST && t->tok[i].arg == CONST_PI)
            return true;
    return false;
}

bool math_units_differ(const math_tokens *g, const math_tokens *a) {
    units u, v;
    collect(&u, g);
    collect(&v, a);
    if (has_pi(g) && has_pi(a) && ends_in_degrees(g, &u) != ends_in_degrees(a, &v))
        return true; /* 2\pi degrees are not 2\pi */
    if (has_percent(g) && !has_percent(a) && counts_things(a, &v))
        return true; /* 62.5 students are not 62.5% */
    if (u.unknown || v.unknown || is_angle_pair(g, a, &u, &v))
        return false;
    if ((u.count && has_percent(a)) || (v.count && has_percent(g)))
        return has_percent(g) != has_percent(a); /* 145% is not 145 degrees */
    return u.count && v.count && memcmp(u.power, v.power, sizeof u.power) != 0;
}
