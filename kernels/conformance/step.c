#include "kernels/conformance/step.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "kernels/formats.h"

static const float kSoftmaxScale = 0.0721687849f; /* 1 / sqrt(192) */

/* A fast, bounded approximation of N(0, 1): the sum of four uniform numbers of 16 bits of @u. */
static float roughly_normal(uint64_t u) {
    uint32_t sum = (uint32_t)((u & 0xffff) + (u >> 16 & 0xffff) + (u >> 32 & 0xffff) + (u >> 48));
    return ((float)sum - 131070.0f) / 37837.0f;
}

void step_row(const step_spec *spec, int id, int64_t token, uint16_t *row) {
    float x[STEP_WIDTH];
    uint64_t bits[STEP_WIDTH];
    int width = spec->d_c + spec->d_r;
    rng r = rng_make((uint64_t)id + 1, (uint64_t)(token % STEP_DRAWN));
    if (spec->blank) {
        memset(x, 0, sizeof x);
    } else {
        rng_fill(&r, bits, (size_t)width);
        for (int i = 0; i < width; i++)
            x[i] = roughly_normal(bits[i]);
    }
    if (spec->change)
        spec->change(spec, id, token, x);
    /* Most numbers of a blank row stay 0, and long contexts have hundreds of millions of them, so 0
     * is not converted. */
    bool blank = spec->blank;
    for (int i = 0; i < width; i++)
        row[i] = blank && x[i] == 0.0f ? 0 : bf16_from_f32(x[i]);
}

/* ---- images ---------------------------------------------------------------------------------- */

static void *image(step_case *c, step_area_name a) {
    return c->area[a].host;
}

/* Stores @row as row @at. BF16: in the area @first. FP8: in three consecutive areas (content, rope,
 * scale), the first being @first. */
static void put_row(step_case *c, step_area_name first, int64_t at, const uint16_t *row) {
    const step_spec *s = &c->spec;
    int width = s->d_c + s->d_r;
    if (s->precision == MLA_BF16)
        memcpy((uint16_t *)image(c, first) + at * width, row, (size_t)width * sizeof *row);
    else
        ((float *)image(c, first + 2))[at] =
            quant_row(row, s->d_c, s->d_r, c->scale, (uint8_t *)image(c, first) + at * s->d_c,
                      (uint16_t *)image(c, first + 1) + at * s->d_r);
}

/* Copies row @from of the cache to row @to. */
static void copy_row(step_case *c, int64_t to, int64_t from) {
    mla_page_bytes page = mla_cache_page_bytes(c->spec.precision, c->spec.d_c, c->spec.d_r);
    const size_t row[] = {page.content / MLA_PAGE, page.rope / MLA_PAGE, page.scale / MLA_PAGE};
    for (int i = 0; i < 3; i++)
        if (row[i]) {
            unsigned char *area = image(c, (step_area_name)(AREA_CONTENT + i));
            memcpy(area + (size_t)to * row[i], area + (size_t)from * row[i], row[i]);
        }
}

static int64_t pages_of(const step_spec *s) {
    int64_t pages = 2;
    for (int b = 0; b < s->batch; b++)
        pages += (s->length[b] + MLA_PAGE - 1) / MLA_PAGE;
    return pages;
}

static int table_width(const step_spec *s) {
    int longest = 1;
    for (int b = 0; b < s->batch; b++)
        longest = s->length[b] > longest ? s->length[b] : longest;
    return (longest - 1) / MLA_PAGE + 2 + s->spare;
}

/* Assigns pages in shuffled order. Entries past the end of a sequence get invalid page numbers. */
static snap_status fill_table(step_case *c, snap_err *err) {
    const step_spec *s = &c->spec;
    int64_t pages = pages_of(s), next = 0;
    int width = table_width(s);
    int32_t *order = calloc((size_t)pages, sizeof *order), *table = image(c, AREA_TABLE);
    if (!order)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a block table");
    rng r = rng_make(s->pages_seed, 77);
    for (int32_t i = 0; i < pages; i++) {
        int32_t j = (int32_t)rng_below(&r, (uint32_t)i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    for (int i = 0; i < s->batch * width; i++)
        table[i] = i % width * MLA_PAGE < s->length[i / width] ? order[next++]
                                                               : INT32_MIN / (i / width + 1);
    free(order);
    return SNAP_OK;
}

static snap_status fill(step_case *c, snap_err *err) {
    const step_spec *s = &c->spec;
    uint16_t row[STEP_WIDTH];
    int each = s->s_q * s->heads, width = table_width(s);
    memcpy(image(c, AREA_LENGTHS), s->length, (size_t)s->batch * sizeof *s->length);
    snap_status st = fill_table(c, err);
    if (st != SNAP_OK)
        return st;
    const int32_t *table = image(c, AREA_TABLE);
    int64_t pages = pages_of(s);
    for (int b = 0; b < s->batch; b++)
        for (int64_t j = 0; j < s->length[b]; j++) {
            int64_t slot = mla_slot(table + b * width, pages, j);
            if (j >= STEP_DRAWN && !s->change) {
                copy_row(c, slot, mla_slot(table + b * width, pages, j - STEP_DRAWN));
                continue;
            }
            step_row(s, s->id[b], j, row);
            put_row(c, AREA_CONTENT, slot, row);
        }
    for (int64_t i = 0; i < (int64_t)s->batch * each; i++) {
        step_row(s, s->id[i / each], -1 - i % each, row);
        put_row(c, AREA_Q, i, row);
    }
    return SNAP_OK;
}

/* ---- creating a step ------------------------------------------------------------------------- */

static void sizes(const step_spec *s, size_t bytes[STEP_AREAS]) {
    size_t rows = (size_t)s->batch * (size_t)s->s_q * (size_t)s->heads, d_c = (size_t)s->d_c,
           d_r = (size_t)s->d_r, pages = (size_t)pages_of(s);
    bool fp8 = s->precision == MLA_FP8;
    mla_page_bytes page = mla_cache_page_bytes(s->precision, s->d_c, s->d_r);
    bytes[AREA_LENGTHS] = (size_t)s->batch * sizeof(int32_t);
    bytes[AREA_TABLE] = (size_t)(s->batch * table_width(s)) * sizeof(int32_t);
    bytes[AREA_CONTENT] = page.content * pages;
    bytes[AREA_ROPE] = page.rope * pages;
    bytes[AREA_SCALE] = page.scale * pages;
    bytes[AREA_Q] = rows * (fp8 ? d_c : 2 * (d_c + d_r));
    bytes[AREA_Q_ROPE] = fp8 ? rows * 2 * d_r : 0;
    bytes[AREA_Q_SCALE] = fp8 ? rows * sizeof(float) : 0;
    bytes[AREA_OUT] = rows * 2 * d_c;
    bytes[AREA_LSE] = rows * sizeof(float);
}

static step_spec with_defaults(const step_spec *spec) {
    step_spec s = *spec;
    s.heads = s.heads ? s.heads : 1;
    s.s_q = s.s_q ? s.s_q : 1;
    s.d_c = s.d_c ? s.d_c : 512;
    s.d_r = s.d_r ? s.d_r : 64;
    s.poison = s.poison ? s.poison : 0xff;
    return s;
}

size_t step_bytes(const step_spec *spec) {
    step_spec s = with_defaults(spec);
    size_t bytes[STEP_AREAS], all = 0;
    sizes(&s, bytes);
    for (int a = 0; a < STEP_AREAS; a++)
        all += bytes[a];
    return all;
}

static snap_status make_areas(step_case *c, snap_err *err) {
    size_t bytes[STEP_AREAS];
    sizes(&c->spec, bytes);
    for (int a = 0; a < STEP_AREAS; a++) {
        step_area *area = &c->area[a];
        if (!bytes[a])
            continue;
        area->bytes = bytes[a];
        area->host = malloc(bytes[a]);
        if (!area->host)
            return err_set(err, SNAP_E_NOMEM, "out of memory for a step");
        memset(area->host, c->spec.poison, bytes[a]);
        area->device = mla_alloc(c->be, bytes[a], err);
        if (!area->device)
            return SNAP_E_NOMEM;
    }
    return SNAP_OK;
}

static void point(step_case *c) {
    const step_spec *s = &c->spec;
    const step_area *a = c->area;
    int width = table_width(s);
    int64_t pages = pages_of(s);
    c->step = (mla_step){s->batch, s->s_q, a[AREA_LENGTHS].device, a[AREA_TABLE].device, width};
    c->cache =
        (mla_cache){pages, a[AREA_CONTENT].device, a[AREA_ROPE].device, a[AREA_SCALE].device};
    c->attn = (mla_attn){a[AREA_Q].device, a[AREA_Q_ROPE].device, a[AREA_Q_SCALE].device,
                         kSoftmaxScale,    a[AREA_OUT].device,    a[AREA_LSE].device};
    mla_backend_info info;
    mla_backend_describe(c->be, &info);
    c->host = (judge_step){
        .sums = info.fp8_sums,
        .precision = s->precision,
        .heads = s->heads,
        .d_c = s->d_c,
        .d_r = s->d_r,
        .step = {s->batch, s->s_q, a[AREA_LENGTHS].host, a[AREA_TABLE].host, width},
        .cache = {pages, a[AREA_CONTENT].host, a[AREA_ROPE].host, a[AREA_SCALE].host},
        .attn = {a[AREA_Q].host, a[AREA_Q_ROPE].host, a[AREA_Q_SCALE].host, kSoftmaxScale,
                 a[AREA_OUT].host, a[AREA_LSE].host},
    };
}

static mla_capacity capacity_of(const step_spec *s) {
    return (mla_capacity){.precision = s->precision,
                          .heads = s->heads,
                          .d_c = s->d_c,
                          .d_r = s->d_r,
                          .batch = s->batch,
                          .s_q = s->s_q,
                          .max_tokens = (int64_t)table_width(s) * MLA_PAGE,
                          .splits = s->splits};
}

snap_status step_make(step_case *c, mla_backend *be, const step_spec *spec, snap_err *err) {
    mla_backend_info info;
    mla_backend_describe(be, &info);
    *c = (step_case){.spec = with_defaults(spec), .be = be, .scale = info.scale};
    mla_capacity cap = capacity_of(&c->spec);
    snap_status st = SNAP_OK;
    TRY(mla_plan_create(&c->plan, be, &cap, err));
    TRY(make_areas(c, err));
    TRY(fill(c, err));
    for (int a = 0; a < STEP_AREAS; a++)
        TRY(step_copy_in(c, (step_area_name)a, err));
    point(c);
    TRY(mla_check_step(c->plan, &c->step, &c->cache, err));
cleanup:
    return st;
}

void step_free(step_case *c) {
    mla_plan_free(c->plan);
    for (int a = 0; a < STEP_AREAS; a++) {
        mla_free(c->be, c->area[a].device);
        free(c->area[a].host);
    }
    *c = (step_case){0};
}

/* ---- running --------------------------------------------------------------------------------- */

snap_status step_copy_in(step_case *c, step_area_name a, snap_err *err) {
    const step_area *area = &c->area[a];
    return area->bytes ? mla_copy_in(c->be, area->device, area->host, area->bytes, err) : SNAP_OK;
}

snap_status step_copy_out(step_case *c, step_area_name a, snap_err *err) {
    const step_area *area = &c->area[a];
    return area->bytes ? mla_copy_out(c->be, area->host, area->device, area->bytes, err) : SNAP_OK;
}

snap_status step_run(step_case *c, snap_err *err) {
    snap_status st = SNAP_OK;
    for (int a = AREA_OUT; a <= AREA_LSE; a++) {
        memset(c->area[a].host, c->spec.poison, c->area[a].bytes);
        TRY(step_copy_in(c, (step_area_name)a, err));
    }
    TRY(mla_schedule(c->plan, &c->step, err));
    TRY(mla_run(c->plan, &c->step, &c->cache, &c->attn, err));
    TRY(mla_sync(c->be, err));
    TRY(step_copy_out(c, AREA_OUT, err));
    TRY(step_copy_out(c, AREA_LSE, err));
cleanup:
    return st;
}
