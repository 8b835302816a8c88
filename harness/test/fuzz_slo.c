/* Reads the first line of the input as a list of targets, and the other lines as a requests.jsonl.
 * If either is malformed, it must be refused with a message. Otherwise the rows of a result are
 * computed from the requests, and this must succeed or fail with a message. */
#include <stdint.h>
#include <string.h>

#include "harness/serving/request_lines.h"
#include "harness/serving/result_rows.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void measure(const request_list *list, const slo_list *targets) {
    serving_measure_options o = SERVING_MEASURE_DEFAULTS;
    const serving_arm_facts arms[2] = {{"a", "", "", ""}, {"b", "", "", ""}};
    const serving_point points[2] = {{true, 1}, {false, 2}};
    js *rows = js_new_array();
    snap_err err = {0};
    o.targets = *targets;
    o.arms = 1 + (list->n % 2 == 0);
    snap_status st = serving_rows_of_run(list->at, list->n, points, 1 + (list->n % 3 == 0),
                                         &(serving_rows_context){&o, arms, ""}, NULL, rows, &err);
    if (st != SNAP_OK && (st != SNAP_E_INPUT || !err.text[0]))
        __builtin_trap();
    js_free(rows);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint8_t *end = size ? memchr(data, '\n', size) : NULL;
    size_t n = end ? (size_t)(end - data) : size;
    char line[256];
    slo_list targets;
    request_list list = {0};
    snap_err err = {0};
    if (n >= sizeof line)
        return 0;
    memcpy(line, data, n);
    line[n] = '\0';
    snap_status st = slo_parse(line, &targets, &err);
    if ((st == SNAP_OK) != (err.code == SNAP_OK) || (st != SNAP_OK && !err.text[0]))
        __builtin_trap();
    if (st == SNAP_OK && end &&
        request_lines_parse((const char *)end + 1, size - n - 1, "requests", &list, NULL) ==
            SNAP_OK)
        measure(&list, &targets);
    request_list_release(&list);
    return 0;
}
