/* The page's data of the node, and the connection to the daemon that keeps it current. It is GET /v1/events, read as a
 * stream by fetch, since EventSource could not show a token. */
import {give_colours} from "/colours.js";
import {has_ended, is_running, is_waiting} from "/format.js";

const key = "carma-token";
const first_points = 150; /* of a curve, as the daemon gives it */
const refresh_ms = 60000; /* for this long a curve grows by the stream's data, before it is asked for anew */
const most_jobs = 20000;
const kept_jobs = 5000;
const most_listed = 10000; /* in an answer of the daemon's */
const waits_ms = [500, 1000, 2000, 4000, 8000];
const silence_ms = 40000; /* the daemon says something at least every 15 s */

export const node = {
    status: null,
    gpus: [],
    reservations: [],
    now_ns: 0,
    residents: new Map(), /* by a job's id: the most that it reserved and uses on one of its GPUs now */
    jobs: new Map(), /* those that the daemon has told of, by id */
    listed: {}, /* by a list's name: how many were asked for, and how many more the daemon has */
    series: new Map(), /* by UUID: {t: [ms], sm: [permille], power: [mW], used: [bytes]} */
    link: {state: "connecting", retry_at: 0},
};

const listeners = new Map();

/* Calls `listener` after each `name` ("status", "gpus", "jobs", "link", "series"); returns a function that ends
 * that. */
export function on(names, listener) {
    for (const name of names.split(" "))
        listeners.set(name, (listeners.get(name) || new Set()).add(listener));
    return () => names.split(" ").forEach((name) => listeners.get(name).delete(listener));
}

function tell(name, what) {
    for (const listener of [...(listeners.get(name) || [])])
        listener(what);
}

function token() {
    try {
        return sessionStorage.getItem(key);
    } catch {
        return null;
    }
}

export function set_token(text) {
    sessionStorage.setItem(key, text);
    reconnect();
}

function headers() {
    return token() ? {Authorization: `Bearer ${token()}`} : {};
}

function set_link(state, more) {
    node.link = {state, retry_at: 0, ...more};
    tell("link");
}

/* The API's answer; throws an Error with the daemon's sentence, and the status in `.status` (0: nobody answered). */
export async function ask(path, body) {
    let response;
    const options = {headers: headers(), cache: "no-store"};
    if (body !== undefined) {
        options.method = "POST";
        options.body = body === null ? "" : JSON.stringify(body);
        if (body !== null)
            options.headers["Content-Type"] = "application/json";
    }
    try {
        response = await fetch(path, options);
    } catch {
        throw Object.assign(new Error("the daemon is not answering"), {status: 0});
    }
    if (response.headers.get("Content-Type")?.startsWith("text/plain") && response.ok)
        return response.text();
    const answer = await response.json().catch(() => ({}));
    if (!response.ok)
        throw Object.assign(new Error(answer.error || `the answer was ${response.status}`), {status: response.status});
    return answer;
}

/* ---- Events ---- */

function keep_point(gpu, t) {
    const series = node.series.get(gpu.uuid);
    if (!series || (series.t.length && t <= series.t[series.t.length - 1]))
        return;
    series.t.push(t);
    series.sm.push(gpu.sm_activity_permille ?? null);
    series.power.push(gpu.power_mw ?? null);
    series.used.push(gpu.used_bytes ?? null);
    series.reserved.push((gpu.residents || []).reduce((sum, job) => sum + (job.reserved_bytes || 0), 0));
    series.unmanaged.push(gpu.unmanaged_bytes ?? null);
    const gone = series.t.findIndex((at) => at >= t - span_s() * 1000);
    for (const values of Object.values(series))
        values.splice(0, gone);
}

function span_s() {
    return node.span_s || 3600;
}

/* A page that is open for weeks: of the jobs that have ended the latest stay. */
function forget_old() {
    if (node.jobs.size <= most_jobs)
        return;
    const ended = [...node.jobs.values()].filter((job) => has_ended(job.state)).sort((a, b) => b.ended_ns - a.ended_ns);
    for (const job of ended.slice(kept_jobs))
        node.jobs.delete(job.id);
}

function take(name, data) {
    if (name === "status") {
        node.status = data;
    } else if (name === "gpus") {
        node.gpus = data.gpus;
        node.reservations = data.reservations || [];
        node.residents.clear();
        for (const gpu of data.gpus) {
            keep_point(gpu, data.now_ns / 1e6);
            for (const one of gpu.residents || [])
                node.residents.set(one.id, {
                    reserved_bytes: Math.max(one.reserved_bytes || 0, node.residents.get(one.id)?.reserved_bytes || 0),
                    observed_bytes: Math.max(one.observed_bytes || 0, node.residents.get(one.id)?.observed_bytes || 0),
                });
        }
    } else if (name === "jobs") {
        if (fresh) { /* a daemon that was started anew may have forgotten some */
            node.jobs.clear();
            node.listed = {};
        }
        fresh = false;
        for (const job of data.jobs)
            node.jobs.set(job.id, job);
        forget_old();
    } else {
        return;
    }
    if (name !== "status")
        give_colours(node.gpus, (id) => node.jobs.get(id));
    node.now_ns = Math.max(node.now_ns, data.now_ns || 0);
    node.heard_at = performance.now();
    tell(name, data);
}

/* Node time now: it goes on between the daemon's answers. */
export function now_ns() {
    const since_ms = node.heard_at ? performance.now() - node.heard_at : 0;
    return node.now_ns + (node.link.state === "live" ? since_ms * 1e6 * (node.status?.time_scale || 1) : 0);
}

/* The jobs of a list ("waiting", "running", "ended"), of which the stream tells of some only: as many as were fetched before,
 * and `further` ones. Of those that have ended the latest, of the others the first. */
export async function fetch_jobs(state, further) {
    const most = (node.listed[state]?.most || 0) + (further ? most_listed : 0);
    node.listed[state] = {left_out: 0, ...node.listed[state], most};
    const which = (after) => state === "ended" ? `last=${most_listed}` : `after=${after}`;
    let answer = await ask(`/v1/jobs?state=${state}&${which(0)}`);
    const jobs = answer.jobs;
    while (state !== "ended" && answer.left_out && jobs.length < most) {
        answer = await ask(`/v1/jobs?state=${state}&${which(jobs[jobs.length - 1].id)}`);
        jobs.push(...answer.jobs);
    }
    if (node.listed[state]?.most > most) /* more were asked for meanwhile */
        return;
    node.listed[state] = {most, left_out: answer.left_out};
    const of_list = {waiting: is_waiting, running: is_running, ended: has_ended}[state];
    for (const [id, job] of node.jobs)
        if (of_list(job.state))
            node.jobs.delete(id);
    for (const job of jobs)
        node.jobs.set(job.id, job);
    tell("jobs", {...answer, jobs});
}

export async function fetch_series(seconds) {
    node.span_s = seconds;
    const answer = await ask(`/v1/series?span=${seconds}&points=${first_points}`);
    if (node.span_s !== seconds) /* another was asked for meanwhile */
        return;
    for (const gpu of answer.gpus) {
        const times = gpu.sm_activity_permille.map((_, i) => (answer.from_ns + i * answer.step_ns) / 1e6);
        node.series.set(gpu.uuid, {
            t: times, sm: gpu.sm_activity_permille, power: gpu.power_mw, used: gpu.used_bytes, reserved: gpu.reserved_bytes,
            unmanaged: gpu.unmanaged_bytes,
        });
    }
    tell("series");
}

/* ---- The stream ---- */

let under_way = null;
let timer = 0;
let tries = 0;
let fresh = true; /* nothing has been told of jobs on this line yet */

async function read_stream(body, abort) {
    const reader = body.getReader();
    const decoder = new TextDecoder();
    let text = "";
    for (;;) {
        const silence = setTimeout(() => abort.abort(), silence_ms);
        const {done, value} = await reader.read();
        clearTimeout(silence);
        if (done)
            return;
        text += decoder.decode(value, {stream: true});
        const messages = text.split("\n\n");
        text = messages.pop();
        for (const message of messages)
            take_message(message);
    }
}

function take_message(message) {
    let name = "";
    let data = "";
    for (const line of message.split("\n")) {
        if (line.startsWith("event:"))
            name = line.slice(6).trim();
        else if (line.startsWith("data:"))
            data += line.slice(5);
    }
    if (data) {
        take(name, JSON.parse(data));
        if (node.link.state !== "live") {
            tries = 0;
            set_link("live");
        }
    }
}

export async function connect() {
    clearTimeout(timer);
    if (under_way)
        under_way.abort();
    const abort = new AbortController();
    under_way = abort;
    let why = "the daemon is not answering";
    try {
        const response = await fetch("/v1/events", {headers: headers(), cache: "no-store", signal: abort.signal});
        if (response.status === 401) {
            under_way = null;
            set_link("token", {refused: Boolean(token())});
            return;
        }
        if (!response.ok)
            throw new Error((await response.json().catch(() => ({}))).error || `the answer was ${response.status}`);
        fresh = true;
        fetch_series(span_s()).catch(() => {});
        await read_stream(response.body, abort);
    } catch (error) {
        if (under_way !== abort)
            return;
        if (error.name !== "AbortError" && !(error instanceof TypeError))
            why = error.message;
    }
    if (under_way !== abort)
        return;
    under_way = null;
    const wait_ms = waits_ms[Math.min(tries++, waits_ms.length - 1)];
    set_link("down", {why, retry_at: performance.now() + wait_ms});
    timer = setTimeout(connect, wait_ms);
}

/* A page that nobody looks at needs no news: a browser has six connections to one server, and the daemon few streams. */
const unseen_ms = 60000;
let unseen = 0;

function on_visibility() {
    clearTimeout(unseen);
    if (document.hidden) {
        unseen = setTimeout(() => {
            under_way?.abort();
            under_way = null;
            clearTimeout(timer);
            set_link("paused");
        }, unseen_ms);
    } else if (node.link.state === "paused") {
        reconnect();
    }
}

document.addEventListener("visibilitychange", on_visibility);
setInterval(() => node.link.state === "live" && !document.hidden && fetch_series(span_s()).catch(() => {}), refresh_ms);

export function reconnect() {
    tries = 0;
    connect();
}
