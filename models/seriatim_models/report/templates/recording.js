// Draws a recording: rows are clients, bars operations. Data is shown as text only, never as markup.
"use strict";
(() => {
  const LEFT = 96, RIGHT = 8, TOP = 34, ROW = 18, LATENCY = 110, LEAST = 20; // pixels; LEAST: units that a view spans at least
  const SMALL = 1.5; // what is narrower, in pixels, is counted and not drawn by itself
  const data = JSON.parse(document.getElementById("recording").textContent);
  const columns = {};
  for (const [name, Type] of [["start", Uint32Array], ["took", Uint32Array], ["row", Uint32Array], ["name", Uint32Array],
    ["queue", Uint32Array], ["error", Uint32Array], ["kind", Uint8Array], ["outcome", Uint8Array]]) {
    const text = atob(document.getElementById(`column-${name}`).textContent.trim());
    const bytes = new Uint8Array(text.length);
    for (let n = 0; n < text.length; n++) bytes[n] = text.charCodeAt(n);
    columns[name] = new Type(bytes.buffer);
  }
  const { start, took, row, name, queue, error, kind, outcome } = columns;
  const N = start.length, length = Math.max(data.length, LEAST);
  const rows = data.rows.slice(1); // the first is that of no client
  const canvas = document.querySelector("canvas"), draws = canvas.getContext("2d");
  const said = document.querySelector(".said"), found = document.querySelector(".found");
  const search = document.querySelector("input"), pressed = [...document.querySelectorAll("[data-violation]")];
  let from = 0, to = length, hits = [], hit = -1, marked = new Set(), asked = false;

  const width = () => canvas.clientWidth, bottom = TOP + ROW * rows.length;
  const x = (t) => LEFT + ((t - from) / (to - from)) * (width() - LEFT - RIGHT);
  const time = (px) => from + ((px - LEFT) / (width() - LEFT - RIGHT)) * (to - from);
  const colour = (variable) => getComputedStyle(document.documentElement).getPropertyValue(variable).trim();

  function look(begin, end) {
    const span = Math.min(Math.max(end - begin, LEAST), length);
    from = Math.min(Math.max(begin + (end - begin - span) / 2, 0), length - span);
    to = from + span;
    later();
  }
  function magnify(by, at = (from + to) / 2) {
    look(at - (at - from) / by, at + (to - at) / by);
  }
  const move = (share) => look(from + share * (to - from), to + share * (to - from));
  function later() {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      draw();
      const find = search.value ? `&find=${encodeURIComponent(search.value)}` : "";
      history.replaceState(null, "", `#${Math.round(from)}-${Math.round(to)}${find}`);
    });
  }

  function draw() {
    const scale = window.devicePixelRatio || 1, w = width(), high = bottom + LATENCY + 20;
    canvas.style.height = `${high}px`;
    canvas.width = Math.round(w * scale);
    canvas.height = Math.round(high * scale);
    draws.setTransform(scale, 0, 0, scale, 0, 0);
    const colours = [colour("--series-1"), colour("--inconclusive"), colour("--violated"), colour("--violated")];
    const soft = colour("--soft"), line = colour("--line");
    draws.font = "11px system-ui, sans-serif";
    draws.clearRect(0, 0, w, high);
    times(w, soft, line);
    faults();
    const cells = Math.ceil(w), counts = new Uint32Array(rows.length * cells), odd = new Uint8Array(rows.length * cells);
    const longest = new Float64Array(cells), sum = new Float64Array(cells), many = new Uint32Array(cells);
    let most = 1;
    for (let n = 0; n < N && start[n] <= to; n++) {
      const begin = start[n], end = begin + took[n];
      if (end < from) continue;
      const x0 = Math.max(x(begin), LEFT), x1 = Math.min(x(end), w - RIGHT), r = row[n] - 1;
      const px = Math.min(Math.floor(x1), cells - 1);
      if (took[n] && outcome[n] === 0 && end <= to) {
        sum[px] += took[n]; many[px]++;
        if (took[n] > longest[px]) longest[px] = took[n];
      }
      if (x1 - x0 < SMALL) {
        const cell = r * cells + px;
        if (outcome[n]) odd[cell] = Math.max(odd[cell], outcome[n]);
        if (++counts[cell] > most) most = counts[cell];
        continue;
      }
      draws.fillStyle = colours[outcome[n]];
      draws.globalAlpha = 0.65;
      draws.fillRect(x0, TOP + ROW * r + 3, Math.max(x1 - x0 - 0.5, 1), ROW - 6);
    }
    for (let cell = 0; cell < counts.length; cell++) {
      if (!counts[cell]) continue;
      const px = cell % cells, y = TOP + ROW * ((cell - px) / cells);
      draws.fillStyle = colours[odd[cell]];
      draws.globalAlpha = odd[cell] ? 1 : 0.35 + 0.65 * Math.min(1, Math.log1p(counts[cell]) / Math.log1p(most));
      draws.fillRect(px, y + 2, SMALL, ROW - 4);
    }
    draws.globalAlpha = 1;
    for (const n of hits) outline(n, colour("--series-2"), 1);
    for (const n of marked) outline(n, colour("--violated"), 2);
    if (hit >= 0) outline(hits[hit], colour("--series-2"), 3);
    latency(longest, sum, many, soft, line, w);
    draws.fillStyle = soft;
    rows.forEach((client, r) => {
      draws.fillText(client.length > 14 ? `${client.slice(0, 13)}…` : client, 4, TOP + ROW * r + 13);
    });
  }

  function outline(n, how, thick) {
    const begin = start[n], end = begin + took[n];
    if (end < from || begin > to) return;
    const x0 = Math.max(x(begin), LEFT), x1 = Math.min(x(end), width() - RIGHT);
    draws.strokeStyle = how;
    draws.lineWidth = thick;
    draws.strokeRect(x0 - 1, TOP + ROW * (row[n] - 1) + 2, Math.max(x1 - x0, 2) + 2, ROW - 4);
  }

  const readable = (units) => {
    const ns = units * data.unit;
    for (const [size, unit] of [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]]) if (ns >= size) return `${+(ns / size).toPrecision(4)} ${unit}`;
    return `${Math.round(ns)} ns`;
  };

  function times(w, soft, line) {
    const rough = (to - from) / Math.max((w - LEFT) / 110, 2), power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= rough);
    draws.lineWidth = 1;
    for (let t = Math.ceil(from / step) * step; t <= to; t += step) {
      draws.strokeStyle = line;
      draws.beginPath();
      draws.moveTo(x(t), TOP - 6);
      draws.lineTo(x(t), bottom + LATENCY);
      draws.stroke();
      draws.fillStyle = soft;
      const label = readable(t);
      const fits = x(t) + 3 + draws.measureText(label).width <= width();
      if (fits) draws.fillText(label, x(t) + 3, 12);
    }
  }

  function faults() {
    for (const [what, begin, end] of data.faults) {
      if (end < from || begin > to) continue;
      const x0 = Math.max(x(begin), LEFT), x1 = Math.min(x(end), width() - RIGHT);
      draws.fillStyle = colour("--series-2");
      draws.globalAlpha = 0.18;
      draws.fillRect(x0, TOP, Math.max(x1 - x0, 1), bottom + LATENCY - TOP);
      draws.globalAlpha = 1;
      draws.fillText(what, x0 + 2, 26);
    }
  }

  function latency(longest, sum, many, soft, line, w) {
    draws.lineWidth = 1;
    const low = 1e3, high = 1e11, at = (units) => {
      const ns = Math.min(Math.max(units * data.unit, low), high);
      return bottom + LATENCY - (Math.log10(ns / low) / Math.log10(high / low)) * (LATENCY - 12);
    };
    for (const [ns, text] of [[1e3, "1 µs"], [1e6, "1 ms"], [1e9, "1 s"]]) {
      draws.strokeStyle = line;
      draws.beginPath();
      draws.moveTo(LEFT, at(ns / data.unit));
      draws.lineTo(w - RIGHT, at(ns / data.unit));
      draws.stroke();
      draws.fillStyle = soft;
      draws.fillText(text, LEFT - 40, at(ns / data.unit) + 4);
    }
    for (let px = 0; px < many.length; px++) {
      if (!many[px]) continue;
      draws.fillStyle = soft;
      draws.fillRect(px, at(longest[px]), 1.5, 1.5);
      draws.fillStyle = colour("--series-1");
      draws.fillRect(px, at(sum[px] / many[px]), 1.5, 1.5);
    }
  }

  function words(n) {
    const parts = [`${rows[row[n] - 1]}: ${data.kinds[kind[n]]}`, data.names[name[n]], data.queues[queue[n]] && `of ${data.queues[queue[n]]}`];
    const lasted = took[n] ? `, ${readable(took[n])} long` : "";
    const end = outcome[n] ? `, ${data.outcomes[outcome[n]]}` : "", why = error[n] ? `: ${data.errors[error[n]]}` : "";
    return `${parts.filter(Boolean).join(" ")}, at ${readable(start[n])}${lasted}${end}${why}`;
  }

  function under(px, y) {
    const r = Math.floor((y - TOP) / ROW);
    if (r < 0 || r >= rows.length || px < LEFT) return -1;
    const t = time(px), slack = (to - from) / (width() - LEFT - RIGHT) * 4;
    let best = -1, least = Infinity;
    for (let n = 0; n < N && start[n] <= t + slack; n++) {
      if (row[n] - 1 !== r || start[n] + took[n] < t - slack) continue;
      const off = Math.abs(start[n] + took[n] / 2 - t);
      if (off < least) [best, least] = [n, off];
    }
    return best;
  }

  function show(list, margin) {
    if (!list.length) return;
    let begin = Infinity, end = 0;
    for (const n of list) {
      begin = Math.min(begin, start[n]);
      end = Math.max(end, start[n] + took[n]);
    }
    const room = Math.max((end - begin) * margin, LEAST, length / 5000);
    look(begin - room, end + room);
  }

  function violation(at) {
    pressed.forEach((button, n) => button.setAttribute("aria-pressed", String(n === at)));
    marked = new Set(data.violations[at].operations);
    show([...marked], 0.5);
  }

  function find(text) {
    hits = [];
    hit = -1;
    found.textContent = "";
    if (!text) return later();
    const exact = data.names.indexOf(text), low = text.toLowerCase();
    const matches = (list) => list.map((each) => each !== "" && each.toLowerCase().includes(low));
    const tables = exact > 0 ? null : [data.names, data.queues, data.kinds, data.errors, data.rows].map(matches);
    for (let n = 0; n < N; n++) {
      const has = exact > 0 ? name[n] === exact
        : tables[0][name[n]] || tables[1][queue[n]] || tables[2][kind[n]] || tables[3][error[n]] || tables[4][row[n]];
      if (has) hits.push(n);
    }
    found.textContent = `${hits.length.toLocaleString("en")} found`;
    if (hits.length) step(1);
    else later();
  }

  function step(by) {
    if (!hits.length) return;
    hit = hit < 0 ? 0 : (hit + by + hits.length) % hits.length;
    const n = hits[hit], middle = start[n] + took[n] / 2, span = to - from;
    found.textContent = `${(hit + 1).toLocaleString("en")} of ${hits.length.toLocaleString("en")}`;
    said.textContent = words(n);
    if (start[n] + took[n] < from || start[n] > to) look(middle - span / 2, middle + span / 2);
    else later();
  }

  const go = {
    left: () => move(-0.25), right: () => move(0.25), in: () => magnify(2), out: () => magnify(0.5),
    all: () => look(0, length), next: () => step(1), previous: () => step(-1),
  };
  const keys = { ArrowLeft: "left", ArrowRight: "right", "+": "in", "=": "in", "-": "out", 0: "all", n: "next", N: "previous" };
  document.querySelectorAll("[data-go]").forEach((button) => button.addEventListener("click", go[button.dataset.go]));
  pressed.forEach((button, n) => button.addEventListener("click", () => violation(n)));
  canvas.addEventListener("keydown", (event) => {
    if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    go[keys[event.key]]();
  });
  search.addEventListener("change", () => find(search.value));
  canvas.addEventListener("wheel", (event) => {
    if (event.offsetX < LEFT) return; // there the wheel moves the page
    event.preventDefault();
    magnify(Math.exp(-event.deltaY / 400), time(event.offsetX));
  }, { passive: false });

  const fingers = new Map();
  const spread = () => {
    const [a, b] = [...fingers.values()];
    return [Math.max(Math.abs(a - b), 10), (a + b) / 2];
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, event.offsetX);
  });
  for (const over of ["pointerup", "pointercancel"]) canvas.addEventListener(over, (event) => fingers.delete(event.pointerId));
  canvas.addEventListener("pointermove", (event) => {
    const before = fingers.get(event.pointerId);
    if (before === undefined) {
      const n = under(event.offsetX, event.offsetY);
      if (n >= 0) said.textContent = words(n);
    } else if (fingers.size === 2) {
      const [was] = spread();
      fingers.set(event.pointerId, event.offsetX);
      const [now, middle] = spread();
      magnify(now / was, time(middle));
    } else {
      fingers.set(event.pointerId, event.offsetX);
      const units = (before - event.offsetX) * (to - from) / (width() - LEFT - RIGHT);
      look(from + units, to + units);
    }
  });
  canvas.addEventListener("click", (event) => {
    const n = under(event.offsetX, event.offsetY);
    if (n < 0 || !name[n]) return;
    search.value = data.names[name[n]];
    const view = [from, to];
    find(search.value);
    look(...view);
    said.textContent = words(n);
  });
  window.addEventListener("resize", later);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", later);

  const linked = /^#(\d+)-(\d+)(?:&find=(.*))?$/.exec(location.hash);
  if (linked) {
    if (linked[3]) find(search.value = decodeURIComponent(linked[3]));
    look(+linked[1], +linked[2]);
  } else if (pressed.length) violation(0);
  later();
})();
