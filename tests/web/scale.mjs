/* scale.mjs SOURCE: a large and a small node, of tests/web/fake_node.py. */
import {spawn} from "node:child_process";
import path from "node:path";
import {check, check_access, finish, open_browser, until, watched_page} from "./browser.mjs";

const here = path.join(process.argv[2], "tests/web");
const browser = await open_browser();

/* Its address, once it listens. It ends with its input. */
async function node_of(gpus, jobs) {
    const fake = spawn("python3", [path.join(here, "fake_node.py"), path.join(process.argv[2], "web"), String(gpus), String(jobs)],
        {stdio: ["pipe", "pipe", "inherit"]});
    const port = await new Promise((resolve) => fake.stdout.once("data", (data) => resolve(Number(data))));
    return {address: `http://127.0.0.1:${port}/`, end: () => fake.stdin.end()};
}

/* More wait than the daemon puts into one answer. */
const crowded = await node_of(1, 12000);
const queue = await watched_page(browser);
await queue.goto(crowded.address);
await until(queue, "the queue is shown", () => document.querySelectorAll(".waiting tbody tr").length === 25);
check("nothing was left out yet", !await queue.isVisible(".waiting .note"));
await queue.fill("#filter", "11999");
await until(queue, "the filter says how many it has not looked at", () =>
    document.querySelector(".waiting .note").checkVisibility() &&
    document.querySelector(".waiting .note").textContent === "Not in this list: 797 jobs, which the filter has not looked at.");
check("the last ones are not there", (await queue.locator(".waiting tbody tr").count()) === 0);
await check_access(queue, "jobs left out");
await queue.click(".waiting button.more");
await until(queue, "they are looked at when asked for", () => document.querySelector(".waiting tbody a")?.hash === "#/job/11999");
check("and then nothing is left out", !await queue.isVisible(".waiting .note"));
await queue.context().close();
crowded.end();

const large = await node_of(64, 5000);
const page = await watched_page(browser);
const began = performance.now();
await page.goto(large.address);
await until(page, "64 GPUs are shown", () => document.querySelectorAll(".gpu").length === 64);
await until(page, "the first of the queue are shown", () => document.querySelectorAll(".waiting tbody tr").length === 25);
console.log(`64 GPUs and 5,000 jobs after ${Math.round(performance.now() - began)} ms`);
check("the page stays small", await page.evaluate(() => document.querySelectorAll("*").length) < 6000,
    await page.evaluate(() => document.querySelectorAll("*").length));
check("the number of all is told", (await page.textContent(".waiting .count")) === "4,308", await page.textContent(".waiting .count"));
await until(page, "the first one's start is expected", () => document.querySelector(".waiting tbody tr").textContent.includes("in 12 min"));
check("the grid is a map", await page.getAttribute(".board .gpus", "data-density") === "map");
await page.setViewportSize({width: 1280, height: 800});
check("the queue is in view", await page.evaluate(() => document.querySelector(".waiting tbody tr:nth-child(4)")
    .getBoundingClientRect().bottom < innerHeight));
check("what is wrong stands first, the worst before the others", (await page.locator(".problems li").allTextContents()).join("; ")
    .startsWith("GPU 11 takes no job: lost to the driver; Job 650 of chi, train-10, uses 2.0 GiB more than was reserved for it; " +
        "GPU 3 takes no further job: drained by root: new fan; "), (await page.locator(".problems li").allTextContents()).join("; "));
check("a GPU says for whom it is reserved", /reserved for ada, bob until .*: course$/.test(await page.getAttribute(".cell:nth-child(6)", "title")),
    await page.getAttribute(".cell:nth-child(6)", "title"));

/* Jobs that are alike are one row, which is ticked and unfolded as one. */
await page.click(".waiting tbody tr:first-child .tick input");
const ticked = Number((await page.textContent(".bulk span")).split(" ")[0]);
const fold = page.locator(".waiting tbody tr:first-child .fold");
check("a fold is ticked as one", await fold.textContent() === `and ${ticked - 1} more` && ticked > 1, `${ticked}: ${await fold.textContent()}`);
await fold.click();
check("it unfolds", await page.locator(".waiting tbody .tick input:checked").count() === Math.min(ticked, 25));
await fold.click();
await page.click(".bulk button:last-child");
check("and is unticked", !await page.isVisible(".bulk"));

/* Each second all GPUs and one job change: it must not take what people do with the page. */
const first = await page.textContent(".cell span");
await until(page, "figures change", (text) => document.querySelector(".cell span").textContent !== text, first);
const tasks = await page.context().newCDPSession(page);
await tasks.send("Performance.enable", {timeDomain: "threadTicks"}); /* of the processor: others use it, too */
const busy_s = async () => (await tasks.send("Performance.getMetrics")).metrics.find(({name}) => name === "TaskDuration").value;
const before_s = await busy_s();
await page.waitForTimeout(5000);
const spent_s = await busy_s() - before_s;
console.log(`tasks in 5 s: ${spent_s.toFixed(1)} s`);
check("most of the time nothing is done", spent_s < 2, spent_s);
await page.fill("#filter", "train-8 ana");
await until(page, "the filter looks at all 5,000", () => {
    const rows = [...document.querySelectorAll(".waiting tbody tr")];
    return rows.length && rows.every((row) => row.querySelector("a").textContent === "train-8" && row.textContent.includes("ana"));
});
await page.fill("#filter", "4777");
await until(page, "the last ones, too", () => document.querySelector(".waiting tbody a")?.hash === "#/job/4777");
await page.fill("#filter", "");
await page.selectOption("#sort", "newest");
await page.click(".waiting button.more");
await until(page, "more are shown when asked for", () => document.querySelectorAll(".waiting tbody tr").length === 125);
await until(page, "and in another order", () => document.querySelector(".waiting tbody a").hash === "#/job/5000");
check("a lost GPU says so", (await page.getAttribute(".gpu.lost", "title")).includes("lost"));
check("and one with an Xid", (await page.getAttribute(".gpu.hurt >> nth=1", "title")).includes("Xid 31, 2 times"));
await check_access(page, "64 GPUs");
page.expected.push("ERR_", "Failed to load");
large.end();
await until(page, "its end is noticed", () => document.getElementById("notice").textContent.includes("daemon is not answering"));
await page.context().close();

/* Jobs of one user on one GPU have different colours. */
const few = await node_of(4, 300);
const beside = await watched_page(browser);
await beside.goto(few.address);
await until(beside, "three jobs are on each", () => document.querySelectorAll(".gpu .part b").length === 12);
check("each has its own colour there", await beside.evaluate(() => [...document.querySelectorAll(".gpu")].every((gpu) =>
    new Set([...gpu.querySelectorAll(".part:has(b)")].map((part) => part.className)).size === 3)));
await beside.context().close();
few.end();

const small = await node_of(1, 0);
const lone = await watched_page(browser, {width: 390, height: 844});
await lone.goto(small.address);
await until(lone, "one GPU has the page's width", () => document.querySelector(".gpus")?.dataset.density === "wide" &&
    document.querySelectorAll(".gpu").length === 1);
check("an empty queue says so", (await lone.textContent(".waiting")).includes("Nothing waits."));
await check_access(lone, "one GPU, no jobs");
await lone.context().close();
small.end();
await browser.close();
finish();
