/* The GPUs' memory, activity and energy during a play, from successive answers to GET /v1/gpus. The daemon's integrals
 * begin anew when it is restarted: an interval in which one ran backwards is left out of the means. */
#ifndef CARMA_CLI_PLAY_USAGE_H
#define CARMA_CLI_PLAY_USAGE_H

#include <jansson.h>
#include <stdbool.h>

struct usage {
    json_t *first; /* owned: the first and the latest answer */
    json_t *latest;
    double gpu_seconds; /* node time, over all GPUs, that the integrals below cover */
    double memory_byte_seconds;
    double sm_activity_seconds;
    bool complete; /* false: some GPU gave no integral in some answer */
};

void usage_init(struct usage *usage);
void usage_add(struct usage *usage, json_t *gpus); /* takes a reference of its own */
void usage_release(struct usage *usage);

double usage_energy_joules(const struct usage *usage);     /* -1: not known */
double usage_memory_mean_bytes(const struct usage *usage); /* of a GPU; -1: not known */
double usage_sm_activity_mean(const struct usage *usage);  /* 0 to 1; -1: not known */

#endif
