/* How this file works: rates_of_clients() multiplies what the clients leave idle (rates_left_by), and rates_of_idle()
 * shares out the rest by their weights, until nobody who can use less than his share is left. slowdown.c asks for each
 * placement, so all is in integers and a few loops. The constants of thread limits below are measured or published
 * ones, each with its source. */
#include "core/share/rates.h"

#include "base/root.h"

/* The published pairs have activities up to 943 permille. More counts as this: nothing is known of shares beyond. */
#define FULLEST_PERMILLE 950

#define UNDECIDED (-1)

#define POWER_DIGITS 10

static int64_t weight(struct rates_client client)
{
    int32_t activity = client.activity_permille;

    return RATES_PPM / (1000 - (activity < FULLEST_PERMILLE ? activity : FULLEST_PERMILLE));
}

/* To the power of percent / 100, by the binary digits of that. */
static int64_t power(int64_t base_ppm, int32_t percent)
{
    int64_t root = base_ppm, result = RATES_PPM;

    for (int digit = 0; digit < POWER_DIGITS && percent; digit++) {
        root = square_root(root * RATES_PPM);
        percent *= 2;
        if (percent >= 100) {
            result = result * root / RATES_PPM;
            percent -= 100;
        }
    }
    return result;
}

int64_t rates_left_by(struct rates_client client)
{
    int64_t busy;

    if (client.threads_percent == RATES_ALL_THREADS)
        return (1000 - client.activity_permille) * (RATES_PPM / 1000);
    busy = (int64_t)client.activity_permille * RATES_ALL_THREADS / client.threads_percent;
    return power((busy < 1000 ? 1000 - busy : 0) * (RATES_PPM / 1000), client.threads_percent);
}

void rates_of_clients(size_t count, const struct rates_client *clients, int32_t *rate_ppm)
{
    int64_t idle = RATES_PPM;

    for (size_t i = 0; i < count; i++)
        idle = idle * rates_left_by(clients[i]) / RATES_PPM;
    rates_of_idle(count, clients, idle, rate_ppm);
}

void rates_of_idle(size_t count, const struct rates_client *clients, int64_t idle_ppm, int32_t *rate_ppm)
{
    int64_t left = RATES_PPM - idle_ppm, weights = 0, weight_of[RATES_CLIENT];
    size_t undecided = 0, before;

    for (size_t i = 0; i < count; i++) {
        weight_of[i] = weight(clients[i]);
        weights += weight_of[i];
        rate_ppm[i] = UNDECIDED;
        undecided++;
    }
    /* Who gets as much as he can use runs as if he were alone; the others share what that leaves. */
    do {
        int64_t to_share = left, among = weights;
        before = undecided;
        for (size_t i = 0; i < count; i++) {
            int64_t wanted = (int64_t)clients[i].activity_permille * (RATES_PPM / 1000), own = weight_of[i];
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
            int64_t rate = left * weight_of[i] / weights * 1000 / clients[i].activity_permille;
            rate_ppm[i] = rate < RATES_LEAST ? RATES_LEAST : (int32_t)rate;
        }
}

int64_t rates_slowed_by_part(int64_t activity_permille, int64_t part_permille)
{
    int64_t kernels;

    if (part_permille >= 1000)
        return 1000;
    kernels = activity_permille * 1000 / part_permille;
    return square_root(INT64_C(1000) * 1000 - activity_permille * activity_permille + kernels * kernels);
}

/* Measured was that all clients have the same limit: half of the threads pays from the third client on, and a seventh
 * from the sixth. Beside two without a limit half is too little for the third: in simulation 70% pays in every respect,
 * and half costs makespan (docs/contention.md). */
#define THIRD        70
#define SEVENTH      14
#define THIRD_FROM   3
#define SEVENTH_FROM 6

/* Of 2,800 published mixes: half of the threads gives much the same gain to any number of clients. A seventh gives each
 * what it would not have got of a GPU that all want, a seventh more with each client. */
#define HALF_GAIN_PERMILLE      1190
#define SEVENTH_BASE_PERMILLE   420
#define SEVENTH_CLIENT_PERMILLE 140

int32_t rates_thread_percent(uint32_t clients)
{
    return clients < THIRD_FROM ? RATES_ALL_THREADS : clients < SEVENTH_FROM ? THIRD : SEVENTH;
}

int32_t rates_thread_gain_permille(uint32_t clients, int32_t percent)
{
    switch (percent) {
    case 50:
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
