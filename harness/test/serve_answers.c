#include "harness/test/serve_answers.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>

/* ---- whole answers ---- */

js *serve_parse(const serve_reply *r) {
    snap_err err = {0};
    js *v = js_parse(buf_str(&r->body), r->body.len, "an answer", &err);
    if (!v)
        (void)fprintf(stderr, "%s\n%s\n", err.text, buf_str(&r->body));
    CU_ASSERT_PTR_NOT_NULL_FATAL(v);
    return v;
}

js *serve_ask_json(const serve_child *c, const char *path, const char *body) {
    serve_reply r;
    serve_ask(c, path, NULL, body, &r);
    CU_ASSERT_EQUAL(r.status, 200);
    js *v = serve_parse(&r);
    serve_reply_release(&r);
    return v;
}

js *serve_choice(const js *answer, size_t i) {
    js *c = js_at(js_get_array(answer, "choices"), i);
    CU_ASSERT_PTR_NOT_NULL_FATAL(c);
    return c;
}

const char *serve_content(const js *answer, size_t i) {
    const char *s = js_get_str(js_get_object(serve_choice(answer, i), "message"), "content");
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    return s;
}

bool serve_same_ids(const tok_ids *a, const js *list) {
    bool same = js_len(list) == a->n;
    for (size_t i = 0; same && i < a->n; i++)
        same = js_int(js_at(list, i)) == a->v[i];
    return same;
}

int64_t serve_usage(const js *answer, const char *what) {
    return js_get_int(js_get_object(answer, "usage"), what, -1);
}

/* ---- streams ---- */

static void take_event(serve_stream *s, const char *json, size_t n) {
    snap_err err = {0};
    if (n == 6 && memcmp(json, "[DONE]", 6) == 0) {
        s->done++;
        return;
    }
    CU_ASSERT_EQUAL(s->done, 0);
    js *v = js_parse(json, n, "an event", &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(v);
    (void)js_push_new(s->all, v);
    js *usage = js_get_object(v, "usage");
    if (usage) {
        s->prompt = js_get_int(usage, "prompt_tokens", -1);
        s->completion = js_get_int(usage, "completion_tokens", -1);
    }
    js *c = js_at(js_get_array(v, "choices"), 0);
    if (!c)
        return;
    int64_t i = js_get_int(c, "index", -1);
    CU_ASSERT_FATAL(i >= 0 && i < SERVE_STREAM_CHOICES);
    js *delta = js_get_object(c, "delta");
    const char *text = delta ? js_get_str(delta, "content") : js_get_str(c, "text");
    CU_ASSERT_PTR_NULL(s->finish[i]); /* nothing follows the end of a choice */
    s->finish[i] = js_get_str(c, "finish_reason");
    if (text && *text) {
        s->events++;
        (void)buf_puts(&s->text[i], text);
    }
}

serve_stream serve_stream_read(const serve_reply *r) {
    serve_stream s = {.prompt = -1, .completion = -1, .all = js_new_array()};
    const char *at = buf_str(&r->body);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&r->head), "text/event-stream"));
    while (*at) {
        const char *end = strstr(at, "\n\n");
        CU_ASSERT_FATAL(end && strncmp(at, "data: ", 6) == 0);
        take_event(&s, at + 6, (size_t)(end - at - 6));
        at = end + 2;
    }
    return s;
}

void serve_stream_release(serve_stream *s) {
    for (int i = 0; i < SERVE_STREAM_CHOICES; i++)
        buf_release(&s->text[i]);
    js_free(s->all);
}

serve_stream serve_stream_ask(const serve_child *c, const char *path, const char *body) {
    serve_reply r;
    serve_ask(c, path, NULL, body, &r);
    CU_ASSERT_EQUAL(r.status, 200);
    serve_stream s = serve_stream_read(&r);
    CU_ASSERT_EQUAL(s.done, 1);
    serve_reply_release(&r);
    return s;
}
