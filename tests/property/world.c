
#include <stdio.h>

#include "promises.h"

void fail(const struct world *world, const char *format, ...)
{
    CLEANUP(free_ptr) char *dump = core_dump(world->core);
    va_list args;

    fprintf(stderr, "seed %" PRIu64 ", after %zu records: ", world->seed, world->log.count);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\n%s", dump);
    abort(); /* so that sanitizers and debuggers show where */
}

bool is_on(const struct world_job *job, uint32_t gpu)
{
    for (uint32_t i = 0; job->running && i < job->gpu_count; i++)
        if (job->gpus[i] == gpu)
            return true;
    return false;
}

bool feed(struct world *world, struct record *input)
{
    struct error err;

    input->at_ns = world->now_ns;
    if (core_apply(world->core, input, &err) != 0)
        return false;
    record_list_add(&world->log, input);
    return true;
}

void decide(struct world *world)
{
    world->decisions_of_step.count = 0;
    core_decide(world->core, world->now_ns, &world->decisions_of_step);
    for (size_t i = 0; i < world->decisions_of_step.count; i++) {
        record_list_add(&world->log, &world->decisions_of_step.items[i]);
        on_decision(world, &world->decisions_of_step.items[i]);
    }
}

struct world *world_new(uint64_t seed)
{
    struct world *world = xcalloc(1, sizeof *world);

    world->seed = seed;
    world->random.state = seed;
    world->user_count = seed % 3 ? 2 : USERS;
    world->core = core_new();
    world->next_job = 1;
    world->now_ns = NS_PER_SEC;
    reconfigure(world);
    uint32_t gpus = (uint32_t)random_range(&world->random, 1, 6);
    bool by_mps = random_range(&world->random, 0, 3) == 0;
    for (uint32_t g = 0; g < gpus; g++) {
        struct record input = {.type = RECORD_GPU_BACK};
        input.gpu = (struct record_gpu){.gpu = g, .total_bytes = random_range(&world->random, 1, 2) * 40 * GIB};
        input.gpu.share = (uint32_t)random_range(&world->random, SHARE_ANY, SHARE_AUTO);
        if (by_mps || random_range(&world->random, 0, 2))
            input.gpu.share = SHARE_MPS;
        input.gpu.instance = random_range(&world->random, 0, 5) == 0;
        if (input.gpu.instance)
            input.gpu.part_permille = (int32_t)random_range(&world->random, 1, 4) * 1000 / 7;
        snprintf(input.gpu.uuid, sizeof input.gpu.uuid, "GPU-%u", g);
        snprintf(input.gpu.name, sizeof input.gpu.name, g % 2 ? "NVIDIA H100 80GB HBM3" : "NVIDIA A100-SXM4-40GB");
        input.gpu.compute = g % 2 ? 90 : 80;
        feed(world, &input);
    }
    decide(world);
    return world;
}

void world_free(struct world *world)
{
    core_free(world->core);
    record_list_release(&world->log);
    record_list_release(&world->decisions_of_step);
    free(world);
}
