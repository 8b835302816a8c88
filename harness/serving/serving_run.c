#include "harness/serving/serving_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/hash.h"

#include "harness/serving/serving_state.h"

snap_status serving_no_memory(snap_err *err) {
    return err_set(err, SNAP_E_NOMEM, "out of memory for the benchmark");
}

/* Each request in flight needs a socket. */
static void raise_file_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

static snap_status open_engines(serving *s, snap_err *err) {
    snap_status st = SNAP_OK;
    for (int i = 0; i < s->out->n_arms && st == SNAP_OK; i++)
        st = http_create(&s->engines[i], BLOCK_IN_FLIGHT_MAX, s->opt->generate.cancel, err);
    return st;
}

static snap_status explain(const serving *s, snap_status st, snap_err *err) {
    char why[400] = "interrupted";
    if (st != SNAP_E_CANCELLED)
        (void)snprintf(why, sizeof why, "%.399s", err->text);
    *err = (snap_err){0};
    return err_set(err, st, "%s: complete blocks are kept in '%s'; the same command continues", why,
                   s->opt->out);
}

/* Reads the files: they also have what earlier, interrupted runs did. */
static snap_status read_result(serving *s, snap_err *err) {
    serving_result *r = s->out;
    char *lines = serving_files_path(&s->files, "requests.jsonl"),
         *answers = serving_files_path(&s->files, "answers.jsonl");
    snap_status st = lines && answers ? SNAP_OK : serving_no_memory(err);
    TRY(st);
    TRY(request_lines_read(lines, &r->requests, err));
    if (!s->opt->grade || r->n_arms < 2)
        goto cleanup;
    r->n_parity = r->points.n * (r->n_arms - 1);
    r->parity = arena_alloc(s->mem, (size_t)r->n_parity, sizeof *r->parity);
    TRY(r->parity ? SNAP_OK : serving_no_memory(err));
    TRY(answers_compare(answers, &s->task, r->points.n, r->n_arms, s->opt->margin_pp / 100,
                        r->parity, err));
cleanup:
    free(lines);
    free(answers);
    return st;
}

/* After a signal or the failure of a server, the blocks that are complete still give a result. */
static snap_status stop(serving *s, snap_status why, snap_err *err) {
    snap_err own = {0};
    snap_status st = SNAP_OK;
    if (why == SNAP_E_CANCELLED || why == SNAP_E_NET) {
        TRY(serving_files_drop_incomplete(&s->files, &own));
        TRY(read_result(s, &own));
        s->out->interrupted = true;
    }
    return explain(s, why, err);
cleanup:
    *err = own;
    return st;
}

/* How long a part waits for the others to be started. */
static const double kPatienceS = 600;

/* Notes which part the folder has, and waits for the other parts. */
static snap_status meet_parts(serving *s, const js *config, snap_err *err) {
    char hash[HASH_HEX], version[96];
    (void)snprintf(version, sizeof version, "%.40s-%.40s", results_program_version(),
                   results_program_commit());
    snap_status st = serving_files_settings(config, hash, err);
    if (st == SNAP_OK)
        st = serving_files_put_part(&s->files, config, s->opt->part, version, err);
    const meeting_options o = {.place = s->opt->meet,
                               .part = s->part,
                               .version = version,
                               .settings = hash,
                               .patience_s = kPatienceS,
                               .cancel = s->opt->generate.cancel};
    return st == SNAP_OK ? meeting_open(&s->meeting, &o, err) : st;
}

static snap_status run_all(serving *s, const js *config, snap_err *err) {
    const serving_options *o = s->opt;
    snap_status st;
    TRY(serving_setup(s, err));
    TRY(serving_files_open(&s->files, config, err));
    raise_file_limit();
    TRY(open_engines(s, err));
    if (s->part.index)
        TRY(meet_parts(s, config, err));
    if (o->search)
        TRY(serving_restore_search(s, err));
    TRY(serving_files_resume(&s->files, o->grade, s->out->points.n, s->out->n_arms,
                             (int)o->blocks * (o->search ? LOAD_SEARCH_TURNS_EACH : 1), err));
    TRY(serving_prepare_prompts(s, err));
    st = o->search ? serving_run_search(s, err) : serving_run_points(s, err);
    if (st != SNAP_OK)
        return stop(s, st, err);
    TRY(read_result(s, err));
cleanup:
    return st;
}

snap_status serving_run(const serving_options *o, const js *config, serving_result *out,
                        snap_err *err) {
    *out = (serving_result){0};
    serving *s = calloc(1, sizeof *s);
    if (!s)
        return serving_no_memory(err);
    s->opt = o;
    s->out = out;
    s->mem = &out->mem;
    s->files = serving_files_make(o->out);
    snap_status st = run_all(s, config, err);
    meeting_close(s->meeting);
    for (int i = 0; i < SERVING_TARGETS_MAX; i++) {
        http_free(s->engines[i]);
        serving_target_release(&s->targets[i]);
    }
    load_search_release(&s->search);
    prompts_release(&s->maker);
    trace_release(&s->trace);
    task_set_release(&s->task);
    serving_files_close(&s->files);
    free(s);
    return st;
}

snap_status serving_run_read(const serving_options *o, serving_result *out, snap_err *err) {
    *out = (serving_result){0};
    serving *s = calloc(1, sizeof *s);
    if (!s)
        return serving_no_memory(err);
    s->opt = o;
    s->out = out;
    s->mem = &out->mem;
    s->files = serving_files_make(o->out);
    snap_status st = serving_setup_read(s, err);
    if (st == SNAP_OK)
        st = read_result(s, err);
    free(s);
    return st;
}

void serving_result_release(serving_result *r) {
    request_list_release(&r->requests);
    arena_release(&r->mem);
    *r = (serving_result){0};
}
