#include "generator/test/certificates.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct authority {
    EVP_PKEY *key;
    X509 *certificate;
    char file[48];
};

static void must(int ok) {
    if (ok <= 0)
        abort();
}

static void add_extension(X509 *x, int nid, const char *value) {
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, NULL, nid, value);
    must(e != NULL);
    must(X509_add_ext(x, e, -1));
    X509_EXTENSION_free(e);
}

static X509 *new_certificate(EVP_PKEY *key, const char *common_name, long from_s, long to_s) {
    static long serial = 1;
    X509 *x = X509_new();
    must(x != NULL);
    must(X509_set_version(x, X509_VERSION_3));
    must(ASN1_INTEGER_set(X509_get_serialNumber(x), serial++));
    must(X509_gmtime_adj(X509_getm_notBefore(x), from_s) != NULL);
    must(X509_gmtime_adj(X509_getm_notAfter(x), to_s) != NULL);
    must(X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC,
                                    (const unsigned char *)common_name, -1, -1, 0));
    must(X509_set_pubkey(x, key));
    return x;
}

authority *authority_new(void) {
    authority *a = calloc(1, sizeof *a);
    must(a != NULL);
    a->key = EVP_EC_gen("P-256");
    must(a->key != NULL);
    a->certificate = new_certificate(a->key, "snapmla test authority", -86400, 86400);
    add_extension(a->certificate, NID_basic_constraints, "critical,CA:TRUE");
    must(X509_set_issuer_name(a->certificate, X509_get_subject_name(a->certificate)));
    must(X509_sign(a->certificate, a->key, EVP_sha256()));
    (void)snprintf(a->file, sizeof a->file, "/tmp/snapmla-authority-XXXXXX");
    int fd = mkstemp(a->file);
    must(fd + 1);
    FILE *f = fdopen(fd, "w");
    must(f != NULL);
    must(PEM_write_X509(f, a->certificate));
    must(fclose(f) == 0);
    return a;
}

void authority_free(authority *a) {
    (void)unlink(a->file);
    X509_free(a->certificate);
    EVP_PKEY_free(a->key);
    free(a);
}

const char *authority_file(const authority *a) {
    return a->file;
}

SSL_CTX *certificate_for(const authority *a, const char *name, long from_s, long to_s) {
    EVP_PKEY *key = EVP_EC_gen("P-256");
    must(key != NULL);
    X509 *x = new_certificate(key, "snapmla test server", from_s, to_s);
    add_extension(x, NID_subject_alt_name, name);
    must(X509_set_issuer_name(x, X509_get_subject_name(a ? a->certificate : x)));
    must(X509_sign(x, a ? a->key : key, EVP_sha256()));
    SSL_CTX *c = SSL_CTX_new(TLS_server_method());
    must(c != NULL);
    must(SSL_CTX_use_certificate(c, x));
    must(SSL_CTX_use_PrivateKey(c, key));
    X509_free(x);
    EVP_PKEY_free(key);
    return c;
}
