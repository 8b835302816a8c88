/* tokenizer_parts.h - the parts of a tokenizer, and functions that its files share. Private to this
 * folder. */
#ifndef SNAPMLA_GENERATOR_LOCAL_TOKENIZER_TOKENIZER_PARTS_H
#define SNAPMLA_GENERATOR_LOCAL_TOKENIZER_TOKENIZER_PARTS_H

#include "base/arena.h"
#include "base/json.h"
#include "generator/local/tokenizer/added.h"
#include "generator/local/tokenizer/bpe.h"
#include "generator/local/tokenizer/normalize.h"
#include "generator/local/tokenizer/split.h"
#include "generator/local/tokenizer/tokenizer.h"
#include "generator/local/tokenizer/vocab.h"

enum { TOK_AROUND = 8 }; /* most ids that a template may put on one side of a text */

/* The bytes that an id stands for. */
typedef struct {
    const char *s; /* NULL: no token has this id */
    uint32_t n;
    bool special;
    bool is_byte; /* one byte of byte fallback, such as <0x0A> */
} tok_text;

typedef enum { DECODE_BYTES, DECODE_FALLBACK } decode_kind;

struct tokenizer {
    arena mem;
    vocab vocab;

    /* for encoding */
    added_set added_raw, added_normal;
    normalizer normal;
    splitter split;
    bool byte_level; /* initial symbols are bytes, else characters */
    bool byte_fallback, fuse_unk;
    bool whole_pieces;    /* a piece that is a token stays whole (ignore_merges) */
    int32_t unk;          /* token of unknown characters; -1: they are dropped */
    int32_t byte_id[256]; /* token of each byte, byte-level or fallback; -1 = none */
    bpe merges;
    int32_t before[TOK_AROUND], after[TOK_AROUND]; /* for TOK_SPECIALS */
    int n_before, n_after;

    /* for decoding */
    tok_text *texts; /* [vocab.n], in `mem` */
    decode_kind decode;
    int strip; /* spaces to remove at the start of a decoded text */

    int32_t bos, eos;
    regex *word_char, *space_char; /* characters that count as word or space beside added tokens;
                                      NULL for a tiktoken.model */
};

/* Appends a byte in the byte-level alphabet (GPT-2's), which represents every byte by a printable
 * character. */
void byte_alphabet_append(buf *out, unsigned char byte);

/* Appends the bytes that @s represents in the alphabet; false if a character is not in it. */
bool byte_alphabet_decode(buf *out, const char *s, size_t n);

snap_status tok_ids_append(tok_ids *ids, const int32_t *v, size_t n,
                           snap_err *err) SNAP_CHECK_RESULT;

/* Fills t->byte_id from the vocabulary: characters of the alphabet, or <0x00> .. <0xFF>. */
void tokenizer_find_bytes(tokenizer *t);

/* A replacement that the decoder makes in the text of every token. */
typedef struct {
    const char *from, *to;
} tok_replacement;

/* Fills t->texts: the text of each token of the vocabulary, after the @n replacements. */
snap_status tokenizer_make_texts(tokenizer *t, const tok_replacement *replace, int n,
                                 snap_err *err) SNAP_CHECK_RESULT;

/* Read a tokenizer.json or a tiktoken.model into an empty tokenizer. */
snap_status tokenizer_read_json(tokenizer *t, const js *root, snap_err *err) SNAP_CHECK_RESULT;
snap_status tokenizer_read_tiktoken(tokenizer *t, const char *text, size_t n, const char *name,
                                    const js *config, snap_err *err) SNAP_CHECK_RESULT;

#endif
