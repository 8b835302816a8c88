#include "evals/arena.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/fault.h"
#include "base/text.h"
#include "evals/extract.h"

/* ---- the judge's prompts ---- */

#define JUDGE                                                                                      \
    "Please act as an impartial judge and evaluate the quality of the responses provided by two "  \
    "AI assistants to the user prompt displayed below. You will be given assistant A's answer "    \
    "and "                                                                                         \
    "assistant B's answer. Your job is to evaluate which assistant's answer is better.\n\n"
#define OWN_ANSWER                                                                                 \
    "Begin your evaluation by generating your own answer to the prompt. You must provide your "    \
    "answers before judging any answers.\n\nWhen evaluating the assistants' answers, compare "     \
    "both "                                                                                        \
    "assistants' answers with your answer."
#define NO_ANSWER "When evaluating the assistants' answers, compare both assistants' answers."
#define CRITERIA                                                                                   \
    " You must identify and correct any mistakes or inaccurate information.\n\nThen consider if "  \
    "the assistant's answers are helpful, relevant, and concise. Helpful means the answer "        \
    "correctly responds to the prompt or follows the instructions. Note when user prompt has any " \
    "ambiguity or more than one interpretation, it is more helpful and appropriate to ask for "    \
    "clarifications or more information from the user than providing an answer based on "          \
    "assumptions. Relevant means all parts of the response closely connect or are appropriate to " \
    "what is being asked. Concise means the response is clear and not verbose or excessive.\n\n"   \
    "Then consider the creativity and novelty of the assistant's answers when needed. Finally, "   \
    "identify any missing important information in the assistants' answers that would be "         \
    "beneficial to include when responding to the user prompt.\n\nAfter providing your "           \
    "explanation, you must output only one of the following choices as your final verdict with a " \
    "label:\n\n1. Assistant A is significantly better: [[A>>B]]\n2. Assistant A is slightly "      \
    "better: [[A>B]]\n3. Tie, relatively the same: [[A=B]]\n4. Assistant B is slightly better: "   \
    "[[B>A]]\n5. Assistant B is significantly better: [[B>>A]]\n\nExample output: \"My final "     \
    "verdict is tie: [[A=B]]\"."

static const char kJudge[] = JUDGE OWN_ANSWER CRITERIA;
static const char kJudgeOfWriting[] = JUDGE NO_ANSWER CRITERIA;

/* The gold (p->gold) has the question's category, a newline, and the reference, if there is one. */
const char *arena_instruction(const task_problem *p) {
    return text_starts(p->gold, "creative_writing\n") ? kJudgeOfWriting : kJudge;
}

const char *arena_reference(const task_problem *p) {
    const char *line = strchr(p->gold, '\n');
    return line && line[1] ? line + 1 : NULL;
}

snap_status arena_game_prompt(const task_problem *p, int game, span reference, span answer,
                              buf *out, snap_err *err) {
    span a = game == 0 ? reference : answer, b = game == 0 ? answer : reference;
    (void)buf_printf(out, "<|User Prompt|>\n%s\n\n<|The Start of Assistant A's Answer|>\n",
                     p->messages[p->n_messages - 1].content);
    (void)buf_append(out, a.s, a.n);
    (void)buf_puts(out, "\n<|The End of Assistant A's Answer|>\n\n"
                        "<|The Start of Assistant B's Answer|>\n");
    (void)buf_append(out, b.s, b.n);
    (void)buf_puts(out, "\n<|The End of Assistant B's Answer|>");
    return buf_check(out, "a game", err);
}

/* ---- verdicts ---- */

/* For each label: A's share of the battles for which it counts (`value`), and their number
 * (`weight`). */
static const struct {
    const char *label, *said; /* label: as stored; said: as judges write it, in upper or lower
                                 case */
    double value, weight;
} labels[] = {
    {"A>>B", "A>>B", 1, 3}, {"A>B", "A>B", 1, 1},   {"A=B", "A=B", 0.5, 1}, {"A=B", "B=A", 0.5, 1},
    {"B>A", "B>A", 0, 1},   {"B>A", "A<B", 0, 1},   {"B>>A", "B>>A", 0, 3}, {"B>>A", "A<<B", 0, 3},
    {"A>B", "B<A", 1, 1},   {"A>>B", "B<<A", 1, 3},
};

static const char *label_of(span said) {
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++)
        if (said.n == strlen(labels[i].said) && strncasecmp(said.s, labels[i].said, said.n) == 0)
            return labels[i].label;
    return NULL;
}

const char *arena_verdict(span judgment) {
    static pattern twice = {.regex = "\\[\\[([ABab<>=]+)\\]\\]"};
    static pattern once = {.regex = "\\[([ABab<>=]+)\\]"};
    span groups[PATTERN_GROUPS];
    judgment = extract_visible(judgment, NULL);
    if (pattern_find_last(&twice, judgment, groups) || pattern_find_last(&once, judgment, groups))
        return label_of(groups[1]);
    return NULL;
}

grade_score arena_score(const char *const verdicts[ARENA_GAMES]) {
    double won = 0, battles = 0;
    for (int g = 0; g < ARENA_GAMES; g++) {
        for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
            if (strcmp(labels[i].said, verdicts[g]) != 0)
                continue;
            won += labels[i].weight * (g == 0 ? 1 - labels[i].value : labels[i].value);
            battles += labels[i].weight;
        }
    }
    return (grade_score){.value = won / battles, .weight = battles};
}

/* ---- rows ---- */

bool arena_is_judged(const js *row, const char *judge, span reference) {
    char digest[HASH_HEX];
    return js_get_str(row, "verdict") && text_equal(js_get_str(row, "judge"), judge) &&
           hash_bytes(reference.s, reference.n, digest, NULL) == SNAP_OK &&
           text_equal(js_get_str(row, "reference_sha256"), digest);
}

static bool set_score(js *row, const grader *g, grade_score s) {
    js *scores = js_new_object();
    bool ok = scores && js_set_num(scores, g->metrics[0], s.value);
    const char *verdict = s.value > 0.5 ? "correct" : "wrong";
    return js_set_new(row, "scores", scores) && ok && js_set_num(row, "battles", s.weight) &&
           js_set_str(row, "verdict", verdict) && js_set_str(row, "grader", g->id);
}

static js *game_json(const arena_game *game, const char *verdict) {
    js *o = js_new_object();
    if (o && js_set_str(o, "verdict", verdict) && js_set_str(o, "judgment", game->judgment) &&
        js_set_str(o, "error", game->error))
        return o;
    js_free(o);
    return NULL;
}

static bool set_outcome(js *row, const grader *g, const char *const verdicts[ARENA_GAMES]) {
    static const char *const won[] = {"won the games", "did not win the games"};
    char both[GRADE_EXTRACTED_MAX];
    if (!verdicts[0] || !verdicts[1])
        return js_set_str(row, "verdict", NULL) && js_set_str(row, "grader", g->id) &&
               js_set_str(row, "reason", "the judge gave no verdict");
    grade_score s = arena_score(verdicts);
    (void)snprintf(both, sizeof both, "%s, %s", verdicts[0], verdicts[1]);
    return set_score(row, g, s) && js_set_str(row, "extracted", both) &&
           js_set_str(row, "rule", "games") && js_set_str(row, "reason", won[s.value <= 0.5]);
}

snap_status arena_set_games(js *row, const grader *g, const char *judge, span reference,
                            const arena_game games[ARENA_GAMES], snap_err *err) {
    fault_mark before = fault_begin();
    char digest[HASH_HEX];
    const char *verdicts[ARENA_GAMES];
    js *list = js_new_array();
    bool ok = list != NULL;
    for (int i = 0; i < ARENA_GAMES && ok; i++) {
        const char *text = games[i].judgment;
        verdicts[i] = text ? arena_verdict((span){text, strlen(text)}) : NULL;
        ok = js_push_new(list, game_json(&games[i], verdicts[i]));
    }
    ok = js_set_new(row, "games", list) && ok && set_outcome(row, g, verdicts) &&
         js_set_str(row, "judge", judge) &&
         hash_bytes(reference.s, reference.n, digest, err) == SNAP_OK &&
         js_set_str(row, "reference_sha256", digest);
    snap_status st = ok ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for a verdict");
    return fault_result(before, st, err);
}

snap_status arena_set_reference(js *row, const grader *g, snap_err *err) {
    bool ok = set_score(row, g, (grade_score){0.5, ARENA_GAMES}) &&
              js_set_str(row, "reason", "this is the reference answer");
    return ok ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for a verdict");
}

bool arena_recall(const js *row, grade_result *r) {
    const char *verdict = js_get_str(row, "verdict"), *text = js_get_str(row, "extracted");
    double value = js_get_num(js_get_object(row, "scores"), grader_arena.metrics[0], -1);
    *r = (grade_result){.verdict = GRADE_UNPARSED, .rule = js_get_str(row, "rule")};
    if (!verdict || !(value >= 0 && value <= 1))
        return false;
    r->verdict = strcmp(verdict, "correct") == 0 ? GRADE_CORRECT : GRADE_WRONG;
    r->also[0] = (grade_score){value, js_get_num(row, "battles", ARENA_GAMES)};
    (void)snprintf(r->extracted, sizeof r->extracted, "%s", text ? text : "");
    return true;
}
