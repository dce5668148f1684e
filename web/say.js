/* Says something important also to people that cannot see it. */
export function announce(text) {
    document.getElementById("told").textContent = text;
}
