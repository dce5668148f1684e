/* Use by user: sums of each user, over all jobs that were ever submitted. */
import {h, keyed, set_style, set_text} from "/dom.js";
import {count, energy, hours, span} from "/format.js";
import {ask, on} from "/live.js";

const mib_ms_per_gib_hour = 1024 * 3600e3;

/* A column's value for a user; `bar` is its bar's length, as a part of the most. */
const columns = [
    {title: "Jobs", text: (user) => user.jobs.toLocaleString("en")},
    {title: "Ended", text: (user) => user.ended.toLocaleString("en")},
    {title: "GPU hours", text: (user) => hours(user.gpu_ns), bar: (user) => user.gpu_ns},
    {title: "GiB hours", text: (user) => Math.round(user.memory_mib_ms / mib_ms_per_gib_hour).toLocaleString("en"),
        bar: (user) => user.memory_mib_ms},
    {title: "Energy, modelled", text: (user) => energy(user.modelled_energy_mj), bar: (user) => user.modelled_energy_mj},
    {title: "Waited, mean", text: (user) => user.launched ? span(user.wait_ns / user.launched) : "–"},
    {title: "Out of GPU memory", text: (user) => count(user.oom_crashes + user.handle_crashes, "time")},
    {title: "Failed", text: (user) => ((user.states.FAILED || 0) + (user.states.GPU_OOM || 0) + (user.states.LOST || 0))
        .toLocaleString("en")},
];

function cell_of(column) {
    const figure = h("span");
    const fill = h("i");
    const cell = h("td", {class: "number", role: "cell", "data-title": column.title}, column.bar
        ? h("span", {class: "metered"}, h("span", {class: "meter", "aria-hidden": "true"}, fill), figure) : figure);
    return {
        cell,
        update: (user, most) => {
            set_text(figure, column.text(user));
            if (column.bar)
                set_style(fill, "width", `${(100 * column.bar(user) / Math.max(1, most)).toFixed(1)}%`);
        },
    };
}

function user_row() {
    const name = h("th", {scope: "row", role: "rowheader"});
    const cells = columns.map(cell_of);
    return {
        root: h("tr", {role: "row"}, name, cells.map(({cell}) => cell)),
        update: ({user, most}) => {
            set_text(name, user.user);
            cells.forEach((cell, i) => cell.update(user, most[i]));
        },
    };
}

export async function users_view() {
    const body = h("tbody", {role: "rowgroup"});
    const table = h("table", {role: "table", "aria-labelledby": "users-title"},
        h("thead", {role: "rowgroup"}, h("tr", {role: "row"}, h("th", {scope: "col", role: "columnheader"}, "User"),
            columns.map(({title}) => h("th", {scope: "col", role: "columnheader", class: "number"}, title)))), body);
    const rest = h("p", {class: "aside"});
    const fault = h("p", {class: "warning", hidden: true});
    const root = h("div", {class: "page"}, h("h1", {id: "users-title"}, "Use by user"),
        h("p", {class: "lead"}, "Sums over all jobs of a user, up to now for those that run. GPU hours: GPUs times how long a job ran " +
            "on them, in all its attempts. Energy: the part of the GPUs' counted energy that is a job's by the model of its SM activity."),
        fault, h("section", {class: "list"}, table), rest);

    async function load() {
        try {
            const stats = await ask("/v1/stats?by=user");
            const most = columns.map(({bar}) => bar ? Math.max(...stats.users.map(bar)) : 0);
            const users = stats.users.sort((a, b) => b.gpu_ns - a.gpu_ns).map((user) => ({user, most}));
            keyed(body, users, ({user}) => user.uid, user_row);
            set_text(rest, `Besides, ${energy(stats.modelled_idle_mj)} went to GPUs without a job, and ` +
                `${energy(stats.modelled_unmanaged_mj)} to unmanaged processes.`);
            fault.hidden = true;
        } catch (error) {
            set_text(fault, error.message);
            fault.hidden = false;
        }
    }
    await load();
    const clock = setInterval(load, 5000);
    const off = on("link", load);
    return {root, title: "Users · carma", close: () => {
        clearInterval(clock);
        off();
    }};
}
