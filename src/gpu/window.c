#include "gpu/window.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

void gpu_window_init(struct gpu_window *window, int64_t length_ns)
{
    assert(length_ns > 0);
    memset(window, 0, sizeof *window);
    window->length_ns = length_ns;
}

/* Where the slot lies that is the place-th from the oldest. */
static uint32_t place_index(const struct gpu_window *window, uint32_t place)
{
    return (window->first + place) % GPU_WINDOW_SLOTS;
}

void gpu_window_push(struct gpu_window *window, int64_t at_ns, int32_t activity_permille)
{
    /* Rounded up, so that never more slots than there are have their time within the window. */
    int64_t spacing_ns = (window->length_ns + GPU_WINDOW_SLOTS - 1) / GPU_WINDOW_SLOTS;
    struct gpu_window_slot *slot = NULL;

    while (window->used && window->slots[place_index(window, window->used - 1)].at_ns > at_ns)
        window->used--;
    if (activity_permille < 0)
        return;
    if (window->used)
        slot = &window->slots[place_index(window, window->used - 1)];
    if (!slot || at_ns - slot->at_ns >= spacing_ns) {
        if (window->used == GPU_WINDOW_SLOTS) {
            window->first = place_index(window, 1);
            window->used--;
        }
        slot = &window->slots[place_index(window, window->used++)];
        *slot = (struct gpu_window_slot){.at_ns = at_ns};
    }
    slot->sum_permille += activity_permille;
    slot->count++;
}

int32_t gpu_window_mean(const struct gpu_window *window, int64_t now_ns, int64_t *count)
{
    int64_t sum = 0, samples = 0;

    for (uint32_t place = 0; place < window->used; place++) {
        const struct gpu_window_slot *slot = &window->slots[place_index(window, place)];
        if (slot->at_ns > now_ns - window->length_ns && slot->at_ns <= now_ns) {
            sum += slot->sum_permille;
            samples += slot->count;
        }
    }
    if (count)
        *count = samples;
    return samples ? (int32_t)((sum + samples / 2) / samples) : -1;
}
