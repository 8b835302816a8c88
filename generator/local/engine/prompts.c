/* prompts.c - the prompts that sequences start from: finding equal ones, their pages, and how long
 * they are kept. */
#include "generator/local/engine/engine_parts.h"

#include <stdlib.h>
#include <string.h>

enum { kIdlePrompts = 64 };

static void prompt_drop_pages(engine *e, prompt *p) {
    for (int i = 0; i < p->held; i++)
        pool_drop(&e->pool, p->pages[i]);
    p->held = p->computed = p->forks = 0;
    p->bad_score = false;
}

int prompts_drop(engine *e) {
    int pages = 0;
    for (prompt *p = e->prompts; p; p = p->next) {
        pages += p->held;
        prompt_drop_pages(e, p);
    }
    return pages;
}

static void prompt_free(engine *e, prompt *p) {
    if (!p)
        return;
    prompt_drop_pages(e, p);
    free(p->tokens);
    free(p->pages);
    free(p->logits);
    block_sums_release(&p->sums);
    free(p);
}

bool prompts_free_idle(engine *e, int kept) {
    bool any = false;
    for (prompt **at = &e->prompts; *at;) {
        prompt *p = *at;
        if (p->waiting || (!p->scored_for && kept-- > 0)) {
            at = &p->next;
            continue;
        }
        *at = p->next;
        prompt_free(e, p);
        any = true;
    }
    return any;
}

void prompt_leave(engine *e, prompt *p) {
    p->waiting--;
    (void)prompts_free_idle(e, kIdlePrompts);
}

/* Returns how many pages of @p only the prompt holds. A sequence shares all pages of its prompt, or
 * all but the last one, so two pages are enough to know this. */
static int own_pages(const engine *e, const prompt *p) {
    const int32_t *holders = e->pool.holders;
    if (!p->held)
        return 0;
    return holders[p->pages[0]] == 1 ? p->held : holders[p->pages[p->held - 1]] == 1;
}

int prompts_idle_pages(const engine *e) {
    int pages = 0;
    for (const prompt *p = e->prompts; p; p = p->next)
        if (!p->waiting)
            pages += own_pages(e, p);
    return pages;
}

/* Frees the least recently used idle prompt. False: there is none. */
static bool free_oldest(engine *e) {
    int idle = 0;
    for (const prompt *p = e->prompts; p; p = p->next)
        idle += !p->waiting && !p->scored_for;
    return prompts_free_idle(e, idle - 1);
}

int32_t engine_take_page(engine *e) {
    int32_t page;
    while ((page = pool_take(&e->pool)) < 0 && free_oldest(e)) {
    }
    return page;
}

bool engine_have_pages(engine *e, int n) {
    while (e->pool.n_free < n && free_oldest(e)) {
    }
    return e->pool.n_free >= n;
}

static prompt *prompt_new(const engine *e, const int32_t *tokens, int n) {
    prompt *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->n = n;
    p->tokens = calloc((size_t)n, sizeof *p->tokens);
    p->pages = calloc((size_t)pages_for(n), sizeof *p->pages);
    p->logits = calloc((size_t)e->vocab, sizeof *p->logits);
    if (!p->tokens || !p->pages || !p->logits || !block_sums_make(&p->sums, e->vocab)) {
        free(p->tokens);
        free(p->pages);
        free(p->logits);
        free(p);
        return NULL;
    }
    memcpy(p->tokens, tokens, (size_t)n * sizeof *tokens);
    return p;
}

prompt *prompt_for_scores(engine *e, sequence *s) {
    prompt *p = prompt_new(e, s->req.prompt, s->req.n_prompt);
    if (p) {
        p->scored_for = s;
        p->next = e->prompts;
        e->prompts = p;
        p->waiting = 1;
    }
    return p;
}

static bool is_prompt(const prompt *p, const int32_t *tokens, int n) {
    return !p->scored_for && p->n == n &&
           memcmp(p->tokens, tokens, (size_t)n * sizeof *tokens) == 0;
}

bool prompt_is_known(const engine *e, const int32_t *tokens, int n) {
    const prompt *p = e->prompts;
    while (p && !is_prompt(p, tokens, n))
        p = p->next;
    return p != NULL;
}

prompt *prompt_join(engine *e, const int32_t *tokens, int n) {
    prompt **at = &e->prompts, *p;
    while ((p = *at) && !is_prompt(p, tokens, n))
        at = &p->next;
    if (p)
        *at = p->next;
    else if (!(p = prompt_new(e, tokens, n)))
        return NULL;
    p->next = e->prompts; /* the list begins with the one that was used last */
    e->prompts = p;
    p->waiting++;
    return p;
}

void prompt_start(engine *e, prompt *p) {
    int need = pages_for(p->n);
    if (p->held)
        return;
    if (!engine_have_pages(e, need + e->running.n) && !e->running.n)
        (void)prompts_drop(e);
    if (e->pool.n_free < need + e->running.n) /* one page stays free for each running sequence */
        return;
    while (p->held < need)
        p->pages[p->held++] = pool_take(&e->pool);
}
