#!/bin/sh
# What is told of jobs, by whom and to whom: carma-notify with users' targets and the administrator's hooks, --on-end, and the
# filter of submissions. No program tells anybody here: fakes write down what they were given, and by whose rights.
. "$2/tests/cli/users.sh"
homes
for user in alice bob carol; do
    sed "s|^\($user:.*\):/nonexistent:|\1:$T/$user:|" /etc/passwd >accounts && cat accounts >/etc/passwd
    as $user mkdir -p .config/carma
done
mkdir -m 755 fakes hooks open
cat >fakes/sendmail <<'SH'
#!/bin/sh
{ echo "by $(id -un) $*"; cat; } >>~/told
SH
cat >fakes/curl <<'SH'
#!/bin/sh
[ -e ~/once ] || { touch ~/once && echo 'no route' && exit 7; } # the first try fails
{ echo "by $(id -un) $*"; cat; cat <&3; echo; } >>~/told
SH
printf '#!/bin/sh\ncat >>%s/hooked && echo >>%s/hooked\n' "$T" "$T" >hooks/all
printf '#!/bin/sh\nprintf "two\\nbad \\033[31mlines\\n"; exit 4\n' >hooks/bad
printf '#!/bin/sh\ntouch %s/ran\n' "$T" | tee hooks/open hooks/left.sh >open/one
cat >filter <<'PYTHON'
#!/usr/bin/python3
import json, os, subprocess, sys
said = json.load(sys.stdin)
if said["jobs"][0]["name"] == "bad":
    sys.exit("it \x1b[31mfails")
if said["jobs"][0]["name"] == "left":
    subprocess.Popen(["sh", "-c", 'until [ -e "$0" ]; do sleep 0.1; done', sys.argv[0] + ".over"], start_new_session=True)
if said["jobs"][0]["name"] == "refused":
    print(json.dumps({"refuse": "not\non \x1b[31mMondays"}))
elif said["jobs"][0]["name"] in ("command", "many", "junk"):
    print({"command": '{"jobs": [{"command": ["rm"]}]}', "many": '{"jobs": []}', "junk": "yes"}[said["jobs"][0]["name"]])
elif said["jobs"][0]["name"] == "changed":
    as_whom = f"{said['user']}:{os.getuid()}:{len(os.getgroups())}:{len(os.environ)}:{'environment' in said['jobs'][0]}"
    print(json.dumps({"jobs": [{"account": as_whom, "priority": 2}]}))
PYTHON
chmod 755 fakes/* hooks/* open/* filter
chmod o+w hooks/open open
start_all a100x4-40g 1 --set submit_filter="$T/filter" --set time_limit_default=30m --set time_limit_max=2h

start_notify() { # [HOOKS]
    PATH=$T/fakes:$PATH "$PREFIX/lib/carma/carma-notify" --hooks "$T/${1:-hooks}" --state "$T/told.json" 2>>notify.log &
    notify=$!
}

stop_notify() {
    kill "$notify" && wait "$notify" || fail "carma-notify: $(cat notify.log)"
}

told() { # USER TEXT
    wait_for 'grep -qF -- "$2" "$1/told" 2>/dev/null' "$@" || fail "$1 is not told '$2': $(cat "$1/told" notify.log)"
}

# Each by his own file and rights; no address is in a command line.
as alice sh -c 'printf "# mine\nevents = start,fail,end\nmail=ada@example.org\nwebhook = https://example.org/secret\n" >.config/carma/notify
    echo closed >secret; chmod 600 secret'
as carol ln -s "$T/alice/secret" .config/carma/notify
start_notify
wait_for '[ -s told.json ]'
carma_as() { # USER ARGUMENT...
    submitter=$1
    shift
    as "$submitter" "$CARMA" submit --gpu-memory 1G "$@" >/dev/null || fail "$submitter cannot submit $*"
}
carma_as alice -J 'one <é>' -- sh -c 'exit 3'
carma_as bob --notify timeout=7199s --notify oom -t 2:00:00 -- sleep 1000
carma_as bob -- true # nobody wants to know
allowed bob wait 3
told alice "Subject: carma: job 1 (one <??>) on $(uname -n) is FAILED"
told alice 'by alice -i -t'
told alice 'To: ada@example.org'
told alice 'by alice --config -'
told alice 'url = "https://example.org/secret"'
told alice '"event":"fail"'
told alice '"event":"start"'
told bob 'by bob -i -t'
told bob 'To: bob'
told bob 'reaches its time limit of 2:00:00 in 1:59:59'
grep -q 'job 3\|has started' bob/told && fail "bob is told what he did not ask for: $(cat bob/told)"
run_as carol submit --gpu-memory 1G -- true
expect_status 1
run_as carol submit --notify end --gpu-memory 1G -- true
wait_for 'grep -q "job 4: uid 12003: cannot read .*Permission denied" notify.log' || fail "carol reads alice's: $(cat notify.log)"
wait_for '[ "$(grep -c "^{.*\"id\":4" hooked)" -eq 2 ]' || fail "hooks: $(cat hooked)"
python3 -c 'import json, sys
seen = sorted((event["job"]["id"], event["event"]) for event in map(json.loads, filter(str.strip, sys.stdin)))
assert seen == [(1, "fail"), (1, "start"), (2, "start"), (2, "timeout"), (3, "end"), (3, "start"), (4, "end"), (4, "start")], seen' <hooked ||
    fail 'the hooks have something else'
grep -q 'hooks/bad: exit status 4: bad ?\[31mlines$' notify.log || fail "a hook's line: $(cat notify.log)"
grep -q 'hooks/open: not run: it is no file that only root can write' notify.log || fail "$(cat notify.log)"
[ ! -e ran ] || fail 'a hook that others can write has run'

# Nothing is told again; what happened meanwhile is; a directory that others can write has no hooks.
stop_notify
rm hooked alice/told
carma_as alice -J late -- true
allowed alice wait 5
start_notify open
told alice 'job 5 (late)'
grep -q 'job 1 ' alice/told && fail "told again: $(cat alice/told)"
wait_for 'grep -q "open/one: not run: others can write its directory" notify.log' || fail "$(cat notify.log)"
stop_notify

# A command after each run, as the user, without a GPU; what it leaves behind goes.
carma_as alice -o after --on-end 'echo "$(id -un) $CARMA_JOB_ID $CARMA_EXIT_CAUSE $CARMA_EXIT_CODE [$CUDA_VISIBLE_DEVICES]"; sleep 4321 & echo $! >left' \
    -- sh -c 'echo job; exit 3'
wait_for 'grep -qx "alice 6 failed 3 \[\]" alice/after && [ -s alice/left ] && ! kill -0 "$(cat alice/left)" 2>/dev/null' ||
    fail "--on-end: $(cat alice/after)"
carma_as alice -o stopped --on-end 'echo "$CARMA_EXIT_CAUSE"' -- sleep 1000
until_field 7 state RUNNING
allowed alice cancel 7
wait_for 'grep -qx stopped alice/stopped' || fail "--on-end of a cancelled job: $(cat alice/stopped)"

# The filter refuses, changes, and stops what it fails on; as nobody, without environments.
while read -r name text; do
    refused alice "$text" submit -J "$name" --gpu-memory 1G -- true
done <<END
refused not?on ?[31mMondays
bad the administrator's filter failed, so nothing was submitted: it ?[31mfails
command it cannot change 'command'
many its "jobs" are not a list of 1
junk not JSON
left keeps its output open
END
touch filter.over
refused alice '3:00:00 is more than one job may take here, 2:00:00 (time_limit_max)' submit -t 3:00:00 -- true
carma_as alice --hold -J changed -- true
expect_field 8 account alice:65534:0:2:False priority 2 time_limit_ns 1800000000000
refused alice '2:00:00 (time_limit_max)' edit 8 time=3:00:00
as alice "$CARMA" edit 8 time= || fail "$(cat err)"
expect_field 8 time_limit_ns 1800000000000

# It sees what a user makes of his waiting jobs, too, and not what an administrator does.
while read -r name text; do
    refused alice "$text" edit 8 name="$name"
done <<END
refused not?on ?[31mMondays
bad the administrator's filter failed, so nothing was changed: it ?[31mfails
command with what the administrator's filter adds: 'command' cannot be changed
many its "jobs" are not a list of 1
END
expect_field 8 name changed
as alice "$CARMA" edit 8 account=mine priority=0 tags=one || fail "$(cat err)"
expect_field 8 account alice:65534:0:2:False priority 2 tags one
run edit 8 name=refused
expect_field 8 name refused
allowed alice cancel 8

# The hooks are told of the jobs' users in turn: whoever has many keeps nobody waiting.
rm -f hooked
for of in alice=0-9 bob=0 alice=0-9; do
    run_as "${of%=*}" submit --parsable -G 0 -J "of-${of%=*}" --array "${of#*=}" -- true
    allowed "${of%=*}" wait "$(cat out)"
done
start_notify
wait_for '[ "$(grep -sc "\"of-alice" hooked || true)" = 40 ]' || fail "hooks: $(cat hooked notify.log)"
grep '^{' hooked | head -n 4 | grep -q '"of-bob"' || fail "bob's job comes after all of alice's: $(grep -o '"of-[a-z]*' hooked)"
stop_notify
