/* certificates.h - certificates of servers, good and bad, made while the tests run. */
#ifndef SNAPMLA_GENERATOR_TEST_CERTIFICATES_H
#define SNAPMLA_GENERATOR_TEST_CERTIFICATES_H

#include <openssl/ssl.h>

/* One that signs, and a file that tells clients to trust it. */
typedef struct authority authority;

authority *authority_new(void); /* aborts when OpenSSL fails: a test can't go on */
void authority_free(authority *a);
const char *authority_file(const authority *a); /* PEM */

/* What a server of this name ("IP:127.0.0.1", "DNS:example.org") presents, valid from so many
 * seconds from now to so many. @a NULL: it signs itself. Release with SSL_CTX_free(). */
SSL_CTX *certificate_for(const authority *a, const char *name, long from_s, long to_s);

#endif
