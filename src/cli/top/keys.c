#include "cli/top/keys.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "cli/show/answer.h"
#include "cli/top/answer.h"

enum { ESCAPE = 27, DELETE = 127 };

static void say(struct top_model *model, const char *text)
{
    snprintf(model->message, sizeof model->message, "%s", text);
    model->message_bad = true;
}

static bool has_state(const struct top_job *job, const char *state)
{
    const char *text = answer_text(job->json, "state");

    return text && strcmp(text, state) == 0;
}

/* ---- The filter ---- */

static enum top_request set_filter(struct top_model *model)
{
    top_model_arrange(model);
    return TOP_NOTHING;
}

static enum top_request type_filter(struct top_model *model, uint32_t key)
{
    size_t length = strlen(model->filter);

    if (key == '\n' || key == '\r') {
        model->typing = false;
    } else if (key == ESCAPE) {
        model->typing = false;
        *model->filter = '\0';
    } else if (key == TOP_KEY_BACKSPACE || key == DELETE || key == '\b') {
        while (length && ((unsigned char)model->filter[--length] & 0xc0) == 0x80)
            ;
        model->filter[length] = '\0';
    } else if (key >= 0x20 && key < 0x7f && length + 1 < sizeof model->filter) {
        model->filter[length] = (char)key;
        model->filter[length + 1] = '\0';
    }
    return set_filter(model);
}

/* ---- A text is shown ---- */

static void leave_text(struct top_model *model)
{
    model->mode = TOP_LISTS;
    model->shown_job = -1;
    top_text_release(&model->text);
}

static enum top_request read_text(struct top_model *model, uint32_t key)
{
    int64_t page = (int64_t)model->page[model->focus];

    switch (key) {
    case 'k':
    case TOP_KEY_UP:
        model->text.above++;
        break;
    case 'j':
    case TOP_KEY_DOWN:
        model->text.above--;
        break;
    case TOP_KEY_PAGE_UP:
        model->text.above += page;
        break;
    case TOP_KEY_PAGE_DOWN:
    case ' ':
        model->text.above -= page;
        break;
    case TOP_KEY_HOME:
        model->text.above = INT64_MAX / 2;
        break;
    case TOP_KEY_END:
        model->text.above = 0;
        break;
    case 'q':
    case ESCAPE:
    case '\n':
    case '\r':
        leave_text(model);
        return TOP_NOTHING;
    default:
        break;
    }
    if (model->text.above < 0)
        model->text.above = 0;
    return TOP_NOTHING;
}

/* ---- The lists ---- */

static void sort_by_next(struct top_model *model, int step)
{
    enum top_sort *sort = &model->sort[model->focus];

    if (model->focus == TOP_GPUS) {
        say(model, "the GPUs stay in their order: Tab goes to the jobs");
        return;
    }
    do
        *sort = (enum top_sort)(((int)*sort + step + TOP_SORTS) % TOP_SORTS);
    while (!top_sort_applies(*sort, model->focus));
    model->reversed[model->focus] = false;
    snprintf(model->message, sizeof model->message, "%s jobs: %s", model->focus == TOP_QUEUE ? "waiting" : "running",
             top_sort_name(*sort));
    model->message_bad = false;
}

/* The jobs of an array that wait in one state are one row: what is done with it is done with all of them. */
static void choose_jobs(struct top_model *model, const struct top_job *job)
{
    const json_t *array = json_object_get(job->json, "array");
    int64_t index = answer_integer(array, "index", 0), last = answer_integer(array, "last", index);
    CLEANUP(free_ptr) char *state = answer_safe_text(job->json, "state");

    *model->which = '\0';
    if (last > index)
        snprintf(model->which, sizeof model->which, "ids=%" PRId64 "_[%" PRId64 "-%" PRId64 "]&state=%.20s",
                 answer_integer(array, "id", 0), index, last, state);
}

static enum top_request on_job(struct top_model *model, uint32_t key, int64_t *job)
{
    const struct top_job *selected = top_model_selected(model);

    if (!selected) {
        say(model, "no job is selected: Tab goes to the jobs");
        return TOP_NOTHING;
    }
    if (model->cluster) {
        say(model, "the view over all nodes only reads: use carma on the job's node, or Slurm's commands");
        return TOP_NOTHING;
    }
    *job = selected->id;
    choose_jobs(model, selected);
    if (key == 'h')
        return has_state(selected, "HELD") ? TOP_RELEASE : TOP_HOLD;
    if (key == 'c') {
        model->cancel_job = selected->id;
        return TOP_NOTHING;
    }
    model->mode = key == 'l' ? TOP_LOG : TOP_DETAILS;
    model->shown_job = selected->id;
    top_text_release(&model->text);
    return TOP_NOTHING;
}

static enum top_request use_lists(struct top_model *model, uint32_t key, int64_t *job)
{
    int64_t page = (int64_t)model->page[model->focus];
    enum top_pane *focus = &model->focus;

    switch (key) {
    case 'q':
        return TOP_QUIT;
    case '?':
        model->mode = TOP_HELP;
        top_view_help(&model->text);
        return TOP_NOTHING;
    case '\t':
        *focus = (enum top_pane)((*focus + 1) % TOP_PANES);
        return TOP_NOTHING;
    case TOP_KEY_TAB_BACK:
        *focus = (enum top_pane)((*focus + TOP_PANES - 1) % TOP_PANES);
        return TOP_NOTHING;
    case 'k':
    case TOP_KEY_UP:
        top_model_move(model, -1);
        return TOP_NOTHING;
    case 'j':
    case TOP_KEY_DOWN:
        top_model_move(model, 1);
        return TOP_NOTHING;
    case TOP_KEY_PAGE_UP:
        top_model_move(model, -page);
        return TOP_NOTHING;
    case TOP_KEY_PAGE_DOWN:
    case ' ':
        top_model_move(model, page);
        return TOP_NOTHING;
    case TOP_KEY_HOME:
        top_model_move(model, -TOP_MOST_JOBS);
        return TOP_NOTHING;
    case TOP_KEY_END:
        top_model_move(model, TOP_MOST_JOBS);
        return TOP_NOTHING;
    case '>':
    case 's':
    case '<':
        sort_by_next(model, key == '<' ? -1 : 1);
        return set_filter(model);
    case 'r':
        model->reversed[*focus] = !model->reversed[*focus];
        return set_filter(model);
    case '/':
        model->typing = true;
        return TOP_NOTHING;
    case 'u':
        model->mine = !model->mine;
        return set_filter(model);
    case 'a':
        model->unfolded = !model->unfolded;
        return TOP_NOTHING;
    case ESCAPE:
        model->mine = false;
        *model->filter = '\0';
        return set_filter(model);
    case 'c':
    case 'h':
    case 'l':
    case 'e':
    case '\n':
    case '\r':
        return on_job(model, key, job);
    default:
        return TOP_NOTHING;
    }
}

enum top_request top_key(struct top_model *model, uint32_t key, int64_t *job)
{
    *model->message = '\0';
    if (model->typing)
        return type_filter(model, key);
    if (model->cancel_job >= 0) {
        *job = model->cancel_job;
        model->cancel_job = -1;
        if (key == 'y' || key == 'Y')
            return TOP_CANCEL;
        snprintf(model->message, sizeof model->message, "job %" PRId64 " is left as it is", *job);
        model->message_bad = false;
        return TOP_NOTHING;
    }
    return model->mode == TOP_LISTS ? use_lists(model, key, job) : read_text(model, key);
}
