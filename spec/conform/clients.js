#!/usr/bin/env node
// A queue that speaks seriatim-conform/2: each answer comes when its promise is kept, in any order.
// seriatim record --exec "node spec/conform/clients.js" --clients 4 --out run.jsonl

const can = ["publish", "get", "ack", "nack", "open", "close", "drop", "redelivered", "queues"];
const queues = new Map(); // by name its entries {place, m, redelivered}, always sorted
const held = new Map(); // by channel, tag: {q, entry}
const tags = new Map(); // by channel, the last tag
let place = 0;

const entries = (q) => queues.get(q) ?? queues.set(q, []).get(q);
const holds = (ch) => held.get(ch) ?? held.set(ch, new Map()).get(ch);
const say = (words) => process.stdout.write(JSON.stringify(words) + "\n");

// Stands for a disk or a network: commands of other clients come in between.
const pause = () => new Promise((done) => setTimeout(done, Math.random() * 2));

function back({ q, entry }) {
  entries(q).push({ ...entry, redelivered: true });
  entries(q).sort((a, b) => a.place - b.place);
}

async function answer({ op, ch = 0, q = "", m = "", dtag = 0, requeue = true }) {
  await pause();
  switch (op) {
    case "publish":
      entries(q).push({ place: place++, m, redelivered: false });
      return {};
    case "get": {
      const entry = entries(q).shift();
      if (!entry) return {};
      const tag = (tags.get(ch) ?? 0) + 1;
      tags.set(ch, tag);
      holds(ch).set(tag, { q, entry });
      return { m: entry.m, dtag: tag, redelivered: entry.redelivered };
    }
    case "ack":
    case "nack": {
      const gone = holds(ch).get(dtag);
      if (!gone) return { ok: false, code: 406, why: `unknown tag ${dtag}` };
      holds(ch).delete(dtag);
      if (op === "nack" && requeue) back(gone);
      return {};
    }
    case "close":
      holds(ch).forEach(back);
      held.delete(ch);
      return {};
    case "reset":
      queues.clear();
      held.clear();
      tags.clear();
      return {};
    case "open":
    case "sync":
      return {}; // nothing to do here
    default:
      return { ok: false, why: `cannot ${op}` };
  }
}

const lines = require("node:readline").createInterface({ input: process.stdin });
lines.on("line", async (line) => {
  const request = JSON.parse(line);
  if (request.op === "hello")
    return say({ id: request.id, ok: true, protocol: "seriatim-conform/2", name: "clients.js", can });
  say({ id: request.id, ok: true, ...(await answer(request)) });
});
