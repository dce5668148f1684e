/* How this file works: target_tell() becomes the user, reads his file into a list of targets, and tries each up to
 * three times. A target is a row of run_one(): a program of the system that is run with what to say in its standard
 * input, so that no process list shows an address. */
#include "notify/target.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "api/told/notify_file.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "base/units.h"
#include "notify/message.h"
#include "notify/run.h"

#define TARGET_NS (20 * NS_PER_SEC)
#define TRIES     3
#define LOG_BYTES (64 << 10)
#define PATH      "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"

enum kind { MAIL, WEBHOOK, DESKTOP };

struct target {
    enum kind kind;
    const char *to;
    bool done;
};

static const char *const kind_names[] = {[MAIL] = "mail", [WEBHOOK] = "webhook", [DESKTOP] = "desktop"};

/* ---- The user ---- */

/* For good; nothing is left of the environment but where programs are. */
static int become(uid_t uid, struct passwd *user, struct error *err)
{
    const char *set = getenv("PATH");
    CLEANUP(free_ptr) char *path = xstrdup(set ? set : PATH);
    CLEANUP(free_ptr) char *runtime = xasprintf("/run/user/%u", (unsigned)uid);
    CLEANUP(free_ptr) char *bus = xasprintf("unix:path=%s/bus", runtime);
    const char *own = getenv("HOME"); /* of one's own carma-notify; carma submit goes by it, too */
    CLEANUP(free_ptr) char *home = own && getuid() == uid ? xstrdup(own) : NULL;
    struct passwd *found = getpwuid(uid);
    struct stat st;

    if (!found)
        return error_set(err, ENOENT, "the user database has no uid %u", (unsigned)uid);
    *user = *found;
    if (geteuid() == 0 && uid != 0 &&
        (initgroups(user->pw_name, user->pw_gid) < 0 || setresgid(user->pw_gid, user->pw_gid, user->pw_gid) < 0 ||
         setresuid(uid, uid, uid) < 0))
        return error_set(err, errno, "cannot become user '%s': %s", user->pw_name, strerror(errno));
    if (geteuid() != uid || (uid != 0 && setuid(0) == 0))
        return error_set(err, EPERM, "cannot become user '%s'", user->pw_name);
    umask(077);
    clearenv();
    setenv("PATH", path, 1);
    setenv("HOME", home && stat(home, &st) == 0 && st.st_uid == uid ? home : user->pw_dir, 1);
    setenv("USER", user->pw_name, 1);
    setenv("LOGNAME", user->pw_name, 1);
    setenv("LANG", "C.UTF-8", 1);
    setenv("XDG_RUNTIME_DIR", runtime, 1);
    setenv("DBUS_SESSION_BUS_ADDRESS", bus, 1);
    return chdir("/") < 0 ? error_set(err, errno, "%s", strerror(errno)) : 0;
}

/* ---- Targets ---- */

/* curl reads its settings, the address among them, from its standard input, and the JSON from descriptor 3. */
static int post(const char *to, const json_t *message, struct error *err)
{
    char *argv[] = {(char[]){"curl"}, (char[]){"--config"}, (char[]){"-"}, NULL};
    CLEANUP(free_ptr)
    char *settings = xasprintf("url = \"%s\"\nproto = \"=http,https\"\nsilent\nshow-error\nfail\nmax-time = %d\n"
                               "header = \"Content-Type: application/json\"\ndata-binary = \"@/dev/fd/3\"\n"
                               "output = \"/dev/null\"\n",
                               to, (int)(TARGET_NS / NS_PER_SEC));
    char *body = json_dumps(message, JSON_COMPACT);
    const struct run run = {.argv = argv, .input = settings, .more = body, .most_ns = TARGET_NS + NS_PER_SEC};
    int rc = run_program(&run, err);

    free(body);
    return rc;
}

static int mail(const char *to, const json_t *message, struct error *err)
{
    char *argv[] = {(char[]){"sendmail"}, (char[]){"-i"}, (char[]){"-t"}, NULL};
    CLEANUP(free_ptr) char *text = message_mail(message, to);
    const struct run run = {.argv = argv, .input = text, .most_ns = TARGET_NS};

    return run_program(&run, err);
}

/* Its words are no markup. */
static int show(const json_t *message, struct error *err)
{
    CLEANUP(strbuf_release) struct strbuf words = {0};
    char *argv[] = {
        (char[]){"notify-send"}, (char[]){"--app-name=carma"}, (char[]){"--"}, (char[]){"carma"}, NULL, NULL};
    const struct run run = {.argv = argv, .input = "", .most_ns = TARGET_NS};

    for (const char *c = message_text(message); *c; c++)
        strbuf_puts(&words, *c == '&' ? "&amp;" : *c == '<' ? "&lt;" : *c == '>' ? "&gt;" : (char[]){*c, '\0'});
    argv[4] = words.text;
    return run_program(&run, err);
}

static int run_one(const struct target *target, const json_t *message, struct error *err)
{
    return target->kind == MAIL      ? mail(target->to, message, err)
           : target->kind == WEBHOOK ? post(target->to, message, err)
                                     : show(message, err);
}

/* ---- Telling ---- */

static void tell_log(int log, int own, const char *what, const struct error *err)
{
    CLEANUP(free_ptr) char *line = xasprintf("%s%s%s\n", what, *what ? ": " : "", err->text);
    char at[32] = "";
    time_t now = time(NULL);
    struct tm local;

    if (write(log, line, strlen(line)) < 0)
        return;
    if (own >= 0 && localtime_r(&now, &local) && strftime(at, sizeof at, "%Y-%m-%dT%H:%M:%S ", &local))
        dprintf(own, "%s%s", at, line);
}

/* Beside the user's file, where there is one. A hostile name there can but be the user's own. */
static int open_own_log(const char *home)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/" NOTIFY_FILE ".log", home);
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY, 0600);
    struct stat st;

    if (fd < 0)
        return -1;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || (st.st_size > LOG_BYTES && ftruncate(fd, 0) < 0)) {
        close(fd);
        return -1;
    }
    return fd;
}

static size_t list_targets(const struct notify_file *file, bool there, const char *user, struct target *targets)
{
    size_t count = 0;

    if (file->mail || !there)
        targets[count++] = (struct target){.kind = MAIL, .to = file->mail ? file->mail : user};
    for (size_t i = 0; i < file->webhook_count; i++)
        targets[count++] = (struct target){.kind = WEBHOOK, .to = file->webhooks[i]};
    if (file->desktop)
        targets[count++] = (struct target){.kind = DESKTOP};
    return count;
}

void target_tell(uid_t uid, const json_t *message, int log)
{
    static const unsigned pauses_s[TRIES] = {5, 30, 0};
    CLEANUP(notify_file_release) struct notify_file file = {0};
    struct target targets[2 + NOTIFY_FILE_WEBHOOKS];
    struct passwd user;
    struct error err;
    bool there, left = true;
    size_t count;
    int own;

    if (become(uid, &user, &err)) {
        tell_log(log, -1, "", &err);
        return;
    }
    own = open_own_log(getenv("HOME"));
    if (notify_file_read(getenv("HOME"), &file, &there, &err)) {
        tell_log(log, own, "", &err);
        return;
    }
    count = list_targets(&file, there, user.pw_name, targets);
    for (unsigned n = 0; n < TRIES && left; n++) {
        left = false;
        for (size_t i = 0; i < count; i++) {
            if (targets[i].done)
                continue;
            targets[i].done = run_one(&targets[i], message, &err) == 0;
            if (!targets[i].done && n + 1 == TRIES)
                tell_log(log, own, kind_names[targets[i].kind], &err);
            left |= !targets[i].done;
        }
        if (left)
            sleep(pauses_s[n]);
    }
    if (own >= 0)
        close(own);
}
