/* How much GPU memory a job will need and how busy it will keep the SMs, before it starts. One vtable per estimator. */
#ifndef CARMA_ESTIMATE_ESTIMATE_H
#define CARMA_ESTIMATE_ESTIMATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "estimate/program/capture.h"
#include "estimate/layers.h"
#include "estimate/program/lower.h"
#include "estimate/profile.h"
#include "estimate/program/replay.h"
#include "estimate/transformer/transformer.h"

#define ESTIMATE_QUANTILE_PERMILLE 980 /* asked for where nobody says otherwise: too little for one job in fifty */

/* Earlier finished runs of the same job key. */
struct estimate_history {
    const int64_t *peak_bytes;     /* borrowed; per GPU */
    const int32_t *smact_permille; /* borrowed; -1 = not known; may be NULL */
    size_t count;
};

/* The input of an estimate; any part may be missing. */
struct estimate_question {
    const struct layer_list *layers;       /* complete (layers_complete) or NULL */
    const struct capture *capture;         /* or NULL */
    const struct transformer *transformer; /* of which the capture was made, or NULL; then method, too */
    const struct method *method;
    struct training training;
    const struct machine_profile *profile; /* never NULL */
    int64_t declared_bytes;                /* -1 = not */
    struct estimate_history history;
    int32_t quantile_permille; /* the answer should be enough with this probability; 500 = the median */
    int32_t fold;              /* -1; else answer with the models that have not seen this fold (evaluation) */
};

struct estimate {
    int64_t bytes;           /* per GPU, as nvidia-smi would show it: context included; at the quantile asked for */
    int64_t median_bytes;    /* the best guess without margin */
    int64_t low_bytes;       /* the same at the quantile 1000 - that; 0: ask for that to know */
    int32_t smact_permille;  /* SM activity while it runs alone, on the profile's GPU; -1: not known */
    int32_t smocc_permille;  /* SM occupancy; -1: not known */
    const char *family;      /* of networks: "mlp", "cnn", "transformer", "other"; NULL: not known */
    int64_t parameter_bytes; /* with that, they name the model whatever its batch size */
    /* 1000: measured on just this. Low: unknown layers, missing shapes, an untested kind. */
    int32_t confidence_permille;
    int32_t error_permille; /* its usual error, by which it is combined with others: combine.h */
    char source[40];  /* the estimator's name; of `auto` those that counted, the most precise first: "history+replay" */
    bool exceeds_gpu; /* more than the profile's GPU has */
    bool lower_bound; /* a part of the input is missing: the job needs more, by an unknown amount */
    /* The parts of the bytes (replay only; has_parts). Sum = median_bytes. */
    bool has_parts;
    int64_t parts[MEMORY_CATEGORY_COUNT]; /* bytes allocated after event peak_event of the program */
    uint32_t peak_event;
    int64_t allocated_bytes; /* as torch.cuda.max_memory_allocated counts; without the correction */
    int64_t fragmentation_bytes, context_bytes;
    int64_t correction_bytes; /* the trained model's, may be negative */
    char warning[160];        /* "" = none */
};

struct estimator {
    const char *name, *text; /* one line of text, with where it is published */
    /* 0; -ENOTSUP: the question lacks the input that this estimator needs (one line names it); other negative: bad
     * input. */
    int (*answer)(const struct estimate_question *question, struct estimate *estimate, struct error *err);
};

extern const struct estimator *const estimators[]; /* NULL last; auto history replay gpumemnet horus faketensor
                                                    declared */
const struct estimator *estimator_find(const char *name);

/* One per file.
 *
 * `auto` combines the answers of history, replay (of the capture, and of the summary) and gpumemnet (combine.h). Above
 * the median it is never less than a run of the history needed. Where a size is declared, an answer with a confidence
 * below 250 permille is passed over; without any other answer the declared size is it. Each answers at the quantile
 * asked for. Where the confidence is below 800 permille, auto adds half a permille of the
 * answer for each permille that is missing (600: 10%). The quantiles were calibrated on models that were understood in
 * full. It adds nothing for a quantile of 500 or less, nor to a lower bound. Neither history (measured on just this
 * job) nor a declared size (the user's word) gets any. */
extern const struct estimator estimator_auto, estimator_history, estimator_replay, estimator_gpumemnet, estimator_horus,
    estimator_faketensor, estimator_declared;

void estimate_name_source(struct estimate *estimate, const char *name);

/* With memory allocated inside and given back before the return: pure. */
int estimate(const struct estimator *estimator, const struct estimate_question *question, struct estimate *result,
             struct error *err);

/* The work of an estimate goes by the events that are replayed. Who asks for many says how many may be left: -E2BIG,
 * and *left is below 0, where a model has more. To be called before they are made. */
int estimate_spend(int64_t *left, int64_t events, const char *name, struct error *err);

/* About as many events as a summary's layers become, from above. */
int64_t estimate_layer_events(const struct layer_list *layers);

/* SM activity and occupancy from the program's features; `carma estimate` reports them beside any estimator's
 * memory. */
void estimate_utilisation(const struct estimate_question *question, const struct program *program,
                          struct estimate *result);

#endif
