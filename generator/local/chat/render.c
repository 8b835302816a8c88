#include <string.h>

#include "generator/local/chat/chat.h"

#define BAR      "\xEF\xBD\x9C" /* U+FF5C */
#define USER     "<" BAR "User" BAR ">"
#define ANSWER   "<" BAR "Assistant" BAR ">"
#define SENTENCE "<" BAR "end\xE2\x96\x81of\xE2\x96\x81sentence" BAR ">"
#define THOUGHT  "</think>"

typedef struct {
    const chat_style *style;
    const gen_message *messages;
    int n;
    buf *out;
} renderer;

static void put(const renderer *r, const char *s) {
    (void)buf_puts(r->out, s ? s : "");
}

static bool is(const gen_message *m, const char *role) {
    return strcmp(m->role, role) == 0;
}

/* ---- DeepSeek ---- */

static void render_v2(const renderer *r) {
    put(r, r->style->bos);
    for (int i = 0; i < r->n; i++) {
        const gen_message *m = &r->messages[i];
        put(r, is(m, "user") ? "User: " : is(m, "assistant") ? "Assistant: " : "");
        put(r, m->content);
        put(r, is(m, "assistant") ? r->style->eos : "\n\n");
    }
    put(r, "Assistant:");
}

/* Writes all system messages, whatever their position, with empty lines between them. */
static void put_systems(const renderer *r) {
    bool first = true;
    for (int i = 0; i < r->n; i++)
        if (is(&r->messages[i], "system")) {
            put(r, first ? "" : "\n\n");
            put(r, r->messages[i].content);
            first = false;
        }
}

/* The text after the last (R1) or the first (V3.1) end of a thought; all of it if there is none. */
static const char *without_thought(const char *content, bool last) {
    for (const char *at; (at = strstr(content, THOUGHT)) != NULL;) {
        content = at + strlen(THOUGHT);
        if (!last)
            break;
    }
    return content;
}

static void render_v3(const renderer *r) {
    bool r1 = r->style->template == CHAT_DEEPSEEK_R1;
    put(r, r->style->bos);
    put_systems(r);
    for (int i = 0; i < r->n; i++) {
        const gen_message *m = &r->messages[i];
        if (is(m, "user")) {
            put(r, USER);
            put(r, m->content);
        } else if (is(m, "assistant")) {
            put(r, ANSWER);
            put(r, r1 ? without_thought(m->content, true) : m->content);
            put(r, SENTENCE);
        }
    }
    put(r, r1 ? ANSWER "<think>\n" : ANSWER);
}

static void render_v31(const renderer *r) {
    bool open_turn = false; /* the last message other than system messages is a user's */
    put(r, r->style->bos);
    put_systems(r);
    for (int i = 0; i < r->n; i++) {
        const gen_message *m = &r->messages[i];
        if (is(m, "user")) {
            put(r, USER);
            put(r, m->content);
            open_turn = true;
        } else if (is(m, "assistant")) {
            put(r, open_turn ? ANSWER THOUGHT : "");
            put(r, without_thought(m->content, false));
            put(r, SENTENCE);
            open_turn = false;
        }
    }
    if (open_turn)
        put(r, r->style->thinking ? ANSWER "<think>" : ANSWER THOUGHT);
}

/* ---- the others ---- */

static void render_kimi(const renderer *r) {
    bool k2 = r->style->template == CHAT_KIMI_K2;
    if (r->n && !is(&r->messages[0], "system")) {
        put(r, "<|im_system|>system<|im_middle|>");
        put(r, k2 ? "You are Kimi, an AI assistant created by Moonshot AI."
                  : "You are a helpful assistant");
        put(r, "<|im_end|>");
    }
    for (int i = 0; i < r->n; i++) {
        const gen_message *m = &r->messages[i];
        (void)buf_printf(r->out, "<|im_%s|>%s<|im_middle|>", m->role, m->role);
        put(r, m->content);
        put(r, "<|im_end|>");
    }
    put(r, "<|im_assistant|>assistant<|im_middle|>");
}

static void render_longcat(const renderer *r) {
    int round = 0;
    for (int i = 0; i < r->n; i++) {
        const gen_message *m = &r->messages[i];
        if (is(m, "assistant")) {
            put(r, m->content);
            put(r, "</longcat_s>");
            continue;
        }
        put(r, i ? " " : "");
        if (is(m, "user"))
            (void)buf_printf(r->out, "[Round %d] USER:", round++);
        else
            put(r, "SYSTEM:");
        put(r, m->content);
        put(r, is(m, "user") ? " ASSISTANT:" : "");
    }
}

static void render_chatml(const renderer *r) {
    if (r->style->template == CHAT_SMOLLM2 && r->n && !is(&r->messages[0], "system"))
        put(r,
            "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging "
            "Face<|im_end|>\n");
    for (int i = 0; i < r->n; i++) {
        (void)buf_printf(r->out, "<|im_start|>%s\n", r->messages[i].role);
        put(r, r->messages[i].content);
        put(r, "<|im_end|>\n");
    }
    put(r, "<|im_start|>assistant\n");
}

static void render_none(const renderer *r) {
    for (int i = 0; i < r->n; i++)
        put(r, r->messages[i].content);
}

snap_status chat_render(const chat_style *style, const gen_message *messages, int n, buf *out,
                        snap_err *err) {
    static void (*const render[])(const renderer *) = {
        [CHAT_NONE] = render_none,        [CHAT_DEEPSEEK_V2] = render_v2,
        [CHAT_DEEPSEEK_V3] = render_v3,   [CHAT_DEEPSEEK_R1] = render_v3,
        [CHAT_DEEPSEEK_V31] = render_v31, [CHAT_KIMI] = render_kimi,
        [CHAT_KIMI_K2] = render_kimi,     [CHAT_LONGCAT] = render_longcat,
        [CHAT_CHATML] = render_chatml,    [CHAT_SMOLLM2] = render_chatml,
    };
    for (int i = 0; i < n; i++)
        if (!is(&messages[i], "system") && !is(&messages[i], "user") &&
            !is(&messages[i], "assistant"))
            return err_set(err, SNAP_E_INPUT,
                           "message %d has the role '%.40s': must be system, user or assistant", i,
                           messages[i].role);
    const renderer r = {.style = style, .messages = messages, .n = n, .out = out};
    render[style->template](&r);
    return buf_check(out, "a prompt", err);
}
