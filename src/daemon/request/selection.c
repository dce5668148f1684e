#include "daemon/request/selection.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "api/array.h"
#include "api/spec.h"
#include "api/told/label.h"
#include "base/memory.h"
#include "base/units.h"
#include "daemon/request/requests.h"

#define PROBES 20000 /* for the jobs of an array of which the first ones are forgotten */

/* ---- States ---- */

static bool is_running(uint32_t state)
{
    return job_state_has_gpus(state);
}

static bool is_waiting(uint32_t state)
{
    return !job_state_ended(state) && !job_state_has_gpus(state);
}

static bool is_unfinished(uint32_t state)
{
    return !job_state_ended(state);
}

static bool is_any(uint32_t state)
{
    return state < JOB_STATE_COUNT;
}

static uint32_t states_that(bool (*are)(uint32_t state))
{
    uint32_t states = 0;

    for (uint32_t state = 0; state < JOB_STATE_COUNT; state++)
        states |= are(state) ? UINT32_C(1) << state : 0;
    return states;
}

uint32_t selection_states_unfinished(void)
{
    return states_that(is_unfinished);
}

/* 0: it is none. */
static uint32_t states_of(const char *word, size_t length)
{
    static const struct {
        const char *name;
        bool (*are)(uint32_t state);
    } groups[] = {{"all", is_any}, {"running", is_running}, {"waiting", is_waiting}, {"ended", job_state_ended}};

    for (size_t i = 0; i < array_size(groups); i++)
        if (strlen(groups[i].name) == length && strncasecmp(groups[i].name, word, length) == 0)
            return states_that(groups[i].are);
    for (uint32_t state = 0; state < JOB_STATE_COUNT; state++) {
        const char *name = job_state_name(state), *letter = job_state_letter(state);
        if ((strlen(name) == length && strncasecmp(name, word, length) == 0) ||
            (strlen(letter) == length && strncasecmp(letter, word, length) == 0))
            return UINT32_C(1) << state;
    }
    return 0;
}

static int read_states(const char *text, struct selection *selection, struct error *err)
{
    selection->has_states = true;
    selection->states = 0;
    for (const char *word = text; word; word = strchr(word, ',') ? strchr(word, ',') + 1 : NULL) {
        size_t length = strcspn(word, ",");
        uint32_t states = states_of(word, length);
        if (!states)
            return error_set(err, EINVAL,
                             "state '%.*s' is not known: say all, running, waiting or ended, or a state's name or "
                             "letters, e.g. HELD or PD",
                             length < 40 ? (int)length : 40, word);
        selection->states |= states;
    }
    return 0;
}

/* ---- Ids ---- */

/* A job of the array; its first ones may be forgotten. */
static const struct job_view *find_in_array(const struct views *views, uint64_t array, uint64_t *probes)
{
    const struct job_view *view = NULL;

    for (uint64_t id = array; !view && id <= views->last_id && id - array < ARRAY_MAX_JOBS && *probes; id++, --*probes)
        view = views_find(views, id);
    return view && job_view_is_shown(view) && view->wants->array == array ? view : NULL;
}

static int not_ids(const char *text, struct error *err)
{
    return error_set(err, EINVAL, "'%.40s' is not a list of job ids: write it like 7, 12-20 or 7_3 (of array 7)", text);
}

static int read_indices(const struct job_view *view, const char *text, struct selected_ids *ids, struct error *err)
{
    size_t length = strlen(text);
    bool bracketed = *text == '[' && text[length - 1] == ']';
    CLEANUP(free_ptr) char *indices = bracketed ? xstrndup(text + 1, length - 2) : xstrdup(text);
    struct array_words all;

    ids->indices = xcalloc(1, sizeof *ids->indices);
    if (array_parse(indices, ids->indices, NULL) || ids->indices->most || (!bracketed && ids->indices->jobs > 1))
        return not_ids(ids->text, err);
    if (!view)
        return error_set(err, ENOENT, "there is no array %" PRIu64 " for '%.40s'", ids->first, ids->text);
    if (!job_view_array_words(view, &all))
        return 0;
    for (uint32_t i = 0; i < ids->indices->jobs; i++)
        if (array_position(&all, array_index(ids->indices, i)) >= 0)
            return 0;
    return error_set(err, ENOENT, "there is no job %.40s: its array has others", ids->text);
}

static int read_word(struct selection *selection, const struct views *views, const char *word, size_t length,
                     uint64_t *probes, struct error *err)
{
    struct selected_ids *ids;
    const struct job_view *view;
    struct array_words words;
    size_t digits = strspn(word, "0123456789");
    char *behind;

    array_reserve(selection->ids, selection->id_capacity, selection->id_count + 1);
    ids = &selection->ids[selection->id_count++];
    *ids = (struct selected_ids){.text = xstrndup(word, length)};
    behind = ids->text + digits;
    if (digits == 0 || digits > 18 || digits > length)
        return not_ids(ids->text, err);
    ids->first = ids->last = strtoull(ids->text, NULL, 10);
    if (*behind == '-') {
        ids->is_range = true;
        return requests_read_number(behind + 1, 18, 0, &ids->last) && ids->last >= ids->first ? 0
                                                                                              : not_ids(ids->text, err);
    }
    if (*behind && *behind != '_')
        return not_ids(ids->text, err);
    view = find_in_array(views, ids->first, probes);
    if (view && job_view_array_words(view, &words))
        ids->last = ids->first + words.jobs - 1;
    return *behind ? read_indices(view, behind + 1, ids, err) : 0;
}

/* Up to a comma that is not within brackets. */
static size_t word_length(const char *text)
{
    const char *end = text;

    for (bool within = false; *end && (within || *end != ','); end++)
        within = *end == '[' || (within && *end != ']');
    return (size_t)(end - text);
}

static int read_ids(const char *text, const struct views *views, struct selection *selection, struct error *err)
{
    uint64_t probes = PROBES;
    int rc = 0;

    selection->least_id = UINT64_MAX;
    for (const char *word = text; word && rc == 0;) {
        size_t length = word_length(word);
        if (selection->id_count == SELECTION_WORDS)
            return error_set(err, EINVAL, "more than %d ids and ranges in one request: send several", SELECTION_WORDS);
        rc = read_word(selection, views, word, length, &probes, err);
        if (rc == 0 && selection->ids[selection->id_count - 1].first < selection->least_id)
            selection->least_id = selection->ids[selection->id_count - 1].first;
        if (rc == 0 && selection->ids[selection->id_count - 1].last > selection->most_id)
            selection->most_id = selection->ids[selection->id_count - 1].last;
        word = word[length] ? word + length + 1 : NULL;
    }
    return rc;
}

/* ---- All of it ---- */

static int read_all(const struct daemon *daemon, const struct http_request *request, struct selection *selection,
                    struct error *err)
{
    const char *state = http_query(request, "state"), *whose = http_query(request, "uid");
    const char *ids = http_query(request, "ids"), *array = http_query(request, "array");

    selection->user = http_query(request, "user");
    selection->name = http_query(request, "name");
    selection->account = http_query(request, "account");
    selection->tag = http_query(request, "tag");
    if (whose && strcmp(whose, "self") == 0)
        selection->uid = request->uid;
    else if (!requests_read_number(whose, 10, UINT64_MAX, &selection->uid))
        return error_set(err, EINVAL, "uid '%.40s' is not a user's number", whose);
    if (!requests_read_number(array, 18, 0, &selection->array))
        return error_set(err, EINVAL, "array '%.40s' is not an array's number", array);
    if (selection->name && strlen(selection->name) > SELECTION_GLOB)
        return error_set(err, EINVAL, "name is longer than %d bytes", SELECTION_GLOB);
    if (state && read_states(state, selection, err))
        return -EINVAL;
    return ids ? read_ids(ids, &daemon->views, selection, err) : 0;
}

bool selection_read(const struct daemon *daemon, struct http_request *request, uint32_t otherwise,
                    struct selection *selection)
{
    struct error err;
    int rc;

    *selection = (struct selection){.states = otherwise, .uid = UINT64_MAX};
    rc = read_all(daemon, request, selection, &err);
    if (rc == 0)
        return true;
    selection_release(selection);
    http_reply_error(request, rc == -ENOENT ? 404 : 400, "%s", err.text);
    return false;
}

void selection_release(struct selection *selection)
{
    for (size_t i = 0; i < selection->id_count; i++) {
        free(selection->ids[i].indices);
        free(selection->ids[i].text);
    }
    free_ptr(&selection->ids);
    selection->id_count = selection->id_capacity = 0;
}

/* Only the last * is tried again: as many steps as the one has letters, times those of the other. */
static bool matches(const char *glob, const char *text)
{
    const char *star = NULL, *again = text;

    while (*text) {
        if (*glob == '*') {
            star = ++glob;
            again = text;
        } else if (*glob == '?' || *glob == *text) {
            glob++;
            text++;
        } else if (star) {
            glob = star;
            text = ++again;
        } else {
            return false;
        }
    }
    return glob[strspn(glob, "*")] == '\0';
}

static bool is_of_user(const struct job_view *view, const char *user)
{
    const char *name = job_view_user(view);
    char number[16];

    snprintf(number, sizeof number, "%" PRIu32, view->wants->uid);
    return (name && strcmp(name, user) == 0) || strcmp(number, user) == 0;
}

static bool is_of_ids(struct selection *selection, const struct job_view *view)
{
    bool is = false;

    if (view->id < selection->least_id || view->id > selection->most_id)
        return false;
    for (size_t i = 0; i < selection->id_count; i++) {
        struct selected_ids *ids = &selection->ids[i];
        bool here = view->id >= ids->first && view->id <= ids->last &&
                    (!ids->indices || array_position(ids->indices, job_view_array(view).index) >= 0);
        ids->found += here;
        is |= here;
    }
    return is;
}

bool selection_is_all(const struct selection *selection)
{
    return !selection->ids && !selection->user && selection->uid == UINT64_MAX && !selection->has_states &&
           !selection->name && !selection->account && !selection->tag && !selection->array;
}

static bool is_labelled(const struct job_view *view, const struct selection *selection)
{
    const struct job_spec *spec = view->common->spec;

    return (!selection->account || (spec->account && strcmp(spec->account, selection->account) == 0)) &&
           (!selection->tag || labels_have(spec->tags, selection->tag));
}

bool selection_has(struct selection *selection, const struct job_view *view)
{
    return job_view_is_shown(view) && (selection->states >> view->state & 1) &&
           (selection->uid == UINT64_MAX || view->wants->uid == selection->uid) &&
           (!selection->array || view->wants->array == selection->array) &&
           (!selection->user || is_of_user(view, selection->user)) &&
           (!selection->name || matches(selection->name, common_text_first(view->name))) &&
           is_labelled(view, selection) && (!selection->ids || is_of_ids(selection, view));
}

const struct job_view *selection_begin(const struct selection *selection, const struct views *views)
{
    const struct job_view *view = selection->ids ? views_find(views, selection->least_id) : NULL;

    return view ? view : views->jobs;
}
