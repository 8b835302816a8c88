#include "generator/local/tokenizer/forms.h"

#include <stdlib.h>
#include <string.h>

#ifdef SNAPMLA_UTF8PROC
#include <utf8proc.h>
#endif

unicode_form form_parse(const char *name) {
    static const char *const names[] = {"", "NFC", "NFD", "NFKC", "NFKD"};
    for (int f = FORM_NFC; f <= FORM_NFKD; f++)
        if (strcmp(name, names[f]) == 0)
            return (unicode_form)f;
    return FORM_NONE;
}

#ifdef SNAPMLA_UTF8PROC

bool form_available(void) {
    return true;
}

static utf8proc_option_t options_of(unicode_form form) {
    int compose = form == FORM_NFC || form == FORM_NFKC ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
    int compatible = form == FORM_NFKC || form == FORM_NFKD ? UTF8PROC_COMPAT : 0;
    return (utf8proc_option_t)(UTF8PROC_STABLE | compose | compatible);
}

/* Characters that have no composition, decomposition or combining class in the older Unicode
 * version of `tokenizers`. Each stays as it is, and the text before it is normalised separately
 * from the text after it. Found by generator/test/tokenizer/forms.py. */
static const struct {
    unsigned first, last;
} inert[] = {
    {0x07FD, 0x07FD},   {0x0898, 0x089F},   {0x08CA, 0x08D3},   {0x09FE, 0x09FE},
    {0x0C3C, 0x0C3C},   {0x0D3B, 0x0D3C},   {0x0EBA, 0x0EBA},   {0x1715, 0x1715},
    {0x1ABF, 0x1ACE},   {0x1DF6, 0x1DFA},   {0x32FF, 0x32FF},   {0xA7F2, 0xA7F4},
    {0xA82C, 0xA82C},   {0xAB69, 0xAB69},   {0x10781, 0x10785}, {0x10787, 0x107B0},
    {0x107B2, 0x107BA}, {0x10D24, 0x10D27}, {0x10EAB, 0x10EAC}, {0x10EFD, 0x10EFF},
    {0x10F46, 0x10F50}, {0x10F82, 0x10F85}, {0x11070, 0x11070}, {0x1133B, 0x1133B},
    {0x1145E, 0x1145E}, {0x11839, 0x1183A}, {0x11938, 0x11938}, {0x1193D, 0x1193E},
    {0x11943, 0x11943}, {0x119E0, 0x119E0}, {0x11A34, 0x11A34}, {0x11A47, 0x11A47},
    {0x11A99, 0x11A99}, {0x11D42, 0x11D42}, {0x11D44, 0x11D45}, {0x11D97, 0x11D97},
    {0x11F41, 0x11F42}, {0x16FF0, 0x16FF1}, {0x1E030, 0x1E06D}, {0x1E08F, 0x1E08F},
    {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF}, {0x1E4EC, 0x1E4EF},
    {0x1F16C, 0x1F16C}, {0x1FBF0, 0x1FBF9},
};
enum { INERT = sizeof inert / sizeof *inert };

/* The length of the character at @s in bytes, and whether it is listed in inert[]. */
static size_t step(const unsigned char *s, bool *is_inert) {
    size_t size = *s < 0x80 ? 1 : *s < 0xE0 ? 2 : *s < 0xF0 ? 3 : 4;
    unsigned c = size == 1 ? *s : *s & (0x7Fu >> size);
    for (size_t i = 1; i < size; i++)
        c = c << 6 | (s[i] & 0x3Fu);
    *is_inert = false;
    for (size_t i = 0; i < INERT && inert[i].first <= c && c > 0x7F; i++)
        *is_inert |= c <= inert[i].last;
    return size;
}

/* The end of the part from @at on that is processed at once. *verbatim: the part is one character,
 * which is listed in inert[] and stays as it is. */
static size_t next_part(const char *s, size_t n, size_t at, bool *verbatim) {
    const unsigned char *u = (const unsigned char *)s;
    size_t end = at + step(u + at, verbatim);
    for (bool stop = *verbatim; !stop && end < n;) {
        size_t size = step(u + end, &stop);
        end += stop ? 0 : size;
    }
    return end;
}

static snap_status append_form(unicode_form form, const char *s, size_t n, buf *out,
                               snap_err *err) {
    utf8proc_uint8_t *text = NULL;
    utf8proc_ssize_t size =
        utf8proc_map((const utf8proc_uint8_t *)s, (utf8proc_ssize_t)n, &text, options_of(form));
    if (size < 0)
        return err_set(err, SNAP_E_NOMEM, "normalising %zu bytes: %s", n, utf8proc_errmsg(size));
    (void)buf_append(out, text, (size_t)size);
    free(text);
    return SNAP_OK;
}

snap_status form_apply(unicode_form form, const char *s, size_t n, buf *out, snap_err *err) {
    snap_status st = SNAP_OK;
    for (size_t at = 0, end; at < n; at = end) {
        bool verbatim = form == FORM_NONE;
        end = verbatim ? n : next_part(s, n, at, &verbatim);
        if (verbatim)
            (void)buf_append(out, s + at, end - at);
        else
            TRY(append_form(form, s + at, end - at, out, err));
    }
    TRY(buf_check(out, "a normalised text", err));
cleanup:
    return st;
}

#else

bool form_available(void) {
    return false;
}

snap_status form_apply(unicode_form form, const char *s, size_t n, buf *out, snap_err *err) {
    (void)form, (void)s, (void)n, (void)out;
    return err_set(err, SNAP_E_UNSUPPORTED, "this build has no utf8proc");
}

#endif
