/* What the tests of the dashboard share: a browser, checks with names, and an eye on what the page must never do. */
import {readFileSync} from "node:fs";
import {createRequire} from "node:module";
import path from "node:path";

const modules = createRequire(path.join(process.env.WEB_MODULES, "x.js"));
const {chromium} = modules("playwright-core");
const axe = readFileSync(modules.resolve("axe-core/axe.min.js"), "utf8");

const patience_ms = 1000 * Number(process.env.PATIENCE_S || 90);

let failures = 0;

export function check(what, holds, more = "") {
    if (!holds) {
        failures++;
        console.error(`FAILED: ${what}${more === "" ? "" : `: ${more}`}`);
        if (process.env.FAIL_FAST)
            finish();
    }
}

export function finish() {
    process.exit(failures ? 1 : 0);
}

export async function open_browser() {
    return chromium.launch({
        executablePath: process.env.CHROMIUM,
        args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"],
    });
}

/* A page that is watched: requests to others, errors of scripts and of the policy. `expected` are parts of messages that a test
 * provokes. */
export async function watched_page(browser, {width = 1280, height = 900, expected = []} = {}) {
    const context = await browser.newContext({viewport: {width, height}, reducedMotion: "reduce"});
    const page = await context.newPage();
    page.expected = expected;
    page.setDefaultTimeout(patience_ms);
    page.on("pageerror", (error) => check("no error in a script", false, error.stack));
    page.on("console", (message) => {
        if (["error", "warning"].includes(message.type()) && !page.expected.some((part) => message.text().includes(part)))
            check("nothing on the console", false, `${message.text()} (${message.location().url})`);
    });
    page.on("request", (request) => {
        const {protocol, host} = new URL(request.url());
        page.home = page.home || host;
        check("no request leaves the server", protocol === "http:" && host === page.home, request.url());
    });
    page.on("dialog", (dialog) => check("no script of a job's runs", false, dialog.message()));
    return page;
}

/* Waits until `holds` (run in the page, which its policy keeps from doing the waiting itself) does; false: never. */
export async function until(page, what, holds, argument) {
    const end = Date.now() + patience_ms;
    while (!await page.evaluate(holds, argument)) {
        if (Date.now() > end) {
            check(what, false, "never");
            return false;
        }
        await page.waitForTimeout(100);
    }
    return true;
}

/* No fault that axe calls serious or critical; in the dark, where the colours alone are others, none of these. */
export async function check_access(page, view) {
    const rules = {light: {}, dark: {runOnly: {type: "rule", values: ["color-contrast"]}}};
    await page.evaluate(axe);
    for (const colorScheme of ["dark", "light"]) {
        await page.emulateMedia({colorScheme, reducedMotion: "reduce"});
        const {violations} = await page.evaluate((options) => window.axe.run(document, {resultTypes: ["violations"], ...options}),
            rules[colorScheme]);
        for (const {id, impact, nodes} of violations)
            check(`${view}, ${colorScheme}: ${id}`, !["serious", "critical"].includes(impact),
                nodes.slice(0, 3).map((node) => `${node.html.slice(0, 160)} ${node.failureSummary?.split("\n")[1] || ""}`).join("\n  "));
    }
}
