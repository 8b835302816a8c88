/* engine_parts.h - what the files of the engine share: its sequences, its prompts, and which of
 * them holds which page. Private to engine/. */
#ifndef SNAPMLA_GENERATOR_LOCAL_ENGINE_ENGINE_PARTS_H
#define SNAPMLA_GENERATOR_LOCAL_ENGINE_ENGINE_PARTS_H

#include "generator/local/engine/engine.h"
#include "generator/local/engine/pool.h"

enum { ENGINE_STEP_PROMPTS = 16 }; /* most prompts with a chunk in one step */

/* A prompt that sequences start from. It holds its pages while a sequence waits for it. After that
 * it keeps them until they are needed elsewhere, because further samples of it may come. */
typedef struct prompt {
    struct prompt *next;
    int32_t *tokens; /* owned */
    int n;
    int waiting;    /* number of sequences */
    int computed;   /* tokens in the cache; the prompt is ready when it equals n */
    int32_t *pages; /* owned; the first `held` are held */
    int held;
    int forks;     /* sequences that started from it since it was last computed */
    float *logits; /* owned; of the last token */
} prompt;

typedef struct sequence {
    struct sequence *next, *prev; /* links in the queue, the running list or the swapped list */
    engine_request req;           /* its prompt pointer is not valid any more */
    prompt *from;                 /* NULL once the sequence runs */
    rng rng;
    int32_t *tokens; /* owned: the prompt, then the drawn tokens */
    int n, n_prompt, capacity;
    int64_t cached; /* tokens in the cache: all except the last one */
    int32_t *pages; /* owned [table]; the first `held` are held */
    int held;
    char *swapped; /* owned: `held` pages in host memory; NULL = they are in the cache */
} sequence;

/* First in, first out. */
typedef struct {
    sequence *first, *last;
    int n;
} sequence_list;

/* The next token of a running sequence. */
typedef struct {
    sequence *s;
    int32_t token;
    float logprob;
} drawing;

struct engine {
    runner *r;
    kv_cache *cache;
    parallel *threads; /* the runner's */
    sampler **sampler; /* [threads] */
    page_pool pool;
    int vocab, chunk, table;
    int64_t context;
    bool recompute;
    prompt *prompts;
    sequence_list queue, running, swapped;
    model_piece *piece; /* [max_decode + ENGINE_STEP_PROMPTS] */
    float *logits;      /* [max_decode + ENGINE_STEP_PROMPTS][vocab] */
    drawing *drawing;   /* [max_decode] */
    reading *wanted;    /* [max_decode + ENGINE_STEP_PROMPTS], one for each row of logits */
    reading_result *got;
    prompt *chunked[ENGINE_STEP_PROMPTS]; /* the prompts of the step's last pieces */
    int chunks;
    engine_stats stats;
    int64_t running_steps, running_sum;
};

static inline int pages_for(int64_t tokens) {
    return (int)((tokens + MLA_PAGE - 1) / MLA_PAGE);
}

/* ---- list.c ---- */

void list_push(sequence_list *l, sequence *s);
void list_push_front(sequence_list *l, sequence *s);
void list_take_out(sequence_list *l, sequence *s);

/* ---- prompts.c ---- */

/* Returns the prompt with these tokens and counts one more sequence that waits for it. NULL: no
 * memory. */
prompt *prompt_join(engine *e, const int32_t *tokens, int n);
void prompt_leave(engine *e, prompt *p);

/* Gives the prompt its pages, if enough are free in addition to those that running sequences need
 * to grow. */
void prompt_start(engine *e, prompt *p);

/* Drops the pages of all prompts, which must then be computed again. Returns their number. */
int prompts_drop(engine *e);

/* Frees the prompts that no sequence waits for, except the newest @kept. Returns whether there were
 * any. */
bool prompts_free_idle(engine *e, int kept);

/* Takes a page, or checks that @n pages are free. Idle prompts are freed if necessary. */
int32_t engine_take_page(engine *e); /* -1 = none */
bool engine_have_pages(engine *e, int n);

/* ---- preemption.c ---- */

void sequence_free(engine *e, sequence *s); /* NULL is allowed */
void engine_finish(engine *e, sequence_list *l, sequence *s, finish_reason why);

/* Swaps sequences in again, in their order, if they have room to grow by one page. */
snap_status engine_admit_swapped(engine *e, snap_err *err) SNAP_CHECK_RESULT;

/* Gives every running sequence a page for its next token. Preempts those that came last if
 * necessary. */
snap_status engine_reserve_pages(engine *e, snap_err *err) SNAP_CHECK_RESULT;

#endif
