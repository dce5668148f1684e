#include "cli/cluster/nodes.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "client/connect.h"

void cluster_nodes_release(struct cluster_nodes *nodes)
{
    for (size_t i = 0; i < nodes->count; i++)
        free(nodes->names[i]);
    free(nodes->names);
}

/* A name that ssh takes as one, and not as an option of its own. */
static bool is_name(const char *name)
{
    const char *tcp = connect_tcp_of(name), *more = tcp ? ":[]" : "";

    name = tcp ? tcp : name;
    if (strlen(name) > 255 || !(isalnum((unsigned char)*name) || (tcp && *name == '[')))
        return false;
    for (; *name; name++)
        if (!isalnum((unsigned char)*name) && !strchr("._-", *name) && !strchr(more, *name))
            return false;
    return true;
}

static int add(struct cluster_nodes *nodes, const char *name, struct error *err)
{
    if (!is_name(name))
        return error_set(err, EINVAL,
                         "'%.60s' is not a node's name: letters, digits, '.', '_' and '-', or "
                         "tcp://ADDRESS:PORT",
                         name);
    for (size_t i = 0; i < nodes->count; i++)
        if (strcmp(nodes->names[i], name) == 0)
            return 0;
    if (nodes->count == CLUSTER_NODES_MOST)
        return error_set(err, E2BIG, "more than %d nodes: name some of them with --nodes", CLUSTER_NODES_MOST);
    array_reserve(nodes->names, nodes->capacity, nodes->count + 1);
    nodes->names[nodes->count++] = xstrdup(name);
    return 0;
}

static int add_all(struct cluster_nodes *nodes, const char *text, struct error *err)
{
    CLEANUP(free_ptr) char *copy = xstrdup(text);
    char *rest = copy, *name;
    int rc = 0;

    while (!rc && (name = strsep(&rest, ", \t\n")))
        rc = *name ? add(nodes, name, err) : 0;
    return rc;
}

/* A node stands in Slurm's list once for each of its partitions. */
static int ask_slurm(struct cluster_nodes *nodes, int64_t timeout_ms, struct error *err)
{
    static const char *const argv[] = {"sinfo", "-h", "-N", "-o", "%N", NULL};
    struct child sinfo = {.argv = argv};
    int rc;

    children_run(&sinfo, 1, timeout_ms);
    if (sinfo.end == CHILD_ENDED && sinfo.status == 0) {
        rc = add_all(nodes, sinfo.out.text ? sinfo.out.text : "", err);
    } else {
        CLEANUP(free_ptr) char *why = cluster_why(&sinfo, timeout_ms);
        rc = error_set(err, EIO, "Slurm does not name its nodes (sinfo: %s): name them with --nodes or in CARMA_NODES",
                       why);
    }
    child_release(&sinfo);
    return rc;
}

int cluster_nodes_find(struct cluster_nodes *nodes, const struct cluster *cluster, struct error *err)
{
    const char *set = getenv("CARMA_NODES"), *named = cluster->nodes ? cluster->nodes : set && *set ? set : NULL;
    int rc = named ? add_all(nodes, named, err) : ask_slurm(nodes, cluster->timeout_ms, err);

    if (!rc && !nodes->count)
        rc = error_set(err, ENOENT, "no node is named: say for example --nodes n1,n2");
    return rc;
}
