/* cmd_conformance.c - `snapmla conformance` */
#include <unistd.h>

#include "base/term.h"
#include "harness/cmd/cmd.h"
#include "harness/cmd/print.h"
#include "harness/view/conformance_text.h"

static device_options device = {.backend = "all", .isa = "auto", .scale = "max"};

static const opt options[] = {
    {.type = OPT_GROUP, .help = "Device"},
    {OPT_STR, "backend", 0, &device.backend, "NAME",
     "all: every backend that can be used here, and the CPU with each instruction set; or a name "
     "that 'snapmla info' lists; or plugin:PATH",
     0, 0},
    {OPT_INT, "threads", 0, &device.threads, "N", "CPU threads; 0 = all cores", 0, 1024},
    {OPT_STR, "isa", 0, &device.isa, "NAME",
     "instruction set or device of one backend, as in 'snapmla bench'", 0, 0},
    {OPT_STR, "scale", 0, &device.scale, "RULE",
     "how FP8 rows are scaled: max (the largest number becomes 448) or pow2 (that scale, rounded "
     "up to a power of two)",
     0, 0},
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
    .summary = "check that a backend computes correct results",
    .synopsis = "[options]",
    .about = "Checks that a backend computes what kernels/mla.h promises. Both arms are compared\n"
             "with the FP64 oracle of their own arithmetic. Some changes must not alter a single\n"
             "bit of the output: another order of pages, other content of unused slots, other\n"
             "sequences in the batch, a second run. Steps with a known answer, the dataflow\n"
             "against scalar code, and bad arguments are checked too. In steps with up to\n"
             "262,145 tokens of context or 256 sequences, each page counts: a page that is not\n"
             "read, or another one in its place, changes the result. Steps that need more than\n"
             "half of the device's memory are left out, and listed. A cell of the table is the\n"
             "largest error of a check, followed by its bound. Checks for equality have no\n"
             "bound. The exit code is 7 if a check fails.",
    .examples = "  snapmla conformance\n"
                "  snapmla conformance --backend plugin:./acme.so --json",
    .options = options,
    .run = run,
};
