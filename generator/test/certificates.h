/* certificates.h - valid and invalid server certificates, made while the tests run. */
#ifndef SNAPMLA_GENERATOR_TEST_CERTIFICATES_H
#define SNAPMLA_GENERATOR_TEST_CERTIFICATES_H

#include <openssl/ssl.h>

/* A certificate authority, and a file that makes clients trust it. */
typedef struct authority authority;

authority *authority_new(void); /* aborts if OpenSSL fails */
void authority_free(authority *a);
const char *authority_file(const authority *a); /* path of a PEM file */

/* A server certificate for this name ("IP:127.0.0.1", "DNS:example.org"), valid from @from_s to
 * @to_s seconds from now. @a NULL: self-signed. Release with SSL_CTX_free(). */
SSL_CTX *certificate_for(const authority *a, const char *name, long from_s, long to_s);

#endif
