/* Processes whose parent this one has become: where no namespace ends them. */
#ifndef CARMA_SANDBOX_ORPHANS_H
#define CARMA_SANDBOX_ORPHANS_H

/* From now on the descendants whose own parent ends become children of this process. */
void orphans_adopt(void);

/* Kills all children and their children, until none is left; gives up after a minute. */
void orphans_end(void);

#endif
