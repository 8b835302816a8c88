#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/json.h"
#include "generator/local/chat/chat.h"

enum { kMessages = 8 };

static const char *const kNames[CHAT_TEMPLATES] = {
    "none",    "deepseek-v2", "deepseek-v3", "deepseek-r1", "deepseek-v3.1", "kimi",
    "kimi-k2", "longcat",     "chatml",      "smollm2",     "glm4"};

static void check_text(const chat_style *style, const gen_message *m, int n, const char *want) {
    buf got = {0};
    CU_ASSERT_EQUAL(chat_render(style, m, n, &got, NULL), SNAP_OK);
    if (strcmp(buf_str(&got), want) != 0)
        printf("  %s: '%s' for '%s'\n", kNames[style->template], buf_str(&got), want);
    CU_ASSERT_STRING_EQUAL(buf_str(&got), want);
    buf_release(&got);
}

/* ---- as the models' own templates render ---- */

static snap_status check_row(void *ctx, js *row, long line, snap_err *err) {
    gen_message m[kMessages];
    const js *thinking = js_get(row, "thinking");
    chat_style style = {.thinking = !thinking                             ? THINKING_DEFAULT
                                    : js_get_bool(row, "thinking", false) ? THINKING_ON
                                                                          : THINKING_OFF,
                        .bos = js_get_str(row, "bos"),
                        .eos = js_get_str(row, "eos")};
    const js *messages = js_get_array(row, "messages");
    int n = (int)js_len(messages);
    for (int i = 0; i < n; i++)
        m[i] = (gen_message){.role = js_get_str(js_at(messages, (size_t)i), "role"),
                             .content = js_get_str(js_at(messages, (size_t)i), "content")};
    CU_ASSERT_EQUAL(chat_template_parse(js_get_str(row, "template"), &style.template, err),
                    SNAP_OK);
    check_text(&style, m, n, js_get_str(row, "rendered"));
    ++*(int *)ctx;
    (void)line;
    return SNAP_OK;
}

static void test_originals(void) {
    buf cases = {0};
    int rows = 0;
    CU_ASSERT_EQUAL(fs_read("generator/test/chat/cases.jsonl", &cases, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(js_each_line(buf_str(&cases), cases.len, "cases", check_row, &rows, NULL),
                    SNAP_OK);
    CU_ASSERT_EQUAL(rows, 89);
    buf_release(&cases);
}

/* ---- as their model cards describe ---- */

static void test_described(void) {
    static const gen_message m[] = {
        {"system", "S"}, {"user", "a"}, {"assistant", "b"}, {"user", "c"}};
    chat_style style = {.template = CHAT_LONGCAT};
    check_text(&style, m + 1, 1, "[Round 0] USER:a ASSISTANT:");
    check_text(&style, m, 4,
               "SYSTEM:S [Round 0] USER:a ASSISTANT:b</longcat_s> [Round 1] USER:c ASSISTANT:");
    style.template = CHAT_CHATML;
    check_text(&style, m, 2,
               "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\na<|im_end|>\n"
               "<|im_start|>assistant\n");
    style.template = CHAT_NONE;
    check_text(&style, m, 4, "Sabc");
}

static void test_roles(void) {
    static const gen_message tool = {"tool", "x"};
    const chat_style style = {.template = CHAT_KIMI};
    snap_err err = {0};
    buf out = {0};
    CU_ASSERT_EQUAL(chat_render(&style, &tool, 1, &out, &err), SNAP_E_INPUT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "'tool'"));
    buf_release(&out);
}

/* ---- recognising ---- */

static void test_recognition(void) {
    static const struct {
        const char *source;
        int is; /* the template that must be recognised; -1: the source must be refused */
    } rows[] = {
        {"{{'<｜User｜>'}}{{'<｜Assistant｜>'}}", CHAT_DEEPSEEK_V3},
        {"{{'<｜User｜>'}}content.split('</think>')[-1]{{'<｜Assistant｜><think>\\n'}}",
         CHAT_DEEPSEEK_R1},
        {"{{'<｜User｜>'}}content.split('</think>')[-1]{{'<｜Assistant｜>'}}", -1},
        {"{%- if not thinking -%}{{'<｜User｜>'}}{{'<｜Assistant｜>'}}{{'</think>'}}",
         CHAT_DEEPSEEK_V31},
        {"{{ 'User: ' + c }}{{ 'Assistant: ' + c }}{{ 'Assistant:' }}", CHAT_DEEPSEEK_V2},
        {"<|im_system|>system<|im_middle|>You are a helpful assistant<|im_assistant|>", CHAT_KIMI},
        {"<|im_middle|>You are Kimi, an AI assistant created by Moonshot AI.", CHAT_KIMI_K2},
        {"<|im_middle|>You are Kimi, an AI assistant created by Moonshot AI.<think></think>", -1},
        {"[gMASK]<sop>{%- set ns.last_user_index = i %}"
         "{{ '</think>' if (enable_thinking is defined and not enable_thinking) else '<think>' }}",
         CHAT_GLM4},
        {"[gMASK]<sop>{{ '<|assistant|>\n<think></think>' }}", -1},
        {"'[Round ' ~ n ~ '] USER:' ' ASSISTANT:'", CHAT_LONGCAT},
        {"<|im_start|>user<|im_end|>", CHAT_CHATML},
        {"<s>[INST] {{ c }} [/INST]", -1},
        {"", -1},
    };
    char dir[] = "/tmp/snapmla-chat-XXXXXX";
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
    char *path = fs_join(dir, "chat_template.jinja");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *source = rows[i].source;
        chat_template t = CHAT_NONE;
        CU_ASSERT_EQUAL(fs_write_atomic(path, source, strlen(source), NULL), SNAP_OK);
        bool known = chat_template_choose(dir, &t, NULL) == SNAP_OK;
        if ((known ? (int)t : -1) != rows[i].is)
            printf("  %s: %s\n", source, known ? kNames[t] : "unknown");
        CU_ASSERT_EQUAL(known ? (int)t : -1, rows[i].is);
    }
    CU_ASSERT_EQUAL(unlink(path) | rmdir(dir), 0);
    free(path);
}

static void test_names(void) {
    snap_err err = {0};
    chat_template t;
    for (int i = 0; i < CHAT_TEMPLATES; i++) {
        CU_ASSERT_EQUAL(chat_template_parse(kNames[i], &t, NULL), SNAP_OK);
        CU_ASSERT_EQUAL(t, i);
    }
    CU_ASSERT_EQUAL(chat_template_parse("llama", &t, &err), SNAP_E_USAGE);
    for (int i = 0; i < CHAT_TEMPLATES; i++)
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, kNames[i]));
}

static void test_folders(void) {
    chat_template t = CHAT_KIMI;
    CU_ASSERT_EQUAL(chat_template_choose("generator/test/tokenizer/kimi", &t, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(t, CHAT_NONE); /* its tokenizer_config.json has no template */
    CU_ASSERT_EQUAL(chat_template_choose("generator/test", &t, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(t, CHAT_NONE);
}

#define CHATML "<|im_start|><|im_end|>"

static void test_where_templates_stand(void) {
    static const struct {
        const char *name, *text;
        snap_status st;
        chat_template is;
    } rows[] = {
        {"tokenizer_config.json", "{\"chat_template\":\"" CHATML "\"}", SNAP_OK, CHAT_CHATML},
        {"tokenizer_config.json",
         "{\"chat_template\":[{\"name\":\"tool_use\",\"template\":\"[Round USER: ASSISTANT:\"},"
         "{\"name\":\"default\",\"template\":\"" CHATML "\"}]}",
         SNAP_OK, CHAT_CHATML},
        {"tokenizer_config.json",
         "{\"chat_template\":\"" CHATML "\",\"model_max_length\":1000000000000000019884624838656}",
         SNAP_OK, CHAT_CHATML},
        {"tokenizer_config.json", "{\"chat_template\":\"[INST]\"}", SNAP_E_UNSUPPORTED, CHAT_NONE},
        {"tokenizer_config.json", "{", SNAP_E_INPUT, CHAT_NONE},
        {"chat_template.jinja", CHATML, SNAP_OK, CHAT_CHATML}, /* is used, although
                                                                  tokenizer_config.json is still
                                                                  broken */
    };
    char dir[] = "/tmp/snapmla-chat-XXXXXX";
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *path = fs_join(dir, rows[i].name);
        chat_template t = CHAT_NONE;
        CU_ASSERT_EQUAL(fs_write_atomic(path, rows[i].text, strlen(rows[i].text), NULL), SNAP_OK);
        CU_ASSERT_EQUAL(chat_template_choose(dir, &t, NULL), rows[i].st);
        CU_ASSERT(rows[i].st != SNAP_OK || t == rows[i].is);
        free(path);
    }
    char *config = fs_join(dir, rows[0].name), *jinja = fs_join(dir, "chat_template.jinja");
    CU_ASSERT_EQUAL(unlink(config) | unlink(jinja) | rmdir(dir), 0);
    free(config);
    free(jinja);
}

CU_TestInfo tests_chat[] = {{"prompts equal those of the models' own templates", test_originals},
                            {"prompts that model cards describe", test_described},
                            {"unknown roles are refused", test_roles},
                            {"templates are recognised by their text", test_recognition},
                            {"names of templates are read", test_names},
                            {"the template of a checkpoint's folder", test_folders},
                            {"files that can contain the template", test_where_templates_stand},
                            CU_TEST_INFO_NULL};
