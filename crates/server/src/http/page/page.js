"use strict";
// Fetches the page again every two seconds and replaces its changing parts, so that open tables, the focus and the
// place of the page stay. It stops while the page is hidden or paused.
const EVERY_MS = 2000;
const contact = document.getElementById("contact");
const pause = document.getElementById("pause");
let paused = false;
let last = new Date();

function replace(text) {
  const next = new DOMParser().parseFromString(text, "text/html");
  const parts = next.querySelectorAll("[data-live]");
  if (parts.length === 0) throw new Error("starting");
  for (const part of parts) {
    const old = document.getElementById(part.id);
    if (old && old.innerHTML !== part.innerHTML) old.replaceChildren(...part.childNodes);
  }
}

function say(text) {
  // A reader is told of changes only.
  if (contact.textContent !== text) contact.textContent = text;
}

async function update() {
  if (paused || document.hidden) return;
  try {
    const answer = await fetch("/", { cache: "no-store", signal: AbortSignal.timeout(5000) });
    if (!answer.ok) throw new Error(answer.status);
    const text = await answer.text();
    if (paused) return;
    replace(text);
    last = new Date();
    say("");
  } catch {
    say("No answer since " + last.toLocaleTimeString());
  }
}

async function run() {
  await update();
  setTimeout(run, EVERY_MS);
}

pause.hidden = false;
pause.addEventListener("click", () => {
  paused = !paused;
  pause.textContent = paused ? "Continue" : "Pause";
  say(paused ? "Paused at " + last.toLocaleTimeString() : "");
});
document.addEventListener("visibilitychange", update);
setTimeout(run, EVERY_MS);
