#include "daemon/capture/ask.h"

#include <unistd.h>

#include "api/capture_request.h"
#include "api/spec.h"
#include "base/memory.h"
#include "base/trust/account.h"
#include "daemon/capture/digests.h"
#include "launch/cgroup/cgroup.h"

/* Without an account he is in no group: the one with his number is others'. */
static gid_t group_of(const struct job_view *view)
{
    if (view->wants->uid == geteuid())
        return getegid();
    return view->gid >= 0 ? (gid_t)view->gid : ACCOUNT_NOBODYS_GROUP;
}

/* As the job's user, in its directory. `group` is the text that request.cgroup borrows. */
static struct capture_request request_of(const struct job_view *view, bool bare, char **group)
{
    const struct cgroup_place *place = cgroup_place();
    bool known = view->gid >= 0;

    *group = place->base ? cgroup_locate(place->mounts, place->base) : NULL;
    return (struct capture_request){.uid = view->wants->uid,
                                    .gid = group_of(view),
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
