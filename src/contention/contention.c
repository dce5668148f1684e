#include "contention/contention.h"

#include <math.h>
#include <stdbool.h>

/* How quickly power saturates with SM activity: fitted to the published run (docs/contention.md). */
#define POWER_CURVE 1.493

/* Published pairs have activities up to 0.943; nothing is known of the parts of fuller jobs (docs/contention.md). */
#define FULLEST 0.95

#define MIG_SLICES 7.0

/* How much of a kernel's speed on a MIG instance is its part of the memory, not of the SMs: fitted to Table 4.2. */
#define MIG_MEMORY_WEIGHT 0.43

const struct contention_params contention_default = {
    .capacity = 1.0,
    .union_exponent = 1.0,
    .crowding = 1.0,
    .spread = 0.6,
    .seed = 1,
    .turn_width = 0.65,
    .switch_cost = 0.1,
};

static double clamp01(double x)
{
    return x > 0 ? (x < 1 ? x : 1) : 0; /* NaN becomes 0 */
}

/* splitmix64 (Steele, Lea, Flood 2014), to 0..1 */
static double uniform(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (double)((z ^ (z >> 31)) >> 11) / 9007199254740992.0;
}

/* A standard normal number of this activity: the sum of twelve uniform ones. */
static double draw(uint64_t seed, double a)
{
    uint64_t state = seed << 32 ^ (uint64_t)(a * 1000 + 0.5);
    double sum = -6;

    for (int i = 0; i < 12; i++)
        sum += uniform(&state);
    return sum;
}

/* The jobs that share a GPU: arrays of `count`. */
struct mix {
    const struct contention_params *params;
    size_t count;
    const double *a;
    const uint64_t *servers;
    const double *threads; /* NULL: nobody has a limit */
};

static double threads_of(const struct mix *mix, size_t i)
{
    return mix->threads ? mix->threads[i] : 1;
}

/* What it could use if it were alone. */
static double wanted(const struct mix *mix, size_t i)
{
    double a = clamp01(mix->a[i]);

    return mix->threads ? a * contention_limited_rate(a, mix->threads[i]) : a;
}

/* Of the SMs that all clients get. */
static double weight(const struct mix *mix, size_t i)
{
    const struct contention_params *params = mix->params;
    double crowds = pow(1 - fmin(wanted(mix, i), FULLEST), -params->crowding);

    return params->spread > 0 ? crowds * exp(params->spread * draw(params->seed, clamp01(mix->a[i]))) : crowds;
}

static bool together(const uint64_t *servers, size_t i, size_t k)
{
    return i == k || (servers[i] != 0 && servers[i] == servers[k]);
}

static bool is_first_of_server(const uint64_t *servers, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (together(servers, i, k))
            return false;
    return true;
}

double contention_limited_rate(double a, double threads)
{
    return threads < 1 ? 1 / sqrt(1 - a * a + a / threads * (a / threads)) : 1;
}

/* The part of the SMs that none of the server's clients would use, if each ran as it does alone. A client is on its
 * part of the SMs, busier there; the parts are spread evenly. */
static double idle_of_all(const struct mix *mix, size_t first)
{
    double idle = 1.0;

    for (size_t i = first; i < mix->count; i++) {
        double threads = threads_of(mix, i);
        if (!together(mix->servers, first, i))
            continue;
        if (threads < 1)
            idle *= pow(1.0 - fmin(1, wanted(mix, i) / threads), threads);
        else
            idle *= 1.0 - wanted(mix, i);
    }
    return idle;
}

/* Rates of the clients of first's server, as if it had the GPU for itself. Returns the SM activity that they deliver.
 */
static double share_server(const struct mix *mix, size_t first, double *rates)
{
    const struct contention_params *params = mix->params;
    const uint64_t *servers = mix->servers;
    size_t count = mix->count, clients = 0;
    double left, delivered = 0;

    for (size_t i = first; i < count; i++) {
        if (!together(servers, first, i))
            continue;
        clients++;
        rates[i] = mix->a[i] > 0 ? -1.0 : 1.0; /* negative: its share is still open */
    }
    if (clients == 1) {
        rates[first] = contention_limited_rate(clamp01(mix->a[first]), threads_of(mix, first));
        return wanted(mix, first);
    }
    left = params->capacity * (1.0 - pow(idle_of_all(mix, first), params->union_exponent));

    /* Hand out `left` in proportion to the weights. A client that could not use its part runs as if it were alone; what
     * it leaves is for the others. */
    for (bool capped = true; capped;) {
        double weights = 0, level;

        capped = false;
        for (size_t i = first; i < count; i++)
            if (together(servers, first, i) && rates[i] < 0)
                weights += weight(mix, i);
        level = left > 0 && weights > 0 ? left / weights : 0;
        for (size_t i = first; i < count; i++)
            if (together(servers, first, i) && rates[i] < 0 && level * weight(mix, i) >= wanted(mix, i)) {
                rates[i] = contention_limited_rate(clamp01(mix->a[i]), threads_of(mix, i));
                left -= wanted(mix, i);
                capped = true;
            }
        for (size_t i = first; i < count && !capped; i++)
            if (together(servers, first, i) && rates[i] < 0)
                rates[i] = fmin(1, level * weight(mix, i) / clamp01(mix->a[i]));
    }
    for (size_t i = first; i < count; i++)
        if (together(servers, first, i))
            delivered += clamp01(mix->a[i]) * rates[i];
    return delivered;
}

/* A process of SM activity a wants the GPU for this part of its time, and has all of it while it has its turn. */
static double time_share(const struct contention_params *params, double a)
{
    return fmin(1, clamp01(a) / params->turn_width);
}

void contention_rates(const struct contention_params *params, size_t count, const double *a, const uint64_t *servers,
                      const double *threads, double *rates)
{
    const struct mix mix = {params, count, a, servers, threads};
    /* Of those that take turns: how probable it is that none, or one, wants the GPU */
    double none = 1, one = 0, delivered = 0, turns = 0, speed;
    size_t takers = 0;

    for (size_t i = 0; i < count; i++)
        if (is_first_of_server(servers, i)) {
            double g = time_share(params, share_server(&mix, i, rates));

            delivered += g * (none - params->switch_cost * one);
            one = one * (1 - g) + none * g;
            none *= 1 - g;
            turns += g;
            takers += g > 0;
        }
    if (takers < 2)
        return;
    speed = fmin(1, delivered / turns);
    for (size_t i = 0; i < count; i++)
        if (a[i] > 0)
            rates[i] *= speed;
}

double contention_mig_rate(const struct contention_params *params, double a, uint32_t slices, double memory)
{
    double share = pow(slices / MIG_SLICES, 1 - MIG_MEMORY_WEIGHT) * pow(clamp01(memory), MIG_MEMORY_WEIGHT);
    double busy = time_share(params, a), width = fmax(clamp01(a), params->turn_width);

    return width > share ? 1 / (1 - busy + busy * width / share) : 1;
}

double contention_power_w(double s, double idle_w, double full_w)
{
    return idle_w + (full_w - idle_w) * (1.0 - exp(-POWER_CURVE * clamp01(s))) / (1.0 - exp(-POWER_CURVE));
}
