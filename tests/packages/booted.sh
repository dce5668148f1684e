#!/bin/sh
# Usage: booted.sh OLD NEW, in a root tree in which systemd runs: carmad as the service that the packages in /opt/test/OLD
# and /opt/test/NEW make of it, while a job runs. Run by test_packages.sh, at boot.
old=$1
new=$2
# shellcheck source=lib.sh
. /opt/test/lib.sh
# shellcheck source=job.sh
. /opt/test/job.sh

main_pid() {
    systemctl show --property MainPID --value carmad.service
}

# until_another PID: until carmad is another process, and answers.
until_another() {
    left=900
    until pid=$(main_pid) && [ "$pid" != "$1" ] && [ "$pid" != 0 ] && as_alice carma queue >/dev/null 2>&1; do
        left=$((left - 1))
        [ "$left" -gt 0 ] || give_up "carmad is not started again: $(systemctl --no-pager status carmad.service)"
        sleep 0.1
    done
}

dpkg -i "$tools/$old"/*.deb >>apt.log 2>&1 || give_up "the packages cannot be installed"
for unit in carmad.service carmad.socket; do
    systemctl --quiet is-active "$unit" || give_up "$unit: $(systemctl --no-pager status "$unit")"
    systemctl --quiet is-enabled "$unit" || fail "$unit is not enabled"
done
unit=carma-slurm-agent.service
systemctl --quiet is-enabled "$unit" && fail "$unit is enabled without an administrator's word"
systemctl --quiet is-active "$unit" && fail "$unit is active without an administrator's word"
systemctl --quiet enable --now "$unit" || fail "$unit: $(systemctl --no-pager status "$unit")"
systemctl --quiet is-active "$unit" || fail "$unit: $(systemctl --no-pager status "$unit")"
[ "$(stat -c '%a %U' /var/lib/carma-slurm)" = '700 root' ] || fail "/var/lib/carma-slurm: $(stat -c '%a %U' /var/lib/carma-slurm)"
as_alice carma queue >/dev/null || fail "an ordinary user cannot ask a fresh installation"

make_node
mkdir -p /etc/systemd/system/carmad.service.d
printf '[Service]\nEnvironment=CARMA_VNODE=%s\nWatchdogSec=3s\nTimeoutAbortSec=1s\n' "$NODE" >/etc/systemd/system/carmad.service.d/test.conf
systemctl daemon-reload
systemctl restart carmad.service
until_says A100 carma gpus
until_says '4 GPUs; 0 jobs running' systemctl show --property StatusText carmad.service

submit_job first.log go
shepherd=$(shepherd_of 1)
[ "$(sed -n 's/^0:://p' "/proc/${shepherd%% *}/cgroup")" = /system.slice/carmad.service ] ||
    fail "the shepherd is in $(cat "/proc/${shepherd%% *}/cgroup")"
case $(sed -n 's/^cgroup //p' /var/lib/carma/runs/1-*/status) in
/system.slice/carma-jobs.service/shepherd-*) ;;
*) fail "the job has no control group of its own: $(cat /var/lib/carma/runs/1-*/status)" ;;
esac

before=$(main_pid)
dpkg -i "$tools/$new"/*.deb >>apt.log 2>&1 || give_up "the upgrade fails"
until_another "$before"
[ "$(carma --version)" = "carma $old" ] || fail "carma --version: $(carma --version)"
expect_running 1
systemctl --quiet is-active carma-slurm-agent.service || fail "the upgrade leaves no agent: $(systemctl --no-pager status carma-slurm-agent.service)"

# Stopped: a client that asks starts it again by its socket.
systemctl stop carmad.service
[ "$(main_pid)" = 0 ] || fail "carmad was not stopped"
until_says RUNNING as_alice carma show 1
# Killed, and hanging.
for signal in KILL STOP; do
    before=$(main_pid)
    kill -"$signal" "$before"
    until_another "$before"
    expect_running 1
done
finish_job 1 first.log go "$shepherd"

submit_job second.log never
dpkg --remove carma-slurm carma-vnode carma >>apt.log 2>&1 || give_up "the packages cannot be removed"
[ -d "/proc/$(shepherd_of 2 | cut -d ' ' -f 1)" ] || fail "removing ends a job"
dpkg --purge carma-slurm carma carma-vnode python3-carma >>apt.log 2>&1 || give_up "the packages cannot be purged"
for unit in carmad.socket carma-jobs.service carma-slurm-agent.service; do
    systemctl --quiet is-active "$unit" && fail "$unit outlives its package"
done
expect_nothing_runs
exit $((failures > 0))
