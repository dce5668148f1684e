/* Lists of jobs: running ones, waiting ones and why they wait, ended ones. For any number of them, only the first ones
 * are in the page. */
import {h, keyed, set_attribute, set_style, set_text} from "/dom.js";
import {count, energy, gib, has_ended, is_running, is_waiting, job_colour, job_label, share_word, size, span, state_mood,
    state_word} from "/format.js";
import {fetch_jobs, node, now_ns, on} from "/live.js";

const more = 100;

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

/* ---- Cells: show(cell) makes the cell's content for a job ---- */

function show_job(cell) {
    const swatch = h("i");
    const name = h("a");
    const number = h("span", {class: "id"});
    cell.append(h("span", {class: "job"}, swatch, name, number));
    return (job) => {
        set_attribute(swatch, "class", is_running(job.state) ? `swatch j${job_colour(job.id)}` : "swatch none");
        set_text(name, job_label(job));
        set_attribute(name, "href", `#/job/${job.id}`);
        set_text(number, String(job.id));
    };
}

function show_text(text_of) {
    return (cell) => (job) => set_text(cell, text_of(job));
}

function show_memory(cell) {
    const used = h("i");
    const meter = h("span", {class: "meter", "aria-hidden": "true"}, used);
    const figure = h("span", {class: "figure"});
    cell.append(h("span", {class: "metered"}, meter, figure));
    return (job) => {
        const now = node.residents.get(job.id);
        const most = now?.observed_bytes || observed_bytes(job);
        const reserved = now?.reserved_bytes || job.reserved_bytes;
        set_attribute(meter, "class", `meter j${job_colour(job.id)}`);
        meter.hidden = !reserved;
        set_style(used, "width", `${Math.min(100, reserved ? most / reserved * 100 : 0).toFixed(0)}%`);
        const over = job.over_reservation_bytes;
        set_text(figure, `${over ? "! " : ""}${gib(most)}${reserved ? ` / ${gib(reserved)}` : ""} GiB`);
        set_attribute(figure, "title", over ? `uses ${size(over)} more than was reserved for it at its start` : "");
    };
}

function show_state(cell) {
    const word = h("span");
    cell.append(word);
    return (job) => {
        set_text(word, state_word(job.state));
        set_attribute(word, "class", `state ${state_mood(job.state)}`);
    };
}

function show_reason(cell) {
    const state = h("span");
    const text = h("span");
    cell.append(state, text);
    return (job) => {
        set_text(state, job.state === "QUEUED" ? "" : state_word(job.state));
        state.hidden = job.state === "QUEUED";
        set_attribute(state, "class", `state ${state_mood(job.state)}`);
        set_text(text, `${job.estimating ? "estimating; " : ""}${job.reason ? job.reason.text : ""}`);
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

const job_column = {title: "Job", show: show_job, class: "wide"};
const user_column = {title: "User", show: show_text((job) => job.user)};
const kinds = [
    {
        id: "waiting", title: "Queue", first: 25, has: is_waiting, state: "waiting", empty: "Nothing waits.",
        compare: (a, b) => b.retry - a.retry || a.id - b.id,
        columns: [job_column, user_column, {title: "Needs", show: show_text(wants), class: "number"},
            {title: "Waits", show: show_text((job) => span(now_ns() - (job.crashed_ns ?? job.submitted_ns))), class: "number"},
            {title: "Why", show: show_reason, class: "text"}],
    },
    {
        id: "running", title: "Running", first: 15, has: is_running, state: "running", empty: "Nothing runs.",
        compare: (a, b) => a.id - b.id,
        columns: [job_column, user_column, {title: "GPU", show: show_text(places), class: "number"},
            {title: "Memory used / reserved", show: show_memory, class: "number"},
            {title: "For", show: show_text((job) => job.started_ns ? span(now_ns() - job.started_ns) : "starting"), class: "number"},
            {title: "Shares by", show: show_text((job) => job.runs_by ? share_word(job.runs_by) : "–")},
            {title: "Energy, modelled", show: show_text((job) => energy(job.modelled_energy_mj)), class: "number"}],
    },
    {
        id: "ended", title: "Ended lately", first: 12, has: has_ended, state: "ended", empty: "Nothing has ended yet.",
        compare: (a, b) => (b.ended_ns || 0) - (a.ended_ns || 0) || b.id - a.id,
        columns: [job_column, user_column, {title: "End", show: show_state},
            {title: "Ago", show: show_text((job) => span(now_ns() - job.ended_ns)), class: "number"},
            {title: "Ran", show: show_text((job) => job.started_ns ? span(job.ended_ns - job.started_ns) : "–"), class: "number"},
            {title: "End", show: show_text(how_it_ended), class: "text"}],
    },
];

function table_row(kind) {
    return () => {
        const cells = kind.columns.map((column) => h("td", {class: column.class, role: "cell", "data-title": column.title}));
        const shows = kind.columns.map((column, i) => column.show(cells[i]));
        return {root: h("tr", {role: "row"}, cells), update: (job) => shows.forEach((show) => show(job))};
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
        this.number = h("span", {class: "count"});
        this.body = h("tbody", {role: "rowgroup"});
        this.empty = h("p", {class: "empty"});
        this.note = h("p", {class: "note", role: "status"});
        this.button = h("button", {type: "button", class: "more", onclick: () => this.show_more()});
        this.table = h("table", {role: "table", "aria-labelledby": `list-${kind.id}`},
            h("thead", {role: "rowgroup"}, h("tr", {role: "row"}, kind.columns.map((column) =>
                h("th", {scope: "col", role: "columnheader", class: column.class}, column.title)))), this.body);
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

    update(jobs) {
        const wanted = jobs.filter((job) => this.kind.has(job.state) && this.lists.matches(job));
        const compare = orders[this.lists.order][1];
        const all = this.lists.words.length ? wanted.length : Math.max(counted(this.kind), wanted.length);
        this.there = wanted.length;
        wanted.sort((a, b) => (compare ? compare(a, b) : 0) || this.kind.compare(a, b));
        keyed(this.body, wanted.slice(0, this.most), (job) => job.id, table_row(this.kind));
        set_text(this.number, all.toLocaleString("en"));
        const left = all - Math.min(wanted.length, this.most);
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
        this.lists = kinds.map((kind) => new List(kind, this));
        this.root = h("div", {class: "lists"},
            h("div", {class: "controls"}, h("label", {for: "filter"}, "Filter jobs"), this.filter, h("label", {for: "sort"}, "Order"),
                this.sort), this.lists.map((list) => list.root));
        this.off = on("link", () => this.fetched.clear());
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
    }

    close() {
        this.off();
    }
}

