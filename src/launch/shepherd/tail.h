/* Reads the end of a job's output files, with its user's rights, and has it classified. */
#ifndef CARMA_LAUNCH_SHEPHERD_TAIL_H
#define CARMA_LAUNCH_SHEPHERD_TAIL_H

#include "launch/classify.h"
#include "launch/request.h"

/* An output file as the job's child opened it; its name may have changed. */
struct tail_origin {
    int fd;        /* owned; names the file and gives no access to it (O_PATH); -1: not known */
    intmax_t size; /* before this launch wrote */
};

/* What they say in all. */
struct tail_verdict {
    struct classify_verdict verdict;
    bool of_file;                 /* it is of another file than the two of the job */
    bool output_full, error_full; /* no space is left for this one of these */
};

#define TAIL_REMOVE_LIMIT_MS 1000

/* Has the last MiB of each classified, then writes `say` (may be NULL) to the output, for its reader, and removes the
 * job's checkpoint directory where it is empty: all in one child, as a fork costs more. *removed: it has got as far.
 * Works in a child process that drops to the user, has TAIL_LIMIT_MS wall milliseconds, and may crash. Then the verdict
 * is that the output says nothing. The error file goes before the output file, and both before `files`, in which
 * messages of GPU memory are looked for alone. */
void tail_classify(const struct shepherd_request *request, const struct tail_origin *output,
                   const struct tail_origin *error, const struct tail_origin *files, uint32_t file_count,
                   const char *say, struct tail_verdict *verdict, bool *removed);

#endif
