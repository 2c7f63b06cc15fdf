// The report's own script: the static page stays as it is, these parts are drawn from the data beside it.
const DATA = JSON.parse(document.getElementById("data").textContent);
const KIND = { theory: "theory", practice: "practice", reference: "reference", baseline: "reference", adapter: "other libraries" };

function rounds(v) { return plain(v, 0); }

function curves(host, data, title) {
  const state = { panel: 0, x: "rounds", xlog: true, ylog: true, off: new Set() };
  const top = make("div", { class: "controls" });
  const what = choice("Show", data.panels.map((p, i) => [i, p.title]), (v) => { state.panel = Number(v); show(); });
  const along = choice("against", [["rounds", "rounds"], ["seconds", `seconds in the ${data.noun}`]], (v) => { state.x = v; show(); });
  const xlog = tick("logarithmic x axis", true, (v) => { state.xlog = v; show(); });
  const ylog = tick("logarithmic y axis", true, (v) => { state.ylog = v; show(); });
  if (data.panels.length > 1) top.append(what.node);
  top.append(along.node, xlog.node, ylog.node);
  const legend = make("ul", { class: "legend", "aria-label": "Curves: press to hide or show" });
  host.append(top);
  const paint = chart(host, title);
  host.append(legend);

  function show() {
    const panel = data.panels[state.panel], timed = state.x === "seconds";
    const series = panel.curves.map((c) => ({
      name: c.name, look: data.looks[c.label], y: c.y, low: c.low, high: c.high, off: state.off.has(c.label), label: c.label,
      x: timed ? c.x.map((_, i) => (c.s.length === c.x.length ? c.s[i] : null)) : c.x, bound: timed ? undefined : c.bound,
    }));
    const last = Math.max(...panel.curves.map((c) => c.x[c.x.length - 1]));
    paint({
      series, xkind: state.xlog ? "log" : "linear", ykind: !state.ylog ? "linear" : panel.share ? "log" : "symlog",
      knee: 10 ** Math.max(0, Math.floor(Math.log10(last) / 2)), xfrom: timed ? 0 : 10, nearest: timed,
      xlabel: timed ? `seconds in the ${data.noun}` : "rounds", ylabel: panel.share ? "mistakes so far, % of rounds" : "mistakes minus nats",
      xtext: (v, full) => (timed ? seconds(v) : rounds(v) + (full ? " rounds" : "")),
      ytext: (v) => (panel.share ? sized(v) + " %" : sized(v)),
    });
    legend.replaceChildren();
    const order = [...panel.curves].sort((a, b) => a.y[a.y.length - 1] - b.y[b.y.length - 1]);
    for (const c of order) {
      const end = c.y[c.y.length - 1];
      const button = make("button", { type: "button", "aria-pressed": String(!state.off.has(c.label)), "data-player": c.label, onclick: () => {
        if (state.off.has(c.label)) state.off.delete(c.label); else state.off.add(c.label);
        show();
        const again = [...legend.querySelectorAll("button")].find((b) => b.dataset.player === c.label);
        if (again) again.focus();
      } });
      button.append(swatch(data.looks[c.label]), `${c.name}: ${end === null ? "\u2013" : sized(end)}${panel.share ? " %" : ""}`);
      legend.append(make("li", {}, button));
    }
    const every = make("button", { type: "button", onclick: () => { if (state.off.size) state.off.clear(); else panel.curves.forEach((c) => state.off.add(c.label)); show(); } }, state.off.size ? "show all" : "hide all");
    legend.append(make("li", {}, every));
  }
  show();
}

// Dark where mistakes are few, as in the heat maps; one scale over all settings of the section.
function shade(share) {
  const from = [18, 74, 110], to = [222, 236, 235], c = from.map((v, i) => Math.round(v + (to[i] - v) * share));
  const linear = c.map((v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
  const light = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  return [`rgb(${c.join(",")})`, light < 0.19 ? "#ffffff" : "#101418"];
}

function explorer(host, data, title) {
  const learners = [...new Set(data.settings.map((s) => s.p))], values = data.settings.map((s) => s.v).filter((v) => v !== null);
  const least = Math.min(...values), most = Math.max(...values);
  let chosen = null;
  const pick = make("div", { class: "controls", role: "group", "aria-label": data.noun });
  const cells = make("div", { class: "cells" }), sliders = make("div", { class: "controls" });
  const facts = make("dl", { class: "facts" }), said = make("div", { class: "sr", role: "status" }), head = make("p", {});
  learners.forEach((p) => pick.append(make("button", { type: "button", "data-player": p, onclick: () => select(best(p)) }, p)));
  const left = make("div", {}, cells, sliders, head, facts, said), right = make("div", {});
  host.append(pick, make("div", { class: "halves" }, left, right));
  const paint = chart(right, title);
  const best = (p) => data.settings.find((s) => s.p === p && s.chosen) || data.settings.find((s) => s.p === p);
  const axis = (list, key) => [...new Set(list.map((s) => s[key]))].sort((a, b) => Number(a.replace(/,/g, "")) - Number(b.replace(/,/g, "")) || (a < b ? -1 : 1));

  function select(s, focus) {
    const fresh = !chosen || chosen.p !== s.p;
    chosen = s;
    const mine = data.settings.filter((each) => each.p === s.p);
    if (fresh) grid(mine);
    pick.querySelectorAll("button").forEach((b) => b.setAttribute("aria-pressed", String(b.dataset.player === s.p)));
    cells.querySelectorAll("button").forEach((b) => {
      const on = data.settings[b.dataset.at] === s;
      b.setAttribute("aria-pressed", String(on));
      if (on && focus) b.focus();
    });
    slide(mine.filter((each) => each.other === s.other));
    tell(s);
  }

  function grid(mine) {
    cells.replaceChildren();
    for (const other of [...new Set(mine.map((s) => s.other))]) {
      const here = mine.filter((s) => s.other === other), gammas = axis(here, "gamma"), balls = axis(here, "B");
      const table = make("table", {});
      const caption = [other, gammas.length > 1 || gammas[0] ? "rows: γ" : "", balls.length > 1 || balls[0] ? "columns: B" : ""].filter(Boolean).join(", ") || "its only setting";
      table.append(make("caption", {}, caption));
      const names = make("tr", {}, make("td", {}));
      balls.forEach((b) => names.append(make("th", { scope: "col" }, b || "no B")));
      table.append(make("thead", {}, names));
      const body = make("tbody", {});
      for (const g of gammas) {
        const row = make("tr", {}, make("th", { scope: "row" }, g || "no γ"));
        for (const b of balls) {
          const cell = make("td", {});
          here.filter((s) => s.gamma === g && s.B === b).forEach((s) => cell.append(button(s, g, b)));
          row.append(cell);
        }
        body.append(row);
      }
      table.append(body);
      cells.append(table);
    }
  }

  function button(s, g, b) {
    const [back, ink] = shade(s.v === null || most === least ? 1 : (s.v - least) / (most - least));
    const label = [s.p, g && `γ = ${g}`, b && `B = ${b}`, s.other].filter(Boolean).join(", ") + `: ${s.mistakes} mistakes`;
    const node = make("button", { type: "button", "data-at": data.settings.indexOf(s), "aria-label": label, title: s.call, onclick: () => select(s) }, s.mistakes.replace(" %", ""));
    node.style.setProperty("--cell", back);
    node.style.setProperty("--cellink", ink);
    return node;
  }

  function slide(here) {
    sliders.replaceChildren();
    for (const [key, sign, fixed] of [["gamma", "γ", "B"], ["B", "B", "gamma"]]) {
      const line = here.filter((s) => s[fixed] === chosen[fixed]), stops = axis(line, key);
      if (stops.length < 2) continue;
      const text = make("output", {}, chosen[key]);
      const input = make("input", { type: "range", min: 0, max: stops.length - 1, step: 1, "aria-valuetext": `${sign} = ${chosen[key]}`, "data-axis": key, oninput: () => {
        select(line.find((s) => s[key] === stops[input.value]));
        const again = sliders.querySelector(`input[data-axis="${key}"]`);
        if (again) again.focus();
      } });
      input.value = stops.indexOf(chosen[key]);
      sliders.append(make("label", {}, sign, input, text));
    }
  }

  function tell(s) {
    head.replaceChildren(make("code", {}, s.call), s.chosen ? " \u2013 its ranked setting" : "");
    const lines = [
      ["mistakes", `${s.mistakes}, over ${s.n} repetition${s.n === 1 ? "" : "s"}`], ["95 % interval", s.interval === "\u2013" ? "none" : s.interval + " %"],
      ["mistakes as drawn", s.counted], ["explored", s.explored], ["bound", s.promise || "no proved bound for this setting"],
      ["best model of its streams", s.model || "not computed"], ["relative mistakes", s.relative || "\u2013"], ["time", s.time + " per round"],
    ];
    facts.replaceChildren(...lines.flatMap(([name, text]) => [make("dt", {}, name), make("dd", { "data-fact": name }, text)]));
    said.textContent = `${s.call}: ${s.mistakes} mistakes, 95 % interval ${s.interval}`;
    const levels = s.model ? [{ y: s.level, text: "best model" }] : [];
    paint({
      series: [{ name: `${s.p} ${s.text}`, look: data.looks[s.p], x: s.x, y: s.y, low: s.low, high: s.high }], levels, xkind: "log", ykind: "linear",
      xfrom: 10, xlabel: "rounds", ylabel: "mistakes so far, % of rounds", xtext: (v, full) => rounds(v) + (full ? " rounds" : ""), ytext: (v) => sized(v) + " %",
    });
  }
  select(best(learners[0]));
}

function ranking(section, data) {
  const table = section.querySelector("table.ranking");
  if (!table) return;
  const body = table.tBodies[0], rows = [...body.rows], head = [...table.tHead.rows[0].cells];
  const column = head.findIndex((th) => th.dataset.key === "behind"), words = head[column] ? head[column].textContent : "";
  head.forEach((th, i) => {
    if (!th.textContent.trim()) return;
    const button = make("button", { type: "button", class: "sort" });
    button.append(...th.childNodes);
    th.append(button);
    button.addEventListener("click", () => {
      const up = th.getAttribute("aria-sort") !== "ascending";
      head.forEach((other) => other.removeAttribute("aria-sort"));
      th.setAttribute("aria-sort", up ? "ascending" : "descending");
      const key = (row) => row.cells[i].dataset.v;
      const sorted = [...rows].sort((a, b) => {
        const x = key(a), y = key(b), empty = (x === "") - (y === "");
        if (empty) return empty;
        const numbers = Number(x) - Number(y);
        return (up ? 1 : -1) * (Number.isNaN(numbers) ? (x < y ? -1 : x > y ? 1 : 0) : numbers);
      });
      body.append(...sorted);
    });
  });
  const bar = make("div", { class: "controls live" }), groups = [...new Set(rows.map((r) => KIND[data.groups[r.dataset.player]] || data.groups[r.dataset.player]).filter(Boolean))];
  let text = "", group = "", base = "";
  const filter = make("input", { type: "search", oninput: () => { text = filter.value.toLowerCase(); sift(); } });
  bar.append(make("label", {}, `Filter ${data.noun}s`, filter));
  if (groups.length > 1) bar.append(choice("Group", [["", "all"], ...groups.map((g) => [g, g])], (v) => { group = v; sift(); }).node);
  const all = tick("all columns", false, (v) => table.classList.toggle("all", v));
  all.node.classList.add("phone");
  const choose = `Select ${data.noun === "agent" ? "an" : "a"} ${data.noun} to see every difference from it.`;
  const hint = make("span", { class: "note" }, choose);
  const said = make("span", { class: "sr", role: "status" });
  bar.append(all.node, hint, said);
  section.querySelector(".ranked").before(bar);
  function sift() {
    let shown = 0;
    for (const row of rows) {
      const kind = KIND[data.groups[row.dataset.player]] || data.groups[row.dataset.player];
      const on = row.textContent.toLowerCase().includes(text) && (!group || kind === group);
      row.classList.toggle("hide", !on);
      shown += on;
    }
    said.textContent = `${shown} of ${rows.length} rows shown`;
  }
  const before = rows.map((row) => [...row.cells[column].childNodes].map((n) => n.cloneNode(true)));
  rows.forEach((row) => {
    const cell = row.querySelector("td.name"), name = row.dataset.player;
    if (!name || !data.gaps[name]) return;
    const button = make("button", { type: "button", class: "pair", "aria-pressed": "false" });
    button.append(cell.firstChild);
    cell.prepend(button);
    button.addEventListener("click", () => against(base === name ? "" : name));
  });
  function against(name) {
    base = name;
    const label = head[column].querySelector("button") || head[column];
    label.textContent = base ? `behind ${base}` : words;
    hint.textContent = base ? `Differences from ${base} in percentage points; the intervals cover all pairs at once. Select it again to return to differences from the first.` : choose;
    rows.forEach((row, k) => {
      const cell = row.cells[column], gap = base && data.gaps[row.dataset.player] && data.gaps[row.dataset.player][base];
      row.classList.toggle("picked", base !== "" && row.dataset.player === base);
      const button = row.querySelector("button.pair");
      if (button) button.setAttribute("aria-pressed", String(base !== "" && row.dataset.player === base));
      if (!base) cell.replaceChildren(...before[k].map((n) => n.cloneNode(true)));
      else if (gap) cell.replaceChildren(gap[0] + " ", make("span", { class: "kind" }, `(${gap[1]})`));
      else cell.replaceChildren("\u2013");
    });
    said.textContent = base ? `Differences from ${base}` : "Differences from the first";
  }
}

// Two agents over data sets: a dot is a data set, and pressing it opens the data set's section.
function scatter(host, data) {
  const state = { x: 0, y: 1 }, size = 460, left = 58, top = 10, room = size - left - 16;
  const svg = draw("svg", { viewBox: `0 0 ${size} ${size}`, role: "group", "aria-label": "Mistake rates of two agents, a dot per data set" });
  svg.style.maxWidth = "34rem";
  const said = make("p", { class: "note", role: "status" });
  const pick = (axis, label) => {
    const made = choice(label, data.agents.map((name, i) => [i, name]), (v) => { state[axis] = Number(v); paint(); });
    made.select.value = state[axis];
    return made.node;
  };
  host.append(make("div", { class: "controls" }, pick("x", "x axis"), pick("y", "y axis")), make("div", { class: "chart" }, svg), said);

  function paint() {
    const xs = data.shares[state.x], ys = data.shares[state.y], both = scale("linear", 0, 1.04 * Math.max(1e-3, ...xs, ...ys));
    const px = (v) => left + room * both.at(v), py = (v) => top + room * (1 - both.at(v));
    svg.replaceChildren();
    for (const v of both.ticks(6)) {
      svg.append(draw("line", { class: "grid", x1: px(v), x2: px(v), y1: top, y2: top + room }), draw("line", { class: "grid", x1: left, x2: left + room, y1: py(v), y2: py(v) }));
      svg.append(draw("text", { x: px(v), y: top + room + 17, "text-anchor": "middle" }, sized(v)), draw("text", { x: left - 6, y: py(v) + 4, "text-anchor": "end" }, sized(v)));
    }
    svg.append(draw("line", { class: "axis", x1: left, y1: top + room, x2: left + room, y2: top }));
    svg.append(draw("text", { x: left + room / 2, y: size - 6, "text-anchor": "middle" }, `${data.agents[state.x]}, mistakes in %`));
    svg.append(draw("text", { x: -(top + room / 2), y: 13, transform: "rotate(-90)", "text-anchor": "middle" }, `${data.agents[state.y]}, mistakes in %`));
    data.titles.forEach((title, i) => {
      const text = `${title}: ${sized(xs[i])} % and ${sized(ys[i])} %`;
      const link = draw("a", { href: "#" + data.anchors[i], "aria-label": text }), dot = draw("circle", { cx: px(xs[i]), cy: py(ys[i]), r: 4.5, fill: "#1f77b4", "fill-opacity": 0.65 });
      dot.append(draw("title", {}, text));
      link.append(dot);
      svg.append(link);
    });
    const below = ys.filter((v, i) => v < xs[i]).length;
    said.textContent = `${data.agents[state.y]} makes fewer mistakes on ${below} of ${xs.length} data sets (dots below the line). Press a dot to open its data set.`;
  }
  paint();
}

if (DATA.across) scatter(document.querySelector(".scatter-live"), DATA.across);
DATA.sections.forEach((data, i) => {
  const section = document.querySelector(`section[data-section="${i}"]`), title = section.querySelector("h2").textContent.trim();
  ranking(section, data);
  const parts = [[".curves-live", curves, "Curves, " + title], [".explorer-live", explorer, "Curve of the setting, " + title]];
  for (const [where, build, name] of parts) {
    const host = section.querySelector(where);
    if (!host) continue;
    host.style.minHeight = "420px";
    const watch = new IntersectionObserver((seen) => {  // drawn when the reader comes near, so that the page opens at once
      if (!seen.some((each) => each.isIntersecting)) return;
      watch.disconnect();
      host.style.minHeight = "";
      build(host, data, name);
    }, { rootMargin: "600px" });
    watch.observe(host);
  }
});
furniture();
document.documentElement.dataset.ready = "true";
