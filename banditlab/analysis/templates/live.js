"use strict";
(() => {
  const host = document.getElementById("live"), gone = document.getElementById("gone");
  let last = "", seen = 0, missed = 0;
  const look = async () => {
    try {
      const answer = await fetch("part", { cache: "no-store" });
      if (!answer.ok) throw new Error(answer.status);
      const text = await answer.text();
      if (text !== last) host.innerHTML = last = text;
      missed = 0;
      document.documentElement.dataset.seen = String(++seen);
      if (host.querySelector("[data-ended]")) return;
    } catch {
      missed += 1;
    }
    gone.classList.toggle("hide", missed < 2);
    if (missed < 30) setTimeout(look, 2000);
  };
  setTimeout(look, 1000);
})();
