/* The page of one GPU: its memory and activity over time, its residents, its other readings. */
import {Chart} from "/charts.js";
import {h, set_text} from "/dom.js";
import {job_label, moment, percent, share_word, size, throttle_words, watts} from "/format.js";
import {gpu_title, tell_warnings} from "/gpus.js";
import {ask, node, now_ns, on} from "/live.js";

/* How it fares; of an instance, its GPU. */
function health_facts(health, of_parent) {
    if (!health)
        return [];
    const told = (value, text) => value === null ? "not known" : text(value);
    const mhz = (value) => told(value, (n) => `${n.toLocaleString("en")} MHz`);
    const facts = [["Temperature", told(health.temperature_c, (n) => `${n} °C`)],
        ["SM clock", `${mhz(health.sm_clock_mhz)}, ${mhz(health.sm_clock_most_mhz)} at most`], ["Memory clock", mhz(health.memory_clock_mhz)],
        ["Held down by", told(health.throttle, (list) => list.length ? throttle_words(list) : "nothing")],
        ["Power limit", told(health.power_limit_mw, watts)],
        ["ECC errors", `${told(health.ecc_corrected, String)} corrected, ${told(health.ecc_uncorrected, String)} not, since the driver was loaded`]];
    if (health.unknown)
        facts.push(["Not told by NVML", health.unknown.replaceAll("_", " ")]);
    return of_parent ? facts.map(([name, value]) => [`${name}, of its whole GPU`, value]) : facts;
}

function facts_of(gpu, parent) {
    const facts = [["Model", gpu.name || "–"], ["UUID", gpu.uuid], ["Jobs share it by", share_word(gpu.share)],
        ["Memory", `${size(gpu.used_bytes)} of ${size(gpu.total_bytes)} used, ${size(gpu.free_bytes)} free by the ledger`],
        ["Unmanaged processes", gpu.unmanaged_why || size(gpu.unmanaged_bytes)],
        ["Power", `${watts(gpu.power_mw)}${gpu.idle_power_mw ? `, ${watts(gpu.idle_power_mw)} when empty` : ""}`]];
    facts.push(...health_facts(gpu.health || parent?.health, !gpu.health));
    for (const [name, metric] of Object.entries(gpu.metrics || {}))
        if (metric.source !== "none")
            facts.push([name.replaceAll("_", " ").replace(/^sm/, "SM").replace(/^dram/, "DRAM").replace(/^pcie/, "PCIe"),
                `${name.startsWith("pcie") ? `${size(metric.value)}/s` : percent(metric.value)} by ${metric.source}`]);
    if (gpu.unknown)
        facts.push(["Not told by NVML", gpu.unknown]);
    if (gpu.xid)
        facts.push(["Last Xid", `${gpu.xid.code}, ${moment(gpu.xid.at_ns, now_ns())}`]);
    return facts;
}

function unmanaged_table(gpu) {
    if (!gpu.unmanaged?.length)
        return null;
    return h("section", {class: "list"}, h("h2", null, "Processes that were not given this GPU"), h("table", {role: "table"},
        h("thead", {role: "rowgroup"}, h("tr", {role: "row"}, ["Process", "Job", "User", "Command", "Memory"].map((title) =>
            h("th", {scope: "col", role: "columnheader"}, title)))),
        h("tbody", {role: "rowgroup"}, gpu.unmanaged.map((one) => h("tr", {role: "row"}, [["Process", one.pid], ["Job", one.job || "–"],
            ["User", one.user || "–"], ["Command", one.command || "–"], ["Memory", size(one.used_bytes)]].map(([title, text]) =>
            h("td", {role: "cell", "data-title": title}, String(text))))))));
}

function over(rows, column, text) {
    const known = rows.map((row) => row[column]).filter((value) => value !== null);
    return known.length ? `${text(known[known.length - 1])} now, at most ${text(Math.max(...known))}` : "not known";
}

export async function gpu_view(uuid) {
    const memory = new Chart({
        title: "Memory", series: [{name: "used", colour: "memory", fill: true}, {name: "reserved", colour: "ink-2", dashed: true},
            {name: "unmanaged processes", colour: "unmanaged"}],
        value: (value) => `${value.toFixed(1)} GiB`, tick: (value) => `${value} GiB`,
        summary: (rows) => `Used: ${over(rows, 1, (value) => `${value.toFixed(1)} GiB`)}.`, height: 220,
    });
    const activity = new Chart({
        title: "SM activity", series: [{name: "SM activity", colour: "sm", fill: true}], top: 100,
        value: (value) => `${value.toFixed(0)}%`, summary: (rows) => `${over(rows, 1, (value) => `${value.toFixed(0)}%`)}.`, height: 150,
    });
    const power = new Chart({
        title: "Power", series: [{name: "power", colour: "power", fill: true}],
        value: (value) => `${value.toFixed(0)} W`, summary: (rows) => `${over(rows, 1, (value) => `${value.toFixed(0)} W`)}.`, height: 150,
    });
    const title = h("h1");
    const warning = h("p", {class: "warning", hidden: true});
    const facts = h("dl", {class: "facts-list"});
    const others = h("div");
    const jobs = h("ul", {class: "plain"});
    const rest = h("div", {hidden: true}, h("div", {class: "split"}, h("div", null, memory.root, activity.root, power.root),
        h("div", null, h("h2", null, "Jobs there"), jobs, h("h2", null, "Facts"), facts)), others);
    const root = h("div", {class: "page"}, h("p", {class: "back"}, h("a", {href: "#/"}, "Overview")), title, warning, rest);

    function draw() {
        const series = node.series.get(uuid);
        if (!series || rest.hidden)
            return;
        const g = (bytes) => bytes === null || bytes === undefined ? null : bytes / 2 ** 30;
        memory.set(series.t.map((t, i) => [t, g(series.used[i]), g(series.reserved[i]), g(series.unmanaged[i])]));
        activity.set(series.t.map((t, i) => [t, series.sm[i] === null ? null : series.sm[i] / 10]));
        power.set(series.t.map((t, i) => [t, series.power[i] === null ? null : series.power[i] / 1000]));
    }

    async function load() {
        const {gpus} = await ask("/v1/gpus").catch(() => ({gpus: null}));
        const gpu = gpus?.find((one) => one.uuid === uuid);
        if (!gpu) {
            set_text(title, title.textContent || (gpus ? "There is no such GPU" : "This GPU could not be asked for"));
            return;
        }
        rest.hidden = false;
        set_text(title, gpu_title(gpu));
        tell_warnings(warning, gpu);
        facts.replaceChildren(...facts_of(gpu, gpus.find((one) => one.uuid === gpu.parent)).map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value))));
        jobs.replaceChildren(...gpu.jobs.map((id) => h("li", null, h("a", {href: `#/job/${id}`},
            node.jobs.has(id) ? job_label(node.jobs.get(id)) : `job ${id}`))));
        if (!gpu.jobs.length)
            jobs.replaceChildren(h("li", null, "none"));
        others.replaceChildren(...[unmanaged_table(gpu)].filter(Boolean));
    }
    await load();
    const off = on("gpus series", draw);
    const clock_timer = setInterval(load, 5000);
    requestAnimationFrame(draw);
    return {root, title: `${title.textContent} · carma`, close: () => {
        off();
        clearInterval(clock_timer);
        [memory, activity, power].forEach((chart) => chart.close());
    }};
}
