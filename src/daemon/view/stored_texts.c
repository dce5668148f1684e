#include "daemon/view/stored_texts.h"

#include <string.h>

#include "base/memory.h"
#include "daemon/view/view.h"

struct stored_of {
    uint32_t uid;
    int64_t bytes;
    UT_hash_handle hh;
};

static void add(struct views *views, uint32_t uid, int64_t bytes)
{
    struct stored_of *user;

    HASH_FIND(hh, views->stored_texts.users, &uid, sizeof uid, user);
    if (!user && bytes) {
        user = xcalloc(1, sizeof *user);
        user->uid = uid;
        HASH_ADD(hh, views->stored_texts.users, uid, sizeof user->uid, user);
    }
    if (!user || (user->bytes += bytes))
        return;
    HASH_DEL(views->stored_texts.users, user);
    free(user);
}

int64_t stored_texts_of(const struct views *views, uint32_t uid)
{
    const struct stored_of *user;

    HASH_FIND(hh, views->stored_texts.users, &uid, sizeof uid, user);
    return user ? user->bytes : 0;
}

void job_view_set_stored(struct job_view *view, size_t bytes)
{
    add(view->views, view->wants->uid, (int64_t)bytes - view->stored_bytes);
    view->stored_bytes = (uint32_t)bytes;
}

/* In JSON, with its quotes and its comma. */
static size_t length_of(const char *text)
{
    size_t length = strlen(text) + 3;

    for (; *text; text++)
        if (strchr("\"\\\b\f\n\r\t", *text))
            length++;
        else if ((unsigned char)*text < ' ')
            length += 5; /* \u0001 */
    return length;
}

void job_view_drop_stored(struct job_view *view, const struct spec_strings *list)
{
    size_t bytes = 0;

    for (size_t i = 0; i < list->count; i++)
        bytes += length_of(list->items[i]);
    job_view_set_stored(view, bytes < view->stored_bytes ? view->stored_bytes - bytes : 0);
}

void job_view_move_stored(struct job_view *view, uint32_t from, uint32_t to)
{
    add(view->views, from, -(int64_t)view->stored_bytes);
    add(view->views, to, view->stored_bytes);
}
