#include "harness/eval/import.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/fs.h"
#include "base/text.h"
#include "harness/eval/arm_option.h"
#include "harness/eval/import_parts.h"

static snap_status no_memory(snap_err *err) {
    return err_set(err, SNAP_E_NOMEM, "out of memory for logs");
}

/* ---- the rows of a log that are used ---- */

static bool is_digits(const char *id) {
    return id[strspn(id, "0123456789")] == '\0';
}

/* Ids of digits come first, by length and then by bytes, which is numerical order if none has
 * leading zeros. The others follow in the order of their bytes. */
static int compare_ids(const char *a, const char *b) {
    bool digits = is_digits(a), both = digits && is_digits(b);
    size_t x = strlen(a), y = strlen(b);
    if (digits != is_digits(b))
        return digits ? -1 : 1;
    return both && x != y ? (x < y ? -1 : 1) : strcmp(a, b);
}

static int compare_keys(const js *a, const js *b) {
    int ids = compare_ids(js_get_str(a, "problem"), js_get_str(b, "problem"));
    int64_t x = js_get_int(a, "sample", 0), y = js_get_int(b, "sample", 0);
    return ids ? ids : (x > y) - (x < y);
}

static int by_key(const void *a, const void *b) {
    return compare_keys(*(const js *const *)a, *(const js *const *)b);
}

/* Writes the names of the filters, "a, b", for a message. They are cut if they do not fit. */
static void list_filters(const js *rows, char *out, size_t cap) {
    const char *names[8] = {0};
    size_t n = 0, at = 0;
    out[0] = '\0';
    for (size_t i = 0; i < js_len(rows) && n < sizeof names / sizeof *names && at < cap; i++) {
        const char *name = js_get_str(js_at(rows, i), "filter");
        bool seen = false;
        for (size_t k = 0; k < n && !seen; k++)
            seen = text_equal(names[k], name);
        if (seen || !name)
            continue;
        names[n++] = name;
        at += (size_t)snprintf(out + at, cap - at, "%s%.80s", at ? ", " : "", name);
    }
}

/* The filter whose rows are used; NULL if the rows have none. Without --filter it is the first one,
 * which must be the only one if its verdicts are taken. */
static snap_status choose_filter(const import_options *o, const import_arm *arm, const char **out,
                                 snap_err *err) {
    const js *rows = arm->log.rows;
    const char *first = js_get_str(js_at(rows, 0), "filter");
    const char *wanted = o->filter ? o->filter : first;
    char names[300];
    bool found = false, others = false;
    *out = wanted;
    for (size_t i = 0; i < js_len(rows); i++) {
        bool same = text_equal(js_get_str(js_at(rows, i), "filter"), wanted);
        found = found || same;
        others = others || !same;
    }
    if (found && (!others || o->filter || !o->metric))
        return SNAP_OK;
    if (!first)
        return err_set(err, SNAP_E_USAGE, "--filter: %s has no filters", arm->path);
    list_filters(rows, names, sizeof names);
    if (!found)
        return err_set(err, SNAP_E_USAGE, "%s has no filter '%s'; it has %s", arm->path, wanted,
                       names);
    return err_set(err, SNAP_E_USAGE,
                   "%s has verdicts of several filters: choose one with --filter (%s)", arm->path,
                   names);
}

/* Sorts the rows of the filter. If verdicts are taken and the log has one for all answers to a
 * question, only the first answer counts. */
static snap_status select_rows(const import_options *o, import_arm *arm, snap_err *err) {
    const js *rows = arm->log.rows;
    const char *filter;
    snap_status st = choose_filter(o, arm, &filter, err);
    if (st != SNAP_OK)
        return st;
    arm->filter = filter;
    arm->rows = calloc(js_len(rows), sizeof(js *));
    if (!arm->rows)
        return no_memory(err);
    for (size_t i = 0; i < js_len(rows); i++) {
        js *row = js_at(rows, i);
        bool repeated = arm->log.one_verdict && o->metric && js_get_int(row, "sample", 0) > 0;
        if (!repeated && text_equal(js_get_str(row, "filter"), filter))
            arm->rows[arm->n++] = row;
    }
    qsort(arm->rows, arm->n, sizeof(js *), by_key);
    for (size_t i = 1; i < arm->n; i++)
        if (compare_keys(arm->rows[i - 1], arm->rows[i]) == 0)
            return err_set(err, SNAP_E_INPUT, "%s: the log has the sample twice",
                           js_get_str(arm->rows[i], "where"));
    return SNAP_OK;
}

/* ---- whether the logs can be compared ---- */

/* Two rows of the same problem must have the same question and the same right answer. */
static snap_status check_same(const js *a, const js *b, snap_err *err) {
    static const struct {
        const char *key, *what;
    } same[] = {
        {"prompt", "prompt"}, {"prompt_hash", "hash of the prompt"}, {"gold", "right answer"}};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        const char *x = js_get_str(a, same[i].key), *y = js_get_str(b, same[i].key);
        size_t at = 0;
        if (text_equal(x, y))
            continue;
        while (x && y && x[at] && x[at] == y[at])
            at++;
        return err_set(err, SNAP_E_USAGE,
                       "%s and %s are answers to different questions: the %s of problem '%.80s' "
                       "differs from byte %zu on",
                       js_get_str(a, "where"), js_get_str(b, "where"), same[i].what,
                       js_get_str(a, "problem"), at + 1);
    }
    return SNAP_OK;
}

static snap_status missing(const import_arm *in, const import_arm *lacks, const js *row,
                           snap_err *err) {
    return err_set(
        err, SNAP_E_USAGE,
        "the logs have different samples: problem '%.80s', sample %lld is in %s, but not "
        "in %s",
        js_get_str(row, "problem"), (long long)js_get_int(row, "sample", 0), in->path, lacks->path);
}

static snap_status check_arms(const import_arm *a, const import_arm *b, snap_err *err) {
    snap_status st = SNAP_OK;
    for (size_t i = 0; (i < a->n || i < b->n) && st == SNAP_OK; i++) {
        int order = i >= a->n ? 1 : i >= b->n ? -1 : compare_keys(a->rows[i], b->rows[i]);
        st = order < 0   ? missing(a, b, a->rows[i], err)
             : order > 0 ? missing(b, a, b->rows[i], err)
                         : check_same(a->rows[i], b->rows[i], err);
    }
    return st;
}

static snap_status check_arm(const import_arm *arm, snap_err *err) {
    snap_status st = SNAP_OK;
    for (size_t i = 1; i < arm->n && st == SNAP_OK; i++)
        if (strcmp(js_get_str(arm->rows[i - 1], "problem"), js_get_str(arm->rows[i], "problem")) ==
            0)
            st = check_same(arm->rows[i - 1], arm->rows[i], err);
    return st;
}

/* ---- the arms ---- */

/* @first: an arm that was opened before; NULL: none */
static snap_status open_arm(const import_options *o, const char *text, const import_arm *first,
                            import_arm *arm, snap_err *err) {
    const char *equals = strchr(text, '=');
    snap_status st;
    if (!equals || !arm_name_is_valid(text, (size_t)(equals - text)))
        return err_set(err, SNAP_E_USAGE, "'%s' must be NAME=LOG, for example bf16=%s", text,
                       equals ? equals + 1 : text);
    arm->path = equals + 1;
    (void)snprintf(arm->name, sizeof arm->name, "%.*s", (int)(equals - text), text);
    TRY(foreign_log_read(&arm->log, arm->path, err));
    if (first && strcmp(first->log.from, arm->log.from) != 0)
        TRY(err_set(err, SNAP_E_USAGE, "%s is a log of %s, and %s one of %s", first->path,
                    first->log.from, arm->path, arm->log.from));
    TRY(select_rows(o, arm, err));
    TRY(check_arm(arm, err));
cleanup:
    return st;
}

static snap_status open_arms(const import_options *o, import_arm *arms, snap_err *err) {
    snap_status st = SNAP_OK;
    for (int i = 0; i < o->n && st == SNAP_OK; i++) {
        st = open_arm(o, o->logs[i], i ? &arms[0] : NULL, &arms[i], err);
        for (int k = 0; k < i && st == SNAP_OK; k++)
            if (strcmp(arms[k].name, arms[i].name) == 0)
                st = err_set(err, SNAP_E_USAGE, "two logs have the name '%s'", arms[i].name);
        if (st == SNAP_OK && i)
            st = check_arms(&arms[0], &arms[i], err);
    }
    return st;
}

static void close_arms(import_arm *arms, int n) {
    for (int i = 0; i < n; i++) {
        foreign_log_release(&arms[i].log);
        free(arms[i].rows);
    }
    free(arms);
}

static snap_status check_options(const import_options *o, snap_err *err) {
    if (!o->out)
        return err_set(err, SNAP_E_USAGE, "no folder is given for the files: name it with --out");
    if (!o->metric == !o->task)
        return err_set(
            err, SNAP_E_USAGE,
            "give --metric NAME to take the verdicts of the log, or --task TASK to judge "
            "the answers again");
    return SNAP_OK;
}

snap_status import_logs(const import_options *o, js **out, snap_err *err) {
    fault_mark before = fault_begin();
    snap_status st = check_options(o, err);
    import_arm *arms = NULL;
    *out = NULL;
    if (st != SNAP_OK)
        return st;
    arms = calloc((size_t)o->n + 1, sizeof *arms);
    if (!arms)
        return no_memory(err);
    TRY(open_arms(o, arms, err));
    TRY(fs_mkdirs(o->out, err));
    TRY(import_write(o, arms, out, err));
cleanup:
    close_arms(arms, o->n);
    return fault_result(before, st, err);
}
