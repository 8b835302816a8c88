/* tokenizer.h - text to token ids and back, as Hugging Face's `tokenizers` does it.
 *
 * Reads a checkpoint's tokenizer.json (byte-pair encoding: byte-level as DeepSeek's, or with byte
 * fallback as SentencePiece's; split regexes, digits, byte-level and metaspace pre-tokenizers; added
 * tokens; prepend and replace normalisers, Unicode's forms; their decoders), or its tiktoken.model
 * (Kimi, Moonlight).
 * What it does not know it refuses by name: a tokenizer either agrees with its authors' or does not
 * load.
 *
 * Texts are bytes. Malformed UTF-8 becomes U+FFFD before it is encoded (utf8.h). For well-formed x and
 * a byte-level tokenizer without normaliser, decode(encode(x)) = x. */
#ifndef SNAPMLA_GENERATOR_LOCAL_TOKENIZER_TOKENIZER_H
#define SNAPMLA_GENERATOR_LOCAL_TOKENIZER_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

typedef struct tokenizer tokenizer; /* immutable: threads may share it */

/* ---- opening ---- */

/**
 * tokenizer_open - the tokenizer of a checkpoint
 *
 * @out: caller owns it, release with tokenizer_free(); NULL on failure
 * @dir: holds tokenizer.json, or tiktoken.model; beside it tokenizer_config.json where there is one
 *
 * SNAP_E_IO; SNAP_E_INPUT for a malformed file; SNAP_E_UNSUPPORTED naming what it asks for; SNAP_E_NOMEM.
 */
snap_status tokenizer_open(tokenizer **out, const char *dir, snap_err *err) SNAP_CHECK_RESULT;

/* The same from the text of a tokenizer.json; @name is what messages call it. */
snap_status tokenizer_parse(tokenizer **out, const char *json, size_t n, const char *name,
                            snap_err *err) SNAP_CHECK_RESULT;
void tokenizer_free(tokenizer *t); /* NULL is allowed */

/* ---- facts ---- */

/* One more than the greatest id. A model's own vocabulary may be larger (padding). */
int32_t tokenizer_size(const tokenizer *t);

/* The id of a token by its content, e.g. an end-of-turn mark; -1 where there is none. */
int32_t tokenizer_id(const tokenizer *t, const char *content);

/* The content of an id as the file spells it, NUL-terminated; NULL where there is none. */
const char *tokenizer_content(const tokenizer *t, int32_t id);

/* By tokenizer_config.json; -1 where it names none. */
int32_t tokenizer_bos(const tokenizer *t);
int32_t tokenizer_eos(const tokenizer *t);

/* ---- encoding ---- */

/* One thread's memory and its cache of pieces: about 2 MiB. */
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
    TOK_SPECIALS =
        1,         /* add what the tokenizer puts around a text (a template: begin of sentence) */
    TOK_PLAIN = 2, /* special tokens in the text are text: for what users wrote */
};

/* Appends the ids of @s. SNAP_E_NOMEM; SNAP_E_INPUT where a regex takes too many steps. */
snap_status tok_encode(tok_encoder *e, const char *s, size_t n, int flags, tok_ids *ids,
                       snap_err *err) SNAP_CHECK_RESULT;

/* ---- decoding ---- */

/* Decodes one id at a time and never gives out half a character. Ids without a token (a model's
 * padding) give nothing. Whatever is not UTF-8 in the end becomes U+FFFD. */
typedef struct {
    const tokenizer *t; /* must outlive it */
    bool skip_special;
    int to_strip; /* leading spaces still to be taken off */
    buf held;     /* bytes that wait for the rest of their character */
} tok_stream;

tok_stream tok_stream_make(const tokenizer *t, bool skip_special);

/* Appends the text that @id completes to @out, which may be none. */
void tok_stream_push(tok_stream *s, int32_t id, buf *out);

/* Appends what still waited, and starts anew. */
void tok_stream_finish(tok_stream *s, buf *out);
void tok_stream_release(tok_stream *s);

/* Appends the text of @n ids. SNAP_E_NOMEM. */
snap_status tok_decode(const tokenizer *t, const int32_t *ids, size_t n, bool skip_special,
                       buf *out, snap_err *err) SNAP_CHECK_RESULT;

#endif
