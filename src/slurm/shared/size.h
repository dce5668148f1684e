/* Sizes as options and Slurm write them. */
#ifndef CARMA_SLURM_SHARED_SIZE_H
#define CARMA_SLURM_SHARED_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "12G", "1.5G", "12288M": K, M, G and T are powers of 1024. With `bare`, a number alone is bytes, as Slurm's counts of
 * a GRES are; otherwise a unit is required. `end` (may be NULL) is set behind it; without `end` nothing may follow. */
bool size_parse(const char *text, bool bare, int64_t *bytes, const char **end);

/* The bytes of "gres:", or of "gres/" as newer releases of Slurm write it, before this entry of a list; or 0. */
size_t size_gres_prefix(const char *entry);

/* The count of one GRES in Slurm's list "gres:gpumem:12288M,gres:gpubig:1", or "gpumem(CNT:12884901888),gpubig(CNT:1)";
 * a name without a count has 1. false: not there. */
bool size_of_gres(const char *list, const char *name, int64_t *count);

/* What Slurm has counted for a job on one node; job_submit.lua has asked for it. */
struct counts {
    int64_t memory_bytes; /* of all its GPUs there */
    int64_t gpus;         /* 0: nothing is counted, so that there is no lease */
    bool guess;           /* nothing tells its memory: carmad may go by what it knows */
};

/* gpumem and gpuslot of Slurm's list of one node. A job has two of gpuslot for each GPU, and one more where its memory
 * is a guess. One without the other is no count. */
struct counts counts_of_gres(const char *list);

#endif
