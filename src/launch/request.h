/* The daemon's message to a shepherd, an unnamed file (memfd) that comes by the socket in descriptor REQUEST_FD. So
 * nothing of the submitter's environment touches a disk, and a daemon that dies cannot leave half of it. */
#ifndef CARMA_LAUNCH_REQUEST_H
#define CARMA_LAUNCH_REQUEST_H

#include <stddef.h>

#include "base/strbuf.h"
#include "launch/launch.h"

#define REQUEST_FD 3

/* Where a shepherd finds its run directory open as it starts. */
#define DIRECTORY_FD 4

/* The shepherd's view. All pointers lead into the text that was parsed, but for those that are owned. */
struct shepherd_request {
    const char *run_directory;
    bool lease;
    uint64_t job;
    struct launch_array array;
    uint32_t launch;
    uid_t uid;
    gid_t gid;
    const char *user; /* may be NULL */
    const char *gpu_uuids;
    const char *indices; /* may be NULL */
    const char *devices; /* may be NULL */
    int64_t gpu_memory_bytes;
    int64_t gpu_total_bytes;
    const char *mps_pipe_directory;
    const char *mps_log_directory; /* may be NULL, as the next two */
    const char *mps_threads;       /* value of CUDA_MPS_ACTIVE_THREAD_PERCENTAGE */
    const char *mps_memory_limit;  /* value of CUDA_MPS_PINNED_DEVICE_MEM_LIMIT */
    const char *progress_file;     /* the FIFO that the job may write its progress to; NULL: it is not looked at */
    const char *attach;            /* with terminal_socket (launch/terminal.h); NULL: nobody is attached to it */
    const char *terminal_socket;
    const char *notify_socket; /* may be NULL */
    struct cgroup_limits limits;
    int64_t grace_ns;
    int64_t start_timeout_ns; /* 0: none */
    int64_t time_limit_ns;
    int signal; /* 0: none */
    int64_t signal_before_ns;
    bool requeue; /* it asks to be started again after its time limit */
    const char *name;
    const char *directory;
    const char *output;            /* a pattern: launch_output_path() */
    const char *error;             /* a pattern; may be NULL */
    const char *conda_environment; /* may be NULL */
    const char *container;         /* its image; may be NULL */
    const char *container_engine;  /* NULL: the first that is there */
    const char *surroundings;      /* base/surroundings.h; may be NULL */
    const char *on_end;            /* may be NULL */
    const char *script;            /* text; NULL: the job is not a script, and the next is NULL too */
    const char *script_directory;  /* where the job gets its copy */
    char *script_words[3];         /* owned; arguments that script_place() has put before the others */
    char **arguments;              /* owned, NULL-terminated */
    size_t argument_count;
    char **environment; /* owned, NULL-terminated */
    size_t environment_count;
};

void request_print(const struct launch_request *launch, const char *mps_pipe_directory, struct strbuf *text);

/* Parses the text that request_print() gave; it ends with a NUL and must outlive the request. */
int request_parse(char *text, size_t length, struct shepherd_request *request, struct error *err);

/* The same of a file with that text. Its mapping stays for the program's life: the request's strings are in it. */
int request_map(int fd, struct shepherd_request *request, struct error *err);
void request_release(struct shepherd_request *request);

#endif
