/* How well the core predicts what sharing a GPU does to jobs, compared with published measurements of the forms of
 * docs/formats/datasets.md. It is asked by the functions by which it decides (core/share/rates.h). */
#ifndef CARMA_EVALUATION_SHARING_H
#define CARMA_EVALUATION_SHARING_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Pairs under MPS. A workload's activity is found from its pair with itself; these pairs are not counted. Rates are
 * parts of the speed alone, slowdowns their inverses. NAN: of no pair. */
struct sharing_pairs {
    size_t pairs;
    size_t left_out;  /* a workload has no pair with itself */
    double rate_rmse; /* of each job's rate */
    double sum_bias;  /* mean of predicted less measured sum of a pair's rates */
    size_t within;    /* pairs in which no job was slowed beyond the bound */
    size_t admitted;  /* at the bound */
    size_t over;      /* admitted ones that are not `within` */
    double worst;     /* slowdown of a job in an admitted one */
};

int sharing_pairs(struct sharing_pairs *pairs, const char *path, int32_t bound_permille, struct error *err);

/* Clients of one MPS server, each with the same share of the threads: how much faster they run by that, as a mean over
 * the jobs of all mixes with as many of them. */
#define SHARING_MIX_LEAST 3
#define SHARING_MIX_MOST  7

struct sharing_threads {
    struct sharing_gain {
        size_t jobs;     /* measured ones; 0: the file has none */
        int32_t percent; /* the measured share that is nearest to the one that the core chooses */
        double measured, predicted;
    } of[SHARING_MIX_MOST + 1]; /* by the number of jobs in a mix, from SHARING_MIX_LEAST on */
    double gain_error;          /* the largest difference */
};

int sharing_threads(struct sharing_threads *threads, const char *path, struct error *err);

/* Jobs alone on MIG instances. A workload's activity is found from its rate on the smallest instance, by search; its
 * rates on the others are predicted from that. Whole GPUs (7g) are not counted. */
struct sharing_mig {
    size_t rates;    /* predicted ones */
    size_t left_out; /* workloads that were measured on one instance only */
    double rate_rmse, rate_bias;
};

int sharing_mig(struct sharing_mig *mig, const char *path, struct error *err);

#endif
