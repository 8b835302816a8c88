/* letter_token.h - a response as tokens: words with their classes, mentions of options, signs.
 *
 * The text has the plain form of letter_text.h. */
#ifndef SNAPMLA_EVALS_LETTER_TOKEN_H
#define SNAPMLA_EVALS_LETTER_TOKEN_H

#include <stdbool.h>

#include "evals/letter_words.h"

typedef enum {
    TOKEN_WORD,   /* `is` has its classes; 0: the lexicon does not have it */
    TOKEN_OPTION, /* a mention of an option */
    TOKEN_NAME,   /* a letter that is no option or has another sense: a unit, "vitamin C" */
    TOKEN_NUMBER,
    TOKEN_LINE, /* a line feed */
    TOKEN_STOP, /* a full stop or an exclamation mark at the end of a sentence */
    TOKEN_ASK,  /* a question mark */
    TOKEN_SEMICOLON,
    TOKEN_COMMA,
    TOKEN_COLON,
    TOKEN_DASH,
    TOKEN_ARROW,
    TOKEN_EQUALS,
    TOKEN_SLASH, /* also "&" */
    TOKEN_OPEN,
    TOKEN_CLOSE,
    TOKEN_YES, /* a check mark */
    TOKEN_NO,  /* a cross */
    TOKEN_SIGN /* any other character */
} token_kind;

typedef struct {
    word_class is;
    unsigned at, n; /* offset in the text, and number of bytes */
    unsigned char kind;
    char letter;      /* for TOKEN_OPTION and TOKEN_NAME: 'A'..; '\0' if it is no option's letter */
    bool framed;      /* "(C)" or "[C]" in the plain form, which letters in bold or quotes become */
    bool bracket;     /* "C)" without an opening bracket; not framed */
    bool small;       /* a small letter: "(c)" */
    bool ordinal;     /* "the third option" */
    bool native;      /* a letter of another script */
    bool named;       /* a TOKEN_NAME after a word that the lexicon does not have: "diagram C" */
    bool before_word; /* a WORD_THING or a word that the lexicon does not have follows: "B cells" */
} token;

typedef struct {
    span text;
    token *t; /* owned */
    size_t n;
    char last; /* the last option's letter */
} letter_tokens;

/* Splits @text into tokens. False if memory is exhausted, which is noted as a fault. The caller
 * releases @out in any case. */
bool letter_tokenize(span text, char last, letter_tokens *out);
void letter_tokens_release(letter_tokens *t);

/* The option that a letter stands for, as a capital; '\0' if it stands for none. */
char letter_option(char c, char last);

#endif
