// A queue that speaks seriatim-conform/1, for Node and with nothing else.
//     seriatim conform --exec "node spec/conform/example.js"
const say = (words) => process.stdout.write(JSON.stringify(words) + "\n");
const can = "publish get ack nack reject qos consume cancel open close multiple drop redelivered".split(" ");
let queues, channels, consumers, positions = 0;
const queue = (q) => (queues[q] ??= []); // entries {at, m, redelivered}, by position
const channel = (ch) => (channels[ch] ??= { tag: 0, prefetch: 0, held: new Map() }); // tag: [queue, entry]
const reset = () => { queues = {}; channels = {}; consumers = []; };

function handOut(ch, q) { // the first message, held by the channel from now on
  const c = channel(ch), entry = queue(q).shift();
  c.held.set(++c.tag, [q, entry]);
  return { m: entry.m, dtag: c.tag, redelivered: entry.redelivered };
}

function requeue([q, entry]) { // back to the old place: positions never change
  queue(q).push({ ...entry, redelivered: true });
  queue(q).sort((a, b) => a.at - b.at);
}

function push() { // each message to the consumer whose turn it is
  for (const q in queues) {
    while (queue(q).length) {
      const c = consumers.find((c) => c.q === q && (!c.prefetch || c.has.size < c.prefetch));
      if (!c) break;
      consumers = [...consumers.filter((x) => x !== c), c];
      const got = handOut(c.ch, q);
      c.has.add(got.dtag);
      say({ ev: "deliver", ch: c.ch, ctag: c.ctag, ...got });
    }
  }
}

const operations = {
  hello: () => ({ protocol: "seriatim-conform/1", name: "example.js", can }),
  reset,
  sync: () => {}, // every answer is given when all is done
  open: () => {},
  publish: ({ q, m }) => void queue(q).push({ at: ++positions, m, redelivered: false }),
  get: ({ ch, q }) => (queue(q).length ? handOut(ch, q) : {}),
  qos: ({ ch, prefetch = 0 }) => void (channel(ch).prefetch = prefetch),
  consume: ({ ch, q, ctag }) => void consumers.push({ ch, q, ctag, prefetch: channel(ch).prefetch, has: new Set() }),
  cancel: ({ ch, ctag }) => void (consumers = consumers.filter((c) => c.ch !== ch || c.ctag !== ctag)),
  close: ({ ch }) => {
    consumers = consumers.filter((c) => c.ch !== ch);
    [...channel(ch).held.values()].forEach(requeue);
    delete channels[ch];
  },
  ack: (r) => settle(r, false),
  nack: (r) => settle(r, r.requeue ?? true),
  reject: (r) => settle(r, r.requeue ?? true),
};

function settle({ ch, dtag, multiple }, back) {
  const all = multiple && dtag === 0; // what the channel holds
  const tags = [...channel(ch).held].filter(([t]) => all || t === dtag || (multiple && t <= dtag));
  if (!all && !tags.length) return { ok: false, code: 406, why: `unknown tag ${dtag}` };
  for (const [tag, entry] of tags) {
    channel(ch).held.delete(tag);
    consumers.filter((c) => c.ch === ch).forEach((c) => c.has.delete(tag));
    if (back) requeue(entry);
  }
}

reset();
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const r = JSON.parse(line);
  const answer = { id: r.id, ok: r.op in operations, ...operations[r.op]?.(r) };
  push();
  say(answer);
});
