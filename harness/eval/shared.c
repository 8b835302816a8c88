#include "harness/eval/shared.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "generator/local/replicas.h"

enum { kHostMax = 300 };

bool shared_runs_later(const eval_arm *arm) {
    return arm->control == CONTROL_SEEDS;
}

/* Writes "host:port" of the URL of @n bytes at @url. */
static void host_of(const char *url, size_t n, char out[kHostMax]) {
    static const char *const loopback[] = {"localhost", "127.0.0.1", "[::1]"};
    bool https = text_starts(url, "https:");
    size_t start = https ? sizeof "https://" - 1 : sizeof "http://" - 1;
    size_t len = start < n ? strcspn(url + start, "/|*?#") : 0;
    char host[kHostMax - 8];
    (void)snprintf(host, sizeof host, "%.*s", (int)len, url + (len ? start : 0));
    for (char *p = host; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    char *colon = strrchr(host, ':');
    bool has_port = colon && !strchr(colon, ']');
    char port[8];
    (void)snprintf(port, sizeof port, "%.7s", has_port ? colon + 1 : https ? "443" : "80");
    if (has_port)
        *colon = '\0';
    const char *name = host;
    for (size_t i = 0; i < sizeof loopback / sizeof *loopback; i++)
        if (strcmp(host, loopback[i]) == 0)
            name = loopback[0];
    (void)snprintf(out, kHostMax, "%s:%s", name, port);
}

/* Whether two lists "URL|URL*WEIGHT" have a server in common. */
static bool share_a_server(const char *a, const char *b) {
    char x[kHostMax], y[kHostMax];
    for (size_t i = 0, n; a[i]; i += n + (a[i + n] == '|')) {
        n = strcspn(a + i, "|");
        host_of(a + i, n, x);
        for (size_t k = 0, m; b[k]; k += m + (b[k + m] == '|')) {
            m = strcspn(b + k, "|");
            host_of(b + k, m, y);
            if (strcmp(x, y) == 0)
                return true;
        }
    }
    return false;
}

/* Whether two local arms have a device in common. The options of an arm that is not valid are
 * refused when it is opened. */
static bool share_a_device(const eval_arm *a, const eval_arm *b) {
    replica_devices x, y;
    if (replica_devices_parse(&x, a->device ? a->device : "cpu", a->layout, NULL) != SNAP_OK ||
        replica_devices_parse(&y, b->device ? b->device : "cpu", b->layout, NULL) != SNAP_OK ||
        !text_equal(x.device, y.device))
        return false;
    for (int i = 0; i < replica_devices_count(&x) && text_equal(x.device, "cuda"); i++)
        for (int k = 0; k < replica_devices_count(&y); k++)
            if (x.number[i] == y.number[k])
                return true;
    return !text_equal(x.device, "cuda");
}

static bool share(const eval_arm *a, const eval_arm *b) {
    if (!text_equal(a->kind, b->kind) || shared_runs_later(a) || shared_runs_later(b))
        return false;
    if (text_equal(a->kind, "http"))
        return share_a_server(a->spec, b->spec);
    return text_equal(a->kind, "local") && share_a_device(a, b);
}

const eval_arm *shared_with(const eval_plan *plan, size_t index) {
    for (size_t i = 0; i < plan->n_arms; i++)
        if (i != index && share(&plan->arms[i], &plan->arms[index]))
            return &plan->arms[i];
    return NULL;
}
