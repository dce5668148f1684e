/* What a job tells PyTorch's allocator by PYTORCH_ALLOC_CONF, or PYTORCH_CUDA_ALLOC_CONF as it was called first: words
 * NAME:VALUE with commas between them (c10/core/AllocatorConfig). */
#ifndef CARMA_ESTIMATE_ALLOCATOR_SETTINGS_H
#define CARMA_ESTIMATE_ALLOCATOR_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

struct allocator_settings {
    bool expandable;           /* expandable_segments:True */
    bool driver;               /* backend:cudaMallocAsync: the driver's own pool of memory */
    int64_t unsplit_bytes;     /* max_split_size_mb: requests and blocks from here on are kept apart; 0: none are */
    int32_t most_permille;     /* per_process_memory_fraction: of the GPU's memory; 0: all of it */
    int32_t collects_permille; /* garbage_collection_threshold: of what most_permille allows. Without that PyTorch does
                                  not look at it; 0: never */
};

/* Adds what stands anywhere in the text, as in an environment's value, a command or a script. Values that PyTorch
 * refuses are left out. */
void allocator_settings_read(struct allocator_settings *settings, const char *text);

/* Whether blocks are taken and split as without settings, but for expandable segments. */
bool allocator_settings_usual(const struct allocator_settings *settings);

#define ALLOCATOR_SETTINGS_TEXT 160
/* As PyTorch reads it; "" where all is as usual. */
const char *allocator_settings_text(const struct allocator_settings *settings, char text[ALLOCATOR_SETTINGS_TEXT]);

#endif
