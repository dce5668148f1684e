/* Orders of carmad for a job that runs (launch/orders.h): a row of `orders` for each word. */
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "launch/orders.h"
#include "launch/shepherd/shepherd.h"
#include "launch/tree.h"

/* As before its time limit, for a job that has said which signal that is. */
static void checkpoint(struct shepherd *s)
{
    if (s->request.signal)
        tree_signal_who_heeds(&s->tree, getpid(), s->request.signal);
}

static const struct {
    const char *word;
    void (*obey)(struct shepherd *s);
} orders[] = {{"checkpoint", checkpoint}, {"move", deadlines_move}};

static void obey(struct shepherd *s, const char *word)
{
    for (size_t i = 0; i < array_size(orders); i++)
        if (strcmp(word, orders[i].word) == 0 && !s->kill_at_ns && s->status.phase == LAUNCH_RUNNING)
            orders[i].obey(s);
}

/* What was read before is not read again. A last line without its end is still being written: its writer wakes us. */
void orders_turn(struct shepherd *s)
{
    CLEANUP(free_ptr) char *path = NULL, *text = NULL;
    char *line, *end;
    size_t length;

    if (!s->told)
        return;
    s->told = false;
    path = orders_file(s->request.run_directory);
    if (file_read(path, ORDERS_LIMIT + 256, &text, &length, NULL) != 0 || length < s->orders_read)
        return;
    for (line = text + s->orders_read; (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        obey(s, line);
    }
    s->orders_read = (size_t)(line - text);
}
