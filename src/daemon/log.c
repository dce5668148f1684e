#include "daemon/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "base/memory.h"
#include "base/text/printable.h"

void daemon_log(const char *format, ...)
{
    time_t now = time(NULL);
    struct tm local;
    char when[32];
    CLEANUP(strbuf_release) struct strbuf line = {0};
    CLEANUP(free_ptr) char *text = NULL;
    va_list args;

    va_start(args, format);
    text = xvasprintf(format, args);
    va_end(args);
    strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", localtime_r(&now, &local));
    strbuf_printf(&line, "%s carmad: ", when);
    printable_append(&line, text); /* it may quote what users wrote */
    strbuf_puts(&line, "\n");
    fputs(line.text, stderr);
}
