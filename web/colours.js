/* Each running job's colour, one of eight: the same on every GPU and in every list, as long as it runs. Jobs of one user begin
 * with one colour, and so look alike across GPUs; beside others a job takes the next colour that none of them has. */
const colours = 8;
const given = new Map(); /* by a running job's id */

/* For GPUs as the stream tells of them; `job_of` gives a job by its id, or nothing. */
export function give_colours(gpus, job_of) {
    const beside = new Map(); /* by id: all that are on a GPU with it */
    for (const gpu of gpus) {
        const ids = (gpu.residents || []).map((one) => one.id);
        for (const id of ids)
            beside.set(id, [...(beside.get(id) || []), ...ids]);
    }
    for (const id of given.keys())
        if (!beside.has(id))
            given.delete(id);
    for (const id of [...beside.keys()].sort((a, b) => a - b)) {
        const job = job_of(id);
        if (given.has(id) || !job) /* one that is not known yet gets its colour with its user */
            continue;
        const taken = new Set(beside.get(id).map((other) => given.get(other)));
        const first = of_user(job.uid);
        const steps = [...Array(colours).keys()].find((step) => !taken.has((first + step) % colours)) || 0;
        given.set(id, (first + steps) % colours);
    }
}

/* Numbers of users and of jobs follow one another, or lie a thousand apart. */
function of_user(number) {
    return (number + (number >> 3) + (number >> 6)) % colours;
}

export function job_colour(job) {
    return given.get(job.id) ?? of_user(job.uid ?? job.id);
}
