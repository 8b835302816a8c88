#include "harness/eval/judge_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "generator/settings.h"
#include "harness/eval/arm_option.h"
#include "harness/eval/arm_secrets.h"
#include "harness/eval/run_files.h"
#include "harness/record/provenance.h"

enum { kJudgeTokens = 16000 };

#define RUN_JUDGE "judge" /* key of the journal: a judge_record */

/* ---- the option --judge-model ---- */

static snap_status parse_arm(const char *text, const generate_options *opt, arena *mem,
                             eval_arm *out, snap_err *err) {
    buf named = {0};
    (void)buf_printf(&named, "judge=%s", text);
    const char *kept = named.failed ? NULL : arena_strdup(mem, buf_str(&named));
    buf_release(&named);
    if (!kept)
        return err_set(err, SNAP_E_NOMEM, "out of memory for the judge");
    snap_status st = arm_parse("--judge-model", kept, opt->judge_from_file, mem, out, err);
    return st == SNAP_OK ? gen_settings_check(&out->settings, err) : st;
}

/* Writes the sampling without the seed: "temperature 0, top_p 1, max_tokens 16000". */
static void write_sampling(const gen_sampling *s, buf *out) {
    gen_sampling_value values[GEN_SAMPLING_VALUES];
    gen_sampling_values(s, values);
    size_t start = out->len;
    for (int i = 0; i < GEN_SAMPLING_VALUES; i++)
        if (gen_sampling_is_on(&values[i]))
            (void)buf_printf(out, "%s%s %.10g", out->len > start ? ", " : "", values[i].name,
                             values[i].value);
}

/* The settings of the judge's requests as JSON; NULL if there are none. */
static snap_status settings_text(const gen_settings *s, arena *mem, const char **out,
                                 snap_err *err) {
    js *v = gen_settings_json(s);
    buf text = {0};
    bool any = v && js_first(v);
    snap_status st = v ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for the judge");
    *out = NULL;
    if (any)
        st = js_write(v, JS_COMPACT, &text, err);
    if (any && st == SNAP_OK && !(*out = arena_strdup(mem, buf_str(&text))))
        st = err_set(err, SNAP_E_NOMEM, "out of memory for the judge");
    buf_release(&text);
    js_free(v);
    return st;
}

static snap_status hash_judge(judge_model *judge, snap_err *err) {
    arena mem = {0};
    buf text = {0};
    const char *settings;
    snap_status st = settings_text(&judge->arm.settings, &mem, &settings, err);
    (void)buf_printf(&text, "%s\n", judge->name);
    write_sampling(&judge->sampling, &text);
    (void)buf_printf(&text, "\n%s", settings ? settings : "");
    if (st == SNAP_OK)
        st = buf_check(&text, "the judge", err);
    if (st == SNAP_OK)
        st = hash_bytes(text.data, text.len, judge->sha256, err);
    buf_release(&text);
    arena_release(&mem);
    return st;
}

snap_status judge_model_parse(const char *text, const generate_options *opt, arena *mem,
                              judge_model *out, snap_err *err) {
    *out = (judge_model){0};
    const eval_arm *arm = &out->arm;
    snap_status st = parse_arm(text, opt, mem, &out->arm, err);
    if (st != SNAP_OK)
        return st;
    out->name = arm->model ? arm->model : arm->spec;
    out->sampling = (gen_sampling){.temperature = arm->temperature >= 0 ? arm->temperature : 0,
                                   .top_p = arm->top_p > 0 ? arm->top_p : 1,
                                   .max_tokens = arm->max_tokens ? arm->max_tokens : kJudgeTokens,
                                   .top_k = arm->more.top_k,
                                   .min_p = arm->more.min_p,
                                   .presence_penalty = arm->more.presence_penalty,
                                   .frequency_penalty = arm->more.frequency_penalty,
                                   .repetition_penalty = arm->more.repetition_penalty};
    return hash_judge(out, err);
}

snap_status judge_model_check(const char *text, const generate_options *opt, snap_err *err) {
    arena mem = {0};
    judge_model judge;
    snap_status st = text ? judge_model_parse(text, opt, &mem, &judge, err) : SNAP_OK;
    if (text && st == SNAP_OK)
        st = arm_secrets_check_one(&judge.arm, opt, err);
    arena_release(&mem);
    return st;
}

snap_status judge_model_open(const judge_model *judge, const generate_options *opt, generator **out,
                             snap_err *err) {
    const eval_arm *arm = &judge->arm;
    arena secrets = {0};
    generator_options g = {.model = arm->model,
                           .no_stream = arm->no_stream || opt->no_stream,
                           .max_retries = arm->max_retries,
                           .timeout_s = arm->timeout_s,
                           .deadline_s = arm->deadline_s,
                           .in_flight = arm->in_flight ? arm->in_flight : opt->in_flight,
                           .device = arm->device,
                           .layout = arm->layout,
                           .precision = arm->precision,
                           .context = arm->context,
                           .cache_bytes = (int64_t)arm->cache_mb << 20,
                           .threads = arm->threads,
                           .chat_template = arm->chat_template,
                           .cancel = opt->cancel};
    snap_status st = arm_secrets_read(arm, opt, &secrets, &g, err);
    if (st == SNAP_OK && (st = generator_open(out, arm->spec, &g, err)) != SNAP_OK)
        err_prefix(err, "the judge");
    arena_release(&secrets);
    return st;
}

gen_request judge_model_request(const judge_model *judge, const eval_plan *plan, plan_cell c) {
    gen_request q = plan_request(plan, c);
    q.prompt_sha256 = NULL;
    q.settings = &judge->arm.settings;
    q.settings_sha256 = NULL;
    q.sampling = judge->sampling;
    return q;
}

/* ---- the journal ---- */

/* Writes the hosts of "http://HOST/v1|https://HOST/v1*2": "HOST, HOST". */
static void write_hosts(const char *spec, buf *out) {
    size_t start = out->len;
    for (const char *at = spec; (at = strstr(at, "://")); at += strcspn(at, "|")) {
        at += 3;
        size_t n = strcspn(at, "/|*");
        (void)buf_puts(out, out->len > start ? ", " : "");
        (void)buf_append(out, at, n);
    }
}

snap_status judge_model_record(results_journal *j, const judge_model *judge, snap_err *err) {
    arena mem = {0};
    buf sampling = {0}, hosts = {0};
    bool http = text_equal(judge->arm.kind, "http");
    char *source = http ? NULL : provenance_cut_folders(judge->arm.spec);
    judge_record r;
    js *row = NULL;
    snap_status st;
    record_init(&judge_type, &r);
    write_sampling(&judge->sampling, &sampling);
    write_hosts(http ? judge->arm.spec : "", &hosts);
    TRY(settings_text(&judge->arm.settings, &mem, &r.request, err));
    TRY(buf_check(&sampling, "the judge", err));
    TRY(buf_check(&hosts, "the judge", err));
    r.exists = true;
    r.generator = judge->arm.kind;
    r.host = http ? buf_str(&hosts) : NULL;
    r.source = source;
    r.model = judge->arm.model;
    r.sampling = buf_str(&sampling);
    row = http || source ? record_write(&judge_type, &r) : NULL;
    TRY(row ? results_journal_append(j, RUN_JUDGE, row, err)
            : err_set(err, SNAP_E_NOMEM, "out of memory for the journal"));
cleanup:
    js_free(row);
    free(source);
    buf_release(&sampling);
    buf_release(&hosts);
    arena_release(&mem);
    return st;
}

static bool same_judge(const judge_record *a, const judge_record *b) {
    return strcmp(a->model, b->model) == 0 && strcmp(a->sampling, b->sampling) == 0 &&
           strcmp(a->request, b->request) == 0;
}

snap_status judge_model_add(results_journal *to, const results_journal *from, const char *shard,
                            snap_err *err) {
    arena mem = {0};
    judge_record was, is;
    snap_status st = SNAP_OK;
    if (!judge_model_find(to, &mem, &was) || !judge_model_find(from, &mem, &is))
        st = err_set(err, SNAP_E_NOMEM, "out of memory for the judge");
    else if (is.exists && was.exists && !same_judge(&was, &is))
        st = err_set(err, SNAP_E_USAGE,
                     "'%s' was judged by '%.80s' (%.80s), another shard by '%.80s' (%.80s)", shard,
                     is.model, is.sampling, was.model, was.sampling);
    else if (is.exists && !was.exists)
        st = results_journal_append(to, RUN_JUDGE, results_journal_find(from, RUN_JUDGE), err);
    arena_release(&mem);
    return st;
}

bool judge_model_find(const results_journal *j, arena *mem, judge_record *out) {
    return record_read(&judge_type, results_journal_find(j, RUN_JUDGE), mem, out);
}
