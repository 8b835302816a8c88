/* read_rules.c - reads how answers are found and compared: "extract", "grader" and "metrics". */
#include <stdio.h>
#include <string.h>

#include "evals/taskfile/parts.h"

/* In the order of grader_kind. */
static const char *const kGraders[] = {"integer",  "mathematics", "letter", "exact",
                                       "regex",    "assertions",  "stdin",  "judge",
                                       "recorded", "similarity",  NULL};

/* The ways to find an answer, in the order of their names below. A grader may be given the name of
 * what it does anyway: "integer", "mathematics", "letter" and "program" are names of that kind. */
enum {
    EXTRACT_INTEGER,
    EXTRACT_MATHEMATICS,
    EXTRACT_LETTER,
    EXTRACT_PROGRAM,
    EXTRACT_HASHES,
    EXTRACT_BOXED,
    EXTRACT_LAST_NUMBER,
    EXTRACT_REGEX,
    EXTRACT_WHOLE,
};
static const char *const kExtracts[] = {"integer", "mathematics", "letter", "program", "hashes",
                                        "boxed",   "last_number", "regex",  "whole",   NULL};

/* Reads a member that is a name, or an object with a "name". *out is an object in both cases: for a
 * name, the object that holds it. *word: -1 if the key is absent. */
static snap_status read_named(const keys *k, const char *key, const char *const *names, keys *out,
                              int *word, snap_err *err) {
    bool found;
    *word = -1;
    *out = *k;
    if (!js_is_object(js_get(k->object, key)))
        return keys_word(k, key, names, word, err);
    snap_status st = keys_object(k, key, out, &found, err);
    if (st == SNAP_OK)
        st = keys_word(out, "name", names, word, err);
    if (st == SNAP_OK && *word < 0)
        st = keys_bad(out, NULL, err, "needs a 'name'");
    return st;
}

static bool is_own_object(const keys *k, const keys *sub) {
    return sub->depth > k->depth;
}

/* ---- extract ---- */

static snap_status read_regex(const keys *k, rule *r, snap_err *err) {
    static const char *const which[] = {"last", "first", NULL};
    int64_t group = -1;
    int word;
    snap_status st;
    TRY(keys_check(k, (const char *const[]){"name", "regex", "group", "which", NULL}, err));
    TRY(keys_text(k, "regex", &r->regex.regex, err));
    TRY(keys_int(k, "group", 0, PATTERN_GROUPS - 1, &group, err));
    TRY(keys_word(k, "which", which, &word, err));
    if (!r->regex.regex)
        TRY(keys_bad(k, NULL, err, "needs a 'regex'"));
    r->regex.flags = PATTERN_UTF;
    r->first = word == 1;
    if (!pattern_compile(&r->regex))
        TRY(keys_bad(k, "regex", err, "is not a regular expression that PCRE2 accepts"));
    int groups = pattern_groups(&r->regex);
    r->group = group >= 0 ? (int)group : groups > 0;
    if (r->group > groups)
        TRY(keys_bad(k, "group", err, "names a group that the regex does not have"));
cleanup:
    return st;
}

/* True if @word, an EXTRACT_ value, names the way in which the grader finds answers anyway. */
static bool is_usual(int word, grader_kind kind) {
    switch (word) {
    case EXTRACT_INTEGER:
        return kind == GRADER_INTEGER;
    case EXTRACT_MATHEMATICS:
        return kind == GRADER_MATHEMATICS;
    case EXTRACT_LETTER:
        return kind == GRADER_LETTER;
    case EXTRACT_PROGRAM:
        return kind == GRADER_ASSERTIONS || kind == GRADER_STDIN;
    default:
        return false;
    }
}

/* Lets @g compare under every policy. */
static void use(rule *r, const grader *g) {
    for (int policy = MATH_TRUTH; policy <= MATH_STRICT; policy++)
        r->by[policy] = g;
}

static snap_status read_extract(const keys *k, grader_kind kind, rule *r, snap_err *err) {
    int word;
    keys sub;
    snap_status st = read_named(k, "extract", kExtracts, &sub, &word, err);
    bool own = is_own_object(k, &sub);
    r->find = kind == GRADER_EXACT || kind == GRADER_REGEX ? FIND_WHOLE : FIND_OWN;
    if (st == SNAP_OK && own && word != EXTRACT_REGEX)
        st = keys_check(&sub, (const char *const[]){"name", NULL}, err);
    if (st != SNAP_OK || word < 0 || is_usual(word, kind))
        return st;
    if (word <= EXTRACT_PROGRAM || kind == GRADER_ASSERTIONS || kind == GRADER_STDIN ||
        kind == GRADER_JUDGE || kind == GRADER_RECORDED || kind == GRADER_SIMILARITY)
        return keys_bad(k, "extract", err, "'%s' does not go with the grader '%s'", kExtracts[word],
                        kGraders[kind]);
    if (word == EXTRACT_REGEX && !own)
        return keys_bad(k, "extract", err, "must be an object with a 'name' and a 'regex'");
    if (word == EXTRACT_REGEX) {
        r->find = FIND_REGEX;
        return read_regex(&sub, r, err);
    }
    if (word == EXTRACT_HASHES && kind != GRADER_INTEGER)
        return keys_bad(k, "extract", err, "'hashes' goes with the grader 'integer' only");
    if (word == EXTRACT_HASHES)
        use(r, &grader_gsm8k);
    else
        r->find = word == EXTRACT_BOXED         ? FIND_BOXED
                  : word == EXTRACT_LAST_NUMBER ? FIND_LAST_NUMBER
                                                : FIND_WHOLE;
    return SNAP_OK;
}

/* ---- graders ---- */

static snap_status read_integer(task_file *f, const keys *k, snap_err *err) {
    const int64_t most = INT64_C(1) << 53;
    snap_status st;
    TRY(keys_check(k, (const char *const[]){"name", "from", "to", NULL}, err));
    f->from = -most;
    f->to = most;
    f->ranged = js_has(k->object, "from") || js_has(k->object, "to");
    TRY(keys_int(k, "from", -most, most, &f->from, err));
    TRY(keys_int(k, "to", f->from, most, &f->to, err));
cleanup:
    return st;
}

static snap_status read_letter(const task_file *f, const keys *k, bool own, rule *r,
                               snap_err *err) {
    const choices_part *c = &f->choices;
    int64_t letters = (int64_t)(c->texts ? js_len(c->texts) : c->n_fields);
    bool needed = letters == 0;
    snap_status st = SNAP_OK;
    if (own)
        TRY(keys_check(k, (const char *const[]){"name", "letters", NULL}, err));
    if (own)
        TRY(keys_int(k, "letters", 2, TASK_CHOICES, &letters, err));
    if (needed && !letters)
        TRY(keys_bad(k, own ? NULL : "grader", err,
                     "needs the number of letters: {\"name\": \"letter\", \"letters\": 4}"));
    r->same = SAME_LETTER;
    r->last = (char)('A' + letters - 1);
    if (r->find == FIND_OWN && (letters == 4 || letters == 10)) {
        r->same = SAME_BY;
        use(r, letters == 4 ? &grader_letter : &grader_ten_letters);
    }
cleanup:
    return st;
}

static snap_status read_assertions(task_file *f, const keys *k, snap_err *err) {
    snap_status st;
    TRY(keys_check(k, (const char *const[]){"name", "before", "after", "entry", NULL}, err));
    TRY(read_template(k, "before", &f->before, err));
    TRY(read_template(k, "after", &f->after, err));
    TRY(read_template(k, "entry", &f->entry, err));
cleanup:
    return st;
}

static snap_status any_gold(const char *gold, snap_err *err) {
    (void)gold;
    (void)err;
    return SNAP_OK;
}

/* Reads "metric", which is what the other program calls its verdict, and "by", which is its name
 * and version. */
static snap_status read_recorded(task_file *f, const keys *k, bool own, rule *r, snap_err *err) {
    const char *metric = NULL, *by = NULL;
    recorded_grader *g = &f->recorded;
    snap_status st;
    if (!own)
        TRY(keys_bad(k, "grader", err, "must be an object with a 'metric' and 'by'"));
    TRY(keys_check(k, (const char *const[]){"name", "metric", "by", NULL}, err));
    TRY(keys_text(k, "metric", &metric, err));
    TRY(keys_text(k, "by", &by, err));
    if (!metric || !by)
        TRY(keys_bad(k, NULL, err, "needs a 'metric' and 'by'"));
    int n = snprintf(g->id, sizeof g->id, "recorded-1 %s by %s", metric, by);
    if (n < 0 || n >= (int)sizeof g->id)
        TRY(keys_bad(k, NULL, err, "'metric' and 'by' are too long"));
    g->base = (grader){.id = g->id, .check_gold = any_gold, .recorded = true};
    use(r, &g->base);
cleanup:
    return st;
}

/* Reads the members of a grader's object. @own: the grader is an object and not only a name. */
static snap_status read_members(task_file *f, const keys *k, bool own, grader_kind kind, rule *r,
                                snap_err *err) {
    snap_status st = SNAP_OK;
    if (kind == GRADER_LETTER)
        return read_letter(f, k, own, r, err);
    if (kind == GRADER_RECORDED)
        return read_recorded(f, k, own, r, err);
    if (!own)
        return SNAP_OK;
    if (kind == GRADER_INTEGER)
        return read_integer(f, k, err);
    if (kind == GRADER_ASSERTIONS)
        return read_assertions(f, k, err);
    if (kind != GRADER_EXACT)
        return keys_check(k, (const char *const[]){"name", NULL}, err);
    TRY(keys_check(
        k, (const char *const[]){"name", "ignore_case", "ignore_punctuation", "any_line", NULL},
        err));
    TRY(keys_bool(k, "ignore_case", &r->ignore_case, err));
    TRY(keys_bool(k, "ignore_punctuation", &r->ignore_punctuation, err));
    TRY(keys_bool(k, "any_line", &r->any_line, err));
cleanup:
    return st;
}

/* The grader that compares answers of this kind. NULL: the rule compares letters, texts or regular
 * expressions itself. */
static const grader *grader_of(grader_kind kind, math_policy policy) {
    static const grader *const mathematics[] = {[MATH_TRUTH] = &grader_math_truth,
                                                [MATH_FIELD] = &grader_math_field,
                                                [MATH_STRICT] = &grader_math_strict};
    return kind == GRADER_INTEGER       ? &grader_aime
           : kind == GRADER_MATHEMATICS ? mathematics[policy]
           : kind == GRADER_ASSERTIONS  ? &grader_assertions
           : kind == GRADER_STDIN       ? &grader_code_real
           : kind == GRADER_JUDGE       ? &grader_arena
           : kind == GRADER_SIMILARITY  ? &grader_similarity
                                        : NULL;
}

/* Reads "extract" and "grader" of an object. */
static snap_status read_rule(task_file *f, const keys *k, rule *r, grader_kind *kind,
                             snap_err *err) {
    int word;
    keys sub;
    snap_status st;
    TRY(read_named(k, "grader", kGraders, &sub, &word, err));
    if (word < 0)
        TRY(keys_bad(k, NULL, err, "needs a 'grader'"));
    *kind = (grader_kind)word;
    r->same = *kind == GRADER_EXACT ? SAME_TEXT : *kind == GRADER_REGEX ? SAME_REGEX : SAME_BY;
    for (int policy = MATH_TRUTH; policy <= MATH_STRICT; policy++)
        r->by[policy] = grader_of(*kind, (math_policy)policy);
    TRY(read_extract(k, *kind, r, err));
    TRY(read_members(f, &sub, is_own_object(k, &sub), *kind, r, err));
cleanup:
    return st;
}

/* ---- metrics ---- */

static bool is_metric_name(const char *s) {
    return strlen(s) <= 40 && strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_") == strlen(s);
}

static snap_status read_metric(task_file *f, const keys *k, snap_err *err) {
    grader_kind kind;
    const char *name;
    snap_status st;
    TRY(keys_check(k, (const char *const[]){"name", "extract", "grader", NULL}, err));
    TRY(keys_text(k, "name", &name, err));
    if (!name || !is_metric_name(name))
        return keys_bad(k, "name", err, "must be 1 to 40 of a-z, 0-9 and _");
    for (int i = 0; i < f->n_rules; i++)
        if (strcmp(f->metrics[i], name) == 0)
            TRY(keys_bad(k, "name", err, "is the name of another metric"));
    TRY(read_rule(f, k, &f->rules[f->n_rules], &kind, err));
    if (kind >= GRADER_ASSERTIONS)
        TRY(keys_bad(k, "grader", err, "'%s' cannot be the grader of a further metric",
                     kGraders[kind]));
    f->metrics[f->n_rules++] = name;
cleanup:
    return st;
}

static snap_status read_metrics(task_file *f, const keys *k, snap_err *err) {
    static const char *const index[] = {"0", "1", "2"};
    const js *list = js_get(k->object, "metrics");
    snap_status st = SNAP_OK;
    if (!js_has(k->object, "metrics"))
        return SNAP_OK;
    if (!js_is_array(list) || !js_len(list) || js_len(list) > GRADE_METRICS - 1)
        return keys_bad(k, "metrics", err, "must be a list of 1 to %d objects", GRADE_METRICS - 1);
    if (f->grader >= GRADER_ASSERTIONS)
        return keys_bad(k, "metrics", err, "do not go with the grader '%s'", kGraders[f->grader]);
    f->metrics[0] = "accuracy";
    for (size_t i = 0; i < js_len(list) && st == SNAP_OK; i++) {
        keys sub;
        st = keys_element(k, "metrics", index[i], &sub, err);
        if (st == SNAP_OK)
            st = read_metric(f, &sub, err);
    }
    return st;
}

/* ---- the task's graders ---- */

static void set_graders(task_file *f) {
    const rule *first = &f->rules[0];
    task_spec *t = &f->spec;
    if (f->n_rules == 1 && first->find == FIND_OWN && first->same == SAME_BY) {
        t->grader = first->by[MATH_TRUTH];
        if (f->grader == GRADER_MATHEMATICS)
            memcpy(t->by_policy, first->by, sizeof first->by);
        t->lcb_grader = f->grader == GRADER_STDIN ? &grader_code_lcb : NULL;
        return;
    }
    bool policies = false;
    for (int i = 0; i < f->n_rules; i++)
        policies = policies || f->rules[i].by[MATH_TRUTH] != f->rules[i].by[MATH_STRICT];
    const char *const *metrics = f->n_rules > 1 ? f->metrics : NULL;
    for (int policy = MATH_TRUTH; policy <= MATH_STRICT; policy++) {
        rule_grader_init(&f->graders[policy], f->rules, f->n_rules, (math_policy)policy, metrics);
        t->by_policy[policy] = policies ? &f->graders[policy].base : NULL;
    }
    t->grader = &f->graders[MATH_TRUTH].base;
}

snap_status read_rules(task_file *f, const keys *k, snap_err *err) {
    snap_status st;
    f->n_rules = 1;
    TRY(read_rule(f, k, &f->rules[0], &f->grader, err));
    TRY(read_metrics(f, k, err));
    set_graders(f);
cleanup:
    return st;
}
