# A job of an ordinary user, on a virtual node: sourced after lib.sh.
# shellcheck shell=sh

# make_node: the node, and the setting by which carmad reads it.
make_node() {
    carma-vnode create "$NODE" --profile a100x4-40g >/dev/null || give_up "carma-vnode"
    chmod -R a+rwX "$NODE"
    echo 'nvml_library = /usr/lib/carma/vnode/libnvidia-ml.so.1' >>/etc/carma/carma.conf
}

shepherd_of() {
    sed -n 's/^shepherd //p' /var/lib/carma/runs/"$1"-*/status
}

# submit_job LOG FILE: one that has trained, and ends once alice has that file; its output tells how often it ran.
submit_job() {
    cat >/home/alice/job <<'END'
echo "begins as $(id -un)"
carma-train --memory 1G --sm-activity 0.3 --seconds 2 >/dev/null && echo "trained"
while [ ! -e "$1" ]; do sleep 0.1; done
echo "ends"
END
    as_alice carma submit --parsable -o "$1" -- sh /home/alice/job "/home/alice/$2" >submitted 2>&1 || give_up "submit: $(cat submitted)"
    until_says trained cat "/home/alice/$1"
}

expect_running() {
    [ "$(state_of "$1")" = RUNNING ] || fail "job $1 is $(state_of "$1")"
}

# finish_job ID LOG FILE SHEPHERD: it ran once, under that shepherd, to its end.
finish_job() {
    as_alice touch "/home/alice/$3"
    as_alice carma wait "$1" >/dev/null || fail "carma wait $1"
    [ "$(state_of "$1")" = COMPLETED ] || fail "job $1 ended $(state_of "$1")"
    [ "$(shepherd_of "$1")" = "$4" ] || fail "job $1 has another shepherd"
    [ "$(cat "/home/alice/$2")" = "$(printf 'begins as alice\ntrained\nends')" ] || fail "its log: $(cat "/home/alice/$2")"
}

expect_nothing_runs() {
    for exe in /proc/[0-9]*/exe; do
        case $(readlink "$exe") in
        */carma*) fail "still running: $(readlink "$exe")" ;;
        esac
    done
}
