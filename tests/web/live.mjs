/* live.mjs ADDRESS HOSTILE TALKS HELD: the dashboard of a node that plays; three jobs by their number. */
import {spawn} from "node:child_process";
import {check, check_access, finish, open_browser, until, watched_page} from "./browser.mjs";

const [address, hostile, talks, held] = process.argv.slice(2);
const base = new URL("/", address).href;
const first_paint_limit = 100 * 1000;

const browser = await open_browser();
const page = await watched_page(browser);

async function go(hash) {
    await page.goto(base + hash);
}

/* In the page: whether something is on one of the canvases. */
function is_drawn(selector) {
    return [...document.querySelectorAll(selector)].some((canvas) => {
        const blank = document.createElement("canvas");
        blank.width = canvas.width;
        blank.height = canvas.height;
        return canvas.width && canvas.toDataURL() !== blank.toDataURL();
    });
}

/* ---- The first view, and what it costs ---- */
const transfers = [];
const devtools = await page.context().newCDPSession(page);
await devtools.send("Network.enable");
devtools.on("Network.loadingFinished", ({encodedDataLength}) => transfers.push(encodedDataLength));
await page.goto(address);
await until(page, "four GPUs are shown", () => document.querySelectorAll(".gpu").length === 4);
await until(page, "the page says that it is live", () => document.getElementById("link-text").textContent === "live");
const bytes = transfers.reduce((sum, one) => sum + one, 0);
check("the first view is small", bytes > 1000 && bytes < first_paint_limit, `${bytes} bytes`);
console.log(`first view: ${bytes} bytes in ${transfers.length} answers`);
check("the token is not left in the address", !page.url().includes("token"), page.url());

/* ---- Values change by themselves ---- */
await page.evaluate(() => { window.same_page = true; });
const before = await page.evaluate(() =>
    [...document.querySelectorAll(".gpu b, .gpu .memory, .figures dd")].map((one) => one.textContent).join("|"));
await until(page, "figures change without a reload", (text) =>
    [...document.querySelectorAll(".gpu b, .gpu .memory, .figures dd")].map((one) => one.textContent).join("|") !== text, before);
check("it is the same page", await page.evaluate(() => window.same_page));
await until(page, "a curve is drawn", is_drawn, ".spark");

/* ---- What a job calls itself is text ---- */
await until(page, "the job with a name like HTML is listed", (id) => [...document.querySelectorAll(".running a")]
    .some((link) => link.hash === `#/job/${id}` && link.textContent === "<img src=x onerror=alert(1)>"), hostile);
check("no element was made of a name", await page.evaluate(() => !document.querySelector("main img, main script")));

/* ---- Keys ---- */
await page.keyboard.press("Tab");
check("the first stop is the skip link", await page.evaluate(() => document.activeElement.id === "skip"));
await page.keyboard.press("Enter");
check("it skips", await page.evaluate(() => document.activeElement.id === "main"));
await page.keyboard.press("/");
check("/ goes to the filter", await page.evaluate(() => document.activeElement.id === "filter"));
await page.keyboard.type("held");
await until(page, "the filter leaves one job", (id) => {
    const links = [...document.querySelectorAll(".list tbody tr a")];
    return links.length === 1 && links[0].hash === `#/job/${id}`;
}, held);
await page.fill("#filter", "");
await page.evaluate(() => document.activeElement.blur());
await page.keyboard.press("?");
check("? opens the help", await page.locator("dialog[open]").count() === 1);
await page.keyboard.press("Escape");
await until(page, "Escape closes it", () => !document.querySelector("dialog"));
await page.keyboard.press("t");
check("t changes the colours", await page.evaluate(() => document.documentElement.dataset.theme === "dark"));
await page.keyboard.press("t");
await page.evaluate(() => { localStorage.clear(); delete document.documentElement.dataset.theme; });
await check_access(page, "overview");

/* ---- A job's page ---- */
await page.click(`.running a[href="#/job/${talks}"]`);
await until(page, "the job's page opens", () => document.querySelector("main h1")?.textContent.startsWith("talks"));
await until(page, "its output is shown", () => /step \d+/.test(document.querySelector(".log")?.textContent));
const log = await page.textContent(".log");
await until(page, "and followed", (text) => document.querySelector(".log").textContent !== text, log);
await until(page, "its chart is drawn", is_drawn, ".plot canvas");
check("the chart has a text", /reserved for it: 2\.0 GiB/.test(await page.getAttribute(".plot", "aria-label")),
    await page.getAttribute(".plot", "aria-label"));
await page.hover(".plot", {position: {x: 200, y: 60}});
await until(page, "the value under the pointer is shown", () => /\d GiB/.test(document.querySelector(".legend b").textContent));
await check_access(page, "a running job");
await page.goBack();
await until(page, "the back button goes back", () => document.querySelector(".overview"));
await go(`#/job/${hostile}`);
await until(page, "its output is text, too", () => document.querySelector(".log")?.textContent.includes("<script>alert(2)</script>"));
check("no element was made of it", await page.evaluate(() => !document.querySelector("main img, main script")));
await go(`#/job/${held}`);
await until(page, "a waiting job says why", () => /^Waits: .*held/.test(document.querySelector(".lead")?.textContent));
await check_access(page, "a waiting job");

/* ---- Doing something ---- */
await page.click('button[data-action="edit"]');
await page.fill("#edit-priority", "99");
page.expected.push("400");
await page.click('dialog button[value="yes"]');
await until(page, "the daemon's sentence on a bad value is shown", () => /priority/i.test(document.querySelector(".result.warning")?.textContent));
await page.click('button[data-action="edit"]');
await page.fill("#edit-priority", "-2");
await page.fill("#edit-time_limit_ns", "90");
await check_access(page, "a job's fields");
await page.click('dialog button[value="yes"]');
await until(page, "a waiting job is changed", () => /Priority-2.*Time limit1 h 30 min/.test(document.querySelector(".facts-list").textContent));
await go("#/");
await page.fill("#filter", "held");
await page.click(".waiting .tick input");
await page.click('.bulk button[data-verb="release"]');
await page.click('dialog button[value="no"]');
check("of ticked jobs it is asked first, too", await page.isVisible(".bulk"));
await page.click('.bulk button[data-verb="checkpoint"]');
await page.click('dialog button[value="yes"]');
await until(page, "what was refused is said", (id) => document.querySelector(".lists .result").textContent.includes(`job ${id}`), held);
page.expected.push("404");
await go("#/job/99999999");
await until(page, "an unknown job is said to be so", () => document.querySelector("h1")?.textContent === "There is no job 99999999");
check("and nothing can be pressed there", await page.locator("main button:visible").count() === 0);
page.expected.length = 0;
await go(`#/job/${held}`);
await page.click('button[data-action="cancel"]');
await page.click('dialog button[value="no"]');
await until(page, "it is asked first", () => !document.querySelector("dialog"));
check("and left alone", await page.evaluate(() => document.querySelector(".job-head .state").textContent === "held"));
await page.click('button[data-action="cancel"]');
await page.click('dialog button[value="yes"]');
await until(page, "the owner's job is cancelled", () => document.querySelector(".job-head .state").textContent === "cancelled");
await until(page, "the page says so", (id) => document.querySelector(".result")?.textContent.includes(`Job ${id} is cancelled`), held);

/* ---- Submitting ---- */
await go("#/submit");
await page.fill("#submit-text", "#!/bin/sh\n#CARMA --gpu-memory 1G\necho from the page");
await page.setInputFiles("#submit-file", {name: "drop.sh", mimeType: "text/plain", buffer: Buffer.from("#!/bin/sh\n#CARMA --gpu-memory 1G\necho from $0")});
await until(page, "a script is taken in", () => document.getElementById("submit-text").value.includes("from $0") &&
    document.getElementById("submit--job-name").value === "drop.sh");
await page.fill("#submit-options", "--hold --gpus many");
await page.click("form button.strong");
await until(page, "what the command says against it is shown", () => /many/.test(document.querySelector(".outcome .warning")?.textContent));
await page.fill("#submit-options", "--hold");
await page.click("form button.strong");
await until(page, "it is submitted", () => /^Job \d+ is submitted/.test(document.querySelector(".outcome .result")?.textContent));
await check_access(page, "a submission");
await page.click(".outcome a");
await until(page, "and held", () => document.querySelector(".job-head .state")?.textContent === "held" &&
    document.querySelector("h1").textContent.startsWith("drop.sh"));

/* ---- The other views ---- */
await go("#/");
await until(page, "GPUs are there", () => document.querySelector(".gpu .number"));
const gpu = await page.evaluate(() => document.querySelector(".gpu .number").hash.slice("#/gpu/".length));
await page.click(".gpu .number");
await until(page, "a GPU's page has its charts", () => document.querySelectorAll(".plot canvas").length >= 3);
await check_access(page, "a GPU");
await until(page, "it says how it fares", () => /Temperature\d+ °C.*SM clock[\d,]+ MHz.*Power limit\d+ W.*ECC errors\d/.test(
    document.querySelector(".facts-list").textContent));
await go("#/gpu/GPU-none");
await until(page, "an unknown GPU is said to be so", () => document.querySelector("h1")?.textContent === "There is no such GPU");
check("and nothing can be pressed there, nor looked at", await page.locator("main button:visible, main .plot:visible").count() === 0);
await go("#/users");
await until(page, "users are listed", () => /^\d/.test(document.querySelector("tbody tr td")?.textContent) &&
    document.querySelector("main .warning").hidden);
await check_access(page, "users");
await go("#/what-if");
await page.click(".choose button.strong");
await until(page, "what-if gives a table", () => document.querySelectorAll(".whatif tbody tr").length >= 3);
await until(page, "and pictures", () => document.querySelectorAll(".pictures .plot canvas").length >= 3);
await check_access(page, "what-if");
page.expected.push("422", "400");
await page.fill("#settings", "nonsense=1");
await page.click(".choose button.strong");
await until(page, "the daemon's sentence is shown", () => /nonsense/.test(document.querySelector(".aside.warning")?.textContent));
page.expected.length = 0;
await go("#/nothing");
await until(page, "what is not there is said to be so", () => /no such page/.test(document.querySelector("main").textContent));

/* ---- On a phone nothing is wider than the screen ---- */
await page.setViewportSize({width: 390, height: 844});
for (const hash of ["#/", `#/job/${talks}`, `#/gpu/${gpu}`, "#/submit", "#/users", "#/what-if"]) {
    await go(hash);
    await page.waitForSelector("main > div");
    check(`${hash} fits a phone`, await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth),
        await page.evaluate(() => document.documentElement.scrollWidth));
}
await check_access(page, "what-if on a phone");
await go("#/");
await until(page, "GPUs fit a phone", () => document.querySelectorAll(".gpu").length === 4);
await check_access(page, "overview on a phone");

/* ---- The daemon goes and comes ---- */
page.expected.push("Failed to load resource", "net::ERR");
process.kill(Number(process.env.DAEMON), "SIGKILL");
await until(page, "the page says that nobody answers", () => !document.getElementById("notice").hidden &&
    document.getElementById("link-text").textContent === "not connected" && document.getElementById("told").textContent);
await page.evaluate(() => { location.hash = "#/nothing"; });
await until(page, "views change without a daemon", () => /no such page/.test(document.querySelector("main").textContent));
await page.evaluate(() => { location.hash = "#/"; });
await until(page, "and the overview is still had", () => document.querySelectorAll(".gpu").length);
check("what was known is still there", await page.locator(".gpu").count() === 4);
await check_access(page, "without a daemon");
spawn("sh", [process.env.RESTART], {stdio: "ignore", detached: true}).unref();
await until(page, "the page goes on by itself", () => document.getElementById("link-text").textContent === "live" &&
    document.getElementById("notice").hidden);

await browser.close();
finish();
