/* cmd_formats.c - `snapmla formats` and `snapmla formats check FILE` */
#include "base/text.h"
#include "harness/cmd/cmd.h"
#include "harness/cmd/print.h"
#include "harness/view/format_tables.h"

static int64_t d_c = 512, d_r = 64;

#define WIDTHS                                                                                     \
    {.type = OPT_GROUP, .help = "Widths"},                                                         \
        {OPT_INT, "d-c", 0, &d_c, "N", "columns of the content", 1, MLA_MAX_CONTENT}, {            \
        OPT_INT, "d-r", 0, &d_r, "N", "columns of the RoPE part", 1, MLA_MAX_ROPE                  \
    }

static const opt options[] = {WIDTHS, {.type = OPT_END}};
static const opt check_options[] = {WIDTHS, {.type = OPT_END}};

/* ---- listing the formats ---- */

typedef struct {
    table t;
    js *rows;
    bool json;
} format_rows;

/* Adds a shipped format. One that does not have the widths is left out. */
static snap_status add_format(void *ctx, const char *name, snap_err *err) {
    format_rows *list = ctx;
    cache_format f;
    snap_err why = {0};
    snap_status st = cache_format_load(&f, name, (int)d_c, (int)d_r, &why);
    if (st == SNAP_E_SHAPE)
        return SNAP_OK;
    if (st != SNAP_OK)
        return err_set(err, st, "%s", why.text);
    format_list_add(&list->t, &f);
    if (list->json && !js_push_new(list->rows, format_document(&f)))
        return err_set(err, SNAP_E_NOMEM, "out of memory for the list of formats");
    return SNAP_OK;
}

static snap_status run_list(opt_shared *shared, snap_err *err) {
    format_rows list = {.t = format_list(), .rows = js_new_array(), .json = shared->json};
    snap_status st = SNAP_OK;
    TRY(cache_format_each(add_format, &list, err));
    TRY(list.json ? print_json(list.rows, err) : print_table(&list.t, err));
cleanup:
    table_release(&list.t);
    js_free(list.rows);
    return st;
}

/* ---- one format ---- */

static snap_status run_check(opt_shared *shared, snap_err *err) {
    cache_format f;
    table t = {0};
    js *doc = NULL;
    buf head = {0};
    snap_status st = SNAP_OK;
    TRY(cache_format_load(&f, shared->args[0], (int)d_c, (int)d_r, err));
    t = format_layout(&f);
    if (shared->json) {
        doc = format_document(&f);
        TRY(print_json(doc, err));
    } else {
        text_append_shown_printf(&head, "%s: %.7g bytes per token, pages of %d tokens", f.name,
                                 cache_format_token_bytes(&f), f.page_tokens);
        (void)buf_puts(&head, "\n");
        text_append_shown(&head, f.description);
        (void)buf_puts(&head, "\n\n");
        TRY(print_text(&head, "the format", err));
        TRY(print_table(&t, err));
    }
cleanup:
    buf_release(&head);
    table_release(&t);
    js_free(doc);
    return st;
}

const opt_command cmd_formats_check = {
    .name = "formats check",
    .summary = "check a descriptor, and show where its bytes lie",
    .synopsis = "FILE [options]",
    .about = "Checks the file of a cache format, or a shipped format with that name, and shows\n"
             "its layout: one row for each plane, with its type, the number of elements, and the\n"
             "bytes at which they lie. docs/formats.md describes the files.",
    .examples = "  snapmla formats check my-format.json\n"
                "  snapmla formats check fp8_ds_mla",
    .options = check_options,
    .min_args = 1,
    .max_args = 1,
    .run = run_check,
    .of = &cmd_formats,
};

static const opt_command *const verbs[] = {&cmd_formats_check, NULL};

const opt_command cmd_formats = {
    .name = "formats",
    .summary = "list the cache formats, or check one",
    .synopsis = "[options]",
    .about =
        "Lists the shipped cache formats with the bytes that a cached token takes, their\n"
        "types and scales, and the form of the queries and probabilities P that they are\n"
        "measured with. A format is a JSON file in configs/formats; docs/formats.md\n"
        "describes such files. 'snapmla fidelity --formats' measures their errors. It and the\n"
        "option --precision also know formats without a descriptor: kivi2, kivi4, kvquant2 to\n"
        "kvquant4, rotatekv2 to rotatekv4, turboquant2 to turboquant4, and residual.",
    .examples = "  snapmla formats\n"
                "  snapmla formats check fp8_ds_mla",
    .options = options,
    .run = run_list,
    .verbs = verbs,
};
