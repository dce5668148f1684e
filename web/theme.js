/* Before anything is painted: the colours that were chosen here before. A script of its own, since the page allows no inline one. */
"use strict";
try {
    const chosen = localStorage.getItem("carma-theme");
    if (chosen === "light" || chosen === "dark")
        document.documentElement.dataset.theme = chosen;
} catch {
    /* Where nothing may be kept, the system's choice holds. */
}
