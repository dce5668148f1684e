/* Numbers and states in words. Sizes are binary, as everywhere in carma. */

const unknown = "–";

export function size(bytes, digits = 1) {
    if (bytes === null || bytes === undefined)
        return unknown;
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = 0;
    let value = bytes;
    while (Math.abs(value) >= 1024 && unit < units.length - 1) {
        value /= 1024;
        unit++;
    }
    return `${value.toFixed(unit < 2 || value >= 100 ? 0 : digits)} ${units[unit]}`;
}

export function gib(bytes) {
    return bytes === null || bytes === undefined ? unknown : (bytes / 2 ** 30).toFixed(bytes >= 100 * 2 ** 30 ? 0 : 1);
}

export function percent(permille) {
    return permille === null || permille === undefined ? unknown : `${Math.round(permille / 10)}%`;
}

export function watts(milliwatts) {
    if (milliwatts === null || milliwatts === undefined)
        return unknown;
    return milliwatts >= 1e6 ? `${(milliwatts / 1e6).toFixed(2)} kW` : `${Math.round(milliwatts / 1000)} W`;
}

/* Energy in kWh where that is a figure that one can say, else in Wh. */
export function energy(millijoules) {
    if (millijoules === null || millijoules === undefined)
        return unknown;
    const watt_hours = millijoules / 3.6e6;
    return watt_hours >= 1000 ? `${(watt_hours / 1000).toFixed(1)} kWh` : `${watt_hours.toFixed(watt_hours < 10 ? 1 : 0)} Wh`;
}

/* "3 d 4 h", "4 h 12 min", "12 min", "42 s": two units at most. */
export function span(ns) {
    if (ns === null || ns === undefined)
        return unknown;
    const seconds = Math.max(0, Math.floor(ns / 1e9));
    if (seconds < 60)
        return `${seconds} s`;
    const minutes = Math.floor(seconds / 60);
    if (minutes < 60)
        return minutes < 10 ? `${minutes} min ${seconds % 60} s` : `${minutes} min`;
    const hours = Math.floor(minutes / 60);
    if (hours < 24)
        return `${hours} h ${minutes % 60} min`;
    return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

export function hours(ns) {
    const value = ns / 3.6e12;
    return value >= 100 ? value.toFixed(0) : value.toFixed(value < 10 ? 2 : 1);
}

/* A moment: by the calendar, or, on a virtual node with a clock of its own, by how far from now. */
export function moment(ns, now_ns) {
    if (ns < 1e18)
        return ns > now_ns ? `in ${span(ns - now_ns)}` : `${span(now_ns - ns)} ago`;
    return new Date(ns / 1e6).toLocaleString([], {dateStyle: "medium", timeStyle: "medium"});
}

export function times(permille) {
    return `${(permille / 1000).toFixed(2)}×`;
}

export function count(n, one, many = `${one}s`) {
    return `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
}

const words = {
    HELD: "held", QUEUED: "queued", PLACED: "starting", RUNNING: "running", STOPPING: "stopping", CRASHED: "to be retried",
    SUSPENDED: "suspended", REQUEUING: "stopping, to wait again",
    COMPLETED: "completed", FAILED: "failed", GPU_OOM: "out of GPU memory", CANCELLED: "cancelled", LOST: "lost",
    REFUSED: "refused", TIMEOUT: "time limit", RETURNED: "returned", EXPIRED: "expired",
};

export function state_word(state) {
    return words[state] || String(state).toLowerCase();
}

export function is_waiting(state) {
    return state === "HELD" || state === "QUEUED" || state === "CRASHED";
}

export const running_states = ["PLACED", "RUNNING", "SUSPENDED", "STOPPING", "REQUEUING"];

export function is_running(state) {
    return running_states.includes(state);
}

export function has_ended(state) {
    return !is_waiting(state) && !is_running(state);
}

/* "good", "bad", "idle" or "busy": how a state is to be shown. */
export function state_mood(state) {
    if (state === "RUNNING" || state === "PLACED")
        return "busy";
    if (state === "COMPLETED")
        return "good";
    return ["FAILED", "GPU_OOM", "LOST", "REFUSED", "TIMEOUT", "CRASHED", "RETURNED", "EXPIRED"].includes(state) ? "bad" : "idle";
}

const slowed_by = {
    idle: "it is idle", set_clocks: "clocks set by an administrator", power_limit: "its power limit", hardware: "its hardware",
    other_gpu: "another GPU of its group", heat: "heat", hardware_heat: "heat, by its hardware", power_supply: "the power supply",
    display: "a display",
};

/* Why its clocks are not higher, in words. */
export function throttle_words(reasons) {
    return reasons.map((reason) => slowed_by[reason] || reason).join(", ");
}

const ways = {mps: "MPS", exclusive: "alone", any: "any way"};

export function share_word(share) {
    return ways[share] || share || unknown;
}

export function job_label(job) {
    return job.name || `job ${job.id}`;
}
