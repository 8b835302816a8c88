#include "generator/replay/recording.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/rng.h"
#include "base/text.h"

/* ---- the table ---- */

static uint64_t hash_key(const char *task, const char *problem, int sample) {
    uint64_t h = rng_stream_of(task);
    h = (h ^ rng_stream_of(problem)) * UINT64_C(0x9E3779B97F4A7C15);
    h = (h ^ (uint64_t)sample) * UINT64_C(0xD6E8FEB86659FD93);
    return h ^ h >> 32;
}

/* The place of a key in the table: the one that holds its row, or the empty one for it. */
static recorded *place_of(const recording *r, const char *task, const char *problem, int sample) {
    size_t mask = r->size - 1;
    for (size_t i = (size_t)hash_key(task, problem, sample) & mask;; i = (i + 1) & mask) {
        recorded *row = &r->table[i];
        if (!row->task || (row->sample == sample && strcmp(row->problem, problem) == 0 &&
                           strcmp(row->task, task) == 0))
            return row;
    }
}

/* Makes sure that one more row fits, with at least a quarter of the places empty. */
static bool reserve(recording *r) {
    if (r->size && r->count < r->size / 4 * 3)
        return true;
    recording grown = {.size = r->size ? r->size * 2 : 1024};
    grown.table = calloc(grown.size, sizeof *grown.table);
    if (!grown.table)
        return false;
    for (size_t i = 0; i < r->size; i++)
        if (r->table[i].task)
            *place_of(&grown, r->table[i].task, r->table[i].problem, r->table[i].sample) =
                r->table[i];
    free(r->table);
    r->table = grown.table;
    r->size = grown.size;
    return true;
}

const recorded *recording_find(const recording *r, const char *task, const char *problem,
                               int sample) {
    const recorded *row = r->size ? place_of(r, task, problem, sample) : NULL;
    return row && row->task ? row : NULL;
}

void recording_release(recording *r) {
    arena_release(&r->memory);
    free(r->table);
    *r = (recording){0};
}

/* ---- whether a row answers a request ---- */

bool recording_mismatch(const recorded *row, const gen_request *req, char *why, size_t cap) {
    gen_sampling_value wanted[GEN_SAMPLING_VALUES];
    gen_sampling_values(&req->sampling, wanted);
    why[0] = '\0';
    if (row->prompt_sha256 && req->prompt_sha256 &&
        strcmp(row->prompt_sha256, req->prompt_sha256) != 0)
        (void)snprintf(why, cap, "another prompt");
    for (int i = 0; i < GEN_SAMPLING_VALUES && !why[0]; i++)
        if (row->sampling[i] < wanted[i].value || row->sampling[i] > wanted[i].value)
            /* false for NAN */
            (void)snprintf(why, cap, "%s %.10g, the request has %.10g", wanted[i].name,
                           row->sampling[i], wanted[i].value);
    const char *settings = req->settings_sha256 ? req->settings_sha256 : "";
    if (!why[0] && row->settings_sha256 && strcmp(row->settings_sha256, settings) != 0)
        (void)snprintf(why, cap, "another system message, body or other setting of the request");
    return why[0] != '\0';
}

/* ---- rows ---- */

typedef struct {
    recording *out;
    const char *name; /* name of the file in messages */
    const char *arm;  /* the arm to read; NULL = any one */
    const char *seen; /* arm of the first row that states one; NULL = none yet */
    long seen_line;
} reader;

/* *out = a string member, copied into the memory of the recording; NULL where it is absent or
 * null. */
static snap_status take_str(reader *rd, const js *row, const char *key, const char *where,
                            const char **out, snap_err *err) {
    *out = NULL;
    const js *v = js_get(row, key);
    if (!v)
        return SNAP_OK;
    size_t n;
    const char *s = js_get_strn(row, key, &n);
    if (!s)
        return err_set(err, SNAP_E_INPUT, "%s: key '%s' must be a string, got %s", where, key,
                       js_type_name(v));
    buf clean = {0};
    text_append_without_nul(&clean, s, n);
    *out = clean.failed ? NULL : arena_strndup(&rd->out->memory, buf_str(&clean), clean.len);
    buf_release(&clean);
    return *out ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "%s: out of memory", where);
}

static snap_status need_str(reader *rd, const js *row, const char *key, const char *where,
                            const char **out, snap_err *err) {
    snap_status st = take_str(rd, row, key, where, out, err);
    if (st == SNAP_OK && !*out)
        st = err_set(err, SNAP_E_INPUT, "%s: key '%s' (a string) is missing", where, key);
    return st;
}

static snap_status take_key(reader *rd, const js *row, const char *where, recorded *out,
                            snap_err *err) {
    int64_t sample = 0;
    snap_status st = need_str(rd, row, "task", where, &out->task, err);
    if (st == SNAP_OK)
        st = need_str(rd, row, "problem", where, &out->problem, err);
    if (st == SNAP_OK)
        st = js_need_int(row, "sample", &sample, where, err);
    if (st == SNAP_OK && (sample < 0 || sample > INT_MAX))
        st = err_set(err, SNAP_E_INPUT, "%s: key 'sample' must be 0 or more, got %lld", where,
                     (long long)sample);
    out->sample = (int)sample;
    return st;
}

static int64_t count_of(const js *row, const char *key) {
    int64_t n = js_get_int(row, key, -1);
    return n < 0 ? -1 : n;
}

/* Milliseconds as nanoseconds; @unknown if the key is absent, no number, negative or above 1e12. */
static int64_t time_of(const js *row, const char *key, int64_t unknown) {
    double ms = js_get_num(row, key, -1);
    return ms >= 0 && ms <= 1e12 ? (int64_t)(ms * 1e6) : unknown;
}

/* Reads the prompt's hash, the sampling and the hash of the settings of the recorded request, if
 * the row states them. If it has "sampling", the parameters that are not listed there were off, and
 * a missing hash of the settings means that there were none. */
static snap_status take_request_info(reader *rd, const js *row, const char *where, recorded *out,
                                     snap_err *err) {
    const js *sampling = js_get_object(row, "sampling");
    gen_sampling_value values[GEN_SAMPLING_VALUES];
    gen_sampling_values(&(gen_sampling){0}, values);
    for (int i = 0; i < GEN_SAMPLING_VALUES; i++)
        out->sampling[i] =
            js_get_num(sampling, values[i].name, sampling ? values[i].off : (double)NAN);
    snap_status st = take_str(rd, row, "request_sha256", where, &out->settings_sha256, err);
    if (st == SNAP_OK && sampling && !out->settings_sha256)
        out->settings_sha256 = "";
    return st == SNAP_OK ? take_str(rd, row, "prompt_sha256", where, &out->prompt_sha256, err) : st;
}

static snap_status take_answer(reader *rd, const js *row, const char *where, recorded *out,
                               snap_err *err) {
    const char *text_key = js_get(row, "response") ? "response" : "text";
    snap_status st = take_str(rd, row, "error", where, &out->error, err);
    if (st == SNAP_OK)
        st = take_str(rd, row, text_key, where, &out->text, err);
    if (st == SNAP_OK)
        st = take_str(rd, row, "reasoning", where, &out->reasoning, err);
    if (st == SNAP_OK)
        st = take_str(rd, row, "finish_reason", where, &out->finish_reason, err);
    if (st == SNAP_OK && !out->text && !out->error)
        st = err_set(err, SNAP_E_INPUT, "%s: key 'response' (a string) is missing", where);
    if (!out->text)
        out->text = "";
    if (!out->finish_reason)
        out->finish_reason = "unknown";
    out->prompt_tokens = count_of(row, "prompt_tokens");
    out->completion_tokens = count_of(row, "completion_tokens");
    out->reasoning_tokens = count_of(row, "reasoning_tokens");
    out->repaired = js_get_bool(row, "repaired", false);
    out->first_token_ns = time_of(row, "ttft_ms", -1);
    out->total_ns = time_of(row, "total_ms", 0);
    out->itl_mean_ns = time_of(row, "itl_ms_mean", -1);
    out->itl_p50_ns = time_of(row, "itl_ms_p50", -1);
    out->itl_p99_ns = time_of(row, "itl_ms_p99", -1);
    return st;
}

static snap_status take_verdict(reader *rd, const js *row, const char *where, gen_verdict *out,
                                snap_err *err) {
    snap_status st = take_str(rd, row, "grader", where, &out->grader, err);
    if (st == SNAP_OK)
        st = take_str(rd, row, "verdict", where, &out->verdict, err);
    return st == SNAP_OK ? take_str(rd, row, "extracted", where, &out->extracted, err) : st;
}

/* Whether the row belongs to the arm that is read. */
static snap_status choose_arm(reader *rd, const js *row, long line, const char *where, bool *take,
                              snap_err *err) {
    const char *arm;
    *take = true;
    snap_status st = take_str(rd, row, "arm", where, &arm, err);
    if (st != SNAP_OK || !arm)
        return st;
    if (!rd->seen) {
        rd->seen = arm;
        rd->seen_line = line;
    }
    if (rd->arm)
        *take = strcmp(arm, rd->arm) == 0;
    else if (strcmp(arm, rd->seen) != 0)
        return err_set(err, SNAP_E_USAGE,
                       "%s: arm '%.80s' after arm '%.80s' on line %ld; choose one with model=ARM",
                       where, arm, rd->seen, rd->seen_line);
    return SNAP_OK;
}

static snap_status insert(reader *rd, const recorded *row, const char *where, snap_err *err) {
    if (!reserve(rd->out))
        return err_set(err, SNAP_E_NOMEM, "%s: out of memory", where);
    recorded *place = place_of(rd->out, row->task, row->problem, row->sample);
    if (place->task && !place->error)
        return err_set(err, SNAP_E_INPUT,
                       "%s: task '%.80s', problem '%.80s', sample %d is on line %ld already", where,
                       row->task, row->problem, row->sample, place->line);
    rd->out->count += place->task ? 0 : 1;
    *place = *row;
    return SNAP_OK;
}

static snap_status read_row(void *ctx, js *object, long line, snap_err *err) {
    reader *rd = ctx;
    char where[300];
    (void)snprintf(where, sizeof where, "%s:%ld", rd->name, line);
    recorded row = {.line = line};
    bool take;
    snap_status st = choose_arm(rd, object, line, where, &take, err);
    if (st != SNAP_OK || !take)
        return st;
    st = take_key(rd, object, where, &row, err);
    if (st == SNAP_OK)
        st = take_answer(rd, object, where, &row, err);
    if (st == SNAP_OK)
        st = take_request_info(rd, object, where, &row, err);
    if (st == SNAP_OK)
        st = take_verdict(rd, object, where, &row.verdict, err);
    return st == SNAP_OK ? insert(rd, &row, where, err) : st;
}

snap_status recording_read(recording *out, const char *text, size_t n, const char *name,
                           const char *arm, snap_err *err) {
    *out = (recording){0};
    reader rd = {.out = out, .name = name, .arm = arm};
    snap_status st = js_each_line(text, n, name, read_row, &rd, err);
    if (st != SNAP_OK || out->count)
        return st;
    if (rd.seen)
        return err_set(err, SNAP_E_INPUT, "%s: no row is of arm '%s'; the first is of '%s'", name,
                       arm, rd.seen);
    return err_set(err, SNAP_E_INPUT, "%s: no rows", name);
}
