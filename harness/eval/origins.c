#include "harness/eval/origins.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "generator/local/checkpoint/digest.h"
#include "generator/local/model/cache.h"
#include "harness/eval/run_files.h"
#include "harness/record/eval.h"
#include "harness/record/provenance.h"
#include "kernels/format/coded.h"
#include "kernels/format/format.h"

enum { kKey = 80 };
static const char kLocal[] = "local:";

static void key_of(const char *arm, char key[kKey]) {
    (void)snprintf(key, kKey, "origin %.60s", arm);
}

const js *origins_find(const results_journal *j, const char *arm) {
    char key[kKey];
    key_of(arm, key);
    return results_journal_find(j, key);
}

/* Adds the row, or compares it with the existing one: a resumed run must use the same files. Frees
 * @row. */
static snap_status put(results_journal *j, const char *arm, js *row, const char *who,
                       snap_err *err) {
    char key[kKey];
    key_of(arm, key);
    const js *was = results_journal_find(j, key);
    bool differs = was && row && !js_equal(was, row);
    if (!was && row)
        return run_journal_put(j, key, row, err);
    js_free(row);
    if (!row)
        return err_set(err, SNAP_E_NOMEM, "out of memory for an arm's files");
    return differs
               ? err_set(
                     err, SNAP_E_USAGE,
                     "arm '%s': %s other files (checkpoint, format or plugin) than the existing "
                     "samples (choose another --out)",
                     arm, who)
               : SNAP_OK;
}

/* Copies the digest of an earlier arm with the same folder. Returns false if there is none, and
 * when out of memory. */
static bool known(const results_journal *j, const eval_plan *plan, size_t a, char hex[HASH_HEX]) {
    arena mem = {0};
    bool found = false;
    for (size_t i = 0; i < a && !found; i++) {
        arm_record files; /* the row has the keys checkpoint_sha256, format_sha256 and plugin of an
                            arm */
        if (!record_read(&arm_type, origins_find(j, plan->arms[i].name), &mem, &files))
            break;
        found = files.checkpoint_sha256[0] && text_equal(plan->arms[i].spec, plan->arms[a].spec);
        if (found)
            (void)snprintf(hex, HASH_HEX, "%s", files.checkpoint_sha256);
    }
    arena_release(&mem);
    return found;
}

/* SHA-256 of the file of the arm's cache format; "" if the format has none. */
static snap_status format_digest(const char *precision, char hex[HASH_HEX], snap_err *err) {
    kv_format format = CACHE_BF16;
    hex[0] = 0;
    snap_status st = precision ? kv_format_parse(precision, &format, err) : SNAP_OK;
    if (st != SNAP_OK || format != CACHE_ROUNDED || coded_format_find(precision))
        return st;
    char *path = cache_format_path(precision);
    st = path ? hash_file(path, hex, err)
              : err_set(err, SNAP_E_NOMEM, "out of memory for the name of a format");
    free(path);
    return st;
}

/* The row of an arm; NULL when out of memory. */
static js *row_of(const arm_record *files) {
    js *row = js_new_object();
    bool ok = row && js_set_str(row, "checkpoint_sha256", files->checkpoint_sha256);
    if (files->format_sha256[0])
        ok = js_set_str(row, "format_sha256", files->format_sha256) && ok;
    ok = js_set_new(row, "plugin", record_value(&arm_type, files, "plugin")) && ok;
    if (ok)
        return row;
    js_free(row);
    return NULL;
}

static snap_status record(results_journal *j, const eval_plan *plan, size_t a, snap_err *err) {
    const eval_arm *arm = &plan->arms[a];
    char hex[HASH_HEX], format[HASH_HEX];
    arena mem = {0};
    arm_record files = {.checkpoint_sha256 = hex, .format_sha256 = format};
    snap_status st = SNAP_OK;
    if (!text_equal(arm->kind, "local"))
        return SNAP_OK;
    TRY(format_digest(arm->precision, format, err));
    TRY(known(j, plan, a, hex) ? SNAP_OK
                               : checkpoint_digest(arm->spec + sizeof kLocal - 1, hex, err));
    TRY(provenance_plugin(arm->device, &mem, &files.plugin, err));
    TRY(put(j, arm->name, row_of(&files), "it has", err));
cleanup:
    arena_release(&mem);
    if (st != SNAP_OK)
        err_prefix(err, "arm '%s'", arm->name);
    return st;
}

snap_status origins_record(results_journal *j, const eval_plan *plan, snap_err *err) {
    snap_status st = SNAP_OK;
    for (size_t a = 0; a < plan->n_arms && st == SNAP_OK; a++)
        st = record(j, plan, a, err);
    return st;
}

snap_status origins_add(results_journal *j, const char *arm, const results_journal *part,
                        const char *folder, snap_err *err) {
    char who[400];
    const js *row = origins_find(part, arm);
    (void)snprintf(who, sizeof who, "'%.380s' has", folder);
    snap_status st = row ? put(j, arm, js_copy(row), who, err) : SNAP_OK;
    if (st != SNAP_OK)
        err_prefix(err, "arm '%s'", arm);
    return st;
}
