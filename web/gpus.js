/* GPUs: each with its memory as a bar of the reserved and used parts, and its activity over time. */
import {Spark} from "/charts.js";
import {job_colour} from "/colours.js";
import {h, keyed, set_attribute, set_style, set_text} from "/dom.js";
import {count, gib, job_label, moment, percent, share_word, size, watts} from "/format.js";
import {node, now_ns} from "/live.js";

/* The parts of a GPU's memory, in the order of the bar; a job's part is its reservation, or its use where that is
 * more. */
export function memory_parts(gpu) {
    const parts = (gpu.residents || []).map((job) => ({
        key: job.id, job: job.id, bytes: Math.max(job.reserved_bytes || 0, job.observed_bytes || 0), used: job.observed_bytes || 0,
        reservation: job.reserved_bytes,
    }));
    const known = parts.reduce((sum, part) => sum + part.used, 0) + (gpu.unmanaged_bytes || 0);
    if (gpu.unmanaged_bytes)
        parts.push({key: "unmanaged", bytes: gpu.unmanaged_bytes, used: gpu.unmanaged_bytes});
    if (gpu.used_bytes - known > gpu.total_bytes / 200)
        parts.push({key: "rest", bytes: gpu.used_bytes - known, used: gpu.used_bytes - known});
    return parts;
}

export function reserved_bytes(gpu) {
    return (gpu.residents || []).reduce((sum, job) => sum + (job.reserved_bytes || 0), 0);
}

/* "59 ada": a job by its number and its user, where that is known. */
function who(id) {
    const job = node.jobs.get(id);
    return job ? `${id} ${job.user}` : String(id);
}

function colour_of(id) {
    return `j${job_colour(node.jobs.get(id) || {id})}`;
}

function part_in_words(part) {
    if (part.key === "unmanaged")
        return `other processes ${size(part.used)}`;
    if (part.key === "rest")
        return `not attributed ${size(part.used)}`;
    return `job ${who(part.job).replace(" ", " of ")} uses ${size(part.used)}${part.reservation ? ` of ${size(part.reservation)} reserved` : ""}`;
}

class Bar {
    constructor() {
        this.root = h("div", {class: "bar", role: "img"});
    }

    set(gpu) {
        const parts = memory_parts(gpu);
        const sum = parts.reduce((all, part) => all + part.bytes, 0);
        const whole = Math.max(gpu.total_bytes || 1, sum);
        set_attribute(this.root, "aria-label", parts.length
            ? `Memory of ${size(gpu.total_bytes)}: ${parts.map(part_in_words).join("; ")}; free ${size(gpu.free_bytes)}`
            : `Memory of ${size(gpu.total_bytes)}: not in use`);
        this.root.classList.toggle("over", sum > gpu.total_bytes);
        keyed(this.root, parts, (part) => part.key, (part) => {
            const fill = h("i");
            const name = part.job ? h("b") : null;
            const root = h("span", null, fill, name);
            return {
                root,
                update: (now) => {
                    set_attribute(root, "class", `part ${now.job ? colour_of(now.job) : now.key}`);
                    if (name)
                        set_text(name, who(now.job));
                    set_style(root, "width", `${(now.bytes / whole * 100).toFixed(2)}%`);
                    set_style(fill, "width", `${(now.bytes ? now.used / now.bytes * 100 : 0).toFixed(1)}%`);
                    set_attribute(root, "title", part_in_words(now));
                },
            };
        });
    }
}

function resident_row(resident) {
    const swatch = h("i");
    const name = h("a", {href: `#/job/${resident.id}`});
    const user = h("span", {class: "who"});
    const memory = h("span", {class: "figure"});
    return {
        root: h("li", null, swatch, name, user, memory),
        update: (now) => {
            const job = node.jobs.get(now.id);
            set_attribute(swatch, "class", `swatch ${colour_of(now.id)}`);
            set_text(name, job ? job_label(job) : `job ${now.id}`);
            set_attribute(name, "title", job ? `job ${now.id} of ${job.user}` : `job ${now.id}`);
            set_text(user, who(now.id));
            set_text(memory, `${gib(now.observed_bytes ?? 0)} / ${gib(now.reserved_bytes)} GiB`);
        },
    };
}

/* "reserved for ada until ...": GPUs that are for some users alone, or will be. */
function reservations_of(gpu) {
    const of_it = node.reservations.filter((one) => one.gpus.includes(gpu.index) && one.until_ns > now_ns());
    return of_it.sort((one, other) => one.from_ns - other.from_ns).map((one) => {
        const from = one.from_ns > now_ns() ? `from ${moment(one.from_ns, now_ns())} ` : "";
        return `reserved for ${one.users.join(", ")} ${from}until ${moment(one.until_ns, now_ns())}${one.why ? `: ${one.why}` : ""}`;
    });
}

/* What is to be known of a GPU first, its faults before the rest, in words; empty: nothing. */
function gpu_warnings(gpu) {
    const warnings = [];
    if (gpu.lost)
        warnings.push(`takes no job: ${gpu.why || "lost to the driver"}; its figures are the last that were read`);
    else if (gpu.drained)
        warnings.push(`takes no further job: ${gpu.why || "drained"}`);
    if (gpu.xid)
        warnings.push(`Xid ${gpu.xid.code}${gpu.xid.count > 1 ? `, ${gpu.xid.count} times` : ""}`);
    return warnings.concat(reservations_of(gpu));
}

/* A reservation alone is no fault. */
export function tell_warnings(element, gpu) {
    const warnings = gpu_warnings(gpu);
    set_text(element, warnings.join("; "));
    element.hidden = !warnings.length;
    element.classList.toggle("mild", !gpu.lost && !gpu.drained && !gpu.xid);
}

export function gpu_title(gpu) {
    return gpu.index === null || gpu.index === undefined ? gpu.name || "GPU" : `GPU ${gpu.index}`;
}

/* One figure of a GPU, and how it went; not there where it cannot be read, as the power of a MIG instance. */
class Gauge {
    constructor(label, colour, title) {
        this.spark = new Spark(colour, title);
        this.figure = h("b");
        this.root = h("div", {class: "gauge"}, this.spark.root, h("p", null, this.figure, h("span", null, label)));
    }

    set(value, text, t, values, top) {
        this.root.hidden = (value === null || value === undefined) && !values?.some((one) => one !== null);
        set_text(this.figure, text);
        if (values)
            this.spark.set(t, values, top, text);
    }
}

/* An instance's name without its GPU's, which stands above it. */
function short_name(gpu) {
    if (!gpu.name)
        return "not read yet";
    return gpu.kind === "instance" ? gpu.name.slice(Math.max(0, gpu.name.indexOf("MIG "))) : gpu.name;
}

function gpu_card(gpu) {
    const number = h("a", {class: "number", href: `#/gpu/${encodeURIComponent(gpu.uuid)}`}, gpu.index ?? "–");
    const name = h("span", {class: "name"});
    const share = h("span", {class: "share"});
    const warning = h("p", {class: "warning"});
    const memory = h("p", {class: "memory"});
    const residents = h("ul", {class: "residents"});
    const bar = new Bar();
    const sm = new Gauge("SM", "sm", `SM activity of GPU ${gpu.index}`);
    const power = new Gauge("power", "power", `Power of GPU ${gpu.index}`);
    const gauges = h("div", {class: "gauges"}, sm.root, power.root);
    const root = h("article", {class: "gpu", "aria-label": gpu_title(gpu)},
        h("header", null, number, name, share), warning, bar.root, memory, gauges, residents);
    set_attribute(number, "aria-label", `${gpu_title(gpu)}, its page`);
    return {
        root,
        update: (now) => {
            const series = node.series.get(now.uuid);
            root.classList.toggle("lost", Boolean(now.lost));
            root.classList.toggle("hurt", Boolean(now.xid));
            root.classList.toggle("empty", !now.residents?.length);
            set_text(name, short_name(now));
            set_attribute(name, "title", now.name);
            set_text(share, share_word(now.share));
            set_attribute(share, "title", `jobs share this GPU by: ${share_word(now.share)}`);
            tell_warnings(warning, now);
            bar.set(now);
            memory.replaceChildren(h("b", null, gib(now.used_bytes)), `of ${gib(now.total_bytes)} GiB`,
                h("span", {class: "more"}, `${gib(reserved_bytes(now))} reserved`),
                h("span", {class: "more"}, `${gib(now.free_bytes)} free`));
            sm.set(now.sm_activity_permille, percent(now.sm_activity_permille), series?.t, series?.sm, 1000);
            power.set(now.power_mw, watts(now.power_mw), series?.t, series?.power, 0);
            keyed(residents, now.residents || [], (resident) => resident.id, resident_row);
        },
    };
}

/* One of many GPUs: its number, a square as dark as it is active, its memory as a line. The rest stands on its page. */
function gpu_cell() {
    const number = h("b");
    const figure = h("span");
    const memory = h("i");
    const root = h("a", {class: "gpu cell"}, number, figure, h("span", {class: "line"}, memory));
    return {
        root,
        update: (now) => {
            const warnings = gpu_warnings(now);
            const used = now.total_bytes ? now.used_bytes / now.total_bytes : 0;
            const jobs = (now.residents || []).map((one) => who(one.id));
            root.classList.toggle("lost", Boolean(now.lost));
            root.classList.toggle("hurt", Boolean(now.xid || now.drained || now.why));
            set_attribute(root, "href", `#/gpu/${encodeURIComponent(now.uuid)}`);
            set_text(number, String(now.index ?? "–"));
            set_text(figure, now.lost ? "–" : percent(now.sm_activity_permille));
            set_style(root, "--active", `${((now.sm_activity_permille || 0) / 1000 * 42).toFixed(0)}%`);
            set_style(memory, "width", `${(used * 100).toFixed(0)}%`);
            set_attribute(root, "title", [`${gpu_title(now)}: SM activity ${percent(now.sm_activity_permille)}`,
                `${size(now.used_bytes)} of ${size(now.total_bytes)} used`, `jobs: ${jobs.join(", ") || "none"}`, ...warnings].join("; "));
        },
    };
}

/* A GPU in MIG mode: a heading, with its instances beneath. */
function mig_card(group) {
    const title = h("h3");
    const figures = h("span", {class: "figure"});
    const warning = h("p", {class: "warning"});
    const inside = h("div", {class: "gpus"});
    return {
        root: h("section", {class: "mig", "aria-label": `${group.gpu.name || "GPU"} in MIG mode`},
            h("header", null, title, h("span", {class: "share"}, "MIG"), figures), warning, inside),
        update: (now) => {
            set_text(title, now.gpu.name || "GPU");
            set_text(figures, `${count(now.instances.length, "instance")} · ${watts(now.gpu.power_mw)}`);
            tell_warnings(warning, now.gpu);
            keyed(inside, now.instances, (gpu) => gpu.uuid, gpu_card);
        },
    };
}

/* GPUs with the instances of each under it. */
function groups_of(gpus) {
    const headings = new Map(gpus.filter((gpu) => gpu.kind === "partitioned").map((gpu) => [gpu.uuid, {gpu, instances: []}]));
    const groups = [];
    for (const gpu of gpus) {
        const parent = headings.get(gpu.parent);
        if (headings.has(gpu.uuid))
            groups.push(headings.get(gpu.uuid));
        else if (parent)
            parent.instances.push(gpu);
        else
            groups.push({gpu});
    }
    return groups;
}

export class Gpus {
    constructor() {
        this.root = h("div", {class: "gpus"});
    }

    update() {
        const many = node.gpus.filter((gpu) => gpu.kind !== "partitioned").length;
        const density = many <= 2 ? "wide" : many <= 16 ? "card" : many <= 32 ? "compact" : "map";
        set_attribute(this.root, "data-density", density);
        keyed(this.root, groups_of(node.gpus), (group) => `${density === "map"} ${group.gpu.uuid}`,
            (group) => group.instances ? mig_card(group) : with_gpu(density === "map" ? gpu_cell() : gpu_card(group.gpu)));
    }
}

function with_gpu(card) {
    return {root: card.root, update: (group) => card.update(group.gpu)};
}
