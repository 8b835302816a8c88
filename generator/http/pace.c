#include "generator/http/pace.h"

static const double kMinuteNs = 60e9;
/* After the event loop woke late, at most this much of the delay is made up for by earlier starts.
 * If nothing were made up for, delays would lower the rate. */
static const int64_t kCatchUpNs = 100000000;

pace pace_make(double requests, double tokens, int64_t now_ns) {
    return (pace){.requests = requests, .tokens = tokens, .next_ns = now_ns, .debt_ns = now_ns};
}

static double debt_at(const pace *p, int64_t now_ns) {
    double paid = p->tokens * (double)(now_ns - p->debt_ns) / kMinuteNs;
    return p->debt > paid ? p->debt - paid : 0;
}

int64_t pace_when(const pace *p, int64_t now_ns) {
    int64_t when = p->requests > 0 ? p->next_ns : now_ns;
    double debt = p->tokens > 0 ? debt_at(p, now_ns) : 0;
    int64_t paid = now_ns + (int64_t)(debt > 0 ? debt / p->tokens * kMinuteNs + 1 : 0);
    return when > paid ? when : paid;
}

double pace_start(pace *p, int64_t now_ns, double prompt_tokens, double most_answer_tokens) {
    double expected =
        prompt_tokens + (p->answers ? p->answer_tokens / (double)p->answers : most_answer_tokens);
    if (p->requests > 0) {
        int64_t from = p->next_ns > now_ns - kCatchUpNs ? p->next_ns : now_ns - kCatchUpNs;
        p->next_ns = from + (int64_t)(kMinuteNs / p->requests);
    }
    if (p->tokens > 0) {
        p->debt = debt_at(p, now_ns) + expected;
        p->debt_ns = now_ns;
    }
    return expected;
}

void pace_settle(pace *p, double expected, int64_t tokens, int64_t answer_tokens) {
    if (answer_tokens >= 0) {
        p->answer_tokens += (double)answer_tokens;
        p->answers++;
    }
    if (tokens >= 0 && p->tokens > 0)
        p->debt += (double)tokens - expected;
}
