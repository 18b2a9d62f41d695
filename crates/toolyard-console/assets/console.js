// Small conveniences of all pages. Every page works without this script.
"use strict";

// Times are rendered in UTC; shows those within `root` in the visitor's time zone.
function showLocalTimes(root) {
  for (const element of root.querySelectorAll("time[datetime]:not([title])")) {
    const time = new Date(element.dateTime);
    if (Number.isNaN(time.getTime())) continue;
    element.title = element.textContent;
    element.textContent = time.toLocaleString(document.documentElement.lang, { dateStyle: "medium", timeStyle: "medium" });
  }
}
showLocalTimes(document);

// Buttons that copy the text of another element. Browsers offer the clipboard on HTTPS and localhost only.
for (const button of navigator.clipboard ? document.querySelectorAll("button[data-copy]") : []) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    const label = button.textContent;
    button.textContent = button.dataset.copied;
    setTimeout(() => { button.textContent = label; }, 1500);
  });
}

// A form is submitted once.
for (const form of document.querySelectorAll("form[method=post]")) {
  form.addEventListener("submit", () => {
    for (const button of form.querySelectorAll("button[type=submit]")) {
      // After the browser has read which button was pressed.
      setTimeout(() => { button.disabled = true; }, 0);
    }
  });
}

// Parts that the server renders again every ten seconds, such as the overview and the number of approvals.
const REFRESH_INTERVAL_MS = 10000;
for (const part of document.querySelectorAll("[data-refresh]")) {
  let shownHtml = "";
  setInterval(async () => {
    if (document.hidden || part.contains(document.activeElement)) return;
    const response = await fetch(part.dataset.refresh).catch(() => null);
    // The session has ended: the page to sign in again is better than old numbers.
    if (response?.redirected) return location.reload();
    // Numbers that are not current are shown as such.
    part.classList.toggle("stale", !response?.ok);
    if (!response?.ok) return;
    const html = await response.text();
    // What the visitor does meanwhile comes first, and what is the same stays, with the selected text.
    if (part.contains(document.activeElement) || html === shownHtml) return;
    shownHtml = html;
    const unfolded = [...part.querySelectorAll("details[id][open]")].map((details) => details.id);
    part.innerHTML = html;
    for (const id of unfolded) document.getElementById(id)?.setAttribute("open", "");
    showLocalTimes(part);
  }, REFRESH_INTERVAL_MS);
}
