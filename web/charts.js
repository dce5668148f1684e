/* Pictures of figures over time. Small ones are drawn here, and a page may hold a hundred. Large ones are by dygraphs,
 * which is fetched when the first is wanted. Each has a text that describes it. */
import {h, set_attribute, set_text} from "/dom.js";

export function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/* ---- Small ---- */

const to_draw = new Set();
let scheduled = false;

function draw_soon(spark) {
    to_draw.add(spark);
    if (scheduled)
        return;
    scheduled = true;
    requestAnimationFrame(() => {
        scheduled = false;
        for (const each of to_draw)
            each.draw();
        to_draw.clear();
    });
}

/* A line over an area, from 0 to `top` (or the greatest value), without axes: its figure stands beside it. */
export class Spark {
    constructor(colour_name, label) {
        this.colour_name = colour_name;
        this.label = label;
        this.root = h("canvas", {class: "spark", role: "img", "aria-label": `${label} over time: not known yet`});
        this.size = null;
        new ResizeObserver(([entry]) => {
            this.size = entry.contentRect;
            draw_soon(this);
        }).observe(this.root);
    }

    /* t in ms, values with null where unknown; text: the newest value's name. */
    set(t, values, top, text) {
        Object.assign(this, {t, values, top});
        set_attribute(this.root, "aria-label", `${this.label} over time, now ${text}`);
        draw_soon(this);
    }

    draw() {
        if (!this.size || !this.size.width || !this.t)
            return;
        const ratio = devicePixelRatio || 1;
        const {width, height} = this.size;
        const canvas = this.root;
        if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
            canvas.width = Math.round(width * ratio);
            canvas.height = Math.round(height * ratio);
        }
        const draw = canvas.getContext("2d");
        draw.setTransform(ratio, 0, 0, ratio, 0, 0);
        draw.clearRect(0, 0, width, height);
        const first = this.t[0];
        const range = Math.max(1, this.t[this.t.length - 1] - first);
        const top = this.top || Math.max(1, ...this.values.filter((value) => value !== null)) * 1.05;
        const x = (i) => (this.t[i] - first) / range * width;
        const y = (i) => height - 1 - Math.min(1, this.values[i] / top) * (height - 2);
        draw.strokeStyle = colour(this.colour_name);
        draw.fillStyle = colour(this.colour_name);
        draw.lineWidth = 1.25;
        draw.lineJoin = "round";
        for (let i = 0; i < this.values.length; i++) {
            if (this.values[i] === null)
                continue;
            const from = i;
            const line = new Path2D();
            line.moveTo(x(i), y(i));
            while (i + 1 < this.values.length && this.values[i + 1] !== null) {
                i++;
                line.lineTo(x(i), y(i));
            }
            const area = new Path2D(line);
            area.lineTo(x(i), height);
            area.lineTo(x(from), height);
            draw.globalAlpha = 0.14;
            draw.fill(area);
            draw.globalAlpha = 1;
            draw.stroke(line);
        }
    }
}

/* ---- Large ---- */

let library = null;

function load_dygraphs() {
    library = library || new Promise((resolve, reject) => {
        const script = h("script", {src: "/dygraph.min.js"});
        script.onload = () => {
            const {Dygraph} = window;
            /* Its legend sets styles in a way that the page's policy forbids; ours stands above the chart. */
            Dygraph.PLUGINS = [Dygraph.Plugins.Grid, Dygraph.Plugins.Axes];
            resolve(Dygraph);
        };
        script.onerror = () => reject(new Error("the charts could not be fetched"));
        document.head.append(script);
    });
    return library;
}

/* How the time of a chart is written: by its span. */
function time_label(ms, span_ms) {
    const options = span_ms > 36 * 3600e3 ? {month: "short", day: "numeric"}
        : span_ms > 1800e3 ? {hour: "2-digit", minute: "2-digit"} : {hour: "2-digit", minute: "2-digit", second: "2-digit"};
    return new Date(ms).toLocaleString("en-GB", options);
}

/* A chart with its legend, in which the values under the pointer are shown.
 *   series   [{name, colour, fill, dashed}]; one without values is not in the legend
 *   value    a value as text, for the legend; tick: the same for the axis
 *   time     a position as text; left out: it is a moment in ms
 *   resting  (rows) => the row shown while nothing is pointed at; left out: the last
 *   summary  (rows) => the text for people that cannot see it */
export class Chart {
    constructor({title, series, value, tick, time, summary, height, top, resting}) {
        Object.assign(this, {series, value, tick: tick || value, time, summary, title, top});
        this.resting = resting || ((rows) => rows[rows.length - 1]);
        this.readouts = series.map(() => h("b"));
        this.moment = h("span", {class: "moment"});
        this.box = h("div", {class: "plot", role: "img", "aria-label": `Chart: ${title}. nothing known yet`});
        this.box.style.height = `${height || 200}px`;
        this.root = h("figure", {class: "chart"},
            h("figcaption", null, h("strong", null, title),
                h("ul", {class: "legend"}, series.map((one, i) => h("li", {
                    class: `key ${one.fill ? "filled" : ""} ${one.dashed ? "dashed" : ""} c-${one.colour}`}, one.name, " ",
                this.readouts[i]))), this.moment), this.box);
        this.rows = [];
        this.repaint = () => this.restyle();
        addEventListener("carma-theme", this.repaint);
    }

    show_row(row) {
        this.readouts.forEach((readout, i) => set_text(readout, row && row[i + 1] !== null && row[i + 1] !== undefined
            ? this.value(row[i + 1]) : "–"));
        set_text(this.moment, row ? this.time ? this.time(row[0]) : new Date(row[0]).toLocaleTimeString("en-GB") : "");
    }

    colours() {
        return {
            colors: this.series.map((one) => colour(one.colour)), gridLineColor: colour("line"), axisLineColor: colour("line"),
        };
    }

    restyle() {
        this.graph?.updateOptions(this.colours());
    }

    /* rows: [[x, value or null, ...], ...] */
    async set(rows) {
        this.rows = rows;
        this.readouts.forEach((readout, i) => {
            readout.parentElement.hidden = !rows.some((row) => row[i + 1] !== null);
        });
        this.box.setAttribute("aria-label", `Chart: ${this.title}. ${rows.length ? this.summary(rows) : "nothing known yet"}`);
        if (!this.pointed)
            this.show_row(this.resting(rows));
        if (!rows.length)
            return;
        const Dygraph = await load_dygraphs();
        if (this.closed || !this.box.isConnected)
            return;
        if (this.graph)
            this.graph.updateOptions({file: this.rows});
        else
            this.graph = new Dygraph(this.box, this.rows, this.options());
    }

    options() {
        const each = {};
        for (const one of this.series)
            each[one.name] = {
                fillGraph: Boolean(one.fill), strokePattern: one.dashed ? [5, 4] : null,
                strokeWidth: one.dashed ? 1.5 : 1.75,
            };
        const span = () => this.rows[this.rows.length - 1][0] - this.rows[0][0];
        return {
            ...this.colours(), labels: ["x", ...this.series.map((one) => one.name)], series: each, fillAlpha: 0.16,
            legend: "never", interactionModel: {}, includeZero: true, valueRange: [0, this.top || null], axisLabelFontSize: 12,
            highlightCircleSize: 3, connectSeparatedPoints: false, rightGap: 8, xRangePad: 0,
            axes: {
                x: {
                    drawGrid: false, axisLabelWidth: 64,
                    axisLabelFormatter: (x) => this.time ? this.time(+x) : time_label(+x, span()),
                },
                y: {axisLabelWidth: 52, axisLabelFormatter: (y) => this.tick(y), pixelsPerLabel: 34},
            },
            highlightCallback: (event, x, points, row) => {
                this.pointed = true;
                this.show_row(this.rows[row]);
            },
            unhighlightCallback: () => {
                this.pointed = false;
                this.show_row(this.resting(this.rows));
            },
        };
    }

    close() {
        this.closed = true;
        removeEventListener("carma-theme", this.repaint);
        this.graph?.destroy();
    }
}
