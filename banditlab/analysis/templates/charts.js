// Lines with bands in SVG, for reports and boards. Users' names reach the page as text nodes only; nothing is loaded.
"use strict";
const SVG = document.getElementById("proto").namespaceURI;
const DASH = ["", "9 3", "2 2.5", "9 3 2 3"];

function make(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children);
  return node;
}

function draw(tag, attributes, text) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

const MINUS = "\u2212";
function plain(value, digits) {
  const text = Math.abs(value).toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return (value < 0 && Number(text.replace(/,/g, "")) !== 0 ? MINUS : "") + text;
}
function sized(value) {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 100) return plain(value, 0);
  if (size >= 1) return plain(value, 1).replace(/\.0$/, "");
  return (value < 0 ? MINUS : "") + String(Number(size.toPrecision(2)));
}
function seconds(value) {
  return value >= 1 ? sized(value) + " s" : value >= 1e-3 ? sized(1e3 * value) + " ms" : sized(1e6 * value) + " µs";
}

// A scale maps numbers to [0, 1]: kind "linear", "log", or "symlog" (linear within ±knee).
function scale(kind, low, high, knee) {
  const f = kind === "log" ? Math.log10 : kind === "symlog" ? (v) => Math.sign(v) * Math.log10(1 + Math.abs(v) / knee) : (v) => v;
  const a = f(low), b = f(high), width = b - a || 1;
  return { kind, low, high, at: (v) => (f(v) - a) / width, ticks: (n) => ticks(kind, low, high, n, knee) };
}

function ticks(kind, low, high, n, knee) {
  const found = [];
  if (kind === "log") {
    for (const steps of [[1, 2, 3, 4, 5, 6, 7, 8, 9], [1, 2, 3, 5, 7], [1, 2, 5], [1, 3], [1]]) {
      found.length = 0;
      for (let e = Math.floor(Math.log10(low)); e <= Math.log10(high); e++) for (const m of steps) found.push(Number((m * 10 ** e).toPrecision(3)));
      const inside = found.filter((v) => v >= low * 0.999 && v <= high * 1.001);
      if (inside.length <= n + 1 || steps.length === 1) return inside;
    }
  }
  if (kind === "symlog") {
    for (let v = knee; v <= Math.max(Math.abs(low), Math.abs(high)); v *= 10) found.push(v, -v);
    return [0, ...found].filter((v) => v >= low && v <= high);
  }
  const rough = (high - low) / n || 1, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough);
  for (let v = Math.ceil(low / step) * step; v <= high + step / 1e6; v += step) found.push(Math.abs(v) < step / 1e6 ? 0 : v);
  return found;
}

function swatch(look) {
  const svg = draw("svg", { viewBox: "0 0 30 12", "aria-hidden": "true", class: "swatch" });
  svg.append(draw("line", { x1: 0, x2: 30, y1: 6, y2: 6, stroke: look[0], "stroke-width": 2.5, "stroke-dasharray": DASH[look[1]] }));
  svg.append(mark(look[2], 15, 6, look[0]));
  return svg;
}

const MARKS = {
  o: (x, y) => `M${x - 3.5} ${y}a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0`, s: (x, y) => `M${x - 3} ${y - 3}h6v6h-6z`,
  D: (x, y) => `M${x} ${y - 4.2}l4.2 4.2l-4.2 4.2l-4.2 -4.2z`, "^": (x, y) => `M${x} ${y - 4}l4 7h-8z`, v: (x, y) => `M${x} ${y + 4}l4 -7h-8z`,
  P: (x, y) => `M${x - 1.5} ${y - 4}h3v2.5h2.5v3h-2.5v2.5h-3v-2.5h-2.5v-3h2.5z`, X: (x, y) => `M${x - 4} ${y - 2.5}l1.5 -1.5l2.5 2.5l2.5 -2.5l1.5 1.5l-2.5 2.5l2.5 2.5l-1.5 1.5l-2.5 -2.5l-2.5 2.5l-1.5 -1.5l2.5 -2.5z`,
  "*": (x, y) => `M${x} ${y - 4.5}l1.2 3.2h3.3l-2.6 2.1l1 3.3l-2.9 -2l-2.9 2l1 -3.3l-2.6 -2.1h3.3z`,
};
function mark(kind, x, y, colour) {
  return draw("path", { d: (MARKS[kind] || MARKS.o)(x, y), fill: colour });
}

// chart(host, title): returns show({series, xkind, ykind, xlabel, ylabel, xtext, ytext, knee}), which draws into host.
// A series: {name, look, x, y, low, high, bound, off}. Arrow keys and the pointer read the values at one x.
function chart(host, title) {
  const box = make("div", { class: "chart", tabindex: "0", role: "group", "aria-label": title + ". Arrow keys read the values." });
  const svg = draw("svg", { "aria-hidden": "true" });
  const readout = make("div", { class: "readout", hidden: true });
  const spoken = make("div", { class: "sr", role: "status" });
  box.append(svg, readout, spoken);
  host.append(box);
  let now = null, cursor = -1, place = null;

  function show(spec) { now = spec; paint(); }

  function paint() {
    if (!now) return;
    const width = Math.max(260, box.clientWidth || 800), height = Math.round(Math.min(430, Math.max(270, width * 0.48)));
    const left = 76, right = 14, top = 10, bottom = 44, w = width - left - right, h = height - top - bottom;
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.style.height = height + "px";
    svg.replaceChildren();
    const seen = now.series.filter((s) => !s.off);
    const xs = seen.flatMap((s) => s.x).filter((v) => v !== null && (now.xkind !== "log" || v > 0));
    const ys = seen.flatMap((s) => [...s.y, ...(s.low || []), ...(s.high || []), ...(s.bound || [])]).filter((v) => v !== null && (now.ykind !== "log" || v > 0));
    if (!xs.length || !ys.length) { svg.append(draw("text", { x: left, y: top + 30 }, "Nothing to draw: select a curve below.")); place = null; return; }
    let x0 = Infinity, x1 = -Infinity, y0 = Infinity, y1 = -Infinity;
    for (const v of xs) { if (v < x0) x0 = v; if (v > x1) x1 = v; }
    for (const v of ys) { if (v < y0) y0 = v; if (v > y1) y1 = v; }
    if (now.xkind === "log" && now.xfrom && x1 > 5 * now.xfrom) x0 = Math.max(x0, now.xfrom);
    if (now.ykind === "linear") { y0 = Math.min(0, y0); y1 += (y1 - y0) * 0.04 || 1; }
    if (now.ykind === "log") { y0 = Math.max(y0 / 1.15, y1 / 1e6); y1 *= 1.15; }
    if (now.ykind === "symlog") { y0 = Math.min(0, y0 * 1.3); y1 = Math.max(y1 * 1.3, now.knee); }
    if (now.xkind === "linear") x0 = Math.min(0, x0);
    if (x1 <= x0) x1 = x0 * 2 || 1;
    const X = scale(now.xkind, x0, x1), Y = scale(now.ykind, y0, y1, now.knee || 1);
    const px = (v) => left + w * X.at(v), py = (v) => top + h * (1 - Math.min(1.02, Math.max(-0.02, Y.at(v))));
    for (const v of Y.ticks(7)) {
      svg.append(draw("line", { class: v === 0 ? "axis" : "grid", x1: left, x2: left + w, y1: py(v), y2: py(v) }));
      svg.append(draw("text", { x: left - 6, y: py(v) + 4, "text-anchor": "end" }, now.ytext(v)));
    }
    let end = -Infinity;
    for (const v of X.ticks(Math.max(3, Math.floor(w / 80)))) {
      const text = now.xtext(v), half = 3.6 * text.length;
      svg.append(draw("line", { class: "grid", x1: px(v), x2: px(v), y1: top, y2: top + h }));
      if (px(v) - half < end + 6) continue;
      end = Math.min(px(v), left + w - half) + half;
      svg.append(draw("text", { x: Math.min(px(v), left + w - half), y: top + h + 17, "text-anchor": "middle" }, text));
    }
    svg.append(draw("text", { x: left + w / 2, y: height - 6, "text-anchor": "middle" }, now.xlabel));
    svg.append(draw("text", { x: -(top + h / 2), y: 13, transform: "rotate(-90)", "text-anchor": "middle" }, now.ylabel));
    const clip = "clip" + chart.count++;
    const frame = draw("clipPath", { id: clip });
    frame.append(draw("rect", { x: left - 4, y: top - 4, width: w + 8, height: h + 8 }));
    const lines = draw("g", { "clip-path": `url(#${clip})` });
    svg.append(frame, lines);
    for (const s of seen) {
      const keep = s.x.map((v, i) => i).filter((i) => s.x[i] !== null && s.y[i] !== null && s.x[i] >= x0 * 0.999 && (now.ykind !== "log" || s.y[i] > 0));
      if (!keep.length) continue;
      const path = (values, order) => order.map((i) => `${px(s.x[i]).toFixed(1)} ${py(values[i]).toFixed(1)}`).join("L");
      const banded = s.low ? keep.filter((i) => s.low[i] !== null && s.high[i] !== null) : [];
      const floor = now.ykind === "log" ? s.low && s.low.map((v) => Math.max(v, y0)) : s.low;
      if (banded.length > 1) lines.append(draw("path", { d: `M${path(s.high, banded)}L${path(floor, [...banded].reverse())}Z`, fill: s.look[0], "fill-opacity": 0.16 }));
      if (s.bound && s.bound.length) lines.append(draw("path", { d: `M${path(s.bound, keep.filter((i) => s.bound[i] !== null))}`, fill: "none", stroke: s.look[0], "stroke-width": 1.2, "stroke-dasharray": "5 4" }));
      lines.append(draw("path", { d: `M${path(s.y, keep)}`, fill: "none", stroke: s.look[0], "stroke-width": 2, "stroke-dasharray": DASH[s.look[1]] }));
      const every = Math.max(1, Math.floor(keep.length / 8));
      keep.forEach((i, k) => { if (k % every === 0 || k === keep.length - 1) lines.append(mark(s.look[2], px(s.x[i]), py(s.y[i]), s.look[0])); });
    }
    for (const line of now.levels || []) {
      if (line.y < y0 || line.y > y1) continue;
      svg.append(draw("line", { class: "axis", x1: left, x2: left + w, y1: py(line.y), y2: py(line.y), "stroke-dasharray": "1 3", "stroke-width": 1.6 }));
      svg.append(draw("text", { x: left + 5, y: py(line.y) - 4 }, line.text));
    }
    const stops = [...new Set(xs)].filter((v) => v >= x0 * 0.999).sort((a, b) => a - b);
    const rule = draw("line", { class: "axis", y1: top, y2: top + h, visibility: "hidden" });
    svg.append(rule);
    place = { stops, px, rule, seen, width };
    cursor = -1;
    readout.hidden = true;
  }

  function read(index, aloud) {
    if (!place || !place.stops.length) return;
    cursor = Math.max(0, Math.min(place.stops.length - 1, index));
    const at = place.stops[cursor], x = place.px(at), rows = [];
    place.rule.setAttribute("x1", x); place.rule.setAttribute("x2", x); place.rule.setAttribute("visibility", "visible");
    for (const s of place.seen) {
      let i = s.x.indexOf(at);
      if (i < 0 && now.nearest) { i = s.x.findLastIndex((v) => v !== null && v <= at); }
      if (i < 0 || s.y[i] === null) continue;
      const band = s.low && s.low[i] !== null ? ` (${now.ytext(s.low[i], true)} to ${now.ytext(s.high[i], true)})` : "";
      rows.push({ y: s.y[i], s, text: now.ytext(s.y[i], true) + band });
    }
    rows.sort((a, b) => a.y - b.y);
    const head = now.xtext(at, true);
    const table = make("table", {});
    for (const row of rows.slice(0, 14)) {
      const first = make("td", {}); first.append(swatch(row.s.look));
      table.append(make("tr", {}, first, make("td", {}, row.s.name), make("td", {}, row.text)));
    }
    readout.replaceChildren(make("b", {}, head), table);
    readout.hidden = false;
    if (x > place.width / 2) { readout.style.left = "80px"; readout.style.right = "auto"; } else { readout.style.right = "14px"; readout.style.left = "auto"; }
    if (aloud) spoken.textContent = head + ": " + rows.map((r) => r.s.name + " " + r.text).join("; ");
  }
  function away() { readout.hidden = true; if (place) place.rule.setAttribute("visibility", "hidden"); cursor = -1; }

  svg.addEventListener("pointermove", (event) => {
    if (!place) return;
    const x = (event.clientX - svg.getBoundingClientRect().left) * (place.width / svg.getBoundingClientRect().width);
    let best = 0;
    place.stops.forEach((v, i) => { if (Math.abs(place.px(v) - x) < Math.abs(place.px(place.stops[best]) - x)) best = i; });
    read(best, false);
  });
  svg.addEventListener("pointerleave", away);
  box.addEventListener("blur", away);
  box.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step && place) { read(cursor < 0 ? place.stops.length - 1 : cursor + step, true); event.preventDefault(); }
    if (event.key === "Escape") away();
  });
  let before = 0;
  new ResizeObserver(() => { if (box.clientWidth !== before) { before = box.clientWidth; requestAnimationFrame(paint); } }).observe(box);
  return show;
}
chart.count = 0;

function choice(label, options, change) {
  const select = make("select", { onchange: () => change(select.value) });
  options.forEach(([value, text]) => select.append(make("option", { value }, text)));
  return { node: make("label", {}, label, select), select };
}
function tick(label, on, change) {
  const box = make("input", { type: "checkbox", checked: on, onchange: () => change(box.checked) });
  return { node: make("label", {}, box, label), box };
}

// Light and dark by a button; the contents say where the reader is.
function furniture() {
  const themes = ["auto", "light", "dark"], names = { auto: "as the system", light: "light", dark: "dark" };
  const button = document.getElementById("theme");
  let theme = 0;
  if (button) button.addEventListener("click", () => {
    theme = (theme + 1) % 3;
    if (theme) document.documentElement.dataset.theme = themes[theme]; else delete document.documentElement.dataset.theme;
    button.textContent = "Colours: " + names[themes[theme]];
  });
  const links = [...document.querySelectorAll("nav.contents a[href^='#']")];
  const targets = links.map((a) => document.getElementById(a.getAttribute("href").slice(1)));
  const mark = () => {
    let here = 0;
    targets.forEach((t, i) => { if (t && t.getBoundingClientRect().top < 120) here = i; });
    links.forEach((a, i) => { if (i === here) a.setAttribute("aria-current", "true"); else a.removeAttribute("aria-current"); });
  };
  let waiting = false;
  addEventListener("scroll", () => { if (!waiting) { waiting = true; requestAnimationFrame(() => { waiting = false; mark(); }); } }, { passive: true });
  mark();
}
