/* chat.h - turns messages into the prompt format that a family of models was trained on.
 *
 * Checkpoints contain their template as a Jinja program. The templates of the supported families
 * are implemented in C. A checkpoint's template is recognised by strings that it contains; an
 * unknown one is an error. Only system, user and assistant messages are supported: no tools, no
 * images.
 *
 *   none           the contents of the messages, concatenated
 *   deepseek-v2    "User: ..", "Assistant: .."                    V2, V2-Lite
 *   deepseek-v3    <｜User｜>, <｜Assistant｜>                     V2.5, V3
 *   deepseek-r1    as deepseek-v3, but without the thoughts (text up to </think>) of earlier
 *                  turns, and the prompt ends with <think>
 *   deepseek-v3.1  as deepseek-v3, but without the thoughts of earlier turns. After a user's last
 *                  message the prompt ends with <think> if `thinking` is set, else with </think>
 *   kimi, kimi-k2  <|im_user|>user<|im_middle|>; they differ in the default system message
 *   longcat        [Round 0] USER:.. ASSISTANT:..
 *   chatml         <|im_start|>user                               MiniCPM3
 *   smollm2        as chatml, with a default system message       SmolLM2
 *   glm4           [gMASK]<sop><|user|>; thoughts of earlier turns are left out, and the caller
 *                  chooses whether the answer begins with one     GLM-4.7 */
#ifndef SNAPMLA_GENERATOR_LOCAL_CHAT_CHAT_H
#define SNAPMLA_GENERATOR_LOCAL_CHAT_CHAT_H

#include "base/buf.h"
#include "generator/generator.h"

typedef enum {
    CHAT_NONE, /* the contents of the messages, concatenated */
    CHAT_DEEPSEEK_V2,
    CHAT_DEEPSEEK_V3,
    CHAT_DEEPSEEK_R1,
    CHAT_DEEPSEEK_V31,
    CHAT_KIMI,
    CHAT_KIMI_K2,
    CHAT_LONGCAT,
    CHAT_CHATML,
    CHAT_SMOLLM2,
    CHAT_GLM4,
    CHAT_TEMPLATES
} chat_template;

/* SNAP_E_USAGE for an unknown name; the message lists the names. */
snap_status chat_template_parse(const char *name, chat_template *out,
                                snap_err *err) SNAP_CHECK_RESULT;

/* Chooses the template of a checkpoint's folder: chat_template.jinja, or else `chat_template` in
 * tokenizer_config.json; CHAT_NONE if it has neither. SNAP_E_UNSUPPORTED for an unknown template;
 * any error of reading. */
snap_status chat_template_choose(const char *dir, chat_template *out,
                                 snap_err *err) SNAP_CHECK_RESULT;

/* Appends the checkpoint's own template, a Jinja program; nothing if it has none. The errors are
 * those of chat_template_choose(). */
snap_status chat_template_source(const char *dir, buf *out, snap_err *err) SNAP_CHECK_RESULT;

/* Whether the answer begins with a thought. The default is that of the model's own template: with
 * glm4 it does, and with deepseek-v3.1 it does not. Other templates leave no choice. */
typedef enum { THINKING_DEFAULT, THINKING_OFF, THINKING_ON } chat_thinking;

typedef struct {
    chat_template template;
    chat_thinking thinking;
    const char *bos, *eos; /* the tokenizer's begin and end tokens as text; NULL means "" */
} chat_style;

/**
 * chat_render - append the prompt that the assistant's answer follows
 *
 * Special tokens are written as text. Encode the prompt without TOK_PLAIN, so that they become
 * tokens, and, except for CHAT_NONE, without TOK_SPECIALS, which could add one of them twice.
 * SNAP_E_INPUT for a role other than system, user or assistant; SNAP_E_NOMEM. */
snap_status chat_render(const chat_style *style, const gen_message *messages, int n, buf *out,
                        snap_err *err) SNAP_CHECK_RESULT;

#endif
