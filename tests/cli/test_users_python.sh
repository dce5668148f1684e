#!/bin/sh
# The Python client of several users: forbidden actions and access to others' files. (By TCP: test_users_tcp.sh.)
. "$(dirname "$0")/users.sh"
homes
python=/usr/bin/python3
[ -x $python ] || python=python3
mkdir "$T/package" && cp -r "$SOURCE/python/carma" "$T/package" && chmod -R a+rX "$T/package"
export PYTHONPATH="$T/package" PYTHONDONTWRITEBYTECODE=1
start_all a100x4-40g 100

# python_as USER TEXT
python_as() {
    user=$1
    shift
    said="$user: python $1"
    as "$user" "$@" >"$T/out" 2>"$T/err"
    status=$?
}

python_as alice $python -c '
import carma
job = carma.submit("echo secret; exec sleep 1000", job_name="alices")
assert job.id == 1
for line in job.logs(follow=True):
    assert line == "secret"
    break'
expect_status 0
python_as bob $python -c '
import carma
job = carma.Job(1)
assert job.info["user"] == "alice" and "command" not in job.info
for verb in (job.cancel, job.hold, job.release):
    try:
        verb()
    except carma.NotAllowed as error:
        assert error.status == 403 and "belongs to alice" in str(error), error
    else:
        raise AssertionError(verb)
try:
    job.logs()
except carma.CarmaError as error:
    assert "permission denied: job 1 belongs to alice" in str(error), error
else:
    raise AssertionError("bob reads what alice wrote")
try:
    with job:
        raise KeyError
except KeyError:
    pass'
expect_status 0
grep -q 'job 1 was not cancelled: .*belongs to alice' "$T/err" || fail "$said: says $(cat "$T/err")"
until_field 1 state RUNNING

# A result that somebody else has written is not read: that would run foreign code.
mkdir -m 777 "$T/alice/open" && chmod 711 "$T/alice"
python_as alice $python -c 'import carma; print(carma.submit("true").wait())'
expect_output 0
as bob $python -c '
import pickle, sys
class Evil:
    def __reduce__(self):
        return print, ("pickles run",)
open(sys.argv[1] + "/alice/open/result.pickle", "wb").write(pickle.dumps(("value", Evil())))' "$T"
python_as alice $python -c 'import carma; carma.FunctionJob(2, "open").result()'
grep -q '^carma.errors.JobFailed: job 2: open/result.pickle: belongs to another user' "$T/err" || fail "$said: $(cat "$T/err")"
[ ! -s "$T/out" ] || fail "what bob wrote ran: $(cat "$T/out")"

# Root reads an output with the rights of the job's user.
(umask 077 && echo root-secret >"$T/secret")
as alice ln -s "$T/secret" link
python_as alice $python -c 'import carma; print(carma.submit("true", output="link", hold=True).id)'
expect_output 3
$python -c '
import carma
assert carma.Job(1).logs() == "secret\n"
try:
    print(carma.Job(3).logs())
except carma.CarmaError as error:
    assert "Permission denied" in str(error), error
else:
    raise AssertionError("root reads for alice what she may not")' || fail "root and the outputs of alice"
run cancel 1
