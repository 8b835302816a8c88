#include "generator/local/model/rounding.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/fs.h"
#include "kernels/formats.h"

enum { kPadding = 128 }; /* content is padded to a multiple of this */

/* ---- loading a format ------------------------------------------------------------------------ */

/* Loads the format for the width of the content. If the format does not have this width, loads it
 * for the smallest padded width that it has. */
static snap_status load_padded(cache_format *f, const char *name, int d_c, int d_r, snap_err *err) {
    snap_status st = cache_format_load(f, name, d_c, d_r, err);
    int first = (d_c + kPadding - 1) / kPadding * kPadding;
    for (int padded = first; st == SNAP_E_SHAPE && padded <= MLA_MAX_CONTENT; padded += kPadding)
        if (padded > d_c && cache_format_load(f, name, padded, d_r, NULL) == SNAP_OK)
            return SNAP_OK;
    return st;
}

static bool has_page_scale(const cache_format *f) {
    const cache_scale *c = &f->content.scale, *r = &f->rope.scale;
    return (c->kind == SCALE_OWN && c->per == SCALE_PER_PAGE) ||
           (r->kind == SCALE_OWN && r->per == SCALE_PER_PAGE);
}

/* Whether the part has several scales for the whole tensor. */
static bool has_column_scales(const cache_part *p) {
    return p->scale.kind == SCALE_OWN && p->scale.per == SCALE_PER_TENSOR &&
           p->scale.plane.columns > 1;
}

static snap_status check(const cache_format *f, snap_err *err) {
    if (f->offset.columns || has_column_scales(&f->content) || has_column_scales(&f->rope))
        return err_set(err, SNAP_E_UNSUPPORTED,
                       "precision '%s': a cache that grows has no means and column scales of all "
                       "tokens (give the scales \"per\": \"token\" or \"page\")",
                       f->name);
    if (has_page_scale(f) && MLA_PAGE % f->page_tokens)
        return err_set(err, SNAP_E_UNSUPPORTED,
                       "precision '%s': scales for pages of %d tokens do not fit pages of %d",
                       f->name, f->page_tokens, MLA_PAGE);
    return SNAP_OK;
}

static row_format rows_of_coded(const coded_format *f, int d_c, int d_r) {
    return (row_format){.rule = f->kind == CODED_KIVI ? ROW_KIVI : ROW_CODED,
                        .d_c = d_c,
                        .d_r = d_r,
                        .columns = d_c,
                        .coded = f->kind,
                        .setting = f->setting,
                        .exact = f->exact};
}

static row_format rows_of_descriptor(const cache_format *f, int d_c, int d_r) {
    return (row_format){.rule = ROW_DESCRIPTOR,
                        .d_c = d_c,
                        .d_r = d_r,
                        .columns = f->d_c,
                        .hadamard = f->hadamard,
                        .page_tokens = has_page_scale(f) ? f->page_tokens : 0,
                        .content = f->content,
                        .rope = f->rope};
}

snap_status rounding_load(cache_rounding *out, const char *name, int d_c, int d_r, snap_err *err) {
    snap_status st;
    char *path = NULL;
    *out = (cache_rounding){.coded = coded_format_find(name)};
    (void)snprintf(out->name, sizeof out->name, "%s", name);
    if (out->coded) {
        out->rows = rows_of_coded(out->coded, d_c, d_r);
        return SNAP_OK;
    }
    TRY(load_padded(&out->format, name, d_c, d_r, err));
    (void)snprintf(out->name, sizeof out->name, "%s", out->format.name);
    TRY(check(&out->format, err));
    out->rows = rows_of_descriptor(&out->format, d_c, d_r);
    path = cache_format_path(name);
    if (!path)
        TRY(err_set(err, SNAP_E_NOMEM, "out of memory for the name of a format"));
    TRY(hash_file(path, out->sha256, err));
cleanup:
    free(path);
    return st;
}

double rounding_token_bytes(const cache_rounding *r) {
    return r->coded ? coded_token_bytes(r->coded, r->rows.d_c, r->rows.d_r)
                    : cache_format_token_bytes(&r->format);
}

/* ---- rounding -------------------------------------------------------------------------------- */

static const row_team alone = {0, 1};

/* Rounds @n rows that share scales with each other and with the @before earlier rows at @stored. */
static void round_together(const row_format *f, uint16_t *rows, int64_t n, const uint16_t *stored,
                           int64_t before) {
    row_range shared[MLA_MAX_CONTENT + MLA_MAX_ROPE] = {0};
    row_memory memory = {0};
    int64_t width = f->d_c + f->d_r;
    if (row_shared_ranges(f)) {
        for (int64_t i = 0; i < before; i++)
            row_add_ranges(alone, f, stored + i * width, shared, &memory);
        for (int64_t i = 0; i < n; i++)
            row_add_ranges(alone, f, rows + i * width, shared, &memory);
    }
    for (int64_t i = 0; i < n; i++)
        row_round(alone, f, rows + i * width, shared, &memory);
}

static void round_pages(const row_format *f, uint16_t *rows, int64_t n, const uint16_t *page,
                        int at) {
    int64_t width = f->d_c + f->d_r, tokens = f->page_tokens, before = at % tokens;
    const uint16_t *stored = page + at / tokens * tokens * width;
    for (int64_t done = 0; done < n;) {
        int64_t left = n - done, count = tokens - before < left ? tokens - before : left;
        round_together(f, rows + done * width, count, stored, before);
        done += count;
        before = 0;
    }
}

static void round_groups(const row_format *f, uint16_t *rows, int64_t n, uint16_t *page, int at) {
    int width = f->d_c + f->d_r, before = at % KIVI_TOKENS;
    uint16_t *stored = page + (at - before) * width;
    for (int64_t done = 0; n - done >= KIVI_TOKENS - before;
         done += KIVI_TOKENS - before, before = 0)
        for (int d = 0; d < f->d_c; d++)
            row_round_column(f, stored, before, rows + done * width, d);
}

void rounding_apply(const row_format *f, uint16_t *rows, int64_t n, uint16_t *page, int64_t at) {
    int64_t width = f->d_c + f->d_r, exact = f->exact > at ? f->exact - at : 0;
    int index = (int)(at % MLA_PAGE);
    if (f->rule == ROW_KIVI)
        round_groups(f, rows, n, page, index);
    else if (f->page_tokens)
        round_pages(f, rows, n, page, index);
    else if (exact < n)
        round_together(f, rows + exact * width, n - exact, NULL, 0);
}
