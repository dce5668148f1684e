/* Usage: carma evaluate --dataset KIND:FILE --questions | bench-gpumemnet (rows of other families are left out).
 * Classifies every row by both kinds of GPUMemNet's classifiers: by the model that has not seen the row's fold, and by
 * that of all rows. Prints `KEY FAMILY CLASSIFIER FOLD CLASS LOGIT...`, and on standard error the time of one answer.
 * bench/gpumemnet compares it with Python's results on the same tables. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "base/memory.h"
#include "questions.h"
#include "estimate/learned/gpumemnet.h"

static double now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int print_row(const struct question *question, const struct gpumemnet_input *input, enum gpumemnet_kind kind,
                     int32_t fold, struct error *err)
{
    struct gpumemnet_classes classes;
    int rc = gpumemnet_classify(input, kind, fold, &classes, err);

    if (rc)
        return rc;
    printf("%016" PRIx64 " %s %s %d %u", question->key, gpumemnet_family_names[input->family],
           gpumemnet_kind_names[kind], (int)fold, classes.best);
    for (uint32_t c = 0; c < classes.count; c++)
        printf(" %.6f", (double)classes.logits[c]);
    putchar('\n');
    return 0;
}

static double spent_us[GPUMEMNET_KIND_COUNT];
static size_t answers;

static int use(struct question *question, const json_t *json, struct error *err)
{
    CLEANUP(gpumemnet_input_release) struct gpumemnet_input input = {0};
    int rc = gpumemnet_input_read(&input, &question->layers, question->training.batch_size, err);

    if (rc == -ENOTSUP) /* no family of ours */
        return 0;
    for (int kind = 0; rc == 0 && kind < GPUMEMNET_KIND_COUNT; kind++) {
        double start = now_us();
        rc = print_row(question, &input, kind, (int32_t)(question->key % QUESTION_FOLDS), err);
        if (rc == 0)
            rc = print_row(question, &input, kind, -1, err);
        spent_us[kind] += now_us() - start;
    }
    answers += 2;
    return rc;
}

int main(void)
{
    int status = each_question("bench-gpumemnet", use);

    for (int kind = 0; answers && kind < GPUMEMNET_KIND_COUNT; kind++)
        fprintf(stderr, "%s: %.3f ms an answer\n", gpumemnet_kind_names[kind], spent_us[kind] / 1e3 / (double)answers);
    return status;
}
