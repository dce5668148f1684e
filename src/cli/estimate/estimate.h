/* Inside `carma estimate`: its arguments, its input, its output. */
#ifndef CARMA_CLI_ESTIMATE_ESTIMATE_H
#define CARMA_CLI_ESTIMATE_ESTIMATE_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

#include "api/spec_strings.h"
#include "base/error.h"
#include "estimate/estimate.h"
#include "estimate/summary/read.h"

struct job_spec;

/* The command line; NULL, -1 and false: not said. */
struct estimate_options {
    const char *job_file;
    char **command; /* in argv, after "--" */
    size_t command_count;
    struct job_spec *said; /* as the options of carma submit */
    const char *gpu, *profile;
    const struct estimator *estimator; /* NULL: all */
    int32_t quantile_permille;
    bool explain, json, questions;
};

/* A file as carma calibrate writes it; one line names file and line. */
int estimate_read_profile(struct machine_profile *profile, const char *path, struct error *err);

/* The known facts of the job. Released in any case once inited. */
struct estimate_input {
    struct summary summary; /* where has_summary */
    struct capture capture; /* where has_capture */
    bool has_summary, has_capture;
    bool configured;                /* the capture was not recorded: it was made of a model's config.json */
    struct transformer transformer; /* where configured */
    struct method method;
    char *from; /* owned: the file it used; NULL: only declared facts */
    struct machine_profile profile;
    struct spec_strings warnings;      /* of the summary */
    struct estimate_question question; /* points into the others */
};

void estimate_input_init(struct estimate_input *input);
void estimate_input_release(struct estimate_input *input);

/* Reads the files that the options name, a configuration into options->said. Where nothing tells of a job's memory, its
 * command is recorded. A negative errno with one line, that names the file (and line) where it is a file's. */
int estimate_input_read(struct estimate_input *input, struct estimate_options *options, struct error *err);

/* Runs the job's command in the sandbox until it has trained a step (docs/automatic-capture.md). The text of the
 * capture and its origin are the caller's. Where no sandbox can be had, it runs without one for a job that asks for a
 * capture, and that is a warning. A negative errno with one line that says why there is none. */
int estimate_record(const struct job_spec *spec, struct spec_strings *warnings, char **capture, char **from,
                    struct error *err);

/* Answers questions until there are no more (questions.c). Returns the exit status. */
int estimate_questions(const struct estimate_options *options);

/* One estimator's answer, and the same at the other end of the range. */
struct estimate_answer {
    const struct estimator *estimator;
    struct estimate estimate;
    int64_t low_bytes; /* enough with the probability 1 - quantile */
    bool known;
    struct error why_not; /* where not known */
};

/* 0, or the negative errno that *answer holds the reason of. */
int estimate_ask(const struct estimate_input *input, const struct estimator *estimator, struct estimate_answer *answer);

void estimate_print(const struct estimate_input *input, const struct estimate_answer *answer);
void estimate_print_all(const struct estimate_input *input, const struct estimate_answer *answers, size_t count);

/* With `all` as {"estimates": [...]}. */
void estimate_print_json(const struct estimate_input *input, const struct estimate_answer *answers, size_t count,
                         bool all, bool explain);

/* The parts of the bytes, largest layers first. */
struct estimate_part {
    char *name; /* owned */
    int64_t bytes;
    bool layer; /* one of a category's layers: its bytes are in the category's already */
};
struct estimate_parts {
    struct estimate_part *items;
    size_t count, capacity;
    const char *when; /* the peak is: "in the backward pass" */
};
/* Inits *parts; empty where the estimator does not know. They add up to answer->estimate.bytes, layers apart. */
void estimate_parts_of(struct estimate_parts *parts, const struct estimate_input *input,
                       const struct estimate_answer *answer);
void estimate_parts_release(struct estimate_parts *parts);
void estimate_print_parts(const struct estimate_parts *parts);

#endif
