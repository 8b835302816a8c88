/* outline.h - which sections a report has, and what stands in each: one list for every format. */
#ifndef SNAPMLA_HARNESS_VIEW_OUTLINE_H
#define SNAPMLA_HARNESS_VIEW_OUTLINE_H

#include "harness/view/figures.h"
#include "harness/view/tables.h"

/* A figure or a table. */
typedef struct {
    figure_fn draw;
    report_table_fn build;
} report_part;

enum { OUTLINE_PARTS = 8 };

typedef struct {
    const char *id, *title;
    report_part parts[OUTLINE_PARTS]; /* closed by an empty one */
    bool samples;                     /* the page's questions and answers stand here */
    bool (*measured)(const report_model *m);
    const char *absent; /* what is said where nothing of it was measured; NULL = nothing */
} report_section;

typedef struct report_outline {
    const char *title;              /* of the page */
    const report_section *sections; /* closed by a NULL title */
} report_outline;

extern const report_outline report_outline_whole, report_outline_paper;

#endif
