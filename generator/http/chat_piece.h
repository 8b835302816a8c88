/* chat_piece.h - finds the text of a stream chunk without building a JSON tree.
 *
 * Most chunks of a stream hold one piece of text, which may be empty, and nothing else that
 * matters. For them chat_piece_find() finds the text that chat_answer_read_chunk() appends, at less
 * cost. For any other chunk (for example with usage, a finish reason, an error, several choices, \u
 * escapes, text that is not Unicode, or malformed JSON) it returns false, and the caller must use
 * the full parser. */
#ifndef SNAPMLA_GENERATOR_HTTP_CHAT_PIECE_H
#define SNAPMLA_GENERATOR_HTTP_CHAT_PIECE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* The inside of a JSON string, still with its escapes; n = 0 if and only if the text is empty. */
typedef struct {
    const char *s;
    size_t n;
} chat_text;

typedef struct {
    chat_text content, reasoning;
} chat_piece;

/* Finds the text of a chunk of @n bytes; @out points into it. False: use the full parser. */
bool chat_piece_find(const char *data, size_t n, chat_piece *out);

/* The bytes around the text of a chunk. The next chunks of a stream usually differ from it in the
 * text only, and then comparing these bytes replaces the parser. A zeroed frame has no bytes. */
typedef struct {
    buf bytes;         /* those before the text, then those after it */
    size_t before;     /* how many are before the text */
    bool is_reasoning; /* the text is reasoning, else content */
} chat_frame;

void chat_frame_clear(chat_frame *f);
void chat_frame_release(chat_frame *f);

/* Gives the same result as chat_piece_find(), but compares the chunk with the frame first. A chunk
 * that does not fit the frame is parsed by chat_piece_find(). If it has one text, @f becomes its
 * frame. */
bool chat_frame_find(chat_frame *f, const char *data, size_t n, chat_piece *out);

/* Appends the text, with the character that each escape stands for in place of the escape. */
void chat_piece_append(buf *out, chat_text text);

#endif
