#include "generator/http/retry.h"

bool retry_status(int status) {
    return status == 408 || status == 409 || status == 425 || status == 429 || status >= 500;
}

double retry_delay_s(const retry_policy *p, int failures, double retry_after_s, double u) {
    double backoff = p->base_s;
    for (int i = 1; i < failures && backoff < p->cap_s; i++)
        backoff *= 2;
    if (backoff > p->cap_s)
        backoff = p->cap_s;
    backoff *= 0.5 + 0.5 * u;
    if (retry_after_s < 0)
        return backoff;
    double wish = retry_after_s < p->server_cap_s ? retry_after_s : p->server_cap_s;
    wish += p->base_s * u;
    return wish > backoff ? wish : backoff;
}
