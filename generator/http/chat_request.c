#include "generator/http/chat_request.h"

#include "base/json.h"

/* The seed to send. Servers accept between 31 and 64 bits, so the upper bits are folded into 31.
 * Seeds below 2^31 are unchanged. */
static int64_t folded_seed(uint64_t seed) {
    return (int64_t)((seed ^ seed >> 31 ^ seed >> 62) & 0x7FFFFFFF);
}

static js *messages_of(const gen_request *req) {
    js *list = js_new_array();
    bool ok = list != NULL;
    for (int i = 0; ok && i < req->n_messages; i++) {
        js *m = js_new_object();
        ok = m && js_set_str(m, "role", req->messages[i].role) &&
             js_set_str(m, "content", req->messages[i].content);
        ok = js_push_new(list, m) && ok;
    }
    if (ok)
        return list;
    js_free(list);
    return NULL;
}

static bool set_sampling(js *body, const gen_sampling *s) {
    return js_set_num(body, "temperature", s->temperature) && js_set_num(body, "top_p", s->top_p) &&
           (s->top_k <= 0 || js_set_int(body, "top_k", s->top_k)) &&
           js_set_int(body, "max_tokens", s->max_tokens) &&
           js_set_int(body, "seed", folded_seed(s->seed));
}

/* With include_usage the last chunk reports the token counts, which a whole answer contains
 * anyway. */
static bool set_stream(js *body) {
    js *options = js_new_object();
    bool ok = options && js_set_bool(options, "include_usage", true);
    return js_set_new(body, "stream_options", options) && ok && js_set_bool(body, "stream", true);
}

snap_status chat_request_write(const gen_request *req, const char *model, bool stream, buf *out,
                               snap_err *err) {
    js *body = js_new_object();
    snap_status st = SNAP_OK;
    if (body && (!model || js_set_str(body, "model", model)) &&
        js_set_new(body, "messages", messages_of(req)) && set_sampling(body, &req->sampling) &&
        (!stream || set_stream(body)))
        st = js_write(body, JS_COMPACT, out, err);
    else
        st = err_set(err, SNAP_E_NOMEM, "out of memory for a request");
    js_free(body);
    return st;
}
