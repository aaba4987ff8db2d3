"""One run of ordinary Python: an execution of the explorer that also knows the places that threads touch."""

from __future__ import annotations

import linecache
import random
import sys
import types
import weakref
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import cache, partial
from pathlib import PurePath
from typing import Any

from seriatim_models.explorer.errors import ExplorerError
from seriatim_models.explorer.model.execution import Execution
from seriatim_models.explorer.model.guard import program_text
from seriatim_models.explorer.model.operations import READ, WRITE, Footprint, Operation, Thread
from seriatim_models.explorer.python.places import (
    CONTENTS,
    GLOBALS,
    NAMES_READ,
    OF_EXECUTION,
    STORED,
    ObjectRecord,
    Race,
    SharedPlace,
    number_in_text,
    where,
)
from seriatim_models.explorer.python.rewrite import LIBRARY, SITES, number_of
from seriatim_models.explorer.python.waiting_loops import (
    ACCESS,
    KINDS,
    LOCKS_LOOKED_AT,
    LOOPS,
    LoopRounds,
)

SPIN = 100_000
"""Accesses in one step after which a thread may be in a loop that waits for another."""


COUNTED = 2_000
"""So many accesses after that are looked at."""


BESIDE_THREADS = "asyncio beside threads"
"""What is promoted when a program has both: from then on the modules of asyncio are observed."""


LIFETIMES = "lifetimes"
"""What is promoted when a program makes something that shows when objects die."""


MODULES_LOOKED_INTO = "sys.modules is looked into"
"""What is promoted when a program with threads does so: from then on imports are accesses to it."""


COUNTED_TOGETHER = ("threads", "timers_ended", "timers_bounded")
"""Attributes of a `Search` of which several processes keep the largest."""


CLOSED_LAST = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)
"""What does something when its last reference goes."""
HELD_WEAKLY = (*CLOSED_LAST, memoryview)
"""What is seen to go with its last reference, so that its record has a weak one: of a view, what it looks at may change
its size then."""


def _forget(records: dict[int, ObjectRecord], key: int, _: object) -> None:
    """A generator or a view has died: its address may be used again."""
    records.pop(key, None)


ABSENT = object()
"""What stands for a name that was not there."""


BROUGHT: dict[str, frozenset[str]] = {}
"""What the import of each real module by an execution has imported in this process."""


class Promotion(ExplorerError):
    """A place raced: the search begins again, with each access to it a step."""


class PlaceAccess(Operation):
    """An access to a promoted place; the data itself is read or written by the code that follows."""

    __slots__ = ("footprint", "site", "write")
    code = 40

    def __init__(self, place: SharedPlace, write: bool, site: int, footprint: Footprint) -> None:
        self.obj = place
        self.write = write
        self.site = site
        self.footprint = footprint

    def touch(self) -> Footprint:
        return self.footprint

    def run(self, thread: Thread, alternative: int) -> None:
        return None

    def describe(self) -> str:
        return f"{'write' if self.write else 'read'} {self.obj.label}"


KINDS[PlaceAccess] = ACCESS


class Search:
    """What the executions of one search have in common."""

    def __init__(self, *, every_access: bool = False) -> None:
        self.every_access = every_access
        """Whether each access to a place is a step, raced or not: slow, and what promotion is compared with."""
        self.promoted: dict[str, Race] = {}
        self.found: dict[str, Race] = {}
        """Races that were found since the search began: places to be promoted."""
        self.unseen: dict[str, None] = {}
        """What touched shared objects where no access is announced, in words: the verdict is withheld."""
        self.needed: list[str] = []
        """Modules that must be observed, and are not."""
        self.stop_at: int | None = None
        """The number of the step behind which a debugger stops, see `debugger`."""
        self.threads = 0
        """The most threads that an execution had."""
        self.traceback = ""
        """Of the last exception that left a thread."""
        self.overtook = self.last_overtook = ""
        """Which timer of this execution, and of the last one that was wrong, ended before one that was set earlier."""
        self.timers = "any"
        """The order in which timers of asyncio may end: ``any`` or ``deadline``, see `event_loop`."""
        self.there = frozenset(sys.modules).difference(*BROUGHT.values())
        """The modules that were imported before, and not by an execution."""
        self.stdout = sys.stdout
        self.outputs = (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__, None)
        """Where a program that prints would show it."""
        self.races_are_errors = False
        """Whether a data race is a violation; then what a program itself reads and writes orders no threads."""
        self.timers_ended = False
        """Whether a timer of asyncio has ended anywhere."""
        self.longest_loop = (0, 0)
        """The most rounds of a loop in one execution, and its site."""
        self.timers_bounded = False
        """Whether a bound of `event_loop` has kept a timer from ending, or from waiting longer."""

    def goes_round(self, site: int, rounds: int) -> None:
        """Note a loop that has gone round so many times."""
        self.longest_loop = max(self.longest_loop, (rounds, site))

    def begin_again(self) -> None:
        """Forget what was found."""
        for found in (self.promoted, self.found, self.unseen, self.needed):
            found.clear()

    def promote(self) -> None:
        """Take over what was found, and forget what only the last round saw.

        Of races inside the library beside asyncio only the first is: handles that race because the queue which they
        go through was no place yet need not be places themselves.
        """
        if BESIDE_THREADS in self.promoted:
            inside = [
                place for place, race in self.found.items()
                if race.second and of_library(race.first) and of_library(race.second)
            ]  # fmt: skip
            for place in inside[1:]:
                del self.found[place]
        self.promoted.update(self.found)
        self.found.clear()
        self.unseen.clear()
        self.longest_loop = (0, 0)

    def seen(self) -> dict[str, Any]:
        """What the executions of this process have shown, as data for another process."""
        return {
            "found": {p: (SITES[r.first], SITES[r.second]) for p, r in self.found.items()},
            "unseen": list(self.unseen),
            "needed": list(self.needed),
            **{name: getattr(self, name) for name in COUNTED_TOGETHER},
        }

    def add(self, seen: dict[str, Any]) -> None:
        """Add what another process of the same round has seen; twice the same changes nothing."""
        for place, sites in seen["found"].items():
            self.found.setdefault(place, Race(place, *map(number_of, sites)))
        self.unseen.update(dict.fromkeys(seen["unseen"]))
        self.needed += [module for module in seen["needed"] if module not in self.needed]
        for name in COUNTED_TOGETHER:
            setattr(self, name, max(getattr(self, name), seen[name]))


class PythonExecution(Execution):
    """One run of a Python program."""

    rare: bool
    """Whether attributes of classes and modules are places in this round."""
    rounds: LoopRounds | None
    """What decides whether a round of a loop changes anything; None if no loop is known that waits."""
    answers: ObjectRecord | None
    """The place of what abstract classes keep of the answers of a `__subclasshook__`; None if no class has one."""

    stored_outside: list[tuple[types.ModuleType | type, str, object]]
    """What the program has put into modules, or classes of such, that all executions share: into what, name, and what
    was there."""

    mortal = False
    """Whether objects die in it, see `lifetimes`: then none may be kept for longer."""

    steps_show_all_state = False  # a loop may count in what no other thread sees

    __slots__ = (
        "answers",
        "at",
        "at_exit",
        "budget",
        "clocks",
        "coroutines",
        "counted",
        "derived",
        "entered",
        "failed_futures",
        "files",
        "finalizers",
        "found_by_search",
        "generators",
        "heads",
        "importing",
        "looking",
        "loops",
        "module_names",
        "modules",
        "numbers",
        "pasts",
        "racing",
        "rare",
        "records",
        "rounds",
        "search",
        "seen",
        "step_clocks",
        "steps_of",
        "stored_outside",
        "time_at",
        "timed",
        "views",
    )  # fmt: skip

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.pasts: list[int] = []
        """What happens before each step, itself included, as a bit set; may go on to steps that are known to come."""
        self.steps_of: defaultdict[int, int] = defaultdict(int)
        """The steps of each thread, by its number, as bit sets."""
        self.found_by_search = False
        """Whether the search keeps both."""
        self.at: dict[int, int] = {}
        """For each (object, mode) what happens before the steps that touched it, these included."""
        self.racing: dict[str, Race] = {}
        """Races that are violations, by place."""
        self.records: dict[int, ObjectRecord] = {}
        self.numbers: defaultdict[int, int] = defaultdict(int)
        self.budget = SPIN
        self.counted: Counter[tuple[SharedPlace, bool]] | None = None
        """Accesses of a step that has lasted long."""
        self.clocks: defaultdict[Thread, float] = defaultdict(float)
        """The time of each thread, in seconds since the start."""
        self.step_clocks: list[float] = []
        self.time_at: dict[int, float] = {}
        self.timed = False
        """Whether time has passed anywhere."""
        self.importing: dict[str, Thread | None] = {}
        """The modules whose bodies run, and where."""
        self.modules: dict[str, Any] = {}
        """The modules of this execution."""
        self.entered: set[int] = set()
        """The generators, by address, that a thread is in."""
        self.views: dict[int, tuple[object, object]] = {}
        """Views of dicts, with the dict, by address."""
        self.derived: dict[int, tuple[object, tuple[object, ...]]] = {}
        """Objects of C, with those that they were made from and share state with, by address."""
        self.files, self.module_names = (
            ObjectRecord(self, name, OF_EXECUTION, number, True, None)
            for name, number in (("files", 0), ("sys.modules", 4))
        )
        """The place of all files; the places of `sys.modules`: each name, and which there are."""
        self.generators: dict[int, random.Random] = {}
        """What each thread draws from, by its number."""
        self.finalizers: list[object] = []
        """What may be called when an object dies, and the classes with a `__del__` of the program."""
        self.looking: dict[Thread, list[tuple[object, bool, int]]] = {}
        """The lookups by keys that Python compares in which each thread is: container, whether it changes, site."""
        self.heads: dict[Thread, Any] = {}
        """The `threading.Thread` of each thread."""
        self.at_exit: list[Callable[[], object]] = []
        self.coroutines: list[tuple[Any, int]] = []
        """Each coroutine that was made, and where."""
        self.failed_futures: list[Any] = []
        self.loops, self.stored_outside, self.answers = list[Any](), [], None
        super().__init__(*args, **kwargs)
        self.search: Search = self.program.search  # type: ignore[attr-defined]
        promoted = self.search.promoted
        self.rare, self.rounds = any(map(is_rare, promoted)), rounds_of(self, promoted)

    def close(self) -> None:
        """Let go of what still waits, and of its coroutines."""
        super().close()
        for coroutine, _ in reversed(self.coroutines):
            for _ in range(8):  # it may await something while it is being closed
                try:
                    coroutine.close()
                except BaseException:  # whatever a program does in `finally`
                    continue
                break
        for module, name, before in reversed(self.stored_outside):
            if before is not ABSENT:
                setattr(module, name, before)
            elif name in vars(module):
                delattr(module, name)
        # What refers to the execution again and again would wait for the garbage collector.
        for record in list(self.records.values()):  # a generator that dies takes its own away
            record.places.clear()
            record.owner = None
        self.files.obj = self.module_names.obj = None
        self.answers = None
        del self.world
        for kept in (
            self.coroutines, self.failed_futures, self.loops, self.records, self.heads, self.looking, self.importing,
            self.modules, self.clocks, self.views, self.derived, self.finalizers, self.at_exit,
            self.stored_outside,
        ):  # fmt: skip
            kept.clear()

    # -- happens-before -------------------------------------------------------------------------------------------

    def know(self, pasts: list[int], steps_of: defaultdict[int, int]) -> None:
        """As `Execution.know`. Where races are violations, what a program reads and writes orders nothing there."""
        if self.rounds is not None:
            self.rounds.searched = True
        if not self.search.races_are_errors:
            self.pasts, self.steps_of, self.found_by_search = pasts, steps_of, True

    def step(self, thread: Thread, alternative: int) -> Any:
        """As `Execution.step`, with the past of the step kept."""
        if not self.found_by_search:
            self._keep_past(thread)
        self.budget = SPIN
        self.counted = None
        if self.rounds is not None and thread.op is not None:
            self.rounds.step(thread, thread.op)
        if self.timed:
            self._merge_clocks(thread)
        else:
            self.step_clocks.append(0.0)
        return super().step(thread, alternative)

    def _keep_past(self, thread: Thread) -> None:
        """Keep what happens before the step that a thread is about to take."""
        op = thread.op
        assert op is not None
        footprint = op.touch()
        at, pasts = self.at, self.pasts
        past = bit = 1 << len(pasts)
        last = thread.last if thread.last >= 0 else thread.born
        if last >= 0:
            past |= pasts[last]
        enabler = op.after()
        if enabler >= 0:
            past |= pasts[enabler]
        if not (
            self.search.races_are_errors and type(op) is PlaceAccess and not of_library(op.site)
        ):
            for key in footprint.rivals:
                past |= at.get(key, 0)
            for key in footprint.keys:
                at[key] = at.get(key, 0) | past
        pasts.append(past)
        self.steps_of[thread.tid] |= bit

    def _merge_clocks(self, thread: Thread) -> None:
        """It is at least as late as in all steps that happen before this one."""
        op = thread.op
        assert op is not None
        footprint, enabler = op.touch(), op.after()
        now = self.clocks[thread]
        if thread.last < 0 <= thread.born:
            now = max(now, self.step_clocks[thread.born])
        if enabler >= 0:
            now = max(now, self.step_clocks[enabler])
        for key in footprint.rivals:
            now = max(now, self.time_at.get(key, 0.0))
        for key in footprint.keys:
            self.time_at[key] = max(self.time_at.get(key, 0.0), now)
        self.clocks[thread] = now
        self.step_clocks.append(now)

    def pass_time(self, thread: Thread, seconds: float) -> None:
        """Let a thread's clock go on."""
        self.timed = True
        self.clocks[thread] += seconds

    def ordered(self, thread: Thread, step: int) -> bool:
        """Whether what `thread` did after that step happens before what is done now."""
        past = self.pasts[self.steps - 1] if self.steps else 0
        return bool((self.steps_of[thread.tid] & past) >> (step + 1))

    def describe(self, thread: Thread) -> str:
        """The announced operation, with the line of the program that it stands in."""
        said = super().describe(thread)
        if hasattr(thread.op, "at_line"):
            return said
        site = getattr(thread.op, "site", 0)
        path, line = SITES[site][:2] if site else line_of(thread)
        if not path or not program_text(path):
            path, line = line_of(thread)
        if not path:
            return said
        source = linecache.getline(path, line).strip()
        return f"{said}  [{PurePath(path).name}:{line}: {source}]"

    def begins(self) -> None:
        """A thread begins to run."""

    # -- objects ---------------------------------------------------------------------------------------

    def record(self, obj: object, label: str, made: bool) -> ObjectRecord:
        """Name an object that has no name yet."""
        thread = self.acting
        maker, number = OF_EXECUTION, number_in_text(obj)
        if number and not self.numbers[-1 - number]:
            self.numbers[-1 - number] = 1
        else:  # also of a second class of that name
            maker = 0 if thread is None else thread.tid
            self.numbers[maker] = number = self.numbers[maker] + 1
        key = id(obj)
        weak = None
        if type(obj) in HELD_WEAKLY:
            obj = weak = weakref.ref(obj, partial(_forget, self.records, id(obj)))
        found = ObjectRecord(obj, label, maker, number, made, thread)
        found.weak = weak
        self.records[key] = found
        return found

    def place(self, record: ObjectRecord, name: str) -> SharedPlace:
        """A place of an object that is touched for the first time."""
        label = record.label if name is CONTENTS else f"{record.label}.{name}"
        made = SharedPlace(record, label, self.acting)
        search = self.search
        if search.every_access or label in search.promoted:
            made.index, made.reads, made.writes, _ = self.space.object(
                record.maker, (record.number, name)
            )
        record.places[name] = made
        if name is CONTENTS and record.label.startswith(GLOBALS):
            self.need(NAMES_READ + record.label, 0)
        return made

    # -- accesses --------------------------------------------------------------------------------------

    def touch(
        self, thread: Thread, record: ObjectRecord, name: str, write: bool, site: int
    ) -> None:
        """`thread` is about to read or write a place."""
        place = record.places.get(name)
        if place is None:
            place = self.place(record, name)
        self.access(thread, place, write, site)

    def access(self, thread: Thread, place: SharedPlace, write: bool, site: int) -> None:
        """As `touch`, for a place that is known."""
        if write and self.rounds is not None:
            self.rounds.wrote(thread, place)
        if place.index >= 0:
            self.visible(thread, place, write, site)
        if place.index < 0 or self.search.races_are_errors:
            self.keep(thread, place, write, site)
        self.budget -= 1
        if self.budget < 0:
            self.long_step(place, write)

    def keep(self, thread: Thread, place: SharedPlace, write: bool, site: int) -> None:
        """Keep an access for the comparison with later ones, and compare it with those before it."""
        if place.thread is not thread:
            self.compare(thread, place, write, site)
        elif write:
            place.write_at = self.steps - 1
            place.write_site = site
        else:
            place.read_at = self.steps - 1
            place.read_site = site

    def visible(self, thread: Thread, place: SharedPlace, write: bool, site: int) -> None:
        """An access that is a step."""
        if place.thread is not thread:
            self._seen_by_another(place, site)
        thread.op = PlaceAccess(place, write, site, place.writes if write else place.reads)
        self.switch()

    def touch_all(
        self, thread: Thread, accesses: list[tuple[ObjectRecord, str, bool]], site: int
    ) -> None:
        """`thread` is about to do one operation that reads or writes several places."""
        if len(accesses) == 1:
            self.touch(thread, *accesses[0], site)
            return
        modes: dict[SharedPlace, bool] = {}
        for record, name, write in accesses:
            place = record.places.get(name)
            if place is None:
                place = self.place(record, name)
            modes[place] = modes.get(place, False) or write
        steps = [place for place in modes if place.index >= 0]
        if len(steps) > 1:
            self._writes(thread, [place for place in steps if modes[place]])
            for place in steps:
                if place.thread is not thread:
                    self._seen_by_another(place, site)
            pairs = sorted((place.index, WRITE if modes[place] else READ) for place in steps)
            footprint = self.footprint(tuple(pairs))
            thread.op = PlaceAccess(steps[0], any(modes[p] for p in steps), site, footprint)
            self.switch()
        # Only now: what comes after the step belongs to it.
        for place in sorted(modes, key=lambda place: place.index < 0):
            if len(steps) < 2 or place.index < 0:
                self.access(thread, place, modes[place], site)
            elif self.search.races_are_errors:
                self.keep(thread, place, modes[place], site)

    def _writes(self, thread: Thread, places: list[SharedPlace]) -> None:
        """`thread` is about to write these places in one step."""
        if self.rounds is not None:
            for place in places:
                self.rounds.wrote(thread, place)

    def touch_module(self, name: str, write: bool, site: int) -> None:
        """A name of `sys.modules` is about to be read or written, and with it which names there are."""
        thread = self.current
        if thread is None:
            return
        accesses = [(self.module_names, name, write)]
        if write:
            accesses.append((self.module_names, CONTENTS, True))
        self.touch_all(thread, accesses, site)

    def imports(self, name: str) -> None:
        """As `touch_module`, by an import, of a program that looks into `sys.modules` while it has threads."""
        if len(self.heads) > 1 and MODULES_LOOKED_INTO in self.search.promoted:
            self.touch_module(name, name not in self.modules, 0)

    def compare(self, thread: Thread, place: SharedPlace, write: bool, site: int) -> None:
        """Compare an access to a place that another thread has touched with the accesses before it."""
        if place.thread is not None:
            place.share()
        if not write and (before := place.readers.get(thread)) and before[0] == self.steps - 1:
            return  # it has read it in this step
        if place.record.opaque:
            self._seen_by_another(place, site)
        here, racing = self.steps - 1, False
        for other, (step, there) in place.writers.items():
            if other is not thread and not self.ordered(other, step):
                self.race(place, there, site)
                racing = True
        if not write:
            place.readers[thread] = (here, site)
            return
        for other, (step, there) in place.readers.items():
            if other is not thread and not self.ordered(other, step):
                self.race(place, there, site)
                racing = True
        if racing or self.search.races_are_errors:
            place.writers[thread] = (here, site)
        else:
            place.owned(thread, here, site)

    def _seen_by_another(self, place: SharedPlace, site: int) -> None:
        record = place.record
        record.shared = True
        if record.opaque:
            self.search.unseen[record.opaque] = None
        if not record.made and place.index >= 0:
            self.search.unseen[
                f"{place.label} at {where(site)}: two threads use an object that was made where nothing is observed"
            ] = None

    def race(self, place: SharedPlace, first: int, second: int) -> None:
        """Keep a race; the place is promoted when the execution has ended, if the race itself is no violation."""
        race = Race(place.label, first, second)
        errors = self.search.races_are_errors and place.record is not self.files
        if errors and not (of_library(first) and of_library(second)):
            self.racing.setdefault(place.label, race)
        elif place.index < 0:
            self.search.found.setdefault(place.label, race)

    @property
    def data_races(self) -> list[str]:
        """The data races of this execution, where they are violations."""
        return [str(race) for race in self.racing.values()]

    def changes(self, thread: Thread | None) -> None:
        """Note that a thread does something that is no access to a place and may change what it does later."""
        if self.rounds is not None and thread is not None:
            self.rounds.changes[thread] += 1

    def promotion(self, what: str) -> Promotion:
        """What is raised to begin the search again."""
        return Promotion(what)

    def has_threads(self) -> None:
        """Note that there is a second thread, if asyncio is there: from the next round on it is observed."""
        if "asyncio" in self.modules and len(self.heads) > 1 and not self.search.every_access:
            self.need(BESIDE_THREADS, 0)

    def need(self, label: str, site: int) -> bool:
        """Whether something rarely shared is observed in this round; it will be in the next one."""
        if label in self.search.promoted:
            return True
        self.search.found.setdefault(label, Race(label, 0, site))
        return False

    def opaque(self, thread: Thread, record: ObjectRecord, what: str, site: int) -> None:
        """An object is used where no access is announced."""
        self.changes(thread)
        text = f"{what} at {where(site)} uses {record.label}"
        if record.shared or (record.owner is not None and record.owner is not thread):
            self.search.unseen[text] = None
        record.opaque = text

    def long_step(self, place: SharedPlace, write: bool) -> None:
        """A step of very many accesses: perhaps a loop that waits until another thread changes something.

        What it reads over and over, and never writes, becomes a step, so that the other thread gets its turn.
        """
        if self.counted is None:
            self.counted = Counter()
        self.counted[place, write] += 1
        if self.budget > -COUNTED:
            return
        written = {place for place, write in self.counted if write}
        waits = [p for (p, w), n in self.counted.items() if not w and n > 50 and p not in written]
        for waited in waits:
            self.search.found.setdefault(
                waited.label, Race(waited.label, waited.read_site, waited.read_site)
            )
        self.budget = 1 << 60
        if waits:
            raise Promotion(f"{waits[0].label} is read in a loop")


def is_rare(label: str) -> bool:
    """Whether what is promoted is an attribute of classes or modules."""
    return label.startswith(STORED)


def rounds_of(ex: PythonExecution, promoted: dict[str, Race]) -> LoopRounds | None:
    """What decides whether a round of a loop changes anything, if a loop is known that may wait."""
    if LOOPS not in promoted:
        return None
    mortal, neutral = LIFETIMES in promoted, LOCKS_LOOKED_AT not in promoted
    return LoopRounds(ex, neutral_locks=neutral, mortal=mortal)


@cache
def of_library(site: int) -> bool:
    """Whether an access is made by the standard library: `Event.is_set` reads what `Event.set` writes under a lock.

    Site 0 is inside of something of C: the table of `functools.lru_cache`.
    """
    path = PurePath(SITES[site].path)
    return site == 0 or (path.is_relative_to(LIBRARY) and "site-packages" not in path.parts)


def line_of(thread: Thread) -> tuple[str, int]:
    """Path and line of the program where a thread stands that has announced an operation; "" if there is none."""
    frame = None if thread.greenlet is None else thread.greenlet.gr_frame
    while frame is not None and not program_text(frame.f_code.co_filename):
        frame = frame.f_back
    return ("", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)
