/* Tests the times of exchanges, from measured curves or from links
 * (harness/bench/predict_links.h). */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fs.h"
#include "generator/local/cuda/sums.h"
#include "harness/bench/predict_links.h"
#include "harness/test/predict_named.h"

/* ---- exchanges ---- */

static predict_links links_of_two(void) {
    predict_links l = {.read_rate = 3e12};
    const exchange_record rows[] = {exchange_row("all_reduce", "one_shot", 4096, 3000),
                                    exchange_row("all_reduce", "one_shot", 1024, 2000),
                                    exchange_row("all_reduce", "nccl", 1024, 6000),
                                    exchange_row("all_reduce", "nccl", 1 << 20, 10000),
                                    exchange_row("all_gather", "nccl", 1024, 4000),
                                    exchange_row("all_gather", "nccl", 1 << 20, 8000),
                                    exchange_row("reduce_scatter", "nccl", 1024, 5000),
                                    exchange_row("reduce_scatter", "nccl", 1 << 20, 9000),
                                    exchange_row("all_to_all", "nccl", 1024, 1)};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        predict_links_add(&l, &rows[i]);
    return l;
}

static const double kLaunch = 2000; /* the shortest one-shot exchange below, in ns */

static predict_time time_of(const predict_links *l, const char *layout, const predict_work *w) {
    const predict_layout of = layout_named(layout);
    predict_time t = {0};
    CU_ASSERT_EQUAL_FATAL(predict_links_time(l, w, &of, &t, NULL), SNAP_OK);
    return t;
}

static double sums_ns(const predict_links *l, int parts, double bytes) {
    const predict_work w = {.sums = 2, .sum_bytes = bytes};
    char layout[16];
    (void)snprintf(layout, sizeof layout, "TP%d", parts);
    return time_of(l, layout, &w).ns;
}

static predict_time gathers_of(const predict_links *l, const char *layout, double gather,
                               double scatter) {
    const predict_work w = {.gathers = 1, .gather_bytes = gather, .scatter_bytes = scatter};
    return time_of(l, layout, &w);
}

static void test_measured_curves(void) {
    predict_links l = links_of_two();
    CU_ASSERT_EQUAL(sums_ns(&l, 2, 512), 2 * 2000);  /* below the smallest size */
    CU_ASSERT_EQUAL(sums_ns(&l, 2, 2560), 2 * 2500); /* half-way between two sizes */
    CU_ASSERT_EQUAL(sums_ns(&l, 4, 1024), 2 * (2000 + 1000 * 2. / 3)); /* three peers are read */
    CU_ASSERT_EQUAL(sums_ns(&l, 8, 4096), 2 * 7 * 3000.);              /* seven of them */
    CU_ASSERT_EQUAL(sums_ns(&l, 2, 2 << 20), 2 * 512 * 3000.); /* the longest one-shot message */
    /* A longer message takes NCCL's time. Another launch then adds the sum, which moves 3 x its
     * bytes. */
    double longer = 4 << 20, add = kLaunch + 3 * longer / 3e3;
    CU_ASSERT_DOUBLE_EQUAL(sums_ns(&l, 2, longer), 2 * (40000 + add), 1e-6);
    /* Over 4 ranks, each link carries 2 x 3/4 of the bytes instead of 2 x 1/2. */
    CU_ASSERT_DOUBLE_EQUAL(sums_ns(&l, 4, longer), 2 * (60000 + add), 1e-6);
}

/* A part of one size takes the one-shot curve. From the same size on, NCCL has buffers of the parts
 * of both ranks, and the kernel that adds the sums is separate. */
static void test_gathers(void) {
    predict_links l = links_of_two();
    CU_ASSERT_EQUAL(gathers_of(&l, "DP2/EP2", 1024, 4096).ns, 2000 + 3000);
    CU_ASSERT_EQUAL(gathers_of(&l, "DP2/EP2", 1024, 4096).high_ns, 2 * (2000 + 3000));
    CU_ASSERT_DOUBLE_EQUAL(gathers_of(&l, "DP4/EP4", 1024, 1024).ns, 2 * (2000 + 2000. / 3), 1e-6);
    double part = 3 << 20, add = kLaunch + 3 * part / 3e3;
    CU_ASSERT_DOUBLE_EQUAL(gathers_of(&l, "DP2/EP2", part, part).ns, 6 * (8000 + 9000) + add, 1e-6);
    /* Over 4 ranks, each link carries three parts instead of one. */
    CU_ASSERT_DOUBLE_EQUAL(gathers_of(&l, "DP4/EP4", part, part).ns, 18 * (8000 + 9000) + add,
                           1e-6);
}

/* Each exchange takes the curve of its own number of ranks, else of the largest number below it,
 * else of the smallest above it. */
static void test_curves_of_several_numbers_of_ranks(void) {
    predict_links l = links_of_two();
    exchange_record four = exchange_row("all_reduce", "one_shot", 1024, 4000),
                    six = exchange_row("all_gather", "nccl", 1024, 7000);
    four.ranks = 4;
    six.ranks = 6;
    predict_links_add(&l, &four);
    predict_links_add(&l, &six);
    CU_ASSERT_EQUAL(sums_ns(&l, 2, 1024), 2 * 2000);
    CU_ASSERT_EQUAL(sums_ns(&l, 3, 512), 2 * 2000);
    CU_ASSERT_EQUAL(sums_ns(&l, 4, 1024), 2 * 4000);
    CU_ASSERT_EQUAL(sums_ns(&l, 8, 3072), 2 * 4000 * 7.); /* seven peers instead of three */
    memset(l.curves[CURVE_ONE_SHOT][2].of, 0, sizeof l.curves[CURVE_ONE_SHOT][2].of);
    l.curves[CURVE_ONE_SHOT][2].n = 0;
    CU_ASSERT_EQUAL(sums_ns(&l, 2, 3072), 2 * 4000); /* one peer instead of three */
    four.ranks = 16;
    predict_links_add(&l, &four); /* a row of 16 ranks, more than a node has, is not used */
    CU_ASSERT_EQUAL(sums_ns(&l, 8, 3072), 2 * 4000 * 7.);
}

/* Adds curves of the three operations on the path `step`. In those of the last two, the bytes count
 * the parts of both ranks. */
static void add_steps(predict_links *l) {
    const exchange_record rows[] = {exchange_row("all_reduce", "step", 1024, 2400),
                                    exchange_row("all_reduce", "step", 4096, 3600),
                                    exchange_row("all_gather", "step", 2048, 2100),
                                    exchange_row("all_gather", "step", 8192, 3300),
                                    exchange_row("reduce_scatter", "step", 2048, 2500),
                                    exchange_row("reduce_scatter", "step", 8192, 4000)};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        predict_links_add(l, &rows[i]);
}

/* Short exchanges take the curves of the path `step`, each operation its own. The limits and the
 * curves of NCCL do not change. */
static void test_steps(void) {
    predict_links l = links_of_two(), before = l;
    add_steps(&l);
    CU_ASSERT_EQUAL(sums_ns(&l, 2, 1024), 2 * 2400);
    CU_ASSERT_EQUAL(sums_ns(&l, 2, 2560), 2 * 3000);        /* half-way from 1024 to 4096 */
    CU_ASSERT_EQUAL(sums_ns(&l, 2, 2 << 20), 2 * 1843200.); /* 512 times 3600: 4096 B to 2 MiB */
    /* Each rank of four reads three messages, which take as long as one of 3072 bytes. That is 2/3
     * of the way from 1024 to 4096 bytes. */
    CU_ASSERT_DOUBLE_EQUAL(sums_ns(&l, 4, 1024), 2 * 3200, 1e-6);
    CU_ASSERT_EQUAL(sums_ns(&l, 2, (2 << 20) + 16), sums_ns(&before, 2, (2 << 20) + 16));
    CU_ASSERT_EQUAL(sums_ns(&l, 4, 1 << 20), sums_ns(&before, 4, 1 << 20)); /* above 2 MiB / 3 */

    CU_ASSERT_EQUAL(gathers_of(&l, "DP2/EP2", 1024, 4096).ns, 2100 + 4000);
    CU_ASSERT_EQUAL(gathers_of(&l, "DP2/EP2", 1024, 4096).low_ns, 1050 + 2000);
    CU_ASSERT_EQUAL(gathers_of(&l, "DP2/EP2", 2560, 2560).ns, 2700 + 3250); /* half-way */
    /* Three parts of 1024 bytes come to each rank: as with two ranks and a part of 3072 bytes. */
    CU_ASSERT_DOUBLE_EQUAL(gathers_of(&l, "DP4/EP4", 1024, 1024).ns, 2900 + 3500, 1e-6);
    CU_ASSERT_EQUAL(gathers_of(&l, "DP2/EP2", 2 << 20, 2 << 20).ns, 512 * (3300. + 4000));
    double part = 3 << 20;
    CU_ASSERT_EQUAL(gathers_of(&l, "DP2/EP2", part, part).ns,
                    gathers_of(&before, "DP2/EP2", part, part).ns);
}

/* The curve of four ranks has the bytes of four parts. With two ranks, one part comes to each rank
 * instead of three. */
static void test_steps_of_several_numbers_of_ranks(void) {
    predict_links l = links_of_two();
    exchange_record gathers[] = {exchange_row("all_gather", "step", 4096, 3000),
                                 exchange_row("all_gather", "step", 16384, 6000)};
    for (int i = 0; i < 2; i++) {
        gathers[i].ranks = 4;
        predict_links_add(&l, &gathers[i]);
    }
    double scatter = gathers_of(&l, "DP4/EP4", 0, 1024).ns - 3000;
    CU_ASSERT_EQUAL(gathers_of(&l, "DP4/EP4", 1024, 1024).ns, 3000 + scatter);
    CU_ASSERT_EQUAL(gathers_of(&l, "DP4/EP4", 2560, 1024).ns, 4500 + scatter); /* half-way */
    /* With two ranks, the path `one_shot` was measured and the gather of the path `step` was not.
     * So 7680 bytes take 15/8 of the time of 4096. */
    CU_ASSERT_EQUAL(gathers_of(&l, "DP2/EP2", 7680, 1024).ns, 5625 + 2000);
    /* For eight ranks, the curve of four comes before that of two. 1536 bytes from each of seven
     * ranks are as many as 3584 from each of three. */
    CU_ASSERT_DOUBLE_EQUAL(gathers_of(&l, "DP8/EP8", 1536, 0).ns, 5500 + 2000, 1e-6);
    /* Without the curve of two ranks, the curve of four is used: 7680 bytes from one rank are as
     * many as 2560 from each of three. The shortest exchange in one launch then takes 3000 ns, not
     * 2000, and so does the launch that adds the result of NCCL. */
    predict_links other = l;
    other.curves[CURVE_ONE_SHOT][2].n = 0;
    CU_ASSERT_EQUAL(gathers_of(&other, "DP2/EP2", 7680, 3 << 20).ns,
                    4500 + gathers_of(&l, "DP2/EP2", 0, 3 << 20).ns - 2000 + 1000);
}

/* The all-reduce of the path `one_shot` was measured with four ranks, and the all-gather of the
 * path `step` with two. */
static void test_fewer_ranks_in_steps(void) {
    predict_links l = links_of_two();
    const exchange_record gather = exchange_row("all_gather", "step", 2048, 2100);
    exchange_record stored = exchange_row("all_reduce", "one_shot", 1024, 7000);
    stored.ranks = 4;
    predict_links_add(&l, &gather);
    predict_links_add(&l, &stored);
    CU_ASSERT_EQUAL(gathers_of(&l, "DP2/EP2", 1024, 0).ns, 2100 + 2000);
    CU_ASSERT_EQUAL(gathers_of(&l, "DP4/EP4", 1024, 0).ns, 7000 + 7000);
    CU_ASSERT_EQUAL(gathers_of(&l, "DP8/EP8", 256, 0).ns, 7000 + 7000);
}

/* Each operation without a curve of its own uses that of the one-shot all-reduce. With a link,
 * there is no curve. */
static void test_missing_steps(void) {
    predict_links l = links_of_two();
    const exchange_record gather = exchange_row("all_gather", "step", 2048, 2100),
                          sum = exchange_row("all_reduce", "step", 1024, 2400);
    predict_links_add(&l, &gather);
    CU_ASSERT_EQUAL(sums_ns(&l, 2, 1024), 2 * 2000);
    CU_ASSERT_EQUAL(gathers_of(&l, "DP2/EP2", 1024, 1024).ns, 2100 + 2000);
    predict_links none = {.read_rate = 3e12};
    predict_links_add(&none, &sum);
    CU_ASSERT_EQUAL(sums_ns(&none, 2, 1024), 2 * 2400);
    const predict_layout two = layout_named("DP2/EP2");
    const predict_work w = {.gathers = 1, .gather_bytes = 1024, .scatter_bytes = 1024};
    predict_time t;
    CU_ASSERT_EQUAL(predict_links_time(&none, &w, &two, &t, NULL), SNAP_E_USAGE);
    l.has_link = true;
    l.link = (predict_link){"x", {1, 2, 3}, {200, 100, 50}};
    CU_ASSERT_DOUBLE_EQUAL(gathers_of(&l, "DP2/EP2", 1000, 0).ns, 2010 + 2000 + kLaunch, 1e-6);
}

/* Of 16 ranks, 8 are in each node. So each of the 8 ports of a node carries one part of another
 * node, and each link inside a node the 15 parts of all others. Of 8 ranks with two GPUs in each
 * replica, 4 are in a node. With TP8, every part crosses the network. */
static void test_networks(void) {
    predict_links l = links_of_two();
    l.network = (predict_link){"n", {1, 4, 9}, {40, 20, 10}};
    double part = 8 << 20, add = kLaunch + 3 * part / 3e3,
           near = 8000. * 15 * 8 * 2; /* NCCL's buffers have 15 x 16 MiB in this time */
    CU_ASSERT_DOUBLE_EQUAL(gathers_of(&l, "DP16/EP16", part, 0).ns, near + 5000 + kLaunch, 1e-6);
    l.network.gb_s[1] = 0.02;
    double far = 4000 + part / 0.02;
    CU_ASSERT_DOUBLE_EQUAL(gathers_of(&l, "DP16/EP16", part, part).ns, 2 * far + add, 1e-3);
    CU_ASSERT_DOUBLE_EQUAL(gathers_of(&l, "DP8/TP2/EP16", part, part).ns, 2 * far + add, 1e-3);
    far = 4000 + 3 * part / 0.02;
    CU_ASSERT_DOUBLE_EQUAL(gathers_of(&l, "DP4/TP8/EP32", part, part).ns, 2 * far + add, 1e-3);
}

/* An all-to-all of the rows that are needed carries their share. It is used where it is shorter:
 * not for messages of the one-shot kernel. The launch that adds a result adds up the outputs of the
 * other ranks. */
static void test_all_to_all(void) {
    predict_links l = links_of_two();
    const exchange_record row = exchange_row("all_to_all", "nccl", 1 << 20, 8000);
    const predict_layout four = layout_named("DP4/EP4"), many = layout_named("DP16/EP16");
    double part = 8 << 20, reach = 0.25;
    predict_work w = {.gathers = 1, .gather_bytes = part, .scatter_bytes = part, .reach = reach};
    predict_time t, before;
    l.curves[CURVE_ALL_TO_ALL][2].n = 0;
    predict_links_add(&l, &row);
    l.network = (predict_link){"n", {1, 4, 9}, {40, 0.02, 0.01}};
    CU_ASSERT_EQUAL(predict_links_time(&l, &w, &four, &before, NULL), SNAP_OK);
    l.all_to_all = true;
    CU_ASSERT_EQUAL(predict_links_time(&l, &w, &four, &t, NULL), SNAP_OK);
    /* a part of 8 MiB takes 16 x 8000 ns between two ranks, and three parts go to each rank */
    double add = kLaunch + (2 + 3 * reach) * part / 3e3;
    CU_ASSERT_DOUBLE_EQUAL(t.ns, 2 * 3 * reach * 16 * 8000 + add, 1e-6);
    CU_ASSERT(t.ns < before.ns);
    w.gather_bytes = w.scatter_bytes = 1024; /* the one-shot kernel is faster than this curve */
    CU_ASSERT_EQUAL(predict_links_time(&l, &w, &four, &t, NULL), SNAP_OK);
    CU_ASSERT_DOUBLE_EQUAL(t.ns, 2 * (2000 + 2000. / 3), 1e-6);
    w = (predict_work){.gathers = 1, .gather_bytes = part, .reach = reach, .node_reach = 0.5};
    CU_ASSERT_EQUAL(predict_links_time(&l, &w, &many, &t, NULL), SNAP_OK);
    l.all_to_all = false;
    CU_ASSERT_EQUAL(predict_links_time(&l, &w, &many, &before, NULL), SNAP_OK);
    /* The network carries half of the bytes of the gather. The scatter has none. */
    CU_ASSERT_DOUBLE_EQUAL(before.ns - t.ns, part / 0.02 / 2, 1e-3);
}

static void test_links_replace_curves(void) {
    predict_links l = links_of_two();
    l.has_link = true;
    l.link = (predict_link){"x", {1, 2, 3}, {200, 100, 50}};
    double bytes = 1 << 20;
    CU_ASSERT_DOUBLE_EQUAL(sums_ns(&l, 8, bytes),
                           2 * (2000 + bytes * 2 * 7 / 8 / 100 + kLaunch + 3 * bytes / 3e3), 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(gathers_of(&l, "DP8/EP8", bytes, bytes).ns,
                           2 * (2000 + bytes * 7 / 100) + kLaunch + 3 * bytes / 3e3, 1e-6);
}

static void test_missing_curves(void) {
    predict_links l = {.read_rate = 3e12};
    const exchange_record row = exchange_row("all_reduce", "one_shot", 1024, 3000);
    const predict_layout layout = {.ranks = {2, 2, true}};
    const predict_work w = {.gathers = 1, .gather_bytes = 4 << 20};
    predict_time t;
    snap_err err = {0};
    predict_links_add(&l, &row);
    CU_ASSERT_EQUAL(predict_links_time(&l, &w, &layout, &t, &err), SNAP_E_USAGE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "no measured all_gather inside a graph"));
}

static snap_status find_link(const char *text, const char *name, predict_link *out, snap_err *err) {
    js *links = js_parse(text, strlen(text), "links", err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(links);
    snap_status st = predict_link_find(out, name, links, err);
    js_free(links);
    return st;
}

static void test_files_of_links(void) {
    predict_link l;
    snap_err err = {0}, none = {0}, undated = {0};
    const char *good = "{\"links\": [{\"name\": \"a\", \"gb_s\": [3, 2, 1], \"latency_us\": "
                       "[1, 2, 3], \"source\": \"s\", \"date\": \"d\"}]}";
    CU_ASSERT_EQUAL(find_link(good, "a", &l, &err), SNAP_OK);
    CU_ASSERT_EQUAL(l.gb_s[1], 2);
    CU_ASSERT_EQUAL(find_link(good, "b", &l, &none), SNAP_E_USAGE);
    CU_ASSERT_STRING_EQUAL(none.text, "no link 'b' (a)");
    CU_ASSERT_EQUAL(find_link("{\"links\": [{\"name\": \"a\"}]}", "a", &l, &undated), SNAP_E_INPUT);
    CU_ASSERT_STRING_EQUAL(undated.text, "link 'a' has no source or no date");
    CU_ASSERT_EQUAL(find_link("{\"links\": [{\"name\": \"a\", \"source\": \"s\", \"date\": \"d\", "
                              "\"gb_s\": [1, 0, 1], \"latency_us\": [1, 2, 3]}]}",
                              "a", &l, &err),
                    SNAP_E_INPUT);
    CU_ASSERT_EQUAL(find_link("[]", "a", &l, &err), SNAP_E_USAGE);
}

CU_TestInfo tests_predict_links[] = {
    {"measured curves", test_measured_curves},
    {"all-gathers and reduce-scatters", test_gathers},
    {"curves of several numbers of ranks", test_curves_of_several_numbers_of_ranks},
    {"exchanges as in a step", test_steps},
    {"exchanges as in a step, of several numbers of ranks", test_steps_of_several_numbers_of_ranks},
    {"exchanges as in a step, with fewer ranks", test_fewer_ranks_in_steps},
    {"no exchanges as in a step", test_missing_steps},
    {"parts that cross a link between nodes", test_networks},
    {"an all-to-all of the rows that are needed", test_all_to_all},
    {"links instead of curves", test_links_replace_curves},
    {"missing curves are an error", test_missing_curves},
    {"files of links", test_files_of_links},
    CU_TEST_INFO_NULL,
};
