# For tests that need a browser: sourced after lib.sh, with BUILD (the meson tree) as $3. Sets CHROMIUM and WEB_MODULES;
# skips where no browser works, or its driver is missing.
# shellcheck shell=sh
for tool in chromium node npm python3; do
    command -v "$tool" >/dev/null || skip "no $tool here (script/packages test)"
done
CHROMIUM=$(command -v chromium)
timeout 60 "$CHROMIUM" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage \
    --user-data-dir="$T/chromium" --dump-dom about:blank >/dev/null 2>&1 ||
    skip "$CHROMIUM does not start here (Ubuntu's is a snap)"

# The packages of package-lock.json, fetched once into the build tree.
WEB_MODULES=$3/web-modules
mkdir -p "$WEB_MODULES"
(
    flock 9
    cmp -s "$SOURCE/tests/web/package-lock.json" "$WEB_MODULES/fetched" && exit 0
    cp "$SOURCE/tests/web/package.json" "$SOURCE/tests/web/package-lock.json" "$WEB_MODULES"
    cd "$WEB_MODULES" && timeout 120 npm ci --ignore-scripts --no-audit --no-fund >npm.log 2>&1 && cp package-lock.json fetched
) 9>"$WEB_MODULES/lock" || skip "npm could not fetch playwright-core and axe-core: see $WEB_MODULES/npm.log"
export CHROMIUM WEB_MODULES PATIENCE_S

# open_dashboard FILE COMMAND...: `carma dashboard` by that command, its address in FILE and $address.
open_dashboard() {
    address_file=$1
    shift
    "$@" dashboard --no-open >"$address_file" 2>>"$T/dashboard.log" &
    dashboards="${dashboards-} $!"
    wait_for '[ -s "$address_file" ]' || {
        fail "no address: $(cat "$T/dashboard.log")"
        return 1
    }
    address=$(head -n 1 "$address_file")
}

at_end="close_dashboards; $at_end"
close_dashboards() {
    for pid in ${dashboards-}; do
        kill "$pid" 2>/dev/null
        wait "$pid" 2>/dev/null
    done
}
