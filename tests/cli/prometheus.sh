# For tests with a real Prometheus, of Debian's package: sourced after lib.sh, with the build tree as $BUILD. The package's
# programs alone are unpacked, into the build tree, where they are not installed: an installed package is a service, and
# apt starts it. Nothing of the machine is changed.
# shellcheck shell=sh
if command -v prometheus >/dev/null && command -v promtool >/dev/null; then
    PROMETHEUS=prometheus
    PROMTOOL=promtool
else
    unpacked=$BUILD/prometheus
    PROMETHEUS=$unpacked/usr/bin/prometheus
    PROMTOOL=$unpacked/usr/bin/promtool
    # apt with lists and a cache of its own, which needs no root; the package's signature is checked as usual.
    fetch_prometheus() {
        mkdir -p "$unpacked/state/lists/partial" "$unpacked/cache/archives/partial" && cd "$unpacked" || return 1
        set -- -q -o Dir::State="$unpacked/state" -o Dir::State::status=/var/lib/dpkg/status -o Dir::Cache="$unpacked/cache" \
            -o APT::Sandbox::User= -o Acquire::Retries=1 -o Acquire::http::Timeout=20
        apt-get "$@" update && apt-get "$@" download prometheus && dpkg-deb -x prometheus_*.deb whole &&
            mkdir -p usr && rm -rf usr/bin && mv whole/usr/bin usr/bin
        fetched=$?
        rm -rf whole state cache prometheus_*.deb
        return $fetched
    }
    mkdir -p "$unpacked"
    if ! { # one test at a time
        flock -w 300 8 && { [ -x "$PROMTOOL" ] || (fetch_prometheus) >"$T/apt" 2>&1; }
    } 8>"$unpacked/lock"; then
        skip "no Prometheus here, and its package cannot be had: $(tail -n 1 "$T/apt")"
    fi
fi
