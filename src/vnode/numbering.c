#include "vnode/numbering.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/memory.h"
#include "vnode/attach.h"

#define ANSWER_WALL_S 5

void numbering_of_node(const struct node_file *file, struct numbering *numbering)
{
    numbering->count = 0;
    for (uint32_t index = 0; index < file->gpu_count; index++) {
        uint32_t gpu = atomic_load(&file->order[index]);

        if (gpu < file->gpu_count)
            numbering->gpus[numbering->count++] = gpu;
    }
}

/* By the kernel, which asks the filters of the process's control group. */
static bool may_open(const char *state, uint32_t gpu)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s.dev/nvidia%u", state, gpu);
    return access(path, R_OK | W_OK) == 0 || errno != EPERM;
}

/* The control daemon's list in `text`; false: none, as of a fake that does not answer. */
static bool ask(const char *pipe_directory, char *text, size_t size)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct timeval timeout = {.tv_sec = ANSWER_WALL_S};
    CLEANUP(close_fd) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    ssize_t length;

    if (fd < 0 || snprintf(address.sun_path, sizeof address.sun_path, "%s/control", pipe_directory) >=
                      (int)sizeof address.sun_path)
        return false;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) < 0 ||
        send(fd, NUMBERING_QUESTION "\n", strlen(NUMBERING_QUESTION "\n"), MSG_NOSIGNAL) < 0 ||
        shutdown(fd, SHUT_WR) < 0)
        return false;
    length = recv(fd, text, size - 1, 0);
    if (length < 2 || *text != NUMBERING_ANSWERED)
        return false;
    text[length] = '\0';
    text[strcspn(text, "\n")] = '\0';
    memmove(text, text + 1, strlen(text));
    return *text;
}

void numbering_of_process(const struct node_file *file, const char *state, const char *pipe_directory,
                          struct numbering *numbering)
{
    struct place places[NODE_MAX_GPUS];
    char list[4096];
    uint32_t count = 0;

    numbering_of_node(file, numbering);
    if (pipe_directory && ask(pipe_directory, list, sizeof list)) {
        count = attach_visible(file, NULL, list, places);
        for (uint32_t i = 0; i < count; i++)
            numbering->gpus[i] = places[i].gpu;
    } else if (!pipe_directory) {
        for (uint32_t i = 0; i < numbering->count; i++)
            if (may_open(state, numbering->gpus[i]))
                numbering->gpus[count++] = numbering->gpus[i];
    } else {
        return;
    }
    numbering->count = count;
}
