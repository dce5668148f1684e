/* The arguments of carma-bench and carma-dashboard, which carry out commands: these programs parse them. Help, manual
 * pages and completion are made from them here. */
#ifndef CARMA_CLI_PROGRAMS_PROGRAMS_H
#define CARMA_CLI_PROGRAMS_PROGRAMS_H

#define BENCH_MPS_PROGRAM "nvidia-cuda-mps-control"

/* Of the options in bench_collocate_argp and bench_monitor_argp (cli/commands.h). */
enum {
    BENCH_KEY_MODE = 0x200,
    BENCH_KEY_DEGREES,
    BENCH_KEY_COMMANDS,
    BENCH_KEY_MIX,
    BENCH_KEY_EPOCHS,
    BENCH_KEY_EPOCH_PATTERN,
    BENCH_KEY_MPS_CONTROL,
    BENCH_KEY_TIME_LIMIT,
    BENCH_KEY_LIGHT,
    BENCH_KEY_HEAVY,
    BENCH_KEY_REPEAT,
    BENCH_KEY_PERIOD,
    BENCH_KEY_KERNEL,
    BENCH_KEY_POINT,
    BENCH_KEY_LOAD,
    BENCH_KEY_DCGM,
    BENCH_KEY_GPU,
    BENCH_KEY_NVML,
    BENCH_KEY_OUTPUT
};

/* Of those in dashboard_argp. */
enum { DASHBOARD_KEY_PORT = 0x200, DASHBOARD_KEY_NO_OPEN };

#endif
