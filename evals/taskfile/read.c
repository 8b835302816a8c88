/* read.c - reads a task file. */
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/text.h"
#include "evals/taskfile/parts.h"

enum { kNameMax = 64, kMostSamples = 100000 };

bool task_file_is_one(const js *file) {
    return js_is_object(file) && js_has(file, "task");
}

snap_status read_template(const keys *k, const char *key, template **out, snap_err *err) {
    const char *text;
    snap_err why = {0};
    snap_status st = keys_text(k, key, &text, err);
    if (st != SNAP_OK || !text || template_compile(text, k->mem, out, &why) == SNAP_OK)
        return st;
    return why.code == SNAP_E_INPUT ? keys_bad(k, key, err, "is not a template: %s", why.text)
                                    : err_set(err, why.code, "%s: %s", k->name, why.text);
}

/* ---- names and paths ---- */

static bool is_task_name(const char *s) {
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    return s && !strchr("_.-", s[0]) && strlen(s) <= kNameMax && strspn(s, allowed) == strlen(s);
}

bool path_is_inside(const char *path) {
    if (path[0] == '/')
        return false;
    for (const char *s = path; *s; s += strcspn(s, "/"), s += *s == '/')
        if (strncmp(s, "..", 2) == 0 && (s[2] == '/' || !s[2]))
            return false;
    return true;
}

static snap_status read_head(task_file *f, const keys *k, snap_err *err) {
    task_spec *t = &f->spec;
    const char *about;
    size_t n;
    int64_t samples = 1;
    snap_status st;
    TRY(keys_text(k, "task", &t->name, err));
    if (!is_task_name(t->name))
        TRY(keys_bad(k, "task", err,
                     "must be a name of 1 to %d letters, digits, '.', '_' and '-' that begins with "
                     "a letter or digit",
                     kNameMax));
    TRY(keys_text(k, "title", &t->title, err));
    t->title = t->title ? t->title : t->name;
    TRY(keys_text(k, "about", &about, err));
    TRY(keys_texts(k, "data", t->files, TASK_FILES - 1, &n, err));
    if (!n && !f->generator.given)
        TRY(keys_bad(k, NULL, err,
                     "needs 'data', the path of the data file, or a 'generator' of problems"));
    if (n && f->generator.given)
        TRY(keys_bad(k, "data", err, "does not go with 'generator'"));
    for (size_t i = 0; i < n; i++)
        if (!path_is_inside(t->files[i]))
            TRY(keys_bad(k, "data", err, "must be a relative path without '..': '%.80s'",
                         t->files[i]));
    TRY(keys_int(k, "samples", 1, kMostSamples, &samples, err));
    t->samples = (int)samples;
    TRY(keys_text(k, "damaged", &t->damaged, err));
    TRY(keys_num(k, "margin_pp", 1e-6, 100, &t->margin_pp, err));
cleanup:
    return st;
}

/* ---- rows ---- */

static bool is_scalar(const js *v) {
    return js_is_str(v) || js_is_num(v) || js_is_bool(v);
}

static snap_status read_bounds(const keys *k, const char *field, where_part *w, snap_err *err) {
    keys sub;
    bool found;
    snap_status st;
    TRY(keys_object(k, field, &sub, &found, err));
    TRY(keys_check(&sub, (const char *const[]){"from", "to", NULL}, err));
    w->from = -DBL_MAX;
    w->to = DBL_MAX;
    TRY(keys_num(&sub, "from", -DBL_MAX, DBL_MAX, &w->from, err));
    TRY(keys_num(&sub, "to", w->from, DBL_MAX, &w->to, err));
cleanup:
    return st;
}

static snap_status read_condition(const keys *k, const char *field, const js *value, where_part *w,
                                  snap_err *err) {
    w->field = arena_strdup(k->mem, field);
    if (!w->field)
        return err_set(err, SNAP_E_NOMEM, "%s: out of memory", k->name);
    if (js_is_object(value))
        return read_bounds(k, field, w, err);
    bool fine = is_scalar(value) || js_len(value);
    for (size_t i = 0; i < js_len(value); i++)
        fine = fine && is_scalar(js_at(value, i));
    if (!fine)
        return keys_bad(k, field, err,
                        "must be a text, a number, a list of these, or an object with 'from' and "
                        "'to'");
    w->values = value;
    return SNAP_OK;
}

static snap_status read_where(task_file *f, const keys *k, snap_err *err) {
    keys sub;
    bool found;
    snap_status st = keys_object(k, "where", &sub, &found, err);
    if (st != SNAP_OK || !found)
        return st;
    for (void *it = js_first(sub.object); it && st == SNAP_OK; it = js_next(sub.object, it)) {
        if (f->n_where == TASK_WHERE)
            return keys_bad(k, "where", err, "has more than %d conditions", TASK_WHERE);
        st = read_condition(&sub, js_key(it), js_value(it), &f->where[f->n_where++], err);
    }
    return st;
}

static snap_status read_field_files(task_file *f, const keys *k, snap_err *err) {
    keys sub;
    bool found;
    snap_status st = keys_object(k, "files", &sub, &found, err);
    if (st != SNAP_OK || !found)
        return st;
    for (void *it = js_first(sub.object); it && st == SNAP_OK; it = js_next(sub.object, it)) {
        field_file *to = &f->files[f->n_files];
        if (f->n_files++ == TASK_FIELD_FILES)
            return keys_bad(k, "files", err, "has more than %d fields", TASK_FIELD_FILES);
        st = read_template(&sub, js_key(it), &to->path, err);
        if (st == SNAP_OK && !(to->field = arena_strdup(k->mem, js_key(it))))
            st = err_set(err, SNAP_E_NOMEM, "%s: out of memory", k->name);
    }
    return st;
}

static snap_status read_choices(task_file *f, const keys *k, snap_err *err) {
    static const char *const answers[] = {"letter", "index", "number", "text", NULL};
    choices_part *c = &f->choices;
    const char *texts[TASK_CHOICES + 1];
    size_t n_texts;
    int word;
    keys sub;
    snap_status st;
    TRY(keys_object(k, "choices", &sub, &c->given, err));
    if (!c->given)
        goto cleanup;
    TRY(keys_check(&sub,
                   (const char *const[]){"field", "fields", "texts", "item", "skip", "answer",
                                         "labels", "shuffle", NULL},
                   err));
    TRY(keys_text(&sub, "field", &c->field, err));
    TRY(keys_texts(&sub, "fields", c->fields, TASK_CHOICES, &c->n_fields, err));
    TRY(keys_texts(&sub, "texts", texts, TASK_CHOICES, &n_texts, err));
    c->texts = js_get_array(sub.object, "texts");
    if (!!c->field + !!c->n_fields + !!n_texts != 1 || c->n_fields == 1 ||
        (n_texts && js_len(c->texts) < 2))
        TRY(keys_bad(&sub, NULL, err,
                     "needs one of 'field' (a field with a list), 'fields' (two fields or more) "
                     "and 'texts' (two texts or more)"));
    TRY(keys_text(&sub, "item", &c->item, err));
    TRY(keys_text(&sub, "skip", &c->skip, err));
    TRY(keys_text(&sub, "labels", &c->labels, err));
    TRY(keys_bool(&sub, "shuffle", &c->shuffle, err));
    TRY(keys_word(&sub, "answer", answers, &word, err));
    c->answer = word < 0 ? ANSWER_LETTER : (answer_kind)word;
    if (c->item && !c->field)
        TRY(keys_bad(&sub, "item", err, "goes with 'field'"));
    if (c->labels && (word >= 0 || !c->field))
        TRY(keys_bad(&sub, "labels", err, "goes with 'field', and without 'answer'"));
cleanup:
    return st;
}

static snap_status read_examples(task_file *f, const keys *k, snap_err *err) {
    static const char *const orders[] = {"first", "random", NULL};
    examples_part *e = &f->examples;
    int word;
    keys sub;
    snap_status st;
    TRY(keys_object(k, "examples", &sub, &e->given, err));
    if (!e->given)
        goto cleanup;
    TRY(keys_check(&sub,
                   (const char *const[]){"data", "rows", "count", "order", "match", "optional",
                                         "template", NULL},
                   err));
    TRY(keys_text(&sub, "data", &e->data, err));
    e->rows = js_get_array(sub.object, "rows");
    if (!!e->data + js_has(sub.object, "rows") != 1 || (e->rows && !js_len(e->rows)))
        TRY(keys_bad(&sub, NULL, err, "needs either 'data' (a file) or 'rows' (a list)"));
    if (e->data && !path_is_inside(e->data))
        TRY(keys_bad(&sub, "data", err, "must be a relative path without '..'"));
    for (size_t i = 0; i < js_len(e->rows); i++)
        if (!js_is_object(js_at(e->rows, i)))
            TRY(keys_bad(&sub, "rows", err, "must be a list of objects"));
    e->count = e->data ? 5 : (int64_t)js_len(e->rows);
    TRY(keys_int(&sub, "count", 1, TASK_EXAMPLES, &e->count, err));
    TRY(keys_word(&sub, "order", orders, &word, err));
    e->random = word == 1;
    TRY(keys_text(&sub, "match", &e->match, err));
    TRY(keys_bool(&sub, "optional", &e->optional, err));
    TRY(read_template(&sub, "template", &e->text, err));
    if (!e->text)
        TRY(keys_bad(&sub, NULL, err, "needs a 'template'"));
cleanup:
    return st;
}

/* ---- texts ---- */

static snap_status read_prompts(task_file *f, const keys *k, snap_err *err) {
    const char *texts[TASK_PROMPTS + 1];
    snap_err why = {0};
    bool used = false;
    snap_status st;
    TRY(keys_texts(k, "prompt", texts, TASK_PROMPTS, &f->n_prompts, err));
    if (!f->n_prompts)
        TRY(keys_bad(k, NULL, err, "needs a 'prompt'"));
    for (size_t i = 0; i < f->n_prompts; i++) {
        if (template_compile(texts[i], &f->mem, &f->prompts[i], &why) != SNAP_OK)
            TRY(why.code == SNAP_E_INPUT
                    ? keys_bad(k, "prompt", err, "is not a template: %s", why.text)
                    : err_set(err, why.code, "%s: %s", k->name, why.text));
        used = used || template_uses(f->prompts[i], "examples");
    }
    if (f->examples.given && !used)
        TRY(keys_bad(k, "prompt", err, "does not contain {{examples}}"));
    TRY(read_template(k, "system", &f->system, err));
    TRY(read_template(k, "answer", &f->answer, err));
cleanup:
    return st;
}

/* Checks that "answer", "files" and the members of "grader" fit the grader. */
static snap_status check_answer(const task_file *f, const keys *k, snap_err *err) {
    bool programs = grade_runs_programs(f->spec.grader);
    if (programs && f->answer)
        return keys_bad(k, "answer", err, "has no use: programs are judged by their tests");
    if (programs && f->n_files)
        return keys_bad(k, "files", err, "do not go with programs");
    if (f->grader == GRADER_ASSERTIONS && !f->after)
        return keys_bad(k, "grader", err, "needs 'after', the assertions that follow a program");
    if (!programs && f->grader != GRADER_JUDGE && !f->answer)
        return keys_bad(k, NULL, err, "needs an 'answer'");
    return SNAP_OK;
}

static snap_status read_members(task_file *f, const keys *k, snap_err *err) {
    static const char *const known[] = {
        "task",      "title",     "about",    "data",   "id",      "where",  "files",   "choices",
        "system",    "prompt",    "examples", "answer", "extract", "grader", "metrics", "samples",
        "margin_pp", "generator", "damaged",  "turns",  "groups",  NULL};
    snap_status st;
    TRY(keys_check(k, known, err));
    TRY(read_generator(f, k, err));
    TRY(read_head(f, k, err));
    TRY(read_turns(f, k, err));
    TRY(read_groups(f, k, err));
    TRY(keys_texts(k, "id", f->ids, TASK_IDS, &f->n_ids, err));
    TRY(read_where(f, k, err));
    TRY(read_field_files(f, k, err));
    TRY(read_choices(f, k, err));
    TRY(read_examples(f, k, err));
    TRY(read_prompts(f, k, err));
    TRY(read_rules(f, k, err));
    if (f->grader == GRADER_LETTER)
        f->spec.chance = 1.0 / (f->rules[0].last - 'A' + 1);
    TRY(check_answer(f, k, err));
cleanup:
    return st;
}

/* ---- the file ---- */

static void set_functions(task_file *f) {
    task_spec *t = &f->spec;
    t->own = f;
    t->file_sha256 = f->sha256;
    t->load = file_load;
    t->read_row = file_read_row;
    t->read_tests = grade_runs_programs(t->grader) ? file_read_tests : NULL;
}

static snap_status read_file(task_file *f, const char *text, size_t n, const char *name,
                             const char *folder, snap_err *err) {
    snap_status st;
    TRY(hash_bytes(text, n, f->sha256, err));
    f->file = js_parse(text, n, name, err);
    if (!f->file)
        return err ? err->code : SNAP_E_INPUT;
    const keys k = {.name = name, .text = text, .n = n, .object = f->file, .mem = &f->mem};
    if (!js_is_object(f->file))
        TRY(keys_bad(&k, NULL, err, "a task must be an object"));
    TRY(read_members(f, &k, err));
    if (folder && !(f->spec.folder = arena_strdup(&f->mem, folder)))
        TRY(err_set(err, SNAP_E_NOMEM, "%s: out of memory", name));
    set_functions(f);
cleanup:
    return st;
}

snap_status task_file_parse(const char *text, size_t n, const char *name, const char *folder,
                            task_file **out, snap_err *err) {
    fault_mark before = fault_begin();
    task_file *f = calloc(1, sizeof *f);
    snap_err unused = {0};
    *out = NULL;
    if (!f)
        return err_set(err, SNAP_E_NOMEM, "%s: out of memory", name);
    snap_status st = read_file(f, text, n, name, folder, err ? err : &unused);
    st = fault_result(before, st, err);
    if (st != SNAP_OK)
        task_file_free(f);
    else
        *out = f;
    return st;
}

void task_file_free(task_file *f) {
    if (!f)
        return;
    for (int i = 0; i < GRADE_METRICS; i++)
        rule_release(&f->rules[i]);
    js_free(f->file);
    arena_release(&f->mem);
    free(f);
}

const task_spec *task_file_spec(const task_file *f) {
    return &f->spec;
}
