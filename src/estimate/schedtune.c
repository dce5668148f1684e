/* SchedTune's idea (Albahar et al., "SchedTune: A Heterogeneity-Aware GPU Scheduler for Deep Learning", CCGrid 2022).
 * It learns a regression from profiled jobs: from counts of the model to the memory of its training. Its authors'
 * program asks a random forest. The counts are the sizes of activations, parameters and input; figures of the GPU (CUDA
 * cores, SMs, bandwidth) come with them.
 *
 * Ours are boosted trees over the counts of utilisation.h, those three among them (data/models/schedtune.md). Their sum
 * is ln of the bytes that nvidia-smi shows, with FEATURES_CONTEXT_BYTES as context. All measured runs are of one GPU:
 * its figures can teach nothing. Another GPU changes the context alone. */
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "estimate/counts.h"
#include "estimate/learned/features.h"
#include "estimate/learned/trees.h"
#include "estimate/utilisation.h"

#define FOLDS 5

static int answer_program(const struct estimate_question *question, const struct program *program,
                          struct estimate *estimate, struct error *err)
{
    struct model model = model_find("schedtune");
    float counts[UTILISATION_COUNT];
    struct trees trees;
    char name[16] = "all";

    if (question->fold >= 0)
        snprintf(name, sizeof name, "fold%d", (int)question->fold % FOLDS);
    if (!trees_are_of(model, utilisation_feature_names, UTILISATION_COUNT) || trees_find(&trees, model, name))
        return error_set(err, ENOTSUP, "schedtune has no table of these features: train it anew");
    utilisation_features_compute(counts, program);
    return estimate_from_formula("schedtune",
                                 exp(trees_sum(&trees, counts, UTILISATION_COUNT)) - (double)FEATURES_CONTEXT_BYTES +
                                     (double)features_context_bytes(program, question->profile),
                                 estimate, err);
}

static int answer(const struct estimate_question *question, struct estimate *estimate, struct error *err)
{
    struct program lowered;
    int rc;

    if (question->capture)
        return answer_program(question, &question->capture->program, estimate, err);
    if (!question->layers)
        return error_set(err, ENOTSUP,
                         "schedtune counts what the model does: give its summary, --capture or --hf-config");
    rc = program_lower(&lowered, question->layers, &question->training, err);
    if (rc == 0)
        rc = answer_program(question, &lowered, estimate, err);
    program_release(&lowered);
    return rc;
}

const struct estimator estimator_schedtune = {
    "schedtune", "regression trees over counts of the model, as SchedTune's idea is (Albahar et al., 2022)", answer};
