/* The page's frame: which view is shown, the line to the daemon, light and dark, keys. */
import {h, set_attribute, set_text} from "/dom.js";
import {count, gib, moment, percent, running_states, share_word, watts} from "/format.js";
import {reserved_bytes, Gpus} from "/gpus.js";
import {Lists} from "/jobs.js";
import {connect, fetch_series, node, now_ns, on, reconnect, set_token} from "/live.js";
import {Problems} from "/problems.js";
import {announce} from "/say.js";

const main = document.getElementById("main");

/* ---- Overview ---- */

const spans = [[600, "10 minutes"], [3600, "hour"], [6 * 3600, "6 hours"], [24 * 3600, "day"]];

function figure(value, unit, label) {
    return h("div", null, h("dd", null, value, unit ? h("small", null, ` ${unit}`) : null), h("dt", null, label));
}

function node_figures() {
    const gpus = node.gpus.filter((gpu) => gpu.kind !== "partitioned");
    const sum = (of) => gpus.reduce((all, gpu) => all + (of(gpu) || 0), 0);
    const active = gpus.filter((gpu) => gpu.sm_activity_permille !== null && gpu.sm_activity_permille !== undefined);
    const counts = node.status?.counts || {};
    const total = sum((gpu) => gpu.total_bytes);
    /* An instance's power is its parent's, which is in the list itself. */
    const drawing = node.gpus.filter((gpu) => gpu.kind !== "instance" && gpu.power_mw !== null && gpu.power_mw !== undefined);
    return [
        figure(String(gpus.length), "", gpus.length === 1 ? "GPU" : "GPUs"),
        figure(running_states.reduce((all, state) => all + (counts[state] || 0), 0).toLocaleString("en"), "", "running"),
        figure((node.status?.waiting || 0).toLocaleString("en"), "", "waiting"),
        figure(gib(sum((gpu) => gpu.used_bytes)), `of ${gib(total)} GiB`, "memory used"),
        figure(gib(sum(reserved_bytes)), "GiB", "reserved"),
        figure(active.length ? percent(active.reduce((all, gpu) => all + gpu.sm_activity_permille, 0) / active.length) : "–", "",
            "mean SM activity"),
        figure(drawing.length ? watts(drawing.reduce((all, gpu) => all + gpu.power_mw, 0)) : "–", "", "power"),
    ];
}

/* What sharing has saved, simulated: a sentence of the daemon's, and how old it is. */
class Saved {
    constructor() {
        this.what = h("span");
        this.root = h("p", {class: "saved", hidden: true}, this.what, " ", h("a", {href: "#/what-if"}, "What if"));
    }

    update() {
        const saved = node.status?.saved;
        this.root.hidden = !saved;
        if (saved)
            set_text(this.what, saved.gpu_alone_ns === null ? `What sharing saves is ${saved.text}.`
                : `Simulated: sharing ${saved.text}, against one job a GPU; computed ${moment(saved.at_ns, now_ns())}.`);
    }
}

function overview() {
    const figures = h("dl", {class: "figures", "aria-label": "The node now"});
    const problems = new Problems();
    const saved = new Saved();
    const gpus = new Gpus();
    const lists = new Lists();
    const select = h("select", {id: "span", onchange: () => fetch_series(Number(select.value)).catch(() => {})},
        spans.map(([seconds, text]) => h("option", {value: seconds}, `last ${text}`)));
    select.value = String(node.span_s || 3600);
    const key = h("ul", {class: "bar-key", "aria-label": "How to read the memory bars"},
        ["used", "reserved", "unmanaged", "free"].map((name) => h("li", {class: name}, {used: "used by a job", reserved: "reserved, not used",
            unmanaged: "unmanaged processes", free: "free"}[name])));
    const board = h("div", {class: "board"}, h("section", {"aria-labelledby": "gpus-title"},
        h("div", {class: "board-head"}, h("h2", {id: "gpus-title"}, "GPUs"), key,
            h("p", {class: "map-key"}, "each with its SM activity; the line is the memory in use"), h("label", {for: "span"}, "Curves"), select),
        gpus.root));
    const root = h("div", {class: "overview"}, h("h1", {class: "unseen"}, "Overview"), problems.root, h("div", {class: "now"}, figures, saved.root), board, lists.root);
    /* Beside each other, the running jobs stand under their GPUs, and the queue at the page's top. */
    const wide = matchMedia("(min-width: 1700px)");
    const put_running = () => lists.put_running(wide.matches ? board : null);
    const update_figures = () => {
        figures.replaceChildren(...node_figures());
        saved.update();
    };
    const offs = [
        on("gpus series", () => gpus.update()),
        on("gpus status", update_figures),
        on("gpus jobs", () => problems.update()),
        on("jobs status", () => {
            gpus.update();
            lists.update();
        }),
    ];
    const repaint = () => gpus.update();
    addEventListener("carma-theme", repaint);
    const clock = setInterval(() => lists.keep_up(), 5000);
    wide.addEventListener("change", put_running);
    put_running();
    problems.update();
    update_figures();
    gpus.update();
    lists.update();
    return {
        root, title: "carma", focus: () => lists.filter.focus(),
        close: () => {
            offs.forEach((off) => off());
            removeEventListener("carma-theme", repaint);
            wide.removeEventListener("change", put_running);
            clearInterval(clock);
            lists.close();
        },
    };
}

/* ---- Which view ---- */

const views = [
    [/^#?\/?$/, "overview", () => overview()],
    [/^#\/job\/(\d+)$/, "job", async (id) => (await import("/job.js")).job_view(Number(id))],
    [/^#\/gpu\/(.+)$/, "gpu", async (uuid) => (await import("/gpu.js")).gpu_view(decodeURIComponent(uuid))],
    [/^#\/submit$/, "submit", async () => (await import("/submit.js")).submit_view()],
    [/^#\/users$/, "users", async () => (await import("/users.js")).users_view()],
    [/^#\/cluster$/, "cluster", async () => (await import("/cluster.js")).cluster_view()],
    [/^#\/what-if$/, "what-if", async () => (await import("/whatif.js")).whatif_view()],
];

let shown = null;
let turn = 0;

function nothing_there() {
    return {root: h("div", {class: "lone"}, h("h1", null, "There is no such page"), h("p", null, h("a", {href: "#/"}, "To the overview"))),
        title: "carma", close: () => {}};
}

/* A view's module, which is fetched when it is first wanted. */
function not_to_be_had() {
    const root = h("div", {class: "lone"}, h("h1", null, "This view could not be fetched"),
        h("p", null, "The daemon is not answering. ", h("button", {type: "button", onclick: () => show(false)}, "Try again")));
    return {root, title: "carma", close: () => {}};
}

async function show(first) {
    const mine = ++turn;
    if (location.hash === "#/cluster") /* `carma dashboard --cluster` begins there; others have no such view */
        document.querySelector("nav [data-view=cluster]").hidden = false;
    const [match, name, make] = views.map(([pattern, ...rest]) => [location.hash.match(pattern), ...rest]).find(([found]) => found) ||
        [[], "none", nothing_there];
    const view = await Promise.resolve(make(...match.slice(1))).catch(not_to_be_had);
    if (mine !== turn) {
        view.close();
        return;
    }
    shown?.close();
    shown = view;
    main.replaceChildren(view.root);
    main.dataset.view = name;
    document.title = view.title;
    for (const link of document.querySelectorAll("nav a"))
        set_attribute(link, "aria-current", link.dataset.view === name ? "page" : null);
    if (!first) {
        scrollTo(0, 0);
        main.focus({preventScroll: true});
    }
}

/* ---- The line to the daemon ---- */

const notice = document.getElementById("notice");
const link_text = document.getElementById("link-text");
let was_down = false;

function token_form() {
    const input = h("input", {type: "password", id: "token", autocomplete: "off", required: true});
    return h("form", {class: "token", onsubmit: (event) => {
        event.preventDefault();
        set_token(input.value.trim());
    }}, h("label", {for: "token"}, node.link.refused ? "The daemon does not take that token. The token of carmad's token_file"
        : "This daemon asks for the token of its token_file"), input, h("button", {class: "strong"}, "Show it"),
    h("p", null, "It is kept until this tab is closed, and sent only to this server."));
}

function update_link() {
    const {state, why, retry_at} = node.link;
    set_attribute(document.getElementById("link"), "data-state", state);
    if (state === "live") {
        set_text(link_text, "live");
        notice.hidden = true;
        if (was_down)
            announce("The daemon answers again.");
        was_down = false;
    } else if (state === "token") {
        set_text(link_text, "token needed");
        notice.hidden = false;
        notice.replaceChildren(token_form());
    } else if (state === "down") {
        const seconds = Math.max(0, Math.ceil((retry_at - performance.now()) / 1000));
        const sentence = why.charAt(0).toUpperCase() + why.slice(1);
        set_text(link_text, "not connected");
        notice.hidden = false;
        notice.replaceChildren(h("strong", null, `${sentence}. `), node.now_ns ? "This is the last known state. " : "",
            seconds ? `Trying again in ${seconds} s. ` : "Trying again. ", h("button", {type: "button", onclick: reconnect}, "Now"));
        if (!was_down)
            announce(`${sentence}.`);
        was_down = true;
    } else {
        set_text(link_text, "connecting");
    }
    document.body.classList.toggle("stale", state === "down");
}

function update_facts() {
    const {status} = node;
    if (!status)
        return;
    const facts = [`policy ${status.policy}`, `${status.memory_view} view`, `shares by ${share_word(status.share)}`];
    if (status.time_scale !== 1)
        facts.push(`virtual, ${count(status.time_scale, "time", "times")} faster than the wall clock`);
    set_text(document.getElementById("facts"), facts.join(" · "));
    set_attribute(document.getElementById("facts"), "title", `carma ${status.version}`);
    if (status.trouble) {
        notice.hidden = false;
        notice.replaceChildren(h("strong", null, "Nothing can be stored now: "), status.trouble);
    } else if (node.link.state === "live") {
        notice.hidden = true;
    }
}

/* ---- Light and dark ---- */

function is_dark() {
    const {theme} = document.documentElement.dataset;
    return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

const theme_button = document.getElementById("theme");

function name_theme() {
    set_text(theme_button, is_dark() ? "Light" : "Dark");
    set_attribute(theme_button, "aria-label", is_dark() ? "Use light colours" : "Use dark colours");
    dispatchEvent(new Event("carma-theme"));
}

function change_theme() {
    const theme = is_dark() ? "light" : "dark";
    document.documentElement.dataset.theme = theme;
    try {
        localStorage.setItem("carma-theme", theme);
    } catch {
        /* It holds for this page, then. */
    }
    name_theme();
}

/* ---- Keys ---- */

const keys = [["/", "filter jobs"], ["g o", "overview"], ["g s", "submit a job"], ["g u", "users"], ["g w", "what-if"], ["t", "light or dark"], ["?", "this help"],
    ["Esc", "close"]];
let before = "";

function help() {
    const dialog = h("dialog", {class: "ask", "aria-labelledby": "help-title"}, h("h2", {id: "help-title"}, "Keys"),
        h("dl", {class: "keys"}, keys.map(([key, what]) => h("div", null, h("dt", null, key.split(" ").map((one) => h("kbd", null, one))),
            h("dd", null, what)))),
        h("p", null, "A memory bar shows a GPU's memory: a job's reservation is outlined, its use is filled; unmanaged processes are ",
            "hatched. A running job has one colour everywhere, and jobs on one GPU have different ones. Power is measured; a job's energy is modelled, since no counter tells ",
            "jobs on a GPU apart."),
        h("form", {method: "dialog", class: "buttons"}, h("button", {class: "strong"}, "Close")));
    dialog.addEventListener("close", () => dialog.remove());
    document.body.append(dialog);
    dialog.showModal();
}

function on_key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea, dialog"))
        return;
    const pair = before + event.key;
    const places = {go: "#/", gs: "#/submit", gu: "#/users", gw: "#/what-if"};
    before = event.key === "g" ? "g" : "";
    if (places[pair])
        location.hash = places[pair];
    else if (event.key === "?")
        help();
    else if (event.key === "t")
        change_theme();
    else if (event.key === "/" && shown?.focus) {
        event.preventDefault();
        shown.focus();
    }
}

/* The address's part after # names the view: a target to skip to must not change it. */
document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
});
document.getElementById("help").addEventListener("click", help);
theme_button.addEventListener("click", change_theme);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", name_theme);
addEventListener("keydown", on_key);
addEventListener("hashchange", () => show(false));
on("link", update_link);
on("status", update_facts);
setInterval(() => node.link.state === "down" && update_link(), 1000);
name_theme();
show(true);
connect();
