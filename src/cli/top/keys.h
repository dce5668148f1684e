/* The meaning of the keys of `carma top`. Pure: the request for the daemon is returned. */
#ifndef CARMA_CLI_TOP_KEYS_H
#define CARMA_CLI_TOP_KEYS_H

#include "cli/top/model.h"

/* Keys that are not characters. */
enum top_key {
    TOP_KEY_UP = 0x110000, /* beyond all characters */
    TOP_KEY_DOWN,
    TOP_KEY_PAGE_UP,
    TOP_KEY_PAGE_DOWN,
    TOP_KEY_HOME,
    TOP_KEY_END,
    TOP_KEY_TAB_BACK,
    TOP_KEY_BACKSPACE
};

enum top_request { TOP_NOTHING, TOP_QUIT, TOP_CANCEL, TOP_HOLD, TOP_RELEASE };

/* *job: the job of TOP_CANCEL, TOP_HOLD and TOP_RELEASE. */
enum top_request top_key(struct top_model *model, uint32_t key, int64_t *job);

#endif
