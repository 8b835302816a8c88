/* engine_parts.h - the data and functions that the files of the engine share: its sequences and its
 * prompts, each with its pages of the cache. Private to engine/. */
#ifndef SNAPMLA_GENERATOR_LOCAL_ENGINE_ENGINE_PARTS_H
#define SNAPMLA_GENERATOR_LOCAL_ENGINE_ENGINE_PARTS_H

#include "generator/local/engine/block_sums.h"
#include "generator/local/engine/engine.h"
#include "generator/local/engine/pool.h"

enum { ENGINE_STEP_PROMPTS = 16 }; /* most prompts with a chunk in one step */

/* A prompt that sequences start from. It keeps its pages while a sequence waits for it, and for a
 * while after that, because further requests may have the same prompt. If pages are short,
 * prompts_drop() or prompts_free_idle() takes them away. */
typedef struct prompt {
    struct prompt *next;
    int32_t *tokens; /* owned */
    int n;
    int waiting;    /* number of sequences that wait to start from it */
    int computed;   /* tokens in the cache; the prompt is ready when it equals n */
    int32_t *pages; /* owned [pages_for(n)]; the prompt holds the first `held` of them */
    int held;
    int forks;                   /* sequences that started from it since it was last computed */
    float *logits;               /* owned [vocab]; of the last token, once the prompt is ready */
    block_sums sums;             /* of these logits */
    bool finite;                 /* whether these logits and all rows of a scored prompt are finite;
                                    if not, the logits are not stored */
    struct sequence *scored_for; /* the only sequence of a prompt that is scored; else NULL */
    bool bad_score;              /* a row of a scored prompt was not finite */
} prompt;

typedef struct sequence {
    struct sequence *next, *prev; /* links in the queue, the running list or the swapped list */
    engine_request req;           /* its prompt pointer is not valid any more */
    prompt *from;                 /* the prompt that a queued sequence waits for; NULL while the
                                     sequence runs or is swapped out */
    rng rng;
    int32_t *tokens; /* owned: the prompt, then the drawn tokens */
    int n, n_prompt, capacity;
    int64_t cached; /* for a running or swapped sequence: how many of its tokens the cache holds,
                       namely all except the last one */
    int32_t *pages; /* owned [table]; the first `held` are in use, unless the sequence is swapped
                       out */
    int held;
    char *swapped;    /* owned: `held` pages in host memory; NULL = not swapped out: the pages that
                         the sequence has are in the cache */
    token_logit *top; /* owned [top_logprobs]; NULL = not requested */
    int n_top;
} sequence;

/* The most tokens that a sequence can have: its prompt and its longest answer. */
static inline int64_t sequence_tokens(const sequence *s) {
    return s->capacity - 1;
}

/* A doubly linked list of @n sequences. */
typedef struct {
    sequence *first, *last;
    int n;
} sequence_list;

/* The next token of a sequence, drawn from its logits. */
typedef struct {
    sequence *s;
    int32_t token;
    float logprob;
} drawing;

/* The engine of one replica. If several replicas take all steps together, the callers have the
 * first one, and it has the others. */
struct engine {
    runner *r;
    engine *next; /* the engine of the next replica; NULL = none. The first one owns the others */
    int pieces, padding; /* how many pieces the step has: pieces of sequences, and pieces of padding
                            rows after them */
    int32_t *pad_page;   /* owned [engine_padding_pages()]; NULL if there is only one replica */
    int32_t *pad_token;  /* owned [pad_span], zeros */
    int pad_span;        /* most tokens of a padding piece */
    parallel *threads;   /* the runner's */
    sampler **sampler;   /* [threads] */
    page_pool pool;
    int vocab, chunk, table;
    int64_t context;
    bool recompute;
    prompt *prompts;
    sequence_list queue, running, swapped;
    int64_t tokens;     /* sum of sequence_tokens() of all sequences */
    int64_t given;      /* sequences that it has received so far */
    model_piece *piece; /* [max_decode + ENGINE_STEP_PROMPTS], and room for a step of padding */
    float *logits;      /* [max_decode + ENGINE_STEP_PROMPTS][vocab] */
    drawing *drawing;   /* [max_decode] */
    reading *wanted;    /* [max_decode + ENGINE_STEP_PROMPTS], one for each row of logits */
    reading_result *got;
    prompt *chunked[ENGINE_STEP_PROMPTS]; /* the prompts of which the step has a chunk, in the order
                                             of its last pieces */
    int chunks;
    bool can_score;     /* logits, wanted and got have ENGINE_SCORE_CHUNK more rows */
    engine_stats stats; /* `steps` are those in which the replica had pieces of its own */
    int64_t steps;      /* kept in the first replica only: number of steps that all replicas have
                           taken together */
    int64_t running_steps, running_sum;
};

static inline int pages_for(int64_t tokens) {
    return (int)((tokens + MLA_PAGE - 1) / MLA_PAGE);
}

/* ---- engine.c ---- */

/* What the functions of engine.h do for one replica. */
void replica_clear(engine *e);
snap_status replica_add(engine *e, const engine_request *req, snap_err *err) SNAP_CHECK_RESULT;
bool replica_remove(engine *e, const void *user);
int replica_pending(const engine *e);
snap_status replica_admit(engine *e, snap_err *err) SNAP_CHECK_RESULT;
engine_stats replica_stats(const engine *e);
engine_load replica_load(const engine *e);

/* Admits sequences, gives them pages, and writes the pieces of the next step. */
snap_status replica_begin_step(engine *e, snap_err *err) SNAP_CHECK_RESULT;
/* Uses the results of a step. Does nothing if all pieces of this replica were padding. */
snap_status replica_end_step(engine *e, snap_err *err) SNAP_CHECK_RESULT;

/* ---- list.c ---- */

void list_push(sequence_list *l, sequence *s);
void list_push_front(sequence_list *l, sequence *s);
void list_take_out(sequence_list *l, sequence *s);

/* ---- draw.c ---- */

/* Draws a sequence's token. It uses the sequence, its logits and one sampler, so several threads
 * may draw for different sequences. */
void engine_draw(sampler *with, drawing *d, float *logits);

/* Whether stop ids must not be drawn yet. */
bool engine_must_go_on(const sequence *s);

/* The part of the logits that the next draw needs. */
reading engine_reading(const engine *e, const sequence *s);

/* ---- score.c ---- */

/* Makes room for the rows of a scored prompt. */
snap_status engine_make_score_rows(engine *e, snap_err *err) SNAP_CHECK_RESULT;

/* Passes the scores of a chunk of @count tokens, whose rows begin at @row, to the callback of the
 * request. */
void engine_take_scores(engine *e, prompt *p, int count, int row);

/* ---- prompts.c ---- */

/* Returns the prompt with these tokens, which is created if there is none, and counts one more
 * sequence that waits for it. NULL: no memory. */
prompt *prompt_join(engine *e, const int32_t *tokens, int n);

/* Whether there is a prompt with these tokens that is not scored. */
bool prompt_is_known(const engine *e, const int32_t *tokens, int n);

/* Returns a new prompt that only @s starts from, and whose tokens are scored. NULL: no memory. */
prompt *prompt_for_scores(engine *e, sequence *s);
void prompt_leave(engine *e, prompt *p);

/* Gives the prompt its pages if it has none, and if enough are free to leave one for each running
 * sequence. May free idle prompts and, if no sequence runs, drop the pages of all prompts. */
void prompt_start(engine *e, prompt *p);

/* Drops the pages of all prompts, which must then be computed again. Returns how many pages they
 * held. */
int prompts_drop(engine *e);

/* Frees the prompts that no sequence waits for, except the @kept that were used last and are not
 * scored. Returns whether it freed any. */
bool prompts_free_idle(engine *e, int kept);

/* The pages that only idle prompts hold, that is, prompts that no sequence waits for. */
int prompts_idle_pages(const engine *e);

/* engine_take_page() takes a page; engine_have_pages() returns whether @n are free. Both free idle
 * prompts if necessary, the least recently used ones first. */
int32_t engine_take_page(engine *e); /* -1 = none */
bool engine_have_pages(engine *e, int n);

/* ---- preemption.c ---- */

void sequence_free(engine *e, sequence *s); /* NULL is allowed */
void engine_finish(engine *e, sequence_list *l, sequence *s, finish_reason why);

/* Swaps sequences in again, in the order of their list, while fewer than max_decode run and enough
 * pages are free: as many as the sequence had, and one more if others run. */
snap_status engine_admit_swapped(engine *e, snap_err *err) SNAP_CHECK_RESULT;

/* Gives a page to each running sequence that needs one for its next token. If none is free,
 * preempts the last of the running sequences. If only one is left and prompts hold no pages either,
 * it ends with FINISH_NO_PAGES. */
snap_status engine_reserve_pages(engine *e, snap_err *err) SNAP_CHECK_RESULT;

#endif
