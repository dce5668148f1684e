/* pictures.mjs ADDRESS DIRECTORY [mig|large]: pictures of a dashboard, DIRECTORY/dashboard-[VIEW-]WIDTH-COLOURS.png
 * (script/screenshots). */
import {finish, open_browser, until, watched_page} from "./browser.mjs";

const [address, directory, kind = "trace"] = process.argv.slice(2);
const base = new URL("/", address).href;
const sizes = {phone: [390, 844], laptop: [1280, 860], wide: [1920, 1080]};
const browser = await open_browser();
const page = await watched_page(browser);

function file(name, width, colours) {
    return `${directory}/dashboard-${name ? `${name}-` : ""}${width}-${colours}.png`;
}

async function picture(hash, name, size, colours, clip = sizes[size][1]) {
    const [width, height] = sizes[size];
    await page.setViewportSize({width, height});
    await page.emulateMedia({colorScheme: colours, reducedMotion: "reduce"});
    await page.goto(base + hash);
    await page.waitForTimeout(1800);
    if (name === "job")
        await until(page, "its charts are drawn", () => document.querySelectorAll(".plot canvas").length);
    await page.screenshot({path: file(name, width, colours), clip: {x: 0, y: 0, width, height: clip}});
}

await page.goto(address);
await until(page, "live", () => document.getElementById("link-text").textContent === "live");
if (kind === "trace") {
    const second = await page.evaluate(() => document.querySelector(".running tbody tr:nth-child(4) a").hash);
    await picture(second, "job", "laptop", "light");
    await picture(second, "job", "phone", "dark");
    for (const colours of ["light", "dark"])
        for (const size of Object.keys(sizes))
            await picture("#/", "", size, colours);
    await picture("#/users", "users", "laptop", "light", 400);
    await picture(await page.evaluate(() => fetch("/v1/gpus").then((answer) => answer.json())
        .then(({gpus}) => `#/gpu/${gpus[1].uuid}`)), "gpu", "laptop", "light");
    await picture("#/submit", "submit", "laptop", "dark");
    await page.goto(`${base}#/what-if`);
    await page.click(".choose button.strong");
    await until(page, "what-if", () => document.querySelectorAll(".pictures .plot canvas").length >= 3);
    for (const [size, colours] of [["laptop", "light"], ["wide", "dark"]]) {
        const [width, height] = sizes[size];
        await page.setViewportSize({width, height});
        await page.emulateMedia({colorScheme: colours, reducedMotion: "reduce"});
        await page.waitForTimeout(1800);
        await page.screenshot({path: file("what-if", width, colours)});
    }
} else {
    await picture("#/", kind, "laptop", kind === "mig" ? "light" : "dark");
}
await browser.close();
finish();
