/* cluster.mjs CLUSTERS_ADDRESS ADDRESS [PICTURES]: the page of all nodes (test_web_cluster.sh). */
import {check, check_access, finish, open_browser, until, watched_page} from "./browser.mjs";

const [address, alone, pictures] = process.argv.slice(2);
const browser = await open_browser();
const page = await watched_page(browser);

await page.goto(address);
await until(page, "the page of all nodes comes first", () => document.querySelectorAll(".cluster table").length === 3);
const rows = (number) => page.locator(`.cluster section:nth-of-type(${number}) tbody tr`).allTextContents();
const gpus = await rows(1);
check("GPUs of all nodes", gpus.length === 12, gpus.length);
check("they have their node", gpus.filter((row) => row.startsWith("gpu02")).length === 4);
check("a lost GPU is shown so", gpus.some((row) => row.startsWith("gpu03") && row.includes("lost")));
const jobs = await rows(2);
check("jobs by Slurm's number", jobs.length === 8 && jobs[0].startsWith("1829") && jobs[7].includes("local"), jobs.join("\n"));
const waiting = await rows(3);
check("what waits at Slurm", waiting.length === 3 && waiting[0].includes("gres:gpumem:12G"), waiting.join("\n"));
check("a name is text", waiting[1].includes("<img"), waiting[1]);
const silent = await page.locator(".cluster .warning").allTextContents();
check("a silent node has its reason", silent.length === 1 && silent[0] === "gpu04: ssh: connect to host gpu04 port 22: No route to host",
    silent.join("\n"));
check("it is in the navigation", await page.locator('nav [data-view="cluster"][aria-current="page"]').isVisible());
await check_access(page, "cluster");
for (const width of [390, 1280])
    for (const colours of ["light", "dark"]) {
        await page.setViewportSize({width, height: 900});
        await page.emulateMedia({colorScheme: colours, reducedMotion: "reduce"});
        check(`nothing is wider than ${width}`, await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
        if (pictures && (width === 390) === (colours === "dark"))
            await page.screenshot({path: `${pictures}/dashboard-cluster-${width}-${colours}.png`});
    }

/* A dashboard of one node has no such page, and says so. */
const other = await watched_page(browser, {expected: ["status of 404"]});
await other.goto(alone);
await until(other, "live", () => document.getElementById("link-text").textContent === "live");
check("it is not in the navigation", !await other.locator('nav [data-view="cluster"]').isVisible());
await other.goto(new URL("/#/cluster", alone).href);
await until(other, "how to get it is said", () => document.querySelector(".page .warning")?.textContent.includes("carma dashboard --cluster"));
await browser.close();
finish();
