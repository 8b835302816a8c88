/* serve_answers.h - reads the answers of a server in tests: whole ones, and streams. */
#ifndef SNAPMLA_HARNESS_TEST_SERVE_ANSWERS_H
#define SNAPMLA_HARNESS_TEST_SERVE_ANSWERS_H

#include "base/json.h"
#include "generator/local/tokenizer/tokenizer.h"
#include "harness/test/serve_child.h"

/* The body of an answer, which must be JSON. The caller frees it. */
js *serve_parse(const serve_reply *r);

/* Sends a request whose answer must have status 200. The caller frees the answer. */
js *serve_ask_json(const serve_child *c, const char *path, const char *body);

/* Choice @i of an answer, which must exist, and its text if it is one of chat. */
js *serve_choice(const js *answer, size_t i);
const char *serve_content(const js *answer, size_t i);

/* Whether @list has exactly these token ids. */
bool serve_same_ids(const tok_ids *a, const js *list);

/* A member of the answer's usage; -1 = absent. */
int64_t serve_usage(const js *answer, const char *what);

enum { SERVE_STREAM_CHOICES = 4 };

/* What the events of a streamed answer contained. */
typedef struct {
    buf text[SERVE_STREAM_CHOICES];
    const char *finish[SERVE_STREAM_CHOICES]; /* NULL = none */
    int events;                               /* number of events with text */
    int done;                                 /* number of events that say [DONE] */
    int64_t prompt, completion;               /* usage; -1 = none */
    js *all;                                  /* the events */
} serve_stream;

/* Reads the events of an answer of type text/event-stream, and checks their order. */
serve_stream serve_stream_read(const serve_reply *r);

/* Sends a request whose answer must be a complete stream with status 200. */
serve_stream serve_stream_ask(const serve_child *c, const char *path, const char *body);
void serve_stream_release(serve_stream *s);

#endif
