#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/json.h"
#include "generator/local/chat/chat.h"

enum { kConfigMax = 8 << 20 };

static const char *const kNames[] = {"none",          "deepseek-v2", "deepseek-v3", "deepseek-r1",
                                     "deepseek-v3.1", "kimi",        "kimi-k2",     "longcat",
                                     "chatml",        "smollm2",     "glm4"};
_Static_assert(sizeof kNames / sizeof *kNames == CHAT_TEMPLATES, "a name for each");

static const char kList[] = "none, deepseek-v2, deepseek-v3, deepseek-r1, deepseek-v3.1, kimi, "
                            "kimi-k2, longcat, chatml, smollm2, glm4";

snap_status chat_template_parse(const char *name, chat_template *out, snap_err *err) {
    for (int i = 0; i < CHAT_TEMPLATES; i++)
        if (strcmp(name, kNames[i]) == 0) {
            *out = (chat_template)i;
            return SNAP_OK;
        }
    return err_set(err, SNAP_E_USAGE, "unknown chat template '%.80s' (%s)", name, kList);
}

/* Two templates have the marks of another, but treat thoughts differently, so they count as
 * unknown: the first one of R1 (marks of V3), and that of Kimi-K2-Thinking (marks of Kimi-K2). */
static bool has_other_thoughts(const char *source, chat_template is) {
    return (is == CHAT_DEEPSEEK_V3 && strstr(source, "split('</think>')")) ||
           (is == CHAT_KIMI_K2 && strstr(source, "</think>"));
}

/* A template is recognised if it contains all marks of a row. The first row that matches counts, so
 * special rows come before general ones. Returns false for an unknown template. */
static bool find_template(const char *source, chat_template *out) {
    static const struct {
        chat_template is;
        const char *marks[3];
    } rows[] = {
        {CHAT_DEEPSEEK_V31,
         {"<\xEF\xBD\x9C"
          "Assistant\xEF\xBD\x9C>",
          "</think>'}}", "thinking"}},
        {CHAT_DEEPSEEK_R1,
         {"<\xEF\xBD\x9C"
          "Assistant\xEF\xBD\x9C><think>\\n",
          "</think>"}},
        {CHAT_DEEPSEEK_V3,
         {"<\xEF\xBD\x9C"
          "Assistant\xEF\xBD\x9C>",
          "<\xEF\xBD\x9CUser"}},
        {CHAT_DEEPSEEK_V2, {"'User: '", "'Assistant: '", "'Assistant:'"}},
        {CHAT_KIMI_K2, {"<|im_middle|>", "You are Kimi, an AI assistant created by Moonshot AI."}},
        {CHAT_KIMI, {"<|im_middle|>", "<|im_assistant|>", "You are a helpful assistant"}},
        {CHAT_LONGCAT, {"[Round ", "USER:", "ASSISTANT:"}},
        {CHAT_GLM4,
         {"[gMASK]<sop>", "last_user_index",
          "'</think>' if (enable_thinking is defined and not enable_thinking) else '<think>'"}},
        {CHAT_SMOLLM2,
         {"<|im_start|>", "<|im_end|>", "You are a helpful AI assistant named SmolLM"}},
        {CHAT_CHATML, {"<|im_start|>", "<|im_end|>"}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool all = true;
        for (int k = 0; k < 3 && rows[i].marks[k]; k++)
            all = all && strstr(source, rows[i].marks[k]);
        if (all) {
            *out = rows[i].is;
            return !has_other_thoughts(source, *out);
        }
    }
    return false;
}

static snap_status recognize(const char *source, const char *path, chat_template *out,
                             snap_err *err) {
    if (find_template(source, out))
        return SNAP_OK;
    return err_set(err, SNAP_E_UNSUPPORTED,
                   "%s: its chat template is unknown; choose one that fits (%s)", path, kList);
}

/* The template's source: a string, or the entry "default" in a list of {"name", "template"}. NULL:
 * there is none. */
static const char *source_of(const js *config) {
    const js *list = js_get_array(config, "chat_template");
    for (size_t i = 0; i < js_len(list); i++) {
        const char *name = js_get_str(js_at(list, i), "name");
        if (name && strcmp(name, "default") == 0)
            return js_get_str(js_at(list, i), "template");
    }
    return js_get_str(config, "chat_template");
}

static snap_status source_from_config(const char *path, buf *out, snap_err *err) {
    js *config = js_parse_file_as_reals(path, kConfigMax, err); /* as tokenizer.c does */
    if (!config)
        return err && err->code ? err->code : SNAP_E_INPUT;
    const char *source = source_of(config);
    if (source)
        (void)buf_puts(out, source);
    js_free(config);
    return buf_check(out, "a chat template", err);
}

/* Appends the template and sets *path to the file that has it, which the caller frees; NULL if
 * there is none. */
static snap_status find_source(const char *dir, buf *out, char **path, snap_err *err) {
    char *file = fs_join(dir, "chat_template.jinja"),
         *config = fs_join(dir, "tokenizer_config.json");
    snap_status st = SNAP_OK;
    bool own = file && fs_exists(file);
    *path = NULL;
    if (!file || !config)
        st = err_set(err, SNAP_E_NOMEM, "out of memory for a path");
    else if (own)
        st = fs_read_regular(file, out, err);
    else if (fs_exists(config))
        st = source_from_config(config, out, err);
    if (st == SNAP_OK && (own || out->len))
        *path = own ? file : config;
    if (*path != file)
        free(file);
    if (*path != config)
        free(config);
    return st;
}

snap_status chat_template_source(const char *dir, buf *out, snap_err *err) {
    char *path;
    snap_status st = find_source(dir, out, &path, err);
    free(path);
    return st;
}

snap_status chat_template_choose(const char *dir, chat_template *out, snap_err *err) {
    buf source = {.limit = kConfigMax};
    char *path;
    *out = CHAT_NONE;
    snap_status st = find_source(dir, &source, &path, err);
    if (st == SNAP_OK && path)
        st = recognize(buf_str(&source), path, out, err);
    buf_release(&source);
    free(path);
    return st;
}
