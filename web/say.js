/* Says something important to who cannot see it, too. */
export function announce(text) {
    document.getElementById("told").textContent = text;
}
