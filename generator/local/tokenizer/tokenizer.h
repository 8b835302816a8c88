/* tokenizer.h - text to token ids and back, compatible with Hugging Face's `tokenizers`.
 *
 * Reads a checkpoint's tokenizer.json or its tiktoken.model (Kimi, Moonlight). Of tokenizer.json it
 * supports byte-pair encoding (byte-level like DeepSeek's, or with byte fallback like
 * SentencePiece's); split regexes, digits, byte-level and metaspace pre-tokenizers; added tokens;
 * prepend and replace normalisers and the Unicode forms; their decoders; and the special tokens
 * that a template adds. A part of another type is an error that names it.
 *
 * Texts are bytes. Malformed UTF-8 becomes U+FFFD before it is encoded (utf8.h). A byte-level
 * tokenizer that has a token for every byte decodes the ids of a well-formed text to the same text,
 * if special tokens are not skipped and no part of the tokenizer adds, removes or replaces text. A
 * normaliser, a prefix space, Split "Removed", a Replace decoder, and an added token that strips
 * spaces are such parts. */
#ifndef SNAPMLA_GENERATOR_LOCAL_TOKENIZER_TOKENIZER_H
#define SNAPMLA_GENERATOR_LOCAL_TOKENIZER_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

typedef struct tokenizer tokenizer; /* immutable: threads may share it */

/* ---- opening ---- */

/**
 * tokenizer_open - open the tokenizer of a checkpoint
 *
 * @out: caller owns it, release with tokenizer_free(); NULL on failure
 * @dir: has tokenizer.json or tiktoken.model, and optionally tokenizer_config.json
 *
 * SNAP_E_IO; SNAP_E_INPUT for a malformed file; SNAP_E_UNSUPPORTED, naming an unsupported feature;
 * SNAP_E_NOMEM.
 */
snap_status tokenizer_open(tokenizer **out, const char *dir, snap_err *err) SNAP_CHECK_RESULT;

/* Like tokenizer_open(), but reads the text of a tokenizer.json, without a tokenizer_config.json.
 * @name is its name in messages. */
snap_status tokenizer_parse(tokenizer **out, const char *json, size_t n, const char *name,
                            snap_err *err) SNAP_CHECK_RESULT;
void tokenizer_free(tokenizer *t); /* NULL is allowed */

/* ---- properties of a tokenizer ---- */

/* One more than the greatest id. A model's vocabulary may be larger (padding). */
int32_t tokenizer_size(const tokenizer *t);

/* The bytes that an id stands for in a text, not NUL-terminated; they may be a part of a character.
 * *n is 0, and the result NULL, if there is no such id. */
const char *tokenizer_bytes(const tokenizer *t, int32_t id, size_t *n);

/* The content of an id, spelled as vocab.h says, NUL-terminated; NULL if there is none. */
const char *tokenizer_content(const tokenizer *t, int32_t id);

/* The ids that tokenizer_config.json names; -1 if it names none, or one that has no id. */
int32_t tokenizer_bos(const tokenizer *t);
int32_t tokenizer_eos(const tokenizer *t);

/* ---- encoding ---- */

/* Working memory of one thread. It contains a cache of pieces and their ids, 2 MiB in all. */
typedef struct tok_encoder tok_encoder;
snap_status tok_encoder_create(tok_encoder **out, const tokenizer *t,
                               snap_err *err) SNAP_CHECK_RESULT; /* @t must outlive it */
void tok_encoder_free(tok_encoder *e);                           /* NULL is allowed */

typedef struct {
    int32_t *v; /* owned: tok_ids_release() */
    size_t n, cap;
} tok_ids;
void tok_ids_release(tok_ids *ids);

enum {
    TOK_SPECIALS = 1, /* add special tokens around the text, such as begin of sentence */
    TOK_PLAIN = 2,    /* treat special tokens in the text as plain text; for what users wrote */
};

/* Appends the ids of @s. SNAP_E_NOMEM; SNAP_E_INPUT if a regex takes too many steps, or if the
 * normaliser makes too much text. */
snap_status tok_encode(tok_encoder *e, const char *s, size_t n, int flags, tok_ids *ids,
                       snap_err *err) SNAP_CHECK_RESULT;

/* ---- decoding ---- */

/* Decodes one id at a time and never outputs part of a character. Ids without a token (a model's
 * padding) give nothing. Bytes that are not valid UTF-8 become U+FFFD. */
typedef struct {
    const tokenizer *t; /* must outlive it */
    bool skip_special;
    int to_strip; /* leading spaces that are still to be removed */
    buf held;     /* bytes of an incomplete character, or of byte-fallback tokens in a row */
} tok_stream;

tok_stream tok_stream_make(const tokenizer *t, bool skip_special);

/* Appends the text that is complete after @id to @out; this may be nothing. */
void tok_stream_push(tok_stream *s, int32_t id, buf *out);

/* Appends the bytes that are still held, with U+FFFD for what is malformed, and resets the
 * stream. */
void tok_stream_finish(tok_stream *s, buf *out);
void tok_stream_release(tok_stream *s);

/* Appends the text of @n ids. SNAP_E_NOMEM. */
snap_status tok_decode(const tokenizer *t, const int32_t *ids, size_t n, bool skip_special,
                       buf *out, snap_err *err) SNAP_CHECK_RESULT;

#endif
