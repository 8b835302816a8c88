/* outline.h - the sections of a report and their parts: one list for all formats. */
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
    report_part parts[OUTLINE_PARTS]; /* unused parts are empty */
    bool samples;                     /* the section shows questions and answers */
    bool (*measured)(const report_model *m);
    const char *absent; /* text if nothing of it was measured; NULL = no text */
} report_section;

typedef struct report_outline {
    const char *title;              /* of the page */
    const report_section *sections; /* ends with a NULL title */
} report_outline;

extern const report_outline report_outline_whole, report_outline_paper;

#endif
