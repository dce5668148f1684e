/* Sizes and durations as people write and read them. Inside carma: bytes, nanoseconds, milliwatts, permille. */
#ifndef CARMA_BASE_UNITS_H
#define CARMA_BASE_UNITS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define KIB (INT64_C(1) << 10)
#define MIB (INT64_C(1) << 20)
#define GIB (INT64_C(1) << 30)
#define TIB (INT64_C(1) << 40)

#define NS_PER_US  INT64_C(1000)
#define NS_PER_MS  INT64_C(1000000)
#define NS_PER_SEC INT64_C(1000000000)

#define HOST_MEMORY_LEAST (16 * MIB) /* of one job: with less no program of use begins */

#define UNITS_TEXT 32 /* room that every format function below needs */

/* "12G", "12GiB", "512M", "1.5G", "4096B": K, M, G, T are powers of 1024 (as in Slurm and gflow). Only "0" needs no
 * unit: some mean MiB by a bare number and others GiB. -EINVAL for anything else, a negative value included; -ERANGE
 * above 2^62. */
int parse_size(const char *text, int64_t *bytes, struct error *err);

/* Slurm's times, MM, MM:SS, HH:MM:SS, D-HH, D-HH:MM, D-HH:MM:SS, and a number with ms, s, m, h or d. */
int parse_duration(const char *text, int64_t *ns, struct error *err);

/* A factor such as "2.5", in permille: from 1 to 1000, or 0 for none. */
int parse_ratio(const char *text, int64_t *permille, struct error *err);

/* A whole decimal number in [low, high], nothing before or after it. */
int parse_integer(const char *text, int64_t low, int64_t high, int64_t *value, struct error *err);

/* "12.4 GiB", "512 MiB", "0 B"; returns text. */
char *format_bytes(int64_t bytes, char text[static UNITS_TEXT]);

/* "1-02:03:04", "2:03:04", "3:04", "0:07": days only where there are some; returns text. */
char *format_duration(int64_t ns, char text[static UNITS_TEXT]);

#endif
