/* cmd_conformance.c - `snapmla conformance` */
#include <unistd.h>

#include "base/term.h"
#include "harness/cmd/cmd.h"
#include "harness/cmd/print.h"
#include "harness/view/conformance_text.h"

static device_options device = {.backend = "all", .isa = "auto"};

static const opt options[] = {
    {.type = OPT_GROUP, .help = "Device"},
    {OPT_STR, "backend", 0, &device.backend, "NAME",
     "all (that open here, the CPU with each of its instruction sets), a name that info lists, or "
     "plugin:PATH",
     0, 0},
    {OPT_INT, "threads", 0, &device.threads, "N", "cpu: threads, 0 = all cores", 0, 1024},
    {OPT_STR, "isa", 0, &device.isa, "NAME", "of one backend: as for bench", 0, 0},
    {.type = OPT_END},
};

static snap_status run(opt_shared *shared, snap_err *err) {
    conformance_result r;
    buf text = {0};
    snap_status st = SNAP_OK;
    TRY(conformance_run_on(&r, &device, &cmd_cancelled, err));
    TRY(shared->json ? conformance_json(&r, &text, err)
                     : conformance_text(&r, term_use_color(STDOUT_FILENO), &text, err));
    TRY(print_text(&text, "the table", err));
    st = conformance_status(&r, err);
cleanup:
    conformance_release(&r);
    buf_release(&text);
    return st;
}

const opt_command cmd_conformance = {
    .name = "conformance",
    .summary = "whether a backend computes what it must, as a table",
    .synopsis = "[options]",
    .about =
        "Does a backend compute what kernels/mla.h promises? Both arms against the FP64 oracle of\n"
        "their own arithmetic, what must not change a bit (order of pages, unused slots, "
        "neighbours,\n"
        "reruns), steps whose answer is known, the dataflow against scalar code, bad arguments.\n"
        "A cell is the worst figure of a check, to be held against its bound; checks that ask for\n"
        "equality have none. Exit code 7 when a check fails.",
    .examples = "  snapmla conformance\n"
                "  snapmla conformance --backend plugin:./acme.so --json",
    .options = options,
    .run = run,
};
