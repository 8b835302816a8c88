#include "harness/eval/clients.h"

#include <stdio.h>

enum { kKey = 80 };

static void key_of(const char *arm, char key[kKey]) {
    (void)snprintf(key, kKey, "client %.60s", arm);
}

static bool set_lag(js *row, const char *key, int64_t ns) {
    return js_set_new(row, key, ns >= 0 ? js_new_num((double)ns / 1e6) : js_new_null());
}

snap_status clients_record(results_journal *j, const char *arm, const generator_load *load,
                           snap_err *err) {
    char key[kKey];
    key_of(arm, key);
    js *row = js_new_object();
    bool ok = row && js_set_int(row, "transfers", load->transfers) &&
              js_set_int(row, "connections", load->connections) &&
              js_set_int(row, "outages", load->outages) &&
              set_lag(row, "lag_ms_p99", load->lag_p99_ns) &&
              set_lag(row, "lag_ms_max", load->lag_max_ns);
    snap_status st = ok ? results_journal_append(j, key, row, err)
                        : err_set(err, SNAP_E_NOMEM, "out of memory for the journal");
    js_free(row);
    return st;
}

static void keep_longest(const js *row, const char *key, int64_t *ns) {
    int64_t is = (int64_t)(js_get_num(row, key, -1) * 1e6);
    *ns = is > *ns ? is : *ns;
}

bool clients_add(const results_journal *j, const char *arm, generator_load *to) {
    char key[kKey];
    key_of(arm, key);
    const js *row = results_journal_find(j, key);
    if (!row)
        return false;
    to->transfers += js_get_int(row, "transfers", 0);
    to->connections += js_get_int(row, "connections", 0);
    to->outages += js_get_int(row, "outages", 0);
    keep_longest(row, "lag_ms_p99", &to->lag_p99_ns);
    keep_longest(row, "lag_ms_max", &to->lag_max_ns);
    return true;
}

js *clients_find(const results_journal *j, const char *arm) {
    char key[kKey];
    key_of(arm, key);
    const js *row = results_journal_find(j, key);
    return row ? js_copy(row) : js_new_null();
}
