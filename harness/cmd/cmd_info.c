/* cmd_info.c - `snapmla info` */
#include <unistd.h>

#include "base/term.h"
#include "harness/cmd/cmd.h"
#include "harness/cmd/device_table.h"
#include "harness/cmd/print.h"
#include "harness/record/info.h"
#include "harness/view/info_text.h"

static device_options device = {.isa = "auto"}; /* backend NULL: the whole machine */

static const opt options[] = {DEVICE_OPTIONS(device), {.type = OPT_END}};

static snap_status run(opt_shared *shared, snap_err *err) {
    js *doc = NULL;
    buf text = {0};
    snap_status st = SNAP_OK;
    TRY(device.backend ? backend_info(&device, &doc, err) : machine_info(&doc, err));
    if (shared->json) {
        TRY(print_json(doc, err));
    } else {
        TRY(device.backend ? backend_info_text(doc, &text, err)
                           : machine_info_text(doc, term_use_color(STDOUT_FILENO), &text, err));
        TRY(print_text(&text, "the text", err));
    }
cleanup:
    js_free(doc);
    buf_release(&text);
    return st;
}

const opt_command cmd_info = {
    .name = "info",
    .summary = "show what this build and this machine support",
    .synopsis = "[options]",
    .about = "Lists what this build and this machine support: program, processor, backends with\n"
             "their instruction sets, and configurations. It gives the reason if a backend\n"
             "cannot be used. With --backend it opens only that backend, and the exit code is 0\n"
             "only if it can be used.",
    .examples = "  snapmla info\n"
                "  snapmla info --json\n"
                "  snapmla info --backend plugin:./vendor.so",
    .options = options,
    .run = run,
};
