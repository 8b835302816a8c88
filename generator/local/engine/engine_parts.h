/* engine_parts.h - what the engine's files share: its sequences and prompts, and who holds which page. Private to
 * engine/. */
#ifndef SNAPMLA_GENERATOR_LOCAL_ENGINE_ENGINE_PARTS_H
#define SNAPMLA_GENERATOR_LOCAL_ENGINE_ENGINE_PARTS_H

#include "generator/local/engine/engine.h"
#include "generator/local/engine/pool.h"

enum { ENGINE_STEP_PROMPTS = 16 }; /* whose chunks one step takes */

/* A prompt that sequences start from. It holds its pages while any of them still waits to, and after
 * that until somebody needs them: the next samples may be on their way. */
typedef struct prompt {
    struct prompt *next;
    int32_t *tokens; /* owned */
    int n;
    int waiting;    /* sequences */
    int computed;   /* tokens in the cache; n = ready */
    int32_t *pages; /* owned; the first `held` are held */
    int held;
    int forks;     /* sequences that started from it since it was computed */
    float *logits; /* owned; of the last token */
} prompt;

typedef struct sequence {
    struct sequence *next, *prev; /* queue, running or swapped list */
    engine_request req;           /* its prompt pointer is not used any more */
    prompt *from;                 /* until it runs */
    rng rng;
    int32_t *tokens; /* owned: the prompt, then what was drawn */
    int n, n_prompt, room;
    int64_t cached; /* tokens in the cache: all but the last */
    int32_t *pages; /* owned [table]; the first `held` are held */
    int held;
    char *swapped; /* owned: `held` pages in host memory; NULL = in the cache */
} sequence;

/* First in, first out. */
typedef struct {
    sequence *first, *last;
    int n;
} sequence_list;

/* A running sequence's next token. */
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
    reading *wanted;    /* [max_decode + ENGINE_STEP_PROMPTS], as logits */
    reading_answer *got;
    prompt *chunked[ENGINE_STEP_PROMPTS]; /* whose chunk the step's last pieces are */
    int chunks;
    engine_stats stats;
    int64_t running_steps, running_sum;
};

static inline int pages_for(int64_t tokens) {
    return (int)((tokens + MLA_PAGE - 1) / MLA_PAGE);
}

/* SNAP_E_SHAPE for one that is not in the vocabulary. */
snap_status engine_check_tokens(const engine *e, const int32_t *tokens, int n,
                                snap_err *err) SNAP_CHECK_RESULT;

/* ---- list.c ---- */

void list_push(sequence_list *l, sequence *s);
void list_push_front(sequence_list *l, sequence *s);
void list_take_out(sequence_list *l, sequence *s);

/* ---- prompts.c ---- */

/* The prompt of these tokens, one more sequence waiting for it; NULL: no memory. */
prompt *prompt_join(engine *e, const int32_t *tokens, int n);
void prompt_leave(engine *e, prompt *p);

/* Gets its pages, where there are enough beside those that the running sequences will grow by. */
void prompt_start(engine *e, prompt *p);

/* All prompts give up their pages, to be computed again. How many those were. */
int prompts_drop(engine *e);

/* Frees the prompts that nobody waits for, all but the newest @kept of them. Whether there were any. */
bool prompts_free_idle(engine *e, int kept);

/* A page, or whether @n of them are free: idle prompts are given up for it. */
int32_t engine_take_page(engine *e); /* -1 = none */
bool engine_have_pages(engine *e, int n);

/* ---- room.c ---- */

void sequence_drop_pages(engine *e, sequence *s);
void sequence_free(engine *e, sequence *s); /* NULL is allowed */
void engine_finish(engine *e, sequence_list *l, sequence *s, finish_reason why);

/* Swapped sequences come back in their order, each with a page to grow. */
snap_status engine_admit_swapped(engine *e, snap_err *err) SNAP_CHECK_RESULT;

/* A page for the next token of every running sequence; those that came last make room. */
snap_status engine_make_room(engine *e, snap_err *err) SNAP_CHECK_RESULT;

#endif
