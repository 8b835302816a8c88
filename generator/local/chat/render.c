#include <string.h>

#include "base/text.h"
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
        put(r, r->style->thinking == THINKING_ON ? ANSWER "<think>" : ANSWER THOUGHT);
}

/* ---- the templates of other models ---- */

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

/* ---- GLM ---- */

typedef struct {
    const char *at;
    size_t n;
} part;

/* The white space of Python's str.strip(). */
static bool is_white(uint32_t c) {
    return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
           c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
           c == 0x202F || c == 0x205F || c == 0x3000;
}

/* The number of bytes of the white space character at s; 0 if there is none. */
static size_t white_len(const char *s, size_t n) {
    size_t k = text_utf8_len(s, n);
    return k && is_white(text_code_point(s, k)) ? k : 0;
}

static part trim(part p) {
    for (size_t k; (k = white_len(p.at, p.n)) != 0; p.n -= k)
        p.at += k;
    while (p.n) {
        size_t k = 1; /* bytes of the last character */
        while (k < p.n && k < 4 && (p.at[p.n - k] & 0xC0) == 0x80)
            k++;
        if (white_len(p.at + p.n - k, k) != k)
            break;
        p.n -= k;
    }
    return p;
}

static void put_trimmed(const renderer *r, part p) {
    p = trim(p);
    (void)buf_append(r->out, p.at, p.n);
}

/* The thought of an answer: what precedes the first </think>, after the last <think> in it. The
 * template calls it empty if nothing but line feeds is there. */
static part thought_of(const char *content) {
    const char *end = strstr(content, THOUGHT), *start = content;
    if (!end)
        return (part){content, 0};
    while (end > start && end[-1] == '\n')
        end--;
    for (const char *next; (next = strstr(start, "<think>")) && next + 7 <= end;)
        start = next + 7;
    while (start < end && *start == '\n')
        start++;
    return (part){start, (size_t)(end - start)};
}

/* Only answers after the last message of the user keep their thought. */
static void put_glm4_answer(const renderer *r, const char *content, bool keep_thought) {
    part thought = thought_of(content);
    const char *text = without_thought(content, true);
    put(r, "<|assistant|>");
    if (keep_thought && thought.n) {
        put(r, "<think>");
        put_trimmed(r, thought);
    }
    put(r, THOUGHT);
    put_trimmed(r, (part){text, strlen(text)});
}

static void render_glm4(const renderer *r) {
    int last_user = -1;
    for (int i = 0; i < r->n; i++)
        if (is(&r->messages[i], "user"))
            last_user = i;
    put(r, "[gMASK]<sop>");
    for (int i = 0; i < r->n; i++) {
        const gen_message *m = &r->messages[i];
        if (is(m, "assistant")) {
            put_glm4_answer(r, m->content, i > last_user);
            continue;
        }
        put(r, is(m, "user") ? "<|user|>" : "<|system|>");
        put(r, m->content);
    }
    put(r, "<|assistant|>");
    put(r, r->style->thinking == THINKING_OFF ? THOUGHT : "<think>");
}

snap_status chat_render(const chat_style *style, const gen_message *messages, int n, buf *out,
                        snap_err *err) {
    static void (*const render[])(const renderer *) = {
        [CHAT_NONE] = render_none,        [CHAT_DEEPSEEK_V2] = render_v2,
        [CHAT_DEEPSEEK_V3] = render_v3,   [CHAT_DEEPSEEK_R1] = render_v3,
        [CHAT_DEEPSEEK_V31] = render_v31, [CHAT_KIMI] = render_kimi,
        [CHAT_KIMI_K2] = render_kimi,     [CHAT_LONGCAT] = render_longcat,
        [CHAT_CHATML] = render_chatml,    [CHAT_SMOLLM2] = render_chatml,
        [CHAT_GLM4] = render_glm4,
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
