/* users.mjs BOBS_ADDRESS ALICES_ADDRESS TCP_ADDRESS TOKEN: jobs 1, which runs, and 2, which is held, are alice's; so is the
 * token. */
import {check, check_access, finish, open_browser, until, watched_page} from "./browser.mjs";

const browser = await open_browser();

async function cancel(address, who, expected) {
    const page = await watched_page(browser, {expected});
    await page.goto(address);
    await until(page, `${who}'s page is live`, () => document.getElementById("link-text").textContent === "live");
    await page.goto(new URL("/#/job/1", address).href);
    await until(page, `${who} sees the job`, () => document.querySelector(".job-head .state")?.textContent === "running");
    await until(page, `${who}'s page has asked for the output`, () => document.querySelector(".log").textContent);
    const log = await page.textContent(".log");
    await page.click('button[data-action="cancel"]');
    await page.click('dialog button[value="yes"]');
    await until(page, `${who} is told what came of it`, () => document.querySelector(".result")?.textContent);
    return {page, log, result: await page.textContent(".result")};
}

const bob = await cancel(process.argv[2], "bob", ["status of 403"]);
check("bob is refused, with the daemon's sentence", bob.result.includes("ob 1 belongs to alice"), bob.result);
check("it is marked as refused", await bob.page.locator(".result.warning").count() === 1);
check("bob does not see the output", !bob.log.includes("secret") && bob.log.includes("not yours"), bob.log);
check("nor the command", !(await bob.page.textContent("main")).includes("sleep 100000"));
await bob.page.goto(new URL("/#/", process.argv[2]).href);
await until(bob.page, "three users stand beside their jobs", () => ["alice", "bob", "carol"].every((user) =>
    [...document.querySelectorAll(".residents .who")].some((one) => one.textContent.endsWith(` ${user}`))));
check("jobs on one GPU have colours of their own", await bob.page.evaluate(() => [...document.querySelectorAll(".gpu")].every((gpu) => {
    const colours = [...gpu.querySelectorAll(".residents .swatch")].map((one) => one.className);
    return new Set(colours).size === colours.length;
})));
for (const width of [1920, 1280, 390]) {
    await bob.page.setViewportSize({width, height: 900});
    check(`the overview of three users fits ${width}`, await bob.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    await check_access(bob.page, `the overview of three users at ${width}`);
}
await bob.page.goBack();
const alice = await cancel(process.argv[3], "alice", []);
check("alice sees her output", alice.log.includes("secret"), alice.log);
check("alice is not refused", alice.result.startsWith("Job 1 is "), alice.result);
await until(alice.page, "her job is cancelled", () => document.querySelector(".job-head .state").textContent === "cancelled");
await until(bob.page, "and bob's page shows it by itself", () =>
    document.querySelector(".job-head .state").textContent === "cancelled");

/* ---- By TCP ---- */
const [tcp, token] = process.argv.slice(4);
const page = await watched_page(browser, {expected: ["status of 401", "status of 404"]});
await page.goto(`${tcp}#/job/2`);
await until(page, "the page asks for the token", () => document.getElementById("token"));
await page.fill("#token", `${"x".repeat(token.length)}`);
await page.press("#token", "Enter");
await until(page, "a wrong one is not taken", () => document.querySelector(".token label")?.textContent.includes("does not take"));
check("nothing of the node is shown", !(await page.textContent("body")).includes("hers"));
await page.fill("#token", token);
await page.press("#token", "Enter");
await until(page, "the right one is", () => document.getElementById("link-text").textContent === "live");
await until(page, "the job is shown", () => document.querySelector(".job-head .state")?.textContent === "held");
check("where the output can be read is said", (await page.textContent(".log")).length > 0);
await page.click('button[data-action="cancel"]');
await page.click('dialog button[value="yes"]');
await until(page, "the job is cancelled", () => document.querySelector(".job-head .state").textContent === "cancelled");
await page.reload();
await until(page, "the tab keeps the token", () => document.getElementById("link-text").textContent === "live");
check("and no other place does", await page.evaluate((text) => !location.href.includes(text) && !document.cookie &&
    !JSON.stringify(localStorage).includes(text), token));
await browser.close();
finish();
