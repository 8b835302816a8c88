/* punkt.h - splits a text into sentences.
 *
 * The algorithm is Punkt (Kiss and Strunk, "Unsupervised Multilingual Sentence Boundary Detection",
 * Computational Linguistics 32, 2006) with the tokens of NLTK 3.9, whose result IFEval's checker
 * counts. Punkt needs parameters: abbreviations, words that often begin a sentence, pairs of words
 * around a full stop that ends no sentence, and in which case each word was seen. NLTK's English
 * parameters are data that the user downloads. Without them, the lists in punkt_english.c are
 * used. */
#ifndef SNAPMLA_EVALS_IFEVAL_PUNKT_H
#define SNAPMLA_EVALS_IFEVAL_PUNKT_H

#include "base/err.h"
#include "evals/pattern.h"

/* What is known about a word in lower case. The names with UPPER and LOWER are Kiss and Strunk's:
 * the case of the word's first letter, and where it was seen. Their values are those in the
 * files. */
enum {
    PUNKT_ABBREVIATION = 1,
    PUNKT_BEGIN_UPPER = 2,    /* with a capital at the beginning of a sentence */
    PUNKT_MIDDLE_UPPER = 4,   /* with a capital inside a sentence */
    PUNKT_UNKNOWN_UPPER = 8,  /* with a capital where a sentence may begin */
    PUNKT_BEGIN_LOWER = 16,   /* with a small letter at the beginning of a sentence */
    PUNKT_MIDDLE_LOWER = 32,  /* with a small letter inside a sentence */
    PUNKT_UNKNOWN_LOWER = 64, /* with a small letter where a sentence may begin */
    PUNKT_STARTER = 128,      /* often begins a sentence */
};

enum { PUNKT_LONGEST = 64 }; /* bytes of a word; longer words are unknown */

typedef struct punkt_params punkt_params;

/**
 * punkt_open - read parameters
 *
 * @path: a folder with the files abbrev_types.txt, sent_starters.txt (one word per line),
 *        collocations.tab (two words) and ortho_context.tab (a word and the sum of its
 *        PUNKT_BEGIN_UPPER to PUNKT_UNKNOWN_LOWER), or NLTK's archive punkt_tab.zip, which has them
 *        in punkt_tab/english
 *
 * The words are UTF-8 in lower case; a number is written ##number##. SNAP_E_INPUT with file, line
 * and reason for a malformed file; SNAP_E_IO; SNAP_E_NOMEM; for an archive also the errors of
 * zip_member_read(). Release with punkt_close().
 */
snap_status punkt_open(punkt_params **out, const char *path, snap_err *err) SNAP_CHECK_RESULT;
void punkt_close(punkt_params *p); /* NULL is allowed */

/**
 * punkt_installed - the parameters of this machine
 *
 * @data: a data folder, or NULL
 *
 * Reads the folder or archive that SNAPMLA_PUNKT names. If the variable is not set, reads
 * punkt/punkt_tab.zip in @data or, if that does not exist, in the folder datasets of share.h. They
 * are read once and kept until the process ends, so a later call has no effect with another @data.
 * NULL if there are none. Parameters that cannot be read are a fault (base/fault.h) whose message
 * names the file: without them, a text could get another verdict.
 */
const punkt_params *punkt_installed(const char *data);

/* The PUNKT_ bits of a word in lower case, which need not be NUL-terminated; 0 for an unknown
 * word. */
unsigned punkt_word(const punkt_params *p, span word);

/* True if a full stop between the two words, both in lower case, ends no sentence. */
bool punkt_is_pair(const punkt_params *p, span first, span second);

/* The PUNKT_ bits of a word in lower case by the lists of this project. */
unsigned punkt_english(span word);

/* Called for each sentence in order. No sentence is empty, so an empty text has none. */
typedef void (*punkt_fn)(void *ctx, span sentence);

/* Splits @text, which must be UTF-8. @p: NULL to use punkt_english(). */
void punkt_each(const punkt_params *p, span text, punkt_fn fn, void *ctx);

size_t punkt_count(const punkt_params *p, span text);

#endif
