/* All nodes of a cluster: their GPUs, the jobs on them, and the jobs that wait at Slurm. Answered by `carma dashboard
 * --cluster`. */
import {h} from "/dom.js";
import {count, gib, percent, span, watts} from "/format.js";
import {ask} from "/live.js";

const period_ms = 10000;
const most_gpus = 256; /* of one node */
const most_jobs = 1000;

/* The objects of a list, the first of them: the answer is another machine's, and may be of any form. */
function things(list, most) {
    return (Array.isArray(list) ? list : []).filter((one) => one && typeof one === "object" && !Array.isArray(one)).slice(0, most);
}

function cell(title, text, more) {
    return h("td", {role: "cell", "data-title": title, class: more}, text);
}

function table(titles, rows, label) {
    return h("table", {role: "table", "aria-label": label},
        h("thead", {role: "rowgroup"}, h("tr", {role: "row"}, titles.map(([title, kind]) =>
            h("th", {scope: "col", role: "columnheader", class: kind}, title)))),
        h("tbody", {role: "rowgroup"}, rows));
}

function row(name, ...cells) {
    return h("tr", {role: "row"}, h("th", {scope: "row", role: "rowheader"}, name), cells);
}

/* ---- GPUs ---- */

const gpu_titles = [["Node"], ["GPU", "number"], ["Name"], ["Memory in use", "number"], ["Free", "number"], ["SM activity", "number"],
    ["Power", "number"], ["Jobs"]];

function memory(gpu) {
    const fill = h("i");
    fill.style.width = `${Math.min(100, 100 * (gpu.used_bytes || 0) / Math.max(1, gpu.total_bytes || 0)).toFixed(1)}%`;
    return h("span", {class: "metered"}, h("span", {class: "meter", "aria-hidden": "true"}, fill),
        h("span", null, `${gib(gpu.used_bytes)} of ${gib(gpu.total_bytes)} GiB`));
}

function gpu_row(node, gpu) {
    return row(node.name, cell("GPU", String(gpu.index ?? "–"), "number"), cell("", String(gpu.name ?? "–").replace(/^NVIDIA /, "")),
        cell("Memory", memory(gpu), "number"), cell("Free", `${gib(gpu.free_bytes)} GiB`, "number"),
        cell("SM", percent(gpu.sm_activity_permille), "number"), cell("Power", watts(gpu.power_mw), "number"),
        cell("Jobs", gpu.lost ? h("span", {class: "state bad"}, "lost") : [gpu.jobs || []].flat().join(", ") || "–"));
}

/* ---- Jobs ---- */

const job_titles = [["Slurm"], ["Node"], ["ID", "number"], ["Name"], ["User"], ["State"], ["GPUs"], ["Reserved", "number"],
    ["Time", "number"]];
const waiting_titles = [["Slurm"], ["Name"], ["User"], ["Nodes", "number"], ["Asks for"], ["Waits for"], ["Time", "number"]];

function job_row(node, job) {
    const since = job.started_ns > 0 ? job.started_ns : job.submitted_ns;
    return row(job.slurm_job ? String(job.slurm_job) : "–", cell("on", node.name), cell("ID", String(job.id), "number"),
        cell("", String(job.name || "–")), cell("User", String(job.user || "–")), cell("", h("span", {class: "state idle"}, String(job.state).toLowerCase())),
        cell("GPU", things(job.placements, most_gpus).map((one) => one.index).join(", ") || String(job.reason?.text || "–")),
        cell("Reserved", job.reserved_bytes > 0 ? `${gib(job.reserved_bytes)} GiB` : "–", "number"),
        cell("Time", span(node.now_ns - since), "number"));
}

function waiting_row(job) {
    return row(job.job, cell("", job.name), cell("User", job.user), cell("Nodes", String(job.nodes), "number"), cell("Asks for", job.gres),
        cell("Waits for", job.reason), cell("Time", span(1e6 * Date.now() - 1e9 * job.submitted_s), "number"));
}

/* The leases of one job stand together, before jobs that are not Slurm's. */
function jobs_of(nodes) {
    const jobs = nodes.flatMap((node) => things(node.jobs, most_jobs).map((job) => ({node, job})));
    return jobs.sort((a, b) => (a.job.slurm_job || Infinity) - (b.job.slurm_job || Infinity) || 0);
}

/* ---- The page ---- */

function figures(nodes, gpus, waiting) {
    const sum = (of) => gpus.reduce((all, {gpu}) => all + (of(gpu) || 0), 0);
    const figure = (value, unit, label) => h("div", null, h("dd", null, value, unit ? h("small", null, ` ${unit}`) : null), h("dt", null, label));
    const silent = nodes.filter((node) => node.error).length;
    return h("dl", {class: "figures", "aria-label": "The cluster now"},
        figure(String(nodes.length - silent), silent ? `of ${nodes.length}` : "", "nodes answer"), figure(String(gpus.length), "", "GPUs"),
        figure(gib(sum((gpu) => gpu.used_bytes)), `of ${gib(sum((gpu) => gpu.total_bytes))} GiB`, "memory used"),
        figure(watts(sum((gpu) => gpu.power_mw)), "", "power"),
        waiting ? figure(waiting.length.toLocaleString("en"), "", "wait at Slurm") : null);
}

function section(title, content) {
    return h("section", {class: "list"}, h("h2", null, title), content);
}

function draw(answer) {
    const {nodes, slurm} = answer;
    const gpus = nodes.flatMap((node) => things(node.gpus, most_gpus).map((gpu) => ({node, gpu})));
    const jobs = jobs_of(nodes);
    const waiting = slurm?.waiting;
    return [
        figures(nodes, gpus.filter(({gpu}) => gpu.kind !== "partitioned"), waiting),
        nodes.filter((node) => node.error).map((node) => h("p", {class: "warning"}, h("strong", null, node.name), `: ${node.error}`)),
        slurm?.error ? h("p", {class: "warning"}, `Jobs that wait at Slurm: squeue: ${slurm.error}`) : null,
        section("GPUs", table(gpu_titles, gpus.map(({node, gpu}) => gpu_row(node, gpu)), "GPUs of all nodes")),
        section("Jobs on the nodes", jobs.length ? table(job_titles, jobs.map(({node, job}) => job_row(node, job)), "Jobs of all nodes")
            : h("p", {class: "empty"}, "No job is on a node.")),
        waiting ? section("Waiting at Slurm", waiting.length ? table(waiting_titles, waiting.slice(0, most_jobs).map(waiting_row), "Jobs at Slurm")
            : h("p", {class: "empty"}, "No job waits.")) : null,
        waiting?.length > most_jobs ? h("p", {class: "aside"}, `and ${count(waiting.length - most_jobs, "more job")}`) : null,
    ].flat().filter(Boolean);
}

export async function cluster_view() {
    const fault = h("p", {class: "warning", hidden: true});
    const content = h("div", {class: "cluster"});
    const root = h("div", {class: "page"}, h("h1", null, "Cluster"),
        h("p", {class: "lead"}, "All nodes, as they answer you. A node's own page shows more: run carma dashboard there."), fault, content);
    let closed = false;
    let timer = 0;

    async function load() {
        try {
            content.replaceChildren(...draw(await ask("/local/cluster")));
            fault.hidden = true;
        } catch (error) {
            fault.textContent = error.status === 404 ? "This page needs: carma dashboard --cluster" : error.message;
            fault.hidden = false;
        }
        if (!closed)
            timer = setTimeout(load, period_ms);
    }
    await load();
    return {root, title: "Cluster · carma", close: () => {
        closed = true;
        clearTimeout(timer);
    }};
}
