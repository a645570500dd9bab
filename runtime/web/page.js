"use strict";
// Fetches the page anew and puts its list in place of the old one.
const every = 2000; // ms

async function refresh() {
  const gone = document.getElementById("gone");
  try {
    const answer = await fetch("/", { signal: AbortSignal.timeout(every * 2) });
    if (!answer.ok) throw new Error(answer.statusText);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    document.getElementById("cameras").replaceWith(page.getElementById("cameras"));
    gone.hidden = true;
  } catch {
    gone.hidden = false;
  }
}

async function loop() {
  if (!document.hidden) await refresh();
  setTimeout(loop, every);
}

document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
setTimeout(loop, every);
