/* Brings the database to its fifth form: the tables of the accounting, filled from the fourth form. */
#include "store/store_internal.h"

/* A sum that does not fit an integer becomes a real number in SQLite, and is cut off at the largest integer again. */
#define ADD(column, more)           #column " = CAST(" #column " + " more " AS INTEGER)"
#define KNOWN(column)               "max(new." #column ", 0)"
#define COUNT_STATE(column, name)   #column " = " #column " + (new.state = '" name "'),"
#define COUNT_WAIT(column, seconds) #column " = " #column " + (new.wait_ns BETWEEN 0 AND " #seconds "000000000),"

/* The states and causes as that form numbers them. */
#define STATE_OF(number)                                                                                               \
    "CASE " number " WHEN 6 THEN 'COMPLETED' WHEN 7 THEN 'FAILED' WHEN 8 THEN 'GPU_OOM' WHEN 9 THEN 'CANCELLED'"       \
    " WHEN 10 THEN 'LOST' WHEN 11 THEN 'REFUSED' WHEN 12 THEN 'TIMEOUT' END"
#define CAUSE_OF(number)                                                                                               \
    "CASE " number " WHEN 0 THEN 'completed' WHEN 1 THEN 'failed' WHEN 2 THEN 'gpu_oom' WHEN 3 THEN 'signalled'"       \
    " WHEN 4 THEN 'gpu_handle' WHEN 5 THEN 'host_oom' WHEN 6 THEN 'mps_fault' WHEN 7 THEN 'gpu_error'"                 \
    " WHEN 8 THEN 'timeout' WHEN 9 THEN 'lost' END"
#define SOURCE_OF(number)                                                                                              \
    "CASE " number " WHEN 1 THEN 'declared' WHEN 2 THEN 'recorded' WHEN 3 THEN 'estimated' WHEN 4 THEN 'learned'"      \
    " ELSE 'unknown' END"
#define INTEGER_OF(json, path, otherwise) "CAST(ifnull(json_extract(" json ", '$." path "'), " otherwise ") AS INTEGER)"
#define TEXT_OF(json, path)               "CAST(ifnull(json_extract(" json ", '$." path "'), '') AS TEXT)"

/* The formatter would break these texts within words. */
/* clang-format off */
const char store_history_form[] =
    "CREATE TABLE history (job INTEGER PRIMARY KEY, uid INTEGER NOT NULL, state TEXT NOT NULL, cause TEXT,"
    " submitted_ns INTEGER NOT NULL, first_started_ns INTEGER NOT NULL, started_ns INTEGER NOT NULL,"
    " ended_ns INTEGER NOT NULL, wait_ns INTEGER NOT NULL, gpus INTEGER NOT NULL, gpu_ns INTEGER NOT NULL,"
    " memory_mib_ms INTEGER NOT NULL, memory_measured_mib_ms INTEGER NOT NULL, energy_mj INTEGER NOT NULL,"
    " launches INTEGER NOT NULL, oom_crashes INTEGER NOT NULL, handle_crashes INTEGER NOT NULL,"
    " recoveries INTEGER NOT NULL, claim_bytes INTEGER NOT NULL, claim_source TEXT NOT NULL,"
    " estimate_bytes INTEGER NOT NULL, estimator TEXT, peak_bytes INTEGER NOT NULL, user TEXT NOT NULL,"
    " name TEXT NOT NULL, workload TEXT NOT NULL) STRICT;"
    "CREATE INDEX history_by_end ON history (ended_ns);"
    "CREATE INDEX history_by_user ON history (uid, ended_ns);"
    "CREATE INDEX history_by_name ON history (name, ended_ns);"
    "CREATE TABLE total (uid INTEGER PRIMARY KEY, user TEXT NOT NULL, completed INTEGER NOT NULL DEFAULT 0,"
    " failed INTEGER NOT NULL DEFAULT 0, gpu_oom INTEGER NOT NULL DEFAULT 0, cancelled INTEGER NOT NULL DEFAULT 0,"
    " lost INTEGER NOT NULL DEFAULT 0, refused INTEGER NOT NULL DEFAULT 0, timeout INTEGER NOT NULL DEFAULT 0,"
    " launched INTEGER NOT NULL DEFAULT 0, wait_ns INTEGER NOT NULL DEFAULT 0, wait_1s INTEGER NOT NULL DEFAULT 0,"
    " wait_10s INTEGER NOT NULL DEFAULT 0, wait_1m INTEGER NOT NULL DEFAULT 0, wait_5m INTEGER NOT NULL DEFAULT 0,"
    " wait_15m INTEGER NOT NULL DEFAULT 0, wait_30m INTEGER NOT NULL DEFAULT 0, wait_1h INTEGER NOT NULL DEFAULT 0,"
    " wait_2h INTEGER NOT NULL DEFAULT 0, wait_4h INTEGER NOT NULL DEFAULT 0, wait_8h INTEGER NOT NULL DEFAULT 0,"
    " wait_1d INTEGER NOT NULL DEFAULT 0, wait_3d INTEGER NOT NULL DEFAULT 0, wait_7d INTEGER NOT NULL DEFAULT 0,"
    " gpu_ns INTEGER NOT NULL DEFAULT 0, memory_mib_ms INTEGER NOT NULL DEFAULT 0,"
    " energy_mj INTEGER NOT NULL DEFAULT 0, oom_crashes INTEGER NOT NULL DEFAULT 0,"
    " handle_crashes INTEGER NOT NULL DEFAULT 0, recoveries INTEGER NOT NULL DEFAULT 0) STRICT;"
    "CREATE TABLE held (job INTEGER PRIMARY KEY, at_ns INTEGER NOT NULL, bytes INTEGER NOT NULL,"
    " measured_bytes INTEGER NOT NULL, mib_ms INTEGER NOT NULL, measured_mib_ms INTEGER NOT NULL) STRICT;"
    /* The sums follow the rows, for all code that writes these; forgetting a row does not lower them. */
    "CREATE TRIGGER history_counted AFTER INSERT ON history BEGIN"
    " INSERT OR IGNORE INTO total (uid, user) VALUES (new.uid, new.user);"
    " UPDATE total SET user = new.user, " COUNT_STATE(completed, "COMPLETED") " " COUNT_STATE(failed, "FAILED") " "
    COUNT_STATE(gpu_oom, "GPU_OOM") " " COUNT_STATE(cancelled, "CANCELLED") " " COUNT_STATE(lost, "LOST") " "
    COUNT_STATE(refused, "REFUSED") " " COUNT_STATE(timeout, "TIMEOUT")
    " launched = launched + (new.wait_ns >= 0), " ADD(wait_ns, KNOWN(wait_ns)) ", "
    COUNT_WAIT(wait_1s, 1) " " COUNT_WAIT(wait_10s, 10) " " COUNT_WAIT(wait_1m, 60) " " COUNT_WAIT(wait_5m, 300) " "
    COUNT_WAIT(wait_15m, 900) " " COUNT_WAIT(wait_30m, 1800) " " COUNT_WAIT(wait_1h, 3600) " "
    COUNT_WAIT(wait_2h, 7200) " " COUNT_WAIT(wait_4h, 14400) " " COUNT_WAIT(wait_8h, 28800) " "
    COUNT_WAIT(wait_1d, 86400) " " COUNT_WAIT(wait_3d, 259200) " " COUNT_WAIT(wait_7d, 604800) " "
    ADD(gpu_ns, KNOWN(gpu_ns)) ", " ADD(memory_mib_ms, KNOWN(memory_mib_ms)) ", " ADD(energy_mj, KNOWN(energy_mj)) ", "
    ADD(oom_crashes, KNOWN(oom_crashes)) ", " ADD(handle_crashes, KNOWN(handle_crashes)) ", "
    ADD(recoveries, KNOWN(recoveries)) " WHERE uid = new.uid; END;"
    "CREATE TRIGGER history_recounted AFTER UPDATE OF energy_mj ON history BEGIN"
    " UPDATE total SET " ADD(energy_mj, KNOWN(energy_mj) " - max(old.energy_mj, 0)") " WHERE uid = new.uid; END;"
    /* Damaged rows are left to their readers; memory over time was not counted then. */
    "INSERT INTO history SELECT job, uid, " STATE_OF("state") ", " CAUSE_OF("json_extract(exited, '$.cause')")
    ", submitted_ns, first_ns, last_ns, ended_ns,"
    " CASE WHEN first_ns < 0 THEN -1 ELSE CAST(max(first_ns - submitted_ns, 0) AS INTEGER) END,"
    " gpus, gpu_ns, -1, -1, mj, launches, crashes, 0, 0, claim_bytes, source, estimate, estimator, peak, user, name,"
    " workload FROM (SELECT job, ended_ns, exited, mj, "
    INTEGER_OF("submitted", "uid", "0") " AS uid, " INTEGER_OF("body", "state", "-1") " AS state, "
    INTEGER_OF("body", "submitted_ns", "0") " AS submitted_ns, " INTEGER_OF("body", "first_started_ns", "-1")
    " AS first_ns, " INTEGER_OF("body", "started_ns", "-1") " AS last_ns, " INTEGER_OF("submitted", "gpus", "0")
    " AS gpus, " INTEGER_OF("body", "ran_gpu_ns", "0") " AS gpu_ns, " INTEGER_OF("body", "launches", "0")
    " AS launches, " INTEGER_OF("body", "crashes", "0") " AS crashes, " INTEGER_OF("submitted", "claim_bytes", "-1")
    " AS claim_bytes, " SOURCE_OF("json_extract(submitted, '$.claim_source')") " AS source, "
    INTEGER_OF("spec", "estimate.bytes", "-1") " AS estimate, json_extract(spec, '$.estimate.source') AS estimator,"
    " ifnull((SELECT max(CAST(CASE WHEN json_valid(value) THEN json_extract(value, '$[1]') END AS INTEGER))"
    " FROM json_each(body, '$.placements')), 0)"
    " AS peak, " TEXT_OF("body", "user") " AS user, " TEXT_OF("spec", "name") " AS name, "
    TEXT_OF("submitted", "workload") " AS workload"
    " FROM (SELECT job.job, job.ended_ns, job.body, ifnull(used.mj, 0) AS mj,"
    " CASE WHEN json_valid(spec.body) THEN spec.body ELSE '{}' END AS spec,"
    " CASE WHEN json_valid(json_extract(job.body, '$.submitted')) THEN json_extract(job.body, '$.submitted')"
    " ELSE '{}' END AS submitted,"
    " CASE WHEN json_valid(json_extract(job.body, '$.exited')) THEN json_extract(job.body, '$.exited')"
    " ELSE '{}' END AS exited"
    " FROM (SELECT job, ended_ns, CASE WHEN json_valid(body) THEN body ELSE '{}' END AS body FROM job) AS job"
    " LEFT JOIN spec ON spec.job = job.job"
    " LEFT JOIN (SELECT job, CAST(total(mj) AS INTEGER) AS mj FROM energy GROUP BY job) AS used ON used.job = job.job"
    " WHERE job.ended_ns >= 0)) WHERE state BETWEEN 6 AND 12;";
/* clang-format on */
