/* A dialog in which a waiting job's submission is changed: POST /v1/jobs/edit, of the fields below, with those that were changed.
 * A further field is a row of `fields`. */
import {h} from "/dom.js";
import {ask} from "/live.js";

const gib = 2 ** 30;
const minute_ns = 60e9;

/* Its name in the API, its label, what kind of value, and what one unit of a number is there. */
const fields = [
    {name: "name", label: "Name", type: "text"},
    {name: "priority", label: "Priority, -10 to 10", type: "number", unit: 1},
    {name: "gpu_memory_bytes", label: "Memory of each GPU, GiB", type: "number", unit: gib},
    {name: "time_limit_ns", label: "Time limit, minutes", type: "number", unit: minute_ns},
];

function shown(job, field) {
    const value = job[field.name];
    if (value === null || value === undefined)
        return "";
    return field.unit ? String(Math.round(value / field.unit * 1000) / 1000) : value;
}

/* What the API gets: null takes a value back. */
function said(text, field) {
    if (text === "")
        return null;
    return field.unit ? Math.round(Number(text) * field.unit) : text;
}

/* Resolves to a sentence on what was done, or to null: nothing. Throws what the daemon says against it. */
export function edit_dialog(job) {
    const inputs = fields.map((field) => h("input", {id: `edit-${field.name}`, type: field.type, step: field.unit ? "any" : null,
        value: shown(job, field)}));
    const dialog = h("dialog", {class: "ask", "aria-labelledby": "edit-title"}, h("h2", {id: "edit-title"}, `Edit job ${job.id}`),
        h("form", {method: "dialog"}, h("div", {class: "form"}, fields.map((field, i) =>
            [h("label", {for: `edit-${field.name}`}, field.label), inputs[i]]).flat()),
        h("p", {class: "aside"}, "An empty field takes the value back. carma edit changes more."),
        h("div", {class: "buttons"}, h("button", {value: "no", formnovalidate: true}, "Leave it"),
            h("button", {value: "yes", class: "strong"}, "Change it"))));
    document.body.append(dialog);
    dialog.showModal();
    return new Promise((resolve, reject) => {
        dialog.addEventListener("close", () => {
            dialog.remove();
            const changed = fields.map((field, i) => [field, inputs[i].value.trim()]).filter(([field, text]) => text !== shown(job, field));
            if (dialog.returnValue !== "yes" || !changed.length) {
                resolve(null);
                return;
            }
            ask(`/v1/jobs/edit?ids=${job.id}`, Object.fromEntries(changed.map(([field, text]) => [field.name, said(text, field)])))
                .then((answer) => answer.refused.length ? reject(new Error(answer.refused[0].error))
                    : resolve(`Changed: ${changed.map(([field]) => field.label.split(",")[0].toLowerCase()).join(", ")}.`), reject);
        });
    });
}
