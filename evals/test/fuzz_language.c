/* Reads the first part of the input, up to a NUL byte, as a profile of langdetect beside a good
 * one. The second part is a text. Either the folder is refused with a message, or the text's
 * language is one of the two. */
#include <stdint.h>

#include "base/json.h"
#include "base/test/fuzz_file.h"
#include "base/test/fuzz_tree.h"
#include "base/text.h"
#include "evals/ifeval/language.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void detect(const language_profiles *p, span text, const char *name) {
    buf clean = {0};
    text_append_utf8_lossy(&clean, text.s, text.n);
    const span utf8 = {buf_str(&clean), clean.len};
    if (!language_is(p, utf8, "good") && !language_is(p, utf8, name))
        __builtin_trap();
    (void)language_is(NULL, utf8, "en");
    buf_release(&clean);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char good[] = "{\"name\": \"good\", \"freq\": {\"a\": 5, \" ab\": 3, \"ab\": 4}, "
                               "\"n_words\": [20, 10, 5]}";
    static const char sample[] = "An ABBA abc, \xC3\xA9t\xC3\xA9 at a@b.c \xE3\x81\x82 ab";
    language_profiles *p = NULL;
    snap_err err = {0};
    size_t rest = 0;
    tree_value profile = tree_part(data, size, &rest), text = tree_part(data, size, &rest);
    if (!fuzz_folder[0])
        (void)fuzz_file("good", good, sizeof good - 1);
    (void)fuzz_file("profile", data + profile.at, profile.n);
    snap_status st = language_open(&p, fuzz_folder, &err);
    if (st == SNAP_OK ? !p : p || !err.text[0])
        __builtin_trap();
    if (p) {
        js *read = js_parse((const char *)data + profile.at, profile.n, "profile", NULL);
        const char *name = js_get_str(read, "name");
        detect(p, (span){sample, sizeof sample - 1}, name);
        detect(p, (span){(const char *)data + text.at, text.n}, name);
        js_free(read);
    }
    language_close(p);
    return 0;
}
