"""An interleaving, or a recorded history, as data to be shown; which of its steps matter, and which two are its race.

The same for the terminal and for pages.
"""

from __future__ import annotations

import msgspec

from seriatim_models.report.reconstruct import State, touched


class StepRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the page."""

    n: int
    lane: int
    """Which thread, an index."""
    op: str
    result: str
    preempts: bool
    records: list[str]
    state: int
    """Which state holds after it, an index."""
    witness: bool
    """Whether an event that shows the violation was recorded in it."""
    line: str = ""
    """Of ordinary Python: file, line and the text of the line in which it stands."""
    place: tuple[str, int, str] | None = None
    """Where in the source it is: a key of the story's sources, line and function; None if that is not known."""


class BrokenProperty(msgspec.Struct, frozen=True, kw_only=True):
    """A property that is broken."""

    id: str
    sentence: str
    source: str
    explanation: str


class MessageBar(msgspec.Struct, frozen=True, kw_only=True):
    """One interval of a message, waiting or with a consumer, from the step that began it to the step that ended it."""

    message: str
    by: str
    """Who had it; empty while it waited in the queue."""
    start: int
    end: int
    """One beyond the last step if it never ended."""
    how: str
    """How it ended, in a word."""
    violating: bool
    """Whether an event of it shows the violation."""


class Story(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the page shows: an execution, or a recorded history (`history_view.py`)."""

    id: str
    """Stands in the link to a step."""
    title: str
    what: list[str]
    """What is wrong, in words."""
    broken: list[BrokenProperty]
    end: str
    left_out: str
    """Why steps are missing, if any are."""
    replay: str
    threads: list[str]
    steps: list[StepRow]
    states: list[State]
    """Without repetition."""
    initial: int
    """Which of them holds before the first step."""
    good: int
    bad: int
    """Number of the last good and of the first bad step; both 0 if nothing is wrong."""
    arrows: list[tuple[int, int]]
    """Steps of different threads, one of which must come before the other."""
    no_return: str = ""
    """From which step on every continuation violates the property, in a sentence; empty if it was not computed."""
    bars: list[MessageBar] = []
    """Of a recorded history: who had which message when."""
    sources: dict[str, dict[int, str]] = {}
    """Lines of source around those in which steps are, by file and number."""
    traceback: str = ""
    """Of the exception that ended a program of ordinary Python."""

    @property
    def matter(self) -> list[int]:
        """Numbers of the steps that a reader sees first."""
        return sorted(steps_that_matter(self))

    @property
    def heading(self) -> str:
        """The title of its page."""
        wrong = self.broken or self.what
        return f"{self.title}: {'how it breaks' if wrong else 'what was seen'}"


def steps_that_matter(story: Story) -> set[int]:
    """Numbers of the steps of which the order matters, and of those that show what went wrong.

    A step that meets one of another thread on the same cell; a change of a list that others read, and a look that
    found its end; where a thread was interrupted; what shows the violation, and the first bad step.
    Of a recorded history, where nothing is known of steps between events, all matter.
    """
    if story.bars:
        return {step.n for step in story.steps}
    meeting = {n for pair in story.arrows for n in pair} | _in_shared_lists(story)
    seen = {s.n for s in story.steps if s.witness or s.preempts or s.n == story.bad}
    return meeting | seen


def race(story: Story) -> tuple[int, int] | None:
    """The two steps that met badly: of different threads, on one object, before it was too late; None if none did.

    A thread that acts on what it saw before another changed it: its look and that change, on the object of the first
    bad step, or on one that it then changed itself. Otherwise the last two steps that met.
    """
    if not story.bad:
        return None
    steps = {step.n: step for step in story.steps}
    bad = steps[story.bad]
    overtaken = [
        (earlier, later)
        for earlier, later in story.arrows
        if later < bad.n
        and steps[earlier].lane == bad.lane
        and _object(steps[earlier]) == _object(bad)
        and _changes(steps[later])
    ]
    stale = [pair for pair in story.arrows if pair[1] < bad.n and _acted_on_the_past(story, *pair)]
    met = [pair for pair in story.arrows if pair[1] <= bad.n]
    return max(overtaken or stale or met, key=lambda pair: (pair[1], pair[0]), default=None)


def _acted_on_the_past(story: Story, look: int, change: int) -> bool:
    """Whether the thread that looked went on to change what another had changed meanwhile."""
    looked, changed = story.steps[look - 1], story.steps[change - 1]
    return (
        not _changes(looked)
        and _changes(changed)
        and any(
            s.lane == looked.lane and _object(s) == _object(looked) and _changes(s)
            for s in story.steps[change:]
        )
    )


def _object(step: StepRow) -> str:
    access = touched(step.op, step.result)
    return "" if access is None else access[0]


def _in_shared_lists(story: Story) -> set[int]:
    """Steps on the links of a list that several threads use: those that changed one or found the end."""
    users: dict[str, set[int]] = {}
    links = [s for s in story.steps if _object(s).rpartition(".")[2] in ("next", "marked")]
    for step in links:
        users.setdefault(_object(step), set()).add(step.lane)
    changed = {_object(s) for s in links if _changes(s)}
    return {
        s.n
        for s in links
        if len(users[_object(s)]) > 1
        and _object(s) in changed
        and (_changes(s) or s.result in ("", "None"))
    }


def _changes(step: StepRow) -> bool:
    access = touched(step.op, step.result)
    return access is not None and access[1]
