#!/bin/sh
# Selectors and ranges in all commands on jobs, and what they do to many at once; on a terminal they ask.
. "$(dirname "$0")/node.sh"
start_all h200x1 100 --set auto_capture=off

held() { # OPTION...: a held job
    submitted -H --gpu-memory 1G "$@" -- true
}

listed() { # ARGUMENT...: the ids of carma queue
    "$CARMA" queue "$@" | awk 'NR > 1 { printf "%s ", $1 }'
}

one=$(held -J train-a)
two=$(held -J train-b -A thesis --tag x --tag ab,x:1)
array=$(held -J sweep -a 0-299)
run submit --parsable --gpu-memory 1G --wait -J over -- echo its output
ended=$((array + 300))
me=$(id -un)
while read -r expected words; do
    # shellcheck disable=SC2086 # words
    [ "$(listed $words)" = "$(echo "$expected" | tr '+' ' ')" ] || fail "carma queue $words: $(listed $words)"
done <<END
$one+$two+ --name train*
$two+ --name *-?  $two-$array
$two+ -A thesis --tag x:1
$two+ --tag ab
$one+$two+${array}_[0-299]+ -u $me
$one+$two+${array}_[0-299]+ --me --state h
$ended+ --state ended,running
$ended+ -s CD $ended
${array}_[0-2]+ ${array}_[0-2]
$two+$ended+ $two,$ended
END
[ -z "$(listed --name train; listed --tag a; listed --tag ab,x; listed -A thesi; listed -u nobody; listed --state running)" ] || fail 'a selector has too much'
while read -r text word; do
    expect_error 2 "$(echo "$text" | tr '+' ' ')" submit "--tag=$word" -- true
done <<END
'a;'+is+not+a+name a;
is+not+a+name a,
is+there+twice a,b,a
has+at+most+16+tags $(seq -s , 17)
'$(printf '%065d' 0)'+is+not+a+name $(printf '%065d' 0)
END
run history --me
expect_out over
for command in 'show -J train*' 'logs -s all -J over'; do
    # shellcheck disable=SC2086 # words
    expect_ok $command
done
expect_output 'its output'
run show --json "$one" "$two"
[ "$(python3 -c 'import json, sys; print(*(job["id"] for job in json.load(sys.stdin)["jobs"]))' <"$T/out")" = "$one $two" ] ||
    fail "carma show of two: $(cat "$T/out")"
ends 1 logs "$ended" "$one"
expect_out "==> job $ended (over) <=="

# What is bad; what cannot be done is told of each, and the others are changed.
while read -r status text words; do
    # shellcheck disable=SC2086 # words
    expect_error "$status" "$(echo "$text" | tr '+' ' ')" $words
done <<END
1 state+'losing'+is+not+known cancel --state=held,losing
1 name+is+longer+than+128+bytes hold --name=$(printf '%0129d' 0)
1 there+is+no+job+'999' cancel 999
1 job+$ended+has+already+ended+(COMPLETED) cancel $ended
1 no+job+of+900-999+is+among hold 900-999
1 there+is+no+array+$one+for release ${one}_3
1 its+array+has+others cancel ${array}_[300-301]
1 only+one+that+runs+can+save checkpoint $one
END
ends 1 cancel --json "$one,999,$ended"
expect_out '"state": "CANCELLED"'
[ "$(wc -l <"$T/err")" = 2 ] || fail "carma cancel: $(cat "$T/err")"

# Many: all at once, and nothing of others; a range has what is there.
run release --name 'sweep' --json
[ "$(grep -c '"state": "QUEUED"' "$T/out")" = 300 ] || fail 'carma release has not all of an array'
run hold -s waiting,running -J sweep
expect_ok cancel "$one-$two" "${array}_[0-9]"
expect_field "$two" state CANCELLED
expect_field "${array}_9" state CANCELLED

# On a terminal they ask.
python3 "$SOURCE/tests/docs/terminal.py" <<END || fail 'on a terminal it is otherwise'
\$ $CARMA cancel --name sweep
cancel 290 jobs: $((array + 10))-$((array + 299))? [y/N] n
\$ $CARMA cancel -y ${array}_299
\$ $CARMA cancel --name sweep
cancel 289 jobs: $((array + 10))-$((array + 298))? [y/N] y
cancel: 289 jobs
\$ $CARMA hold --me
hold: no job is like that
END
finish
