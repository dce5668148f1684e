#!/bin/sh
# A driver whose calls hang for half a minute: the daemon goes on, places nothing blindly, and takes the GPUs back.
. "$(dirname "$0")/node.sh"
start_all h200x1 60
runs 1 --gpu-memory 2G -- "$TRAIN" --memory 1G --sm-activity 0.2 --seconds 36000
"$PREFIX/bin/carma-vnode" inject hang
wait_for 'grep -q "no GPU could be read for 30 s" "$T/daemon.log"' || {
    fail "never said that nothing can be read"
    exit 1
}
expect_field 1 state RUNNING
run submit --parsable --gpu-memory 1G -- true
shows "0 of the node's are usable" explain 2
expect_field 2 state QUEUED
"$PREFIX/bin/carma-vnode" clear
expect_ok wait 2
[ "$(grep -c 'no GPU could be read' "$T/daemon.log")" -eq 1 ] || fail "said more than once"
expect_field 1 attempts 1
cancel 1
