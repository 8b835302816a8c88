#include "harness/eval/run_log.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"

void run_log(fs_log *log, const char *fmt, ...) {
    char text[1200], now[21];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < ' ')
            *c = ' ';
    clock_utc(now);
    buf line = {0};
    if (buf_printf(&line, "%s %s\n", now, text)) {
        snap_status ignored = fs_log_append(log, buf_str(&line), line.len, NULL);
        (void)ignored;
    }
    buf_release(&line);
}
