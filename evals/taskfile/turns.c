/* turns.c - the keys "turns" and "groups" of a task file: problems that are turns of conversations,
 * and fields by which results are also given. */
#include <string.h>

#include "evals/taskfile/parts.h"

enum { kMostMessages = 1 << 16 };

/* The fields that a row with all messages gets. */
static const char kEarlier[] = "earlier_messages", kLast[] = "last";

snap_status read_turns(task_file *f, const keys *k, snap_err *err) {
    static const char *const answers[] = {"fixed", "own", NULL};
    turns_part *t = &f->turns;
    int word;
    keys sub;
    snap_status st;
    TRY(keys_object(k, "turns", &sub, &t->given, err));
    if (!t->given)
        goto cleanup;
    TRY(keys_check(
        &sub, (const char *const[]){"history", "messages", "conversation", "answers", NULL}, err));
    TRY(keys_text(&sub, "history", &t->history, err));
    TRY(keys_text(&sub, "messages", &t->messages, err));
    TRY(keys_text(&sub, "conversation", &t->conversation, err));
    TRY(keys_word(&sub, "answers", answers, &word, err));
    f->spec.own_answers = word == 1;
    if (!t->history == !t->messages)
        TRY(keys_bad(&sub, NULL, err,
                     "needs 'history', the field with the earlier messages, or 'messages', that "
                     "with all of them"));
    t->history = t->history ? t->history : kEarlier;
    if (word == 1 && !t->conversation)
        TRY(keys_bad(&sub, NULL, err,
                     "needs 'conversation', the field with its id, for the arm's own answers"));
cleanup:
    return st;
}

snap_status read_groups(task_file *f, const keys *k, snap_err *err) {
    size_t n;
    return keys_texts(k, "groups", f->spec.groups, TASK_GROUPS, &n, err);
}

/* Copies one message of a row's history. */
static snap_status read_message(const js *message, task_rows *r, gen_message *out,
                                const char *where, snap_err *err) {
    static const char *const roles[] = {"user", "assistant"};
    const char *role = js_get_str(message, "role");
    size_t n = 0;
    const char *content = js_get_strn(message, "content", &n);
    for (size_t i = 0; role && i < 2; i++)
        out->role = strcmp(role, roles[i]) == 0 ? roles[i] : out->role;
    if (!out->role || !n || strlen(content) != n)
        return err_set(err, SNAP_E_INPUT,
                       "%s: a message of the history must have a 'role' (user or assistant) and a "
                       "text 'content'",
                       where);
    return row_keep(r, content, &out->content, where, err);
}

/* With the arms' own answers, the answers of the history stand for those of the earlier problems of
 * the conversation. So there must be as many of them. */
static snap_status check_turn(const task_rows *r, const task_row *out, const char *where,
                              snap_err *err) {
    const task_set *set = r->set;
    bool continues = set->n && r->conversation && strcmp(out->conversation, r->conversation) == 0;
    int before = continues ? set->problems[set->n - 1].turn + 1 : 0, answers = 0;
    for (int i = 0; i < out->n_history; i++)
        answers += strcmp(out->history[i].role, "assistant") == 0;
    if (answers == before)
        return SNAP_OK;
    return err_set(err, SNAP_E_INPUT,
                   "%s: the history has %d answers, but the conversation has %d earlier rows",
                   where, answers, before);
}

/* Copies all messages but the last one to the field kEarlier, and the text of the last one to the
 * field kLast. */
static bool split(js *row, const js *all) {
    js *earlier = js_new_array();
    bool ok = earlier != NULL;
    for (size_t i = 0; i + 1 < js_len(all) && ok; i++)
        ok = js_push_new(earlier, js_copy(js_at(all, i)));
    ok = js_set_new(row, kEarlier, earlier) && ok;
    return ok && js_set_str(row, kLast, js_get_str(js_at(all, js_len(all) - 1), "content"));
}

snap_status turns_split(const task_file *f, js *row, const char *where, snap_err *err) {
    if (!f->turns.messages)
        return SNAP_OK;
    size_t n = 0;
    const char *text = js_get_strn(row, f->turns.messages, &n);
    js *parsed = text ? js_parse(text, n, where, err) : NULL;
    const js *all = text ? parsed : js_get(row, f->turns.messages);
    snap_status st = SNAP_OK;
    if (text && !parsed)
        st = err && err->code != SNAP_OK ? err->code : SNAP_E_INPUT;
    else if (!js_is_array(all) || !js_len(all) || js_len(all) > kMostMessages)
        st = err_set(err, SNAP_E_INPUT, "%s: '%s' must be a list of 1 to %d messages", where,
                     f->turns.messages, kMostMessages);
    else if (!split(row, all))
        st = err_set(err, SNAP_E_NOMEM, "%s: out of memory", where);
    js_free(parsed);
    return st;
}

static snap_status set_history(const task_file *f, const js *row, task_rows *r, task_row *out,
                               const char *where, snap_err *err) {
    const js *list = row_field(row, f->turns.history);
    size_t n = js_len(list);
    if (!js_is_array(list) || n > kMostMessages)
        return err_set(err, SNAP_E_INPUT, "%s: '%s' must be a list of at most %d messages", where,
                       f->turns.history, kMostMessages);
    gen_message *history = arena_alloc(&r->set->mem, n + 1, sizeof *history);
    if (!history)
        return err_set(err, SNAP_E_NOMEM, "%s: out of memory", where);
    out->history = history;
    snap_status st = SNAP_OK;
    for (size_t i = 0; i < n && st == SNAP_OK; i++)
        st = read_message(js_at(list, i), r, &history[out->n_history++], where, err);
    return st;
}

static snap_status set_conversation(const task_file *f, const js *row, task_rows *r, task_row *out,
                                    const char *where, snap_err *err) {
    char number[TEMPLATE_NUMBER_MAX];
    const char *id = value_text(row_field(row, f->turns.conversation), number);
    if (!id)
        return row_lacks(row, (const char *const[]){f->turns.conversation, NULL}, where, err);
    return row_keep(r, id, &out->conversation, where, err);
}

snap_status turns_set(const task_file *f, const js *row, task_rows *r, task_row *out,
                      const char *where, snap_err *err) {
    snap_status st = SNAP_OK;
    if (f->turns.given)
        TRY(set_history(f, row, r, out, where, err));
    if (f->turns.conversation)
        TRY(set_conversation(f, row, r, out, where, err));
    if (f->spec.own_answers)
        TRY(check_turn(r, out, where, err));
    for (int i = 0; f->spec.groups[i]; i++) {
        char number[TEMPLATE_NUMBER_MAX];
        const char *value = value_text(row_field(row, f->spec.groups[i]), number);
        TRY(row_keep(r, value ? value : "", &out->groups[i], where, err));
    }
cleanup:
    return st;
}
