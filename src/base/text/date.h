/* Days and times of day as people write them, in local time. */
#ifndef CARMA_BASE_DATE_H
#define CARMA_BASE_DATE_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* The text is not of the format; it is, with a day that there is not, a slip of the pen; it was read. */
enum date_read { DATE_OTHER, DATE_NONE, DATE_READ };

/* A text that begins with a year of four digits, by a format of strptime. */
enum date_read date_parse(const char *text, const char *format, struct tm *parsed);

/* As nanoseconds since the Unix epoch; members out of range count on, into the next day or month. */
int64_t date_ns(const struct tm *local);

#endif
