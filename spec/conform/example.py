#!/usr/bin/env python3
"""A queue that speaks seriatim-conform/1. It needs nothing but Python.

seriatim conform --exec "python3 spec/conform/example.py"
"""

import json
import sys
from bisect import insort
from collections import defaultdict

CAN = ["publish", "get", "ack", "nack", "reject", "qos", "consume", "cancel", "open", "close"]
CAN += ["multiple", "drop", "redelivered"]


class Channel:
    def __init__(self):
        self.held, self.tag, self.prefetch = {}, 0, 0  # tag: (queue, entry, consumer)


def reset():
    global queues, channels, consumers
    queues = defaultdict(list)  # entries (position, m, redelivered), always sorted
    channels, consumers = defaultdict(Channel), []  # consumers (ch, ctag, q, prefetch) in turn


def say(**words):
    print(json.dumps(words), flush=True)


def hand_out(ch, q, consumer):
    """The first message of a queue, held by the channel from now on."""
    channel, entry = channels[ch], queues[q].pop(0)
    channel.tag += 1
    channel.held[channel.tag] = (q, entry, consumer)
    return {"m": entry[1], "dtag": channel.tag, "redelivered": entry[2]}


def requeue(q, entry, consumer):
    """Back to the old place, for positions never change."""
    insort(queues[q], (entry[0], entry[1], True))


def able(consumer):
    has = [held for held in channels[consumer[0]].held.values() if held[2] == consumer]
    return queues[consumer[2]] and (not consumer[3] or len(has) < consumer[3])


def push():
    """Each message to the consumer whose turn it is."""
    while (consumer := next(filter(able, consumers), None)) is not None:
        consumers.remove(consumer)
        consumers.append(consumer)
        ch, ctag, q, _ = consumer
        say(ev="deliver", ch=ch, ctag=ctag, **hand_out(ch, q, consumer))


def do(
    op, number=0, ch=0, q="", m="", ctag="", dtag=0, multiple=False, requeue_=True, prefetch=0, **_
):
    """One request; what the answer holds beside ok."""
    if op == "hello":
        return {"protocol": "seriatim-conform/1", "name": "example.py", "can": CAN}
    if op == "reset":
        reset()
    elif op == "publish":
        queues[q].append((number, m, False))
    elif op == "get":
        return hand_out(ch, q, None) if queues[q] else {}
    elif op == "qos":
        channels[ch].prefetch = prefetch
    elif op == "consume":
        consumers.append((ch, ctag, q, channels[ch].prefetch))
    elif op == "cancel":
        consumers[:] = [c for c in consumers if c[:2] != (ch, ctag)]
    elif op == "close":
        consumers[:] = [c for c in consumers if c[0] != ch]
        for held in channels.pop(ch, Channel()).held.values():
            requeue(*held)
    elif op in ("ack", "nack", "reject"):
        held = channels[ch].held
        tags = [t for t in held if t == dtag or (multiple and (t <= dtag or dtag == 0))]
        if not tags and not (multiple and dtag == 0):
            return {"ok": False, "code": 406, "why": f"unknown tag {dtag}"}
        for tag in tags:
            gone = held.pop(tag)
            if op != "ack" and requeue_:
                requeue(*gone)
    elif op not in ("open", "sync"):  # these two have nothing to do here
        return {"ok": False, "why": f"cannot {op}"}
    return {}


reset()
for number, line in enumerate(sys.stdin):
    request = json.loads(line)
    request["requeue_"] = request.pop("requeue", True)
    answer = do(number=number, **request)
    push()
    say(**{"id": request["id"], "ok": True, **answer})
