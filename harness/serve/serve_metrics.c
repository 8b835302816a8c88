#include "harness/serve/serve_metrics.h"

#include <stddef.h>

/* Upper bounds in seconds. Each list ends with 0. */
static const double kLatency[METRIC_BUCKETS + 1] = {
    0.001, 0.0025, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1,  0.25,  0.5,   0.75,  1.0,   2.5,
    5.0,   7.5,    10.0,  15.0, 20.0, 30.0, 40.0, 60.0, 80.0, 160.0, 320.0, 640.0, 1280.0};
static const double kGap[METRIC_BUCKETS + 1] = {
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.015, 0.02, 0.025, 0.03, 0.04, 0.05, 0.06, 0.075, 0.1,
    0.15,   0.2,   0.3,    0.4,   0.5,  0.75,  1.0,  2.5,   5.0,  10.0, 20.0, 40.0, 80.0};

static void add(metric_histogram *h, const double *bounds, double x) {
    int i = 0;
    while (bounds[i] > 0 && x > bounds[i])
        i++;
    h->count[i]++;
    h->sum += x;
}

void metric_add_latency(metric_histogram *h, double seconds) {
    add(h, kLatency, seconds);
}

void metric_add_token_gap(metric_histogram *h, double seconds) {
    add(h, kGap, seconds);
}

typedef struct {
    buf *out;
    const char *model;
} writer;

static void describe(const writer *w, const char *name, const char *type, const char *help) {
    (void)buf_printf(w->out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* Writes the label model_name. Backslash, quote and newline in its value are escaped. */
static void write_label(const writer *w) {
    (void)buf_puts(w->out, "model_name=\"");
    for (const char *s = w->model; *s; s++)
        (void)buf_printf(w->out, *s == '\n' ? "\\n" : *s == '"' || *s == '\\' ? "\\%c" : "%c", *s);
    (void)buf_puts(w->out, "\"");
}

static void write_value(const writer *w, const char *name, double x) {
    (void)buf_puts(w->out, name);
    (void)buf_puts(w->out, "{");
    write_label(w);
    (void)buf_printf(w->out, "} %.17g\n", x);
}

static void write_one(const writer *w, const char *name, const char *type, const char *help,
                      double x) {
    describe(w, name, type, help);
    write_value(w, name, x);
}

static void write_histogram(const writer *w, const char *name, const char *help,
                            const metric_histogram *h, const double *bounds) {
    int64_t sum = 0;
    describe(w, name, "histogram", help);
    for (int i = 0;; i++) {
        sum += h->count[i];
        (void)buf_printf(w->out, "%s_bucket{", name);
        write_label(w);
        if (bounds[i] > 0)
            (void)buf_printf(w->out, ",le=\"%g\"} %lld\n", bounds[i], (long long)sum);
        else
            (void)buf_printf(w->out, ",le=\"+Inf\"} %lld\n", (long long)sum);
        if (!(bounds[i] > 0))
            break;
    }
    (void)buf_printf(w->out, "%s_count{", name);
    write_label(w);
    (void)buf_printf(w->out, "} %lld\n%s_sum{", (long long)sum, name);
    write_label(w);
    (void)buf_printf(w->out, "} %.9g\n", h->sum);
}

static void write_finished(const writer *w, const serve_metrics *m) {
    static const char *const reasons[] = {"abort", "stop", "length", "error"};
    const char *name = "vllm:request_success_total";
    describe(w, name, "counter", "Choices that ended, by reason.");
    for (int i = 0; i < 4; i++) {
        (void)buf_printf(w->out, "%s{finished_reason=\"%s\",", name, reasons[i]);
        write_label(w);
        (void)buf_printf(w->out, "} %lld\n", (long long)m->finished[i]);
    }
}

/* Writes the metrics of the model: the parts of its time on a device, and the experts of its
 * layers. */
static void write_model(const writer *w, const runner_stats *s) {
    write_one(w, "snapmla:model_launch_seconds_total", "counter",
              "The part of the model's seconds in which the host started the work of a GPU.",
              (double)s->launch_ns / 1e9);
    write_one(w, "snapmla:model_wait_seconds_total", "counter",
              "The part of the model's seconds in which the host waited for a GPU's results.",
              (double)s->wait_ns / 1e9);
    write_one(w, "snapmla:model_record_seconds_total", "counter",
              "The part of the launch seconds in which CUDA graphs were recorded.",
              (double)s->record_ns / 1e9);
    write_one(w, "snapmla:model_recorded_total", "counter",
              "Steps that were recorded, because their number of sequences was new.",
              (double)s->recorded);
    write_one(w, "snapmla:model_layers_total", "counter",
              "Layers whose experts were counted: on a GPU those of every 64th step.",
              (double)s->layers);
    write_one(w, "snapmla:model_experts_total", "counter",
              "Different experts that the tokens of these layers used.", (double)s->experts);
}

static void write_engine(const writer *w, const serve_load *load) {
    int pages = load->now.pages_used - load->now.pages_kept;
    double used = load->now.pages ? (double)pages / load->now.pages : 0;
    write_one(w, "vllm:num_requests_running", "gauge", "Sequences that are decoded now.",
              load->now.running);
    write_one(w, "vllm:num_requests_waiting", "gauge",
              "Sequences that wait: queued, or preempted and swapped out.",
              load->now.queued + load->now.swapped);
    write_one(w, "vllm:num_requests_swapped", "gauge", "Sequences that are swapped out.",
              load->now.swapped);
    write_one(w, "vllm:kv_cache_usage_perc", "gauge",
              "Share of the KV cache that requests use, 0 to 1.", used);
    write_one(w, "vllm:gpu_cache_usage_perc", "gauge", "The same under its older name.", used);
    write_one(w, "vllm:num_preemptions_total", "counter", "Preempted sequences.",
              (double)load->stats.preemptions);
    write_one(w, "vllm:prefix_cache_queries_total", "counter",
              "Prompt tokens of sequences, whether they were shared or computed.",
              (double)(load->stats.shared + load->stats.prefilled));
    write_one(w, "vllm:prefix_cache_hits_total", "counter",
              "Prompt tokens that were shared with an equal prompt.", (double)load->stats.shared);
    write_one(w, "snapmla:engine_steps_total", "counter", "Steps of the engine.",
              (double)load->stats.steps);
    write_one(w, "snapmla:engine_busy_seconds_total", "counter",
              "Seconds in which the engine had work.", (double)load->busy_ns / 1e9);
    write_one(w, "snapmla:engine_model_seconds_total", "counter",
              "The part of these seconds in which the model computed.",
              (double)load->stats.model_ns / 1e9);
    write_model(w, &load->stats.model);
}

static void write_replicas(const writer *w, const serve_totals *load) {
    const char *name = "snapmla:replica_sequences_total";
    describe(w, name, "counter", "Sequences that each replica has got.");
    for (int i = 0; i < load->replicas; i++) {
        (void)buf_printf(w->out, "%s{replica=\"%d\",", name, i);
        write_label(w);
        (void)buf_printf(w->out, "} %lld\n", (long long)load->begun[i]);
    }
}

void serve_metrics_write(const serve_metrics *m, const serve_totals *load, int connections,
                         int large, const char *model, buf *out) {
    writer w = {out, model};
    write_engine(&w, &load->all);
    if (load->replicas > 1)
        write_replicas(&w, load);
    write_one(&w, "snapmla:connections", "gauge", "Open connections.", connections);
    write_one(&w, "snapmla:large_requests", "gauge",
              "Large requests that wait to be read or are being read.", large);
    write_one(&w, "snapmla:requests_refused_total", "counter",
              "Requests that were refused with 429 or 503.", (double)m->refused);
    write_one(&w, "vllm:prompt_tokens_total", "counter", "Prompt tokens of accepted requests.",
              (double)m->prompt_tokens);
    write_one(&w, "vllm:generation_tokens_total", "counter", "Generated tokens.",
              (double)m->generation_tokens);
    write_finished(&w, m);
    write_histogram(&w, "vllm:time_to_first_token_seconds",
                    "Seconds from the arrival of a request to the first token of a choice.",
                    &m->first_token, kLatency);
    write_histogram(&w, "vllm:inter_token_latency_seconds",
                    "Seconds between consecutive tokens of a choice.", &m->between, kGap);
    write_histogram(&w, "vllm:time_per_output_token_seconds", "The same under its older name.",
                    &m->between, kGap);
    write_histogram(&w, "vllm:e2e_request_latency_seconds",
                    "Seconds from the arrival of a request to the end of its answer.", &m->request,
                    kLatency);
}
