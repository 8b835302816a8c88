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
    .about = "Checks that a backend computes what kernels/mla.h promises: both arms against the\n"
             "FP64 oracle of their own arithmetic; what must not change a bit (order of pages,\n"
             "unused slots, other sequences, reruns); steps with a known answer; the dataflow\n"
             "against scalar code; bad arguments. A cell of the table is the largest error of a\n"
             "check, next to its bound. Checks of equality have no bound. The exit code is 7 if a\n"
             "check fails.",
    .examples = "  snapmla conformance\n"
                "  snapmla conformance --backend plugin:./acme.so --json",
    .options = options,
    .run = run,
};
