/* bench-estimate-read SUMMARY...: how long it takes to read a model summary. The time of the processor, the best and
 * the middle of many runs. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/file.h"
#include "estimate/summary/read.h"

#define RUNS 1001

static double now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int compare(const void *left, const void *right)
{
    const double *a = left, *b = right;

    return *a < *b ? -1 : *a > *b;
}

static int measure(const char *path)
{
    double taken[RUNS];
    struct summary summary;
    struct error err;
    size_t length, layers = 0;
    char *text;

    if (file_read(path, SUMMARY_MAX_BYTES, &text, &length, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    for (int i = 0; i < RUNS; i++) {
        double begin = now_us();
        if (summary_read(&summary, path, text, length, &err)) {
            fprintf(stderr, "%s\n", err.text);
            free(text);
            return 1;
        }
        layers = summary.layers.count;
        summary_release(&summary);
        taken[i] = now_us() - begin;
    }
    free(text);
    qsort(taken, RUNS, sizeof *taken, compare);
    printf("%s: %zu bytes, %zu layers and containers: %.0f us, at best %.0f us\n", path, length, layers,
           taken[RUNS / 2], taken[0]);
    return 0;
}

int main(int argc, char **argv)
{
    int failed = argc < 2;

    if (failed)
        fprintf(stderr, "usage: bench-estimate-read SUMMARY...\n");
    for (int i = 1; i < argc; i++)
        failed |= measure(argv[i]);
    return failed;
}
