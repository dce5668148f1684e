/* What the allocator holds beyond the tensors. In one replay it depends on sizes by chance: a tensor finds the block of
 * another, or does not, and a training with longer sequences may seem to need less. The tensors' peak itself only grows
 * with sequence, batch and rank. So trainings of seven sizes are replayed, with short samples and the usual rank. The
 * least of what they hold more is always there, a share of the model: its blocks are rounded. The rest is a share of
 * the tensors that come and go. It is made to fall nowhere (neighbours that fall have their mean: isotonic regression),
 * and interpolated over the logarithm of the tokens. Where samples differ in length, over that of one sample's: a
 * larger batch of them leaves fragments as well. */
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
static const int64_t lengths[] = {256, 1024, 2048, 4096, 8192};

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

    one.batch_size = method->mean_length ? 1 : tokens / SEQUENCE;
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

/* Each run of points whose shares would fall has the share of all of them. */
static void let_none_fall(const struct point *points, int count, double of_held, double *shares)
{
    for (int first = 0, best; first < count; first = best + 1) {
        double more = 0, passing = 1, least = INFINITY;
        best = first;
        for (int i = first; i < count; i++) {
            more += points[i].more - of_held * points[i].held;
            passing += points[i].passing;
            if (more / passing <= least) {
                least = more / passing;
                best = i;
            }
        }
        for (int i = first; i <= best; i++)
            shares[i] = least;
    }
}

static struct reserve reserve_of(const struct point *points, const int64_t *sizes, int count, double tokens)
{
    double shares[RESERVE_PROGRAMS], of_held = INFINITY, at;
    int next = 1;

    for (int i = 0; i < count; i++)
        of_held = fmin(of_held, points[i].more / fmax(points[i].held, 1));
    let_none_fall(points, count, of_held, shares);
    while (next < count - 1 && tokens > (double)sizes[next])
        next++;
    tokens = fmin(fmax(tokens, (double)sizes[next - 1]), (double)sizes[next]);
    at = log(tokens / (double)sizes[next - 1]) / log((double)sizes[next] / (double)sizes[next - 1]);
    return (struct reserve){true, of_held, shares[next - 1] + (shares[next] - shares[next - 1]) * at};
}

void transformer_reserve(struct reserve reserves[2], const struct transformer *transformer,
                         const struct training *training, const struct method *method)
{
    struct point points[2][RESERVE_PROGRAMS];
    int64_t samples = method->mean_length ? 1 : training->batch_size;
    const int64_t *sizes = method->mean_length ? lengths : batches;
    int count = method->mean_length ? (int)array_size(lengths) : RESERVE_PROGRAMS;

    for (int i = 0; i < count; i++)
        replay_at(transformer, training, method, sizes[i], &points[0][i], &points[1][i]);
    for (int i = 0; i < 2; i++)
        reserves[i] = reserve_of(points[i], sizes, count, (double)method->sequence * (double)samples);
}
