/* users.mjs BOBS_ADDRESS ALICES_ADDRESS: job 1 is alice's, and runs. */
import {check, finish, open_browser, until, watched_page} from "./browser.mjs";

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
const alice = await cancel(process.argv[3], "alice", []);
check("alice sees her output", alice.log.includes("secret"), alice.log);
check("alice is not refused", alice.result.startsWith("Job 1 is "), alice.result);
await until(alice.page, "her job is cancelled", () => document.querySelector(".job-head .state").textContent === "cancelled");
await until(bob.page, "and bob's page shows it by itself", () =>
    document.querySelector(".job-head .state").textContent === "cancelled");
await browser.close();
finish();
