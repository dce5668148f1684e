/* Inside config only. */
#ifndef CARMA_CONFIG_PATHS_H
#define CARMA_CONFIG_PATHS_H

/* Of root's daemon. */
#define CONFIG_SYSTEM_STATE_DIRECTORY "/var/lib/carma"
#define CONFIG_SYSTEM_SOCKET          "/run/carma/carma.sock"

char *config_default_state_directory(void); /* owned by the caller */

#endif
