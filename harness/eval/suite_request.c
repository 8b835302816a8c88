#include "harness/eval/suite_request.h"

#include <limits.h>
#include <string.h>

#include "base/nearest.h"
#include "generator/settings.h"
#include "harness/eval/arm_request.h"

static snap_status read_budget(const js *v, gen_settings *out, snap_err *err) {
    int64_t n = js_int(v);
    if (!js_is_int(v) || n < 1 || n > INT_MAX)
        return err_set(err, SNAP_E_INPUT, "'thinking_budget' must be an integer of 1 or more");
    out->thinking_budget = n;
    return SNAP_OK;
}

/* Sets a key of arm_request.h. The text of the system message is written as JSON, so that neither
 * '@' nor a quote at its beginning means anything. */
static snap_status read_key(const char *key, const js *v, arena *mem, gen_settings *out,
                            snap_err *err) {
    buf text = {0}, kept = {0};
    bool read = false, object = strcmp(key, "body") == 0 || strcmp(key, "template") == 0;
    snap_status st = SNAP_OK;
    if (object ? !js_is_object(v) : !js_is_str(v))
        TRY(err_set(err, SNAP_E_INPUT, "'%s' must be %s", key, object ? "an object" : "a text"));
    if (object || strcmp(key, "system") == 0)
        TRY(js_write(v, JS_COMPACT, &text, err));
    else
        TRY(buf_puts(&text, js_str(v)) ? SNAP_OK : buf_check(&text, key, err));
    TRY(arm_request_set(out, key, buf_str(&text), mem, &kept, &read, err));
cleanup:
    buf_release(&text);
    buf_release(&kept);
    return st;
}

static snap_status unknown_key(const char *key, snap_err *err) {
    const char *known[ARM_REQUEST_KEYS + 2] = {"thinking_budget"};
    char hint[NEAREST_HINT];
    arm_request_keys(known + 1);
    return err_set(err, SNAP_E_INPUT, "unknown key '%.40s'%s", key,
                   nearest_hint(key, known, "", hint));
}

snap_status suite_request_read(const js *suite, arena *mem, gen_settings *out, const char *where,
                               snap_err *err) {
    snap_status st = SNAP_OK;
    snap_err why = {0};
    js *o = NULL;
    if (!js_has(suite, "request"))
        return SNAP_OK;
    st = js_need_object(suite, "request", &o, where, err);
    if (st != SNAP_OK)
        return st;
    for (void *it = js_first(o); it && st == SNAP_OK; it = js_next(o, it)) {
        const char *key = js_key(it);
        if (strcmp(key, "thinking_budget") == 0)
            st = read_budget(js_value(it), out, &why);
        else if (arm_request_has(key))
            st = read_key(key, js_value(it), mem, out, &why);
        else
            st = unknown_key(key, &why);
    }
    if (st == SNAP_OK)
        st = gen_settings_check(&(gen_settings){.body = out->body}, &why);
    if (st == SNAP_OK)
        return SNAP_OK;
    return err_set(err, st == SNAP_E_NOMEM ? st : SNAP_E_INPUT, "%s: request: %s", where, why.text);
}
