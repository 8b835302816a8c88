/* The quick parser of stream chunks agrees with the full parser wherever it does not decline. */
#include <CUnit/CUnit.h>
#include <string.h>

#include "base/rng.h"
#include "generator/http/chat_answer.h"
#include "generator/http/chat_piece.h"

#define DELTA(inside) "{\"choices\":[{\"index\":0,\"delta\":" inside ",\"finish_reason\":null}]}"

/* Whether the chunk is taken without the full parser. If it is, both must find the same text. */
static bool agrees(chat_frame *f, const char *data, size_t n) {
    chat_piece piece;
    if (!chat_frame_find(f, data, n, &piece))
        return false;
    snap_err err = {0};
    buf content = {0}, reasoning = {0};
    chat_answer a = chat_answer_make();
    chat_piece_append(&content, piece.content);
    chat_piece_append(&reasoning, piece.reasoning);
    CU_ASSERT_EQUAL(chat_answer_read_chunk(&a, data, n, &err), SNAP_OK);
    CU_ASSERT_STRING_EQUAL(err.text, "");
    CU_ASSERT_STRING_EQUAL(buf_str(&content), buf_str(&a.text));
    CU_ASSERT_STRING_EQUAL(buf_str(&reasoning), buf_str(&a.reasoning));
    CU_ASSERT(!a.done && !a.repaired && !chat_answer_complete(&a));
    CU_ASSERT(a.prompt_tokens == -1 && a.completion_tokens == -1 && a.reasoning_tokens == -1);
    CU_ASSERT_EQUAL(piece.content.n > 0, content.len > 0);
    CU_ASSERT_EQUAL(piece.reasoning.n > 0, reasoning.len > 0);
    chat_answer_release(&a);
    buf_release(&content);
    buf_release(&reasoning);
    return true;
}

/* Chunks that the quick parser takes. */
static const char *const kTaken[] = {
    DELTA("{\"content\":\"hello\"}"),
    DELTA("{\"role\":\"assistant\",\"content\":\"\"}"),
    DELTA("{\"content\":null,\"reasoning_content\":\"hm\",\"reasoning\":\"hm\"}"),
    DELTA("{\"content\":\"\",\"reasoning_content\":\"\",\"reasoning\":\"so\"}"),
    DELTA("{\"content\":\"a\\n\\t\\\"b\\\\n\\/\\r\\b\\f\",\"tool_calls\":[]}"),
    DELTA("{\"content\":\" \xc3\xa9\xe2\x88\x9a\xf0\x9f\x98\x80\"}"),
    DELTA("{}"),
    "{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":"
    "\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" the\"},\"logprobs\":null,"
    "\"finish_reason\":null,\"stop_reason\":null,\"token_ids\":null}],\"usage\":null}",
    "{\"id\":\"cmpl-1\",\"object\":\"text_completion\",\"created\":1,\"model\":\"m\",\"choices\":"
    "[{\"index\":0,\"text\":\" word\",\"logprobs\":null,\"finish_reason\":null}],\"usage\":null}",
    " {\"choices\" : [ { \"delta\" : { \"content\" : \"x\" } , \"index\" : 0 } ] , \"a\" : -1.50 ,"
    " \"b\" : [1, [true, {\"c\": false}], {}, []] } \n",
    "{\"choices\":[]}",
};

/* Chunks that only the full parser can read, or refuse. */
static const char *const kDeclined[] = {
    "[DONE]",
    "",
    " ",
    "{}",
    "{\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}",
    "{\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3}}",
    "{\"error\":{\"message\":\"no\"}}",
    "{\"choices\":[],\"error\":\"no\"}",
    "{\"choices\":[{\"index\":1,\"delta\":{\"content\":\"x\"}}]}",
    "{\"choices\":[{\"index\":0.0,\"delta\":{\"content\":\"x\"}}]}",
    "{\"choices\":[{\"delta\":{\"content\":\"x\"}},{\"delta\":{\"content\":\"y\"}}]}",
    "{\"choices\":[{\"message\":{\"content\":\"x\"}}]}",
    DELTA("{\"content\":[{\"type\":\"text\",\"text\":\"x\"}]}"),
    DELTA("{\"content\":\"\\u00e9\"}"),
    DELTA("{\"content\":\"\xff\"}"),
    DELTA("{\"content\":\"a\nb\"}"),
    DELTA("{\"content\":\"a\",\"content\":\"b\"}"),
    DELTA("{\"content\":1}"),
    DELTA("{\"reasoning_details\":[{\"text\":\"x\"}]}"),
    DELTA("{\"content\":\"a\"}") "x",
    DELTA("{\"content\":\"a\",}"),
    DELTA("{\"content\":\"a\",\"n\":01}"),
    DELTA("{\"content\":\"a\",\"n\":1e999}"),
    DELTA("{\"content\":\"a\",\"n\":99999999999999999999}"),
    DELTA("{\"content\":\"a\",\"n\":{\"k\":1,\"k\":2}}"),
    "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"cut",
    "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"cut\\",
    "{\"choices\":[]",
    "{\"choices\":[],\"n\":-",
    "{\"choices\":[],\"n\":1",
};

static void test_taken(void) {
    chat_frame f = {0};
    for (size_t i = 0; i < sizeof kTaken / sizeof *kTaken; i++)
        if (!agrees(&f, kTaken[i], strlen(kTaken[i]))) {
            printf("\ndeclined: %s\n", kTaken[i]);
            CU_FAIL();
        }
    chat_frame_release(&f);
}

/* Pairs of chunks: the second one comes after the first one in a stream. */
static const struct {
    const char *first, *second;
    bool taken; /* the second one needs no full parser */
} kPairs[] = {
    {DELTA("{\"content\":\"hello\"}"), DELTA("{\"content\":\" \\\"you\\\" \xc3\xa9\"}"), true},
    {DELTA("{\"content\":\"hello\"}"), DELTA("{\"content\":\"\"}"), true},
    {DELTA("{\"content\":\"hello\"}"), DELTA("{\"reasoning\":\"hello\"}"), true},
    {DELTA("{\"content\":\"hello\"}"), DELTA("{\"content\":\"\xff\"}"), false},
    {DELTA("{\"content\":\"hello\"}"), DELTA("{\"content\":\"\\u00e9\"}"), false},
    {DELTA("{\"content\":\"hello\"}"), DELTA("{\"content\":\"a\nb\"}"), false},
    {DELTA("{\"content\":\"hello\"}"), DELTA("{\"content\":\"cut\\\"}"), false},
    {DELTA("{\"content\":\"hello\"}"), DELTA("{\"content\":\"a\",\"content\":\"b\"}"), false},
    {DELTA("{\"content\":\"a\",\"reasoning\":\"\"}"),
     DELTA("{\"content\":\"b\",\"reasoning\":\"\"}"), true},
    /* the text at the frame's place is empty, and the text of another member counts */
    {DELTA("{\"reasoning_content\":\"a\",\"reasoning\":\"hm\"}"),
     DELTA("{\"reasoning_content\":\"\",\"reasoning\":\"hm\"}"), true},
    {DELTA("{\"content\":\"a\",\"reasoning\":\"hm\"}"),
     DELTA("{\"content\":\"b\",\"reasoning\":\"hm\"}"), true},
};

static void test_pairs(void) {
    for (size_t i = 0; i < sizeof kPairs / sizeof *kPairs; i++) {
        chat_frame f = {0};
        CU_ASSERT_TRUE(agrees(&f, kPairs[i].first, strlen(kPairs[i].first)));
        if (agrees(&f, kPairs[i].second, strlen(kPairs[i].second)) != kPairs[i].taken) {
            printf("\nunexpected: %s\n", kPairs[i].second);
            CU_FAIL();
        }
        chat_frame_release(&f);
    }
}

/* Makes @f the frame of a chunk, if it has one text. */
static void set_frame(chat_frame *f, const char *chunk) {
    chat_piece unused;
    chat_frame_clear(f);
    CU_ASSERT_TRUE(chat_frame_find(f, chunk, strlen(chunk), &unused));
}

static void test_declined(void) {
    chat_piece piece;
    for (size_t i = 0; i < sizeof kDeclined / sizeof *kDeclined; i++)
        if (chat_piece_find(kDeclined[i], strlen(kDeclined[i]), &piece)) {
            printf("\ntaken: %s\n", kDeclined[i]);
            CU_FAIL();
        }
}

/* Random changes of good chunks: whatever is still taken, also by the frame of the chunk before it
 * was changed, means the same to both parsers. */
static void test_changed(void) {
    static const char kBytes[] = "{}[]\",:\\0e1.-ntf \n\x01\xc3\xa9u";
    rng r = rng_make(1, 1);
    chat_frame f = {0};
    int taken = 0;
    for (int turn = 0; turn < 200000; turn++) {
        char data[512];
        const char *from = kTaken[rng_below(&r, sizeof kTaken / sizeof *kTaken)];
        size_t n = strlen(from);
        set_frame(&f, from);
        memcpy(data, from, n);
        for (uint32_t k = rng_below(&r, 3) + 1; k; k--) {
            size_t at = rng_below(&r, (uint32_t)n);
            uint32_t kind = rng_below(&r, 3);
            if (kind == 0)
                data[at] = kBytes[rng_below(&r, sizeof kBytes - 1)];
            else if (kind == 1)
                memmove(data + at, data + at + 1, --n - at);
            else if (n < sizeof data)
                data[n++] = kBytes[rng_below(&r, sizeof kBytes - 1)];
        }
        taken += agrees(&f, data, n);
    }
    chat_frame_release(&f);
    CU_ASSERT(taken > 1000);
}

CU_TestInfo tests_chat_piece[] = {
    {"chunks with text", test_taken},
    {"chunks after another one", test_pairs},
    {"chunks for the full parser", test_declined},
    {"changed chunks", test_changed},
    CU_TEST_INFO_NULL,
};
