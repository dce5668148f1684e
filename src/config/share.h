/* The setting `share`: how jobs share GPUs, and which GPUs are used otherwise. */
#ifndef CARMA_CONFIG_SHARE_H
#define CARMA_CONFIG_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/share.h"

#define SHARE_OVERRIDES_MAX 64
#define SHARE_WHICH_SIZE    48 /* "GPU-" or "MIG-" and a UUID, NUL included */

/* One GPU, or all GPUs whose UUIDs begin with this text. */
struct share_override {
    char which[SHARE_WHICH_SIZE]; /* carma's number of the GPU in digits, or the beginning of its UUID */
    enum share_mode mode;
};

struct share_setting {
    enum share_mode mode; /* of all GPUs but these */
    struct share_override overrides[SHARE_OVERRIDES_MAX];
    size_t count;
};

/* "WAY", or "WAY, WHICH=WAY, ...": "mps, GPU-ab12=exclusive, 3=time-slice". WAY is one of auto, time-slice, mps,
 * mps:gpu, mps:node and exclusive; WHICH is a number or the beginning of a UUID. All GPUs have the same MPS domain:
 * *domain is the named one, and stays unchanged where MPS is not named. -EINVAL for anything else; both are then
 * unchanged. */
int share_setting_parse(const char *text, struct share_setting *setting, uint32_t *domain);

bool share_setting_names(const struct share_setting *setting, enum share_mode mode); /* of any GPU */

bool share_override_names(const struct share_override *override, uint32_t number, const char *uuid);

/* The way of the GPU with that number and UUID: the last override that names it decides. */
enum share_mode share_setting_of(const struct share_setting *setting, uint32_t number, const char *uuid);

#endif
