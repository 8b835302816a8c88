/* Reads the body of a request to the server as each kind of request. The answer to a bad request,
 * whose message may quote the body, must be valid JSON. */
#include <stdlib.h>
#include <string.h>

#include "base/test/fuzz_tree.h"
#include "harness/serve/openai_answer.h"
#include "harness/serve/openai_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_prompts(const openai_request *r) {
    for (int i = 0; i < r->n_prompts && r->prompts; i++)
        if (r->prompts[i].text ? strlen(r->prompts[i].text) != r->prompts[i].n : !r->prompts[i].ids)
            abort();
    for (int i = 0; i < r->n_messages; i++)
        if (!r->messages[i].role || !r->messages[i].content)
            abort();
}

static void check_request(openai_kind kind, const uint8_t *data, size_t size) {
    openai_request r;
    openai_error e = {0};
    if (!openai_request_read(&r, kind, (const char *)data, size, &e)) {
        buf out = {0};
        snap_err err = {0};
        openai_write_error(&e, false, &out);
        js *v = js_parse(buf_str(&out), out.len, "an error", &err);
        if (e.status < 400 || !e.type || !v) /* the message may quote the request */
            abort();
        js_free(v);
        buf_release(&out);
    } else {
        check_prompts(&r);
        if (r.n < 1 || (int64_t)r.n * r.n_prompts > OPENAI_CHOICES || r.n_prompts < 1 ||
            r.top_logprobs < 0 || r.top_logprobs > OPENAI_TOP || r.max_tokens < -1 ||
            r.stop.n > OPENAI_STOPS || !(r.sampling.temperature >= 0))
            if (kind < OPENAI_TOKENIZE)
                abort();
    }
    openai_request_release(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    for (int kind = OPENAI_CHAT; kind < OPENAI_KINDS; kind++)
        check_request((openai_kind)kind, data, size);
    return 0;
}
