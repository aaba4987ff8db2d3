#!/usr/bin/env python3
"""The example with one mistake in it, to see that the drive notices.

seriatim conform --exec "python3 spec/conform/faulty.py requeues-to-the-tail"

Without a name it lists them. A mistake is an edit of example.py's text: what stands there, and what instead.
"""

import pathlib
import sys

ANSWER = "    push()\n"  # what comes before every answer


def before_a_nack(code):
    return ANSWER, f"    if request['op'] == 'nack':\n        {code}\n" + ANSWER


MISTAKES = {
    # name: (what it breaks, (what stands there, what instead))
    "loses-on-close": ("P1", ("            requeue(*held)", "            pass")),
    "makes-up-messages": ("P1", before_a_nack("queues['q'].append((number, 'ghost', False))")),
    "delivers-after-ack": ("P1", ('if op != "ack" and requeue_', "if requeue_")),
    "doubles": ("P2", ("m, False))", "m, False))\n        queues[q] += queues[q][-1:]")),
    "forgets-the-flag": ("P3", ("entry[1], True)", "entry[1], False)")),
    "marks-what-is-new": ("P3", ("m, False)", "m, number % 3 == 0)")),
    "newest-first": ("P4", ("queues[q].pop(0)", "queues[q].pop()")),
    "requeues-to-the-tail": ("P5", ("insort(queues[q], (entry[0]", "queues[q].append((entry[0]")),
    "exceeds-the-prefetch": ("P7", ("len(has) < consumer[3]", "len(has) <= consumer[3]")),
    "skips-tags": ("P8", ("channel.tag += 1", "channel.tag += 2")),
    "pushes-after-cancel": ("P9", ("c[:2] != (ch, ctag)", "c")),
    # The rest does not answer as it should.
    "says-nothing": ("answers", before_a_nack("import time; time.sleep(1e6)")),
    "says-garbage": ("answers", before_a_nack("print('Traceback:', flush=True)")),
    "says-half-a-line": (
        "answers",
        before_a_nack("import time; print(end='{\"id\":', flush=True); time.sleep(1e6)"),
    ),
    "says-gigabytes": (
        "answers",
        before_a_nack("while True: say(ev='deliver', m='m0', dtag=1, why='x' * 1000)"),
    ),
    "dies": ("answers", before_a_nack("sys.exit('out of luck')")),
    "does-not-listen": (
        "answers",
        before_a_nack("import time; sys.stdin.close(); time.sleep(1e6)"),
    ),
    "will-not-end": (
        "nothing; but it and its offspring must be killed",
        (
            "\nreset()",
            "\nimport os, signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
            "os.fork() or time.sleep(1e6)\nos.fork() or (os.setsid(), time.sleep(1e6))\nreset()",
        ),
    ),
}

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in MISTAKES:
        sys.exit("\n".join(f"{name:22} breaks {breaks}" for name, (breaks, _) in MISTAKES.items()))
    source = pathlib.Path(__file__).with_name("example.py").read_text(encoding="utf-8")
    old, new = MISTAKES[sys.argv[1]][1]
    assert source.count(old) == 1, f"{old!r} stands {source.count(old)} times in example.py"
    exec(compile(source.replace(old, new), sys.argv[1], "exec"))
