#include "gpu/mps/server_log.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

#define LOOK_BYTES (64 * 1024)
#define LINE_BYTES 512

/* In this order. The first is of libcuda 535 to 555; no driver whose words are known tells of a refusal. */
static const struct {
    const char *words[2];
    enum mps_log_says says;
} rules[] = {
    {{"fatal gpu error"}, MPS_LOG_FATAL},           {{"host"}, MPS_LOG_NOTHING},
    {{"out of memory"}, MPS_LOG_REFUSED},           {{"memory limit", "exceed"}, MPS_LOG_REFUSED},
    {{"memory limit", "reached"}, MPS_LOG_REFUSED}, {{"failed to allocate", "memory"}, MPS_LOG_REFUSED},
};

/* "Client 12 ...", "Client process 12 ...", "client {12, 0}", "{PID: 12, Context ID: 0}"; 0: none is named. */
static pid_t client_in(const char *text)
{
    const char *at = strcasestr(text, "client");
    long pid;

    if (!at)
        return 0;
    at += strlen("client");
    if (strncasecmp(at, " process", strlen(" process")) == 0)
        at += strlen(" process");
    at += strspn(at, " {");
    if (strncasecmp(at, "pid:", strlen("pid:")) == 0)
        at += strlen("pid:");
    at += strspn(at, " ");
    pid = isdigit((unsigned char)*at) ? strtol(at, NULL, 10) : 0;
    return pid > 0 && pid <= 1 << 22 ? (pid_t)pid : 0;
}

enum mps_log_says mps_log_read_line(const char *line, size_t length, pid_t *client)
{
    char copy[LINE_BYTES];
    const char *text;

    if (length == 0 || length >= sizeof copy || *line != '[')
        return MPS_LOG_NOTHING;
    memcpy(copy, line, length);
    copy[length] = '\0';
    text = strstr(copy, "] "); /* behind the time, "Server", and its pid */
    *client = text ? client_in(text) : 0;
    for (size_t i = 0; *client && i < array_size(rules); i++)
        if (strcasestr(text, rules[i].words[0]) && (!rules[i].words[1] || strcasestr(text, rules[i].words[1])))
            return rules[i].says;
    return MPS_LOG_NOTHING;
}

static int open_log(const char *directory, struct stat *st)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/server.log", directory);
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);

    if (fd >= 0 &&
        (fstat(fd, st) < 0 || !S_ISREG(st->st_mode) || st->st_uid != geteuid() || st->st_mode & (S_IWGRP | S_IWOTH))) {
        close_fd(&fd);
        fd = -1;
    }
    return fd;
}

/* The lines of `text` that are whole; how many bytes these are. */
static size_t take_lines(struct mps_log *log, const char *text, size_t length, int64_t now_ns)
{
    const char *end;
    size_t at = 0;

    while ((end = memchr(text + at, '\n', length - at))) {
        struct mps_log_word word = {.at_ns = now_ns};
        word.says = mps_log_read_line(text + at, (size_t)(end - text) - at, &word.client);
        if (word.says != MPS_LOG_NOTHING)
            log->words[log->count++ % MPS_LOG_WORDS] = word;
        at = (size_t)(end + 1 - text);
    }
    return at;
}

uint32_t mps_log_look(struct mps_log *log, const char *directory, int64_t now_ns)
{
    struct stat st;
    CLEANUP(close_fd) int fd = open_log(directory, &st);
    CLEANUP(free_ptr) char *text = NULL;
    uint64_t before = log->count;
    ssize_t length;

    if (fd < 0 || !log->looked) {
        log->looked = true;
        log->end = fd < 0 ? 0 : st.st_size;
        log->device = fd < 0 ? 0 : st.st_dev;
        log->file = fd < 0 ? 0 : st.st_ino;
        return 0;
    }
    if (st.st_dev != log->device || st.st_ino != log->file || st.st_size < log->end)
        log->end = 0; /* another file, or begun anew */
    log->device = st.st_dev;
    log->file = st.st_ino;
    if (st.st_size == log->end)
        return 0;
    if (st.st_size - log->end > LOOK_BYTES)
        log->end = st.st_size - LOOK_BYTES;
    text = xmalloc(LOOK_BYTES);
    length = pread(fd, text, LOOK_BYTES, log->end);
    if (length > 0) {
        size_t taken = take_lines(log, text, (size_t)length, now_ns);
        log->end += taken ? (off_t)taken : length == LOOK_BYTES ? length : 0;
    }
    return (uint32_t)(log->count - before);
}
