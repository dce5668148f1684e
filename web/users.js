/* Who used what. */
import {h, keyed, set_style, set_text} from "/dom.js";
import {energy, hours} from "/format.js";
import {ask, on} from "/live.js";

function user_row() {
    const name = h("th", {scope: "row", role: "rowheader"});
    const fill = h("i");
    const gpu_hours = h("span", {class: "figure"});
    const cells = ["Jobs", "Ended", "Energy, modelled"].map((title) => h("td", {class: "number", role: "cell", "data-title": title}));
    const row = h("tr", {role: "row"}, name, cells[0], cells[1],
        h("td", {class: "number", role: "cell", "data-title": "GPU hours"},
            h("span", {class: "metered"}, h("span", {class: "meter", "aria-hidden": "true"}, fill), gpu_hours)), cells[2]);
    return {
        root: row,
        update: (user) => {
            set_text(name, user.user);
            set_text(cells[0], user.jobs.toLocaleString("en"));
            set_text(cells[1], user.ended.toLocaleString("en"));
            set_text(gpu_hours, hours(user.gpu_ns));
            set_style(fill, "width", `${(user.part * 100).toFixed(1)}%`);
            set_text(cells[2], energy(user.modelled_energy_mj));
        },
    };
}

export async function users_view() {
    const body = h("tbody", {role: "rowgroup"});
    const table = h("table", {role: "table", "aria-labelledby": "users-title"},
        h("thead", {role: "rowgroup"}, h("tr", {role: "row"}, [["User", ""], ["Jobs", "number"], ["Ended", "number"],
            ["GPU hours", "number"], ["Energy, modelled", "number"]].map(([title, kind]) =>
            h("th", {scope: "col", role: "columnheader", class: kind}, title)))), body);
    const rest = h("p", {class: "aside"});
    const fault = h("p", {class: "warning", hidden: true});
    const root = h("div", {class: "page"}, h("h1", {id: "users-title"}, "Who used what"),
        h("p", {class: "lead"}, "Of the jobs that the daemon still knows. GPU hours: GPUs times how long a job ran on them, in all its " +
            "launches. Energy: the part of the GPUs' counted energy that is a job's by the model of its SM activity."),
        fault, h("section", {class: "list"}, table), rest);

    async function load() {
        try {
            const stats = await ask("/v1/stats");
            const most = Math.max(1, ...stats.users.map((user) => user.gpu_ns));
            const users = stats.users.map((user) => ({...user, part: user.gpu_ns / most})).sort((a, b) => b.gpu_ns - a.gpu_ns);
            keyed(body, users, (user) => user.uid, user_row);
            set_text(rest, `Besides, ${energy(stats.modelled_idle_mj)} went where nobody was on the GPU, and ` +
                `${energy(stats.modelled_foreign_mj)} to processes that are no job's.`);
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
