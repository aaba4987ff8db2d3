"""The hand-over: from who is woken to the thread that serves it, for any number of everything (WK-6).

This is `reference/seriatim/handover.py`: a target has work, its session is put into the connection's set, and the
connection is scheduled, unless it is. Any thread may bring work; IO threads take a connection and serve it. A permit
of the scheduler is given for each connection that is put among the ready ones, and an IO thread draws one before it
takes a connection. Permits are all alike; for the proof each *stands for* one of the ready connections, and a thread
that takes another one leaves its own to the permit of that.
"""

from z3 import And, BoolSort, DeclareSort, If, Implies, Not, Or

from seriatim_workshop.formal.theory import SymbolicState, Term, TransitionSystem, at, every, some

Target, Session, Connection, Thread, Permit = map(
    DeclareSort, ("Target", "Session", "Connection", "Thread", "Permit")
)
Bool = BoolSort()

SYSTEM = TransitionSystem(
    "handover", "from who is woken to who serves it", (Target, Session, Connection, Thread, Permit)
)

SYSTEM.declare("session_of", Target, Session, rigid=True)
SYSTEM.declare("connection_of", Session, Connection, rigid=True)

SYSTEM.declare("waits", Target, Bool)  # it is in its session's set
SYSTEM.declare("queued", Session, Bool)  # it is in its connection's set
SYSTEM.declare("scheduled", Connection, Bool)
SYSTEM.declare("ready", Connection, Bool)

SYSTEM.declare("to_queue", Thread, Session, Bool)  # the thread is bound to put it into that set
SYSTEM.declare("to_schedule", Thread, Connection, Bool)
SYSTEM.declare("to_submit", Thread, Connection, Bool)
SYSTEM.declare("to_check", Thread, Connection, Bool)
SYSTEM.declare("serves", Thread, Session, Bool)
SYSTEM.declare("runs", Thread, Connection, Bool)

SYSTEM.declare("to_permit", Thread, Connection, Bool)  # it is among the ready, its permit to come
SYSTEM.declare("lies", Permit, Bool)  # it may be drawn
SYSTEM.declare("drawn", Thread, Permit, Bool)  # and the thread has taken no connection yet
SYSTEM.declare("stands_for", Permit, Connection)

SYSTEM.declare("in_vain", Thread, Target, Bool)  # it took it, and got nothing for its consumers
SYSTEM.declare(
    "emptied", Thread, Session, Bool
)  # it took it, and has seen nothing wait there since
SYSTEM.declare("ended", Thread, Connection, Bool)  # it ran it, and saw nothing queued since
SYSTEM.declare("adder", Target, Thread)  # who put it into the set last
SYSTEM.declare("queuer", Session, Thread)


@SYSTEM.initially
def start(s: SymbolicState) -> Term:
    return And(
        every(Target, lambda g: Not(s.waits(g))),
        every(Session, lambda n: Not(s.queued(n))),
        every(Connection, lambda c: Not(Or(s.scheduled(c), s.ready(c)))),
        every(Thread, Session, lambda t, n: Not(Or(s.to_queue(t, n), s.serves(t, n)))),
        every(Thread, Connection, lambda t, c: Not(Or(s.to_schedule(t, c), s.to_submit(t, c)))),
        every(Thread, Connection, lambda t, c: Not(Or(s.to_check(t, c), s.runs(t, c)))),
        every(Thread, Connection, lambda t, c: Not(s.to_permit(t, c))),
        every(Permit, lambda p: Not(s.lies(p))),
        every(Thread, Permit, lambda t, p: Not(s.drawn(t, p))),
        every(Thread, Target, lambda t, g: Not(s.in_vain(t, g))),
        every(Thread, Session, lambda t, n: Not(s.emptied(t, n))),
        every(Thread, Connection, lambda t, c: Not(s.ended(t, c))),
    )


# ---- work comes


@SYSTEM.action(t=Thread, g=Target)
def add_target(s: SymbolicState, t: Term, g: Term) -> tuple[Term, SymbolicState]:
    """A target has work: whoever put it into the set sees to its session, unless it serves that just now."""
    n = s.session_of(g)
    return And(Not(s.waits(g)), Not(s.in_vain(t, g))), s.but(
        waits=at(s.waits, g, True),
        to_queue=at(s.to_queue, t, n, Not(s.serves(t, n))),
        emptied=at(s.emptied, t, n, False),
        adder=at(s.adder, g, t),
    )


@SYSTEM.action(t=Thread, g=Target)
def have_a_reason(s: SymbolicState, t: Term, g: Term) -> tuple[Term, SymbolicState]:
    """A consumer of the target was given a message, or was woken: the thread may put the target back."""
    return Or(s.waits(g), s.in_vain(t, g)), s.but(in_vain=at(s.in_vain, t, g, False))


@SYSTEM.action(t=Thread, n=Session)
def see_it_wait(s: SymbolicState, t: Term, n: Term) -> tuple[Term, SymbolicState]:
    """It reads that a target of the session waits."""
    there = some(Target, lambda g: And(s.waits(g), s.session_of(g) == n))
    return there, s.but(emptied=at(s.emptied, t, n, False))


@SYSTEM.action(t=Thread, n=Session)
def add_session(s: SymbolicState, t: Term, n: Term) -> tuple[Term, SymbolicState]:
    """A session has work: whoever put it into the set sees to its connection, unless it runs that just now."""
    c = s.connection_of(n)
    return And(Not(s.queued(n)), Not(s.emptied(t, n))), s.but(
        queued=at(s.queued, n, True),
        queuer=at(s.queuer, n, t),
        ended=at(s.ended, t, c, False),
        to_queue=at(s.to_queue, t, n, False),
        serves=at(s.serves, t, n, False),
        to_schedule=at(s.to_schedule, t, c, Or(s.to_schedule(t, c), Not(s.runs(t, c)))),
    )


@SYSTEM.action(t=Thread, n=Session)
def find_session_queued(s: SymbolicState, t: Term, n: Term) -> tuple[Term, SymbolicState]:
    """It reads that the session is in the set already."""
    return s.queued(n), s.but(
        to_queue=at(s.to_queue, t, n, False),
        serves=at(s.serves, t, n, False),
        ended=at(s.ended, t, s.connection_of(n), False),
    )


@SYSTEM.action(t=Thread, c=Connection)
def see_it_queued(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """It reads that a session of the connection is queued."""
    return Not(nothing_queued(s, c)), s.but(ended=at(s.ended, t, c, False))


@SYSTEM.action(t=Thread, c=Connection)
def schedule(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """A compare-and-set of the flag: whoever wins gives the connection to the IO threads."""
    return And(Not(s.scheduled(c)), Not(s.ended(t, c))), s.but(
        scheduled=at(s.scheduled, c, True),
        to_schedule=at(s.to_schedule, t, c, False),
        to_submit=at(s.to_submit, t, c, True),
    )


@SYSTEM.action(t=Thread, c=Connection)
def find_scheduled(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """That compare-and-set fails: the connection will run after this moment."""
    return s.scheduled(c), s.but(to_schedule=at(s.to_schedule, t, c, False))


@SYSTEM.action(t=Thread, c=Connection)
def submit(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """The connection is put among the ready ones."""
    return s.to_submit(t, c), s.but(
        ready=at(s.ready, c, True),
        to_submit=at(s.to_submit, t, c, False),
        to_permit=at(s.to_permit, t, c, True),
    )


def in_use(s: SymbolicState, p: Term) -> Term:
    """The permit was given, and no connection was taken for it yet."""
    return Or(s.lies(p), some(Thread, lambda t: s.drawn(t, p)))


@SYSTEM.action(t=Thread, c=Connection, p=Permit)
def give_permit(s: SymbolicState, t: Term, c: Term, p: Term) -> tuple[Term, SymbolicState]:
    """After that the thread gives a permit, for whichever IO thread comes first."""
    return And(s.to_permit(t, c), Not(in_use(s, p))), s.but(
        to_permit=at(s.to_permit, t, c, False),
        lies=at(s.lies, p, True),
        stands_for=at(s.stands_for, p, c),
    )


# ---- a connection runs


@SYSTEM.action(t=Thread, p=Permit)
def draw_permit(s: SymbolicState, t: Term, p: Term) -> tuple[Term, SymbolicState]:
    """An IO thread waits for a permit, and draws one."""
    one = every(Permit, lambda q: Not(s.drawn(t, q)))
    return And(s.lies(p), one), s.but(lies=at(s.lies, p, False), drawn=at(s.drawn, t, p, True))


@SYSTEM.action(t=Thread, c=Connection, p=Permit)
def begin_run(s: SymbolicState, t: Term, c: Term, p: Term) -> tuple[Term, SymbolicState]:
    """With it, it takes a ready connection; what stood for that one stands for its own now."""
    mine = s.stands_for(p)
    return And(s.ready(c), s.drawn(t, p)), s.but(
        ready=at(s.ready, c, False),
        runs=at(s.runs, t, c, True),
        drawn=at(s.drawn, t, p, False),
        stands_for=lambda q: If(And(q != p, s.stands_for(q) == c), mine, s.stands_for(q)),
        to_permit=lambda u, d: Or(
            And(s.to_permit(u, d), d != c), And(s.to_permit(u, c), d == mine, mine != c)
        ),
    )


@SYSTEM.action(t=Thread, n=Session)
def take_session(s: SymbolicState, t: Term, n: Term) -> tuple[Term, SymbolicState]:
    """It takes a session of the connection, and serves it."""
    guard = And(s.queued(n), s.runs(t, s.connection_of(n)))
    return guard, s.but(
        queued=at(s.queued, n, False),
        serves=at(s.serves, t, n, True),
        emptied=at(s.emptied, t, n, True),
    )


@SYSTEM.action(t=Thread, g=Target)
def take_target(s: SymbolicState, t: Term, g: Term) -> tuple[Term, SymbolicState]:
    """It takes a target of the session, and lets it pull."""
    guard = And(s.waits(g), s.serves(t, s.session_of(g)))
    return guard, s.but(waits=at(s.waits, g, False), in_vain=at(s.in_vain, t, g, True))


@SYSTEM.action(t=Thread, n=Session)
def leave_session(s: SymbolicState, t: Term, n: Term) -> tuple[Term, SymbolicState]:
    """It reads that the session has no more targets that wait."""
    none = every(Target, lambda g: Not(And(s.waits(g), s.session_of(g) == n)))
    return And(s.serves(t, n), none), s.but(
        serves=at(s.serves, t, n, False), emptied=at(s.emptied, t, n, True)
    )


@SYSTEM.action(t=Thread, c=Connection)
def end_run(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """It lowers the flag, and has to look at the sessions once more (rule 6)."""
    serves = some(Session, lambda n: And(s.serves(t, n), s.connection_of(n) == c))
    return And(s.runs(t, c), Not(serves)), s.but(
        scheduled=at(s.scheduled, c, False),
        runs=at(s.runs, t, c, False),
        to_check=at(s.to_check, t, c, True),
        ended=at(s.ended, t, c, True),
    )


def nothing_queued(s: SymbolicState, c: Term) -> Term:
    return every(Session, lambda n: Not(And(s.queued(n), s.connection_of(n) == c)))


@SYSTEM.action(t=Thread, c=Connection)
def check(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """It looks once more: if there is anything, it schedules the connection like everybody."""
    more = Not(nothing_queued(s, c))
    return s.to_check(t, c), s.but(
        to_check=at(s.to_check, t, c, False),
        to_schedule=at(s.to_schedule, t, c, Or(s.to_schedule(t, c), more)),
        ended=at(s.ended, t, c, And(s.ended(t, c), Not(more))),
    )


# ---- what is always so


@SYSTEM.invariant("WK-6", g=Target)
def targets_are_seen_to(s: SymbolicState, g: Term) -> Term:
    """A target that waits is in a session that is queued, about to be, or served."""
    n = s.session_of(g)
    bound = some(Thread, lambda t: Or(s.to_queue(t, n), s.serves(t, n)))
    return Implies(s.waits(g), Or(s.queued(n), bound))


@SYSTEM.invariant("WK-6", n=Session)
def sessions_are_seen_to(s: SymbolicState, n: Term) -> Term:
    """A session that is queued is in a connection that is scheduled, about to be, or looked at once more."""
    c = s.connection_of(n)
    bound = some(Thread, lambda t: Or(s.to_schedule(t, c), s.to_check(t, c)))
    return Implies(s.queued(n), Or(s.scheduled(c), bound))


@SYSTEM.invariant("WK-6", c=Connection)
def connections_are_seen_to(s: SymbolicState, c: Term) -> Term:
    """A connection that is scheduled is ready, about to be, or runs; what is ready is scheduled."""
    bound = some(Thread, lambda t: Or(s.to_submit(t, c), s.runs(t, c)))
    return And(Implies(s.scheduled(c), Or(s.ready(c), bound)), Implies(s.ready(c), s.scheduled(c)))


@SYSTEM.invariant("WK-6", t=Thread, u=Thread, c=Connection)
def one_at_a_time(s: SymbolicState, t: Term, u: Term, c: Term) -> Term:
    """Of submitting, being ready and running there is one, and one thread that does it."""
    mine, other = Or(s.to_submit(t, c), s.runs(t, c)), Or(s.to_submit(u, c), s.runs(u, c))
    return And(
        Implies(mine, And(s.scheduled(c), Not(s.ready(c)))),
        Implies(And(mine, other), t == u),
        Not(And(s.to_submit(t, c), s.runs(t, c))),
    )


@SYSTEM.invariant("WK-6", t=Thread, n=Session)
def served_where_it_runs(s: SymbolicState, t: Term, n: Term) -> Term:
    """Who serves a session runs its connection."""
    return Implies(s.serves(t, n), s.runs(t, s.connection_of(n)))


@SYSTEM.invariant("WK-6", c=Connection)
def a_permit_for_the_ready(s: SymbolicState, c: Term) -> Term:
    """For a connection that is ready a permit is in use, or is still to be given."""
    given = some(Permit, lambda p: And(in_use(s, p), s.stands_for(p) == c))
    return Implies(s.ready(c), Or(given, some(Thread, lambda t: s.to_permit(t, c))))


@SYSTEM.invariant("WK-6", p=Permit, q=Permit, t=Thread, u=Thread, c=Connection)
def no_permit_too_many(s: SymbolicState, p: Term, q: Term, t: Term, u: Term, c: Term) -> Term:
    """A permit stands for a ready connection, and for each of these there is one, given or to come."""
    mine = And(in_use(s, p), s.stands_for(p) == c)
    return And(
        Implies(Or(mine, s.to_permit(t, c)), s.ready(c)),
        Implies(And(mine, in_use(s, q), s.stands_for(q) == c), p == q),
        Not(And(mine, s.to_permit(t, c))),
        Implies(And(s.to_permit(t, c), s.to_permit(u, c)), t == u),
        Not(And(s.lies(p), s.drawn(t, p))),
        Implies(And(s.drawn(t, p), s.drawn(u, p)), t == u),
    )


# ---- what follows


@SYSTEM.safe("WK-6", t=Thread, p=Permit)
def a_permit_finds_a_connection(s: SymbolicState, t: Term, p: Term) -> Term:
    """Who has drawn a permit finds a connection among the ready ones, whatever others take meanwhile."""
    return Implies(s.drawn(t, p), some(Connection, lambda c: s.ready(c)))


@SYSTEM.safe("WK-6", t=Thread, u=Thread, c=Connection)
def never_on_two_threads(s: SymbolicState, t: Term, u: Term, c: Term) -> Term:
    """No connection runs on two threads."""
    return Implies(And(s.runs(t, c), s.runs(u, c)), t == u)


def quiet(s: SymbolicState) -> Term:
    """No thread is bound to anything, and no permit lies there."""
    return And(
        every(Thread, Session, lambda t, m: Not(Or(s.to_queue(t, m), s.serves(t, m)))),
        every(Thread, Connection, lambda t, c: Not(Or(s.to_schedule(t, c), s.to_submit(t, c)))),
        every(Thread, Connection, lambda t, c: Not(Or(s.to_check(t, c), s.runs(t, c)))),
        every(Thread, Connection, lambda t, c: Not(s.to_permit(t, c))),
        every(Permit, lambda p: Not(in_use(s, p))),
    )


@SYSTEM.safe("WK-6", g=Target, n=Session)
def nobody_is_left_waiting(s: SymbolicState, g: Term, n: Term) -> Term:
    """When no thread is bound to anything and no permit lies there, nothing waits."""
    return Implies(quiet(s), Not(Or(s.waits(g), s.queued(n))))


@SYSTEM.step("AP-1", g=Target)
def a_target_is_put_back_for_a_reason(s: SymbolicState, after: SymbolicState, g: Term) -> Term:
    """Nobody takes a target, gets nothing for its consumers, and puts it back: it would be served for ever."""
    return Implies(And(after.waits(g), Not(s.waits(g))), Not(s.in_vain(after.adder(g), g)))


@SYSTEM.step("AP-1", n=Session)
def a_session_is_queued_for_a_reason(s: SymbolicState, after: SymbolicState, n: Term) -> Term:
    """Nobody takes a session, sees nothing wait there, and queues it again."""
    return Implies(And(after.queued(n), Not(s.queued(n))), Not(s.emptied(after.queuer(n), n)))


@SYSTEM.step("AP-1", t=Thread, c=Connection)
def a_connection_is_scheduled_for_a_reason(
    s: SymbolicState, after: SymbolicState, t: Term, c: Term
) -> Term:
    """Nobody runs a connection, sees nothing queued after that, and schedules it again."""
    schedules = And(after.to_submit(t, c), Not(s.to_submit(t, c)))
    return Implies(schedules, Not(s.ended(t, c)))


# ---- what is possible


@SYSTEM.witness(n=Session, c=Connection, t=Thread)
def work_comes_while_it_ends(s: SymbolicState, n: Term, c: Term, t: Term) -> Term:
    """A session is queued, its connection is not scheduled, and only the thread that ran it will see that."""
    nobody = every(Thread, lambda u: Not(s.to_schedule(u, c)))
    there = And(s.queued(n), s.connection_of(n) == c, Not(s.scheduled(c)), s.to_check(t, c))
    return And(there, nobody)


# ---- broken variants


@SYSTEM.broken(
    "add_target", "a_target_is_put_back_for_a_reason", "AP-1", "a target that always has more",
    t=Thread, g=Target,
)  # fmt: skip
def add_target_again(s: SymbolicState, t: Term, g: Term) -> tuple[Term, SymbolicState]:
    """It puts a target back whether or not there was anything for it."""
    return Not(s.waits(g)), add_target(s, t, g)[1]


@SYSTEM.broken(
    "add_session", "a_session_is_queued_for_a_reason", "AP-1", "a session that always has more",
    t=Thread, n=Session,
)  # fmt: skip
def add_session_again(s: SymbolicState, t: Term, n: Term) -> tuple[Term, SymbolicState]:
    """It queues a session whether or not anything waits there."""
    return Not(s.queued(n)), add_session(s, t, n)[1]


@SYSTEM.broken(
    "schedule", "a_connection_is_scheduled_for_a_reason", "AP-1", "a run that is always followed by another",
    t=Thread, c=Connection,
)  # fmt: skip
def schedule_again(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """Having run a connection it schedules it whether or not anything is queued."""
    return Not(s.scheduled(c)), schedule(s, t, c)[1]


@SYSTEM.broken(
    "end_run", "sessions_are_seen_to", "WK-6", "mutant connection-not-looked-at-again",
    t=Thread, c=Connection,
)  # fmt: skip
def end_run_for_good(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """Having lowered the flag it does not look once more."""
    guard, after = end_run(s, t, c)
    return guard, after.but(to_check=s.to_check)


@SYSTEM.broken(
    "leave_session", "targets_are_seen_to", "WK-6", "mutant session-done-with-one-target",
    t=Thread, n=Session,
)  # fmt: skip
def leave_session_early(s: SymbolicState, t: Term, n: Term) -> tuple[Term, SymbolicState]:
    """It has served one target, and does not look whether others wait."""
    return s.serves(t, n), leave_session(s, t, n)[1]


@SYSTEM.broken(
    "schedule", "one_at_a_time", "WK-6", "mutant connection-on-two-threads",
    t=Thread, c=Connection,
)  # fmt: skip
def schedule_always(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """Each notification gives the connection to the IO threads."""
    return s.to_schedule(t, c), schedule(s, t, c)[1]


@SYSTEM.broken(
    "submit", "a_permit_for_the_ready", "WK-6", "a permit for the first of the ready only",
    t=Thread, c=Connection,
)  # fmt: skip
def submit_beside_others(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """A connection that comes among others that are ready gets no permit of its own."""
    guard, after = submit(s, t, c)
    alone = every(Connection, lambda d: Not(s.ready(d)))
    return guard, after.but(to_permit=at(s.to_permit, t, c, alone))


@SYSTEM.broken(
    "give_permit", "no_permit_too_many", "WK-6", "a permit before the connection is ready",
    t=Thread, c=Connection, p=Permit,
)  # fmt: skip
def give_permit_first(s: SymbolicState, t: Term, c: Term, p: Term) -> tuple[Term, SymbolicState]:
    """A permit is given for a connection that is not yet among the ready ones."""
    return And(s.to_submit(t, c), Not(in_use(s, p))), give_permit(s, t, c, p)[1]
