/* assets.h - the style sheets, from page.css and figure.css (assets.S). NUL-terminated. */
#ifndef SNAPMLA_HARNESS_REPORT_ASSETS_H
#define SNAPMLA_HARNESS_REPORT_ASSETS_H

extern const char asset_page_css[], asset_figure_css[];

#endif
