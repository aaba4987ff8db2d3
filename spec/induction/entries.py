"""Entries, their states, and the pointers of consumers: for any number of entries, consumers and threads.

This is `reference/seriatim/queue.py`, rules 1 to 5, one action for each operation on a shared cell that matters.
It does not know groups, credit, browsers and time; a selector is the fixed relation `wants`.

The order of an entry is its `place`, a number. A first-in-first-out queue gives the next one (`append`);
in a queue with priorities an arrival may stand before others (`insert`), and its publisher owes everybody a rewind.
"""

from z3 import And, BoolSort, DeclareSort, EnumSort, If, Implies, IntSort, Not, Or, Xor

from seriatim_workshop.formal.theory import SymbolicState, Term, TransitionSystem, at, every

Entry, Consumer, Thread, Mark = map(DeclareSort, ("Entry", "Consumer", "Thread", "Mark"))
Status, STATES = EnumSort(
    "Status", ("ABSENT", "DELAYED", "AVAILABLE", "RETURNED", "ACQUIRED", "DEQUEUED", "DELETED")
)
ABSENT, DELAYED, AVAILABLE, RETURNED, ACQUIRED, DEQUEUED, DELETED = STATES
Bool, Int = BoolSort(), IntSort()

SYSTEM = TransitionSystem(
    "entries", "entries, their states and the pointers past them", (Entry, Consumer, Thread, Mark)
)

# ---- what there is

SYSTEM.declare("immediate", Entry, Bool, rigid=True)
SYSTEM.declare("wants", Consumer, Entry, Bool, rigid=True)
SYSTEM.declare("overtaking", Bool, rigid=True)  # a queue with priorities

SYSTEM.declare("status", Entry, Status)
SYSTEM.declare("owner", Entry, Consumer)  # whose ACQUIRED it is
SYSTEM.declare("place", Entry, Int)
SYSTEM.declare("top", Int)  # no entry stands behind this place
SYSTEM.declare("holds", Consumer, Entry, Bool)  # what the client believes: its compare-and-set won

SYSTEM.declare("delivered", Entry, Bool)
SYSTEM.declare("dropped", Entry, Bool)  # dequeued without ever having been delivered
SYSTEM.declare("given_up", Entry, Bool)  # its publisher came to the end of enqueuing it

SYSTEM.declare("counted", Entry, Int)  # what it added to the depth of the queue
SYSTEM.declare("uncounted", Entry, Int)  # what it took away again
SYSTEM.declare(
    "disposing", Thread, Entry, Bool
)  # the thread made it DEQUEUED and must take it away
SYSTEM.declare("disposer", Entry, Thread)

SYSTEM.declare("registered", Consumer, Bool)
SYSTEM.declare("pointer", Consumer, Int)  # the place that it looks at next
SYSTEM.declare("mark", Consumer, Mark)  # the identity of the pointer object
SYSTEM.declare("used", Mark, Bool)

SYSTEM.declare("looking", Thread, Bool)  # it has read a pointer, and walks from there
SYSTEM.declare("whose", Thread, Consumer)  # whose pointer that is
SYSTEM.declare("mark_seen", Thread, Mark)
SYSTEM.declare("place_seen", Thread, Int)
SYSTEM.declare("cursor", Thread, Int)  # how far it has got
SYSTEM.declare("passed", Thread, Bool)  # it has seen what stands there, and it is not wanted

SYSTEM.declare("announcer", Entry, Thread)  # who made it available last
SYSTEM.declare("owes", Thread, Entry, Consumer, Bool)  # a rewind


def available(s: SymbolicState, e: Term) -> Term:
    return Or(s.status(e) == AVAILABLE, s.status(e) == RETURNED)


def gone(s: SymbolicState, e: Term) -> Term:
    return Or(s.status(e) == DEQUEUED, s.status(e) == DELETED)


def linked(s: SymbolicState, e: Term) -> Term:
    return s.status(e) != ABSENT


def wanted(s: SymbolicState, c: Term, e: Term) -> Term:
    return And(available(s, e), s.wants(c, e))


@SYSTEM.initially
def start(s: SymbolicState) -> Term:
    return And(
        s.top() == 0,
        every(Entry, lambda e: And(s.status(e) == ABSENT, s.counted(e) == 0, s.uncounted(e) == 0)),
        every(Entry, lambda e: Not(Or(s.delivered(e), s.dropped(e), s.given_up(e)))),
        every(Consumer, Entry, lambda c, e: Not(s.holds(c, e))),
        every(Consumer, lambda c: And(Not(s.registered(c)), s.pointer(c) == 0)),
        every(Thread, lambda t: Not(s.looking(t))),
        every(Thread, Entry, lambda t, e: Not(s.disposing(t, e))),
        every(Thread, Entry, Consumer, lambda t, e, c: Not(s.owes(t, e, c))),
    )


# ---- an entry comes


@SYSTEM.action(e=Entry)
def count(s: SymbolicState, e: Term) -> tuple[Term, SymbolicState]:
    """The queue's depth goes up before the entry is linked."""
    guard = And(s.status(e) == ABSENT, s.counted(e) == 0)
    return guard, s.but(counted=at(s.counted, e, 1))


def announced(s: SymbolicState, t: Term, e: Term) -> SymbolicState:
    """`t` made `e` available, and owes every registered consumer a rewind (rule 4)."""
    return s.but(
        announcer=at(s.announcer, e, t),
        owes=lambda u, f, c: Or(s.owes(u, f, c), And(u == t, f == e, s.registered(c))),
    )


@SYSTEM.action(t=Thread, e=Entry, p=Int)
def append(s: SymbolicState, t: Term, e: Term, p: Term) -> tuple[Term, SymbolicState]:
    """The entry is linked behind the tail. No pointer is past it."""
    guard = And(s.status(e) == ABSENT, s.counted(e) == 1, Not(s.overtaking()), p > s.top(), p > 0)
    after = s.but(
        status=at(s.status, e, AVAILABLE),
        place=at(s.place, e, p),
        top=at(s.top, p),
        announcer=at(s.announcer, e, t),
    )
    return guard, after


def free(s: SymbolicState, p: Term) -> Term:
    return And(p > 0, every(Entry, lambda f: Or(Not(linked(s, f)), s.place(f) != p)))


@SYSTEM.action(t=Thread, e=Entry, p=Int)
def insert(s: SymbolicState, t: Term, e: Term, p: Term) -> tuple[Term, SymbolicState]:
    """The entry is linked behind those of its priority, and before those of a lower one."""
    guard = And(s.status(e) == ABSENT, s.counted(e) == 1, s.overtaking(), free(s, p))
    after = announced(s, t, e).but(
        status=at(s.status, e, AVAILABLE),
        place=at(s.place, e, p),
        top=at(s.top, If(p > s.top(), p, s.top())),
    )
    return guard, after


@SYSTEM.action(e=Entry, p=Int)
def hold(s: SymbolicState, e: Term, p: Term) -> tuple[Term, SymbolicState]:
    """The entry is linked, and nobody gets it yet."""
    guard = And(
        s.status(e) == ABSENT,
        s.counted(e) == 1,
        Not(s.immediate(e)),
        free(s, p),
        Or(s.overtaking(), p > s.top()),
    )
    after = s.but(
        status=at(s.status, e, DELAYED),
        place=at(s.place, e, p),
        top=at(s.top, If(p > s.top(), p, s.top())),
    )
    return guard, after


@SYSTEM.action(t=Thread, e=Entry)
def unhold(s: SymbolicState, t: Term, e: Term) -> tuple[Term, SymbolicState]:
    """The hold ended: one compare-and-set, and whoever won it announces."""
    return s.status(e) == DELAYED, announced(s, t, e).but(status=at(s.status, e, AVAILABLE))


# ---- an entry is acquired, released, dequeued


@SYSTEM.action(e=Entry, c=Consumer)
def acquire(s: SymbolicState, e: Term, c: Term) -> tuple[Term, SymbolicState]:
    """A compare-and-set from AVAILABLE, or from RETURNED, to the consumer's own ACQUIRED."""
    return available(s, e), s.but(
        status=at(s.status, e, ACQUIRED),
        owner=at(s.owner, e, c),
        holds=at(s.holds, c, e, True),
        delivered=at(s.delivered, e, True),
    )


@SYSTEM.action(t=Thread, e=Entry, c=Consumer)
def release(s: SymbolicState, t: Term, e: Term, c: Term) -> tuple[Term, SymbolicState]:
    """Its holder gives it back where it was: a compare-and-set from the consumer's own ACQUIRED."""
    guard = And(s.status(e) == ACQUIRED, s.owner(e) == c)
    after = announced(s, t, e).but(status=at(s.status, e, RETURNED), holds=at(s.holds, c, e, False))
    return guard, after


def dequeued(s: SymbolicState, t: Term, e: Term) -> SymbolicState:
    """`t` won the compare-and-set to DEQUEUED, and has to take the entry away."""
    return s.but(
        status=at(s.status, e, DEQUEUED),
        disposing=at(s.disposing, t, e, True),
        disposer=at(s.disposer, e, t),
    )


@SYSTEM.action(t=Thread, e=Entry, c=Consumer)
def finish(s: SymbolicState, t: Term, e: Term, c: Term) -> tuple[Term, SymbolicState]:
    """Its holder is done with it."""
    guard = And(s.status(e) == ACQUIRED, s.owner(e) == c)
    return guard, dequeued(s, t, e).but(holds=at(s.holds, c, e, False))


@SYSTEM.action(t=Thread, e=Entry)
def give_up(s: SymbolicState, t: Term, e: Term) -> tuple[Term, SymbolicState]:
    """The publisher of an immediate entry finds it as it was born, and drops it."""
    guard = And(s.immediate(e), s.status(e) == AVAILABLE, Not(s.given_up(e)))
    return guard, dequeued(s, t, e).but(
        given_up=at(s.given_up, e, True), dropped=at(s.dropped, e, True)
    )


@SYSTEM.action(e=Entry)
def leave_it(s: SymbolicState, e: Term) -> tuple[Term, SymbolicState]:
    """The publisher of an immediate entry does not find it as it was born: its compare-and-set fails."""
    guard = And(s.immediate(e), linked(s, e), s.status(e) != AVAILABLE, Not(s.given_up(e)))
    return guard, s.but(given_up=at(s.given_up, e, True))


@SYSTEM.action(t=Thread, e=Entry)
def expire(s: SymbolicState, t: Term, e: Term) -> tuple[Term, SymbolicState]:
    """Nobody gets it any more: a compare-and-set from AVAILABLE or RETURNED."""
    return available(s, e), dequeued(s, t, e).but(
        dropped=at(s.dropped, e, Or(s.dropped(e), s.status(e) == AVAILABLE))
    )


@SYSTEM.action(t=Thread, e=Entry)
def uncount(s: SymbolicState, t: Term, e: Term) -> tuple[Term, SymbolicState]:
    """The depth goes down, by whoever made it DEQUEUED."""
    return s.disposing(t, e), s.but(
        uncounted=at(s.uncounted, e, s.uncounted(e) + 1),
        disposing=at(s.disposing, t, e, False),
    )


@SYSTEM.action(e=Entry)
def bury(s: SymbolicState, e: Term) -> tuple[Term, SymbolicState]:
    """DEQUEUED to DELETED, which is final."""
    guard = And(s.status(e) == DEQUEUED, s.uncounted(e) == 1)
    return guard, s.but(status=at(s.status, e, DELETED))


# ---- consumers, and their pointers


@SYSTEM.action(c=Consumer, k=Mark)
def register(s: SymbolicState, c: Term, k: Term) -> tuple[Term, SymbolicState]:
    """A consumer starts before the first entry."""
    return And(Not(s.registered(c)), Not(s.used(k))), s.but(
        registered=at(s.registered, c, True),
        pointer=at(s.pointer, c, 0),
        mark=at(s.mark, c, k),
        used=at(s.used, k, True),
    )


@SYSTEM.action(c=Consumer)
def unregister(s: SymbolicState, c: Term) -> tuple[Term, SymbolicState]:
    """A consumer leaves, and nobody owes it anything."""
    return s.registered(c), s.but(
        registered=at(s.registered, c, False),
        owes=lambda t, e, d: And(s.owes(t, e, d), d != c),
    )


@SYSTEM.action(t=Thread, c=Consumer)
def look(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """Any thread reads a consumer's pointer. Before the first entry there is nothing to see."""
    return s.registered(c), s.but(
        looking=at(s.looking, t, True),
        whose=at(s.whose, t, c),
        mark_seen=at(s.mark_seen, t, s.mark(c)),
        place_seen=at(s.place_seen, t, s.pointer(c)),
        cursor=at(s.cursor, t, s.pointer(c)),
        passed=at(s.passed, t, s.pointer(c) == 0),
    )


@SYSTEM.action(t=Thread, e=Entry)
def pass_by(s: SymbolicState, t: Term, e: Term) -> tuple[Term, SymbolicState]:
    """It reads the state of the entry where it stands, and the consumer would not take it."""
    guard = And(
        s.looking(t), linked(s, e), s.place(e) == s.cursor(t), Not(wanted(s, s.whose(t), e))
    )
    return guard, s.but(passed=at(s.passed, t, True))


def nothing_between(s: SymbolicState, p: Term, q: Term) -> Term:
    """Nothing that could ever be wanted again, at this moment."""
    return every(
        Entry, lambda f: Or(Not(linked(s, f)), gone(s, f), s.place(f) <= p, s.place(f) >= q)
    )


@SYSTEM.action(t=Thread, n=Entry)
def go_on(s: SymbolicState, t: Term, n: Term) -> tuple[Term, SymbolicState]:
    """It reads what comes next behind what it has passed."""
    guard = And(
        s.looking(t),
        s.passed(t),
        linked(s, n),
        s.place(n) > s.cursor(t),
        nothing_between(s, s.cursor(t), s.place(n)),
    )
    return guard, s.but(cursor=at(s.cursor, t, s.place(n)), passed=at(s.passed, t, False))


@SYSTEM.action(t=Thread, q=Int)
def fall_through(s: SymbolicState, t: Term, q: Term) -> tuple[Term, SymbolicState]:
    """It reads that this was the last entry of its priority, and goes on with the head of a lower one."""
    guard = And(
        s.looking(t), s.passed(t), s.overtaking(), q > s.cursor(t), free(s, q),
        nothing_between(s, s.cursor(t), q),
    )  # fmt: skip
    return guard, s.but(cursor=at(s.cursor, t, q))


@SYSTEM.action(t=Thread, k=Mark)
def advance(s: SymbolicState, t: Term, k: Term) -> tuple[Term, SymbolicState]:
    """A compare-and-set of the pointer, from the very object that was read (rule 3)."""
    guard = And(
        s.looking(t),
        s.registered(s.whose(t)),
        s.mark(s.whose(t)) == s.mark_seen(t),
        Not(s.used(k)),
    )
    return guard, moved(s, s.whose(t), s.cursor(t), k).but(looking=at(s.looking, t, False))


def moved(s: SymbolicState, c: Term, p: Term, k: Term) -> SymbolicState:
    """A new pointer object."""
    return s.but(pointer=at(s.pointer, c, p), mark=at(s.mark, c, k), used=at(s.used, k, True))


@SYSTEM.action(t=Thread, e=Entry, c=Consumer, k=Mark)
def rewind(s: SymbolicState, t: Term, e: Term, c: Term, k: Term) -> tuple[Term, SymbolicState]:
    """A fresh pointer object, moved back if it had gone past the entry, and fresh also if not (rule 4)."""
    back = If(s.place(e) < s.pointer(c), s.place(e), s.pointer(c))
    return And(s.owes(t, e, c), Not(s.used(k))), moved(s, c, back, k).but(
        owes=at(s.owes, t, e, c, False)
    )


@SYSTEM.action(t=Thread)
def all_told(s: SymbolicState, t: Term) -> tuple[Term, SymbolicState]:
    """It owes nobody anything, and goes on to look for somebody to take what is there (rule 5)."""
    return every(Entry, Consumer, lambda e, c: Not(s.owes(t, e, c))), s


# ---- what is always so


@SYSTEM.invariant("ES-2", c=Consumer, e=Entry)
def who_holds(s: SymbolicState, c: Term, e: Term) -> Term:
    """A client believes that it holds an entry exactly if it is acquired and the client is its owner."""
    return s.holds(c, e) == And(s.status(e) == ACQUIRED, s.owner(e) == c)


@SYSTEM.invariant("SO-2", e=Entry, f=Entry)
def places(s: SymbolicState, e: Term, f: Term) -> Term:
    """No two entries stand at one place, and none behind the top."""
    return And(
        s.top() >= 0,
        Implies(linked(s, e), And(s.place(e) > 0, s.place(e) <= s.top())),
        Implies(And(linked(s, e), linked(s, f), s.place(e) == s.place(f)), e == f),
    )


@SYSTEM.invariant("IM-1", e=Entry)
def outcome(s: SymbolicState, e: Term) -> Term:
    """The state determines what was ever delivered, and what was dropped undelivered."""
    young = Or(s.status(e) == ABSENT, s.status(e) == DELAYED, s.status(e) == AVAILABLE)
    return And(
        Implies(young, Not(Or(s.delivered(e), s.dropped(e)))),
        Implies(Or(s.status(e) == RETURNED, s.status(e) == ACQUIRED), s.delivered(e)),
        Implies(gone(s, e), Xor(s.delivered(e), s.dropped(e))),
        Implies(s.dropped(e), And(gone(s, e), Not(s.delivered(e)))),
        Implies(s.given_up(e), Not(young)),
        Implies(s.immediate(e), s.status(e) != DELAYED),
    )


@SYSTEM.invariant("ES-5", e=Entry)
def counts(s: SymbolicState, e: Term) -> Term:
    """What an entry added to the depth, and took away, follows from its state and from the threads at work on it."""
    return And(
        Or(s.counted(e) == 0, s.counted(e) == 1),
        Or(s.uncounted(e) == 0, s.uncounted(e) == 1),
        Implies(linked(s, e), s.counted(e) == 1),
        Implies(s.uncounted(e) == 1, gone(s, e)),
        Implies(s.status(e) == DELETED, s.uncounted(e) == 1),
        Implies(And(s.status(e) == DEQUEUED, s.uncounted(e) == 0), s.disposing(s.disposer(e), e)),
    )


@SYSTEM.invariant("ES-5", t=Thread, e=Entry)
def one_disposer(s: SymbolicState, t: Term, e: Term) -> Term:
    """Whoever takes an entry away is the one who made it DEQUEUED, and has not done it yet."""
    return Implies(
        s.disposing(t, e),
        And(s.status(e) == DEQUEUED, s.uncounted(e) == 0, s.disposer(e) == t),
    )


@SYSTEM.invariant("SP-2", c=Consumer, t=Thread)
def marks(s: SymbolicState, c: Term, t: Term) -> Term:
    """A mark in use is used."""
    return And(
        Implies(s.registered(c), s.used(s.mark(c))),
        Implies(s.looking(t), s.used(s.mark_seen(t))),
    )


@SYSTEM.invariant("SP-2", c=Consumer, t=Thread)
def bounds(s: SymbolicState, c: Term, t: Term) -> Term:
    """Nothing points behind the top; a walk whose pointer is still the one it read has not gone back."""
    fresh = And(s.looking(t), s.mark(s.whose(t)) == s.mark_seen(t), s.registered(s.whose(t)))
    return And(
        s.pointer(c) >= 0,
        Implies(And(Not(s.overtaking()), s.registered(c)), s.pointer(c) <= s.top()),
        Implies(And(Not(s.overtaking()), s.looking(t)), s.cursor(t) <= s.top()),
        Implies(s.looking(t), s.place_seen(t) <= s.cursor(t)),
        Implies(fresh, s.pointer(s.whose(t)) == s.place_seen(t)),
    )


@SYSTEM.invariant("SP-2", t=Thread, e=Entry, c=Consumer)
def debts(s: SymbolicState, t: Term, e: Term, c: Term) -> Term:
    """A rewind is owed for an entry that is there, to a consumer that is there."""
    return Implies(s.owes(t, e, c), And(linked(s, e), s.registered(c)))


@SYSTEM.invariant("SP-2", c=Consumer, e=Entry)
def covered(s: SymbolicState, c: Term, e: Term) -> Term:
    """Whatever is wanted behind a pointer, somebody is still bound to move that pointer back."""
    return Implies(
        And(s.registered(c), wanted(s, c, e), s.place(e) < s.pointer(c)),
        s.owes(s.announcer(e), e, c),
    )


@SYSTEM.invariant("SP-2", t=Thread, e=Entry)
def decided(s: SymbolicState, t: Term, e: Term) -> Term:
    """An advance that would still win passes nothing wanted, but what somebody is bound to announce."""
    c = s.whose(t)
    behind = Or(s.place(e) < s.cursor(t), And(s.place(e) == s.cursor(t), s.passed(t)))
    return Implies(
        And(s.looking(t), s.registered(c), s.mark(c) == s.mark_seen(t), wanted(s, c, e), behind),
        s.owes(s.announcer(e), e, c),
    )


# ---- what follows


@SYSTEM.safe("ES-2", c=Consumer, d=Consumer, e=Entry)
def at_most_one_acquirer(s: SymbolicState, c: Term, d: Term, e: Term) -> Term:
    """Two clients that both believe that they hold an entry are one."""
    return Implies(And(s.holds(c, e), s.holds(d, e)), c == d)


@SYSTEM.safe("IM-1", e=Entry)
def delivered_xor_dequeued(s: SymbolicState, e: Term) -> Term:
    """When its publisher is done, an immediate entry was delivered or dequeued undelivered: not both, not neither."""
    return Implies(And(s.immediate(e), s.given_up(e)), Xor(s.delivered(e), s.dropped(e)))


@SYSTEM.safe("ES-5", e=Entry)
def conservation(s: SymbolicState, e: Term) -> Term:
    """With no thread at work on it, an entry counts one if it is available or acquired, and zero if it is deleted.

    The depth is the sum of this over all entries. It is never negative, whatever the threads are doing.
    """
    there = And(linked(s, e), Not(gone(s, e)))
    at_rest = And(
        every(Thread, lambda t: Not(s.disposing(t, e))), Implies(s.counted(e) == 1, linked(s, e))
    )
    counts_for = s.counted(e) - s.uncounted(e)
    held = Implies(s.status(e) == ACQUIRED, s.holds(s.owner(e), e))
    return And(
        counts_for >= 0, counts_for <= 1, held, Implies(at_rest, counts_for == If(there, 1, 0))
    )


@SYSTEM.safe("SP-2", c=Consumer, e=Entry)
def nothing_behind(s: SymbolicState, c: Term, e: Term) -> Term:
    """When nobody owes a rewind, no available wanted entry lies behind a pointer."""
    settled = every(Thread, lambda t: Not(s.owes(t, e, c)))
    return Implies(And(settled, s.registered(c), wanted(s, c, e)), s.place(e) >= s.pointer(c))


@SYSTEM.step("SO-2", e=Entry)
def place_for_life(s: SymbolicState, after: SymbolicState, e: Term) -> Term:
    """A linked entry keeps its place, and stays linked."""
    return Implies(linked(s, e), And(linked(after, e), after.place(e) == s.place(e)))


@SYSTEM.step("ES-1", e=Entry)
def legal(s: SymbolicState, after: SymbolicState, e: Term) -> Term:
    """A state changes along the lines that are drawn, and no others."""
    old, new = s.status(e), after.status(e)
    there = Or(old == AVAILABLE, old == RETURNED)
    return Or(
        old == new,
        And(old == ABSENT, Or(new == DELAYED, new == AVAILABLE)),
        And(old == DELAYED, new == AVAILABLE),
        And(there, Or(new == ACQUIRED, new == DEQUEUED)),
        And(old == ACQUIRED, Or(new == RETURNED, new == DEQUEUED)),
        And(old == DEQUEUED, new == DELETED),
    )


@SYSTEM.step("ES-3", e=Entry)
def never_again(s: SymbolicState, after: SymbolicState, e: Term) -> Term:
    """What is gone stays gone, and is not delivered any more."""
    return Implies(gone(s, e), And(gone(after, e), after.delivered(e) == s.delivered(e)))


@SYSTEM.step("ES-4", e=Entry, c=Consumer)
def only_its_holder(s: SymbolicState, after: SymbolicState, e: Term, c: Term) -> Term:
    """An acquired entry changes hands only through its owner's own ACQUIRED: nobody else's belief is touched."""
    return Implies(And(s.holds(c, e), after.holds(c, e)), after.status(e) == ACQUIRED)


# ---- what is possible: without these the proofs would say nothing


@SYSTEM.witness(c=Consumer, e=Entry, t=Thread)
def a_walk_past_a_held_entry(s: SymbolicState, c: Term, e: Term, t: Term) -> Term:
    """Somebody holds an entry, and a thread has decided to move another's pointer past it."""
    return And(
        s.status(e) == ACQUIRED, s.looking(t), s.whose(t) == c, s.owner(e) != c, s.registered(c),
        s.wants(c, e), s.mark(c) == s.mark_seen(t), s.pointer(c) == s.place(e), s.cursor(t) > s.place(e),
    )  # fmt: skip


@SYSTEM.witness(c=Consumer, e=Entry)
def available_behind_a_pointer(s: SymbolicState, c: Term, e: Term) -> Term:
    """A wanted entry lies behind a pointer, and its rewind is owed."""
    return And(s.registered(c), wanted(s, c, e), s.place(e) < s.pointer(c))


@SYSTEM.witness(e=Entry)
def delivered_immediately(s: SymbolicState, e: Term) -> Term:
    """An immediate entry was delivered and released, and its publisher is done."""
    return And(s.immediate(e), s.given_up(e), s.status(e) == RETURNED)


@SYSTEM.witness(e=Entry)
def dropped_immediately(s: SymbolicState, e: Term) -> Term:
    """An immediate entry was dropped, and its publisher is done."""
    return And(s.immediate(e), s.given_up(e), s.dropped(e))


# ---- broken variants


@SYSTEM.broken("acquire", "who_holds", "ES-2", "a plain write after a look", e=Entry, c=Consumer)
def acquire_by_set(s: SymbolicState, e: Term, c: Term) -> tuple[Term, SymbolicState]:
    """It was seen available, and is then acquired by a plain write: what was read before need not hold any more."""
    return And(linked(s, e), Not(gone(s, e))), acquire(s, e, c)[1]


@SYSTEM.broken("give_up", "outcome", "IM-1", "F-1", t=Thread, e=Entry)
def give_up_as_published(s: SymbolicState, t: Term, e: Term) -> tuple[Term, SymbolicState]:
    """The publisher saw it available, and then dequeues it whatever the state is by now."""
    return And(s.immediate(e), linked(s, e), Not(s.given_up(e))), give_up(s, t, e)[1]


@SYSTEM.broken("release", "outcome", "IM-1", "F-10", t=Thread, e=Entry, c=Consumer)
def release_to_available(s: SymbolicState, t: Term, e: Term, c: Term) -> tuple[Term, SymbolicState]:
    """A released entry is AVAILABLE again, as it was at first."""
    guard, after = release(s, t, e, c)
    return guard, after.but(status=at(s.status, e, AVAILABLE))


@SYSTEM.broken("release", "only_its_holder", "ES-4", "no owner check", t=Thread, e=Entry, c=Consumer)  # fmt: skip
def release_by_anybody(s: SymbolicState, t: Term, e: Term, c: Term) -> tuple[Term, SymbolicState]:
    """Any consumer may release any acquired entry."""
    return s.status(e) == ACQUIRED, release(s, t, e, c)[1]


@SYSTEM.broken("release", "place_for_life", "SO-2", "requeue at the tail", t=Thread, e=Entry, c=Consumer)  # fmt: skip
def release_to_the_tail(s: SymbolicState, t: Term, e: Term, c: Term) -> tuple[Term, SymbolicState]:
    """A released entry goes to the end of the queue."""
    guard, after = release(s, t, e, c)
    behind = s.top() + 1
    return guard, after.but(place=at(s.place, e, behind), top=at(s.top, behind))


@SYSTEM.broken("uncount", "counts", "ES-5", "counted down by two", t=Thread, e=Entry)
def uncount_by_anybody(s: SymbolicState, t: Term, e: Term) -> tuple[Term, SymbolicState]:
    """Whoever sees an entry DEQUEUED takes it away."""
    return s.status(e) == DEQUEUED, uncount(s, t, e)[1]


@SYSTEM.broken(
    "finish", "one_disposer", "ES-5", "a plain write to DEQUEUED", t=Thread, e=Entry, c=Consumer
)
def finish_twice(s: SymbolicState, t: Term, e: Term, c: Term) -> tuple[Term, SymbolicState]:
    """Two threads of one client are done with one entry, and both think that they were first."""
    guard = And(Or(s.status(e) == ACQUIRED, s.status(e) == DEQUEUED), s.owner(e) == c)
    return guard, finish(s, t, e, c)[1]


@SYSTEM.broken("acquire", "never_again", "ES-3", "a late compare-and-set", e=Entry, c=Consumer)
def acquire_the_dequeued(s: SymbolicState, e: Term, c: Term) -> tuple[Term, SymbolicState]:
    """An entry that is DEQUEUED, but not yet DELETED, is taken."""
    return Or(available(s, e), s.status(e) == DEQUEUED), acquire(s, e, c)[1]


@SYSTEM.broken("rewind", "decided", "SP-2", "F-2", t=Thread, e=Entry, c=Consumer, k=Mark)
def rewind_as_published(
    s: SymbolicState, t: Term, e: Term, c: Term, k: Term
) -> tuple[Term, SymbolicState]:
    """A pointer that is not past the entry is left alone, object and all."""
    guard, after = rewind(s, t, e, c, k)
    past = s.place(e) < s.pointer(c)
    return guard, after.but(
        mark=at(s.mark, c, If(past, k, s.mark(c))), used=at(s.used, k, Or(past, s.used(k)))
    )


@SYSTEM.broken("insert", "decided", "SP-2", "F-3", t=Thread, e=Entry, p=Int)
def insert_as_published(s: SymbolicState, t: Term, e: Term, p: Term) -> tuple[Term, SymbolicState]:
    """An arrival of high priority is announced only to those whose pointer is past it."""
    guard, after = insert(s, t, e, p)
    return guard, after.but(
        owes=lambda u, f, c: Or(
            s.owes(u, f, c), And(u == t, f == e, s.registered(c), s.pointer(c) > p)
        )
    )


@SYSTEM.broken("advance", "covered", "SP-2", "F-4", t=Thread, k=Mark)
def advance_by_value(s: SymbolicState, t: Term, k: Term) -> tuple[Term, SymbolicState]:
    """Pointers are compared by the place at which they stand, so a rewind to that very place goes unseen."""
    guard = And(
        s.looking(t),
        s.registered(s.whose(t)),
        s.pointer(s.whose(t)) == s.place_seen(t),
        Not(s.used(k)),
    )
    return guard, advance(s, t, k)[1]


@SYSTEM.broken("finish", "legal", "ES-1", "two steps in one", t=Thread, e=Entry, c=Consumer)
def finish_for_good(s: SymbolicState, t: Term, e: Term, c: Term) -> tuple[Term, SymbolicState]:
    """Its holder deletes it at once, and is not DEQUEUED first."""
    guard, after = finish(s, t, e, c)
    return guard, after.but(status=at(s.status, e, DELETED))
