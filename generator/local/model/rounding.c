#include "generator/local/model/rounding.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "kernels/formats.h"

enum { kPadding = 128 }; /* content is padded to a multiple of this */

/* ---- loading --------------------------------------------------------------------------------- */

/* Loads the format with the content's own width, or else with the smallest padded width that it
 * has. */
static snap_status load_padded(cache_rounding *r, const char *name, snap_err *err) {
    snap_status st = cache_format_load(&r->format, name, r->d_c, r->d_r, err);
    int first = (r->d_c + kPadding - 1) / kPadding * kPadding;
    for (int d_c = first; st == SNAP_E_SHAPE && d_c <= MLA_MAX_CONTENT; d_c += kPadding)
        if (d_c > r->d_c && cache_format_load(&r->format, name, d_c, r->d_r, NULL) == SNAP_OK)
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

static snap_status check(const cache_rounding *r, snap_err *err) {
    const cache_format *f = &r->format;
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

snap_status rounding_load(cache_rounding *out, const char *name, int d_c, int d_r, snap_err *err) {
    snap_status st;
    char *path = NULL;
    *out = (cache_rounding){.d_c = d_c, .d_r = d_r, .coded = coded_format_find(name)};
    (void)snprintf(out->name, sizeof out->name, "%s", name);
    if (out->coded)
        return SNAP_OK;
    TRY(load_padded(out, name, err));
    (void)snprintf(out->name, sizeof out->name, "%s", out->format.name);
    TRY(check(out, err));
    path = cache_format_path(name);
    if (!path)
        TRY(err_set(err, SNAP_E_NOMEM, "out of memory for the name of a format"));
    TRY(hash_file(path, out->sha256, err));
cleanup:
    free(path);
    return st;
}

double rounding_token_bytes(const cache_rounding *r) {
    return r->coded ? coded_token_bytes(r->coded, r->d_c, r->d_r)
                    : cache_format_token_bytes(&r->format);
}

/* ---- rounding -------------------------------------------------------------------------------- */

static void widen(float *x, const cache_rounding *r, const uint16_t *rows, int64_t n) {
    int from = r->d_c + r->d_r, to = r->format.d_c + r->d_r;
    for (int64_t i = 0; i < n; i++, x += to, rows += from) {
        memset(x, 0, (size_t)r->format.d_c * sizeof *x);
        for (int d = 0; d < r->d_c; d++)
            x[d] = bf16_to_f32(rows[d]);
        for (int d = 0; d < r->d_r; d++)
            x[r->format.d_c + d] = bf16_to_f32(rows[r->d_c + d]);
    }
}

static void narrow(uint16_t *rows, const cache_rounding *r, const float *x, int64_t n) {
    int to = r->d_c + r->d_r, from = r->format.d_c + r->d_r;
    for (int64_t i = 0; i < n; i++, x += from, rows += to) {
        for (int d = 0; d < r->d_c; d++)
            rows[d] = bf16_from_f32(x[d]);
        for (int d = 0; d < r->d_r; d++)
            rows[r->d_c + d] = bf16_from_f32(x[r->format.d_c + d]);
    }
}

/* Rounds @n rows that share values with the @before rows of @stored, which come first. */
static snap_status round_together(const cache_rounding *r, uint16_t *rows, int64_t n,
                                  const uint16_t *stored, int64_t before, snap_err *err) {
    snap_status st = SNAP_OK;
    int64_t width = r->format.d_c + r->d_r, all = before + n;
    cache_bytes packed = {0};
    float *x = malloc((size_t)(all * width) * sizeof *x);
    if (!x)
        return err_set(err, SNAP_E_NOMEM, "out of memory for rounding %lld tokens", (long long)all);
    widen(x, r, stored, before);
    widen(x + before * width, r, rows, n);
    TRY(cache_format_pack(&packed, &r->format, x, all, err));
    cache_format_unpack(x, &r->format, &packed, NULL, before, n);
    narrow(rows, r, x, n);
cleanup:
    cache_bytes_release(&packed);
    free(x);
    return st;
}

static snap_status round_pages(const cache_rounding *r, uint16_t *rows, int64_t n,
                               const uint16_t *page, int at, snap_err *err) {
    int64_t width = r->d_c + r->d_r, tokens = r->format.page_tokens;
    const uint16_t *stored = page + at / tokens * tokens * width;
    int64_t before = at % tokens;
    for (int64_t done = 0; done < n;) {
        int64_t left = n - done, count = tokens - before < left ? tokens - before : left;
        snap_status st = round_together(r, rows + done * width, count, stored, before, err);
        if (st != SNAP_OK)
            return st;
        done += count;
        before = 0;
    }
    return SNAP_OK;
}

/* Rounds the group of tokens that consists of @before rows of @stored and of the first rows of
 * @rows. @x: memory for the group's numbers. */
static void round_group(const cache_rounding *r, uint16_t *rows, uint16_t *stored, int before,
                        float *x) {
    int width = r->d_c + r->d_r, tokens = r->coded->tokens;
    for (int i = 0; i < tokens; i++) {
        const uint16_t *row = i < before ? stored + i * width : rows + (i - before) * width;
        for (int d = 0; d < r->d_c; d++)
            x[i * r->d_c + d] = bf16_to_f32(row[d]);
    }
    coded_round_rows(r->coded, x, tokens, r->d_c, r->d_c);
    for (int i = 0; i < tokens; i++) {
        uint16_t *row = i < before ? stored + i * width : rows + (i - before) * width;
        for (int d = 0; d < r->d_c; d++)
            row[d] = bf16_from_f32(x[i * r->d_c + d]);
    }
}

static snap_status round_groups(const cache_rounding *r, uint16_t *rows, int64_t n, uint16_t *page,
                                int at, snap_err *err) {
    int width = r->d_c + r->d_r, tokens = r->coded->tokens, before = at % tokens;
    float *x = malloc((size_t)(tokens * r->d_c) * sizeof *x);
    if (!x)
        return err_set(err, SNAP_E_NOMEM, "out of memory for rounding %d tokens", tokens);
    uint16_t *stored = page + (at - before) * width;
    for (int64_t done = 0; n - done >= tokens - before; done += tokens - before, before = 0)
        round_group(r, rows + done * width, stored, before, x);
    free(x);
    return SNAP_OK;
}

snap_status rounding_apply(const cache_rounding *r, uint16_t *rows, int64_t n, uint16_t *page,
                           int at, snap_err *err) {
    if (r->coded)
        return round_groups(r, rows, n, page, at, err);
    if (has_page_scale(&r->format))
        return round_pages(r, rows, n, page, at, err);
    return round_together(r, rows, n, NULL, 0, err);
}
