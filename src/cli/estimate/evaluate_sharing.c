/* carma evaluate --pairs, --threads and --mig: what the core predicts of jobs that share a GPU, beside what was
 * measured. */
#include <math.h>
#include <stdio.h>

#include "base/memory.h"
#include "cli/cli.h"
#include "cli/estimate/evaluate.h"
#include "cli/show/answer.h"
#include "config/config.h"
#include "core/share/rates.h"
#include "evaluation/sharing.h"

static int32_t default_bound_permille(void)
{
    struct config config;
    int32_t bound;

    config_init_default(&config);
    bound = config.core.max_slowdown_permille;
    config_release(&config);
    return bound;
}

static json_t *pairs_json(const struct sharing_pairs *pairs)
{
    return json_pack("{s:I, s:I, s:f, s:f, s:I, s:I, s:I, s:o}", "pairs", (json_int_t)pairs->pairs, "left_out",
                     (json_int_t)pairs->left_out, "rate_rmse", pairs->rate_rmse, "sum_bias", pairs->sum_bias, "within",
                     (json_int_t)pairs->within, "admitted", (json_int_t)pairs->admitted, "over_bound",
                     (json_int_t)pairs->over, "worst", isfinite(pairs->worst) ? json_real(pairs->worst) : json_null());
}

static void print_pairs(const struct sharing_pairs *pairs, int32_t bound_permille)
{
    double bound = bound_permille / 1000.0, admitted = rates_admitted_permille(bound_permille) / 1000.0;

    printf("%zu pairs of jobs by MPS. Not counted: %zu of a workload without a pair with itself.\n\n", pairs->pairs,
           pairs->left_out);
    printf("A job's rate: error %.3f (root mean square), in parts of its speed alone.\n", pairs->rate_rmse);
    printf("The sum of two rates: %+.3f too much in the mean.\n", pairs->sum_bias);
    printf("In %zu pairs no job was slowed more than %.2f times, the default of max_slowdown.\n", pairs->within, bound);
    printf("Admitted, with at most %.2f predicted: %zu pairs, %zu of them beyond the bound", admitted, pairs->admitted,
           pairs->over);
    if (isfinite(pairs->worst))
        printf("; the worst job was slowed %.2f times", pairs->worst);
    printf(".\n");
}

int evaluate_pairs(const struct evaluate_options *wanted)
{
    int32_t bound_permille = default_bound_permille();
    struct sharing_pairs pairs;
    struct error err;

    if (sharing_pairs(&pairs, wanted->pairs, bound_permille, &err))
        return cli_fail("%s", err.text);
    if (wanted->json) {
        CLEANUP(json_release) json_t *report = pairs_json(&pairs);
        cli_print_json(report);
    } else {
        print_pairs(&pairs, bound_permille);
    }
    return CLI_OK;
}

static json_t *threads_json(const struct sharing_threads *threads)
{
    json_t *list = json_array();

    for (int jobs = SHARING_MIX_LEAST; jobs <= SHARING_MIX_MOST; jobs++) {
        const struct sharing_gain *gain = &threads->of[jobs];
        if (gain->jobs)
            json_array_append_new(list, json_pack("{s:i, s:I, s:i, s:f, s:f}", "jobs", jobs, "rows",
                                                  (json_int_t)gain->jobs, "percent", gain->percent, "measured",
                                                  gain->measured, "predicted", gain->predicted));
    }
    return json_pack("{s:f, s:o}", "gain_error", threads->gain_error, "gains", list);
}

static void print_threads(const struct sharing_threads *threads)
{
    printf("Speed of a client with a share of the threads, as a multiple of that among as many without a limit:\n");
    for (int jobs = SHARING_MIX_LEAST; jobs <= SHARING_MIX_MOST; jobs++) {
        const struct sharing_gain *gain = &threads->of[jobs];
        if (gain->jobs)
            printf("%d jobs with %2d%% each: %.3f measured (of %zu jobs), %.3f predicted\n", jobs, gain->percent,
                   gain->measured, gain->jobs, gain->predicted);
    }
    printf("Largest error: %.3f.\n", threads->gain_error);
}

int evaluate_threads(const struct evaluate_options *wanted)
{
    struct sharing_threads threads;
    struct error err;

    if (sharing_threads(&threads, wanted->threads, &err))
        return cli_fail("%s", err.text);
    if (wanted->json) {
        CLEANUP(json_release) json_t *report = threads_json(&threads);
        cli_print_json(report);
    } else {
        print_threads(&threads);
    }
    return CLI_OK;
}

int evaluate_mig(const struct evaluate_options *wanted)
{
    struct sharing_mig mig;
    struct error err;

    if (sharing_mig(&mig, wanted->mig, &err))
        return cli_fail("%s", err.text);
    if (wanted->json) {
        CLEANUP(json_release)
        json_t *report = json_pack("{s:I, s:I, s:f, s:f}", "rates", (json_int_t)mig.rates, "left_out",
                                   (json_int_t)mig.left_out, "rate_rmse", mig.rate_rmse, "rate_bias", mig.rate_bias);
        cli_print_json(report);
        return CLI_OK;
    }
    printf("%zu rates on MIG instances, each predicted by the workload's rate on its smallest one.\n", mig.rates);
    printf("Not counted: %zu workloads on one instance only.\n\n", mig.left_out);
    printf("Error %.3f (root mean square), %+.3f in the mean.\n", mig.rate_rmse, mig.rate_bias);
    return CLI_OK;
}
