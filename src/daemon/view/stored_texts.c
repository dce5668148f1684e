#include "daemon/view/stored_texts.h"

#include <string.h>

#include "base/memory.h"
#include "daemon/view/view.h"

int64_t stored_texts_of(const struct views *views, uint32_t uid)
{
    return user_bytes_of(&views->on_disk, uid);
}

int64_t held_texts_of(const struct views *views, uint32_t uid)
{
    return user_bytes_of(&views->texts.held, uid) + user_bytes_of(&views->specs.held, uid);
}

void job_view_charge_held(struct job_view *view)
{
    struct common_text *const texts[] = {view->name, view->command, view->environment, view->script};

    if (view->wants == view->views->no_wants)
        return;
    for (size_t i = 0; i < array_size(texts); i++)
        common_texts_charge(&view->views->texts, texts[i], view->wants->uid);
    common_specs_charge(&view->views->specs, view->common, view->wants->uid);
}

void job_view_set_stored(struct job_view *view, size_t bytes)
{
    user_bytes_add(&view->views->on_disk, view->wants->uid, (int64_t)bytes - view->stored_bytes);
    view->stored_bytes = (uint32_t)bytes;
}

/* In JSON, with its quotes and its comma. */
static size_t length_of(const char *text)
{
    size_t length = strlen(text) + 3;

    for (; *text; text++)
        if (*text == '"' || *text == '\\')
            length++;
        else if ((unsigned char)*text < ' ')
            length += strchr("\b\f\n\r\t", *text) ? 1 : 5; /* \u0001 */
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
    user_bytes_add(&view->views->on_disk, from, -(int64_t)view->stored_bytes);
    user_bytes_add(&view->views->on_disk, to, view->stored_bytes);
}
