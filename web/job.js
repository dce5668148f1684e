/* The page of one job: its estimate and its use, its neighbours, its result, its output. */
import {Chart} from "/charts.js";
import {job_colour} from "/colours.js";
import {confirm_dialog, h, set_attribute, set_text} from "/dom.js";
import {edit_dialog} from "/edit.js";
import {count, energy, has_ended, is_running, is_waiting, job_label, moment, percent, share_word, size, span, state_mood, state_word,
    times} from "/format.js";
import {ask, node, now_ns, on} from "/live.js";
import {announce} from "/say.js";

const log_bytes = 32768;
const refresh_ms = 3000;
const gib = 2 ** 30;

/* ---- Data ---- */

const yes = () => "yes";
const code = (text) => h("code", null, text);

/* What its submission asked for, as far as it says so: label, member of the API, form. A further field is a row. */
const asked = [
    ["Project", "account"], ["Tags", "tags", (text) => text.split(",").join(", ")], ["GPU type wanted", "gpu_type", code],
    ["Not on GPUs", "exclude_gpu"], ["Alone on its GPUs", "exclusive", yes], ["Not before", "begin"],
    ["Given up after", "deadline_at_ns", (ns) => moment(ns, now_ns())],
    ["Slowdown, at most", "max_slowdown_permille", times], ["MPS threads, at most", "mps_threads_percent", (n) => `${n}%`],
    ["MPS memory, at most", "mps_memory_limit_bytes", size], ["Names its GPUs by", "visible_devices"],
    ["Processors, at most", "cpus"], ["Host memory, at most", "host_memory_bytes", size], ["Host limits not in force", "host_limits_gap"],
    ["Container", "container", code], ["Conda environment", "conda_environment", code], ["Starts again after its limit", "requeue", yes],
    ["Tells of", "notify"], ["After each run", "on_end", code], ["Summary", "summary_name", code], ["Capture", "capture_name", code],
    ["Transformers config", "hf_config_name", code], ["Trained by", "method"], ["Sequence length", "sequence_length"],
    ["Lengths", "lengths_name", code],
    ["Batch size", "batch_size"], ["Optimizer", "optimizer"], ["Precision", "precision"], ["Not tried for its memory", "no_capture", yes],
    ["Why it is not tried", "untried"], ["No progress looked for", "no_progress", yes], ["Attached", "attach"],
];

function asked_of(job) {
    return asked.filter(([, member]) => job[member] !== null && job[member] !== undefined && job[member] !== false && job[member] !== "")
        .map(([label, member, form]) => [label, (form || String)(job[member])]);
}

/* What is known of memory that it was refused. */
function failure_of({requested_bytes, free_bytes, used_bytes, tenants}) {
    const parts = [requested_bytes ? `${size(requested_bytes)} of GPU memory asked for` : null,
        free_bytes !== null && requested_bytes ? `${size(free_bytes)} were free` : null,
        used_bytes ? `${size(used_bytes)} in use there when last read` : null,
        ...(tenants || []).map((one) => `process ${one.pid} held ${size(one.used_bytes)}`)];
    return parts.filter(Boolean).join(", ");
}

function facts_of(job) {
    const facts = [["User", job.user], ["Submitted", moment(job.submitted_ns, now_ns())]];
    if (job.array)
        facts.push(["Array", `job ${job.array.index} of ${job.array.id}, which has ${count(job.array.jobs, "job")}`]);
    facts.push(...asked_of(job));
    if (job.priority)
        facts.push(["Priority", String(job.priority)]);
    if (job.dependency)
        facts.push(["Waits for", h("code", null, job.dependency)]);
    if (job.turn)
        facts.push(["Place", `${job.turn.place} of ${job.turn.of}`]);
    if (job.progress)
        facts.push(["Progress", `step ${job.progress.step}${job.progress.total ? ` of ${job.progress.total}` : ""}`]);
    if (job.first_started_ns)
        facts.push(["Waited", span(job.first_started_ns - job.submitted_ns)]);
    if (job.started_ns)
        facts.push([job.ended_ns ? "Ran" : "Runs for", span((job.ended_ns || now_ns()) - job.started_ns)]);
    if (job.ended_ns)
        facts.push(["Ended", moment(job.ended_ns, now_ns())]);
    facts.push(["GPUs", job.placements.length ? job.placements.map((one) => `GPU ${one.index}`).join(", ") : String(job.gpus)]);
    facts.push(["Shares by", job.runs_by ? share_word(job.runs_by) : `${share_word(job.share)} (as it asks)`]);
    if (job.attempts)
        facts.push(["Attempts", job.crashes ? `${job.attempts}, ${count(job.crashes, "crash", "crashes")}` : String(job.attempts)]);
    if (job.slowdown_permille)
        facts.push(["Slowdown, estimated", job.slowdown_permille > 1000 ? times(job.slowdown_permille) : "none"]);
    if (job.process_limit_bytes)
        facts.push(["Memory limit", `${size(job.process_limit_bytes)} for each process${job.gpus > 1 ? ` that sees all ${job.gpus} GPUs` : ""}`]);
    if (job.victim_of)
        facts.push(["Harmed by", `job ${job.victim_of}`]);
    if (job.moves)
        facts.push(["Moved off its GPUs", count(job.moves, "time")]);
    if (job.victims)
        facts.push(["Harmed", count(job.victims, "job", "jobs")]);
    if (job.time_limit_ns)
        facts.push(["Time limit", span(job.time_limit_ns) +
            (job.signal ? `; signal ${job.signal} is sent ${span(job.signal_before_ns)} before` : "")]);
    if (job.idle_limit_ns)
        facts.push(["Idle limit", span(job.idle_limit_ns)]);
    if (job.unused_since_ns)
        facts.push(["Has not used its GPUs for", span(now_ns() - job.unused_since_ns)]);
    if (job.run_times)
        facts.push(["Earlier runs", `${count(job.run_times.runs, "run")}, ${span(job.run_times.median_ns)} in the median`]);
    if (job.attempts)
        facts.push(["GPU time", span(job.gpu_ns)], ["Energy, modelled", energy(job.modelled_energy_mj)]);
    if (job.strays?.length)
        facts.push(["Also on", job.strays.map((one) => `GPU ${one.gpu}, which it was not given`).join(", ")]);
    if (job.failure && failure_of(job.failure))
        facts.push(["Its failure", failure_of(job.failure)]);
    if (job.exit_cause)
        facts.push(["End", `${job.exit_cause.replaceAll("_", " ").toLowerCase()}, status ${job.exit_status}`]);
    if (job.command)
        facts.push(["Command", h("code", null, Array.isArray(job.command) ? job.command.join(" ") : String(job.command))]);
    if (job.directory)
        facts.push(["Directory", h("code", null, job.directory)]);
    if (job.output)
        facts.push(["Output", h("code", null, job.output)]);
    if (job.error && job.error !== job.output)
        facts.push(["Errors", h("code", null, job.error)]);
    if (job.script)
        facts.push(["Script", h("code", null, `carma show --script ${job.id}`)]);
    return facts;
}

/* The other residents of its GPUs, by the GPUs' last reading. */
function neighbours_of(job) {
    const mine = new Set(job.placements.map((one) => one.uuid));
    const found = new Map();
    for (const gpu of node.gpus)
        if (mine.has(gpu.uuid) && is_running(job.state))
            for (const one of gpu.residents || [])
                if (one.id !== job.id)
                    found.set(one.id, {...one, gpus: [...(found.get(one.id)?.gpus || []), gpu.index]});
    return [...found.values()];
}

function neighbour(one) {
    const job = node.jobs.get(one.id);
    return h("li", null, h("i", {class: `swatch j${job_colour(job || one)}`}), h("a", {href: `#/job/${one.id}`},
        job ? job_label(job) : `job ${one.id}`), job ? ` of ${job.user}` : "",
    `, GPU ${one.gpus.join(", ")}: uses ${size(one.observed_bytes)} of ${size(one.reserved_bytes)} reserved`);
}

/* How near the estimate was, once that can be said. */
function memory_verdict(job) {
    const most = Math.max(0, ...job.placements.map((one) => one.observed_bytes || 0));
    const said = job.estimate?.bytes || job.reserved_bytes;
    if (!most)
        return "";
    return `${size(most)} used at most in its last run${said ? `, ${Math.round(most / said * 100)}% of ` +
        `${job.estimate?.bytes ? "the estimate" : "what is reserved"}` : ""}${job.over_reservation_bytes
        ? `, ${size(job.over_reservation_bytes)} more than was reserved for it at its start` : ""}.`;
}

/* ---- Why it waits ---- */

function verdict_table(explained) {
    if (!explained.gpus.length)
        return null;
    return h("table", {role: "table", class: "verdicts", "aria-label": "Each GPU's reason"},
        h("thead", {role: "rowgroup"}, h("tr", {role: "row"}, [["GPU", "number"], ["Free", "number"], ["SM activity", "number"],
            ["Jobs there", "number"], ["Verdict", "text"]].map(([title, kind]) =>
            h("th", {scope: "col", role: "columnheader", class: kind}, title)))),
        h("tbody", {role: "rowgroup"}, explained.gpus.map((gpu) => h("tr", {role: "row"},
            [["GPU", String(gpu.index), "number"], ["Free", size(gpu.free_bytes), "number"],
                ["SM activity", percent(gpu.sm_activity_permille), "number"], ["Jobs there", String(gpu.jobs.length), "number"],
                ["Verdict", gpu.verdict, "text"]].map(([title, text, kind]) =>
                h("td", {role: "cell", class: kind, "data-title": title}, text))))));
}

/* ---- Actions ---- */

/* POST /v1/jobs/ID/NAME, or what `act` does: it resolves to a sentence, or to nothing where nothing was done. */
const actions = {
    first: {title: "Move first", can: is_waiting, act: async (job) => {
        await ask(`/v1/jobs/${job.id}/move?to=first`, null);
        return `Job ${job.id} goes before its user's others now.`;
    }},
    edit: {title: "Edit", can: is_waiting, act: edit_dialog},
    checkpoint: {title: "Checkpoint", ask: "Have a checkpoint written by", text: "It is told to save its state, and goes on.",
        can: (state) => state === "RUNNING"},
    hold: {title: "Hold", ask: "Hold", text: "It stays in the queue and is not started until it is released.",
        can: (state) => state === "QUEUED" || state === "CRASHED"},
    release: {title: "Release", ask: "Release", text: "It is started as soon as it has its turn and there is room.",
        can: (state) => state === "HELD"},
    suspend: {title: "Suspend", ask: "Suspend", text: "It stands still, and keeps its GPUs and its memory.",
        can: (state) => state === "RUNNING"},
    resume: {title: "Resume", ask: "Resume", text: "It goes on where it stands still.", can: (state) => state === "SUSPENDED"},
    requeue: {title: "Requeue", ask: "Requeue", text: "Its processes are ended. It waits again in its place, and begins anew.",
        can: (state) => is_running(state) && state !== "STOPPING"},
    cancel: {title: "Cancel", ask: "Cancel", text: "Its processes are ended; unsaved data is lost.", strong: true,
        can: (state) => !has_ended(state)},
};

/* ---- The page ---- */

class JobView {
    constructor(id) {
        this.id = id;
        this.parts();
        this.charts();
        this.rest = h("div", {class: "split"},
            h("div", null, this.verdicts, h("h2", null, "Memory"), this.estimate, this.memory.root, this.activity.root,
                h("section", {"aria-labelledby": "log-title"}, h("div", {class: "log-head"}, h("h2", {id: "log-title"}, "Output"),
                    this.following), this.log)),
            h("div", null, this.beside, this.neighbours, h("h2", null, "Facts"), this.facts));
        this.root = h("div", {class: "page"}, h("p", {class: "back"}, h("a", {href: "#/"}, "Overview")),
            h("header", {class: "job-head"}, this.title, this.state, this.buttons), this.result, this.sentence, this.turn, this.last_end, this.rest);
    }

    parts() {
        this.title = h("h1");
        this.state = h("span", {class: "state"});
        this.buttons = h("div", {class: "buttons"});
        this.result = h("p", {class: "result", role: "alert", hidden: true});
        this.sentence = h("p", {class: "lead"});
        this.turn = h("p", {class: "aside"});
        this.last_end = h("p", {class: "warning", hidden: true});
        this.verdicts = h("div");
        this.estimate = h("div", {class: "estimate"});
        this.reserved = h("p");
        this.beside = h("h2", null, "Neighbours on its GPUs");
        this.neighbours = h("ul", {class: "plain"});
        this.facts = h("dl", {class: "facts-list"});
        this.log = h("pre", {class: "log", tabindex: "0", "aria-label": "The end of the job's output"});
        this.follow = h("input", {type: "checkbox", id: "follow", checked: true, onchange: () => this.load_log()});
        this.following = h("label", {for: "follow"}, this.follow, " follow");
        for (const [name, action] of Object.entries(actions)) {
            action.name = name;
            this.buttons.append(h("button", {type: "button", "data-action": name, class: action.strong ? "danger" : null,
                hidden: true, onclick: () => this.act(action)}, action.title));
        }
    }

    charts() {
        const known = (rows, column) => rows.map((row) => row[column]).filter((value) => value !== null);
        const most = (rows, column, unit) => {
            const values = known(rows, column);
            return values.length ? `${Math.max(...values).toFixed(1)}${unit} at most` : "not known";
        };
        this.memory = new Chart({
            title: "Memory of one of its GPUs", height: 230,
            series: [{name: "used by it", colour: "memory", fill: true}, {name: "used by all there", colour: "unmanaged"},
                {name: "reserved for it", colour: "ink-2", dashed: true}, {name: "estimated", colour: "power", dashed: true}],
            value: (value) => `${value.toFixed(1)} GiB`, tick: (value) => `${value} GiB`,
            summary: (rows) => `Used by it: ${most(rows, 1, " GiB")}; reserved for it: ${most(rows, 3, " GiB")}; ` +
                `estimated: ${most(rows, 4, " GiB")}; used by all there: ${most(rows, 2, " GiB")}.`,
        });
        this.memory.root.hidden = true;
        this.activity = new Chart({
            title: "SM activity of its GPUs, all jobs together", height: 130, top: 100,
            series: [{name: "SM activity", colour: "sm", fill: true}], value: (value) => `${value.toFixed(0)}%`,
            summary: (rows) => `${most(rows, 1, "%")}.`,
        });
        this.activity.root.hidden = true;
    }

    async load() {
        try {
            this.show(await ask(`/v1/jobs/${this.id}`));
        } catch (error) {
            if (!this.job) {
                set_text(this.title, error.status === 404 ? `There is no job ${this.id}` : `Job ${this.id}`);
                set_text(this.sentence, error.status === 404 ? "It never was, or was forgotten: carma history has jobs for longer." : error.message);
                this.rest.hidden = true;
            }
            return;
        }
        await Promise.all([this.load_explanation(), this.load_series(), this.follow.checked ? this.load_log() : null]);
    }

    show(job) {
        this.job = job;
        this.rest.hidden = false;
        this.title.replaceChildren(h("i", {class: `swatch j${job_colour(job)}`}), job_label(job), " ",
            h("span", {class: "id"}, job.id));
        set_text(this.state, state_word(job.state));
        set_attribute(this.state, "class", `state ${state_mood(job.state)}`);
        for (const button of this.buttons.children)
            button.hidden = !actions[button.dataset.action].can(job.state);
        set_text(this.last_end, job.last_end || job.message || "");
        this.last_end.hidden = !this.last_end.textContent;
        this.facts.replaceChildren(...facts_of(job).map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value))));
        const warnings = job.estimate?.warnings || [];
        this.estimate.replaceChildren(this.reserved, h("p", null, memory_verdict(job)),
            ...warnings.map((text) => h("p", {class: "warning"}, text)));
        const others = neighbours_of(job);
        this.neighbours.replaceChildren(...others.length ? others.map(neighbour)
            : [h("li", null, "none: it is alone there")]);
        this.beside.hidden = this.neighbours.hidden = !is_running(job.state);
        this.following.hidden = has_ended(job.state);
    }

    async load_explanation() {
        const explained = await ask(`/v1/jobs/${this.id}/explain`).catch(() => null);
        if (!explained)
            return;
        const text = is_waiting(explained.state) ? `Waits: ${explained.text}` : `It ${explained.text}`;
        set_text(this.sentence, /[.!]$/.test(text) ? text : `${text}.`);
        set_text(this.turn, [explained.turn, explained.kept, explained.start].map((one) => one?.text).filter(Boolean)
            .map((one) => one.charAt(0).toUpperCase() + one.slice(1)).map((one) => /[.!]$/.test(one) ? one : `${one}.`).join(" "));
        set_text(this.reserved, this.job.reserved_bytes || this.job.estimate
            ? explained.memory.charAt(0).toUpperCase() + explained.memory.slice(1)
            : "It declares no memory, and there was nothing to estimate it from.");
        this.verdicts.replaceChildren(...[verdict_table(explained)].filter(Boolean));
    }

    async load_series() {
        if (!this.job?.attempts)
            return;
        const series = await ask(`/v1/jobs/${this.id}/series`).catch(() => null);
        if (!series)
            return;
        const at = (i) => (series.from_ns + i * series.step_ns) / 1e6;
        const bytes = (value) => value === null ? null : value / gib;
        const estimated = this.job.estimate?.bytes ?? null;
        const rows = series.used_bytes.map((used, i) =>
            [at(i), bytes(used), bytes(series.gpu_used_bytes[i]), bytes(series.reserved_bytes[i]), bytes(estimated)]);
        this.memory.root.hidden = this.activity.root.hidden = !rows.length;
        this.memory.set(rows);
        this.activity.set(series.sm_activity_permille.map((value, i) => [at(i), value === null ? null : value / 10]));
    }

    async load_log() {
        if (!this.job?.attempts) {
            set_text(this.log, "It has not been started yet.");
            return;
        }
        try {
            const text = await ask(`/local/jobs/${this.id}/log?bytes=${log_bytes}`);
            const at_end = this.log.scrollHeight - this.log.scrollTop - this.log.clientHeight < 40;
            /* A terminal's colours mean nothing here; a line that was written over shows as it was last. */
            const plain = text.replace(/\x1b\[[0-9;?]*[A-Za-z]/g, "").replace(/^.*\r(?!$)/gm, "");
            set_text(this.log, plain || "It has written nothing yet.");
            if (at_end || !this.seen)
                this.log.scrollTop = this.log.scrollHeight;
            this.seen = true;
        } catch (error) {
            set_text(this.log, error.status === 404 && error.message.includes("/local/")
                ? `Its output can be read here with \`carma dashboard\`, and in a terminal by: carma logs ${this.id}` : error.message);
        }
    }

    async act(action) {
        const name = this.job.name ? `job ${this.id}, ${this.job.name}` : `job ${this.id}`;
        try {
            let done = null;
            if (action.act)
                done = await action.act(this.job);
            else if (await confirm_dialog(`${action.ask} ${name}?`, action.text, action.title))
                done = `Job ${this.id} is ${state_word((await ask(`/v1/jobs/${this.id}/${action.name}`, null)).state)} now.`;
            if (!done)
                return;
            this.say(done, false);
            await this.load();
        } catch (error) {
            this.say(error.message.charAt(0).toUpperCase() + error.message.slice(1), true);
        }
    }

    say(text, refused) {
        set_text(this.result, text);
        this.result.hidden = false;
        this.result.classList.toggle("warning", refused);
        announce(text);
    }

    close() {
        this.offs.forEach((off) => off());
        clearInterval(this.timer);
        this.memory.close();
        this.activity.close();
    }
}

export async function job_view(id) {
    const view = new JobView(id);
    view.offs = [
        on("jobs", (told) => told.jobs.some((job) => job.id === id) && view.load()),
        on("link", () => node.link.state === "live" && view.load()),
    ];
    await view.load();
    view.timer = setInterval(() => (!view.job || !has_ended(view.job.state)) && node.link.state === "live" && view.load(), refresh_ms);
    requestAnimationFrame(() => view.load_series());
    return {root: view.root, title: `${view.job ? job_label(view.job) : `job ${id}`} · carma`, close: () => view.close()};
}
