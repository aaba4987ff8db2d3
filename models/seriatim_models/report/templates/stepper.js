// Steps through every counterexample on the page. Data is shown as text only, never as markup.
"use strict";
(() => {
  const AROUND = 4; // lines of source before and after that of the step
  const PACE = 900; // milliseconds between steps while playing
  const SVG = "http://www.w3.org/2000/svg";
  const all = [...document.querySelectorAll(".stepper")].map(stepper);

  function make(name, text, kind) {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (kind) made.className = kind;
    return made;
  }

  function stepper(root, number) {
    const story = JSON.parse(root.querySelector(".story").textContent);
    const last = story.steps.length;
    const find = (selector) => root.querySelector(selector);
    const button = (name) => find(`[data-go="${name}"]`);
    const now = find(".now"), panel = find(".state"), trace = find(".trace");
    const rows = [...root.querySelectorAll(".lanes tbody tr")];
    const arrows = find("[data-arrows]"), fold = find("[data-fold]");
    let at = 0, timer = 0;
    // Radio buttons of one name are one choice: that of two steppers on a page must not be.
    const choices = [...root.querySelectorAll(".timeline input")];
    for (const choice of choices) choice.name = `line-${number}`;
    if (choices.length) choices[0].checked = true;

    // Runs of steps that do not matter are folded: a row says how many, and opens them.
    for (let from = 0; fold && from < last; from++) {
      if (!rows[from].classList.contains("aside")) continue;
      let to = from;
      while (to + 1 < last && rows[to + 1].classList.contains("aside")) to++;
      const run = rows.slice(from, to + 1), filler = make("tr", undefined, "fold"), cell = make("td");
      const opener = make("button", `… ${run.length} step${run.length > 1 ? "s" : ""}`);
      filler.setAttribute("role", "row");
      cell.setAttribute("role", "cell");
      cell.colSpan = story.threads.length + 1;
      opener.type = "button";
      opener.dataset.open = from;
      cell.append(opener);
      filler.append(cell);
      rows[from].before(filler);
      for (const row of run) row.run = [filler, ...run];
      from = to;
    }
    const shown = (n) => !fold?.checked || !rows[n - 1].run || rows[n - 1].classList.contains("open");
    const open = (n) => rows[n - 1].run?.forEach((row) => row.classList.add("open"));

    function after(n) {
      do n++; while (n < last && !shown(n));
      return Math.min(n, last);
    }
    function before(n) {
      do n--; while (n > 0 && !shown(n));
      return Math.max(n, 0);
    }

    const index = (n) => (n === 0 ? story.initial : story.steps[n - 1].state);
    const state = (n) => story.states[index(n)];

    function cells(tables) {
      const found = new Map();
      for (const [title, columns, lines] of tables)
        for (const line of lines)
          line.forEach((value, k) => {
            if (k) found.set(JSON.stringify([title, line[0], k]), { value, what: `${line[0]}, ${columns[k]}` });
          });
      return found;
    }

    function changes(n) {
      if (n === 0) return [];
      const before = cells(state(n - 1)), after = cells(state(n));
      const found = [];
      for (const [key, { value, what }] of after) {
        const old = before.has(key) ? before.get(key).value : "";
        if (old !== value) found.push({ key, change: `${what}: ${old || "nothing"} → ${value || "nothing"}` });
      }
      for (const [key, { value, what }] of before)
        if (!after.has(key) && value) found.push({ key, change: `${what}: ${value} → nothing` });
      return found;
    }

    // The step after which a value of the state at this step stood there first; 0: it did from the beginning.
    function writer(key) {
      for (let n = at; n > 0; n--)
        if (index(n) !== index(n - 1) && tables(n - 1).get(key)?.value !== tables(n).get(key)?.value) return n;
      return 0;
    }
    const known = new Map();
    function tables(n) {
      if (!known.has(index(n))) known.set(index(n), cells(state(n)));
      return known.get(index(n));
    }

    function drawState(changed) {
      const keys = new Set(changed.map((c) => c.key));
      const drawn = state(at).map(([title, columns, lines]) => {
        const table = make("table");
        table.append(make("caption", title));
        table.setAttribute("role", "table"); // set explicitly, because a narrow page lays it out as no table
        table.className = "facts";
        const head = make("tr");
        head.setAttribute("role", "row");
        for (const column of columns) {
          const th = make("th", column);
          th.scope = "col";
          th.setAttribute("role", "columnheader");
          head.append(th);
        }
        table.append(make("thead"), make("tbody"));
        table.tHead.append(head);
        for (const line of lines) {
          const tr = make("tr");
          tr.setAttribute("role", "row");
          line.forEach((value, k) => {
            const key = JSON.stringify([title, line[0], k]), wrote = k && value ? writer(key) : 0;
            const cell = make(k ? "td" : "th", wrote ? undefined : value);
            cell.setAttribute("role", k ? "cell" : "rowheader");
            if (!k) cell.scope = "row";
            else cell.dataset.name = columns[k];
            if (wrote) {
              const link = make("a", value);
              link.href = `#${encodeURIComponent(root.id)}/${wrote}`;
              link.title = `written in step ${wrote}, by ${story.threads[story.steps[wrote - 1].lane]}`;
              cell.append(link);
            }
            if (keys.has(key)) {
              cell.className = "changed";
              cell.append(make("span", " (changed)", "unseen"));
            }
            tr.append(cell);
          });
          table.tBodies[0].append(tr);
        }
        return table;
      });
      panel.replaceChildren(...code(), ...drawn, next());
    }

    // The source around the step.
    function code() {
      const step = story.steps[at - 1];
      if (!step?.place) return [];
      const box = make("figure", undefined, "code"), [file, here, name] = step.place;
      box.append(make("figcaption", `${story.threads[step.lane]} in ${name}, ${file}:${here}`));
      const list = make("pre"), lines = story.sources[file];
      list.tabIndex = 0;
      list.setAttribute("aria-label", "Source around the step");
      for (const [n, text] of Object.entries(lines)) {
        if (Math.abs(n - here) > AROUND) continue;
        const row = make("span", `${String(n).padStart(5)}  ${text}\n`, Number(n) === here ? "here" : undefined);
        list.append(row);
      }
      box.append(list);
      return [box];
    }

    function next() {
      const table = make("table", undefined, "next");
      table.append(make("caption", "What each does next"), make("tbody"));
      story.threads.forEach((name, lane) => {
        const step = story.steps.find((s) => s.n > at && s.lane === lane);
        const tr = make("tr"), th = make("th", name);
        th.scope = "row";
        const what = make("td", step ? `${step.n}: ${step.op}` : "none any more");
        const [file, at_line] = step?.place ?? [], line = file && story.sources[file][at_line];
        if (line) what.append(make("small", `${file}:${at_line}  ${line.trim()}`));
        tr.append(th, what);
        table.tBodies[0].append(tr);
      });
      return table;
    }

    function describe(changed) {
      const text = (...parts) => now.append(...parts);
      now.replaceChildren();
      if (at === 0) return text(`Before the first of ${last} steps.`);
      const step = story.steps[at - 1];
      text(`Step ${at} of ${last}, ${story.threads[step.lane]}: `, make("code", step.op));
      if (step.result) text(" → ", make("code", step.result));
      if (at === story.bad) text(" ", make("strong", "The first bad step.", "violated"));
      if (at === story.good && story.bad) text(" ", make("strong", "The last good step.", "ok"));
      text(changed.length ? ` Changed: ${changed.map((c) => c.change).join("; ")}.` : " Nothing shown beside changes.");
    }

    function drawArrows() {
      find(".arrows")?.remove();
      if (!arrows?.checked) return;
      const svg = document.createElementNS(SVG, "svg");
      svg.setAttribute("class", "arrows");
      svg.setAttribute("aria-hidden", "true");
      svg.setAttribute("width", trace.clientWidth);
      svg.setAttribute("height", trace.scrollHeight);
      const box = trace.getBoundingClientRect();
      const spot = (n) => {
        const r = rows[n - 1].querySelector("td:not(.idle)").getBoundingClientRect();
        return [r.left - box.left - 4, r.top - box.top + trace.scrollTop + Math.min(r.height / 2, 12)];
      };
      for (const [from, to] of story.arrows) {
        if (!shown(from) || !shown(to)) continue;
        const [x1, y1] = spot(from), [x2, y2] = spot(to);
        const path = document.createElementNS(SVG, "path");
        const bend = x1 === x2 ? Math.min(40, 8 + (y2 - y1) / 8) : 0;
        const middle = (y1 + y2) / 2;
        path.setAttribute("d",
          `M${x1},${y1} C${x1 - bend},${middle} ${x2 - bend},${middle} ${x2},${y2} m-4,-6 l4,6 l4,-6`);
        if (from === at || to === at) path.setAttribute("class", "near");
        svg.append(path);
      }
      trace.append(svg);
    }

    // A line for each message or consumer; bars that overlap on a line are put below one another.
    function drawLines() {
      const lines = find(".lines");
      if (!lines) return;
      const by = find(".timeline input:checked").value, other = by === "by" ? "message" : "by";
      const place = (n) => `${(100 * (n - 1)) / last}%`;
      const rows = new Map();
      for (const bar of story.bars) {
        if (by === "by" && !bar.by) continue;
        if (!rows.has(bar[by])) rows.set(bar[by], []);
        rows.get(bar[by]).push(bar);
      }
      lines.replaceChildren(...[...rows].map(([name, bars]) => {
        const line = make("div", undefined, "line"), track = make("div", undefined, "track"), ends = [];
        line.append(make("span", name), track);
        for (const bar of bars) {
          let level = ends.findIndex((end) => end <= bar.start);
          if (level < 0) level = ends.length;
          ends[level] = bar.end;
          const drawn = make("button", bar[other], `interval${bar.by ? "" : " waits"}${bar.violating ? " violating" : ""}`);
          drawn.type = "button";
          drawn.dataset.at = bar.start;
          const until = bar.end > last ? "to the end" : `to step ${bar.end}`;
          drawn.title = `${bar.message} ${bar.by ? `with ${bar.by}` : "waits"}, step ${bar.start} ${until}: ${bar.how}`;
          drawn.setAttribute("aria-label", drawn.title + (bar.violating ? "; shows the violation" : ""));
          drawn.style.left = place(bar.start);
          drawn.style.width = `${(100 * (Math.min(bar.end, last + 1) - bar.start)) / last}%`;
          drawn.style.top = `${level * 1.5 + 0.1}rem`;
          track.append(drawn);
        }
        track.style.height = `${Math.max(ends.length, 1) * 1.5 + 0.1}rem`;
        track.append(make("i", undefined, "here"));
        return line;
      }));
      drawHere();
    }

    function drawHere() {
      for (const here of root.querySelectorAll(".track .here")) {
        here.style.left = `${(100 * Math.max(at - 1, 0)) / last}%`;
        here.hidden = at === 0;
      }
    }

    function follow() {
      const row = rows[Math.max(at - 1, 0)];
      if (!row) return;
      const box = trace.getBoundingClientRect(), r = row.getBoundingClientRect();
      const room = 40; // the heading stays on top
      if (r.top < box.top + room) trace.scrollTop += r.top - box.top - room;
      else if (r.bottom > box.bottom) trace.scrollTop += r.bottom - box.bottom + room;
    }

    function go(n, quietly) {
      at = Math.min(Math.max(n, 0), last);
      if (at && !shown(at)) open(at);
      rows.forEach((row, k) => {
        row.classList.toggle("later", k + 1 > at);
        if (k + 1 === at) row.setAttribute("aria-current", "step");
        else row.removeAttribute("aria-current");
      });
      const changed = changes(at);
      drawState(changed);
      describe(changed);
      for (const [name, off] of [["first", at === 0], ["back", at === 0], ["forward", at === last], ["last", at === last]])
        button(name).setAttribute("aria-disabled", String(off));
      if (at === last) stop();
      follow();
      drawArrows();
      drawHere();
      if (!quietly) history.replaceState(null, "", `#${encodeURIComponent(root.id)}/${at}`);
    }

    function stop() {
      clearInterval(timer);
      timer = 0;
      button("play").textContent = "play";
      button("play").setAttribute("aria-pressed", "false");
    }

    function play() {
      if (timer) return stop();
      if (at === last) go(0);
      timer = setInterval(() => go(after(at)), PACE);
      button("play").textContent = "pause";
      button("play").setAttribute("aria-pressed", "true");
    }

    const acts = {
      first: () => go(0), back: () => go(before(at)), forward: () => go(after(at)), last: () => go(last),
      good: () => go(story.good), bad: () => go(story.bad), play,
    };
    const keys = {
      ArrowRight: "forward", ArrowDown: "forward", ArrowLeft: "back", ArrowUp: "back",
      Home: "first", End: "last", " ": "play",
    };

    root.addEventListener("click", (event) => {
      const pressed = event.target.closest("button");
      if (pressed?.dataset.go) {
        if (pressed.dataset.go !== "play") stop();
        acts[pressed.dataset.go]();
      } else if (pressed?.dataset.open) {
        open(Number(pressed.dataset.open) + 1);
        rows[pressed.dataset.open].querySelector("button").focus();
      } else if (pressed?.dataset.at) {
        stop();
        go(Number(pressed.dataset.at));
      } else {
        const row = event.target.closest(".lanes tbody tr:not(.fold)");
        if (row && !String(getSelection())) {
          stop();
          go(rows.indexOf(row) + 1);
        }
      }
    });
    arrows?.addEventListener("change", drawArrows);
    fold?.addEventListener("change", () => {
      root.classList.toggle("folded", fold.checked);
      for (const row of root.querySelectorAll(".open")) row.classList.remove("open");
      go(at, true);
    });
    if (fold) {
      fold.checked = true; // a browser may have kept it from an earlier visit
      root.classList.add("folded");
    }
    addEventListener("resize", drawArrows);
    find(".timeline")?.addEventListener("change", drawLines);
    drawLines();
    find(".controls").hidden = false;
    return {
      root, go,
      key(event) {
        const name = keys[event.key];
        if (!name || event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return;
        if (event.key === " " && event.target.closest("button, input, a")) return;
        event.preventDefault();
        if (name !== "play") stop();
        acts[name]();
      },
    };
  }

  // With one stepper the keys are its own wherever the focus is; among several, the one with the focus gets them.
  document.addEventListener("keydown", (event) => {
    const inside = all.find((s) => s.root.contains(event.target));
    const alone = all.length === 1 && event.target === document.body && document.body.dataset.keys !== "inside";
    (inside ?? (alone ? all[0] : undefined))?.key(event);
  });

  function link() {
    const [, id, step] = /^#(.+)\/(\d+)$/.exec(location.hash) ?? [];
    const named = (s) => {
      try { return s.root.id === decodeURIComponent(id); } catch { return false; }
    };
    const found = id && all.find(named);
    if (found) {
      found.go(Number(step), true);
      found.root.scrollIntoView();
    }
    return found;
  }
  const linked = link();
  for (const s of all) if (s !== linked) s.go(0, true);
  addEventListener("hashchange", link);
})();
