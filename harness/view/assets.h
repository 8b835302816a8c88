/* assets.h - the style sheets, from page.css and figure.css, and paper.json (assets.S).
 * NUL-terminated. */
#ifndef SNAPMLA_HARNESS_VIEW_ASSETS_H
#define SNAPMLA_HARNESS_VIEW_ASSETS_H

extern const char asset_page_css[], asset_figure_css[], asset_paper_json[];

#endif
