#include "cli/top/model.h"

#include <ctype.h>
#include <string.h>

#include "base/memory.h"
#include "cli/show/answer.h"

void top_picture_release(struct top_picture *picture)
{
    json_decref(picture->status);
    json_decref(picture->gpus);
    json_decref(picture->running);
    json_decref(picture->waiting);
    *picture = (struct top_picture){0};
}

void top_model_init(struct top_model *model, int64_t uid)
{
    *model = (struct top_model){.uid = uid, .focus = TOP_RUNNING, .shown_job = -1, .cancel_job = -1};
    for (enum top_pane pane = 0; pane < TOP_PANES; pane++)
        model->cursors[pane].id = -1;
}

void top_model_release(struct top_model *model)
{
    top_picture_release(&model->picture);
    free(model->gpus);
    free(model->jobs[TOP_RUNNING]);
    free(model->jobs[TOP_QUEUE]);
    top_text_release(&model->text);
}

/* ---- Rows ---- */

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static const json_t *gpu_of_uuid(const json_t *gpus, const char *uuid)
{
    json_t *gpu;
    size_t i;

    json_array_foreach (gpus, i, gpu) {
        const char *other = answer_text(gpu, "uuid");
        if (uuid && other && strcmp(other, uuid) == 0)
            return gpu;
    }
    return NULL;
}

static bool is_coarse(const json_t *gpu)
{
    const char *source = answer_text(json_object_get(json_object_get(gpu, "metrics"), "sm_activity"), "source");

    return source && strcmp(source, "utilization") == 0;
}

static void read_placements(struct top_job *job, const json_t *gpus)
{
    int64_t sum = 0, known = 0;
    json_t *placement;
    size_t i;

    json_array_foreach (json_object_get(job->json, "placements"), i, placement) {
        const json_t *gpu = gpu_of_uuid(gpus, answer_text(placement, "uuid"));
        int64_t activity = answer_integer(gpu, "sm_activity_permille", -1);
        job->used_bytes = larger(job->used_bytes, answer_integer(placement, "observed_bytes", -1));
        job->sm_coarse = job->sm_coarse || is_coarse(gpu);
        known += activity >= 0;
        sum += larger(activity, 0);
    }
    job->sm_permille = known ? sum / known : -1;
}

static int64_t read_done(const json_t *progress)
{
    int64_t total = answer_integer(progress, "total", 0);

    return total > 0 ? (int64_t)(1000.0 * (double)answer_integer(progress, "step", 0) / (double)total) : -1;
}

static struct top_job read_job(const json_t *json, const json_t *gpus, bool waits, size_t order)
{
    struct top_job job = {.json = json,
                          .id = answer_integer(json, "id", 0),
                          .used_bytes = -1,
                          .reserved_bytes = answer_integer(json, "reserved_bytes", -1),
                          .sm_permille = -1,
                          .slowdown_permille = answer_integer(json, "slowdown_permille", -1),
                          .done_permille = read_done(json_object_get(json, "progress")),
                          .time_ns = answer_integer(json, "started_ns", -1),
                          .energy_mj = answer_integer(json, "modelled_energy_mj", -1),
                          .order = order};

    if (waits || job.time_ns <= 0)
        job.time_ns = answer_integer(json, "submitted_ns", 0);
    if (!waits)
        read_placements(&job, gpus);
    return job;
}

static int64_t taken_of(const json_t *gpu)
{
    int64_t total = answer_integer(gpu, "total_bytes", -1), unbooked = answer_integer(gpu, "free_bytes", -1);

    return total < 0 || unbooked < 0 ? -1 : larger(total - unbooked, 0);
}

static void arrange_gpus(struct top_model *model)
{
    const json_t *list = json_object_get(model->picture.gpus, "gpus");
    json_t *gpu;
    size_t i;

    model->gpu_count = 0;
    json_array_foreach (list, i, gpu) {
        array_reserve(model->gpus, model->gpu_capacity, model->gpu_count + 1);
        model->gpus[model->gpu_count++] =
            (struct top_gpu){.json = gpu, .taken_bytes = taken_of(gpu), .instance = answer_text(gpu, "parent") != NULL};
    }
}

/* ---- Filter ---- */

static bool holds_word(const char *text, const char *word, size_t length)
{
    return text && length <= strlen(text) &&
           (strncasecmp(text, word, length) == 0 || holds_word(text + 1, word, length));
}

static bool passes(const struct top_model *model, const json_t *job)
{
    static const char *const members[] = {"name", "user", "state"};
    const char *rest = model->filter;

    if (model->mine && answer_integer(job, "uid", -1) != model->uid)
        return false;
    for (rest += strspn(rest, " "); *rest; rest += strspn(rest, " ")) {
        size_t length = strcspn(rest, " ");
        bool found = false;
        for (size_t i = 0; i < array_size(members) && !found; i++)
            found = holds_word(answer_text(job, members[i]), rest, length);
        if (!found)
            return false;
        rest += length;
    }
    return true;
}

/* ---- Order ---- */

static const struct {
    const char *name;
    bool on_queue;
    bool greatest_first;
} sorts[TOP_SORTS] = {
    [TOP_BY_ORDER] = {"as the daemon lists them", true, false},
    [TOP_BY_NAME] = {"by name", true, false},
    [TOP_BY_USER] = {"by user", true, false},
    [TOP_BY_USED] = {"by memory used", false, true},
    [TOP_BY_RESERVED] = {"by memory reserved", true, true},
    [TOP_BY_SM] = {"by SM activity", false, true},
    [TOP_BY_SLOWDOWN] = {"by slowdown", false, true},
    [TOP_BY_DONE] = {"by steps done", false, true},
    [TOP_BY_TIME] = {"by time", true, true},
    [TOP_BY_ENERGY] = {"by energy", false, true},
};

const char *top_sort_name(enum top_sort sort)
{
    return sorts[sort].name;
}

bool top_sort_applies(enum top_sort sort, enum top_pane pane)
{
    return pane == TOP_RUNNING || (pane == TOP_QUEUE && sorts[sort].on_queue);
}

static int compare_texts(const struct top_job *a, const struct top_job *b, const char *member)
{
    const char *x = answer_text(a->json, member), *y = answer_text(b->json, member);

    return strcmp(x ? x : "", y ? y : "");
}

static int compare_numbers(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_by(const struct top_job *a, const struct top_job *b, enum top_sort sort)
{
    switch (sort) {
    case TOP_BY_NAME:
        return compare_texts(a, b, "name");
    case TOP_BY_USER:
        return compare_texts(a, b, "user");
    case TOP_BY_USED:
        return compare_numbers(a->used_bytes, b->used_bytes);
    case TOP_BY_RESERVED:
        return compare_numbers(a->reserved_bytes, b->reserved_bytes);
    case TOP_BY_SM:
        return compare_numbers(a->sm_permille, b->sm_permille);
    case TOP_BY_SLOWDOWN:
        return compare_numbers(a->slowdown_permille, b->slowdown_permille);
    case TOP_BY_DONE:
        return compare_numbers(a->done_permille, b->done_permille);
    case TOP_BY_TIME:
        return compare_numbers(b->time_ns, a->time_ns); /* the earlier, the longer */
    case TOP_BY_ENERGY:
        return compare_numbers(a->energy_mj, b->energy_mj);
    default:
        return 0;
    }
}

struct ordering {
    enum top_sort sort;
    bool reversed;
};

static int compare_jobs(const void *a, const void *b, void *user)
{
    const struct ordering *ordering = user;
    const struct top_job *x = a, *y = b;
    int order = compare_by(x, y, ordering->sort);

    if (sorts[ordering->sort].greatest_first)
        order = -order;
    if (!order)
        order = (x->order > y->order) - (x->order < y->order);
    return ordering->reversed ? -order : order;
}

static void arrange_jobs(struct top_model *model, enum top_pane pane)
{
    const json_t *list = json_object_get(pane == TOP_QUEUE ? model->picture.waiting : model->picture.running, "jobs");
    const json_t *gpus = json_object_get(model->picture.gpus, "gpus");
    struct ordering ordering = {.sort = model->sort[pane], .reversed = model->reversed[pane]};
    size_t length = json_array_size(list), i;
    json_t *job;

    model->job_count[pane] = 0;
    json_array_foreach (list, i, job) {
        if (!passes(model, job))
            continue;
        size_t order = pane == TOP_QUEUE && !answer_true(job, "retry") ? length + i : i;
        array_reserve(model->jobs[pane], model->job_capacity[pane], model->job_count[pane] + 1);
        model->jobs[pane][model->job_count[pane]++] = read_job(job, gpus, pane == TOP_QUEUE, order);
    }
    if (model->job_count[pane])
        qsort_r(model->jobs[pane], model->job_count[pane], sizeof *model->jobs[pane], compare_jobs, &ordering);
}

/* ---- The selection ---- */

size_t top_model_rows(const struct top_model *model, enum top_pane pane)
{
    return pane == TOP_GPUS ? model->gpu_count : model->job_count[pane];
}

const struct top_job *top_model_selected(const struct top_model *model)
{
    size_t row = model->cursors[model->focus].selected;

    return model->focus != TOP_GPUS && row < model->job_count[model->focus] ? &model->jobs[model->focus][row] : NULL;
}

/* The selected job may have gone elsewhere in the list; where it has gone altogether, its row stays selected. */
static void find_selected(struct top_model *model, enum top_pane pane)
{
    struct top_cursor *cursor = &model->cursors[pane];
    size_t rows = top_model_rows(model, pane);

    for (size_t row = 0; pane != TOP_GPUS && cursor->id >= 0 && row < rows; row++)
        if (model->jobs[pane][row].id == cursor->id)
            cursor->selected = row;
    if (cursor->selected >= rows)
        cursor->selected = rows ? rows - 1 : 0;
    if (pane != TOP_GPUS)
        cursor->id = rows ? model->jobs[pane][cursor->selected].id : -1;
}

void top_model_arrange(struct top_model *model)
{
    arrange_gpus(model);
    arrange_jobs(model, TOP_RUNNING);
    arrange_jobs(model, TOP_QUEUE);
    for (enum top_pane pane = 0; pane < TOP_PANES; pane++)
        find_selected(model, pane);
}

void top_model_take(struct top_model *model, struct top_picture *picture)
{
    top_picture_release(&model->picture);
    model->picture = *picture;
    *picture = (struct top_picture){0};
    top_model_arrange(model);
}

void top_model_move(struct top_model *model, int64_t lines)
{
    struct top_cursor *cursor = &model->cursors[model->focus];
    int64_t rows = (int64_t)top_model_rows(model, model->focus), to = (int64_t)cursor->selected + lines;

    cursor->selected = (size_t)(to < 0 || !rows ? 0 : to >= rows ? rows - 1 : to);
    cursor->id = -1;
    find_selected(model, model->focus);
}

size_t top_model_wanted(const struct top_model *model)
{
    const struct top_cursor *cursor = &model->cursors[TOP_QUEUE];
    size_t wanted = *model->filter || model->sort[TOP_QUEUE] != TOP_BY_ORDER ? TOP_SEEN_JOBS : TOP_HEAD_JOBS;
    size_t reach = cursor->selected + model->page[TOP_QUEUE] + TOP_HEAD_JOBS / 2; /* rows that may come into sight */

    while (wanted < reach && wanted < TOP_MOST_JOBS)
        wanted += wanted;
    return wanted < TOP_MOST_JOBS ? wanted : TOP_MOST_JOBS;
}
