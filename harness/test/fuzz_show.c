/* Reads random bytes as a file of samples. They must be refused with a message, or shown without
 * control characters on a terminal and without a script on a page. */
#include <stdint.h>
#include <string.h>

#include "base/test/fuzz_file.h"
#include "base/text.h"
#include "harness/view/eval_show.h"
#include "harness/view/samples.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static snap_status check_piece(void *ctx, const buf *text, snap_err *err) {
    const show_options *o = ctx;
    (void)err;
    for (size_t i = 0; i < text->len; i++)
        if ((unsigned char)buf_str(text)[i] < ' ' && buf_str(text)[i] != '\n')
            __builtin_trap();
    if (!o->json && !text_is_utf8(buf_str(text), text->len))
        __builtin_trap();
    return SNAP_OK;
}

static void show(const char *path, show_options o) {
    snap_err err = {0};
    o.run = path;
    o.width = 90;
    if (eval_show(&o, check_piece, &o, &err) != SNAP_OK && !err.text[0])
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *path = fuzz_file("samples.jsonl", data, size);
    report_samples s = {.name = "run", .confidential = true};
    buf page = {0};
    show(path, (show_options){.sample = -1});
    show(path, (show_options){.sample = -1, .full = true, .rows = 3});
    show(path, (show_options){.sample = -1, .json = true, .only = "wrong,differs"});
    if (sample_index_open(&s.index, path, NULL) == SNAP_OK)
        write_samples(&s, &page);
    if (strstr(buf_str(&page), "<script") || !text_is_utf8(buf_str(&page), page.len))
        __builtin_trap();
    sample_index_close(&s.index);
    buf_release(&page);
    return 0;
}
