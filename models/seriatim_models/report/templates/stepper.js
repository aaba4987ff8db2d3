// Steps through every counterexample on the page. Data is shown as text only, never as markup.
"use strict";
(() => {
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
    const arrows = find("[data-arrows]");
    let at = 0, timer = 0;
    // Radio buttons of one name are one choice: that of two steppers on a page must not be.
    const choices = [...root.querySelectorAll(".timeline input")];
    for (const choice of choices) choice.name = `line-${number}`;
    if (choices.length) choices[0].checked = true;

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

    function drawState(changed) {
      const keys = new Set(changed.map((c) => c.key));
      const tables = state(at).map(([title, columns, lines]) => {
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
            const cell = make(k ? "td" : "th", value);
            cell.setAttribute("role", k ? "cell" : "rowheader");
            if (!k) cell.scope = "row";
            else cell.dataset.name = columns[k];
            if (keys.has(JSON.stringify([title, line[0], k]))) {
              cell.className = "changed";
              cell.append(make("span", " (changed)", "unseen"));
            }
            tr.append(cell);
          });
          table.tBodies[0].append(tr);
        }
        return table;
      });
      panel.replaceChildren(...tables, next());
    }

    function next() {
      const table = make("table", undefined, "next");
      table.append(make("caption", "What each does next"), make("tbody"));
      story.threads.forEach((name, lane) => {
        const step = story.steps.find((s) => s.n > at && s.lane === lane);
        const tr = make("tr"), th = make("th", name);
        th.scope = "row";
        tr.append(th, make("td", step ? `${step.n}: ${step.op}` : "none any more"));
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
      timer = setInterval(() => go(at + 1), PACE);
      button("play").textContent = "pause";
      button("play").setAttribute("aria-pressed", "true");
    }

    const acts = {
      first: () => go(0), back: () => go(at - 1), forward: () => go(at + 1), last: () => go(last),
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
      } else if (pressed?.dataset.at) {
        stop();
        go(Number(pressed.dataset.at));
      } else {
        const row = event.target.closest(".lanes tbody tr");
        if (row && !String(getSelection())) {
          stop();
          go(rows.indexOf(row) + 1);
        }
      }
    });
    arrows?.addEventListener("change", drawArrows);
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
