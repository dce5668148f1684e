/* What is wrong on the node, worst first, each in a line with a link to where more stands. A further kind of problem is a
 * function in `kinds` that adds its lines. */
import {h, keyed, set_attribute, set_text} from "/dom.js";
import {count, is_running, is_waiting, job_label, size, span, state_word, throttle_words, times} from "/format.js";
import {gpu_title} from "/gpus.js";
import {node, now_ns} from "/live.js";

const waits_long_ns = 600e9; /* without any job that runs: after this long it is said */
const least_stranger = 256 * 2 ** 20; /* of others' memory on a GPU: a display and a context are less */
const shown_at_first = 4;

function gpu_link(gpu) {
    return `#/gpu/${encodeURIComponent(gpu.uuid)}`;
}

function closed_gpus(add) {
    for (const gpu of node.gpus)
        if (gpu.lost)
            add(`lost ${gpu.uuid}`, true, `${gpu_title(gpu)} takes no job: ${gpu.why || "lost to the driver"}`, gpu_link(gpu));
        else if (gpu.drained)
            add(`drained ${gpu.uuid}`, false, `${gpu_title(gpu)} takes no further job: ${gpu.why || "drained"}`, gpu_link(gpu));
        else if (gpu.why)
            add(`closed ${gpu.uuid}`, true, `${gpu_title(gpu)}: ${gpu.why}`, gpu_link(gpu));
}

function faults(add) {
    for (const gpu of node.gpus)
        if (gpu.xid)
            add(`xid ${gpu.uuid}`, false, `${gpu_title(gpu)} reported Xid ${gpu.xid.code}${gpu.xid.count > 1 ? `, ${gpu.xid.count} times` : ""}, ` +
                `the last one ${span(now_ns() - gpu.xid.at_ns)} ago`, gpu_link(gpu));
}

function ailing(add) {
    for (const gpu of node.gpus) {
        if (gpu.throttle?.length)
            add(`slow ${gpu.uuid}`, true, `${gpu_title(gpu)} runs at lower clocks, held down by ${throttle_words(gpu.throttle)}`, gpu_link(gpu));
        if (gpu.ecc_uncorrected)
            add(`ecc ${gpu.uuid}`, false, `${gpu_title(gpu)}: ${count(gpu.ecc_uncorrected, "error")} of its memory could not be corrected ` +
                "since its driver was loaded", gpu_link(gpu));
    }
}

function strangers(add) {
    for (const gpu of node.gpus) {
        const bytes = (gpu.unmanaged_bytes || 0) - (gpu.mps_server_bytes || 0);
        if (bytes >= least_stranger)
            add(`strangers ${gpu.uuid}`, false, `${gpu_title(gpu)}: processes that carma did not start use ${size(bytes)}`, gpu_link(gpu));
    }
}

function no_mps(add) {
    const turns = node.gpus.find((gpu) => gpu.share_why && gpu.share === "time-slice");
    if (turns)
        add("mps", false, `Jobs take turns instead of sharing by MPS: ${turns.share_why}`, gpu_link(turns));
}

function named(job) {
    return `Job ${job.id} of ${job.user}${job.name ? `, ${job_label(job)},` : ""}`;
}

function jobs_beyond(add) {
    for (const job of node.jobs.values()) {
        if (!is_running(job.state))
            continue;
        const href = `#/job/${job.id}`;
        if (job.over_reservation_bytes)
            add(`over ${job.id}`, true, `${named(job)} uses ${size(job.over_reservation_bytes)} more than was reserved for it`, href);
        if (job.reason?.code === "slowed")
            add(`slowed ${job.id}`, true, `${named(job)} is slowed ${times(job.slowdown_permille || 0)}: ${job.reason.text}`, href);
        if (job.idle_ends_ns)
            add(`idle ${job.id}`, true, `${named(job)} does not use its ${job.gpus > 1 ? "GPUs" : "GPU"}, and is ended in ` +
                `${span(Math.max(job.idle_ends_ns - now_ns(), 0))} unless it does`, href);
        else if (job.unused_since_ns)
            add(`unused ${job.id}`, false, `${named(job)} holds ${count(job.gpus, "GPU")} and has not used ${job.gpus > 1 ? "them" : "it"} for ` +
                span(now_ns() - job.unused_since_ns), href);
    }
}

/* Of users who wait, each with nothing running: by the oldest of the jobs that could run. */
function users_with_nothing(add) {
    const running = new Set();
    const oldest = new Map();
    for (const job of node.jobs.values())
        if (is_running(job.state))
            running.add(job.user);
        else if (is_waiting(job.state) && job.state !== "HELD" && !(oldest.get(job.user)?.submitted_ns <= job.submitted_ns))
            oldest.set(job.user, job);
    for (const [user, job] of oldest)
        if (!running.has(user) && job.turn && now_ns() - job.submitted_ns > waits_long_ns)
            add(`nothing ${user}`, false, `${user} has nothing running, and waits for ${span(now_ns() - job.submitted_ns)} with job ${job.id}: ` +
                (job.reason?.text || state_word(job.state)), `#/job/${job.id}`);
}

const kinds = [closed_gpus, jobs_beyond, ailing, faults, strangers, users_with_nothing, no_mps];

function all() {
    const grave = [];
    const others = [];
    for (const kind of kinds)
        kind((key, is_grave, text, href) => (is_grave ? grave : others).push({key, is_grave, text, href}));
    return [...grave, ...others];
}

export class Problems {
    constructor() {
        this.list = h("ul");
        this.most = shown_at_first;
        this.button = h("button", {type: "button", class: "more", onclick: () => {
            this.most = Infinity;
            this.update();
        }});
        this.root = h("section", {class: "problems", "aria-label": "What is wrong"}, this.list, this.button);
    }

    update() {
        const problems = all();
        keyed(this.list, problems.slice(0, this.most), (problem) => problem.key, () => {
            const link = h("a");
            const root = h("li", null, link);
            return {root, update: (now) => {
                root.classList.toggle("grave", now.is_grave);
                set_text(link, now.text);
                set_attribute(link, "href", now.href);
            }};
        });
        this.root.hidden = !problems.length;
        this.button.hidden = problems.length <= this.most;
        set_text(this.button, `${problems.length - this.most} more`);
    }
}
