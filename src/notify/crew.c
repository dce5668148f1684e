#include "notify/crew.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json/json_read.h"
#include "base/kernel/calls.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/text/printable.h"
#include "base/units.h"
#include "notify/hooks.h"
#include "notify/target.h"

#define TELL_NS     (240 * NS_PER_SEC) /* wall; all tries of all targets of a user */
#define USER_MOST   2 /* at a time; hooks one, of the jobs' users in turn, of each in the order of events */
#define QUEUE_USER  200
#define QUEUE_HOOKS 10000 /* of a user's jobs */
#define QUEUE_MOST  25000
#define SAY_NS      (60 * NS_PER_SEC) /* between two lines on a full queue */
#define LOG_FD      3
#define LINES_MOST  8
#define FOR_HOOKS   ((uid_t)-1)

struct telling {
    uid_t uid;   /* FOR_HOOKS */
    uid_t owner; /* of the job */
    int64_t job;
    char *text; /* owned: the message, which takes a fifth of its tree */
    struct telling *next;
};

struct member {
    pid_t pid; /* 0: free */
    uid_t uid;
    int fd;
    int64_t until_ns;
    int64_t job;
    unsigned lines;
    char line[512];
    size_t length;
};

struct crew {
    const char *hooks;
    void (*say)(const char *format, ...);
    struct telling *first, **last;
    int64_t said_ns; /* when it was last said that it is full */
    struct member members[CREW_MOST];
};

struct crew *crew_new(const char *hooks, void (*say)(const char *format, ...))
{
    struct crew *crew = xcalloc(1, sizeof *crew);

    crew->hooks = hooks;
    crew->say = say;
    crew->last = &crew->first;
    return crew;
}

static int64_t job_of(const json_t *message)
{
    return json_integer_value(json_object_get(json_object_get(message, "job"), "id"));
}

static void add(struct crew *crew, uid_t uid, const json_t *message)
{
    uid_t owner = (uid_t)json_integer_value(json_object_get(json_object_get(message, "job"), "uid"));
    size_t of_user = 0, count = 0;
    struct telling *telling;

    for (telling = crew->first; telling; telling = telling->next, count++)
        of_user += telling->uid == uid && telling->owner == owner;
    if (count >= QUEUE_MOST || of_user >= (uid == FOR_HOOKS ? QUEUE_HOOKS : QUEUE_USER)) {
        if (!crew->said_ns || nodetime_monotonic_wall_ns() - crew->said_ns > SAY_NS) {
            crew->say("job %" PRId64 ", and maybe others: not told: too many messages wait before it", job_of(message));
            crew->said_ns = nodetime_monotonic_wall_ns();
        }
        return;
    }
    telling = xcalloc(1, sizeof *telling);
    telling->uid = uid;
    telling->owner = owner;
    telling->job = job_of(message);
    telling->text = json_dumps(message, JSON_COMPACT);
    *crew->last = telling;
    crew->last = &telling->next;
}

void crew_tell_user(struct crew *crew, uid_t uid, const json_t *message)
{
    add(crew, uid, message);
}

void crew_run_hooks(struct crew *crew, const json_t *message)
{
    if (crew->hooks && hooks_any(crew->hooks))
        add(crew, FOR_HOOKS, message);
}

static void work(const struct crew *crew, const struct telling *telling, int log) __attribute__((noreturn));
static void work(const struct crew *crew, const struct telling *telling, int log)
{
    static const struct json_bounds most = {.values = 16 << 10, .depth = 16, .bytes = 4 << 20};
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    json_t *message = NULL;

    setsid();
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(null, 0);
    dup2(null, 1);
    dup2(null, 2);
    dup2(log, LOG_FD);
    kernel_close_from(LOG_FD + 1, 0); /* the stream, and what others of the crew say */
    fcntl(LOG_FD, F_SETFD, FD_CLOEXEC);
    if (json_read(telling->text, strlen(telling->text), 0, &most, &message, NULL) != 0)
        _exit(1);
    if (telling->uid == FOR_HOOKS)
        hooks_run(crew->hooks, message, LOG_FD);
    else
        target_tell(telling->uid, message, LOG_FD);
    _exit(0);
}

static bool start(struct crew *crew, const struct telling *telling)
{
    struct member *free_one = NULL;
    unsigned of_user = 0;
    int ends[2];

    for (size_t i = 0; i < CREW_MOST; i++) {
        of_user += crew->members[i].pid && crew->members[i].uid == telling->uid;
        free_one = crew->members[i].pid ? free_one : &crew->members[i];
    }
    if (!free_one || of_user >= (telling->uid == FOR_HOOKS ? 1 : USER_MOST) || pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return false;
    *free_one = (struct member){.uid = telling->uid, .fd = ends[0], .job = telling->job};
    free_one->until_ns = nodetime_monotonic_wall_ns() + TELL_NS;
    free_one->pid = fork();
    if (free_one->pid == 0)
        work(crew, telling, ends[1]);
    close(ends[1]);
    if (free_one->pid > 0)
        return true;
    close(ends[0]);
    free_one->pid = 0;
    return false;
}

/* The hooks' others of that user behind those of all others: the next is of somebody else's job. */
static void give_way(struct crew *crew, uid_t owner)
{
    struct telling *others = NULL, **last = &others, **at = &crew->first;

    for (struct telling *telling; (telling = *at);) {
        if (telling->uid != FOR_HOOKS || telling->owner != owner) {
            at = &telling->next;
            continue;
        }
        *at = telling->next;
        *last = telling;
        last = &telling->next;
    }
    *last = NULL;
    *at = others;
}

static void start_all(struct crew *crew)
{
    uid_t hooked = FOR_HOOKS; /* whose job it was */

    for (struct telling **at = &crew->first, *telling; (telling = *at);) {
        if (!start(crew, telling)) {
            at = &telling->next;
            continue;
        }
        hooked = telling->uid == FOR_HOOKS ? telling->owner : hooked;
        *at = telling->next;
        free(telling->text);
        free(telling);
    }
    if (hooked != FOR_HOOKS)
        give_way(crew, hooked);
    crew->last = &crew->first;
    while (*crew->last)
        crew->last = &(*crew->last)->next;
}

static void say_line(struct crew *crew, struct member *member)
{
    member->line[member->length] = '\0';
    printable_replace(member->line);
    if (member->length && ++member->lines <= LINES_MOST && member->uid == FOR_HOOKS)
        crew->say("job %" PRId64 ": %s", member->job, member->line);
    else if (member->length && member->lines <= LINES_MOST)
        crew->say("job %" PRId64 ": uid %u: %s", member->job, (unsigned)member->uid, member->line);
    member->length = 0;
}

static void hear(struct crew *crew, struct member *member)
{
    char bytes[4096];
    ssize_t count = read(member->fd, bytes, sizeof bytes);

    for (ssize_t i = 0; i < count; i++) {
        if (bytes[i] == '\n')
            say_line(crew, member);
        else if (member->length < sizeof member->line - 1)
            member->line[member->length++] = bytes[i] ? bytes[i] : '?';
    }
}

static void look_at(struct crew *crew, struct member *member)
{
    hear(crew, member);
    if (member->until_ns && nodetime_monotonic_wall_ns() >= member->until_ns) {
        crew->say("job %" PRId64 ": it took too long to tell, and is given up", member->job);
        member->until_ns = 0; /* it may hang in a file system of its user for ever */
        kill(-member->pid, SIGKILL);
    }
    if (waitpid(member->pid, NULL, WNOHANG) == 0)
        return;
    hear(crew, member);
    say_line(crew, member);
    close(member->fd);
    member->pid = 0;
}

size_t crew_poll(const struct crew *crew, struct pollfd *ready)
{
    size_t count = 0;

    for (size_t i = 0; i < CREW_MOST; i++)
        if (crew->members[i].pid)
            ready[count++] = (struct pollfd){.fd = crew->members[i].fd, .events = POLLIN};
    return count;
}

void crew_turn(struct crew *crew)
{
    for (size_t i = 0; i < CREW_MOST; i++)
        if (crew->members[i].pid)
            look_at(crew, &crew->members[i]);
    start_all(crew);
}

void crew_free(struct crew *crew)
{
    for (size_t i = 0; i < CREW_MOST; i++)
        if (crew->members[i].pid)
            kill(-crew->members[i].pid, SIGKILL);
    for (struct telling *telling = crew->first, *next; telling; telling = next) {
        next = telling->next;
        free(telling->text);
        free(telling);
    }
    free(crew);
}
