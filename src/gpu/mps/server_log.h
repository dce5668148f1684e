/* What an MPS server writes of its clients into the file server.log of its domain: which of them were refused memory or
 * faulted (docs/mps.md has the words, and which of them are assumed).
 *
 * The control daemon makes the file, and the server has it open with its user's rights. So each line may be this
 * user's invention, and counts for his own jobs alone. Another user's lines must not stand in it: that is for the
 * caller to see to. A file that others may write is not read. */
#ifndef CARMA_GPU_MPS_SERVER_LOG_H
#define CARMA_GPU_MPS_SERVER_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define MPS_LOG_WORDS 64 /* the latest that are kept */

enum mps_log_says {
    MPS_LOG_NOTHING,
    MPS_LOG_REFUSED, /* an allocation of the client's */
    MPS_LOG_FATAL    /* the client's fault */
};

struct mps_log_word {
    enum mps_log_says says;
    pid_t client;
    int64_t at_ns; /* when it was read; monotonic wall time */
};

/* Zero-initialised: nothing was read. */
struct mps_log {
    bool looked;
    dev_t device;
    ino_t file;
    off_t end; /* read until there */
    struct mps_log_word words[MPS_LOG_WORDS];
    uint64_t count; /* of all words so far: the last one is words[(count - 1) % MPS_LOG_WORDS] */
};

/* One line, without its end. */
enum mps_log_says mps_log_read_line(const char *line, size_t length, pid_t *client);

/* Reads the new lines of the log in `directory`, at most the last 64 KiB; what it has at the first look is old. Returns
 * how many words came. */
uint32_t mps_log_look(struct mps_log *log, const char *directory, int64_t now_ns);

#endif
