#!/bin/sh
# A row of src/api/job_fields.def is enough: files written from the table are up to date, every field is everywhere.
. "$(dirname "$0")/node.sh"

for file in python:python/carma/fields.py markdown:docs/formats/job.md; do
    "$BUILD/src/api/print-job-fields" "${file%%:*}" >printed || fail "print-job-fields ${file%%:*}"
    diff -u "$SOURCE/${file#*:}" printed || fail "${file#*:} does not match the table: run script/job-fields"
done
start_all a100x4-40g 100
PYTHONPATH="$SOURCE/python" PYTHONDONTWRITEBYTECODE=1 python3 "$SOURCE/tests/cli/job_fields.py" "$CARMA" "$STATE/store.db" ||
    fail "job_fields.py"
