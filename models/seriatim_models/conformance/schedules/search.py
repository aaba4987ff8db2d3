"""Search for clients and a schedule in which an implementation does what it must not, and make both short.

Clients are drawn, small ones first. Each are run over the unmodified implementation under every schedule that can make
a difference (`explorer.python`), as far as their share of the time allows. Each history is judged three ways: by the
properties of a profile; by whether some order of the calls is one of a sequential queue, which also says whether a
client that waits for ever has to (`sequential`); and by the explorer itself, which knows deadlock, a thread that spins,
and an exception that leaves a call. After the first violation calls and clients are left out as long as the same
one stays; the explorer then makes the schedule short.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from seriatim_models.conformance.judging import FindingTally
from seriatim_models.conformance.local import load
from seriatim_models.conformance.profiles import PROFILES, Profile
from seriatim_models.conformance.protocol import Fault
from seriatim_models.conformance.schedules import play
from seriatim_models.conformance.schedules.clients import (
    Clients,
    SavedClients,
    Surface,
    drawn,
    shapes,
    smaller,
    surface_of,
    worth_running,
)
from seriatim_models.conformance.schedules.history import events, intervals, unexplained
from seriatim_models.conformance.schedules.sequential import FIFO, order_of
from seriatim_models.explorer import Dpor, ExplorerError, Replay
from seriatim_models.explorer.errors import NondeterministicProgram
from seriatim_models.explorer.model.world import Record, World
from seriatim_models.explorer.python.execution import Search
from seriatim_models.explorer.python.front import PythonResult, explored, known_modules
from seriatim_models.explorer.python.places import Race
from seriatim_models.explorer.python.program import Target
from seriatim_models.explorer.python.sandbox import NOT_OBSERVED
from seriatim_models.properties.base import Finding, Verdict
from seriatim_models.properties.standing import confirmed

LINEARIZABLE = "linearizable"
ENDS = "ends"
"""Stand for a property's id: what is judged besides the properties of a profile."""
SHARE = 0.06
"""What part of the time the schedules of one set of clients may take."""
SHORTENING = 0.5
"""How much longer than asked for, as a part of that, making a violation short may take."""
MAX_STEPS = 2000


class ClientTarget(msgspec.Struct, frozen=True, kw_only=True):
    """What is tested: ``module:factory``, and what is known of its objects."""

    where: str
    modules: tuple[str, ...]
    """Whose code is observed."""
    surface: Surface
    order: str
    """The order of a sequential queue that it has, "" if it has none of those known."""
    name: str
    version: str = ""


class ScheduleWitness(msgspec.Struct, kw_only=True):
    """Clients, and a schedule of theirs in which something is violated."""

    property: str
    clients: Clients
    why: str
    token: str
    result: PythonResult


class ScheduleOutcome(msgspec.Struct, kw_only=True):
    """What was found under every schedule of some clients."""

    name: str
    profile: str
    seed: int
    verdict: Verdict = Verdict.INCONCLUSIVE
    why: str = ""
    findings: list[Finding] = []
    witness: ScheduleWitness | None = None
    programs: int = 0
    exhausted: int = 0
    """Of the programs, those of which every schedule was run."""
    capped: list[str] = []
    """The clients of the others."""
    unseen: dict[str, int] = {}
    """Why the verdict on some was withheld."""
    executions: int = 0
    traces: int = 0
    seconds: float = 0.0


Progress = Callable[[str, int], None]


def implementation(where: str, modules: Sequence[str] = ()) -> ClientTarget:
    """What there is at ``module:factory``. Raises `Fault` in one sentence if clients cannot call it."""
    try:
        known_modules(
            modules
        )  # first: some modules put something else in their place when they are imported
    except ExplorerError as error:
        raise Fault("start", str(error)) from error
    factory = load(where)
    module = where.partition(":")[0]
    try:
        target = factory()
        surface = surface_of(target, factory)
    except ValueError as error:
        raise Fault("start", f"{where}: {error}") from error
    except Exception as error:
        raise Fault("start", f"{where} cannot be made: {error}") from error
    top = module.partition(".")[0]
    library = top in sys.stdlib_module_names
    observed = () if library else (module if top in NOT_OBSERVED else top,)
    return ClientTarget(
        where=where,
        modules=tuple(dict.fromkeys((*observed, *modules))),
        surface=surface,
        order="" if surface.leases else _order(factory, surface),
        name=getattr(target, "name", "")
        or (where.rpartition(":")[2] if isinstance(target, tuple) else type(target).__name__),
        version=str(getattr(target, "version", "")),
    )


def _order(factory: Callable[..., object], surface: Surface) -> str:
    names = surface.ways.get("put", ("put",))[0], surface.ways.get("get", ("get",))[0]
    return order_of(lambda: factory(**surface.options(0)), *names)


def default_profile(implementation: ClientTarget) -> Profile:
    """What an object is held to where no profile is named: of a stack or a heap all that has no order in it."""
    if implementation.surface.leases:
        return PROFILES["any"]
    whole = PROFILES["fifo-adt"]
    if implementation.order == FIFO:
        return whole
    unordered = tuple(p for p in whole.properties if p.id != "P20")
    return replace(whole, id="fifo-adt without P20", properties=unordered)


class _Judged:
    """The histories of one search: each is judged once."""

    def __init__(self, implementation: ClientTarget, profile: Profile, clients: Clients) -> None:
        self.implementation, self.profile, self.clients = implementation, profile, clients
        self.tallies: dict[str, FindingTally] = {}
        self.known: dict[object, tuple[str, str] | None] = {}
        self.violated = ""
        """The property that the last history violated."""

    def __call__(self, world: World) -> str | None:
        """What is wrong with an execution, None if nothing is."""
        if world.end in ("cut", "failed", "blocked", "superseded"):
            return None
        records = [r for r in world.records if r.ev == "call"]
        key = tuple((r.thread, *map(str, r.args.items())) for r in records)
        if key not in self.known:
            self.known[key] = self._judge(records)
        wrong = self.known[key]
        if wrong is None:
            return None
        self.violated = wrong[0]
        return f"{wrong[0]}: {wrong[1]}"

    def _judge(self, records: Sequence[Record]) -> tuple[str, str] | None:
        clients, surface = self.clients, self.implementation.surface
        found = events(clients, records, surface.leases)
        wrong: list[tuple[str, str]] = []
        for form in self.profile.properties:
            finding = confirmed(form, form.check(found))
            self.tallies.setdefault(form.id, FindingTally()).add(finding)
            if finding.verdict is Verdict.VIOLATED:
                wrong.append((form.id, finding.explanation))
        if order := self.implementation.order:
            calls = intervals(clients, records)
            why = unexplained(calls, order, clients.maxsize)
            verdict = Verdict.VIOLATED if why else Verdict.OK
            found_so = Finding(
                property=LINEARIZABLE,
                verdict=verdict,
                n_tested=1,
                n_violations=int(bool(why)),
                explanation=why,
            )
            self.tallies.setdefault(LINEARIZABLE, FindingTally()).add(found_so)
            if why:
                wrong.append((ENDS if "waits for ever" in why else LINEARIZABLE, why))
        return wrong[0] if wrong else None


def run_clients(
    implementation: ClientTarget,
    profile: Profile,
    clients: Clients,
    seconds: float | None,
    token: str | None = None,
    places: dict[str, Race] | None = None,
) -> tuple[PythonResult, str, dict[str, FindingTally]]:
    """Run clients under every schedule, or that of a token; the result, what it violates, and the findings.

    `places` are known to race with other clients: then the search need not find out first. Those found are added.
    """
    explorations = Search()
    explorations.promoted.update(places or {})
    judge = _Judged(implementation, profile, clients)
    module, _, factory = implementation.where.partition(":")
    surface, callers = implementation.surface, clients.callers
    made = module, factory, surface.options(clients.maxsize)
    steps = [
        surface.step(number, call, callers[number]) for number, call in enumerate(clients.calls)
    ]
    per_client = [
        tuple(s for s, caller in zip(steps, callers, strict=True) if caller == n)
        for n in range(1, len(clients.threads) + 1)
    ]
    rest = steps[sum(map(len, per_client)) :]
    after, before = tuple(rest[: len(clients.after)]), tuple(rest[len(clients.after) :])
    calls = tuple(per_client), after, clients.waits and not surface.leases
    opened = tuple(range(1, len(clients.threads) + 2)) if surface.opens else ()
    args = (*made, *calls) if surface.tasks else (*made, opened, *calls, surface.empty, before)
    target = Target(
        play.__name__,
        str(Path(play.__file__ or "")),
        "play_tasks" if surface.tasks else "play",
        args,
    )
    result = explored(
        target,
        explorations,
        Dpor(real_time=True) if token is None else Replay(token),
        implementation.modules,
        seconds,
        {"on_execution": judge, "name": "clients", "max_steps": MAX_STEPS},
    )
    if places is not None:
        places.update({label: Race(label, 0, 0) for label in explorations.promoted})
    violated = ""
    if result.verdict == "violated":
        case = result.counterexample
        assert case is not None
        # Its own command would name the driver's file; the clients are not in it.
        result.counterexample = replace(case, command="", program=str(clients))
        kinds = {v.kind for v in case.violations} - {"racing pair", "timers out of order"}
        violated = judge.violated if kinds == {"property"} and judge.violated else ENDS
    return result, violated, judge.tallies


class _ScheduleSearch:
    def __init__(
        self, implementation: ClientTarget, profile: Profile, seconds: float, seed: int,
        on_progress: Progress,
    ) -> None:  # fmt: skip
        self.implementation, self.profile, self.seconds = implementation, profile, seconds
        self.on_progress = on_progress
        self.begun = time.monotonic()
        self.outcome = ScheduleOutcome(name=implementation.name, profile=profile.id, seed=seed)
        self.tallies: dict[str, FindingTally] = {p.id: FindingTally() for p in profile.properties}
        self.places: dict[str, Race] = {}
        self.cases = 0
        """Programs of which every schedule was run and in which something could be judged."""

    def left(self, more: float = 0.0) -> float:
        return self.begun + self.seconds * (1 + more) - time.monotonic()

    def attempt(self, clients: Clients, seconds: float) -> tuple[PythonResult, str]:
        """Run clients, and count what came of it."""
        result, violated, tallies = run_clients(
            self.implementation, self.profile, clients, seconds, places=self.places
        )
        out = self.outcome
        out.programs += 1
        out.executions += result.executions
        out.traces += result.traces or 0
        self.on_progress("searching", out.programs)
        for name, tally in tallies.items():
            self.tallies.setdefault(name, FindingTally()).add(tally.finding(name, ""))
        if violated == ENDS:
            case = result.counterexample
            self.tallies[ENDS] = FindingTally(
                Verdict.VIOLATED, 1, 0, 1, "" if case is None else str(case.what)
            )
        if result.verdict == "ok":
            out.exhausted += 1
            self.cases += any(t.n_tested for t in tallies.values())
        elif result.verdict == "inconclusive":
            if result.untested:
                out.unseen[result.untested] = out.unseen.get(result.untested, 0) + 1
            else:
                out.capped.append(str(clients))
        return result, violated

    def run(self, programs: int | None) -> ScheduleOutcome:
        """Search until something is found, or the time or the number of programs is over."""
        surface = self.implementation.surface
        known = shapes(surface)[::-1]
        n, seen = 1, set()
        while self.left() > 0 and (programs is None or self.outcome.programs < programs):
            clients = known.pop() if known and n % 2 else drawn(surface, self.outcome.seed, n // 2)
            n += 1
            if n > 100_000:
                break
            if clients in seen or not worth_running(clients):
                continue
            seen.add(clients)
            # What is slow to import may need all of it for its first clients.
            patience = 1 if self.outcome.exhausted else 2 ** (self.outcome.programs // 2)
            share = max(0.5, min(self.left(), SHARE * self.seconds * patience))
            try:
                result, violated = self.attempt(clients, share)
            except NondeterministicProgram as error:
                self.outcome.programs += 1
                self.outcome.unseen[f"{clients}: {error}"] = 1
                continue
            if violated:
                self.outcome.witness = self.shortened(clients, result, violated)
                break
        return self.finished()

    def shortened(self, clients: Clients, result: PythonResult, violated: str) -> ScheduleWitness:
        """Leave out clients and calls as long as the same is violated."""
        again = True
        while again and self.left(SHORTENING) > 0:
            again = False
            for candidate in smaller(self.implementation.surface, clients):
                if (left := self.left(SHORTENING)) <= 0:
                    break
                self.on_progress("making it short", self.outcome.programs)
                less, what, _ = run_clients(
                    self.implementation, self.profile, candidate, min(left, SHARE * self.seconds)
                )
                if what == violated:
                    clients, result, again = candidate, less, True
                    break
        # Once more with nothing known beforehand: then the pairs that race here are shown.
        fresh, what, _ = run_clients(self.implementation, self.profile, clients, self.seconds)
        if what == violated:
            result = fresh
        case = result.counterexample
        assert case is not None
        return ScheduleWitness(
            property=violated, clients=clients, why=str(case.what), token=case.token, result=result
        )

    def finished(self) -> ScheduleOutcome:
        """The outcome, with the verdict over all programs."""
        out = self.outcome
        out.seconds = time.monotonic() - self.begun
        if out.witness is not None and out.witness.property == ENDS:
            self.tallies[ENDS].explanation = out.witness.why
        elif ENDS not in self.tallies and out.exhausted:
            self.tallies[ENDS] = FindingTally(Verdict.OK, out.exhausted)
        out.findings = [tally.finding(name, out.name) for name, tally in self.tallies.items()]
        numbers = (
            f"{out.exhausted:,} of {out.programs:,} sets of clients under every schedule, "
            f"{out.executions:,} executions"
        )
        if out.witness is not None:
            out.verdict = Verdict.VIOLATED
            out.why = out.witness.why
        elif self.cases and not out.unseen:
            out.verdict = Verdict.OK
            out.why = f"nothing was wrong: {numbers}, at the granularity of Python operations"
        elif out.unseen:
            out.why = f"nothing was wrong, but not all was seen: {next(iter(out.unseen))}"
        else:
            out.why = f"no set of clients with a case was run under every schedule ({numbers})"
        if out.capped and out.witness is None:
            out.why += f"; {len(out.capped)} were capped by the time, the first is {out.capped[0]}"
        return out


def search(
    implementation: ClientTarget,
    profile: Profile,
    *,
    seconds: float = 30.0,
    seed: int = 0,
    programs: int | None = None,
    on_progress: Progress = lambda what, count: None,
) -> ScheduleOutcome:
    """Draw clients from `seed` and run each under every schedule, until something is violated or the time is over.

    At most `programs` sets of clients. Raises `explorer.ExplorerError` for what cannot be explored.
    """
    return _ScheduleSearch(implementation, profile, seconds, seed, on_progress).run(programs)


def replayed(
    implementation: ClientTarget, profile: Profile, saved: SavedClients
) -> ScheduleOutcome:
    """Run the schedule of a file. Raises `explorer.BadToken` if it is one of other sources."""
    begun = time.monotonic()
    result, violated, tallies = run_clients(
        implementation, profile, saved.clients, None, saved.token
    )
    case = result.counterexample
    out = ScheduleOutcome(name=implementation.name, profile=profile.id, seed=0)
    out.programs, out.executions, out.traces = 1, result.executions, result.traces or 0
    out.findings = [tally.finding(name, out.name) for name, tally in tallies.items()]
    out.why, out.seconds = result.why, time.monotonic() - begun
    if case is not None:
        out.verdict = Verdict.VIOLATED
        out.witness = ScheduleWitness(
            property=violated, clients=saved.clients, why=str(case.what), token=case.token, result=result
        )  # fmt: skip
    return out
