// The board: filters and sorts the aggregated rows, draws those that are ticked, compares specs.
document.documentElement.classList.add("js");
const DATA = JSON.parse(document.getElementById("data").textContent);
const MOST = 200, KIND = { theory: "theory", practice: "practice", reference: "reference", baseline: "reference", adapter: "other libraries" };
const state = { sweep: "", environment: "", label: "", group: "", since: "", line: "", text: "", best: true, key: "mean", up: true, xlog: true, ylog: true, ticked: new Set() };
let rows = [], picked = false;

const text = (name, i) => DATA.names[name][DATA.columns[name][i]];
const size = () => (DATA.columns.mean || []).length;
const group = (i) => { const g = DATA.groups[DATA.columns.label[i]]; return KIND[g] || g; };
const id = (i) => [DATA.sweeps[DATA.columns.sweep[i]].folder, text("environment", i), text("kind", i), text("label", i), text("settings", i)].join("\n");
function share(i) {
  const m = DATA.columns.mean[i], low = DATA.columns.low[i], high = DATA.columns.high[i];
  if (m === null) return "\u2013";
  const half = low === null ? null : (100 * (high - low)) / 2, digits = (half === null ? 100 * m < 1 : half < 0.05) && 100 * m < 10 ? 2 : 1;
  return plain(100 * m, digits) + " %" + (low === null ? "" : ` (${plain(100 * low, digits)} to ${plain(100 * high, digits)})`);
}

function filters() {
  const bar = document.getElementById("filters");
  bar.replaceChildren();
  const every = (list) => [["", "all"], ...list];
  const add = (label, options, key) => {
    if (options.length < 3) return;
    const made = choice(label, options, (v) => { state[key] = v; picked = false; sift(); });
    made.select.value = state[key];
    bar.append(made.node);
  };
  const lines = new Map();
  DATA.sweeps.forEach((s) => new Set(s.spec.map((l) => l.trim()).filter((l) => l && !l.startsWith("#"))).forEach((l) => lines.set(l, (lines.get(l) || 0) + 1)));
  const differing = [...lines].filter(([, n]) => n < DATA.sweeps.length).map(([l]) => [l, l.length > 60 ? l.slice(0, 59) + "\u2026" : l]);
  const groups = [...new Set(DATA.groups.map((g) => KIND[g] || g).filter(Boolean))];
  add("Sweep", every(DATA.sweeps.map((s, i) => [i, `${s.name} (${s.date})`])), "sweep");
  add("Environment", every((DATA.names.environment || []).map((n, i) => [i, DATA.titles[i] === n ? n : `${DATA.titles[i]}: ${n}`])), "environment");
  add(DATA.noun[0].toUpperCase() + DATA.noun.slice(1), every((DATA.names.label || []).map((n, i) => [i, n])), "label");
  add("Group", every(groups.map((g) => [g, g])), "group");
  add("Since", every([...new Set(DATA.sweeps.map((s) => s.date))].sort().map((d) => [d, d])), "since");
  add("Spec says", every(differing), "line");
  const search = make("input", { type: "search", value: state.text, oninput: () => { state.text = search.value.toLowerCase(); picked = false; sift(); } });
  bar.append(make("label", {}, "Setting", search), tick("best settings only", state.best, (v) => { state.best = v; picked = false; sift(); }).node);
}

function sift() {
  const c = DATA.columns, wanted = DATA.sweeps.map((s) => (!state.since || s.date >= state.since) && (!state.line || s.spec.some((l) => l.trim() === state.line)));
  rows = [];
  const terms = state.text.split(/\s+/).filter(Boolean);
  const found = terms.length ? (DATA.names.call || []).map((t) => t.toLowerCase()) : null, named = terms.length ? DATA.names.settings.map((t) => t.toLowerCase()) : null;
  for (let i = 0; i < size(); i++) {
    if (!wanted[c.sweep[i]] || (state.best && !c.best[i])) continue;
    if (state.sweep !== "" && c.sweep[i] !== Number(state.sweep)) continue;
    if (state.environment !== "" && c.environment[i] !== Number(state.environment)) continue;
    if (state.label !== "" && c.label[i] !== Number(state.label)) continue;
    if (state.group && group(i) !== state.group) continue;
    if (found && !terms.every((t) => found[c.call[i]].includes(t) || named[c.settings[i]].includes(t))) continue;
    rows.push(i);
  }
  sort();
}

function sort() {
  const c = DATA.columns, key = state.key, names = DATA.names[key];
  const value = key === "sweep" ? (i) => DATA.sweeps[c.sweep[i]].name : names ? (i) => names[c[key][i]] : (i) => c[key][i];
  const back = state.up ? 1 : -1;
  rows.sort((a, b) => { const x = value(a), y = value(b); return x === null ? 1 : y === null ? -1 : x < y ? -back : x > y ? back : a - b; });
  if (!picked) { state.ticked = new Set(rows.filter((i) => c.curve[i] >= 0).slice(0, 8).map(id)); picked = true; }
  table();
  overlay();
}

const HEAD = [["", "draw"], ["sweep", "sweep"], ["environment", "environment"], ["label", DATA.noun], ["settings", "setting"], ["mean", "mistakes (95 %)"], ["n", "repetitions"], ["seconds", "per round"]];
function table() {
  const head = make("tr", {});
  for (const [key, name] of HEAD) {
    const th = make("th", { scope: "col", "aria-sort": key && key === state.key ? (state.up ? "ascending" : "descending") : null });
    th.append(key ? make("button", { type: "button", class: "sort", "data-key": key, onclick: () => {
      state.up = state.key === key ? !state.up : true;
      state.key = key;
      sort();
      const again = document.querySelector(`#rows button[data-key="${key}"]`);
      if (again) again.focus();
    } }, name) : name);
    head.append(th);
  }
  document.querySelector("#rows thead").replaceChildren(head);
  const body = document.querySelector("#rows tbody"), lines = [];
  for (const i of rows.slice(0, MOST)) {
    const here = id(i), drawable = DATA.columns.curve[i] >= 0;
    const box = make("input", { type: "checkbox", checked: state.ticked.has(here), disabled: !drawable, "aria-label": `draw ${text("label", i)} ${text("settings", i)}`, onchange: () => {
      if (box.checked) state.ticked.add(here); else state.ticked.delete(here);
      overlay();
    } });
    lines.push(make("tr", {}, make("td", {}, box), make("td", {}, DATA.sweeps[DATA.columns.sweep[i]].name), make("td", { class: "name" }, DATA.titles[DATA.columns.environment[i]] + (text("kind", i) === "bit" ? "" : ` (${text("kind", i)})`)),
      make("td", { class: "name" }, text("label", i)), make("td", { title: text("call", i) }, text("settings", i) || "\u2013"), make("td", { class: "n" }, share(i)), make("td", { class: "n" }, String(DATA.columns.n[i])), make("td", { class: "n" }, DATA.columns.seconds[i] === null ? "\u2013" : seconds(DATA.columns.seconds[i]))));
  }
  body.replaceChildren(...lines);
  document.getElementById("shown").textContent = `${plain(rows.length, 0)} of ${plain(size(), 0)} settings` + (rows.length > MOST ? `, the first ${MOST} shown` : "");
}

const host = document.getElementById("overlay"), top_ = make("div", { class: "controls" }), legend = make("ul", { class: "legend", "aria-label": "Curves: press to remove one" });
host.append(top_);
const paint = chart(host, "Curves of the selected settings");
host.append(legend);
top_.append(tick("logarithmic x axis", true, (v) => { state.xlog = v; overlay(); }).node, tick("logarithmic y axis", true, (v) => { state.ylog = v; overlay(); }).node);

function overlay() {
  const drawn = [];
  for (let i = 0; i < size() && drawn.length < 40; i++) if (state.ticked.size && DATA.columns.curve[i] >= 0 && state.ticked.has(id(i))) drawn.push(i);
  drawn.sort((a, b) => DATA.columns.mean[a] - DATA.columns.mean[b]);
  const several = (name) => new Set(drawn.map((i) => DATA.columns[name][i])).size > 1, sweeps = several("sweep"), places = several("environment");
  const series = drawn.map((i) => {
    const [grid, ...y] = DATA.curves[DATA.columns.curve[i]];
    const where = [sweeps && DATA.sweeps[DATA.columns.sweep[i]].name, places && DATA.titles[DATA.columns.environment[i]]].filter(Boolean).join(", ");
    return { name: `${text("label", i)} ${text("settings", i)}`.trim() + (where ? ` \u00b7 ${where}` : ""), look: DATA.looks[DATA.columns.label[i]], x: DATA.rounds[grid], y, key: id(i) };
  });
  const seen = new Map();  // settings of one learner have the same colour and different dashes
  for (const s of series) { const n = seen.get(s.look[0] + s.look[1]) || 0; seen.set(s.look[0] + s.look[1], n + 1); s.look = [s.look[0], (s.look[1] + n) % DASH.length, s.look[2]]; }
  paint({ series, xkind: state.xlog ? "log" : "linear", ykind: state.ylog ? "log" : "linear", xfrom: 10, nearest: true, xlabel: "rounds", ylabel: "mistakes so far, % of rounds",
    xtext: (v, full) => plain(v, 0) + (full ? " rounds" : ""), ytext: (v) => sized(v) + " %" });
  legend.replaceChildren(...series.map((s) => {
    const button = make("button", { type: "button", "aria-pressed": "true", onclick: () => { state.ticked.delete(s.key); table(); overlay(); } });
    button.append(swatch(s.look), s.name);
    return make("li", {}, button);
  }));
}

function specs() {
  const bar = document.getElementById("pair"), host = document.getElementById("difference"), options = DATA.sweeps.map((s, i) => [i, s.name]);
  bar.replaceChildren();
  host.replaceChildren();
  if (DATA.sweeps.length < 2) { host.append(make("p", { class: "note" }, "There is one sweep.")); return; }
  let a = 0, b = 1;
  const show = () => {
    const lines = (i) => DATA.sweeps[i].spec.map((l) => l.trim()).filter((l) => l && !l.startsWith("#")), one = lines(a), two = lines(b);
    const list = (name, found) => make("div", {}, make("p", {}, make("b", {}, name)), make("pre", { tabindex: "0" }, found.join("\n") || "(nothing)"));
    host.replaceChildren(list(`Only in ${DATA.sweeps[a].name}`, one.filter((l) => !two.includes(l))), list(`Only in ${DATA.sweeps[b].name}`, two.filter((l) => !one.includes(l))));
  };
  const first = choice("Compare", options, (v) => { a = Number(v); show(); }), second = choice("with", options, (v) => { b = Number(v); show(); });
  second.select.value = "1";
  bar.append(first.node, second.node);
  show();
}

filters();
sift();
specs();
furniture();
document.documentElement.dataset.ready = "true";
