/* Parses any bytes as one JSON text and as JSON lines. The result is a value or an error. A value
 * that is written reads back as an equal value. */
#include <stdint.h>
#include <string.h>

#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Writes a value, reads it back and compares. */
static void check_round_trip(const js *v, js_style style) {
    buf text = {0};
    if (js_write(v, style, &text, NULL) != SNAP_OK)
        __builtin_trap();
    js *again = js_parse(buf_str(&text), text.len, "again", NULL);
    if (!again || !js_equal(v, again))
        __builtin_trap();
    js_free(again);
    buf_release(&text);
}

static snap_status look(void *ctx, js *object, long line, snap_err *err) {
    long *last = ctx;
    (void)err;
    if (line <= *last || !js_is_object(object))
        __builtin_trap();
    *last = line;
    check_round_trip(object, JS_COMPACT);
    return SNAP_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *text = (const char *)data;
    snap_err err = {0};
    long last = 0;
    js *v = js_parse(text, size, "x", &err);
    if (v) {
        check_round_trip(v, JS_PRETTY);
        check_round_trip(v, JS_ROWS);
    } else if (!err.text[0]) {
        __builtin_trap();
    }
    js_free(v);
    err = (snap_err){0};
    if (js_each_line(text, size, "x", look, &last, &err) != SNAP_OK && !err.text[0])
        __builtin_trap();
    return 0;
}
