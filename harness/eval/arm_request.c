#include "harness/eval/arm_request.h"

#include <string.h>

#include "base/fs.h"
#include "base/text.h"
#include "generator/settings.h"

enum { kTextLimit = 256 << 10 };

/* Keys with two words. The second one sets the flag. */
static const struct {
    const char *key, *off, *on;
    size_t offset, given; /* offset of the flag, and of the flag that is set if the key was given */
} kWords[] = {
    {"api", "chat", "completions", offsetof(gen_settings, completions),
     offsetof(gen_settings, has_completions)},
    {"content", "text", "parts", offsetof(gen_settings, parts), offsetof(gen_settings, has_parts)},
    {"reasoning", "tagged", "opened", offsetof(gen_settings, opened),
     offsetof(gen_settings, has_opened)},
};

/* Keys with a text. */
static const struct {
    const char *key;
    size_t offset;
    bool object; /* a JSON object, else any text */
    bool file;   /* may be @FILE */
} kTexts[] = {
    {"body", offsetof(gen_settings, body), true, true},
    {"template", offsetof(gen_settings, prompt), true, true},
    {"system", offsetof(gen_settings, system), false, true},
    {"server", offsetof(gen_settings, server), false, false},
};

enum { kWordKeys = sizeof kWords / sizeof *kWords, kTextKeys = sizeof kTexts / sizeof *kTexts };
_Static_assert(kWordKeys + kTextKeys == ARM_REQUEST_KEYS, "arm_request_keys() writes all keys");

void arm_request_keys(const char *out[ARM_REQUEST_KEYS + 1]) {
    size_t n = 0;
    for (size_t i = 0; i < kTextKeys; i++)
        out[n++] = kTexts[i].key;
    for (size_t i = 0; i < kWordKeys; i++)
        out[n++] = kWords[i].key;
    out[n] = NULL;
}

bool arm_request_has(const char *key) {
    const char *known[ARM_REQUEST_KEYS + 1];
    arm_request_keys(known);
    for (size_t i = 0; known[i]; i++)
        if (strcmp(known[i], key) == 0)
            return true;
    return false;
}

bool arm_request_names_file(const char *key, const char *value) {
    for (size_t i = 0; i < sizeof kTexts / sizeof *kTexts; i++)
        if (strcmp(kTexts[i].key, key) == 0)
            return kTexts[i].file && *value == '@';
    return false;
}

static snap_status read_text(const char *path, buf *out, snap_err *err) {
    snap_status st = fs_read_regular(path, out, err);
    if (st == SNAP_OK && (strlen(buf_str(out)) != out->len || !text_is_utf8(out->data, out->len)))
        st = err_set(err, SNAP_E_USAGE, "'%s' is not UTF-8 text", path);
    return st;
}

/* Writes a value, which must be a JSON object, to @text in its compact form. */
static snap_status write_object(const char *value, const char *key, buf *text, snap_err *err) {
    snap_err why = {0};
    js *v = js_parse(value, strlen(value), key, &why);
    snap_status st;
    if (js_is_object(v))
        st = js_write(v, JS_COMPACT, text, err);
    else if (!v && why.code == SNAP_E_NOMEM)
        st = err_set(err, why.code, "%s", why.text);
    else
        st = err_set(err, SNAP_E_USAGE, "'%s' must be a JSON object or @FILE%s%s", key,
                     v ? "" : ": ", v ? "" : why.text);
    js_free(v);
    return st;
}

/* Writes a value that is a text. One that begins with a quote is read as a JSON string. */
static snap_status write_words(const char *value, const char *key, buf *text, snap_err *err) {
    if (*value != '"')
        return buf_puts(text, value) ? SNAP_OK : buf_check(text, key, err);
    buf list = {0};
    (void)buf_printf(&list, "[%s]", value);
    snap_err why = {0};
    js *v = list.failed ? NULL : js_parse(buf_str(&list), list.len, key, &why);
    const char *s = js_len(v) == 1 ? js_str(js_at(v, 0)) : NULL;
    snap_status st = SNAP_OK;
    if (s)
        (void)buf_puts(text, s);
    else
        st = err_set(err, why.code == SNAP_E_NOMEM ? why.code : SNAP_E_USAGE,
                     "'%s' begins with a quote but is not a JSON string", key);
    js_free(v);
    buf_release(&list);
    return st == SNAP_OK ? buf_check(text, key, err) : st;
}

static snap_status keep(const char *text, bool object, buf *kept, snap_err *err) {
    if (object)
        return buf_puts(kept, text) ? SNAP_OK : buf_check(kept, "an arm", err);
    js *v = js_new_str(text);
    snap_status st = v ? js_write(v, JS_COMPACT, kept, err)
                       : err_set(err, SNAP_E_NOMEM, "out of memory for an arm");
    js_free(v);
    return st;
}

static snap_status set_text(gen_settings *to, size_t i, const char *value, arena *mem, buf *kept,
                            bool *read, snap_err *err) {
    buf file = {.limit = kTextLimit}, text = {.limit = kTextLimit};
    const char *key = kTexts[i].key,
               **member = (const char **)(void *)((char *)to + kTexts[i].offset);
    bool from_file = arm_request_names_file(key, value);
    snap_status st = SNAP_OK;
    if (from_file) {
        *read = true;
        TRY(read_text(value + 1, &file, err));
        value = buf_str(&file);
    }
    if (kTexts[i].object)
        TRY(write_object(value, key, &text, err));
    else if (from_file)
        TRY(buf_puts(&text, value) ? SNAP_OK : buf_check(&text, key, err));
    else
        TRY(write_words(value, key, &text, err));
    if (!text.len)
        TRY(err_set(err, SNAP_E_USAGE, "'%s' must not be empty", key));
    if (!(*member = arena_strdup(mem, buf_str(&text))))
        TRY(err_set(err, SNAP_E_NOMEM, "out of memory for an arm"));
    TRY(keep(*member, kTexts[i].object, kept, err));
cleanup:
    buf_release(&file);
    buf_release(&text);
    return st;
}

snap_status arm_request_set(gen_settings *to, const char *key, const char *value, arena *mem,
                            buf *kept, bool *read, snap_err *err) {
    for (size_t i = 0; i < sizeof kTexts / sizeof *kTexts; i++)
        if (strcmp(kTexts[i].key, key) == 0)
            return set_text(to, i, value, mem, kept, read, err);
    for (size_t i = 0; i < sizeof kWords / sizeof *kWords; i++) {
        if (strcmp(kWords[i].key, key) != 0)
            continue;
        bool on = strcmp(value, kWords[i].on) == 0;
        if (!on && strcmp(value, kWords[i].off) != 0)
            return err_set(err, SNAP_E_USAGE, "'%s' must be %s or %s, got '%.40s'", key,
                           kWords[i].off, kWords[i].on, value);
        *(bool *)((char *)to + kWords[i].offset) = on;
        *(bool *)((char *)to + kWords[i].given) = true;
        return buf_puts(kept, value) ? SNAP_OK : buf_check(kept, "an arm", err);
    }
    return err_set(err, SNAP_E_USAGE, "unknown key '%.40s'", key);
}

size_t arm_request_json_length(const char *s) {
    size_t i = 0;
    int depth = 0;
    bool quoted = false;
    for (; s[i]; i++) {
        if (quoted && s[i] == '\\' && s[i + 1])
            i++;
        else if (s[i] == '"')
            quoted = !quoted;
        else if (!quoted && strchr("{[", s[i]))
            depth++;
        else if (!quoted && strchr("}]", s[i]))
            depth--;
        if (!quoted && depth <= 0)
            return i + 1;
    }
    return i;
}
