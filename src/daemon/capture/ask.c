#include "daemon/capture/ask.h"

#include "api/capture_request.h"
#include "api/spec.h"
#include "base/memory.h"
#include "daemon/capture/digests.h"
#include "launch/cgroup.h"

/* As the job's user, in its directory. `group` is the text that request.cgroup borrows. */
static struct capture_request request_of(const struct job_view *view, bool bare, char **group)
{
    const struct cgroup_place *place = cgroup_place();
    bool known = view->gid >= 0;

    *group = place->base ? cgroup_locate(place->mounts, place->base) : NULL;
    return (struct capture_request){.uid = view->wants->uid,
                                    .gid = known ? (gid_t)view->gid : view->wants->uid,
                                    .user = known ? job_view_user(view) : NULL,
                                    .directory = job_view_spec(view).directory,
                                    .cgroup = *group,
                                    .bare = bare};
}

int capture_ask(const struct job_view *view, bool bare, char **text, struct error *err)
{
    CLEANUP(free_ptr) char *group = NULL;
    const struct job_spec spec = job_view_spec(view);
    const struct capture_request request = request_of(view, bare, &group);

    return capture_request_make(&request, view->id, &spec, text, err);
}

char *capture_ask_digests(const struct job_view *view, bool bare, const json_t *digests)
{
    CLEANUP(free_ptr) char *group = NULL;
    const struct capture_request request = request_of(view, bare, &group);
    json_t *environment = json_pack("[s, s]", "PATH=/usr/bin:/bin", "LC_ALL=C");
    json_t *command = json_pack("[s, s, s, s]", "/bin/sh", "-c", digests_script(), "carma-capture");

    for (size_t i = 0; i < json_array_size(digests); i++)
        json_array_append_new(command, json_string(digests_path(digests, i)));
    return capture_request_text(&request, environment, command, DIGESTS_TIME_S, DIGESTS_OUTPUT_BYTES);
}
