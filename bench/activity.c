/* Reads lines `MODEL ESTIMATED OBSERVED` (the first without spaces, the others in permille). Prints for each the
 * estimate corrected by all lines of other models, and by all other lines. bench/activity asks it. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "estimate/shrinkage.h"

#define ROWS 10000

struct row {
    char model[64];
    int estimated, observed;
};

static struct shrinkage_errors errors_of(const struct row *rows, size_t count, const char *model,
                                         const struct row *without)
{
    struct shrinkage_errors errors = {0};

    for (size_t i = 0; i < count; i++) {
        if (&rows[i] == without || strcmp(rows[i].model, model) != 0)
            continue;
        errors.count++;
        errors.sum_permille += rows[i].observed - rows[i].estimated;
    }
    return errors;
}

static struct shrinkage_errors errors_of_others(const struct row *rows, size_t count, const char *model)
{
    struct shrinkage_errors others = {0};

    for (size_t i = 0; i < count; i++) {
        bool first = strcmp(rows[i].model, model) != 0;
        for (size_t k = 0; k < i; k++)
            first = first && strcmp(rows[k].model, rows[i].model) != 0;
        if (!first)
            continue;
        struct shrinkage_errors own = errors_of(rows, count, rows[i].model, NULL);
        others.count++;
        others.sum_permille += shrinkage_mean(&own);
    }
    return others;
}

int main(void)
{
    CLEANUP(free_ptr) struct row *rows = xcalloc(ROWS, sizeof *rows);
    size_t count = 0;

    while (count < ROWS && scanf("%63s %d %d", rows[count].model, &rows[count].estimated, &rows[count].observed) == 3)
        count++;
    for (size_t i = 0; i < count; i++) {
        const struct row *row = &rows[i];
        struct shrinkage_errors none = {0}, others = errors_of_others(rows, count, row->model);
        struct shrinkage_errors own = errors_of(rows, count, row->model, row);
        printf("%d %d\n", (int)shrinkage_apply(row->estimated, &others, &none),
               (int)shrinkage_apply(row->estimated, &others, &own));
    }
    return 0;
}
