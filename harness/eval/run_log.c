#include "harness/eval/run_log.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/text.h"

void run_log(fs_log *log, const char *fmt, ...) {
    char raw[1200], text[1400], now[21];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(raw, sizeof raw, fmt, args);
    va_end(args);
    (void)text_show(text, sizeof text, raw);
    clock_utc(now);
    buf line = {0};
    if (buf_printf(&line, "%s %s\n", now, text)) {
        snap_status ignored = fs_log_append(log, buf_str(&line), line.len, NULL);
        (void)ignored;
    }
    buf_release(&line);
}
