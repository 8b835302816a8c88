/* Reads the first four parts of the input, each up to a NUL byte, as the files of Punkt's
 * parameters: abbreviations, starters, pairs, and the case of words. They are refused with a
 * message, or the fifth part is split into sentences with them. The sentences must lie in the text
 * in order. The same must hold for the sentences that are found without parameters. */
#include <stdint.h>
#include <string.h>

#include "base/test/fuzz_file.h"
#include "base/text.h"
#include "evals/ifeval/punkt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct {
    const char *at, *end; /* the rest of the text */
    size_t n;
} progress;

static void check(void *ctx, span sentence) {
    progress *p = ctx;
    if (!sentence.n || sentence.s < p->at || sentence.s + sentence.n > p->end)
        __builtin_trap();
    p->at = sentence.s + sentence.n;
    p->n++;
}

static void split(const punkt_params *p, span text) {
    progress done = {text.s, text.s + text.n, 0};
    punkt_each(p, text, check, &done);
    if (done.n != punkt_count(p, text))
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const names[] = {"abbrev_types.txt", "sent_starters.txt", "collocations.tab",
                                        "ortho_context.tab"};
    punkt_params *p = NULL;
    snap_err err = {0};
    buf text = {0};
    for (int i = 0; i < 4; i++) {
        const uint8_t *stop = size ? memchr(data, '\0', size) : NULL;
        size_t n = stop ? (size_t)(stop - data) : size;
        (void)fuzz_file(names[i], data, n);
        data += n + (stop != NULL);
        size -= n + (stop != NULL);
    }
    text_append_utf8_lossy(&text, (const char *)data, size);
    snap_status st = punkt_open(&p, fuzz_folder, &err);
    if (st == SNAP_OK ? !p : p || !err.text[0])
        __builtin_trap();
    split(NULL, (span){buf_str(&text), text.len});
    if (p)
        split(p, (span){buf_str(&text), text.len});
    punkt_close(p);
    buf_release(&text);
    return 0;
}
