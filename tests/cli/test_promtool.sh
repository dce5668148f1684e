#!/bin/sh
# The judgement of promtool, of Debian's package prometheus, on /metrics with names that try to be more than names. It
# also judges integrations/: the alerts, the dashboard's queries and the documentation's must ask for existing metrics.
hostile='e"} 1\n\{a='
if [ "$(id -u)" -eq 0 ] && unshare --mount true 2>/dev/null; then
    . "$(dirname "$0")/users.sh"
    printf '%s:x:12009:12001::/nonexistent:/bin/sh\n' "$hostile" >>"$CARMA_TEST_ACCOUNTS/passwd"
else
    . "$(dirname "$0")/node.sh"
fi
. "$SOURCE/tests/cli/prometheus.sh"

# checked ARGUMENT...: promtool has nothing to find fault with. A function of promtool's own name would call itself.
checked() {
    "$PROMTOOL" "$@" >"$T/promtool" 2>&1 || fail "promtool $*: $(cat "$T/promtool")"
}

[ -z "${CARMA_TEST_ACCOUNTS-}" ] || homes
for profile in h100x2-mig a100x4-40g-nogpm; do
    start_all "$profile" 300
    expect_ok submit --parsable -J "$(printf 'a"} 1 \\" \\n {b="\303\274')" --gpu-memory 4G -- \
        "$TRAIN" --memory 3G --seconds 100000
    until_field 1 state RUNNING
    if [ -n "${CARMA_TEST_ACCOUNTS-}" ]; then
        setpriv --reuid=12009 --regid=12001 --clear-groups "$CARMA" submit -D / -o /dev/null --parsable -- sleep 1000 \
            >"$T/out" 2>&1 || fail "a user with such a name: $(cat "$T/out")"
        until_field 2 state RUNNING
    fi
    python3 "$SOURCE/tests/cli/exposition.py" fetch "$CARMA_SOCKET" >"$T/$profile"
    checked check metrics <"$T/$profile"
    [ -s "$T/promtool" ] && fail "promtool of $profile: $(cat "$T/promtool")"
    stop_daemon
    rm -rf "$STATE" "$CARMA_VNODE"
done
if [ -n "${CARMA_TEST_ACCOUNTS-}" ]; then
    grep -qF 'user="e\"} 1\\n\\{a=",uid="12009"' "$T/h100x2-mig" || fail "the user is not there: $(grep 12009 "$T/h100x2-mig")"
fi

# Something promtool does find fault with, so that the above means something.
sed 's/^carma_jobs{state="HELD"}/carma_jobs{state="HE"LD"}/' "$T/h100x2-mig" >"$T/broken"
"$PROMTOOL" check metrics <"$T/broken" >/dev/null 2>&1 && fail 'promtool takes anything'

checked check rules "$SOURCE/integrations/prometheus/carma.rules.yml"
checked test rules "$SOURCE/tests/cli/carma.rules.test.yml"
cp "$SOURCE"/integrations/prometheus/*.yml "$T"
sed "s|/etc/prometheus/carma.token|$T/token|" "$SOURCE/integrations/prometheus/prometheus.yml" >"$T/prometheus.yml"
(umask 077 && : >"$T/token")
checked check config "$T/prometheus.yml"

python3 "$SOURCE/tests/cli/grafana.py" "$SOURCE" "$T/h100x2-mig" "$T/queries.yml" ||
    fail "the dashboard or the alerts"
checked check rules "$T/queries.yml"
grep -qE 'SUCCESS: [1-9][0-9]* rules found' "$T/promtool" || fail "no queries: $(cat "$T/promtool")"
