/* Policies as people ask for them: a name that sets several keys at once, so that variants are data and not code. */
#ifndef CARMA_CONFIG_PRESETS_H
#define CARMA_CONFIG_PRESETS_H

struct preset {
    const char *name;
    const char *policy;          /* of the core's table */
    const char *summary;         /* a short text, and the description from which it was re-implemented */
    const char *settings;        /* "key=value key=value ...", applied in order */
    const char *simulated_share; /* how jobs share GPUs in a simulation of it that says nothing else; NULL: by MPS */
};

extern const struct preset presets[]; /* ends with a NULL name */

const struct preset *preset_find(const char *name); /* NULL: no preset has this name */

/* Of a policy as it is named, "thesis+lug"; NULL: none of its presets says. */
const char *presets_simulated_share(const char *policy);

#endif
