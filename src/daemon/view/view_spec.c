/* How this file works: view.c hands over what a submission said. All parts that other jobs have as well, the text of
 * the whole among them, are kept once (common_texts.h). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/array.h"
#include "api/spec.h"
#include "base/memory.h"
#include "daemon/view/view.h"

void job_view_take_spec(struct job_view *view, struct job_spec *spec, struct job_estimate *estimate)
{
    struct common_texts *texts = &view->views->texts;

    view->has_script = spec->script;
    view->name = common_texts_join_one(texts, spec->name);
    view->command = common_texts_join(texts, &spec->command);
    view->environment = common_texts_join(texts, &spec->environment);
    view->script = common_texts_join_one(texts, spec->script);
    free_ptr(&spec->name);
    spec_strings_release(&spec->command);
    spec_strings_release(&spec->environment);
    free_ptr(&spec->script);
    view->common = common_specs_join(&view->views->specs, spec, estimate);
}

void job_view_share_spec(struct job_view *view, const struct job_view *other)
{
    view->has_script = other->has_script;
    view->name = common_texts_share(other->name);
    view->command = common_texts_share(other->command);
    view->environment = common_texts_share(other->environment);
    view->script = common_texts_share(other->script);
    view->common = other->common;
    view->common->users++;
}

bool job_view_array_words(const struct job_view *view, struct array_words *words)
{
    uint64_t id = view->wants->array;
    const char *text = view->common->spec->array;

    return id && text && array_parse(text, words, NULL) == 0 && view->id - id < words->jobs;
}

const char *job_number(const struct views *views, uint64_t id, char text[static JOB_NUMBER_TEXT])
{
    const struct job_view *view = views_find(views, id);
    const struct launch_array array = view ? job_view_array(view) : (struct launch_array){0};

    if (array.id)
        snprintf(text, JOB_NUMBER_TEXT, "%" PRIu64 "_%" PRIu32, array.id, array.index);
    else
        snprintf(text, JOB_NUMBER_TEXT, "%" PRIu64, id);
    return text;
}

struct launch_array job_view_array(const struct job_view *view)
{
    uint64_t id = view->wants->array;
    struct array_words words;

    if (!job_view_array_words(view, &words))
        return (struct launch_array){0};
    return (struct launch_array){.id = id,
                                 .index = array_index(&words, (uint32_t)(view->id - id)),
                                 .jobs = words.jobs,
                                 .least = array_index(&words, 0),
                                 .most = array_last(&words)};
}

struct job_spec job_view_spec(const struct job_view *view)
{
    struct job_spec spec = *view->common->spec;

    spec.name = common_text_first(view->name);
    spec.command = common_text_list(view->command);
    spec.environment = common_text_list(view->environment);
    spec.script = common_text_first(view->script);
    return spec;
}

static int compare_ids(const struct job_view *a, const struct job_view *b)
{
    return a->id < b->id ? -1 : a->id > b->id;
}

struct job_view *views_add_unknown(struct views *views, uint64_t id)
{
    struct job_estimate estimate;
    struct job_spec spec;
    struct job_view *view;

    job_spec_init(&spec);
    job_estimate_init(&estimate);
    view = views_add(views, id, &spec, &estimate);
    HASH_SORT(views->jobs, compare_ids);
    return view;
}

static void set_common(struct job_view *view, struct job_spec *spec, struct job_estimate *estimate)
{
    struct common_spec *common = common_specs_join(&view->views->specs, spec, estimate);

    common_specs_leave(&view->views->specs, view->common);
    view->common = common;
    job_view_charge_held(view);
    views_touch(view->views, view);
}

void job_view_set_estimate(struct job_view *view, struct job_estimate *estimate)
{
    struct job_spec spec = job_spec_copy(view->common->spec);

    set_common(view, &spec, estimate);
}

void job_view_set_spec(struct job_view *view, struct job_spec *spec)
{
    struct common_text *name = common_texts_join_one(&view->views->texts, spec->name);
    struct job_estimate estimate = job_estimate_copy(&view->common->estimate);

    common_texts_leave(&view->views->texts, view->name);
    view->name = name;
    free_ptr(&spec->name);
    spec_strings_release(&spec->command);
    spec_strings_release(&spec->environment);
    free_ptr(&spec->script);
    set_common(view, spec, &estimate);
}
