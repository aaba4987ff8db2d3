"""Who is woken, and who rests: for any number of messages, consumers and threads (WK-1).

This is `reference/seriatim/queue.py`, rules 5 to 7: announce, look again, pass it on. Consumers are of one priority.
Each consumer is served by a thread of its own, `io`; any thread may make a message available.
A *walk* goes over the Interested consumers and wakes the first for whom it finds something.

Two lemmas come from the other systems. A move between lists is one step here (`lists`: a consumer is in one list).
A look may miss a message only while the thread that made it available still owes rewinds,
which it does before its walk (`entries`: nothing wanted behind a pointer, but what somebody is bound to announce).
"""

from z3 import And, BoolSort, DeclareSort, EnumSort, Implies, Not, Or

from seriatim_workshop.formal.theory import SymbolicState, Term, TransitionSystem, at, every, some

Message, Consumer, Thread = map(DeclareSort, ("Message", "Consumer", "Thread"))
List, (NOT_INTERESTED, INTERESTED, NOTIFIED) = EnumSort(
    "Listed", ("NOT_INTERESTED", "INTERESTED", "NOTIFIED")
)
Phase, (IDLE, AWAKE, LOOKING, WALKING) = EnumSort("Phase", ("IDLE", "AWAKE", "LOOKING", "WALKING"))
Bool = BoolSort()

SYSTEM = TransitionSystem("wakeups", "who is woken and who rests", (Message, Consumer, Thread))

SYSTEM.declare("wants", Consumer, Message, Bool, rigid=True)
SYSTEM.declare("io", Consumer, Thread, rigid=True)  # the thread that serves it
SYSTEM.declare("serves", Thread, Consumer, rigid=True)  # whom the thread serves

SYSTEM.declare("available", Message, Bool)
SYSTEM.declare("announcer", Message, Thread)  # who made it available last
SYSTEM.declare("preparing", Thread, Message, Bool)  # it made it available, and still owes rewinds
SYSTEM.declare("about", Thread, Message)  # the message for whose sake a publisher walks

SYSTEM.declare("listed", Consumer, List)
SYSTEM.declare("phase", Consumer, Phase)  # what its thread is doing for it
SYSTEM.declare("permit", Consumer, Bool)  # a wake-up on its way
SYSTEM.declare("giving", Thread, Consumer, Bool)  # moved to Notified by the thread, not yet woken
SYSTEM.declare("scanned", Consumer, Message, Bool)  # in its present look it saw no use for it

SYSTEM.declare("todo", Thread, Consumer, Bool)  # the thread's walk has not come to it yet
SYSTEM.declare("seen", Thread, Consumer, Message, Bool)  # on its behalf the walk saw no use for it
SYSTEM.declare("passing", Thread, Bool)  # the walk is for whatever there is, not for one message


def walks(s: SymbolicState, t: Term) -> Term:
    return some(Consumer, lambda c: s.todo(t, c))


def useless(s: SymbolicState, c: Term, m: Term) -> Term:
    """A look on behalf of `c` may pass over `m` at this moment."""
    return Or(Not(s.available(m)), Not(s.wants(c, m)), s.preparing(s.announcer(m), m))


def idle(s: SymbolicState, t: Term) -> Term:
    """It is free to begin something."""
    return And(
        Not(walks(s, t)),
        every(Message, lambda m: Not(s.preparing(t, m))),
        every(Consumer, lambda c: Not(s.giving(t, c))),
    )


@SYSTEM.initially
def start(s: SymbolicState) -> Term:
    return And(
        every(Message, lambda m: Not(s.available(m))),
        every(Thread, Message, lambda t, m: Not(s.preparing(t, m))),
        every(Consumer, lambda c: And(s.listed(c) == NOT_INTERESTED, s.phase(c) == IDLE)),
        every(Consumer, lambda c: And(Not(s.permit(c)), s.serves(s.io(c)) == c)),
        every(Thread, Consumer, lambda t, c: Not(Or(s.todo(t, c), s.giving(t, c)))),
    )


# ---- a message becomes available


@SYSTEM.action(t=Thread, m=Message)
def make_available(s: SymbolicState, t: Term, m: Term) -> tuple[Term, SymbolicState]:
    """A new message, or one that is released (rule 5: available first)."""
    return And(Not(s.available(m)), idle(s, t)), s.but(
        available=at(s.available, m, True),
        announcer=at(s.announcer, m, t),
        preparing=at(s.preparing, t, m, True),
        about=at(s.about, t, m),
    )


def begin_walk(s: SymbolicState, t: Term, whom: Term, passing: Term) -> SymbolicState:
    return s.but(
        todo=lambda u, c: Or(And(u == t, whom(c)), And(u != t, s.todo(u, c))),
        seen=lambda u, c, m: And(u != t, s.seen(u, c, m)),
        passing=at(s.passing, t, passing),
    )


@SYSTEM.action(t=Thread, m=Message)
def announce(s: SymbolicState, t: Term, m: Term) -> tuple[Term, SymbolicState]:
    """All pointers are moved back; now it looks for somebody to take it, among all that are Interested."""
    after = begin_walk(s, t, lambda c: True, False).but(preparing=at(s.preparing, t, m, False))
    return s.preparing(t, m), after


# ---- a walk


@SYSTEM.action(t=Thread, c=Consumer)
def skip_absent(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """The consumer is not in Interested while the walk is under way."""
    return And(s.todo(t, c), s.listed(c) != INTERESTED), s.but(todo=at(s.todo, t, c, False))


@SYSTEM.action(t=Thread, c=Consumer)
def skip_unwilling(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """The walk is for one message, and the consumer does not want that one."""
    guard = And(s.todo(t, c), Not(s.passing(t)), Not(s.wants(c, s.about(t))))
    return guard, s.but(todo=at(s.todo, t, c, False))


@SYSTEM.action(t=Thread)
def stop_early(s: SymbolicState, t: Term) -> tuple[Term, SymbolicState]:
    """The walk is for one message, and that one has been taken."""
    guard = And(Not(s.passing(t)), walks(s, t), Not(s.available(s.about(t))))
    return guard, s.but(todo=lambda u, c: And(u != t, s.todo(u, c)))


@SYSTEM.action(t=Thread, c=Consumer, m=Message)
def see(s: SymbolicState, t: Term, c: Term, m: Term) -> tuple[Term, SymbolicState]:
    """The walk looks at a message on behalf of a consumer, and has no use for it."""
    return And(s.todo(t, c), useless(s, c, m)), s.but(seen=at(s.seen, t, c, m, True))


@SYSTEM.action(t=Thread, c=Consumer)
def skip_useless(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """It found nothing for this consumer."""
    guard = And(s.todo(t, c), every(Message, lambda m: s.seen(t, c, m)))
    return guard, s.but(todo=at(s.todo, t, c, False))


@SYSTEM.action(t=Thread, c=Consumer)
def notify(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """It found something, and moves the consumer from Interested to Notified. Its walk is over."""
    return And(s.todo(t, c), s.listed(c) == INTERESTED), s.but(
        listed=at(s.listed, c, NOTIFIED),
        giving=at(s.giving, t, c, True),
        todo=lambda u, d: And(u != t, s.todo(u, d)),
    )


@SYSTEM.action(t=Thread, c=Consumer)
def wake(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """Having moved it, it wakes the consumer."""
    return s.giving(t, c), s.but(giving=at(s.giving, t, c, False), permit=at(s.permit, c, True))


# ---- a consumer's thread


@SYSTEM.action(c=Consumer)
def wake_up(s: SymbolicState, c: Term) -> tuple[Term, SymbolicState]:
    """It was woken."""
    guard = And(s.permit(c), s.phase(c) == IDLE, idle(s, s.io(c)))
    return guard, s.but(permit=at(s.permit, c, False), phase=at(s.phase, c, AWAKE))


def looks(s: SymbolicState, c: Term) -> SymbolicState:
    return s.but(phase=at(s.phase, c, LOOKING), scanned=lambda d, m: And(d != c, s.scanned(d, m)))


@SYSTEM.action(c=Consumer)
def show_rest(s: SymbolicState, c: Term) -> tuple[Term, SymbolicState]:
    """Rule 6: it is seen to rest, in Interested, and then looks."""
    guard = And(s.phase(c) == AWAKE, s.listed(c) != NOT_INTERESTED)
    return guard, looks(s, c).but(listed=at(s.listed, c, INTERESTED))


@SYSTEM.action(c=Consumer)
def nothing_wished(s: SymbolicState, c: Term) -> tuple[Term, SymbolicState]:
    """It was woken and has lost its interest meanwhile."""
    return And(s.phase(c) == AWAKE, s.listed(c) == NOT_INTERESTED), s.but(
        phase=at(s.phase, c, IDLE)
    )


@SYSTEM.action(c=Consumer, m=Message)
def scan(s: SymbolicState, c: Term, m: Term) -> tuple[Term, SymbolicState]:
    """It looks at a message, or past the end of the list, and has no use for it."""
    return And(s.phase(c) == LOOKING, useless(s, c, m)), s.but(scanned=at(s.scanned, c, m, True))


@SYSTEM.action(c=Consumer, m=Message)
def take(s: SymbolicState, c: Term, m: Term) -> tuple[Term, SymbolicState]:
    """It acquires a message, goes to Notified, and will pull again."""
    guard = And(s.phase(c) == LOOKING, s.available(m), s.wants(c, m))
    return guard, s.but(
        available=at(s.available, m, False),
        listed=at(s.listed, c, NOTIFIED),
        phase=at(s.phase, c, AWAKE),
    )


@SYSTEM.action(c=Consumer)
def run_dry(s: SymbolicState, c: Term) -> tuple[Term, SymbolicState]:
    """It found nothing. Rule 7: somebody else, if anybody, has to look."""
    guard = And(s.phase(c) == LOOKING, every(Message, lambda m: s.scanned(c, m)), idle(s, s.io(c)))
    return guard, begin_walk(s, s.io(c), lambda d: d != c, True).but(phase=at(s.phase, c, WALKING))


@SYSTEM.action(c=Consumer)
def rest(s: SymbolicState, c: Term) -> tuple[Term, SymbolicState]:
    """Its walk is over; it waits to be woken."""
    return And(s.phase(c) == WALKING, idle(s, s.io(c))), s.but(phase=at(s.phase, c, IDLE))


@SYSTEM.action(c=Consumer)
def lose_interest(s: SymbolicState, c: Term) -> tuple[Term, SymbolicState]:
    """Its credit is used up, or it pauses or closes: it leaves the list, and somebody else has to look."""
    guard = And(
        s.listed(c) != NOT_INTERESTED,
        Or(s.phase(c) == IDLE, s.phase(c) == AWAKE),
        idle(s, s.io(c)),
    )
    return guard, begin_walk(s, s.io(c), lambda d: d != c, True).but(
        listed=at(s.listed, c, NOT_INTERESTED), phase=at(s.phase, c, WALKING)
    )


@SYSTEM.action(c=Consumer)
def find_interest(s: SymbolicState, c: Term) -> tuple[Term, SymbolicState]:
    """It wants messages again, or comes new: into Interested, and then it is notified if there is anything."""
    guard = And(s.listed(c) == NOT_INTERESTED, s.phase(c) == IDLE, idle(s, s.io(c)))
    return guard, begin_walk(s, s.io(c), lambda d: d == c, True).but(
        listed=at(s.listed, c, INTERESTED), phase=at(s.phase, c, WALKING)
    )


# ---- what is always so


@SYSTEM.invariant("WK-1", c=Consumer)
def served(s: SymbolicState, c: Term) -> Term:
    """A consumer is served by one thread, which serves nobody else."""
    return s.serves(s.io(c)) == c


@SYSTEM.invariant("WK-1", t=Thread, m=Message, c=Consumer)
def one_thing_at_a_time(s: SymbolicState, t: Term, m: Term, c: Term) -> Term:
    """Who prepares does not walk nor wake, and prepares what it is about; who has notified walks no more."""
    return And(
        Implies(s.preparing(t, m), And(s.about(t) == m, Not(Or(s.todo(t, c), s.giving(t, c))))),
        Implies(s.giving(t, c), every(Consumer, lambda d: Not(s.todo(t, d)))),
    )


@SYSTEM.invariant("WK-1", c=Consumer)
def looks_while_listed(s: SymbolicState, c: Term) -> Term:
    """Who looks is interested: only its own thread could say otherwise."""
    return Implies(s.phase(c) == LOOKING, s.listed(c) != NOT_INTERESTED)


def bound(s: SymbolicState, x: Term, c: Term, m: Term) -> Term:
    """The consumer `x` will look, and if it does not take will pass it on: somebody will look for `c` at `m`."""
    woken = Or(s.permit(x), s.phase(x) == AWAKE, some(Thread, lambda t: s.giving(t, x)))
    looking = And(s.phase(x) == LOOKING, Or(x != c, Not(s.scanned(c, m))))
    return Or(And(s.listed(x) != NOT_INTERESTED, woken), looking)


def ahead(s: SymbolicState, t: Term, c: Term, m: Term) -> Term:
    """The thread `t` has not yet looked at `m` on behalf of `c`, and will."""
    walking = And(s.todo(t, c), Not(s.seen(t, c, m)), Or(s.passing(t), s.about(t) == m))
    return Or(s.preparing(t, m), walking)


def somebody_will_look(s: SymbolicState, c: Term, m: Term) -> Term:
    return Or(
        some(Thread, lambda t: ahead(s, t, c, m)), some(Consumer, lambda x: bound(s, x, c, m))
    )


@SYSTEM.invariant("WK-1", c=Consumer, m=Message)
def no_lost_wakeup(s: SymbolicState, c: Term, m: Term) -> Term:
    """An available wanted message and an Interested consumer imply that some thread is still bound to look."""
    waiting = And(s.available(m), s.wants(c, m), s.listed(c) == INTERESTED)
    return Implies(waiting, somebody_will_look(s, c, m))


@SYSTEM.safe("WK-1", c=Consumer, m=Message)
def at_rest_nothing_waits(s: SymbolicState, c: Term, m: Term) -> Term:
    """When nobody walks, prepares, is woken or looks, no message waits for an Interested consumer that wants it."""
    quiet = And(
        every(Thread, Consumer, lambda t, d: Not(Or(s.todo(t, d), s.giving(t, d)))),
        every(Thread, Message, lambda t, n: Not(s.preparing(t, n))),
        every(Consumer, lambda x: And(Not(s.permit(x)), s.phase(x) == IDLE)),
    )
    return Implies(And(quiet, s.available(m), s.wants(c, m)), s.listed(c) != INTERESTED)


# ---- what is possible


@SYSTEM.witness(c=Consumer, d=Consumer, m=Message)
def seen_to_rest(s: SymbolicState, c: Term, d: Term, m: Term) -> Term:
    """A consumer has looked in vain, and what it passed over has become available since."""
    return And(s.phase(c) == LOOKING, s.scanned(c, m), s.available(m), s.wants(c, m), c != d)


@SYSTEM.witness(c=Consumer, m=Message)
def all_quiet(s: SymbolicState, c: Term, m: Term) -> Term:
    """All is at rest, and a message waits that nobody is interested in now."""
    return And(
        every(Thread, Consumer, lambda t, d: Not(Or(s.todo(t, d), s.giving(t, d)))),
        every(Thread, Message, lambda t, n: Not(s.preparing(t, n))),
        every(Consumer, lambda x: And(Not(s.permit(x)), s.phase(x) == IDLE)),
        s.available(m), s.wants(c, m),
    )  # fmt: skip


# ---- broken variants


@SYSTEM.broken("run_dry", "no_lost_wakeup", "WK-1", "F-6", c=Consumer)
def look_then_rest(s: SymbolicState, c: Term) -> tuple[Term, SymbolicState]:
    """It looked while it was still in Notified, and rests now that it has found nothing."""
    guard, after = run_dry(s, c)
    return guard, after.but(listed=at(s.listed, c, INTERESTED))


@SYSTEM.broken("run_dry", "no_lost_wakeup", "WK-1", "nobody is passed on to", c=Consumer)
def keep_it_to_oneself(s: SymbolicState, c: Term) -> tuple[Term, SymbolicState]:
    """A consumer that was woken, and found nothing for itself, tells nobody."""
    return run_dry(s, c)[0], s.but(phase=at(s.phase, c, IDLE))


@SYSTEM.broken("lose_interest", "no_lost_wakeup", "WK-1", "a wish that ends silently", c=Consumer)
def lose_interest_silently(s: SymbolicState, c: Term) -> tuple[Term, SymbolicState]:
    """A consumer that was to look loses its interest, and tells nobody."""
    guard, _ = lose_interest(s, c)
    return guard, s.but(listed=at(s.listed, c, NOT_INTERESTED))


@SYSTEM.broken("find_interest", "no_lost_wakeup", "WK-1", "mutant registers-without-a-look", c=Consumer)  # fmt: skip
def find_interest_blindly(s: SymbolicState, c: Term) -> tuple[Term, SymbolicState]:
    """It comes into Interested, and does not look at what is there already."""
    return find_interest(s, c)[0], s.but(listed=at(s.listed, c, INTERESTED))


@SYSTEM.broken("announce", "no_lost_wakeup", "WK-1", "walk, then rewind", t=Thread, m=Message)
def announce_nothing(s: SymbolicState, t: Term, m: Term) -> tuple[Term, SymbolicState]:
    """It moves the pointers back, and wakes nobody."""
    return s.preparing(t, m), s.but(preparing=at(s.preparing, t, m, False))
