/* A waiting job's turn, in words and numbers. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/or_null.h"
#include "base/json/moment.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/strbuf.h"
#include "base/units.h"
#include "core/use.h"
#include "core/user.h"
#include "daemon/view/view.h"

#define HOURS_TEXT 32

/* "3.20"; with more digits where another figure is to be told from it. */
static const char *gpu_hours(int64_t use, int digits, char text[static HOURS_TEXT])
{
    snprintf(text, HOURS_TEXT, "%.*f", digits, use_in_gpu_hours(use));
    return text;
}

/* Whose use was compared. */
static void put_user(struct strbuf *out, const struct user_group *group, const char *user)
{
    if (group)
        strbuf_printf(out, "group %s", group->name);
    else
        strbuf_puts(out, user);
}

static void put_why(struct strbuf *out, const struct turn *turn, const char *own, const char *other)
{
    char has[HOURS_TEXT], had[HOURS_TEXT];

    switch (turn->why) {
#define CLASS(name, holds, by, why, words)                                                                             \
    case TURN_##name:                                                                                                  \
        strbuf_puts(out, words);                                                                                       \
        break;
#include "core/waiting/classes.def"
    case TURN_PRIORITY:
        strbuf_printf(out, "it has priority %" PRId32 ", this one %" PRId32, turn->before_priority, turn->priority);
        break;
    case TURN_RUNNING:
        strbuf_printf(out, "%s has nothing running, %s has %" PRIu32, other, own, turn->running);
        break;
    case TURN_USE:
        for (int digits = 2; digits <= 6; digits += 4)
            if (strcmp(gpu_hours(turn->before_use, digits, had), gpu_hours(turn->use, digits, has)) != 0)
                break;
        put_user(out, turn->before_group, other);
        strbuf_printf(out, " has had %s GPU hours of late, ", had);
        put_user(out, turn->group, own);
        strbuf_printf(out, " %s", has);
        if (turn->share != 1 || turn->before_share != 1)
            strbuf_printf(out, ", with shares of %" PRIu32 " and %" PRIu32, turn->before_share, turn->share);
        break;
    case TURN_TURNS:
        strbuf_printf(out, "users take turns, and %" PRIu64 " of %s's go%s before it", turn->own_place - 1, own,
                      turn->own_place == 2 ? "es" : "");
        break;
    default:
        strbuf_puts(out, "it came earlier");
        break;
    }
}

static char *name_of(const struct views *views, uint64_t job, uint32_t uid)
{
    const struct job_view *view = views_find(views, job);

    return view && job_view_user(view) ? xstrdup(job_view_user(view)) : xasprintf("user %" PRIu32, uid);
}

/* NULL: it is the only one that waits. */
static char *turn_text(const struct job_view *view, const struct turn *turn)
{
    if (turn->of == 1)
        return NULL;

    CLEANUP(free_ptr) char *own = name_of(view->views, view->id, view->wants->uid);
    struct strbuf out = {0};
    char number[JOB_NUMBER_TEXT];

    strbuf_printf(&out, "place %" PRIu64 " of %" PRIu64, turn->place, turn->of);
    if (turn->own_of > 0 && turn->own_of < turn->of)
        strbuf_printf(&out, " (%" PRIu64 " of %s's %" PRIu64 ")", turn->own_place, own, turn->own_of);
    if (turn->before) {
        CLEANUP(free_ptr) char *other = name_of(view->views, turn->before->id, turn->before->wants->uid);
        strbuf_printf(&out, "; %s's job %s goes first: ", other, job_number(view->views, turn->before->id, number));
        put_why(&out, turn, own, other);
    }
    return strbuf_steal(&out);
}

json_t *job_view_turn_to_json(const struct job_view *view, const struct core *core, int64_t now_ns, bool detailed)
{
    struct turn turn = core_turn(core, view->id, now_ns);
    json_t *json;

    if (!turn.place)
        return json_null();
    json = json_pack("{s:I, s:I, s:o, s:o, s:o, s:s}", "place", (json_int_t)turn.place, "of", (json_int_t)turn.of,
                     "own_place", integer_or_null((int64_t)turn.own_place, turn.own_of > 0), "own_of",
                     integer_or_null((int64_t)turn.own_of, turn.own_of > 0), "first",
                     integer_or_null(turn.before ? (int64_t)turn.before->id : 0, turn.before), "why",
                     turn_why_name(turn.why));
    if (detailed) {
        CLEANUP(free_ptr) char *text = turn_text(view, &turn);
        json_object_set_new(json, "text", text_or_null(text));
    }
    return json;
}

static char *kept_text(const struct job_view *view, const struct kept *kept, int64_t now_ns)
{
    const struct job_view *other = views_find(view->views, kept->job);
    CLEANUP(free_ptr) char *name = other ? name_of(view->views, kept->job, other->wants->uid) : NULL;
    struct strbuf out = {0};
    char left[UNITS_TEXT], number[JOB_NUMBER_TEXT];

    strbuf_printf(&out, "GPU%s ", kept->count == 1 ? "" : "s");
    for (uint32_t i = 0; i < kept->count; i++)
        strbuf_printf(&out, "%s%" PRIu32, i ? "," : "", kept->gpus[i]);
    strbuf_printf(&out, " %s kept for ", kept->count == 1 ? "is" : "are");
    if (kept->job == view->id)
        strbuf_puts(&out, "it");
    else
        strbuf_printf(&out, "%s's job %s", name ? name : "another", job_number(view->views, kept->job, number));
    if (kept->until_ns != INT64_MAX)
        strbuf_printf(&out, ", for %s more at most",
                      format_duration(kept->until_ns > now_ns ? kept->until_ns - now_ns : 0, left));
    else
        strbuf_puts(&out, " until it starts");
    return strbuf_steal(&out);
}

json_t *job_view_kept_to_json(const struct job_view *view, const struct core *core, int64_t now_ns)
{
    struct kept kept = core_kept(core);
    json_t *gpus;

    if (!kept.count || (view->state != JOB_QUEUED && view->state != JOB_HELD))
        return json_null();
    CLEANUP(free_ptr) char *text = kept_text(view, &kept, now_ns);
    gpus = json_array();
    for (uint32_t i = 0; i < kept.count; i++)
        json_array_append_new(gpus, json_integer(kept.gpus[i]));
    return moment_twin(json_pack("{s:I, s:o, s:o, s:s}", "job", (json_int_t)kept.job, "gpus", gpus, "until_ns",
                                 integer_or_null(nodetime_shown_ns(kept.until_ns), kept.until_ns != INT64_MAX), "text",
                                 text),
                       "until_ns");
}
