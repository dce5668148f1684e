/* The form that submits a job: what `carma submit` does in a terminal, by POST /local/submit (docs/formats/dashboard.md). A
 * further field is a row of `fields`; what no field says can be written as options. */
import {h} from "/dom.js";
import {ask} from "/live.js";
import {announce} from "/say.js";

/* Its option, its label, an example, and its kind. */
const fields = [
    {option: "--job-name", label: "Name", example: "as the program"},
    {option: "--gpus", label: "GPUs", example: "1"},
    {option: "--gpu-memory", label: "Memory of each GPU", example: "estimated; 12G"},
    {option: "--time", label: "Time limit", example: "none; 2:00:00"},
    {option: "--array", label: "Array", example: "0-9%4"},
    {option: "--dependency", label: "After", example: "afterok:12"},
];

/* Words as a shell has them: at spaces, but for those in quotes. */
export function words_of(text) {
    return [...text.matchAll(/(?:"[^"]*"|'[^']*'|[^\s"'])+/g)].map(([word]) => word.replace(/"([^"]*)"|'([^']*)'/g, (_, a, b) => a ?? b));
}

class SubmitView {
    constructor(directory) {
        this.inputs = fields.map((field) => h("input", {id: `submit${field.option}`, type: "text", placeholder: field.example}));
        this.directory = h("input", {id: "submit-directory", type: "text", required: true, value: directory});
        this.options = h("input", {id: "submit-options", type: "text", placeholder: "--exclusive --share mps"});
        this.text = h("textarea", {id: "submit-text", rows: 10, required: true, spellcheck: "false",
            placeholder: "python3 train.py --lr 0.1\n\nor a script, which begins with #!; it can be dropped here"});
        this.text.addEventListener("dragover", (event) => event.preventDefault());
        this.text.addEventListener("drop", (event) => this.drop(event));
        this.file = h("input", {id: "submit-file", type: "file", onchange: () => this.read(this.file.files[0])});
        this.button = h("button", {class: "strong"}, "Submit");
        this.result = h("div", {class: "outcome", role: "status"});
        this.root = h("div", {class: "page"}, h("h1", null, "Submit a job"),
            h("form", {onsubmit: (event) => {
                event.preventDefault();
                this.submit();
            }}, h("div", {class: "form"},
                h("label", {for: "submit-text"}, "Command or script"), this.text,
                h("label", {for: "submit-file"}, "Script from a file"), this.file,
                h("label", {for: "submit-directory"}, "Directory"), this.directory,
                fields.map((field, i) => [h("label", {for: `submit${field.option}`}, field.label), this.inputs[i]]).flat(),
                h("label", {for: "submit-options"}, "Other options"), this.options),
            h("p", {class: "aside"}, "Its environment is that in which carma dashboard was started. carma help submit has all options."),
            h("div", {class: "buttons"}, this.button)), this.result);
    }

    async read(file) {
        if (!file)
            return;
        this.text.value = await file.text();
        if (!this.inputs[0].value)
            this.inputs[0].value = file.name;
    }

    drop(event) {
        if (event.dataTransfer.files.length) {
            event.preventDefault();
            this.read(event.dataTransfer.files[0]);
        }
    }

    async submit() {
        const text = this.text.value;
        const is_script = text.startsWith("#!");
        const options = fields.flatMap((field, i) => this.inputs[i].value.trim() ? [field.option, this.inputs[i].value.trim()] : []);
        const what = is_script ? ["-"] : ["--", "sh", "-c", text.trim()];
        this.button.disabled = true;
        this.result.replaceChildren(h("p", null, "Submitting …"));
        try {
            const done = await ask("/local/submit", {directory: this.directory.value.trim(), script: is_script ? text : null,
                arguments: ["--json", ...options, ...words_of(this.options.value), ...what]});
            this.show(done);
        } catch (error) {
            this.say([h("p", {class: "warning"}, error.status === 404
                ? "Jobs are submitted here with `carma dashboard`; by TCP, use carma submit." : error.message)]);
        }
        this.button.disabled = false;
    }

    show(done) {
        const lines = done.error.split("\n").filter(Boolean).map((line) => h("p", {class: "warning"}, line));
        if (done.status !== 0) {
            this.say(lines);
            return;
        }
        const {jobs} = JSON.parse(done.output);
        this.say([...jobs.map((job) => h("p", {class: "result"}, h("a", {href: `#/job/${job.id}`}, `Job ${job.id}`),
            `${job.array ? `, an array of ${job.array.jobs}` : ""} is submitted. ${job.estimate?.text || ""}`)), ...lines]);
    }

    say(parts) {
        this.result.replaceChildren(...parts);
        announce(this.result.textContent);
    }
}

export async function submit_view() {
    const who = await ask("/local/whoami").catch(() => ({}));
    const view = new SubmitView(who.directory || "");
    return {root: view.root, title: "Submit · carma", focus: () => view.text.focus(), close: () => {}};
}
