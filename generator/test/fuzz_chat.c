/* Reads the first part of the input, up to a NUL byte, as a checkpoint's chat template. It must be
 * refused with a message, or a template is chosen, with which the prompts are rendered. The other
 * parts are the tokens of beginning and end, and the contents of the messages; a content's first
 * byte chooses its role. The first byte of the input chooses the file (bit 0), `thinking` (bit 1),
 * whether there is an end token (bit 2), and the template of the prompt if none was chosen. */
#include <stdint.h>
#include <stdlib.h>

#include "base/test/fuzz_file.h"
#include "base/test/fuzz_tree.h"
#include "generator/local/chat/chat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PARTS = 6 };

static chat_template choose(const uint8_t *template, size_t n, bool jinja, int otherwise) {
    chat_template chosen;
    snap_err err = {0};
    (void)unlink(fuzz_path("chat_template.jinja"));
    (void)fuzz_file(jinja ? "chat_template.jinja" : "tokenizer_config.json", template, n);
    snap_status st = chat_template_choose(fuzz_folder, &chosen, &err);
    if (st != SNAP_OK && !err.text[0])
        abort();
    return st == SNAP_OK && chosen != CHAT_NONE ? chosen : (chat_template)otherwise;
}

/* A prompt has the last message of the user, which no template leaves out or changes. */
static void render(const chat_style *style, const gen_message *messages, int n) {
    buf prompt = {0};
    snap_err err = {0};
    const char *last = NULL;
    snap_status st = chat_render(style, messages, n, &prompt, &err);
    for (int i = 0; i < n; i++)
        last = strcmp(messages[i].role, "user") == 0 ? messages[i].content : last;
    if (st == SNAP_OK ? last && !strstr(buf_str(&prompt), last) : !err.text[0])
        abort();
    buf_release(&prompt);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const roles[] = {"user", "assistant", "system", "tool"};
    char *parts[PARTS];
    size_t rest = 1;
    if (!size)
        return 0;
    tree_value template = tree_part(data, size, &rest);
    for (int i = 0; i < PARTS; i++) {
        tree_value v = tree_part(data, size, &rest);
        parts[i] = strndup((const char *)data + v.at, v.n);
        if (!parts[i])
            abort();
    }
    chat_style style = {.thinking = data[0] & 2 ? THINKING_ON : THINKING_OFF,
                        .bos = parts[0],
                        .eos = data[0] & 4 ? NULL : parts[1]};
    style.template =
        choose(data + template.at, template.n, data[0] & 1, (data[0] >> 3) % CHAT_TEMPLATES);
    gen_message messages[PARTS - 2];
    for (int i = 0; i < PARTS - 2; i++)
        messages[i] = (gen_message){roles[parts[i + 2][0] % 4 & 3], parts[i + 2]};
    for (int n = 0; n <= PARTS - 2; n++)
        render(&style, messages, n);
    for (int i = 0; i < PARTS; i++)
        free(parts[i]);
    return 0;
}
