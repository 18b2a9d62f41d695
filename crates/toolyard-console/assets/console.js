// Small conveniences of all pages. Every page works without this script.
"use strict";

// Times are rendered in UTC; show them in the visitor's time zone.
for (const element of document.querySelectorAll("time[datetime]")) {
  const time = new Date(element.dateTime);
  if (!Number.isNaN(time.getTime())) {
    element.title = element.textContent;
    element.textContent = time.toLocaleString(document.documentElement.lang, { dateStyle: "medium", timeStyle: "medium" });
  }
}

// Buttons that copy the text of another element.
for (const button of document.querySelectorAll("button[data-copy]")) {
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
