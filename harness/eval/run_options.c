#include "harness/eval/run_options.h"

#include "harness/eval/run_files.h"

static js *list_json(const opt_list *list) {
    js *a = js_new_array();
    bool ok = a != NULL;
    for (int i = 0; i < list->n && ok; i++)
        ok = js_push_new(a, js_new_str(list->items[i]));
    if (ok)
        return a;
    js_free(a);
    return NULL;
}

js *run_options_json(const eval_options *o) {
    js *row = js_new_object();
    bool ok = row && js_set_str(row, "suite", o->suite) && js_set_str(row, "shard", o->shard) &&
              js_set_str(row, "data", o->data) && js_set_str(row, "lengths", o->lengths) &&
              js_set_str(row, "tokenizer", o->tokenizer) &&
              js_set_num(row, "chars_per_token", o->chars_per_token) &&
              js_set_int(row, "samples", o->samples) && js_set_int(row, "limit", o->limit) &&
              js_set_int(row, "max_tokens", o->max_tokens) &&
              js_set_int(row, "thinking_budget", o->thinking_budget) &&
              js_set_str(row, "may_differ", o->may_differ) && js_set_int(row, "seed", o->seed) &&
              js_set_num(row, "temperature", o->temperature) &&
              js_set_num(row, "top_p", o->top_p) && js_set_num(row, "margin_pp", o->margin_pp) &&
              js_set_num(row, "max_lost_pct", o->max_lost_pct) &&
              js_set_str(row, "math_policy", o->math_policy) &&
              js_set_str(row, "judge", o->judge) &&
              js_set_str(row, "lcb_version", o->lcb_version) &&
              js_set_str(row, "lcb_from", o->lcb_from) && js_set_str(row, "lcb_to", o->lcb_to) &&
              js_set_new(row, "controls", list_json(&o->controls)) &&
              js_set_new(row, "arms", list_json(&o->arms));
    if (ok)
        return row;
    js_free(row);
    return NULL;
}

static void recall_list(const js *was, const char *key, opt_list *out) {
    const js *items = js_get_array(was, key);
    out->n = 0;
    out->from_file = true;
    for (size_t i = 0; i < js_len(items) && out->n < OPT_LIST_MAX; i++)
        if (js_str(js_at(items, i)))
            out->items[out->n++] = js_str(js_at(items, i));
}

snap_status run_options_recall(eval_options *o, const results_journal *journal, snap_err *err) {
    const js *was = results_journal_find(journal, RUN_OPTIONS);
    if (!was)
        return err_set(err, SNAP_E_USAGE, "'%s' has no run to grade again", o->out);
    o->suite = js_get_str(was, "suite");
    o->shard = js_get_str(was, "shard");
    o->data = o->data ? o->data : js_get_str(was, "data");
    o->lengths = js_get_str(was, "lengths");
    o->tokenizer = js_get_str(was, "tokenizer");
    o->chars_per_token = js_get_num(was, "chars_per_token", 0);
    o->samples = js_get_int(was, "samples", 0);
    o->limit = js_get_int(was, "limit", 0);
    o->max_tokens = js_get_int(was, "max_tokens", 0);
    o->thinking_budget = js_get_int(was, "thinking_budget", 0);
    o->may_differ = o->may_differ ? o->may_differ : js_get_str(was, "may_differ");
    o->seed = js_get_int(was, "seed", 0);
    o->temperature = js_get_num(was, "temperature", -1);
    o->top_p = js_get_num(was, "top_p", 0);
    o->margin_pp = o->margin_pp > 0 ? o->margin_pp : js_get_num(was, "margin_pp", 0);
    if (o->max_lost_pct < 0)
        o->max_lost_pct = js_get_num(was, "max_lost_pct", -1);
    o->math_policy = o->math_policy ? o->math_policy : js_get_str(was, "math_policy");
    o->judge = o->judge ? o->judge : js_get_str(was, "judge");
    o->lcb_version = js_get_str(was, "lcb_version");
    o->lcb_from = js_get_str(was, "lcb_from");
    o->lcb_to = js_get_str(was, "lcb_to");
    recall_list(was, "arms", &o->arms);
    recall_list(was, "controls", &o->controls);
    return SNAP_OK;
}
