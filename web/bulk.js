/* What is done with several jobs at once: a line above the lists while some are ticked, with the verbs. The daemon says what it
 * did not do, and why. */
import {confirm_dialog, h, set_text} from "/dom.js";
import {count, has_ended} from "/format.js";
import {ask, node, on} from "/live.js";
import {announce} from "/say.js";

const most_ids = 1000; /* of one request */
const verbs = [["cancel", "Cancel", "Their processes are ended; unsaved data is lost."],
    ["hold", "Hold", "They stay in the queue and are not started until they are released."],
    ["release", "Release", "They are started as soon as they have their turn and there is room."],
    ["checkpoint", "Checkpoint", "They are told to write a checkpoint, and go on."]];

export class Bulk {
    /* `changed` is called when other jobs are ticked. */
    constructor(changed) {
        this.ids = new Set();
        this.changed = changed;
        this.text = h("span");
        this.result = h("p", {class: "result", role: "status", hidden: true});
        this.bar = h("div", {class: "bulk", role: "group", "aria-label": "Ticked jobs"}, this.text,
            verbs.map((verb) => h("button", {type: "button", "data-verb": verb[0], class: verb[0] === "cancel" ? "danger" : null,
                onclick: () => this.act(verb)}, verb[1])),
            h("button", {type: "button", onclick: () => this.clear()}, "Untick"));
        this.root = h("div", null, this.bar, this.result);
        this.off = on("jobs", () => this.forget_ended());
        this.show();
    }

    has(id) {
        return this.ids.has(id);
    }

    tick(jobs, ticked) {
        for (const job of jobs)
            this.ids[ticked ? "add" : "delete"](job.id);
        this.show();
        this.changed();
    }

    clear() {
        this.ids.clear();
        this.show();
        this.changed();
    }

    forget_ended() {
        for (const id of this.ids)
            if (!node.jobs.has(id) || has_ended(node.jobs.get(id).state))
                this.ids.delete(id);
        this.show();
    }

    show() {
        this.bar.hidden = !this.ids.size;
        set_text(this.text, `${count(this.ids.size, "job")} ticked`);
    }

    async act([verb, title, text]) {
        const ids = [...this.ids];
        if (!await confirm_dialog(`${title} ${count(ids.length, "job")}?`, text, title))
            return;
        const done = [];
        const refused = [];
        try {
            for (let from = 0; from < ids.length; from += most_ids) {
                const answer = await ask(`/v1/jobs/${verb}?ids=${ids.slice(from, from + most_ids).join(",")}`, null);
                done.push(...answer.jobs);
                refused.push(...answer.refused);
            }
            this.clear();
        } catch (error) {
            refused.push({error: error.message});
        }
        const why = refused.length ? ` Not done of ${refused.length}: ${refused[0].error}` : "";
        set_text(this.result, `${title}: ${count(done.length, "job")}.${why}`);
        this.result.classList.toggle("warning", refused.length > 0);
        this.result.hidden = false;
        announce(this.result.textContent);
    }

    close() {
        this.off();
    }
}
