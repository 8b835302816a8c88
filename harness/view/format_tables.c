#include "harness/view/format_tables.h"

#include <stdio.h>

static const char *const kPer[] = {"token", "page", "tensor"};

/* ---- the table of formats -------------------------------------------------------------------- */

table format_list(void) {
    static const char *const heads[] = {"format", "bytes/token", "content", "scale",
                                        "RoPE",   "RoPE scale",  "queries", "P"};
    return table_new(heads, sizeof heads / sizeof *heads);
}

/* "fp32 per token", "ue8m0 per token and 32 columns", "1, fixed" */
static void scale_cell(table *t, const cache_part *p) {
    const cache_scale *s = &p->scale;
    char columns[32] = "";
    switch (s->kind) {
    case SCALE_NONE:
        table_cell(t, "none");
        break;
    case SCALE_FIXED:
        table_cell(t, "%g, fixed", (double)s->fixed);
        break;
    case SCALE_CONTENT:
        table_cell(t, "that of the content");
        break;
    case SCALE_SHARED:
        table_cell(t, "shared with the content");
        break;
    case SCALE_OWN:
        if (s->columns < p->plane.columns)
            (void)snprintf(columns, sizeof columns, " and %d column%s", s->columns,
                           s->columns > 1 ? "s" : "");
        table_cell(t, "%s%s%s per %s%s%s", element_name(s->plane.type),
                   s->rounding == SCALE_EXACT || s->plane.type == ELEMENT_UE8M0 ? "" : " 2^n",
                   s->tensor.columns ? " x fp32" : "", kPer[s->per], columns,
                   p->zero.columns ? ", zero point" : "");
        break;
    }
}

void format_list_add(table *t, const cache_format *f) {
    static const char *const queries[] = {"exact", "bf16", "format"};
    static const char *const probabilities[] = {"exact", "bf16", "e4m3"};
    table_put(t, f->name);
    table_cell(t, "%.7g", cache_format_token_bytes(f));
    table_cell(t, "%s%s%s", element_name(f->content.plane.type), f->hadamard ? ", rotated" : "",
               f->offset.columns ? ", less mean" : "");
    scale_cell(t, &f->content);
    table_cell(t, "%s", element_name(f->rope.plane.type));
    scale_cell(t, &f->rope);
    table_cell(t, "%s", queries[f->queries]);
    table_cell(t, "%s", probabilities[f->pv]);
}

/* ---- one format ------------------------------------------------------------------------------ */

/* What has values of its own: each token, each page, or only the tensor. */
static const char *owner(const cache_format *f, const cache_plane *p) {
    return !f->pool[p->pool].paged ? "tensor" : p->stride ? "token" : "page";
}

static long long row_bytes(const cache_plane *p) {
    return ((long long)p->columns * element_bits(p->type) + 7) / 8;
}

table format_layout(const cache_format *f) {
    static const char *const heads[] = {"plane", "type",   "elements", "bytes",       "per",
                                        "pool",  "offset", "stride",   "pool's bytes"};
    table t = table_new(heads, sizeof heads / sizeof *heads);
    cache_plane_name planes[CACHE_PLANES];
    for (int i = 0, n = cache_format_planes(f, planes); i < n; i++) {
        const cache_plane *p = planes[i].plane;
        table_cell(&t, "%s", planes[i].name);
        table_cell(&t, "%s", element_name(p->type));
        table_cell(&t, "%d", p->columns);
        table_cell(&t, "%lld", row_bytes(p));
        table_cell(&t, "%s", owner(f, p));
        table_cell(&t, "%d", p->pool);
        table_cell(&t, "%lld", (long long)p->offset);
        table_cell(&t, "%lld", (long long)p->stride);
        table_cell(&t, "%lld per %s", (long long)f->pool[p->pool].bytes,
                   f->pool[p->pool].paged ? "page" : "tensor");
    }
    return t;
}

static js *plane_object(const cache_format *f, const cache_plane_name *p) {
    js *o = js_new_object();
    bool ok = o && js_set_str(o, "name", p->name) &&
              js_set_str(o, "type", element_name(p->plane->type)) &&
              js_set_int(o, "elements", p->plane->columns) &&
              js_set_int(o, "bytes", row_bytes(p->plane)) &&
              js_set_str(o, "per", owner(f, p->plane)) && js_set_int(o, "pool", p->plane->pool) &&
              js_set_int(o, "offset", p->plane->offset) &&
              js_set_int(o, "stride", p->plane->stride) &&
              js_set_int(o, "pool_bytes", f->pool[p->plane->pool].bytes);
    if (ok)
        return o;
    js_free(o);
    return NULL;
}

js *format_document(const cache_format *f) {
    cache_plane_name planes[CACHE_PLANES];
    js *o = js_new_object(), *list = js_new_array();
    bool ok = list && js_set_str(o, "name", f->name) &&
              js_set_str(o, "description", f->description) && js_set_int(o, "content", f->d_c) &&
              js_set_int(o, "rope", f->d_r) && js_set_int(o, "page_tokens", f->page_tokens) &&
              js_set_num(o, "bytes_per_token", cache_format_token_bytes(f));
    for (int i = 0, n = cache_format_planes(f, planes); i < n && ok; i++)
        ok = js_push_new(list, plane_object(f, &planes[i]));
    if (!ok) {
        js_free(list);
        js_free(o);
        return NULL;
    }
    if (js_set_new(o, "planes", list))
        return o;
    js_free(o);
    return NULL;
}
