#include "harness/cmd/bench_tokenizer.h"

#include <stdio.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/json.h"
#include "base/term.h"
#include "harness/bench/tokenizing.h"
#include "harness/view/writers.h"

enum { kMadeBytes = 4 << 20 };

static snap_status write_json(const tokenizing_row *r, buf *out, snap_err *err) {
    js *o = js_new_object();
    bool ok = o && js_set_str(o, "what", "tokenizer") && js_set_int(o, "bytes", r->bytes) &&
              js_set_int(o, "tokens", r->tokens) && js_set_num(o, "encode_mb_s", r->encode_mb_s) &&
              js_set_num(o, "encode_tok_s", r->encode_tok_s) &&
              js_set_num(o, "decode_mb_s", r->decode_mb_s) &&
              js_set_num(o, "decode_tok_s", r->decode_tok_s);
    snap_status st = ok ? js_write(o, JS_PRETTY, out, err)
                        : err_set(err, SNAP_E_NOMEM, "out of memory for the result");
    (void)buf_puts(out, "\n");
    js_free(o);
    return st;
}

static snap_status write_table(const tokenizing_row *r, buf *out, snap_err *err) {
    static const char *const heads[] = {"on one core", "bytes", "tokens", "MB/s", "tokens/s"};
    table t = table_new(heads, 5);
    for (int decoding = 0; decoding < 2; decoding++) {
        table_cell(&t, "%s", decoding ? "decode" : "encode");
        table_cell(&t, "%lld", (long long)r->bytes);
        table_cell(&t, "%lld", (long long)r->tokens);
        table_number(&t, decoding ? r->decode_mb_s : r->encode_mb_s, 2);
        table_number(&t, decoding ? r->decode_tok_s : r->encode_tok_s, 0);
    }
    snap_status st = write_text(&t, term_use_color(STDOUT_FILENO), out, err);
    table_release(&t);
    return st;
}

snap_status bench_tokenizer(const char *dir, const char *text, int64_t seed, double seconds,
                            const opt_shared *shared, snap_err *err) {
    snap_status st = SNAP_OK;
    buf input = {0}, output = {0};
    tokenizing_row row;
    if (!dir)
        return err_set(err, SNAP_E_USAGE,
                       "--what tokenizer needs a checkpoint's folder: give --model DIR");
    if (text)
        TRY(fs_read(text, &input, err));
    else
        tokenizing_text((uint64_t)seed, kMadeBytes, &input);
    TRY(buf_check(&input, "a text", err));
    TRY(tokenizing_bench(dir, buf_str(&input), input.len, seconds, &row, err));
    TRY((shared->json ? write_json : write_table)(&row, &output, err));
    TRY(buf_check(&output, "the result", err));
    (void)fputs(buf_str(&output), stdout);
cleanup:
    buf_release(&input);
    buf_release(&output);
    return st;
}
