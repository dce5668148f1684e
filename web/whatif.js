/* The view What-if: the node's own past, simulated under other policies, beside its present settings. */
import {Chart} from "/charts.js";
import {h, set_text} from "/dom.js";
import {count, span} from "/format.js";
import {ask, node} from "/live.js";
import {announce} from "/say.js";

const offered = [
    ["carma", "carma's own: reserves memory, predicts slowdown, fills gaps"], ["exclusive", "each job alone on its GPUs"],
    ["first-fit", "the first GPU with room"], ["best-fit", "the GPU with the least room that suffices"],
    ["round-robin", "one GPU after the other"], ["magm", "the GPU with most free memory"],
    ["lug", "the GPU with the least SM activity"], ["mug", "the GPU with the most SM activity that is allowed"],
    ["thesis", "the thesis's loop and preconditions, with magm"],
];
const usual = new Set(["carma", "exclusive", "magm", "thesis"]);
const poll_ms = 700;

let kept = null; /* the last answer, while the page is open */

const seconds = (value) => span(value * 1e9);
const times = (value) => `${value.toFixed(2)}×`;
const columns = [
    ["Makespan", "makespan_s", seconds], ["Wait time, mean", "wait_s", seconds], ["Run time, mean", "run_time_s", seconds],
    ["JCT, mean", "jct_s", seconds],
    ["Energy", "energy_j", (value) => `${(value / 3.6e6).toFixed(value < 3.6e7 ? 2 : 1)} kWh`],
    ["Out of memory", "oom", (value) => value.toFixed(0)], ["Sharing slowdown, p95", "sharing_slowdown_p95", times],
    ["Worst", "sharing_slowdown_max", times], ["Bounded slowdown, p95", "bounded_slowdown_p95", times],
    ["Worst", "bounded_slowdown_max", times], ["Jain's index", "jain_index", (value) => value.toFixed(2)],
    ["SM activity", "smact_mean", (value) => `${(value * 100).toFixed(0)}%`],
];
const more_is_better = new Set(["smact_mean", "jain_index"]);

const mean = (figure) => figure === null || figure === undefined ? null : typeof figure === "object" ? figure.mean : figure;

/* "−12%" beside a figure, and whether that is for the better. */
function change(name, now, then) {
    if (now === null || then === null || !now || name === "oom")
        return null;
    const part = Math.round((then / now - 1) * 100);
    if (!part)
        return h("small", {class: "same"}, "as now");
    const better = part < 0 !== more_is_better.has(name);
    const text = part >= 900 ? `${Math.round(then / now)}×` : `${part < 0 ? "−" : "+"}${Math.abs(part)}%`;
    return h("small", {class: better ? "better" : "worse"}, text,
        h("span", {class: "unseen"}, better ? " better" : " worse"));
}

function table_of(policies) {
    const [now] = policies;
    return h("table", {role: "table", class: "whatif", "aria-label": "Figures by policy"},
        h("thead", {role: "rowgroup"}, h("tr", {role: "row"}, h("th", {scope: "col", role: "columnheader"}, "Policy"),
            columns.map(([title]) => h("th", {scope: "col", role: "columnheader", class: "number"}, title)))),
        h("tbody", {role: "rowgroup"}, policies.map((policy, i) => h("tr", {role: "row"},
            h("th", {scope: "row", role: "rowheader"}, policy.policy, i ? null : h("small", null, " now"),
                policy.incomplete ? h("small", null, " incomplete: some job did not complete") : null),
            columns.map(([title, name, text]) => {
                const value = mean(policy[name]);
                return h("td", {role: "cell", class: "number", "data-title": title}, value === null ? "–" : text(value),
                    i && !policy.incomplete && !now.incomplete ? change(name, mean(now[name]), value) : null);
            })))));
}

function picture(policy, longest_s, i) {
    const {step_s, sm_activity} = policy.timeline;
    const average = 100 * sm_activity.reduce((sum, x) => sum + (x || 0), 0) / Math.max(1, sm_activity.length);
    const chart = new Chart({
        title: i ? policy.policy : `${policy.policy}, as now`, height: 96, top: 100, time: (x) => seconds(x),
        series: [{name: "mean of the GPUs", colour: i ? "sm" : "ink-2", fill: true}], value: (value) => `${value.toFixed(0)}%`,
        summary: () => `Mean SM activity over ${seconds(sm_activity.length * step_s)}: ${average.toFixed(0)}%.`,
        resting: () => [sm_activity.length * step_s, average],
    });
    const rows = sm_activity.map((x, k) => [k * step_s, x === null ? null : x * 100]);
    /* All end where the longest does, so that the pictures can be compared. */
    if (rows.length && rows[rows.length - 1][0] < longest_s)
        rows.push([rows[rows.length - 1][0] + step_s, 0], [longest_s, 0]);
    return {chart, rows};
}

class WhatIf {
    constructor() {
        this.pictures = [];
        this.boxes = offered.map(([name]) => h("input", {type: "checkbox", name: "policy", value: name, id: `policy-${name}`,
            checked: usual.has(name) && name !== node.status?.policy}));
        this.settings = h("input", {type: "text", id: "settings", placeholder: "memory_margin=1G share=mps", autocomplete: "off"});
        this.button = h("button", {class: "strong"}, "Simulate");
        this.progress = h("p", {class: "aside", role: "status"});
        this.result = h("div", {class: "outcome"});
        this.form = h("form", {class: "choose", onsubmit: (event) => {
            event.preventDefault();
            this.run();
        }}, h("fieldset", null, h("legend", null, "Policies to try"), offered.map(([name, text], i) =>
            h("label", {for: `policy-${name}`, class: "option"}, this.boxes[i], h("strong", null, name), h("span", null, text)))),
        h("p", {class: "settings"}, h("label", {for: "settings"}, "Other settings for all of them, as key=value"), this.settings),
        h("p", null, this.button));
        this.root = h("div", {class: "page"}, h("h1", null, "What if"),
            h("p", {class: "lead"}, "The jobs that this node has run to their end, simulated again under other policies. The first " +
                "line is the daemon as it is set now, simulated too, so that like is compared with like."),
            this.form, this.progress, this.result);
    }

    read_settings() {
        const settings = {};
        for (const word of this.settings.value.split(/\s+/).filter(Boolean)) {
            const at = word.indexOf("=");
            if (at < 1)
                throw new Error(`'${word}' is not key=value`);
            settings[word.slice(0, at)] = word.slice(at + 1);
        }
        return settings;
    }

    async run() {
        this.button.disabled = true;
        try {
            const policies = this.boxes.filter((box) => box.checked).map((box) => box.value);
            if (!policies.length)
                throw new Error("Choose a policy to try");
            const {id} = await ask("/v1/whatif", {policies, settings: this.read_settings()});
            const begun = performance.now();
            let answer;
            for (;;) {
                answer = await ask(`/v1/whatif/${id}`);
                if (answer.state === "done" || answer.state === "failed" || this.closed)
                    break;
                set_text(this.progress, `Simulating for ${Math.round((performance.now() - begun) / 1000)} s`);
                await new Promise((resolve) => setTimeout(resolve, poll_ms));
            }
            if (answer.state === "failed")
                throw new Error(answer.error);
            kept = answer;
            this.show(answer);
            announce("The simulation is done.");
        } catch (error) {
            set_text(this.progress, error.message);
            this.progress.classList.add("warning");
        }
        this.button.disabled = false;
    }

    show(answer) {
        if (this.closed || answer.state !== "done")
            return;
        this.pictures.forEach(({chart}) => chart.close());
        this.progress.classList.remove("warning");
        set_text(this.progress, `${count(answer.jobs, "job")} of this node's past, simulated under ` +
            `${count(answer.policies.length, "policy", "policies")}${answer.power_of ? `, with the power of ${answer.power_of}` : ""}.`);
        const longest_s = Math.max(...answer.policies.map(({timeline}) => timeline.step_s * timeline.sm_activity.length));
        this.pictures = answer.policies.map((policy, i) => picture(policy, longest_s, i));
        this.result.replaceChildren(h("section", {class: "list"}, table_of(answer.policies)),
            h("h2", null, "SM activity over time"), h("div", {class: "pictures"}, this.pictures.map(({chart}) => chart.root)));
        for (const {chart, rows} of this.pictures)
            chart.set(rows);
    }

    close() {
        this.closed = true;
        this.pictures.forEach(({chart}) => chart.close());
    }
}

export async function whatif_view() {
    const view = new WhatIf();
    if (kept)
        requestAnimationFrame(() => view.show(kept));
    return {root: view.root, title: "What if · carma", close: () => view.close()};
}
