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

js *clients_find(const results_journal *j, const char *arm) {
    char key[kKey];
    key_of(arm, key);
    const js *row = results_journal_find(j, key);
    return row ? js_copy(row) : js_new_null();
}
