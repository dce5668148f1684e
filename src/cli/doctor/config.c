/* Settings, and the group that they name. */
#include <errno.h>
#include <grp.h>
#include <string.h>

#include "base/memory.h"
#include "cli/doctor/doctor.h"

static void check_group(struct doctor *doctor)
{
    const char *name = doctor->config.admin_group;
    const struct group *group;
    size_t members = 0;

    if (!name)
        return;
    group = getgrnam(name);
    if (!group) {
        doctor_find(doctor, "admin group", DOCTOR_WARN, "make it with groupadd, or correct admin_group",
                    "admin_group '%s': there is no such group, so it has no members", name);
        return;
    }
    while (group->gr_mem[members])
        members++;
    doctor_find(doctor, "admin group", DOCTOR_OK, NULL, "%s, %zu %s by name", name, members,
                members == 1 ? "member" : "members");
}

void doctor_check_config(struct doctor *doctor)
{
    CLEANUP(free_ptr) char *standard = config_default_path();
    const char *path = doctor->config_file ? doctor->config_file : standard;
    struct error err;
    int rc = config_read_file(&doctor->config, path, &err);

    if (rc == -ENOENT && !doctor->config_file)
        doctor_find(doctor, "settings", DOCTOR_OK, NULL, "%s is not there: the built-in ones", path);
    else if (rc == -EACCES)
        doctor_find(doctor, "settings", DOCTOR_SKIP, "run carma doctor as root: the other checks use the built-in ones",
                    "%s", err.text);
    else if (rc)
        doctor_find(doctor, "settings", DOCTOR_FAIL,
                    "carmad does not start with it; `carmad --settings` lists the settings", "%s", err.text);
    else if (config_check(&doctor->config, &err))
        doctor_find(doctor, "settings", DOCTOR_FAIL, "carmad does not start with it", "%s: %s", path, err.text);
    else
        doctor_find(doctor, "settings", DOCTOR_OK, NULL, "%s", path);
    check_group(doctor);
}
