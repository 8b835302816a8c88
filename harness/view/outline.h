/* outline.h - the sections of a report and their parts, in order. HTML and Markdown follow it. */
#ifndef SNAPMLA_HARNESS_VIEW_OUTLINE_H
#define SNAPMLA_HARNESS_VIEW_OUTLINE_H

#include "harness/view/figures.h"
#include "harness/view/tables.h"

/* A figure or a table. */
typedef struct {
    figure_fn draw;
    report_table_fn build;
} report_part;

enum { OUTLINE_PARTS = 14 };

typedef struct {
    const char *id, *title;
    report_part parts[OUTLINE_PARTS]; /* unused parts are empty */
    bool samples;                     /* the section shows questions and answers */
    bool (*measured)(const report_model *m);
    const char *absent; /* text if nothing of the section was measured; NULL = no text */
} report_section;

typedef struct report_outline {
    const char *title;
    const report_section *sections; /* ends with a NULL title */
} report_outline;

/* Appends the title of the report as plain text. For results of servers and recordings alone it
 * names their arms; otherwise it is that of the outline. */
void report_title(const report_model *m, buf *out);

extern const report_outline report_outline_whole, report_outline_paper;

#endif
