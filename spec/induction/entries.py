"""Entries, their states, groups, and the pointers of consumers: for any number of entries, consumers and threads.

This is `reference/seriatim/queue.py`, rules 1 to 5, one action for each operation on a shared cell that matters.
A selector is the fixed relation `wants`; that a time has come is a fact that becomes true at any moment.
It does not know credit, wake-ups and how a list is linked: `consumers`, `wakeups` and `nodes` do.

The order of an entry is its `place`, a number. A first-in-first-out queue gives the next one (`append`);
in a queue with priorities an arrival may stand before others (`insert`), and its publisher owes everybody a rewind.
"""

from z3 import And, BoolSort, DeclareSort, EnumSort, If, Implies, IntSort, Not, Or, Xor

from seriatim_workshop.formal.theory import (
    Formula,
    SymbolicState,
    Term,
    TransitionSystem,
    at,
    every,
    some,
)

Entry, Consumer, Thread, Mark, Group = map(
    DeclareSort, ("Entry", "Consumer", "Thread", "Mark", "Group")
)
Status, STATES = EnumSort(
    "Status", ("ABSENT", "DELAYED", "AVAILABLE", "RETURNED", "ACQUIRED", "DEQUEUED", "DELETED")
)
ABSENT, DELAYED, AVAILABLE, RETURNED, ACQUIRED, DEQUEUED, DELETED = STATES
Bool, Int = BoolSort(), IntSort()

SYSTEM = TransitionSystem(
    "entries",
    "entries, their states and the pointers past them",
    (Entry, Consumer, Thread, Mark, Group),
)

# ---- what there is

SYSTEM.declare("immediate", Entry, Bool, rigid=True)
SYSTEM.declare("wants", Consumer, Entry, Bool, rigid=True)
SYSTEM.declare("overtaking", Bool, rigid=True)  # a queue with priorities
SYSTEM.declare("acquires", Consumer, Bool, rigid=True)  # no browser
SYSTEM.declare("mortal", Entry, Bool, rigid=True)  # it expires some time
SYSTEM.declare("grouped", Entry, Bool, rigid=True)  # it belongs to a group
SYSTEM.declare("group", Entry, Group, rigid=True)  # and to which

SYSTEM.declare("expired", Entry, Bool)
SYSTEM.declare("due", Entry, Bool)  # its delay is over
SYSTEM.declare("sees_due", Thread, Entry, Bool)  # and the thread has read that on the clock

SYSTEM.declare("status", Entry, Status)
SYSTEM.declare("owner", Entry, Consumer)  # whose ACQUIRED it is
SYSTEM.declare("place", Entry, Int)
SYSTEM.declare("top", Int)  # no entry stands behind this place
SYSTEM.declare("holds", Consumer, Entry, Bool)  # what the client believes: its compare-and-set won
SYSTEM.declare("actor", Consumer)  # for whom the last entry was acquired, released or dequeued

SYSTEM.declare("owned", Group, Bool)
SYSTEM.declare("group_owner", Group, Consumer)
SYSTEM.declare("joined", Thread, Entry, Bool)  # it counts in its group, and is not acquired

SYSTEM.declare("delivered", Entry, Bool)
SYSTEM.declare("dropped", Entry, Bool)  # dequeued without ever having been delivered
SYSTEM.declare("given_up", Entry, Bool)  # its publisher came to the end of enqueuing it

SYSTEM.declare("counted", Entry, Int)  # what it added to the depth of the queue
SYSTEM.declare("uncounted", Entry, Int)  # what it took away again
SYSTEM.declare(
    "disposing", Thread, Entry, Bool
)  # the thread made it DEQUEUED and must take it away
SYSTEM.declare("disposer", Entry, Thread)

SYSTEM.declare("known", Consumer, Bool)  # it has been registered, and may have left
SYSTEM.declare("registered", Consumer, Bool)
SYSTEM.declare("pointer", Consumer, Int)  # the place that it looks at next
SYSTEM.declare("past", Consumer, Bool)  # a browser was shown what stands there
SYSTEM.declare("shown", Consumer, Entry, Int)  # how often
SYSTEM.declare("mark", Consumer, Mark)  # the identity of the pointer object
SYSTEM.declare("used", Mark, Bool)

SYSTEM.declare("looking", Thread, Bool)  # it has read a pointer, and walks from there
SYSTEM.declare("whose", Thread, Consumer)  # whose pointer that is
SYSTEM.declare("mark_seen", Thread, Mark)
SYSTEM.declare("place_seen", Thread, Int)
SYSTEM.declare("cursor", Thread, Int)  # how far it has got
SYSTEM.declare("passed", Thread, Bool)  # it has seen what stands there, and it is not wanted
SYSTEM.declare("found", Thread, Bool)  # it has seen what stands there, and it is wanted

SYSTEM.declare(
    "vain", Thread, Entry, Bool
)  # at some moment of its look it was of no use to whose it is

SYSTEM.declare("keeping", Thread, Bool)  # it is in a pass of housekeeping
SYSTEM.declare("overdue", Thread, Entry, Bool)  # when that began, and it was not seen to since

SYSTEM.declare("announcer", Entry, Thread)  # who made it wanted last
SYSTEM.declare("owes", Thread, Entry, Consumer, Bool)  # a rewind


def available(s: SymbolicState, e: Term) -> Term:
    return Or(s.status(e) == AVAILABLE, s.status(e) == RETURNED)


def gone(s: SymbolicState, e: Term) -> Term:
    return Or(s.status(e) == DEQUEUED, s.status(e) == DELETED)


def linked(s: SymbolicState, e: Term) -> Term:
    return s.status(e) != ABSENT


def wanted(s: SymbolicState, c: Term, e: Term) -> Term:
    g = s.group(e)
    mine = Or(Not(s.acquires(c)), Not(s.grouped(e)), Not(s.owned(g)), s.group_owner(g) == c)
    return And(available(s, e), s.wants(c, e), Not(s.expired(e)), mine)


def useless(s: SymbolicState, c: Term, e: Term) -> Term:
    """A look for the consumer may leave it out: it is not wanted, or its announcer still owes the rewind."""
    return Or(Not(wanted(s, c, e)), s.owes(s.announcer(e), e, c))


@SYSTEM.initially
def start(s: SymbolicState) -> Term:
    return And(
        s.top() == 0,
        every(Entry, lambda e: And(s.status(e) == ABSENT, s.counted(e) == 0, s.uncounted(e) == 0)),
        every(Entry, lambda e: Not(Or(s.delivered(e), s.dropped(e), s.given_up(e)))),
        every(Entry, lambda e: Not(Or(s.expired(e), s.due(e)))),
        every(Consumer, Entry, lambda c, e: And(Not(s.holds(c, e)), s.shown(c, e) == 0)),
        every(
            Consumer,
            lambda c: And(Not(Or(s.known(c), s.registered(c), s.past(c))), s.pointer(c) == 0),
        ),
        every(Thread, lambda t: Not(Or(s.looking(t), s.keeping(t)))),
        every(Thread, Entry, lambda t, e: Not(Or(s.disposing(t, e), s.joined(t, e)))),
        every(Thread, Entry, lambda t, e: Not(Or(s.overdue(t, e), s.sees_due(t, e)))),
        every(Group, lambda g: Not(s.owned(g))),
        every(Thread, Entry, Consumer, lambda t, e, c: Not(s.owes(t, e, c))),
    )


# ---- an entry comes


@SYSTEM.action(e=Entry)
def count(s: SymbolicState, e: Term) -> tuple[Term, SymbolicState]:
    """The queue's depth goes up before the entry is linked."""
    guard = And(s.status(e) == ABSENT, s.counted(e) == 0)
    return guard, s.but(counted=at(s.counted, e, 1))


def announced(s: SymbolicState, t: Term, e: Term) -> SymbolicState:
    """`t` made `e` available, and owes every registered consumer that selects it a rewind, but browsers (rule 4)."""
    return s.but(
        announcer=at(s.announcer, e, t),
        owes=lambda u, f, c: Or(s.owes(u, f, c), And(u == t, f == e, goes_back(s, c, f))),
    )


def goes_back(s: SymbolicState, c: Term, e: Term) -> Term:
    """To whom a rewind is owed, should the entry become available or free."""
    return And(s.registered(c), s.acquires(c), s.wants(c, e))


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
    """The hold ended, as the thread has read: one compare-and-set, and whoever won it announces."""
    guard = And(s.status(e) == DELAYED, s.sees_due(t, e))
    return guard, announced(s, t, e).but(status=at(s.status, e, AVAILABLE), overdue=seen_to(s, e))


def seen_to(s: SymbolicState, e: Term) -> Formula:
    """No pass of housekeeping has to see to it any more."""
    return lambda u, f: And(s.overdue(u, f), f != e)


# ---- time


@SYSTEM.action(e=Entry)
def come_due(s: SymbolicState, e: Term) -> tuple[Term, SymbolicState]:
    """The clock reaches the end of its delay."""
    return Not(s.due(e)), s.but(due=at(s.due, e, True))


@SYSTEM.action(t=Thread, e=Entry)
def read_the_clock(s: SymbolicState, t: Term, e: Term) -> tuple[Term, SymbolicState]:
    """It reads the time, and that is not before the end of the delay."""
    return s.due(e), s.but(sees_due=at(s.sees_due, t, e, True))


@SYSTEM.action(e=Entry)
def grow_old(s: SymbolicState, e: Term) -> tuple[Term, SymbolicState]:
    """The clock passes the time at which it expires."""
    return And(s.mortal(e), Not(s.expired(e))), s.but(expired=at(s.expired, e, True))


# ---- groups


@SYSTEM.action(t=Thread, e=Entry, c=Consumer)
def join(s: SymbolicState, t: Term, e: Term, c: Term) -> tuple[Term, SymbolicState]:
    """Before it takes an entry of a group, the consumer owns the group."""
    g = s.group(e)
    guard = And(
        linked(s, e),
        s.grouped(e),
        s.acquires(c),
        Not(s.joined(t, e)),
        Or(Not(s.owned(g)), s.group_owner(g) == c),
    )
    return guard, s.but(
        owned=at(s.owned, g, True),
        group_owner=at(s.group_owner, g, c),
        joined=at(s.joined, t, e, True),
    )


def others_count(s: SymbolicState, t: Term, e: Term) -> Term:
    """The group of `e` has something that counts besides what `t` is about to take away."""
    g = s.group(e)
    return Not(
        And(
            every(
                Thread,
                Entry,
                lambda u, f: Or(Not(s.joined(u, f)), s.group(f) != g, And(u == t, f == e)),
            ),
            every(
                Entry,
                lambda f: Or(s.status(f) != ACQUIRED, Not(s.grouped(f)), s.group(f) != g),
            ),
        )
    )


@SYSTEM.action(t=Thread, e=Entry)
def part(s: SymbolicState, t: Term, e: Term) -> tuple[Term, SymbolicState]:
    """One entry of the group fewer; its owner has others."""
    guard = And(s.joined(t, e), others_count(s, t, e))
    return guard, s.but(joined=at(s.joined, t, e, False))


@SYSTEM.action(t=Thread, e=Entry)
def set_free(s: SymbolicState, t: Term, e: Term) -> tuple[Term, SymbolicState]:
    """That was the last: the group is free, and all its entries that are available are owed rewinds."""
    guard = And(s.joined(t, e), Not(others_count(s, t, e)))
    g = s.group(e)

    def member(f: Term) -> Term:
        return And(s.grouped(f), s.group(f) == g)

    return guard, s.but(
        joined=at(s.joined, t, e, False),
        owned=at(s.owned, g, False),
        announcer=lambda f: If(And(member(f), available(s, f)), t, s.announcer(f)),
        owes=lambda u, f, c: Or(
            s.owes(u, f, c),
            And(u == t, member(f), available(s, f), goes_back(s, c, f)),
        ),
    )


@SYSTEM.action(t=Thread, e=Entry)
def forgive(s: SymbolicState, t: Term, e: Term) -> tuple[Term, SymbolicState]:
    """It sees that the entry is not available: whoever makes it so owes the rewinds anew."""
    return Not(available(s, e)), s.but(
        owes=lambda u, f, c: And(s.owes(u, f, c), Not(And(u == t, f == e)))
    )


# ---- an entry is acquired, released, dequeued


@SYSTEM.action(t=Thread, e=Entry, c=Consumer)
def acquire(s: SymbolicState, t: Term, e: Term, c: Term) -> tuple[Term, SymbolicState]:
    """What a look found for the consumer: from AVAILABLE, or from RETURNED, to its own ACQUIRED."""
    guard = And(
        available(s, e),
        s.acquires(c),
        s.registered(c),
        s.wants(c, e),
        s.looking(t),
        s.whose(t) == c,
        s.cursor(t) == s.place(e),
        s.found(t),
        Implies(s.grouped(e), And(s.joined(t, e), s.group_owner(s.group(e)) == c)),
    )
    return guard, acquired(s, e, c).but(joined=at(s.joined, t, e, False))


def acquired(s: SymbolicState, e: Term, c: Term) -> SymbolicState:
    return s.but(
        status=at(s.status, e, ACQUIRED),
        owner=at(s.owner, e, c),
        holds=at(s.holds, c, e, True),
        delivered=at(s.delivered, e, True),
        actor=at(s.actor, c),
        overdue=seen_to(s, e),
    )


@SYSTEM.action(t=Thread, e=Entry, c=Consumer)
def release(s: SymbolicState, t: Term, e: Term, c: Term) -> tuple[Term, SymbolicState]:
    """Its holder gives it back where it was: a compare-and-set from the consumer's own ACQUIRED."""
    guard = And(s.status(e) == ACQUIRED, s.owner(e) == c)
    after = announced(s, t, e).but(status=at(s.status, e, RETURNED), holds=at(s.holds, c, e, False))
    return guard, after.but(actor=at(s.actor, c), joined=at(s.joined, t, e, s.grouped(e)))


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
    return guard, dequeued(s, t, e).but(
        holds=at(s.holds, c, e, False),
        actor=at(s.actor, c),
        joined=at(s.joined, t, e, s.grouped(e)),
    )


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
    """Its time is over: a compare-and-set from AVAILABLE or RETURNED."""
    return And(available(s, e), s.expired(e)), dequeued(s, t, e).but(
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


# ---- housekeeping


def its_time_has_come(s: SymbolicState, e: Term) -> Term:
    """Housekeeping has to end its hold, or to drop it."""
    return Or(And(s.status(e) == DELAYED, s.due(e)), And(available(s, e), s.expired(e)))


@SYSTEM.action(t=Thread)
def begin_to_keep(s: SymbolicState, t: Term) -> tuple[Term, SymbolicState]:
    """A pass of housekeeping begins: whatever is overdue now it has to see to, or somebody else has."""
    return Not(s.keeping(t)), s.but(
        keeping=at(s.keeping, t, True),
        overdue=lambda u, e: If(u == t, its_time_has_come(s, e), s.overdue(u, e)),
    )


@SYSTEM.action(t=Thread)
def end_to_keep(s: SymbolicState, t: Term) -> tuple[Term, SymbolicState]:
    """The pass returns: all of that was made available, acquired or dropped."""
    done = every(Entry, lambda e: Or(Not(s.overdue(t, e)), gone(s, e)))
    return And(s.keeping(t), done), s.but(keeping=at(s.keeping, t, False))


# ---- consumers, and their pointers


@SYSTEM.action(c=Consumer, k=Mark)
def register(s: SymbolicState, c: Term, k: Term) -> tuple[Term, SymbolicState]:
    """A consumer starts before the first entry. Who has left does not come back: it would be another."""
    return And(Not(s.known(c)), Not(s.used(k))), s.but(
        known=at(s.known, c, True),
        registered=at(s.registered, c, True),
        mark=at(s.mark, c, k),
        used=at(s.used, k, True),
    )


@SYSTEM.action(c=Consumer)
def unregister(s: SymbolicState, c: Term) -> tuple[Term, SymbolicState]:
    """A consumer that holds nothing leaves, and nobody owes it anything."""
    guard = And(s.registered(c), every(Entry, lambda e: Not(s.holds(c, e))))
    return guard, s.but(
        registered=at(s.registered, c, False),
        owes=lambda t, e, d: And(s.owes(t, e, d), d != c),
    )


@SYSTEM.action(t=Thread, c=Consumer)
def look(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """Any thread reads a consumer's pointer. Before the first entry there is nothing to see."""
    return s.known(c), s.but(
        looking=at(s.looking, t, True),
        whose=at(s.whose, t, c),
        mark_seen=at(s.mark_seen, t, s.mark(c)),
        place_seen=at(s.place_seen, t, s.pointer(c)),
        cursor=at(s.cursor, t, s.pointer(c)),
        passed=at(s.passed, t, Or(s.pointer(c) == 0, s.past(c))),
        found=at(s.found, t, False),
        vain=lambda u, e: If(u == t, useless(s, c, e), s.vain(u, e)),
    )


@SYSTEM.action(t=Thread, e=Entry)
def find(s: SymbolicState, t: Term, e: Term) -> tuple[Term, SymbolicState]:
    """It reads that the entry where it stands is available and for this consumer; of its group `join` decides.

    What it has passed it may find when it reads it again, but not what the pointer that it has read is past.
    """
    c = s.whose(t)
    there = And(s.cursor(t) == s.place_seen(t), s.mark(c) == s.mark_seen(t))
    guard = And(
        s.looking(t),
        Not(And(there, s.past(c))),
        available(s, e),
        s.place(e) == s.cursor(t),
        s.wants(c, e),
        Not(s.expired(e)),
    )
    return guard, s.but(found=at(s.found, t, True))


@SYSTEM.action(t=Thread, e=Entry)
def pass_by(s: SymbolicState, t: Term, e: Term) -> tuple[Term, SymbolicState]:
    """It reads the state of the entry where it stands, and the consumer would not take it."""
    guard = And(
        s.looking(t), linked(s, e), s.place(e) == s.cursor(t), Not(wanted(s, s.whose(t), e))
    )
    return guard, s.but(passed=at(s.passed, t, True), vain=at(s.vain, t, e, True))


def seen_gone(s: SymbolicState, t: Term) -> Formula:
    """Going on, it comes past what is not there, or not any more."""
    return lambda u, e: Or(s.vain(u, e), And(u == t, Or(Not(linked(s, e)), gone(s, e))))


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
    return guard, s.but(
        cursor=at(s.cursor, t, s.place(n)),
        passed=at(s.passed, t, False),
        found=at(s.found, t, False),
        vain=seen_gone(s, t),
    )


@SYSTEM.action(t=Thread, q=Int)
def fall_through(s: SymbolicState, t: Term, q: Term) -> tuple[Term, SymbolicState]:
    """It reads that this was the last entry of its priority, and goes on with the head of a lower one."""
    guard = And(
        s.looking(t), s.passed(t), s.overtaking(), q > s.cursor(t), free(s, q),
        nothing_between(s, s.cursor(t), q),
    )  # fmt: skip
    return guard, s.but(
        cursor=at(s.cursor, t, q), found=at(s.found, t, False), vain=seen_gone(s, t)
    )


@SYSTEM.action(t=Thread, k=Mark)
def advance(s: SymbolicState, t: Term, k: Term) -> tuple[Term, SymbolicState]:
    """A compare-and-set of the pointer, from the very object that was read (rule 3); it may look on from there."""
    guard = And(
        s.looking(t),
        s.cursor(t) > s.place_seen(t),
        s.mark(s.whose(t)) == s.mark_seen(t),
        Not(s.used(k)),
    )
    return guard, moved(s, s.whose(t), s.cursor(t), k).but(
        mark_seen=at(s.mark_seen, t, k), place_seen=at(s.place_seen, t, s.cursor(t))
    )


def moved(s: SymbolicState, c: Term, p: Term, k: Term) -> SymbolicState:
    """A new pointer object, at an entry that is to be examined."""
    return s.but(
        pointer=at(s.pointer, c, p),
        past=at(s.past, c, False),
        mark=at(s.mark, c, k),
        used=at(s.used, k, True),
    )


@SYSTEM.action(t=Thread, e=Entry, c=Consumer, k=Mark)
def show(s: SymbolicState, t: Term, e: Term, c: Term, k: Term) -> tuple[Term, SymbolicState]:
    """What a look found is shown to a browser: a compare-and-set of its pointer, from the object that was read."""
    guard = And(
        s.looking(t),
        s.whose(t) == c,
        Not(s.acquires(c)),
        linked(s, e),
        s.place(e) == s.cursor(t),
        s.cursor(t) == s.place_seen(t),
        s.found(t),
        s.mark(c) == s.mark_seen(t),
        Not(s.used(k)),
    )
    return guard, moved(s, c, s.place(e), k).but(
        past=at(s.past, c, True),
        shown=at(s.shown, c, e, s.shown(c, e) + 1),
        looking=at(s.looking, t, False),
    )


@SYSTEM.action(t=Thread, e=Entry, c=Consumer, k=Mark)
def rewind(s: SymbolicState, t: Term, e: Term, c: Term, k: Term) -> tuple[Term, SymbolicState]:
    """A fresh pointer object, moved back if it had gone past the entry, and fresh also if not (rule 4).

    Any thread may do so at any time: it costs a look and never harms. A debt is what it must not leave out; the
    fresh object pays that for whatever is not before it.
    """
    back = If(s.place(e) < s.pointer(c), s.place(e), s.pointer(c))
    guard = And(s.acquires(c), s.known(c), linked(s, e), Not(s.used(k)))
    return guard, moved(s, c, back, k).but(
        owes=lambda u, f, d: And(s.owes(u, f, d), Not(And(u == t, d == c, s.place(f) >= back)))
    )


@SYSTEM.action(t=Thread, e=Entry)
def announce(s: SymbolicState, t: Term, e: Term) -> tuple[Term, SymbolicState]:
    """It owes nobody a rewind for the entry, and goes on to look for somebody to take it (rule 5)."""
    return every(Consumer, lambda c: Not(s.owes(t, e, c))), s


@SYSTEM.action(c=Consumer)
def let_go(s: SymbolicState, c: Term) -> tuple[Term, SymbolicState]:
    """A consumer has closed: nothing is acquired for it any more."""
    return every(Entry, lambda e: Not(s.holds(c, e))), s


@SYSTEM.action(t=Thread, c=Consumer)
def come_back_with_nothing(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """An attempt for the consumer that has looked, and found nothing, has come to the end of the list."""
    looked = And(s.looking(t), s.whose(t) == c, Not(s.found(t)), s.registered(c), s.acquires(c))
    there = every(Entry, lambda e: Implies(And(linked(s, e), Not(gone(s, e))), s.vain(t, e)))
    return Implies(looked, there), s


@SYSTEM.action(t=Thread)
def settle(s: SymbolicState, t: Term) -> tuple[Term, SymbolicState]:
    """Its call returns: it owes nobody a rewind, and what it dequeued or left has been taken away everywhere."""
    guard = And(
        every(Entry, Consumer, lambda e, c: Not(s.owes(t, e, c))),
        every(Entry, lambda e: Not(Or(s.disposing(t, e), s.joined(t, e)))),
        every(Entry, lambda e: Not(And(s.status(e) == DEQUEUED, s.disposer(e) == t))),
    )
    return guard, s


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
        Implies(s.dropped(e), Or(s.immediate(e), s.expired(e))),
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
        Implies(s.registered(c), s.known(c)),
        Implies(s.known(c), s.used(s.mark(c))),
        Implies(s.looking(t), And(s.used(s.mark_seen(t)), s.known(s.whose(t)))),
    )


@SYSTEM.invariant("SP-2", c=Consumer, t=Thread)
def bounds(s: SymbolicState, c: Term, t: Term) -> Term:
    """Nothing points behind the top; a walk whose pointer is still the one it read has not gone back."""
    fresh = And(s.looking(t), s.mark(s.whose(t)) == s.mark_seen(t))
    return And(
        s.pointer(c) >= 0,
        Implies(Not(s.known(c)), s.pointer(c) == 0),
        Implies(Not(s.overtaking()), s.pointer(c) <= s.top()),
        Implies(And(Not(s.overtaking()), s.looking(t)), s.cursor(t) <= s.top()),
        Implies(s.looking(t), s.place_seen(t) <= s.cursor(t)),
        Implies(fresh, s.pointer(s.whose(t)) == s.place_seen(t)),
    )


@SYSTEM.invariant("SP-2", t=Thread, e=Entry, c=Consumer)
def debts(s: SymbolicState, t: Term, e: Term, c: Term) -> Term:
    """A rewind is owed for an entry that is there, to a consumer that is there and goes back."""
    return Implies(s.owes(t, e, c), And(linked(s, e), s.registered(c), s.acquires(c)))


@SYSTEM.invariant("SP-2", c=Consumer, e=Entry)
def covered(s: SymbolicState, c: Term, e: Term) -> Term:
    """Whatever is wanted behind a pointer, somebody is still bound to move that pointer back."""
    return Implies(
        And(s.registered(c), s.acquires(c), wanted(s, c, e), s.place(e) < s.pointer(c)),
        s.owes(s.announcer(e), e, c),
    )


@SYSTEM.invariant("SP-2", t=Thread, e=Entry)
def decided(s: SymbolicState, t: Term, e: Term) -> Term:
    """An advance that would still win passes nothing wanted, but what somebody is bound to announce."""
    c = s.whose(t)
    behind = Or(s.place(e) < s.cursor(t), And(s.place(e) == s.cursor(t), s.passed(t)))
    return Implies(
        And(
            s.looking(t),
            s.registered(c),
            s.acquires(c),
            s.mark(c) == s.mark_seen(t),
            wanted(s, c, e),
            behind,
        ),
        s.owes(s.announcer(e), e, c),
    )


def behind_the_look(s: SymbolicState, t: Term, e: Term) -> Term:
    """The look has come past the entry, or past the place where it would be."""
    return Or(s.place(e) < s.cursor(t), And(s.place(e) == s.cursor(t), s.passed(t)))


@SYSTEM.invariant("SP-2", t=Thread, e=Entry)
def looked_in_vain(s: SymbolicState, t: Term, e: Term) -> Term:
    """What a look has come past, or what came after it began, was of no use at some moment of it."""
    c = s.whose(t)
    mine = And(s.looking(t), s.registered(c), s.acquires(c))
    return Implies(And(mine, Or(Not(linked(s, e)), behind_the_look(s, t, e))), s.vain(t, e))


@SYSTEM.invariant("TM-1", t=Thread, e=Entry)
def the_clock_goes_on(s: SymbolicState, t: Term, e: Term) -> Term:
    """The delay that a thread has read to be over is over."""
    return Implies(s.sees_due(t, e), s.due(e))


@SYSTEM.invariant("MG-1", t=Thread, e=Entry)
def group_members(s: SymbolicState, t: Term, e: Term) -> Term:
    """What is acquired, or about to be, counts in its group: that is owned, and by whoever acquired it."""
    g = s.group(e)
    mine = And(s.owned(g), s.group_owner(g) == s.owner(e))
    return And(
        Implies(And(s.status(e) == ACQUIRED, s.grouped(e)), mine),
        Implies(s.joined(t, e), And(s.owned(g), s.grouped(e), linked(s, e))),
    )


@SYSTEM.invariant("MG-2", g=Group)
def groups_in_use(s: SymbolicState, g: Term) -> Term:
    """A group that is owned has something that counts."""
    counting = some(Thread, Entry, lambda t, e: And(s.joined(t, e), s.group(e) == g))
    held = some(Entry, lambda e: And(s.status(e) == ACQUIRED, s.grouped(e), s.group(e) == g))
    return Implies(s.owned(g), Or(counting, held))


@SYSTEM.invariant("SO-4", c=Consumer, e=Entry)
def what_was_shown(s: SymbolicState, c: Term, e: Term) -> Term:
    """A browser's pointer is past what it was shown; nobody else's pointer says so."""
    behind = Or(s.place(e) < s.pointer(c), And(s.place(e) == s.pointer(c), s.past(c)))
    return And(
        Or(s.shown(c, e) == 0, s.shown(c, e) == 1),
        Implies(s.shown(c, e) == 1, And(linked(s, e), Not(s.acquires(c)), s.known(c), behind)),
        Implies(s.past(c), And(Not(s.acquires(c)), s.known(c))),
    )


@SYSTEM.invariant("SO-4", t=Thread)
def not_found_twice(s: SymbolicState, t: Term) -> Term:
    """What a browser was shown is not found again from the same pointer object."""
    fresh = And(s.looking(t), s.mark(s.whose(t)) == s.mark_seen(t), s.past(s.whose(t)))
    there = s.cursor(t) == s.place_seen(t)
    return Implies(And(fresh, there), And(s.passed(t), Not(s.found(t))))


@SYSTEM.invariant("ES-5", c=Consumer, e=Entry)
def holders_are_there(s: SymbolicState, c: Term, e: Term) -> Term:
    """Who holds an entry is registered."""
    return Implies(s.holds(c, e), s.registered(c))


# ---- what follows


@SYSTEM.safe("ES-2", c=Consumer, d=Consumer, e=Entry)
def at_most_one_acquirer(s: SymbolicState, c: Term, d: Term, e: Term) -> Term:
    """Two clients that both believe that they hold an entry are one."""
    return Implies(And(s.holds(c, e), s.holds(d, e)), c == d)


@SYSTEM.safe("ES-5", c=Consumer, e=Entry)
def who_has_left_holds_nothing(s: SymbolicState, c: Term, e: Term) -> Term:
    """What a consumer acquired it has released, or is done with, before it leaves the list of all."""
    return Implies(s.holds(c, e), s.registered(c))


@SYSTEM.safe("MG-1", e=Entry, f=Entry)
def one_owner_of_a_group(s: SymbolicState, e: Term, f: Term) -> Term:
    """Two entries of one group that are acquired have one owner."""
    both = And(s.status(e) == ACQUIRED, s.status(f) == ACQUIRED, s.grouped(e), s.grouped(f))
    return Implies(And(both, s.group(e) == s.group(f)), s.owner(e) == s.owner(f))


@SYSTEM.safe("SO-4", c=Consumer, e=Entry)
def shown_once(s: SymbolicState, c: Term, e: Term) -> Term:
    """A browser is shown each entry at most once."""
    return s.shown(c, e) <= 1


@SYSTEM.safe("MG-2", g=Group)
def no_group_is_kept(s: SymbolicState, g: Term) -> Term:
    """When nobody is about to take or to leave one of its entries, a group is owned only for what is acquired."""
    quiet = every(Thread, Entry, lambda t, e: Not(And(s.joined(t, e), s.group(e) == g)))
    held = some(Entry, lambda e: And(s.status(e) == ACQUIRED, s.grouped(e), s.group(e) == g))
    return Implies(And(quiet, s.owned(g)), held)


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
    there = And(s.registered(c), s.acquires(c), wanted(s, c, e))
    return Implies(And(settled, there), s.place(e) >= s.pointer(c))


@SYSTEM.safe("SP-2", t=Thread, e=Entry)
def a_look_misses_nothing(s: SymbolicState, t: Term, e: Term) -> Term:
    """A look that has come to the end saw each entry of no use to its consumer at some moment since it began.

    Of no use is what is not available, not wanted, expired, of another's group, or still owed its rewind.
    """
    c = s.whose(t)
    end = every(Entry, lambda f: Or(Not(linked(s, f)), gone(s, f), behind_the_look(s, t, f)))
    at_the_end = And(s.looking(t), s.registered(c), s.acquires(c), end, Not(gone(s, e)))
    return Implies(at_the_end, s.vain(t, e))


@SYSTEM.safe("SO-3", t=Thread, e=Entry)
def what_is_found_is_the_next(s: SymbolicState, t: Term, e: Term) -> Term:
    """A look that has found an entry saw each before it of no use to its consumer at some moment since it began."""
    c = s.whose(t)
    mine = And(s.looking(t), s.found(t), s.registered(c), s.acquires(c))
    return Implies(And(mine, linked(s, e), s.place(e) < s.cursor(t)), s.vain(t, e))


@SYSTEM.step("TM-2", t=Thread, e=Entry)
def nothing_overdue_is_left(s: SymbolicState, after: SymbolicState, t: Term, e: Term) -> Term:
    """When a pass of housekeeping returns, nothing is held, and nothing available, whose time had come when it began,
    and which was left as it was since.
    """
    ends = And(s.keeping(t), Not(after.keeping(t)))
    there = Or(s.status(e) == DELAYED, available(s, e))
    return Implies(And(ends, s.overdue(t, e)), Not(there))


@SYSTEM.step("TM-2", t=Thread, e=Entry)
def overdue_until_it_changes(s: SymbolicState, after: SymbolicState, t: Term, e: Term) -> Term:
    """What a pass has to see to is so when it begins, all of it, and it is done with when its state changes."""
    begins = And(after.keeping(t), Not(s.keeping(t)))
    amid = And(after.keeping(t), s.keeping(t), after.status(e) == s.status(e))
    return And(
        Implies(begins, after.overdue(t, e) == its_time_has_come(s, e)),
        Implies(amid, after.overdue(t, e) == s.overdue(t, e)),
    )


@SYSTEM.step("SP-2", t=Thread, e=Entry)
def of_no_use_when_it_is_said(s: SymbolicState, after: SymbolicState, t: Term, e: Term) -> Term:
    """What a look comes to count as of no use is so at that moment; a new look begins with what is so then."""
    c = after.whose(t)
    begins = And(after.looking(t), Or(Not(s.looking(t)), s.whose(t) != c))
    fresh = And(after.vain(t, e), Or(Not(s.vain(t, e)), begins))
    return Implies(fresh, useless(s, c, e))


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


@SYSTEM.step("ES-4", e=Entry)
def only_its_holder(s: SymbolicState, after: SymbolicState, e: Term) -> Term:
    """An acquired entry stays so until a call for its owner changes that; nobody else's call touches it."""
    left = And(s.status(e) == ACQUIRED, after.status(e) != ACQUIRED)
    return Implies(left, after.actor() == s.owner(e))


@SYSTEM.step("ES-2", e=Entry, c=Consumer)
def nobody_takes_it_away(s: SymbolicState, after: SymbolicState, e: Term, c: Term) -> Term:
    """Who holds an entry holds it until a call for that very consumer."""
    return Implies(And(s.holds(c, e), Not(after.holds(c, e))), after.actor() == c)


@SYSTEM.step("SP-1", c=Consumer)
def a_pointer_moves_afresh(s: SymbolicState, after: SymbolicState, c: Term) -> Term:
    """A pointer that moves is an object that was never there before, so that no older read of it can be exchanged; it
    goes back for a consumer that acquires only, and to the place of an entry.
    """
    new = after.mark(c)
    fresh = And(new != s.mark(c), Not(s.used(new)), after.used(new))
    entry = some(Entry, lambda e: And(linked(s, e), s.place(e) == after.pointer(c)))
    back = Implies(after.pointer(c) < s.pointer(c), And(s.acquires(c), entry))
    return Implies(after.pointer(c) != s.pointer(c), And(fresh, back))


@SYSTEM.step("SO-4", c=Consumer)
def browsers_go_on(s: SymbolicState, after: SymbolicState, c: Term) -> Term:
    """The pointer of a browser never goes back."""
    return Implies(Not(s.acquires(c)), after.pointer(c) >= s.pointer(c))


@SYSTEM.step("TM-1", e=Entry)
def not_before_its_time(s: SymbolicState, after: SymbolicState, e: Term) -> Term:
    """A delayed entry becomes available when its time has come, and not before."""
    return Implies(And(s.status(e) == DELAYED, after.status(e) != DELAYED), s.due(e))


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


@SYSTEM.broken("acquire", "who_holds", "ES-2", "a plain write after a look", t=Thread, e=Entry, c=Consumer)  # fmt: skip
def acquire_by_set(s: SymbolicState, t: Term, e: Term, c: Term) -> tuple[Term, SymbolicState]:
    """It was seen available, and is then acquired by a plain write: what was read before need not hold any more."""
    seen = And(s.looking(t), s.whose(t) == c, s.cursor(t) == s.place(e), s.found(t))
    return And(seen, s.acquires(c), linked(s, e), Not(gone(s, e))), acquire(s, t, e, c)[1]


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


@SYSTEM.broken("acquire", "never_again", "ES-3", "a late compare-and-set", t=Thread, e=Entry, c=Consumer)  # fmt: skip
def acquire_the_dequeued(s: SymbolicState, t: Term, e: Term, c: Term) -> tuple[Term, SymbolicState]:
    """An entry that is DEQUEUED, but not yet DELETED, is taken."""
    seen = And(s.looking(t), s.whose(t) == c, s.cursor(t) == s.place(e), s.found(t))
    guard = And(seen, s.acquires(c), Or(available(s, e), s.status(e) == DEQUEUED))
    return guard, acquire(s, t, e, c)[1]


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
            s.owes(u, f, c),
            And(u == t, f == e, s.registered(c), s.acquires(c), s.pointer(c) > p),
        )
    )


@SYSTEM.broken("advance", "covered", "SP-2", "F-4", t=Thread, k=Mark)
def advance_by_value(s: SymbolicState, t: Term, k: Term) -> tuple[Term, SymbolicState]:
    """Pointers are compared by the place at which they stand, so a rewind to that very place goes unseen."""
    guard = And(
        s.looking(t),
        s.cursor(t) > s.place_seen(t),
        s.pointer(s.whose(t)) == s.place_seen(t),
        Not(s.used(k)),
    )
    return guard, advance(s, t, k)[1]


@SYSTEM.broken("advance", "a_pointer_moves_afresh", "SP-1", "an old object put back", t=Thread, k=Mark)  # fmt: skip
def advance_to_an_old_object(s: SymbolicState, t: Term, k: Term) -> tuple[Term, SymbolicState]:
    """The object that it puts there may have been a pointer before."""
    unmoved = s.mark(s.whose(t)) == s.mark_seen(t)
    return And(s.looking(t), s.cursor(t) > s.place_seen(t), unmoved), advance(s, t, k)[1]


@SYSTEM.broken("go_on", "looked_in_vain", "SP-2", "mutant advance-by-two", t=Thread, n=Entry)
def go_on_blindly(s: SymbolicState, t: Term, n: Term) -> tuple[Term, SymbolicState]:
    """It goes on from an entry at which it has not looked."""
    guard = And(s.looking(t), linked(s, n), s.place(n) > s.cursor(t))
    between = nothing_between(s, s.cursor(t), s.place(n))
    return And(guard, between), go_on(s, t, n)[1]


@SYSTEM.broken("go_on", "looked_in_vain", "SO-3", "an iteration that skips one", t=Thread, n=Entry)
def go_on_past_the_next(s: SymbolicState, t: Term, n: Term) -> tuple[Term, SymbolicState]:
    """It goes on to an entry that is not the next."""
    guard = And(s.looking(t), s.passed(t), linked(s, n), s.place(n) > s.cursor(t))
    return guard, go_on(s, t, n)[1]


@SYSTEM.broken("end_to_keep", "nothing_overdue_is_left", "TM-2", "mutant housekeeping-leaves-it", t=Thread)  # fmt: skip
def end_before_the_end(s: SymbolicState, t: Term) -> tuple[Term, SymbolicState]:
    """Housekeeping passes over what has expired."""
    return s.keeping(t), end_to_keep(s, t)[1]


@SYSTEM.broken("finish", "legal", "ES-1", "two steps in one", t=Thread, e=Entry, c=Consumer)
def finish_for_good(s: SymbolicState, t: Term, e: Term, c: Term) -> tuple[Term, SymbolicState]:
    """Its holder deletes it at once, and is not DEQUEUED first."""
    guard, after = finish(s, t, e, c)
    return guard, after.but(status=at(s.status, e, DELETED))


@SYSTEM.broken("set_free", "covered", "SP-2", "mutant group-given-up-in-silence", t=Thread, e=Entry)
def set_free_in_silence(s: SymbolicState, t: Term, e: Term) -> tuple[Term, SymbolicState]:
    """The group is free, and nobody whose pointer is past its entries is rewound."""
    guard, after = set_free(s, t, e)
    return guard, after.but(owes=s.owes)


@SYSTEM.broken("join", "group_members", "MG-1", "mutant group-not-owned", t=Thread, e=Entry, c=Consumer)  # fmt: skip
def join_the_owned(s: SymbolicState, t: Term, e: Term, c: Term) -> tuple[Term, SymbolicState]:
    """A consumer takes a group that another one owns."""
    guard = And(linked(s, e), s.grouped(e), s.acquires(c), Not(s.joined(t, e)))
    return guard, join(s, t, e, c)[1]


@SYSTEM.broken("part", "groups_in_use", "MG-2", "mutant group-leaked", t=Thread, e=Entry)
def part_and_keep(s: SymbolicState, t: Term, e: Term) -> tuple[Term, SymbolicState]:
    """The last entry of a group leaves it, and the group stays owned."""
    return s.joined(t, e), s.but(joined=at(s.joined, t, e, False))


@SYSTEM.broken(
    "rewind", "what_was_shown", "SO-4", "mutant published-browser-rewind",
    t=Thread, e=Entry, c=Consumer, k=Mark,
)  # fmt: skip
def rewind_browsers_too(
    s: SymbolicState, t: Term, e: Term, c: Term, k: Term
) -> tuple[Term, SymbolicState]:
    """A browser is rewound like everybody, and is shown again what it was shown before."""
    guard = And(s.known(c), linked(s, e), Not(s.used(k)))
    return guard, rewind(s, t, e, c, k)[1]


@SYSTEM.broken("unhold", "not_before_its_time", "TM-1", "no look at the clock", t=Thread, e=Entry)
def unhold_early(s: SymbolicState, t: Term, e: Term) -> tuple[Term, SymbolicState]:
    """Housekeeping makes a delayed entry available whatever the clock shows."""
    return s.status(e) == DELAYED, unhold(s, t, e)[1]


@SYSTEM.broken("unregister", "holders_are_there", "ES-5", "leaves, then lets go", c=Consumer)
def unregister_first(s: SymbolicState, c: Term) -> tuple[Term, SymbolicState]:
    """A consumer leaves while it holds entries, and gives them back when others have been admitted."""
    return s.registered(c), unregister(s, c)[1]
