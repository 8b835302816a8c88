#include "harness/eval/clients.h"

#include <math.h>
#include <stdio.h>

enum { kKey = 80 };

static void key_of(const char *arm, char key[kKey]) {
    (void)snprintf(key, kKey, "client %.60s", arm);
}

bool clients_find(const results_journal *j, const char *arm, arena *mem, client_record *out) {
    char key[kKey];
    key_of(arm, key);
    return record_read(&client_type, results_journal_find(j, key), mem, out);
}

/* Converts a lag to milliseconds. A negative lag means that none was measured; it becomes NAN. */
static double ms_of(int64_t ns) {
    return ns >= 0 ? (double)ns / 1e6 : (double)NAN;
}

snap_status clients_record(results_journal *j, const char *arm, const generator_load *load,
                           snap_err *err) {
    char key[kKey];
    key_of(arm, key);
    client_record c = {.exists = true,
                       .transfers = load->transfers,
                       .connections = load->connections,
                       .outages = load->outages,
                       .lag_ms_p99 = ms_of(load->lag_p99_ns),
                       .lag_ms_max = ms_of(load->lag_max_ns)};
    js *row = record_write(&client_type, &c);
    snap_status st = row ? results_journal_append(j, key, row, err)
                         : err_set(err, SNAP_E_NOMEM, "out of memory for the journal");
    js_free(row);
    return st;
}

static void keep_longest(double ms, int64_t *ns) {
    int64_t is = isnan(ms) ? -1 : (int64_t)(ms * 1e6);
    *ns = is > *ns ? is : *ns;
}

static int64_t or_0(int64_t count) {
    return count < 0 ? 0 : count;
}

bool clients_add(const results_journal *j, const char *arm, generator_load *to) {
    arena mem = {0};
    client_record c;
    bool found = clients_find(j, arm, &mem, &c) && c.exists;
    if (found) {
        to->transfers += or_0(c.transfers);
        to->connections += or_0(c.connections);
        to->outages += or_0(c.outages);
        keep_longest(c.lag_ms_p99, &to->lag_p99_ns);
        keep_longest(c.lag_ms_max, &to->lag_max_ns);
    }
    arena_release(&mem);
    return found;
}
