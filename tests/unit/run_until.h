/* A loop that runs until something holds, and not for ever. A world has the loop and `late`, where to note that. */
#ifndef CARMA_TESTS_RUN_UNTIL_H
#define CARMA_TESTS_RUN_UNTIL_H

#include <uv.h>

static inline void on_guard(uv_timer_t *timer)
{
    *(bool *)timer->data = true;
}

static inline void on_tick(uv_timer_t *timer)
{
    (void)timer; /* a condition may be one of the world outside */
}

static inline void start_guard(uv_loop_t *loop, bool *late, uv_timer_t *guard, uv_timer_t *tick)
{
    uv_timer_init(loop, guard);
    guard->data = late;
    uv_timer_start(guard, on_guard, GUARD_MS, 0);
    uv_timer_init(loop, tick);
    uv_timer_start(tick, on_tick, 20, 20);
}

/* Otherwise fails with what `said` has of it. */
#define run_until_or(world, condition, said)                                                                           \
    do {                                                                                                               \
        uv_timer_t guard, tick;                                                                                        \
        start_guard(&(world)->loop, &(world)->late, &guard, &tick);                                                    \
        while (!(condition) && !(world)->late)                                                                         \
            uv_run(&(world)->loop, UV_RUN_ONCE);                                                                       \
        uv_close((uv_handle_t *)&guard, NULL);                                                                         \
        uv_close((uv_handle_t *)&tick, NULL);                                                                          \
        uv_run(&(world)->loop, UV_RUN_NOWAIT);                                                                         \
        if ((world)->late)                                                                                             \
            fail_msg("never: %s; said: %s", #condition, said);                                                         \
    } while (0)

#endif
