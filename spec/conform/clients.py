#!/usr/bin/env python3
"""A queue that speaks seriatim-conform/2: each client has a thread. It needs nothing but Python.

seriatim record --exec "python3 spec/conform/clients.py" --clients 4 --out run.jsonl
"""

import json
import sys
import threading
from bisect import insort
from collections import defaultdict
from queue import SimpleQueue

CAN = ["publish", "get", "ack", "nack", "open", "close", "drop", "redelivered", "queues"]

lock = threading.Lock()  # of the queue: one call at a time changes it
writing = threading.Lock()  # of the output: one line at a time
queues = defaultdict(list)  # by name its entries (position, m, redelivered), always sorted
held = defaultdict(dict)  # by channel, tag: (queue, entry)
tags = defaultdict(int)  # by channel, the last tag
positions = 0


def say(**words):
    with writing:
        print(json.dumps(words), flush=True)


def do(op, ch=0, q="", m="", dtag=0, back=True, **_):
    """One request; what the answer holds beside ok."""
    global positions
    with lock:
        if op == "publish":
            positions += 1
            queues[q].append((positions, m, False))
        elif op == "get":
            if not queues[q]:
                return {}
            entry = queues[q].pop(0)
            tags[ch] += 1
            held[ch][tags[ch]] = (q, entry)
            return {"m": entry[1], "dtag": tags[ch], "redelivered": entry[2]}
        elif op in ("ack", "nack", "close"):
            gone = held.pop(ch, {}) if op == "close" else {dtag: held[ch].pop(dtag, None)}
            if None in gone.values():
                return {"ok": False, "code": 406, "why": f"unknown tag {dtag}"}
            for queue, entry in gone.values() if op != "ack" and back else ():
                insort(queues[queue], (entry[0], entry[1], True))
        elif op == "reset":
            queues.clear()
            held.clear()
            tags.clear()
        elif op not in ("open", "sync"):  # these two have nothing to do here
            return {"ok": False, "why": f"cannot {op}"}
        return {}


def client(requests):
    """The thread of one client: it has one request outstanding at most."""
    while True:
        request = requests.get()
        back = request.pop("requeue", True)
        say(**{"id": request["id"], "ok": True, **do(back=back, **request)})


clients = {}
for line in sys.stdin:
    request = json.loads(line)
    if request["op"] == "hello":
        say(id=request["id"], ok=True, protocol="seriatim-conform/2", name="clients.py", can=CAN)
        continue
    number = request.get("client", 0)
    if number not in clients:
        clients[number] = SimpleQueue()
        threading.Thread(target=client, args=(clients[number],), daemon=True).start()
    clients[number].put(request)
