/* script.h - the script of the HTML page (page.js). */
#ifndef SNAPMLA_HARNESS_VIEW_SCRIPT_H
#define SNAPMLA_HARNESS_VIEW_SCRIPT_H

#include "base/buf.h"

/* Appends the source that a content security policy needs to allow this script and no other:
 * 'sha256-' and its hash in base64. */
void script_source(buf *out);

/* Appends the element with the script. */
void script_element(buf *out);

#endif
