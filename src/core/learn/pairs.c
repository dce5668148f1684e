/* How this file works: readings come in by pairs_learn_speed (apply.c) and pairs_learn_activity (readings.c), each
 * a measure in the table, where the latest stands last. What a pair's measures say is asked by slowdown.c. A measure
 * that changes is news of both workloads (learn.h). */
#include "core/learn/pairs.h"

#include <string.h>

#include "base/memory.h"
#include "core/learn/learn.h"
#include "core/state.h"

/* ---- The table ---- */

static struct measure *find(const struct core *core, const struct profile *of, const struct profile *beside,
                            uint32_t share, uint32_t kind)
{
    const struct pairs_key key = {.of = of, .beside = beside, .share = share, .kind = kind};
    struct measure *measure;

    HASH_FIND(hh, core->measures, &key, sizeof key, measure);
    return measure;
}

static struct profile *named(const struct measure *measure)
{
    return (struct profile *)measure->key.of;
}

static struct profile *neighbour(const struct measure *measure)
{
    return (struct profile *)measure->key.beside;
}

/* Verdicts on jobs of both workloads, and on any beside them, may change by it. */
static void changes(struct core *core, const struct measure *measure)
{
    core->openings++;
    learn_note_news(core, named(measure), NEWS_COMPANY);
    learn_open_where_placed(core, named(measure));
    if (neighbour(measure)) {
        learn_note_news(core, neighbour(measure), NEWS_COMPANY);
        learn_open_where_placed(core, neighbour(measure));
    }
}

/* By 1 or -1. */
static void count(const struct measure *measure, int by)
{
    bool met = neighbour(measure) && measure->key.kind == PAIRS_SPEED;

    named(measure)->measures += (uint32_t)by;
    named(measure)->met += met ? (uint32_t)by : 0;
    if (neighbour(measure)) {
        neighbour(measure)->measures += (uint32_t)by;
        neighbour(measure)->met += met ? (uint32_t)by : 0;
    }
}

static void forget(struct core *core, struct measure *measure)
{
    HASH_DEL(core->measures, measure);
    count(measure, -1);
    changes(core, measure);
    free(measure);
}

/* The oldest of the user with the most: nobody pushes out what is known of others. */
static void make_room(struct core *core)
{
    struct user *most = core->users;
    struct measure *measure;

    for (struct user *user = core->users; user; user = user->hh.next)
        user->measures = 0;
    for (measure = core->measures; measure; measure = measure->hh.next)
        if (++named(measure)->user->measures > most->measures)
            most = named(measure)->user;
    for (measure = core->measures; named(measure)->user != most; measure = measure->hh.next)
        ;
    forget(core, measure);
}

static struct measure *add(const struct pairs_key *key)
{
    struct measure *measure = xcalloc(1, sizeof *measure);

    measure->key = *key;
    count(measure, 1);
    return measure;
}

bool pairs_note(struct core *core, const struct measure *reading)
{
    const struct pairs_key *key = &reading->key;
    struct measure *measure = find(core, key->of, key->beside, key->share, key->kind);

    if (reading->value <= 0 || reading->unit < 0 || reading->gpu_bytes <= 0 || !reading->readings)
        return false;
    if (!measure && HASH_COUNT(core->measures) >= PAIRS_MOST)
        make_room(core);
    if (measure)
        HASH_DEL(core->measures, measure); /* it becomes the latest */
    else
        measure = add(key);
    if (measure->readings && measure->unit == reading->unit && measure->gpu_bytes == reading->gpu_bytes) {
        measure->value += (reading->value - measure->value) / 2;
        measure->readings += measure->readings < UINT32_MAX;
    } else {
        measure->value = reading->value;
        measure->readings = reading->readings;
    }
    measure->unit = reading->unit;
    measure->gpu_bytes = reading->gpu_bytes;
    measure->at_ns = reading->at_ns;
    HASH_ADD(hh, core->measures, key, sizeof measure->key, measure);
    changes(core, measure);
    return true;
}

void pairs_forget_old(struct core *core, int64_t now_ns)
{
    while (core->measures && now_ns - core->measures->at_ns > PAIRS_VALID_NS)
        forget(core, core->measures);
}

void pairs_forget_profile(struct core *core, const struct profile *profile)
{
    struct measure *measure, *next;

    if (!profile->measures)
        return;
    HASH_ITER (hh, core->measures, measure, next)
        if (measure->key.of == profile || measure->key.beside == profile)
            forget(core, measure);
}

/* ---- Readings ---- */

/* An instance's part of the GPU, and others' processes, slow a job as well. */
static bool can_tell(const struct gpu *gpu)
{
    return gpu->part_permille == 1000 && gpu_is_of_residents(gpu);
}

/* With a limit of its threads a job is another, and while it stands still no neighbour. */
static bool is_limited(const struct job *job)
{
    return job->run->threads_percent > 0 || job->state == JOB_SUSPENDED;
}

/* The only other job on the job's GPUs, or NULL where it is alone. False: there are more, or its readings tell
 * nothing. */
static bool find_neighbour(const struct core *core, const struct job *job, int64_t since_ns, const struct job **other)
{
    *other = NULL;
    for (uint32_t i = 0; i < job->placement_count; i++) {
        const struct gpu *gpu = core->gpus[job->placements[i].gpu];
        if (!can_tell(gpu) || gpu->changed_ns + LEARN_LOADING_NS > since_ns)
            return false;
        for (uint32_t k = 0; k < gpu->resident_count; k++) {
            const struct job *resident = gpu->residents[k];
            if (resident == job || resident == *other)
                continue;
            if (*other)
                return false;
            *other = resident;
        }
    }
    return job->placement_count && !is_limited(job) &&
           (!*other || ((*other)->profile && (*other)->share == job->share && !is_limited(*other)));
}

void pairs_learn_speed(struct core *core, const struct job *job, const struct record *record)
{
    const struct job *other;
    struct measure reading = {.readings = 1,
                              .value = record->progressed.micro_steps_per_s,
                              .unit = record->progressed.total,
                              .at_ns = record->at_ns};

    if (!core->config.learn || !job->profile ||
        !find_neighbour(core, job, record->at_ns - record->progressed.span_ns, &other))
        return;
    reading.gpu_bytes = core->gpus[job->placements[0].gpu]->total_bytes;
    reading.key = (struct pairs_key){.of = job->profile,
                                     .beside = other ? other->profile : NULL,
                                     .share = other ? job->share : SHARE_ANY,
                                     .kind = PAIRS_SPEED};
    pairs_note(core, &reading);
}

void pairs_learn_activity(struct core *core, const struct gpu *gpu, const struct record *record)
{
    struct measure reading = {.key = {.kind = PAIRS_ACTIVITY},
                              .readings = 1,
                              .value = record->sample.smact_permille,
                              .gpu_bytes = gpu->total_bytes,
                              .at_ns = record->at_ns};
    const struct job *first = gpu->residents[0], *second = gpu->resident_count > 1 ? gpu->residents[1] : NULL;

    if (gpu->resident_count > 2 || !can_tell(gpu) || first->placement_count > 1 || is_limited(first) ||
        (second && is_limited(second)) || (second && (second->placement_count > 1 || second->share != first->share)))
        return;
    if (second && strcmp(first->profile->workload, second->profile->workload) > 0) {
        const struct job *swapped = first;
        first = second;
        second = swapped;
    }
    reading.key.of = first->profile;
    if (second) {
        reading.key.beside = second->profile;
        reading.key.share = second->share;
    }
    pairs_note(core, &reading);
}

/* ---- What they say ---- */

struct pairs_key pairs_key_alone(const struct profile *of, int32_t part_permille)
{
    bool whole = part_permille == 1000;

    return (struct pairs_key){
        .of = of, .share = whole ? 0 : (uint32_t)part_permille, .kind = whole ? PAIRS_SPEED : PAIRS_PART};
}

const struct measure *pairs_speed_alone(const struct core *core, const struct profile *of, int32_t part_permille)
{
    const struct pairs_key key = pairs_key_alone(of, part_permille);

    return find(core, key.of, NULL, key.share, key.kind);
}

static const struct measure *known(const struct core *core, const struct gpu *gpu, const struct pairs_key *key)
{
    const struct measure *measure = find(core, key->of, key->beside, key->share, key->kind);

    return measure && measure->gpu_bytes == gpu->total_bytes && measure->readings >= (key->beside ? PAIRS_READINGS : 1)
               ? measure
               : NULL;
}

static int32_t ratio(int64_t alone, int64_t beside_another)
{
    int64_t permille = alone / beside_another >= 1000 ? 1000000 : alone * 1000 / beside_another;

    return permille < 1000 ? 1000 : (int32_t)permille;
}

int32_t pairs_slowdown(const struct core *core, const struct gpu *gpu, const struct profile *of,
                       const struct profile *beside, uint32_t share)
{
    const struct measure *there =
        of->met ? known(core, gpu, &(struct pairs_key){.of = of, .beside = beside, .share = share, .kind = PAIRS_SPEED})
                : NULL; /* most have not, and the look-up takes the time */
    const struct measure *alone = there ? known(core, gpu, &(struct pairs_key){.of = of, .kind = PAIRS_SPEED}) : NULL;

    return alone && alone->unit == there->unit ? ratio(alone->value, there->value) : 0;
}

int32_t pairs_slowed(const struct core *core, const struct gpu *gpu, const struct profile *of,
                     const struct record_progressed *report, int64_t fastest)
{
    const struct measure *alone = known(core, gpu, &(struct pairs_key){.of = of, .kind = PAIRS_SPEED});

    if (alone && alone->unit == report->total)
        return ratio(alone->value, report->micro_steps_per_s);
    return fastest > report->micro_steps_per_s ? ratio(fastest, report->micro_steps_per_s) : 0;
}

int32_t pairs_slowdown_by_activity(const struct core *core, const struct gpu *gpu, const struct profile *of,
                                   const struct profile *beside, uint32_t share)
{
    bool swaps = strcmp(of->workload, beside->workload) > 0;
    const struct measure *there =
        known(core, gpu,
              &(struct pairs_key){
                  .of = swaps ? beside : of, .beside = swaps ? of : beside, .share = share, .kind = PAIRS_ACTIVITY});
    const struct measure *one = there ? known(core, gpu, &(struct pairs_key){.of = of, .kind = PAIRS_ACTIVITY}) : NULL;
    const struct measure *other =
        one ? known(core, gpu, &(struct pairs_key){.of = beside, .kind = PAIRS_ACTIVITY}) : NULL;

    return other && of->user == beside->user ? ratio(one->value + other->value, there->value) : 0;
}

int32_t pairs_activity(const struct job *job)
{
    return job->profile && job->profile->met ? 0 : learned_activity(job);
}
