/* samples.h - a section of the page: questions and answers, one by one.
 *
 * Each question is a line with the verdicts of its answers. Opened, it shows the answers side by
 * side. Radio buttons above select a kind of question. They work with style rules only, without a
 * script. The number of questions is limited: first come those on which arms differ, then
 * those with other problems, then the rest. */
#ifndef SNAPMLA_HARNESS_VIEW_SAMPLES_H
#define SNAPMLA_HARNESS_VIEW_SAMPLES_H

#include "evals/sample_index.h"
#include "harness/view/report.h"

enum {
    SAMPLES_QUESTIONS = 240,         /* largest number of questions of a task */
    SAMPLES_TEXT = 4000,             /* bytes shown of an answer: a longer one lacks its middle */
    SAMPLES_BYTES = 4 * 1024 * 1024, /* approximate size of the section */
};

typedef struct report_samples report_samples;
struct report_samples {
    report_samples *next;
    const char *name; /* name of the run */
    sample_index index;
    bool confidential; /* show answers to questions whose authors ask not to publish */
};

/* Appends the section's content. Without samples it appends nothing. */
void write_samples(const report_samples *all, buf *out);

#endif
