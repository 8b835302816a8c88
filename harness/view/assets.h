/* assets.h - the files page.css, figure.css, page.js and paper.json as NUL-terminated strings
 * (assets.S). */
#ifndef SNAPMLA_HARNESS_VIEW_ASSETS_H
#define SNAPMLA_HARNESS_VIEW_ASSETS_H

extern const char asset_page_css[], asset_figure_css[], asset_page_js[], asset_paper_json[];

#endif
