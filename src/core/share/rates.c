#include "core/share/rates.h"

#include "base/root.h"

/* The published pairs have activities up to 943 permille. More counts as this: nothing is known of shares beyond. */
#define FULLEST_PERMILLE 950

#define UNDECIDED (-1)

static int64_t weight(int32_t activity_permille)
{
    return RATES_PPM / (1000 - (activity_permille < FULLEST_PERMILLE ? activity_permille : FULLEST_PERMILLE));
}

void rates_of_clients(size_t count, const int32_t *activity_permille, int32_t *rate_ppm)
{
    int64_t idle = RATES_PPM, left, weights = 0;
    size_t undecided = 0, before;

    for (size_t i = 0; i < count; i++) {
        idle = idle * (1000 - activity_permille[i]) / 1000;
        weights += weight(activity_permille[i]);
        rate_ppm[i] = UNDECIDED;
        undecided++;
    }
    left = RATES_PPM - idle;

    /* Who gets as much as he can use runs as if he were alone; the others share what that leaves. */
    do {
        int64_t to_share = left, among = weights;
        before = undecided;
        for (size_t i = 0; i < count; i++) {
            int64_t wanted = (int64_t)activity_permille[i] * (RATES_PPM / 1000), own = weight(activity_permille[i]);
            if (rate_ppm[i] != UNDECIDED || to_share * own < wanted * among)
                continue;
            rate_ppm[i] = RATES_PPM;
            left -= wanted;
            weights -= own;
            undecided--;
        }
    } while (undecided && undecided < before);

    for (size_t i = 0; i < count; i++)
        if (rate_ppm[i] == UNDECIDED) {
            int64_t rate = left * weight(activity_permille[i]) / weights * 1000 / activity_permille[i];
            rate_ppm[i] = rate < RATES_LEAST ? RATES_LEAST : (int32_t)rate;
        }
}

int64_t rates_slowed_by_part(int64_t activity_permille, int64_t part_permille)
{
    int64_t kernels = activity_permille * 1000 / part_permille;

    return part_permille >= 1000
               ? 1000
               : square_root(INT64_C(1000) * 1000 - activity_permille * activity_permille + kernels * kernels);
}

/* Half of the threads pays from the third client on, and a seventh of them from the sixth. */
#define HALF         50
#define SEVENTH      14
#define HALF_FROM    3
#define SEVENTH_FROM 6

/* Of 2,800 published mixes: half of the threads gives much the same gain to any number of clients. A seventh gives each
 * what it would not have got of a GPU that all want, a seventh more with each client. */
#define HALF_GAIN_PERMILLE      1190
#define SEVENTH_BASE_PERMILLE   420
#define SEVENTH_CLIENT_PERMILLE 140

int32_t rates_thread_percent(uint32_t clients)
{
    return clients < HALF_FROM ? 100 : clients < SEVENTH_FROM ? HALF : SEVENTH;
}

int32_t rates_thread_gain_permille(uint32_t clients)
{
    switch (rates_thread_percent(clients)) {
    case HALF:
        return HALF_GAIN_PERMILLE;
    case SEVENTH:
        return SEVENTH_BASE_PERMILLE + (int32_t)clients * SEVENTH_CLIENT_PERMILLE;
    default:
        return 1000;
    }
}

int32_t rates_admitted_permille(int32_t bound_permille)
{
    return bound_permille > 1000 ? bound_permille - (bound_permille - 1000) * 3 / 11 : bound_permille;
}
