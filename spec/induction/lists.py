"""In which list of the queue a consumer is: for any number of consumers and threads (QL-1).

A move between lists is two steps, under the consumer's own lock: out of the one, into the other.
"""

from z3 import And, BoolSort, DeclareSort, EnumSort, Implies, Not, Or

from seriatim_workshop.formal.theory import SymbolicState, Term, TransitionSystem, at, every

Consumer, Thread = map(DeclareSort, ("Consumer", "Thread"))
List, LISTS = EnumSort(
    "List", ("REMOVED", "NON_ACQUIRING", "NOT_INTERESTED", "INTERESTED", "NOTIFIED")
)
REMOVED, NON_ACQUIRING, NOT_INTERESTED, INTERESTED, NOTIFIED = LISTS
Bool = BoolSort()

SYSTEM = TransitionSystem("lists", "the lists of the consumer manager", (Consumer, Thread))

SYSTEM.declare("acquires", Consumer, Bool, rigid=True)
SYSTEM.declare("in_all", Consumer, Bool)
SYSTEM.declare("listed", Consumer, List)  # the consumer's own field
SYSTEM.declare("member", Consumer, List, Bool)  # what a walk over a list would find
SYSTEM.declare("locked", Consumer, Bool)
SYSTEM.declare("mover", Consumer, Thread)
SYSTEM.declare("between", Consumer, Bool)  # out of the one list, not yet in the other
SYSTEM.declare("leaving", Consumer, Bool)  # it closes, and comes to no list any more


@SYSTEM.initially
def start(s: SymbolicState) -> Term:
    return every(
        Consumer,
        lambda c: And(
            Not(Or(s.in_all(c), s.locked(c), s.between(c), s.leaving(c))),
            s.listed(c) == REMOVED,
            *(Not(s.member(c, kind)) for kind in LISTS),
        ),
    )


def article(old: Term, new: Term) -> Term:
    """The moves that the article knows, and coming and going."""
    return Or(
        And(old == REMOVED, Or(new == NON_ACQUIRING, new == NOT_INTERESTED, new == INTERESTED)),
        And(old == NOT_INTERESTED, Or(new == INTERESTED, new == NON_ACQUIRING, new == REMOVED)),
        And(old == NON_ACQUIRING, Or(new == NOT_INTERESTED, new == REMOVED)),
        And(old == INTERESTED, Or(new == NOTIFIED, new == NOT_INTERESTED, new == REMOVED)),
        And(old == NOTIFIED, Or(new == INTERESTED, new == NOT_INTERESTED, new == REMOVED)),
    )


@SYSTEM.action(c=Consumer)
def join_all(s: SymbolicState, c: Term) -> tuple[Term, SymbolicState]:
    """A new consumer comes into the list of all."""
    return And(Not(s.in_all(c)), Not(s.leaving(c))), s.but(in_all=at(s.in_all, c, True))


@SYSTEM.action(t=Thread, c=Consumer)
def lock(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """A thread takes the consumer's lock, to move it."""
    return And(s.in_all(c), Not(s.locked(c))), s.but(
        locked=at(s.locked, c, True), mover=at(s.mover, c, t)
    )


@SYSTEM.action(t=Thread, c=Consumer, to=List)
def leave(s: SymbolicState, t: Term, c: Term, to: Term) -> tuple[Term, SymbolicState]:
    """Under the lock, it leaves the list that it is in; from here on its field names the other."""
    guard = And(
        s.locked(c), s.mover(c) == t, Not(s.between(c)), article(s.listed(c), to),
        Implies(s.leaving(c), to == REMOVED),
        Implies(to == NON_ACQUIRING, Not(s.acquires(c))),
        Implies(Or(to == INTERESTED, to == NOTIFIED), s.acquires(c)),
    )  # fmt: skip
    return guard, left(s, c, to).but(
        member=lambda d, kind: And(s.member(d, kind), Not(And(d == c, kind == s.listed(c))))
    )


def left(s: SymbolicState, c: Term, to: Term) -> SymbolicState:
    return s.but(listed=at(s.listed, c, to), between=at(s.between, c, True))


@SYSTEM.action(t=Thread, c=Consumer)
def enter(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """Still under the lock, it enters the other list, if there is one."""
    guard = And(s.locked(c), s.mover(c) == t, s.between(c))
    return guard, s.but(
        member=lambda d, kind: Or(
            s.member(d, kind), And(d == c, kind == s.listed(c), kind != REMOVED)
        ),
        between=at(s.between, c, False),
    )


@SYSTEM.action(t=Thread, c=Consumer)
def unlock(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """The move is done."""
    guard = And(s.locked(c), s.mover(c) == t, Not(s.between(c)))
    return guard, s.but(locked=at(s.locked, c, False))


@SYSTEM.action(c=Consumer)
def begin_to_leave(s: SymbolicState, c: Term) -> tuple[Term, SymbolicState]:
    """The consumer closes: from now on it moves to no list but out of them."""
    return And(s.in_all(c), s.listed(c) == NOT_INTERESTED, Not(s.between(c))), s.but(
        leaving=at(s.leaving, c, True)
    )


@SYSTEM.action(c=Consumer)
def leave_all(s: SymbolicState, c: Term) -> tuple[Term, SymbolicState]:
    """When it is in no list, it is struck from the list of all."""
    guard = And(s.leaving(c), s.in_all(c), s.listed(c) == REMOVED, Not(s.locked(c)))
    return guard, s.but(in_all=at(s.in_all, c, False))


@SYSTEM.invariant("QL-1", c=Consumer, kind=List)
def member_of_what_it_says(s: SymbolicState, c: Term, kind: Term) -> Term:
    """Between lists it is in none; else it is in the one that its field names, and in no other."""
    return s.member(c, kind) == And(Not(s.between(c)), s.listed(c) == kind, kind != REMOVED)


@SYSTEM.invariant("QL-1", c=Consumer)
def under_the_lock(s: SymbolicState, c: Term) -> Term:
    """Only who is locked is between lists; who is in a list, or is about to be, is in the list of all."""
    return And(
        Implies(s.between(c), s.locked(c)),
        Implies(Or(s.locked(c), s.listed(c) != REMOVED), s.in_all(c)),
    )


@SYSTEM.invariant("QL-1", c=Consumer)
def of_its_kind(s: SymbolicState, c: Term) -> Term:
    """A browser is never Interested nor Notified, and nobody else is NonAcquiring."""
    return And(
        Implies(s.listed(c) == NON_ACQUIRING, Not(s.acquires(c))),
        Implies(Or(s.listed(c) == INTERESTED, s.listed(c) == NOTIFIED), s.acquires(c)),
    )


@SYSTEM.safe("QL-1", c=Consumer, one=List, other=List)
def at_most_one_list(s: SymbolicState, c: Term, one: Term, other: Term) -> Term:
    """At no time is a consumer in two lists."""
    return Implies(And(s.member(c, one), s.member(c, other)), one == other)


@SYSTEM.safe("QL-1", c=Consumer)
def exactly_one_list(s: SymbolicState, c: Term) -> Term:
    """While nobody moves it, a registered consumer is in the list of all and in exactly one other."""
    at_rest = And(Not(s.locked(c)), s.listed(c) != REMOVED)
    return Implies(at_rest, And(s.in_all(c), Or([s.member(c, kind) for kind in LISTS])))


@SYSTEM.witness(c=Consumer, d=Consumer)
def two_on_the_move(s: SymbolicState, c: Term, d: Term) -> Term:
    """Two consumers are between lists at once, moved by different threads."""
    return And(c != d, s.between(c), s.between(d), s.mover(c) != s.mover(d))


@SYSTEM.broken("leave", "member_of_what_it_says", "QL-1", "no lock", t=Thread, c=Consumer, to=List)  # fmt: skip
def leave_unlocked(s: SymbolicState, t: Term, c: Term, to: Term) -> tuple[Term, SymbolicState]:
    """A second thread moves a consumer that another is moving."""
    return And(s.in_all(c), article(s.listed(c), to)), leave(s, t, c, to)[1].but(between=s.between)


@SYSTEM.broken("leave", "member_of_what_it_says", "QL-1", "not struck off", t=Thread, c=Consumer, to=List)  # fmt: skip
def leave_without_a_mark(
    s: SymbolicState, t: Term, c: Term, to: Term
) -> tuple[Term, SymbolicState]:
    """The old list keeps it."""
    return leave(s, t, c, to)[0], left(s, c, to)


@SYSTEM.broken("leave_all", "under_the_lock", "QL-1", "closed before disinterest", c=Consumer)
def leave_all_first(s: SymbolicState, c: Term) -> tuple[Term, SymbolicState]:
    """A closing consumer is struck from the list of all before it lost its interest."""
    return s.in_all(c), leave_all(s, c)[1]
