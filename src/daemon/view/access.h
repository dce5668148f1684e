/* The access rules, all of them here. The kernel, or the token's file, says which user the caller is; a request never
 * does (docs/threat-model.md).
 *
 *                      his own job     another's job
 *   root, and the uid  sees and does all there is
 *   that runs carmad
 *   a member of the    everything      sees its entry in the queue, may cancel, hold and release it
 *   admin_group
 *   anybody else       everything      sees its entry in the queue */
#ifndef CARMA_DAEMON_VIEW_ACCESS_H
#define CARMA_DAEMON_VIEW_ACCESS_H

#include <sys/types.h>
#include <uv.h>

struct access;

/* The parts of a job that are shown. Its entry in the queue: user, state, resources, reasons, times, in carma's own
 * words and numbers. The rest was written by the user, or by the job: command, directory, paths, names of files, quoted
 * messages. */
enum access_view { ACCESS_ENTRY, ACCESS_ALL };

enum access_view access_view_of(uid_t caller, uid_t owner);

/* The group's members are looked up on libuv's pool, however long that takes, and remembered for a few seconds. A group
 * that is not there is logged: it has no members until it is. */
struct access *access_new(uv_loop_t *loop, const char *admin_group);
void access_free(struct access *access); /* waiting callers get -ESHUTDOWN once their look-up has ended: run the loop
                                            until then */

/* Whether `caller` may change a job of `owner`. `answer` is called once, at once or later: 0, -EPERM or -ESHUTDOWN. */
void access_ask(struct access *access, uid_t caller, uid_t owner, void (*answer)(int status, void *user), void *user);

#endif
