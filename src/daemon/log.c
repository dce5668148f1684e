#include "daemon/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

void daemon_log(const char *format, ...)
{
    time_t now = time(NULL);
    struct tm local;
    char when[32];
    va_list args;

    strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", localtime_r(&now, &local));
    fprintf(stderr, "%s carmad: ", when);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}
