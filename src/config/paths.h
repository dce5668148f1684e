/* Inside config only. */
#ifndef CARMA_CONFIG_PATHS_H
#define CARMA_CONFIG_PATHS_H

char *config_default_state_directory(void); /* owned by the caller */

#endif
