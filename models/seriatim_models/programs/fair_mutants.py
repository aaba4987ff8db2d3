"""Wrong fair consumers: each the smallest edit of `seriatim.fair` that breaks one property.

Those named ``published-...`` are what the article, or its repository, does.
"""

from __future__ import annotations

from seriatim_models.programs.base import Mutants

FAIR_MUTANTS = Mutants("fair")
mutant = FAIR_MUTANTS.add

ARTICLE = "article 'Fair Consuming with RabbitMQ'"
REPOSITORY = "nithril/article-fair-consuming-with-rabbitmq"

TOKENS_PER_ROUND = """
-        if self._held:
-            self._held = 0
-        else:
-            self.tokens.acquire()  # rule 4: there is one
"""
NEVER_COUNTED = (
    TOKENS_PER_ROUND
    + """+        self.processed = 0  # declared, and never incremented
@@
         for slot in self.slots:
             self._visit(slot)
+        if self.processed > 0:
+            for _ in range(self.processed - 1):
+                self.tokens.acquire()
+        else:
+            self.tokens.release()
+        self._held = 0
"""
)
REPAIRED = (
    TOKENS_PER_ROUND
    + """+        self.processed += 1
@@
-        for slot in self.slots:
-            self._visit(slot)
+        self.processed = 0
+        try:
+            for slot in self.slots:
+                self._visit(slot)
+        finally:
+            if self.processed > 0:
+                for _ in range(self.processed - 1):
+                    self.tokens.acquire()
+            else:
+                self.tokens.release()
+            self._held = 0
"""
)
OUTSIDE = """
             slot.waiting.append((delivery, weight))
             self.host.record("arrive", slot=slot.name, weight=weight)
-            self.tokens.release()
+        self.tokens.release()
"""
RAISES = """
-            return error
+            raise
"""
DROPS = """
-                raise Overrun(f"slot {slot.name}: a delivery beyond its prefetch {slot.prefetch}")
+                self.tokens.release()
+                return
"""

mutant(
    id="published-never-counted",
    killed_by="FQ-4",
    program="fair-park",
    steps=60,
    origin=f"{ARTICLE}, the main loop",
    title="processedMessageCounter is never incremented, so every round gives its token back and permits only grow",
    diff=NEVER_COUNTED,
)
mutant(
    id="published-timed-never-counted",
    killed_by="FQ-4",
    program="fair-timed",
    steps=55,
    origin=f"{ARTICLE}, the main loop with its time limit of five seconds",
    title="every round gives its token back, so the loop is woken for nothing and its time limit never runs out again",
    diff=NEVER_COUNTED,
)
mutant(
    id="published-handler-exception",
    killed_by="FQ-3",
    program="fair-failure",
    steps=8,
    origin=f"{ARTICLE}, the main loop",
    title="an exception of the handler ends the loop, and nothing is served any more",
    diff=RAISES,
)
mutant(
    id="published-offer-dropped",
    killed_by="FQ-4",
    program="fair-overrun",
    steps=43,
    origin=f"{ARTICLE}, handleDelivery",
    title="a delivery that does not fit is dropped, and its token released all the same",
    diff=DROPS,
)
mutant(
    id="published-repair-exception",
    killed_by="FQ-3",
    program="fair-failure",
    steps=8,
    origin=f"{REPOSITORY}, 114266e",
    title="the repaired count stands in a finally clause, and the exception still ends the loop",
    diff=f"{REPAIRED}@@{OUTSIDE}@@{RAISES}",
)
mutant(
    id="published-repair-offer-dropped",
    killed_by="FQ-4",
    program="fair-overrun",
    steps=56,
    origin=f"{REPOSITORY}, 114266e",
    title="the count is repaired, the token of a dropped delivery is not",
    diff=f"{REPAIRED}@@{DROPS}",
)
mutant(
    id="published-release-after-offer",
    killed_by="FQ-4",
    program="fair-park",
    steps=47,
    origin=f"{ARTICLE}, handleDelivery",
    title="a delivery is taken before its token is there, the loop gives the rest up, and is woken for nothing",
    diff=OUTSIDE
    + """@@
         if self._held:
             self._held = 0
         else:
-            self.tokens.acquire()  # rule 4: there is one
+            self.tokens.try_acquire()
""",
)
mutant(
    id="published-looks-twice",
    killed_by="FQ-1",
    program="fair-just-in-time",
    steps=30,
    origin=f"{ARTICLE}, the main loop",
    title=(
        "a visit ends because nothing waits, and looks again whether to forget the deficit: what "
        "arrived between keeps it"
    ),
    diff="""
-        quantum = slot.quantum
+        slot.deficit += slot.quantum
+        quantum = 0
@@
+                if not slot.waiting:
+                    break
                 taken = self._take(slot, quantum)
@@
                 self.settle(delivery, well)
+        with self._lock:
+            if not slot.waiting:
+                slot.deficit = 0
+            self.host.record("visit", slot=slot.name, deficit=slot.deficit, empty=not slot.waiting)

""",
)
mutant(
    id="room-asked-before",
    killed_by="FQ-4",
    program="fair-room-for-one",
    steps=26,
    origin="the lock is given up between the question and the delivery",
    title="whether a slot has room is asked, and the delivery put in later: two that ask at once are both taken in",
    diff="""
         with self._lock:
-            if len(slot.waiting) >= slot.prefetch:
-                raise Overrun(f"slot {slot.name}: a delivery beyond its prefetch {slot.prefetch}")
+            full = len(slot.waiting) >= slot.prefetch
+        if full:
+            raise Overrun(f"slot {slot.name}: a delivery beyond its prefetch {slot.prefetch}")
+        with self._lock:
             slot.waiting.append((delivery, weight))
""",
)
mutant(
    id="taken-and-stopped",
    killed_by="FQ-3",
    program="fair-stop",
    steps=12,
    origin="two statements of the visit turned round",
    title="the loop looks whether it must end when it has taken a delivery, which is then never settled",
    diff="""
-        while not self._stopping.get():
+        while True:
             with self._lock:
                 taken = self._take(slot, quantum)
-            if taken is None:
+            if taken is None or self._stopping.get():
                 return
""",
)
mutant(
    id="token-first",
    killed_by="FQ-4",
    program="fair-park",
    steps=39,
    origin="the two lines of handleDelivery turned round",
    title="the token is released before the delivery is there",
    diff="""
+        self.tokens.release()
         with self._lock:
             if len(slot.waiting) >= slot.prefetch:
@@
-            self.tokens.release()

     def stop(self) -> None:
@@
-        while self.park():
+        for _ in range(5):
+            if not self.park():
+                break
             self.round()
+            if not any(s.waiting for s in self.slots):
+                self._held = 0
""",
)
mutant(
    id="no-token",
    killed_by="FQ-4",
    program="fair-park",
    steps=12,
    origin="a forgotten line",
    title="a delivery to a slot in which another waits brings no token",
    diff="""
-            self.tokens.release()
+            if len(slot.waiting) == 1:
+                self.tokens.release()

     def stop(self) -> None:
""",
)
mutant(
    id="failure-keeps-token",
    killed_by="FQ-4",
    program="fair-failure",
    steps=70,
    origin="accounting after the handler instead of before",
    title="the token of a delivery whose handler raised is returned",
    diff="""
+            self.tokens.release()
             return error
""",
)
mutant(
    id="token-used-when-settled",
    killed_by="FQ-4",
    program="fair-settle-fails",
    steps=40,
    origin="accounting at the end of a delivery instead of its beginning",
    title="a token is used up when its delivery is settled, and so not at all if that fails",
    diff=TOKENS_PER_ROUND
    + """@@
                 self.settle(delivery, well)
+            if self._held:
+                self._held = 0
+            else:
+                self.tokens.acquire()
""",
)
mutant(
    id="stop-token",
    killed_by="FQ-4",
    program="fair-stop",
    steps=7,
    origin="a wake-up that is not accounted for",
    title="stop releases a token and the loop, ending, takes none",
    diff="""
-        if self._held == 0:
+        if self._held == 0 and not self._stopping.get():
             self._sleep()
""",
)
mutant(
    id="idle-saves-up",
    killed_by="FQ-1",
    program="fair-park",
    steps=22,
    origin="rule 3 left out",
    title="a slot keeps its deficit while it is idle",
    diff="""
-            slot.deficit = 0
+            slot.deficit += quantum
             return None
""",
)
mutant(
    id="deficit-reset",
    killed_by="FQ-3",
    program="fair-starve",
    steps=120,
    origin="rule 3 applied to busy slots",
    title="every visit ends with deficit 0, so what weighs more than the quantum is never served",
    diff="""
         if weight > slot.deficit:
+            slot.deficit = 0
""",
)
mutant(
    id="pays-more-than-it-costs",
    killed_by="FQ-3",
    program="fair-heavy",
    steps=39,
    origin="off by one",
    title="a delivery is served when the deficit is more than its weight, which takes a round too many",
    edit=("        if weight > slot.deficit:\n", "        if weight >= slot.deficit:\n"),
    also=("FQ-1",),
)
mutant(
    id="one-each",
    killed_by="FQ-2",
    program="fair-rounds",
    steps=72,
    origin="plain round robin",
    title="each visit serves one delivery, whatever the quantum",
    diff="""
                 self.settle(delivery, well)
+            slot.deficit = 0
+            return
""",
)
mutant(
    id="until-empty",
    killed_by="FQ-1",
    program="fair-rounds",
    steps=196,
    origin="a loop without the second half of its condition",
    title="a visit serves until the slot is empty, or nearly",
    diff="""
-        if weight > slot.deficit:
+        if slot.deficit <= -3:
""",
)
mutant(
    id="first-slot-first",
    killed_by="FQ-3",
    program="fair-rounds",
    steps=129,
    origin="starting over after each success",
    title="a round begins again at the first slot as soon as one was served",
    diff="""
             self._visit(slot)
+            if slot.deficit == 0:
+                return

""",
)
mutant(
    id="quantum-ignored",
    killed_by="FQ-5",
    program="fair-rates",
    steps=1,
    origin="equal pay",
    title="every visit pays the same",
    diff="""
-        quantum = slot.quantum
+        quantum = 3
""",
)
mutant(
    id="stop-each-time",
    killed_by="FQ-4",
    program="fair-stop-twice",
    steps=9,
    origin="the reference itself, until stop was called twice",
    title="each stop brings a token, and the loop ends once: a token is left for which nothing waits",
    diff="""
-        if not self._stopping.get_and_set(True):
-            self.tokens.release()
+        self._stopping.set(True)
+        self.tokens.release()
""",
)
mutant(
    id="runs-after-its-end",
    killed_by="FQ-4",
    program="fair-stop-twice",
    steps=10,
    origin="the reference itself, until run was called after stop",
    title="a loop that has ended and is run again takes the token of a delivery, and ends again",
    diff="""
-        if self._ended:
-            return False
""",
)
mutant(
    id="foreign-slot",
    killed_by="FQ-4",
    program="fair-foreign",
    steps=43,
    origin="the reference itself, until a slot of another consumer was delivered to",
    title="a delivery to a slot that no loop visits brings a token, and the loop goes round for it for ever",
    diff="""
-        if slot not in self.slots:
-            raise ValueError(f"slot {slot.name} is not one of this consumer's")
""",
)
mutant(
    id="exit-unsettled",
    killed_by="FQ-3",
    program="fair-handler-exits",
    steps=13,
    origin="the reference itself, until a handler exited",
    title="a delivery whose handler ends its thread is never settled: it counts against the prefetch for ever",
    diff="""
-            well = False
-            try:
-                well = self._handle(delivery) is None
-            finally:
-                self.settle(delivery, well)
+            self.settle(delivery, self._handle(delivery) is None)
""",
)
