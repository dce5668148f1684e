/* What the allocator holds beyond the tensors. In one replay it depends on sizes by chance: a tensor finds the block of
 * another, or does not, and a training with longer sequences may seem to need less. The tensors' peak itself only grows
 * with sequence, batch and rank. So trainings of seven sizes are replayed, with short samples and the usual rank. The
 * least of what they hold more is always there, a share of the model (its blocks are rounded), and so is the least of
 * the rest, a share of the tensors that come and go. The bytes that are left are made to fall nowhere (neighbours that
 * fall have their mean: isotonic regression), and interpolated over the logarithm of the tokens; beyond the largest
 * size they grow with these. Where samples differ in length, all of the rest is a share that falls nowhere,
 * interpolated over one sample's tokens: a larger batch of them leaves fragments as well. */
#include <math.h>

#include "base/memory.h"
#include "estimate/program/replay.h"
#include "estimate/transformer/model.h"

#define SEQUENCE 128 /* tokens of a sample, where all are alike */

/* Tokens of a batch: odd numbers of samples. Powers of two make tensors that fill the allocator's segments, which many
 * sizes in between do not. */
static const int64_t batches[RESERVE_PROGRAMS] = {3 * SEQUENCE,  5 * SEQUENCE,  11 * SEQUENCE, 19 * SEQUENCE,
                                                  29 * SEQUENCE, 43 * SEQUENCE, 61 * SEQUENCE};
/* Where samples differ in length, the longest one's: all sizes come then. */
static const int64_t sequences[] = {256, 1024, 2048, 4096, 8192};
#define LISTED_MOST (1 << 17) /* tokens of a list's longest sample, beyond which numbers would not hold */

struct point {
    double more, held, passing; /* bytes: beyond the tensors' peak; of tensors that stay; of others at the peak */
};

/* Without and with expandable segments. */
static void replay_at(const struct transformer *transformer, const struct training *training,
                      const struct method *method, int64_t tokens, struct point *plain, struct point *expandable)
{
    struct training one = *training;
    struct method usual = *method;
    struct program program;
    struct replay_result result;

    one.batch_size = method_varies(method) ? 1 : tokens / SEQUENCE;
    usual.sequence = tokens / one.batch_size;
    usual.rank = RANK_DEFAULT;
    transformer_lower(&program, transformer, &one, &usual);
    for (int i = 0; i < 2; i++) {
        program.allocator = (struct allocator_settings){.expandable = i};
        program_replay(&program, &(struct replay_options){0}, &result);
        *(i ? expandable : plain) = (struct point){(double)(result.peak_reserved_bytes - result.peak_tensor_bytes),
                                                   (double)result.held_tensor_bytes,
                                                   (double)(result.peak_tensor_bytes - result.held_tensor_bytes)};
    }
    program_release(&program);
}

/* sums[i] / weights[i] are made to fall nowhere: each run of them that would has the weighted mean of all. */
static void let_none_fall(const double *sums, const double *weights, int count, double *values)
{
    for (int first = 0, best; first < count; first = best + 1) {
        double sum = 0, weight = 0, least = INFINITY;
        best = first;
        for (int i = first; i < count; i++) {
            sum += sums[i];
            weight += weights[i];
            if (sum / weight <= least) {
                least = sum / weight;
                best = i;
            }
        }
        for (int i = first; i <= best; i++)
            values[i] = least;
    }
}

static double at_tokens(const double *values, const int64_t *sizes, int count, double tokens)
{
    int next = 1;
    double at;

    while (next < count - 1 && tokens > (double)sizes[next])
        next++;
    tokens = fmin(fmax(tokens, (double)sizes[next - 1]), (double)sizes[next]);
    at = log(tokens / (double)sizes[next - 1]) / log((double)sizes[next] / (double)sizes[next - 1]);
    return values[next - 1] + (values[next] - values[next - 1]) * at;
}

static struct reserve reserve_of(const struct point *points, const int64_t *sizes, int count, double tokens, bool alike)
{
    struct reserve reserve = {.known = true, .of_held = INFINITY, .of_passing = alike ? INFINITY : 0};
    double rests[RESERVE_PROGRAMS], weights[RESERVE_PROGRAMS], values[RESERVE_PROGRAMS], rest;

    for (int i = 0; i < count; i++)
        reserve.of_held = fmin(reserve.of_held, points[i].more / fmax(points[i].held, 1));
    for (int i = 0; i < count; i++) {
        rests[i] = points[i].more - reserve.of_held * points[i].held;
        reserve.of_passing = fmin(reserve.of_passing, rests[i] / fmax(points[i].passing, 1));
    }
    for (int i = 0; i < count; i++) {
        rests[i] -= reserve.of_passing * points[i].passing;
        weights[i] = alike ? 1 : fmax(points[i].passing, 1);
    }
    let_none_fall(rests, weights, count, values);
    rest = at_tokens(values, sizes, count, tokens);
    if (alike)
        reserve.bytes = rest * fmax(tokens / (double)sizes[count - 1], 1);
    else
        reserve.of_passing += rest;
    return reserve;
}

/* They go by nothing that a larger training has more of: of a list by its longest sample, which is the last of them.
 * Returns how many there are. */
static int choose_sizes(int64_t sizes[static RESERVE_PROGRAMS], const struct method *method)
{
    const int64_t *usual = method_varies(method) ? sequences : batches;
    int most = method_varies(method) ? (int)array_size(sequences) : RESERVE_PROGRAMS, count = 0;
    int64_t longest = method->lengths ? lengths_longest(method->lengths) : INT64_MAX;

    for (; count < most && usual[count] < longest; count++)
        sizes[count] = usual[count];
    if (method->lengths && count == 0)
        sizes[count++] = longest / 2;
    if (method->lengths)
        sizes[count++] = longest < LISTED_MOST ? longest : LISTED_MOST;
    return count;
}

void transformer_reserve(struct reserve reserves[2], const struct transformer *transformer,
                         const struct training *training, const struct method *method)
{
    struct point points[2][RESERVE_PROGRAMS];
    int64_t sizes[RESERVE_PROGRAMS], samples = method_varies(method) ? 1 : training->batch_size;
    int count = choose_sizes(sizes, method);

    for (int i = 0; i < count; i++)
        replay_at(transformer, training, method, sizes[i], &points[0][i], &points[1][i]);
    for (int i = 0; i < 2; i++)
        reserves[i] =
            reserve_of(points[i], sizes, count, (double)method->sequence * (double)samples, !method_varies(method));
}
