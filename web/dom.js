/* Making and changing elements. Every text goes in as text: nothing that a job or a user wrote is ever read as HTML. */

/* h("a", {class: "x", href: "#/", onclick: f}, "text", child, null): null and false are left out. */
export function h(tag, attributes, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
        if (value === null || value === undefined || value === false)
            continue;
        if (name.startsWith("on"))
            element.addEventListener(name.slice(2), value);
        else
            element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
    return element;
}

const svg_space = "http://www.w3.org/2000/svg";

export function s(tag, attributes, ...children) {
    const element = document.createElementNS(svg_space, tag);
    for (const [name, value] of Object.entries(attributes || {}))
        element.setAttribute(name, value);
    element.append(...children);
    return element;
}

/* Only differences are written: a page that gets the same data each second stays still. */
export function set_text(node, text) {
    if (node.textContent !== text)
        node.textContent = text;
}

export function set_attribute(node, name, value) {
    if (value === null || value === undefined)
        node.removeAttribute(name);
    else if (node.getAttribute(name) !== String(value))
        node.setAttribute(name, value);
}

export function set_style(node, name, value) {
    if (node.style.getPropertyValue(name) !== value)
        node.style.setProperty(name, value);
}

/* Shows `items` as children of `parent`, in their order: make(item) gives {root, update(item)} for one that is new. Elements
 * stay with their key, so that the focus stays where it is. */
export function keyed(parent, items, key_of, make) {
    const shown = parent.carma_shown || new Map();
    const next = new Map();
    let at = parent.firstChild;
    for (const item of items) {
        const key = key_of(item);
        const entry = shown.get(key) || make(item);
        shown.delete(key);
        next.set(key, entry);
        entry.update(item);
        if (entry.root === at)
            at = at.nextSibling;
        else
            parent.insertBefore(entry.root, at);
    }
    for (const entry of shown.values())
        entry.root.remove();
    parent.carma_shown = next;
}

/* Asks before something is done: resolves to whether it shall be. */
export function confirm_dialog(title, text, yes) {
    return new Promise((resolve) => {
        const dialog = h("dialog", {class: "ask", "aria-labelledby": "ask-title"},
            h("h2", {id: "ask-title"}, title), h("p", null, text),
            h("form", {method: "dialog", class: "buttons"},
                h("button", {value: "no"}, "Leave it"), h("button", {value: "yes", class: "strong"}, yes)));
        dialog.addEventListener("close", () => {
            dialog.remove();
            resolve(dialog.returnValue === "yes");
        });
        document.body.append(dialog);
        dialog.showModal();
    });
}
