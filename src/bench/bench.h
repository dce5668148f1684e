/* The commands of carma-bench. argv[0] is "bench NAME"; they return an exit status (cli/cli.h). */
#ifndef CARMA_BENCH_BENCH_H
#define CARMA_BENCH_BENCH_H

struct cli;

int cmd_bench_collocate(struct cli *cli, int argc, char **argv);
int cmd_bench_monitor(struct cli *cli, int argc, char **argv);

#endif
