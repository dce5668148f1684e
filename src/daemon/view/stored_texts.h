/* How many bytes carma has of each user's submissions: commands, scripts, environments, estimates.
 *
 * In the store a submission is there for as long as its job is in memory, so that the views' sum is the store's. In
 * memory what jobs have in common is kept once (common_texts.h, common_specs.h): an environment until the last of its
 * jobs ends. */
#ifndef CARMA_DAEMON_VIEW_STORED_TEXTS_H
#define CARMA_DAEMON_VIEW_STORED_TEXTS_H

#include <stddef.h>
#include <stdint.h>

struct job_view;
struct spec_strings;
struct views;

int64_t stored_texts_of(const struct views *views, uint32_t uid);
int64_t held_texts_of(const struct views *views, uint32_t uid);

/* What the job brought along is its user's, once that user is known. */
void job_view_charge_held(struct job_view *view);

/* The job's text is stored anew, with so many bytes; 0: it goes. */
void job_view_set_stored(struct job_view *view, size_t bytes);

/* The list leaves the job's text. */
void job_view_drop_stored(struct job_view *view, const struct spec_strings *list);

/* The job, with its text, is another user's from now on. */
void job_view_move_stored(struct job_view *view, uint32_t from, uint32_t to);

#endif
