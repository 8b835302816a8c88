#include <stdio.h>
#include <string.h>

#include "base/fs.h"
#include "base/text.h"
#include "evals/task.h"
#include "harness/cmd/cmd.h"

static const char *task_name;
static const size_t kInputLimit = (size_t)8 << 30;

static const opt options[] = {
    {OPT_STR, "task", 't', &task_name, "NAME", "whose grader judges: aime24, aime25, synth_aime", 0,
     0},
    {.type = OPT_END},
};

static const opt_command spec = {
    .name = "grade",
    .synopsis = "--task NAME [FILE]",
    .about =
        "Judges recorded answers, one JSON object a line: {\"gold\", \"response\"} searches the\n"
        "response for its answer, {\"gold\", \"answer\"} takes the answer as it is. Other keys "
        "are\n"
        "ignored, so the samples.jsonl of a run is an input. Writes one object a line in the same\n"
        "order: the verdict (correct, wrong, unparsed), what was extracted, by which rule, why.\n"
        "Nothing is written if a line is malformed.",
    .examples = "  snapmla grade --task aime24 < RUN/samples.jsonl\n"
                "  snapmla grade --task aime24 answers.jsonl > verdicts.jsonl",
    .options = options,
    .max_args = 1,
};

typedef struct {
    const grader *grader;
    const char *name;
    buf out;
} grading;

/* The gold as text, from a string or an integer. */
static snap_status gold_of(const grading *g, const js *row, const char *where, char *out,
                           size_t cap, snap_err *err) {
    const js *gold = js_get(row, "gold");
    int n = js_is_int(gold)   ? snprintf(out, cap, "%lld", (long long)js_int(gold))
            : js_is_str(gold) ? snprintf(out, cap, "%s", js_str(gold))
                              : -1;
    if (n < 0)
        return err_set(err, SNAP_E_INPUT, "%s: 'gold' must be a string or an integer", where);
    if ((size_t)n >= cap)
        return err_set(err, SNAP_E_INPUT, "%s: 'gold' is longer than %zu bytes", where, cap - 1);
    snap_err why = {0};
    if (g->grader->check_gold(out, &why) != SNAP_OK)
        return err_set(err, SNAP_E_INPUT, "%s: %s", where, why.text);
    return SNAP_OK;
}

/* The answer may be a number; the response is text, or null where there is none. */
static snap_status input_of(const js *row, const char *where, char *number, size_t cap,
                            grade_input *in, snap_err *err) {
    const js *answer = js_get(row, "answer"), *response = js_get(row, "response");
    size_t n = 0;
    *in = (grade_input){.response = {"", 0}, .extracted = answer != NULL};
    in->truncated = text_equal(js_get_str(row, "finish_reason"), "length");
    if (in->extracted && js_is_int(answer)) {
        n = (size_t)snprintf(number, cap, "%lld", (long long)js_int(answer));
        in->response = (span){number, n};
    } else if (in->extracted && js_is_str(answer)) {
        in->response.s = js_get_strn(row, "answer", &in->response.n);
    } else if (!in->extracted && js_is_str(response)) {
        in->response.s = js_get_strn(row, "response", &in->response.n);
    } else if (in->extracted || response) {
        return err_set(err, SNAP_E_INPUT, "%s: '%s' must be a string", where,
                       in->extracted ? "answer" : "response");
    }
    return SNAP_OK;
}

static bool write_verdict(grading *g, const grade_result *r) {
    js *row = js_new_object();
    bool ok = row && js_set_str(row, "verdict", grade_verdict_name(r->verdict)) &&
              js_set_str(row, "extracted", r->rule ? r->extracted : NULL) &&
              js_set_str(row, "rule", r->rule) && js_set_str(row, "reason", r->reason) &&
              js_set_bool(row, "truncated_box", r->open_box) &&
              js_set_str(row, "grader", g->grader->id);
    ok = ok && js_write(row, JS_COMPACT, &g->out, NULL) == SNAP_OK && buf_puts(&g->out, "\n");
    js_free(row);
    return ok;
}

/* Also where the value is null, as the response of a failed sample is. */
static bool has_key(js *row, const char *key) {
    for (void *it = js_first(row); it; it = js_next(row, it))
        if (strcmp(js_key(it), key) == 0)
            return true;
    return false;
}

static snap_status grade_line(void *ctx, js *row, long line, snap_err *err) {
    grading *g = ctx;
    snap_status st;
    char where[300], gold[1024], number[24];
    grade_input in;
    (void)snprintf(where, sizeof where, "%.240s:%ld", g->name, line);
    if (!js_get(row, "gold"))
        TRY(err_set(err, SNAP_E_INPUT, "%s: no 'gold'", where));
    if (!has_key(row, "answer") && !has_key(row, "response"))
        TRY(err_set(err, SNAP_E_INPUT, "%s: neither 'response' nor 'answer'", where));
    TRY(gold_of(g, row, where, gold, sizeof gold, err));
    TRY(input_of(row, where, number, sizeof number, &in, err));
    grade_result r = g->grader->grade(gold, in);
    if (!write_verdict(g, &r))
        TRY(err_set(err, SNAP_E_NOMEM, "out of memory for the verdicts"));
cleanup:
    return st;
}

static snap_status find_grader(grading *g, snap_err *err) {
    char names[300];
    const task_spec *t = task_name ? task_find(task_name) : NULL;
    task_names(names, sizeof names);
    if (!task_name)
        return err_set(err, SNAP_E_USAGE, "no task: give --task NAME (%s)", names);
    if (!t)
        return err_set(err, SNAP_E_USAGE, "unknown task '%s' (tasks: %s)", task_name, names);
    g->grader = t->grader;
    return SNAP_OK;
}

static snap_status run(opt_shared *shared, snap_err *err) {
    snap_status st;
    const char *path = shared->n_args ? shared->args[0] : "-";
    grading g = {.name = strcmp(path, "-") == 0 ? "stdin" : path, .out.limit = kInputLimit};
    buf text = {.limit = kInputLimit};
    TRY(find_grader(&g, err));
    TRY(fs_read(path, &text, err));
    TRY(js_each_line(buf_str(&text), text.len, g.name, grade_line, &g, err));
    if (fwrite(buf_str(&g.out), 1, g.out.len, stdout) != g.out.len)
        TRY(err_set_errno(err, "cannot write standard output"));
cleanup:
    buf_release(&g.out);
    buf_release(&text);
    return st;
}

const cmd cmd_grade = {&spec, run, "judge recorded answers again, without generating"};
