/* The rights of the sandbox's processes. The process that sets it up runs as the job's user. Of root's rights it has
 * only those for mounts and the network. The command has none of them. */
#ifndef CARMA_SANDBOX_RIGHTS_H
#define CARMA_SANDBOX_RIGHTS_H

#include "base/trust/account.h"
#include "base/error.h"
#include "sandbox/request.h"

/* As root the account is asked for before any namespace is made: the answer may come by the network. */
void rights_of_account(const struct sandbox_request *request, struct account *account);

/* As root: becomes the user. In both modes it keeps what setting up needs. */
int rights_become_user(const struct account *account, bool by_root, struct error *err);

/* Without a sandbox: becomes the user, for good. Refused for root, since the command would have all rights of the
 * machine. */
int rights_of_user_alone(const struct account *account, struct error *err);

/* The rights with which the kernel reaches the layers of an overlay. They are for its work directory, which nobody else
 * may enter, and for keeping the owners of files that are written. Path names are never looked up with them. */
int rights_of_layers(bool had, struct error *err);

/* Gives all up for good, for programs executed later, too. */
int rights_give_up(struct error *err);

#endif
