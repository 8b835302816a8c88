/* attend_call.c - calls of a plugin with one function: the step that it sees, the checks around a
 * call on the host, and its errors. */
#include <stdio.h>

#include "kernels/plugin/attend_inside.h"

snap_status attend_pass_on(const attend_backend *a, const char *function, snap_status st,
                           const snap_err *why, snap_err *err) {
    bool known = st == SNAP_E_NOMEM || st == SNAP_E_SHAPE || st == SNAP_E_UNSUPPORTED;
    int most = (int)sizeof why->text - 1;
    if (st == SNAP_OK)
        return SNAP_OK;
    return err_set(err, known ? st : SNAP_E_DEVICE, "plugin %s: %s%s%.*s", a->plugin->name,
                   function, why->text[0] ? ": " : " failed without a message", most, why->text);
}

void attend_keep_step(attend_plan *p, const mla_step *step, int64_t pages) {
    int64_t most = (int64_t)step->table_width * p->page_tokens, cap = p->base.cap.max_tokens;
    most = most < cap ? most : cap;
    for (int b = 0; b < step->batch; b++) {
        int64_t n = step->seqlens[b];
        n = n < 0 ? 0 : n > most ? most : n;
        p->lengths[b] = (int32_t)n;
        for (int64_t i = 0; i < (n + p->page_tokens - 1) / p->page_tokens; i++) {
            int64_t page = step->block_table[(int64_t)b * step->table_width + i];
            page = page < 0 ? 0 : page >= pages ? pages - 1 : page;
            p->table[(int64_t)b * p->table_width + i] = (int32_t)page;
        }
    }
}

snapmla_step attend_step(const attend_plan *p, const mla_step *step) {
    const mla_capacity *cap = &p->base.cap;
    bool host = attend_of(p->base.be)->host;
    return (snapmla_step){.precision = cap->precision,
                          .heads = cap->heads,
                          .d_c = cap->d_c,
                          .d_r = cap->d_r,
                          .max_tokens = cap->max_tokens,
                          .batch = step->batch,
                          .s_q = step->s_q,
                          .seqlens = host ? p->lengths : step->seqlens,
                          .block_table = host ? p->table : step->block_table,
                          .table_width = host ? p->table_width : step->table_width};
}

snap_status attend_limited(attend_backend *a, const char *function, void (*call)(void *ctx),
                           void *ctx, snap_err *err) {
    snap_err why = {0};
    const void *address = NULL;
    char where[120] = "";
    if (!a->host) {
        call(ctx);
        return SNAP_OK;
    }
    snap_status st = guard_call(call, ctx, a->limit_s, &address, &why);
    if (st == SNAP_OK)
        return SNAP_OK;
    if (st != SNAP_E_DEVICE) /* the plugin was not called */
        return err_set(err, st, "plugin %s: %s: %s", a->plugin->name, function, why.text);
    a->stopped = true;
    if (address && !attend_describe_address(a, address, where, sizeof where))
        (void)snprintf(where, sizeof where, "address %p", address);
    return err_set(err, SNAP_E_DEVICE, "plugin %s: %s %s%s%s", a->plugin->name, function, why.text,
                   where[0] ? " at " : "", where);
}

snap_status attend_guarded(const guarded_call *c, snap_err *err) {
    attend_backend *a = attend_of(c->plan->base.be);
    const mla_capacity *cap = &c->plan->base.cap;
    bool sums = c->plan->calls++ < GUARD_CALLS;
    guard_range around[GUARD_RANGES];
    guard_range_note(&around[0], c->out, c->rows * (size_t)cap->d_c * 2);
    guard_range_note(&around[1], c->lse, c->rows * sizeof(float));
    uint64_t before = sums ? c->sum(c->ctx) : 0;
    snap_status st = attend_limited(a, "attend()", c->call, c->ctx, err);
    if (st != SNAP_OK)
        return st;
    static const char *const names[GUARD_RANGES] = {"out", "lse"};
    for (int i = 0; i < GUARD_RANGES; i++)
        if (!guard_range_holds(&around[i]))
            return err_set(err, SNAP_E_DEVICE, "plugin %s: attend() wrote outside of '%s'",
                           a->plugin->name, names[i]);
    if (sums && c->sum(c->ctx) != before)
        return err_set(err, SNAP_E_DEVICE,
                       "plugin %s: attend() changed its inputs (queries, cache, lengths or table)",
                       a->plugin->name);
    return sums ? attend_check_memory(a, err) : SNAP_OK;
}
