/* samples.h - the page's last word: questions and answers, to look at one by one.
 *
 * A line a question with the verdict of every arm; it opens to the answers, side by side. Radio
 * buttons above choose a kind; style rules alone do the work, so that the page keeps running no
 * script. What is shown is bounded, disagreements first, then what went wrong otherwise. */
#ifndef SNAPMLA_HARNESS_VIEW_SAMPLES_H
#define SNAPMLA_HARNESS_VIEW_SAMPLES_H

#include "evals/sample_index.h"
#include "harness/view/report.h"

enum {
    SAMPLES_QUESTIONS = 240,         /* of a task at most */
    SAMPLES_TEXT = 4000,             /* bytes of an answer: its beginning and its end */
    SAMPLES_BYTES = 4 * 1024 * 1024, /* of the section, about */
};

typedef struct report_samples report_samples;
struct report_samples {
    report_samples *next;
    const char *name; /* of the run */
    sample_index index;
    bool confidential; /* also the answers to questions whose authors ask not to publish them */
};

/* Appends the section's content; nothing for no samples. */
void write_samples(const report_samples *all, buf *out);

#endif
