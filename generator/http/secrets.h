/* secrets.h - masks secrets in what a server sends: it may echo them, and they must not get into
 * files. */
#ifndef SNAPMLA_GENERATOR_HTTP_SECRETS_H
#define SNAPMLA_GENERATOR_HTTP_SECRETS_H

#include "base/buf.h"

#define SECRETS_BEARER "Authorization: Bearer " /* before the API key in its header line */

/* Header lines "Name: value" whose values are secret. */
typedef struct {
    const char *const *lines;
    int n;
} secret_lines;

/* Appends a message in which "***" replaces each secret, and each beginning of a secret that has at
 * least 8 bytes. */
void secrets_mask_message(secret_lines secrets, const char *message, buf *out);

/* A text without the secrets of 8 bytes and more: @text itself if it has none, else a copy in
 * @masked, which is cleared first. NULL stays NULL. */
const char *secrets_mask_text(secret_lines secrets, const char *text, buf *masked);

#endif
