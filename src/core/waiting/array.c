/* How this file works: enter_state (apply/) tells of each job that begins to wait (array_admit) and that is held or
 * has ended (array_dismiss), and then lets others take the place that has become free (array_open). A job's own part in
 * it is job.array_waits, which snapshots have; the array's counts follow from its jobs. */
#include "core/waiting/array.h"

#include "base/memory.h"
#include "core/state.h"
#include "core/waiting/order.h"

void array_join(struct core *core, struct job *job)
{
    uint64_t id = job->wants->array;
    struct job_array *array;

    if (!job->wants->array_most)
        return;
    HASH_FIND(hh, core->arrays, &id, sizeof id, array);
    if (!array) {
        array = xcalloc(1, sizeof *array);
        *array = (struct job_array){.id = id, .most = job->wants->array_most, .next = job->id};
        HASH_ADD(hh, core->arrays, id, sizeof array->id, array);
    }
    job->array = array;
    array->jobs++;
    if (job->id < array->next)
        array->next = job->id;
    if (job->id > array->last)
        array->last = job->id;
}

void array_leave(struct core *core, struct job *job)
{
    struct job_array *array = job->array;

    if (!array || --array->jobs > 0)
        return;
    HASH_DEL(core->arrays, array);
    free(array);
}

void array_count(struct job *job)
{
    if (job->array && job->state != JOB_HELD && !job->array_waits)
        job->array->open++;
}

void array_admit(struct job *job)
{
    struct job_array *array = job->array;

    if (!array)
        return;
    job->array_waits = array->open >= array->most;
    if (!job->array_waits)
        array->open++;
    else if (job->id < array->next)
        array->next = job->id;
}

void array_dismiss(struct job *job)
{
    if (job->array && !job->array_waits)
        job->array->open--;
    job->array_waits = false;
}

void array_open(struct core *core, struct job_array *array)
{
    while (array && array->open < array->most && array->next <= array->last) {
        struct job *job = core_job_by_id(core, array->next++);
        if (!job || job->array != array || !job->array_waits)
            continue;
        job->array_waits = false;
        array->open++;
        order_moves(core, job);
    }
}
