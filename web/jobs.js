/* Lists of jobs: running ones, waiting ones and why they wait, ended ones. For any number of them, only the first ones
 * are in the page.
 *
 * How this file works: a list's rows are made from `kinds`, a cell's content by a function of `Cells`. In the order of the
 * queue, jobs that are alike to whoever looks (fold_key) are one row, which unfolds; a row is {job, others}: its first job, and
 * the rest. What is done with the jobs that are ticked is in bulk.js. */
import {Bulk} from "/bulk.js";
import {job_colour} from "/colours.js";
import {h, keyed, set_attribute, set_style, set_text} from "/dom.js";
import {count, gib, has_ended, is_running, is_waiting, job_label, share_word, size, span, state_mood, state_word, times} from "/format.js";
import {ask, fetch_jobs, node, now_ns, on} from "/live.js";

const more = 100;
const first_starts = 3; /* of the queue: of so many jobs the expected start is asked for */
const starts_ms = 30000;

const orders = {
    queue: ["in their order", null],
    user: ["by user", (a, b) => a.user.localeCompare(b.user)],
    name: ["by name", (a, b) => job_label(a).localeCompare(job_label(b))],
    memory: ["by memory", (a, b) => (b.reserved_bytes || 0) - (a.reserved_bytes || 0)],
    oldest: ["oldest first", (a, b) => a.submitted_ns - b.submitted_ns],
    newest: ["newest first", (a, b) => b.submitted_ns - a.submitted_ns],
};

function observed_bytes(job) {
    return Math.max(0, ...(job.placements || []).map((placement) => placement.observed_bytes || 0));
}

/* ---- Cells: show(cell, list) makes the cell's content for a row ---- */

function show_tick(cell, list) {
    const tick = h("input", {type: "checkbox"});
    let shown;
    tick.addEventListener("change", () => list.lists.bulk.tick([shown.job, ...shown.others], tick.checked));
    cell.append(tick);
    return (row) => {
        shown = row;
        tick.checked = list.lists.bulk.has(row.job.id);
        set_attribute(tick, "aria-label", row.others.length ? `${job_label(row.job)} and ${row.others.length} more` : `job ${row.job.id}`);
    };
}

function show_job(cell, list) {
    const swatch = h("i");
    const name = h("a");
    const number = h("span", {class: "id"});
    let key;
    const fold = h("button", {type: "button", class: "fold", onclick: () => list.unfold(key)});
    cell.append(h("span", {class: "job"}, swatch, name, number, fold));
    return ({job, others, key: mine, open}) => {
        key = mine;
        set_attribute(swatch, "class", is_running(job.state) ? `swatch j${job_colour(job)}` : "swatch none");
        set_text(name, job_label(job));
        set_attribute(name, "href", `#/job/${job.id}`);
        set_text(number, job.array ? `${job.array.id}_${job.array.index}` : String(job.id));
        fold.hidden = !others.length && !open;
        set_text(fold, open ? "fold" : `and ${others.length} more`);
        set_attribute(fold, "aria-expanded", open ? "true" : "false");
    };
}

function show_text(text_of) {
    return (cell) => ({job}) => set_text(cell, text_of(job));
}

/* A figure with a meter: part_of gives [text, part, title], `part` from 0 to 1, or null for none. */
function show_meter(part_of) {
    return (cell) => {
        const used = h("i");
        const meter = h("span", {class: "meter", "aria-hidden": "true"}, used);
        const figure = h("span", {class: "figure"});
        cell.append(h("span", {class: "metered"}, meter, figure));
        return ({job}) => {
            const [text, part, title] = part_of(job);
            set_attribute(meter, "class", `meter j${job_colour(job)}`);
            meter.hidden = part === null;
            set_style(used, "width", `${Math.min(100, (part || 0) * 100).toFixed(0)}%`);
            set_text(figure, text);
            set_attribute(figure, "title", title || "");
        };
    };
}

function memory_of(job) {
    const now = node.residents.get(job.id);
    const most = now?.observed_bytes || Math.max(0, ...(job.placements || []).map((placement) => placement.observed_bytes || 0));
    const reserved = now?.reserved_bytes || job.reserved_bytes;
    const over = job.over_reservation_bytes;
    return [`${over ? "! " : ""}${gib(most)}${reserved ? ` / ${gib(reserved)}` : ""} GiB`, reserved ? most / reserved : null,
        over ? `uses ${size(over)} more than was reserved for it at its start` : ""];
}

/* How far it says it is, and how long the rest takes at that speed. */
function progress_of(job) {
    const {step, total, steps_per_s: speed} = job.progress || {};
    if (!job.progress)
        return ["–", null];
    if (!total)
        return [`step ${step.toLocaleString("en")}`, null];
    const left = speed ? `, ${span((total - step) / speed * 1e9)} left` : "";
    return [`${Math.floor(step / total * 100)}%${left}`, step / total, `step ${step} of ${total}`];
}

function time_of(job) {
    const state = job.state === "RUNNING" || job.state === "PLACED" ? "" : `${state_word(job.state)}, `;
    const ran = state + (job.started_ns ? span(now_ns() - job.started_ns) : "starting");
    return job.time_limit_ns ? `${ran} of ${span(job.time_limit_ns)}` : ran;
}

function slowdown_of(job) {
    return job.slowdown_permille > 1000 ? times(job.slowdown_permille) : job.slowdown_permille ? "none" : "–";
}

function show_state(cell) {
    const word = h("span");
    cell.append(word);
    return ({job}) => {
        set_text(word, state_word(job.state));
        set_attribute(word, "class", `state ${state_mood(job.state)}`);
    };
}

function show_reason(cell) {
    const state = h("span");
    const text = h("span");
    cell.append(state, text);
    return ({job}) => {
        set_text(state, job.state === "QUEUED" ? "" : state_word(job.state));
        state.hidden = job.state === "QUEUED";
        set_attribute(state, "class", `state ${state_mood(job.state)}`);
        set_text(text, `${job.estimating ? "estimating; " : ""}${job.reason ? job.reason.text : ""}`);
    };
}

function show_start(cell, list) {
    return ({job}) => {
        const start = list.lists.starts.get(job.id);
        set_text(cell, start ? `in ${span(start.median_ns)}` : "");
        set_attribute(cell, "title", start?.text || "");
    };
}

function wants(job) {
    return `${job.gpus > 1 ? `${job.gpus} × ` : ""}${job.reserved_bytes ? size(job.reserved_bytes) : "not known"}`;
}

function places(job) {
    return (job.placements || []).map((placement) => placement.index).join(", ");
}

function how_it_ended(job) {
    return job.last_end || job.message || (job.exit_status ? `status ${job.exit_status}` : "");
}

const tick_column = {title: "", show: show_tick, class: "tick"};
const job_column = {title: "Job", show: show_job, class: "wide"};
const user_column = {title: "User", show: show_text((job) => job.user)};
const kinds = [
    {
        id: "waiting", title: "Queue", first: 25, has: is_waiting, state: "waiting", empty: "Nothing waits.",
        compare: (a, b) => place_of(a) - place_of(b) || a.id - b.id,
        fold_key: (job) => job.array ? `array ${job.array.id} ${job.state}`
            : `${job.uid} ${job.state} ${job.priority} ${job.gpus} ${job.reserved_bytes} ${job.estimating} ${job.reason?.text}`,
        columns: [tick_column, job_column, user_column, {title: "Needs", show: show_text(wants), class: "number"},
            {title: "Waits", show: show_text((job) => span(now_ns() - (job.crashed_ns ?? job.submitted_ns))), class: "number"},
            {title: "Expected", show: show_start, class: "number"}, {title: "Why", show: show_reason, class: "text"}],
    },
    {
        id: "running", title: "Running", first: 15, has: is_running, state: "running", empty: "Nothing runs.",
        compare: (a, b) => a.id - b.id, fold_key: (job) => job.id,
        columns: [tick_column, job_column, user_column, {title: "GPU", show: show_text(places), class: "number"},
            {title: "Memory used / reserved", show: show_meter(memory_of), class: "number"},
            {title: "Progress", show: show_meter(progress_of), class: "number"},
            {title: "Slowdown", show: show_text(slowdown_of), class: "number"},
            {title: "For", show: show_text(time_of), class: "number"},
            {title: "Shares by", show: show_text((job) => job.runs_by ? share_word(job.runs_by) : "–")}],
    },
    {
        id: "ended", title: "Ended lately", first: 12, has: has_ended, state: "ended", empty: "Nothing has ended yet.",
        compare: (a, b) => (b.ended_ns || 0) - (a.ended_ns || 0) || b.id - a.id,
        fold_key: (job) => job.array ? `array ${job.array.id} ${job.state}` : job.id,
        columns: [job_column, user_column, {title: "End", show: show_state},
            {title: "Ago", show: show_text((job) => span(now_ns() - job.ended_ns)), class: "number"},
            {title: "Ran", show: show_text((job) => job.started_ns ? span(job.ended_ns - job.started_ns) : "–"), class: "number"},
            {title: "Said", show: show_text(how_it_ended), class: "text"}],
    },
];

/* Jobs without a turn, held ones for example, stand behind. */
function place_of(job) {
    return job.turn ? job.turn.place : Number.MAX_SAFE_INTEGER;
}

function table_row(list) {
    return () => {
        const cells = list.kind.columns.map((column) => h("td", {class: column.class, role: "cell", "data-title": column.title}));
        const shows = list.kind.columns.map((column, i) => column.show(cells[i], list));
        return {root: h("tr", {role: "row"}, cells), update: (row) => shows.forEach((show) => show(row))};
    };
}

function counted(kind) {
    let sum = 0;
    for (const [state, n] of Object.entries(node.status?.counts || {}))
        sum += kind.has(state) ? n : 0;
    return sum;
}

/* ---- The lists ---- */

class List {
    constructor(kind, lists) {
        this.kind = kind;
        this.lists = lists;
        this.most = kind.first;
        this.open = new Set(); /* keys of folds that were opened */
        this.number = h("span", {class: "count"});
        this.body = h("tbody", {role: "rowgroup"});
        this.empty = h("p", {class: "empty"});
        this.note = h("p", {class: "note", role: "status"});
        this.button = h("button", {type: "button", class: "more", onclick: () => this.show_more()});
        this.table = h("table", {role: "table", "aria-labelledby": `list-${kind.id}`},
            h("thead", {role: "rowgroup"}, h("tr", {role: "row"}, kind.columns.map((column) =>
                h("th", {scope: "col", role: "columnheader", class: column.class},
                    column.title || h("span", {class: "unseen"}, "Ticked"))))), this.body);
        this.root = h("section", {class: `list ${kind.id}`, "aria-labelledby": `list-${kind.id}`},
            h("h2", {id: `list-${kind.id}`}, kind.title, " ", this.number), this.table, this.empty, this.note,
            this.button);
    }

    async show_more() {
        this.most += more;
        if (this.most > this.there)
            await this.lists.fetch_all(this.kind.state, true);
        this.lists.update();
    }

    unfold(key) {
        if (!this.open.delete(key))
            this.open.add(key);
        this.lists.update();
    }

    /* Rows of jobs in their order: those of one key stand where the first does, in a row of their own once that was opened. */
    rows_of(jobs) {
        const rows = new Map();
        for (const job of jobs) {
            const key = this.lists.order === "queue" ? this.kind.fold_key(job) : job.id;
            const row = rows.get(key);
            if (!row)
                rows.set(key, {key, job, others: [], open: false});
            else
                row.others.push(job);
        }
        return [...rows.values()].flatMap((row) => !this.open.has(row.key) || !row.others.length ? [row]
            : [{...row, others: [], open: true}, ...row.others.map((job) => ({key: row.key, job, others: [], open: false}))]);
    }

    update(jobs) {
        const wanted = jobs.filter((job) => this.kind.has(job.state) && this.lists.matches(job));
        const compare = orders[this.lists.order][1];
        const all = this.lists.words.length ? wanted.length : Math.max(counted(this.kind), wanted.length);
        this.there = wanted.length;
        wanted.sort((a, b) => (compare ? compare(a, b) : 0) || this.kind.compare(a, b));
        const rows = this.rows_of(wanted).slice(0, this.most);
        keyed(this.body, rows, (row) => row.job.id, table_row(this));
        set_text(this.number, all.toLocaleString("en"));
        this.first = rows.slice(0, first_starts).map((row) => row.job);
        const left = all - rows.reduce((sum, row) => sum + 1 + row.others.length, 0);
        const left_out = node.listed[this.kind.state]?.left_out || 0;
        this.button.hidden = left <= 0 && !left_out;
        set_text(this.button, left > 0 ? `Show ${Math.min(more, left)} more of ${count(left, "job")}` : "Look at more of them");
        set_text(this.note, `Not in this list: ${count(left_out, "job")}${this.lists.words.length ? ", which the filter has not looked at" : ""}.`);
        this.note.hidden = !left_out;
        set_text(this.empty, this.lists.words.length ? "None of these matches." : this.kind.empty);
        this.empty.hidden = wanted.length > 0;
        this.table.hidden = !wanted.length;
    }
}

export class Lists {
    constructor() {
        this.words = [];
        this.order = "queue";
        this.fetched = new Set();
        this.filter = h("input", {type: "search", id: "filter", placeholder: "user, name, state or number", autocomplete: "off",
            "aria-keyshortcuts": "/", oninput: () => this.on_filter()});
        this.sort = h("select", {id: "sort", onchange: () => {
            this.order = this.sort.value;
            this.update();
        }}, Object.entries(orders).map(([name, [text]]) => h("option", {value: name}, text)));
        this.starts = new Map(); /* of the first of the queue: when they are expected to start, by id */
        this.bulk = new Bulk(() => this.update());
        this.lists = kinds.map((kind) => new List(kind, this));
        this.running = this.lists[1].root;
        this.root = h("div", {class: "lists"},
            h("div", {class: "controls"}, h("label", {for: "filter"}, "Filter jobs"), this.filter, h("label", {for: "sort"}, "Order"),
                this.sort), this.bulk.root, this.lists.map((list) => list.root));
        this.off = on("link", () => this.fetched.clear());
        this.starts_timer = setInterval(() => this.ask_starts(), starts_ms);
    }

    /* Where the running jobs are shown elsewhere: under `other`, or in their place again. */
    put_running(other) {
        if (other)
            other.append(this.running);
        else
            this.lists[0].root.after(this.running);
    }

    async ask_starts() {
        if (node.link.state !== "live" || document.hidden)
            return;
        const starts = new Map();
        for (const job of this.lists[0].first || []) {
            const explained = await ask(`/v1/jobs/${job.id}/explain`).catch(() => null);
            if (explained?.start?.median_ns !== null && explained?.start)
                starts.set(job.id, explained.start);
        }
        this.starts = starts;
        this.update();
    }

    /* `further`: and more of those that the daemon left out the last time. */
    async fetch_all(state, further) {
        const again = this.fetched.has(state);
        if (again && !(further && node.listed[state]?.left_out))
            return;
        this.fetched.add(state);
        await fetch_jobs(state, further || !node.listed[state]).catch(() => again || this.fetched.delete(state));
    }

    async on_filter() {
        this.words = this.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
        this.update();
        if (this.words.length) {
            await Promise.all(["waiting", "ended"].map((state) => this.fetch_all(state)));
            this.update();
        }
    }

    matches(job) {
        const text = `${job.id} ${job.name || ""} ${job.user} ${state_word(job.state)}`.toLowerCase();
        return this.words.every((word) => text.includes(word));
    }

    /* The stream sends only the first waiting jobs; a page that asked for all of them gets them again when their number
     * changes. */
    async keep_up() {
        const here = [...node.jobs.values()].filter((job) => is_waiting(job.state)).length;
        const waiting = here + (node.listed.waiting?.left_out || 0);
        if (this.fetched.has("waiting") && node.link.state === "live" && waiting !== counted(kinds[0]))
            await fetch_jobs("waiting").catch(() => {});
        this.update();
    }

    update() {
        const jobs = [...node.jobs.values()];
        for (const list of this.lists)
            list.update(jobs);
        if (!this.asked_starts && this.lists[0].first.length) {
            this.asked_starts = true;
            this.ask_starts();
        }
    }

    close() {
        this.off();
        clearInterval(this.starts_timer);
        this.bulk.close();
    }
}

