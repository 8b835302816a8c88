#include "kernels/test/fixture.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "kernels/cpu/machine.h"
#include "kernels/formats.h"

static void must(snap_status st, const snap_err *err) {
    if (st != SNAP_OK)
        (void)fprintf(stderr, "\n    %s\n", err->text);
    CU_ASSERT_EQUAL_FATAL(st, SNAP_OK);
}

static void *memory(fixture *f, size_t bytes) {
    snap_err err = {0};
    void *p = mla_alloc(f->be, bytes + 1, &err);
    must(p ? SNAP_OK : SNAP_E_NOMEM, &err);
    memset(p, f->spec.poison, bytes + 1);
    return p;
}

/* A fast, bounded approximation of N(0, 1): the sum of four uniform numbers of 16 bits of @u. */
static float roughly_normal(uint64_t u) {
    uint32_t sum = (uint32_t)((u & 0xffff) + (u >> 16 & 0xffff) + (u >> 32 & 0xffff) + (u >> 48));
    return ((float)sum - 131070.0f) / 37837.0f;
}

void fixture_row(const fixture_spec *spec, int id, int64_t token, uint16_t *row) {
    float x[MLA_MAX_CONTENT + MLA_MAX_ROPE];
    uint64_t bits[MLA_MAX_CONTENT + MLA_MAX_ROPE];
    int d = spec->d_c + spec->d_r;
    rng r = rng_make((uint64_t)id + 1, (uint64_t)token);
    rng_fill(&r, bits, (size_t)d);
    for (int i = 0; i < d; i++)
        x[i] = roughly_normal(bits[i]);
    if (spec->change)
        spec->change(spec, token < 0 ? -1 : token, x);
    for (int i = 0; i < d; i++)
        row[i] = bf16_from_f32(x[i]);
}

static void put_row(void *content, void *rope, float *scale, const fixture_spec *s, int64_t at,
                    const uint16_t *row) {
    int d = s->d_c + s->d_r;
    if (s->precision == MLA_BF16)
        memcpy((uint16_t *)content + at * d, row, (size_t)d * sizeof *row);
    else
        scale[at] = quant_row(row, s->d_c, s->d_r, MLA_SCALE_MAX, (uint8_t *)content + at * s->d_c,
                              (uint16_t *)rope + at * s->d_r);
}

/* Assigns pages in shuffled order. Entries past the end of a sequence get invalid page numbers. */
static void make_table(fixture *f, int32_t *table, int width) {
    int64_t next = 0;
    int32_t *order = calloc((size_t)f->cache.pages, sizeof *order);
    CU_ASSERT_PTR_NOT_NULL_FATAL(order);
    rng r = rng_make(f->spec.pages_seed, 77);
    for (int32_t i = 0; i < f->cache.pages; i++) {
        int32_t j = (int32_t)rng_below(&r, (uint32_t)i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    for (int b = 0; b < f->spec.batch; b++)
        for (int i = 0; i < width; i++)
            table[b * width + i] =
                i * MLA_PAGE < f->spec.length[b] ? order[next++] : INT32_MIN / (b + 1);
    free(order);
}

static void make_cache(fixture *f) {
    const fixture_spec *s = &f->spec;
    int longest = 1;
    for (int b = 0; b < s->batch; b++) {
        longest = s->length[b] > longest ? s->length[b] : longest;
        f->cache.pages += (s->length[b] + MLA_PAGE - 1) / MLA_PAGE;
    }
    f->cache.pages += 2;
    int width = (longest - 1) / MLA_PAGE + 2;
    int32_t *lengths = memory(f, (size_t)s->batch * 4),
            *table = memory(f, (size_t)(s->batch * width) * 4);
    memcpy(lengths, s->length, (size_t)s->batch * 4);
    make_table(f, table, width);
    f->step = (mla_step){s->batch, s->s_q, lengths, table, width};
    mla_page_bytes page = mla_cache_page_bytes(s->precision, s->d_c, s->d_r);
    f->cache.content = memory(f, page.content * (size_t)f->cache.pages);
    f->cache.rope = memory(f, page.rope * (size_t)f->cache.pages);
    f->cache.scale = memory(f, page.scale * (size_t)f->cache.pages);
    uint16_t row[MLA_MAX_CONTENT + MLA_MAX_ROPE];
    for (int b = 0; b < s->batch; b++)
        for (int64_t j = 0; j < s->length[b]; j++) {
            fixture_row(s, s->id[b], j, row);
            put_row(f->cache.content, f->cache.rope, f->cache.scale, s,
                    mla_slot(table + b * width, f->cache.pages, j), row);
        }
}

static void make_queries(fixture *f) {
    const fixture_spec *s = &f->spec;
    int64_t rows = (int64_t)s->batch * s->s_q * s->heads, each = (int64_t)s->s_q * s->heads;
    size_t n = (size_t)rows, d = (size_t)(s->d_c + s->d_r);
    void *q = memory(f, n * d * 2), *rope = memory(f, n * (size_t)s->d_r * 2);
    float *scale = memory(f, n * sizeof *scale);
    uint16_t row[MLA_MAX_CONTENT + MLA_MAX_ROPE];
    for (int64_t i = 0; i < rows; i++) {
        fixture_row(s, s->id[i / each], -1 - i % each, row);
        put_row(q, rope, scale, s, i, row);
    }
    f->out_bytes = n * (size_t)s->d_c * 2;
    f->lse_bytes = n * sizeof(float);
    f->attn =
        (mla_attn){q, rope, scale, 0.0721687849f, memory(f, f->out_bytes), memory(f, f->lse_bytes)};
}

void fixture_make(fixture *f, fixture_spec spec) {
    spec.threads = spec.threads ? spec.threads : 2;
    spec.heads = spec.heads ? spec.heads : 1;
    spec.s_q = spec.s_q ? spec.s_q : 1;
    spec.d_c = spec.d_c ? spec.d_c : 512;
    spec.d_r = spec.d_r ? spec.d_r : 64;
    spec.poison = spec.poison ? spec.poison : 0xff;
    *f = (fixture){.spec = spec};
    snap_err err = {0};
    mla_backend_options opt = {.isa = spec.isa, .threads = spec.threads};
    must(mla_backend_open(&f->be, "cpu", &opt, &err), &err);
    make_cache(f);
    make_queries(f);
    mla_capacity cap = {.precision = spec.precision,
                        .heads = spec.heads,
                        .d_c = spec.d_c,
                        .d_r = spec.d_r,
                        .batch = spec.batch,
                        .s_q = spec.s_q,
                        .max_tokens = (int64_t)f->step.table_width * MLA_PAGE,
                        .splits = spec.splits};
    must(mla_plan_create(&f->plan, f->be, &cap, &err), &err);
    must(mla_check_step(f->plan, &f->step, &f->cache, &err), &err);
}

void fixture_run(fixture *f) {
    snap_err err = {0};
    must(mla_schedule(f->plan, &f->step, &err), &err);
    must(mla_run(f->plan, &f->step, &f->cache, &f->attn, &err), &err);
}

void fixture_free(fixture *f) {
    mla_plan_free(f->plan);
    void *owned[] = {(void *)(uintptr_t)f->step.seqlens,
                     (void *)(uintptr_t)f->step.block_table,
                     f->cache.content,
                     f->cache.rope,
                     f->cache.scale,
                     (void *)(uintptr_t)f->attn.q,
                     (void *)(uintptr_t)f->attn.q_rope,
                     (void *)(uintptr_t)f->attn.q_scale,
                     f->attn.out,
                     f->attn.lse};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        mla_free(f->be, owned[i]);
    mla_backend_close(f->be);
    *f = (fixture){0};
}

judge_step fixture_step(const fixture *f) {
    return (judge_step){.precision = f->spec.precision,
                        .heads = f->spec.heads,
                        .d_c = f->spec.d_c,
                        .d_r = f->spec.d_r,
                        .step = f->step,
                        .cache = f->cache,
                        .attn = f->attn};
}

judge_error fixture_judge(const fixture *f, ref_pv pv, int64_t rows) {
    judge_error e;
    snap_err err = {0};
    judge_step step = fixture_step(f);
    must(judge_rows(&e, &step, pv, (judge_sample){.rows = rows, .seed = 5}, &err), &err);
    return e;
}

void fixture_expect(const fixture *f, int64_t rows) {
    ref_pv pv = f->spec.precision == MLA_FP8 ? REF_P_E4M3 : REF_P_EXACT;
    judge_error e = fixture_judge(f, pv, rows);
    snap_err err = {0};
    if (judge_verdict(&e, judge_bound_of(f->spec.precision, pv), &err) != SNAP_OK) {
        (void)fprintf(stderr, "\n    %s %s, %d heads, s_q %d, %d + %d: %s\n", f->spec.isa,
                      mla_precision_name(f->spec.precision), f->spec.heads, f->spec.s_q,
                      f->spec.d_c, f->spec.d_r, err.text);
        CU_FAIL("outside the bounds");
    }
}

const char *const *fixture_isas(void) {
    static const char *names[8];
    int n = 0;
    for (const cpu_isa *const *isa = machine_isas(); *isa; isa++)
        if (!(*isa)->lacks())
            names[n++] = (*isa)->name;
#ifdef __SANITIZE_THREAD__ /* one set is enough: threads synchronise outside the code that depends
                              on the set */
    n = n > 1 ? 1 : n;
#endif
    names[n] = NULL;
    return names;
}
