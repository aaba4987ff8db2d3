"""Wrong fair consumers: each the smallest edit of `seriatim.fair` that breaks one property.

Those named ``published-...`` are what the article, or its repository, does.
"""

from __future__ import annotations

from seriatim_models.programs.base import Mutants

FAIR_MUTANTS = Mutants("fair")
mutant = FAIR_MUTANTS.add

ARTICLE = "article 'Fair Consuming with RabbitMQ'"
REPOSITORY = "nithril/article-fair-consuming-with-rabbitmq"

USE = """        if self._held:
            self._held = 0
        else:
            self.tokens.acquire()  # rule 4: there is one
"""
ROUND = """        self.host.record("round")
        for slot in self.slots:
            self._visit(slot)
"""
PUSH = """            slot.waiting.append((delivery, weight))
            self.host.record("arrive", slot=slot.name, weight=weight)
            self.tokens.release()
"""
REFUSE = """                raise Overrun(f"slot {slot.name}: a delivery beyond its prefetch {slot.prefetch}")
"""
FAILED = """            self.host.record("failed", error=repr(error))
            self.settle(delivery, False)
"""
NEVER_COUNTED = (
    (
        USE,
        """        self.processed = 0  # declared, and never incremented
""",
    ),
    (
        ROUND,
        ROUND
        + """        if self.processed > 0:
            for _ in range(self.processed - 1):
                self.tokens.acquire()
        else:
            self.tokens.release()
        self._held = 0
""",
    ),
)
REPAIRED = (
    (
        USE,
        """        self.processed += 1
""",
    ),
    (
        ROUND,
        """        self.processed = 0
        self.host.record("round")
        try:
            for slot in self.slots:
                self._visit(slot)
        finally:
            if self.processed > 0:
                for _ in range(self.processed - 1):
                    self.tokens.acquire()
            else:
                self.tokens.release()
            self._held = 0
""",
    ),
)
OUTSIDE = (
    PUSH,
    """            slot.waiting.append((delivery, weight))
            self.host.record("arrive", slot=slot.name, weight=weight)
        self.tokens.release()
""",
)

mutant(
    "published-never-counted",
    "FQ-4",
    "fair-park",
    60,
    f"{ARTICLE}, the main loop",
    "processedMessageCounter is never incremented, so every round gives its token back and permits only grow",
    *NEVER_COUNTED,
)
mutant(
    "published-handler-exception",
    "FQ-3",
    "fair-failure",
    8,
    f"{ARTICLE}, the main loop",
    "an exception of the handler ends the loop, and nothing is served any more",
    (
        FAILED,
        """            raise error
""",
    ),
)
mutant(
    "published-offer-dropped",
    "FQ-4",
    "fair-overrun",
    43,
    f"{ARTICLE}, handleDelivery",
    "a delivery that does not fit is dropped, and its token released all the same",
    (
        REFUSE,
        """                self.tokens.release()
                return
""",
    ),
)
mutant(
    "published-repair-exception",
    "FQ-3",
    "fair-failure",
    8,
    f"{REPOSITORY}, 114266e",
    "the repaired count stands in a finally clause, and the exception still ends the loop",
    *REPAIRED,
    OUTSIDE,
    (
        FAILED,
        """            raise error
""",
    ),
)
mutant(
    "published-repair-offer-dropped",
    "FQ-4",
    "fair-overrun",
    56,
    f"{REPOSITORY}, 114266e",
    "the count is repaired, the token of a dropped delivery is not",
    *REPAIRED,
    (
        REFUSE,
        """                self.tokens.release()
                return
""",
    ),
)
mutant(
    "published-release-after-offer",
    "FQ-4",
    "fair-park",
    47,
    f"{ARTICLE}, handleDelivery",
    "a delivery is taken before its token is there, the loop gives the rest up, and is woken for nothing",
    OUTSIDE,
    (
        USE,
        """        if self._held:
            self._held = 0
        else:
            self.tokens.try_acquire()
""",
    ),
)
mutant(
    "published-looks-twice",
    "FQ-1",
    "fair-just-in-time",
    36,
    f"{ARTICLE}, the main loop",
    "a visit ends because nothing waits, and looks again whether to forget the deficit: what arrived between keeps it",
    (
        """        earned = False
""",
        """        slot.deficit += slot.quantum
        earned = True
""",
    ),
    (
        """                if not slot.waiting:
                    slot.deficit = 0
                    self.host.record("visit", slot=slot.name, deficit=0, empty=True)
                    return
""",
        """                if not slot.waiting:
                    break
""",
    ),
    (
        """            self._serve(delivery)

""",
        """            self._serve(delivery)
        with self._lock:
            if not slot.waiting:
                slot.deficit = 0
            self.host.record("visit", slot=slot.name, deficit=slot.deficit, empty=not slot.waiting)

""",
    ),
)
mutant(
    "token-first",
    "FQ-4",
    "fair-park",
    39,
    "the two lines of handleDelivery turned round",
    "the token is released before the delivery is there",
    (
        """        with self._lock:
            if len(slot.waiting) >= slot.prefetch""",
        """        self.tokens.release()
        with self._lock:
            if len(slot.waiting) >= slot.prefetch""",
    ),
    (
        """            self.tokens.release()

    def stop""",
        """
    def stop""",
    ),
    (
        """        while self.park():
            self.round()
""",
        """        for _ in range(5):
            if not self.park():
                break
            self.round()
            if not any(s.waiting for s in self.slots):
                self._held = 0
""",
    ),
)
mutant(
    "no-token",
    "FQ-4",
    "fair-park",
    12,
    "a forgotten line",
    "a delivery to a slot in which another waits brings no token",
    (
        """            self.tokens.release()

    def stop""",
        """            if len(slot.waiting) == 1:
                self.tokens.release()

    def stop""",
    ),
)
mutant(
    "failure-keeps-token",
    "FQ-4",
    "fair-failure",
    70,
    "accounting after the handler instead of before",
    "the token of a delivery whose handler raised is given back",
    (
        FAILED,
        """            self.tokens.release()
"""
        + FAILED,
    ),
)
mutant(
    "token-used-when-settled",
    "FQ-4",
    "fair-settle-fails",
    40,
    "accounting at the end of a delivery instead of its beginning",
    "a token is used up when its delivery is settled, and so not at all if that fails",
    (
        """                self._use_token()
                self.host""",
        """                self.host""",
    ),
    (
        """        else:
            self.settle(delivery, True)
""",
        """        else:
            self.settle(delivery, True)
        self._use_token()
""",
    ),
)
mutant(
    "stop-token",
    "FQ-4",
    "fair-stop",
    7,
    "a wake-up that is not accounted for",
    "stop releases a token and the loop, ending, takes none",
    (
        """        if self._held == 0:
            self.host.record("park")""",
        """        if self._held == 0 and not self._stopping.get():
            self.host.record("park")""",
    ),
)
mutant(
    "idle-saves-up",
    "FQ-1",
    "fair-park",
    22,
    "rule 3 left out",
    "a slot keeps its deficit while it is idle",
    (
        """                    slot.deficit = 0
                    self.host.record("visit", slot=slot.name, deficit=0,""",
        '                    self.host.record("visit", slot=slot.name, deficit=slot.deficit,',
    ),
    (
        """                if not slot.waiting:
""",
        """                if not slot.waiting:
                    slot.deficit += 0 if earned else slot.quantum
""",
    ),
)
mutant(
    "deficit-reset",
    "FQ-3",
    "fair-starve",
    120,
    "rule 3 applied to busy slots",
    "every visit ends with deficit 0, so what weighs more than the quantum is never served",
    (
        """                if weight > slot.deficit:
""",
        """                if weight > slot.deficit:
                    slot.deficit = 0
""",
    ),
)
mutant(
    "one-each",
    "FQ-2",
    "fair-rounds",
    72,
    "plain round robin",
    "each visit serves one delivery, whatever the quantum",
    (
        """            self._serve(delivery)
""",
        """            self._serve(delivery)
            slot.deficit = 0
            return
""",
    ),
)
mutant(
    "until-empty",
    "FQ-1",
    "fair-rounds",
    196,
    "a loop without the second half of its condition",
    "a visit serves until the slot is empty, or nearly",
    (
        """                if weight > slot.deficit:
""",
        """                if slot.deficit <= -3:
""",
    ),
)
mutant(
    "first-slot-first",
    "FQ-3",
    "fair-rounds",
    129,
    "starting over after each success",
    "a round begins again at the first slot as soon as one was served",
    (
        """            self._visit(slot)

""",
        """            self._visit(slot)
            if slot.deficit == 0:
                return

""",
    ),
)
mutant(
    "quantum-ignored",
    "FQ-5",
    "fair-rates",
    1,
    "equal pay",
    "every visit pays the same",
    (
        """                    slot.deficit += slot.quantum
""",
        """                    slot.deficit += 3
""",
    ),
)
