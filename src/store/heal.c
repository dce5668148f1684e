/* What others remove of the store while it is open. SQLite goes on with files that have no name any more, and all that
 * it stores would be gone with carmad. So the names are looked at before each transaction, and every few seconds; where
 * one is gone, the whole database is written anew from what is open, and opened again. A database that somebody put in
 * the place of ours is his: nothing is stored until carmad is started with it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "store/store_internal.h"

enum found { THERE, GONE, REPLACED };

static enum found find(const struct store *store, const char *suffix, const struct stat *ours)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s%s", store->path, suffix);
    struct stat now;

    if (ours->st_ino == 0) /* there is none yet */
        return THERE;
    if (lstat(path, &now) < 0)
        return errno == ENOENT || errno == ENOTDIR ? GONE : THERE;
    return now.st_dev == ours->st_dev && now.st_ino == ours->st_ino ? THERE : REPLACED;
}

void store_heal_wal(struct store *store)
{
    CLEANUP(free_ptr) char *wal = xasprintf("%s-wal", store->path);
    CLEANUP(free_ptr) char *shm = xasprintf("%s-shm", store->path);

    lstat(wal, &store->made[STORE_WAL]);
    lstat(shm, &store->made[STORE_SHM]);
}

/* One file, which needs no WAL. */
static int write_anew(struct store *store, const char *path, struct error *err)
{
    CLEANUP(close_fd) int fd = -1;
    char *sql;
    int code;

    unlink(path); /* of a carmad that was killed */
    fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return error_set(err, errno, "%s: %s", path, strerror(errno));
    sql = sqlite3_mprintf("VACUUM INTO %Q", path);
    code = sqlite3_exec(store->db, sql, NULL, NULL, NULL);
    sqlite3_free(sql);
    if (code != SQLITE_OK)
        return store_sqlite_error(store->db, path, "be written", err);
    return fsync(fd) < 0 ? error_set(err, errno, "%s: %s", path, strerror(errno)) : 0;
}

static void remove_beside(const struct store *store, const char *suffix)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s%s", store->path, suffix);

    unlink(path);
}

/* The mark says that the database needs no WAL, before that takes its place. */
static int leave_old(struct store *store, struct error *err)
{
    store->mark.frames = 0;
    close_fd(&store->mark_fd);
    store->mark_fd = store_mark_make(store->directory, &store->mark, err);
    if (store->mark_fd < 0)
        return store->mark_fd;
    store_release_statements(store);
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    sqlite3_close(store->db);
    store->db = NULL;
    close_fd(&store->wal_fd);
    store->wal_fd = -1;
    memset(store->made, 0, sizeof store->made);
    remove_beside(store, "-wal");
    remove_beside(store, "-shm");
    store->is_anew = true;
    return 0;
}

int store_open_database(struct store *store, struct error *err)
{
    int rc = store_database_open(store->path, &store->db, err);

    rc = rc ? rc : store_prepare_statements(store, err);
    if (!rc) {
        store_database_make_room(store->db, store->path);
        lstat(store->path, &store->made[STORE_DATABASE]);
    }
    return rc;
}

static int rebuild(struct store *store, struct error *err)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s.anew", store->path);
    int rc = 0;

    if (store->db) {
        rc = write_anew(store, path, err);
        if (rc)
            unlink(path);
        rc = rc ? rc : leave_old(store, err);
    }
    if (rc)
        return rc;
    if (store->is_anew && rename(path, store->path) < 0)
        return error_set(err, errno, "%s cannot be renamed to %s: %s", path, store->path, strerror(errno));
    store->is_anew = false;
    if (access(store->path, F_OK) < 0) /* an empty one would be made */
        return error_set(err, errno, "%s: %s", store->path, strerror(errno));
    rc = store_open_database(store, err);
    rc = rc ? rc : store_marking_follow(store, err);
    if (rc) { /* it is opened the next time */
        store_release_statements(store);
        sqlite3_close(store->db);
        store->db = NULL;
    }
    return rc;
}

static bool is_gone(const char *directory, const char *name)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/%s", directory, name);

    return access(path, F_OK) < 0 && errno == ENOENT;
}

static int heal_directory(struct store *store, struct error *err)
{
    int rc;

    if (access(store->directory, F_OK) == 0 || errno != ENOENT)
        return 0;
    rc = file_make_dirs(store->directory, 0700, err);
    rc = rc ? rc : store_check_directory(store->directory, err);
    close_fd(&store->directory_fd);
    store->directory_fd = -1;
    return rc ? rc : store_lock_directory(store->directory, &store->directory_fd, err);
}

static void note(struct store *store, char *text)
{
    pthread_mutex_lock(&store->mutex);
    free(store->note);
    store->note = text;
    eventfd_write(store->event_fd, 1);
    pthread_mutex_unlock(&store->mutex);
}

static void note_healed(struct store *store, const char *path)
{
    note(store, xasprintf("%s was removed: carmad has made it again", path));
}

static int heal_lock(struct store *store, struct error *err)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/lock", store->directory);
    int rc = heal_directory(store, err);

    close_fd(&store->lock_fd);
    store->lock_fd = -1;
    rc = rc ? rc : store_lock(store->directory, &store->lock_fd, err);
    if (!rc)
        note_healed(store, path);
    return rc;
}

static int heal(struct store *store, struct error *err)
{
    CLEANUP(free_ptr) char *mark = store_mark_path(store->directory);
    bool rebuilds = find(store, "", &store->made[STORE_DATABASE]) == GONE || !store->db ||
                    find(store, "-wal", &store->made[STORE_WAL]) != THERE ||
                    find(store, "-shm", &store->made[STORE_SHM]) != THERE;
    int rc = 0;

    if (find(store, "", &store->made[STORE_DATABASE]) == REPLACED)
        return error_set(err, ESTALE,
                         "%s is another file than the one that carmad uses: stop carmad, put the file of your choice "
                         "there, and start it again",
                         store->path);
    if (is_gone(store->directory, "lock"))
        rc = heal_lock(store, err);
    if (!rc && rebuilds) {
        rc = rebuild(store, err);
        if (!rc)
            note_healed(store, store->path);
    } else if (!rc && is_gone(store->directory, "store.mark")) {
        close_fd(&store->mark_fd);
        store->mark_fd = store_mark_make(store->directory, &store->mark, err);
        rc = store->mark_fd < 0 ? store->mark_fd : 0;
        if (!rc)
            note_healed(store, mark);
    }
    return rc;
}

int store_heal(struct store *store, struct error *err)
{
    int rc = heal(store, err);

    if (rc && !store->heal_failed)
        note(store, xstrdup(err->text));
    store->heal_failed = rc != 0;
    return rc;
}

char *store_take_note(struct store *store)
{
    char *note;

    pthread_mutex_lock(&store->mutex);
    note = store->note;
    store->note = NULL;
    pthread_mutex_unlock(&store->mutex);
    return note;
}
