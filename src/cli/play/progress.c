#include "cli/play/play.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/memory.h"
#include "base/nodetime.h"
#include "base/units.h"
#include "cli/show/term.h"

#define LINE_EVERY_NS (5 * NS_PER_SEC) /* where stderr is not a terminal */
#define BAR_MAX       30

void play_show_progress(struct play *play, bool last)
{
    int64_t now = nodetime_monotonic_wall_ns(), crashes = 0;
    size_t running = 0, waiting;
    char clock[UNITS_TEXT];

    if (!play->interactive && !last && now < play->next_line_wall_ns)
        return;
    play->next_line_wall_ns = now + LINE_EVERY_NS;
    for (size_t i = 0; i < play->submitted; i++) {
        running += play->items[i].running && !play->items[i].ended;
        crashes += play->items[i].crashes;
    }
    waiting = play->submitted - play->done - running;
    format_duration((int64_t)((double)(now - play->begun_wall_ns) * play->scale), clock);
    CLEANUP(free_ptr)
    char *text = xasprintf("%8s  %zu/%zu done, %zu running, %zu waiting, %zu to come, %" PRId64 " OOM", clock,
                           play->done, play->count, running, waiting, play->count - play->submitted, crashes);
    if (!play->interactive) {
        fprintf(stderr, "%s\n", text);
        return;
    }
    int width = term_width(stderr), room = width - 2 - (int)term_text_width(text);
    CLEANUP(free_ptr) char *bar = term_bar((double)play->done, (double)play->count, room < BAR_MAX ? room : BAR_MAX);
    fprintf(stderr, TERM_LINE_CLEAR "%s%s%.*s%s", bar, room > 0 ? " " : "", width - 1, text, last ? "\n" : "");
    fflush(stderr);
    cli_progress_shown = !last;
}
