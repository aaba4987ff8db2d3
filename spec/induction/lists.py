"""In which list of the queue a consumer is: for any number of consumers and threads (QL-1).

A move between lists is two steps, under the consumer's own lock: out of the one, into the other.
Interested is a list for each priority; a walk comes to those that stand in the manager's field, and none is taken out.
The flag that says whether it wants messages changes under the same lock, before the list does (WK-9).
"""

from z3 import And, BoolSort, DeclareSort, EnumSort, Implies, Not, Or

from seriatim_workshop.formal.theory import SymbolicState, Term, TransitionSystem, at, every

Consumer, Thread, Level = map(DeclareSort, ("Consumer", "Thread", "Level"))
List, LISTS = EnumSort(
    "List", ("REMOVED", "NON_ACQUIRING", "NOT_INTERESTED", "INTERESTED", "NOTIFIED")
)
REMOVED, NON_ACQUIRING, NOT_INTERESTED, INTERESTED, NOTIFIED = LISTS
Place, (OUTSIDE, INSIDE, BETWEEN, DONE) = EnumSort(
    "Place", ("OUTSIDE", "INSIDE", "BETWEEN", "DONE")
)
Bool = BoolSort()

SYSTEM = TransitionSystem("lists", "the lists of the consumer manager", (Consumer, Thread, Level))

SYSTEM.declare("acquires", Consumer, Bool, rigid=True)
SYSTEM.declare("level", Consumer, Level, rigid=True)  # its priority
SYSTEM.declare("there", Level, Bool)  # a walk comes to the list of the Interested of this priority
SYSTEM.declare("in_all", Consumer, Bool)
SYSTEM.declare("begun", Consumer, Bool)  # it has been put into its first list
SYSTEM.declare("closed", Consumer, Bool)  # from here on it leads to no work
SYSTEM.declare("flag", Consumer, Bool)  # until it closes: it wants messages
SYSTEM.declare("listed", Consumer, List)  # the consumer's own field
SYSTEM.declare("member", Consumer, List, Bool)  # what a walk over a list would find

SYSTEM.declare("locked", Consumer, Bool)
SYSTEM.declare("place", Thread, Place)  # where in the text of a move the thread is
SYSTEM.declare("moves", Thread, Consumer)  # and whom it moves
SYSTEM.declare("mover", Consumer, Thread)


@SYSTEM.initially
def start(s: SymbolicState) -> Term:
    return And(
        every(
            Consumer,
            lambda c: And(
                Not(Or(s.in_all(c), s.begun(c), s.locked(c), s.closed(c), s.flag(c))),
                s.listed(c) == REMOVED,
                *(Not(s.member(c, kind)) for kind in LISTS),
            ),
        ),
        every(Thread, lambda t: s.place(t) == OUTSIDE),
        every(Level, lambda k: Not(s.there(k))),
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
    guard = And(Not(s.in_all(c)), Not(s.begun(c)), Not(s.closed(c)))
    return guard, s.but(in_all=at(s.in_all, c, True))


@SYSTEM.action(t=Thread, c=Consumer)
def lock(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """A thread takes the consumer's lock, to move it if it is where the move begins; it may have left since."""
    return And(Not(s.locked(c)), s.place(t) == OUTSIDE), locked_by(s, t, c)


def locked_by(s: SymbolicState, t: Term, c: Term) -> SymbolicState:
    return s.but(
        locked=at(s.locked, c, True),
        mover=at(s.mover, c, t),
        moves=at(s.moves, t, c),
        place=at(s.place, t, INSIDE),
    )


@SYSTEM.action(t=Thread, c=Consumer)
def raise_the_flag(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """Where a thread has the lock, it says that the consumer wants messages, before it moves it."""
    guard = And(s.place(t) == INSIDE, s.moves(t) == c, Not(s.flag(c)), Not(s.closed(c)))
    return guard, s.but(flag=at(s.flag, c, True))


@SYSTEM.action(t=Thread, c=Consumer)
def lower_the_flag(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """Where a thread has the lock, it says that the consumer wants none, before it moves it."""
    guard = And(s.place(t) == INSIDE, s.moves(t) == c, s.flag(c), Not(s.closed(c)))
    return guard, s.but(flag=at(s.flag, c, False))


def for_those_who_want(kind: Term) -> Term:
    """It is a list of consumers that want messages."""
    return Or(kind == NON_ACQUIRING, kind == INTERESTED, kind == NOTIFIED)


def agrees(s: SymbolicState, c: Term, kind: Term) -> Term:
    """The flag says what the list does; of who has closed it says nothing any more."""
    return Or(s.closed(c), s.flag(c) == for_those_who_want(kind))


def may_move(s: SymbolicState, c: Term, to: Term) -> Term:
    """The article's move from where the consumer is; out of no list once, and out of all lists when it closes."""
    return And(
        article(s.listed(c), to),
        Implies(s.listed(c) == REMOVED, And(s.in_all(c), Not(s.begun(c)))),
        Implies(s.closed(c), Or(to == REMOVED, to == NOT_INTERESTED, to == NOTIFIED)),
        Implies(to == REMOVED, s.closed(c)),
        Implies(to == NON_ACQUIRING, Not(s.acquires(c))),
        Implies(Or(to == INTERESTED, to == NOTIFIED), s.acquires(c)),
    )


@SYSTEM.action(t=Thread, c=Consumer, to=List)
def leave(s: SymbolicState, t: Term, c: Term, to: Term) -> tuple[Term, SymbolicState]:
    """Where a thread has the lock, it takes the consumer out of its list; from here on its field names the other."""
    guard = And(s.place(t) == INSIDE, s.moves(t) == c, agrees(s, c, to), may_move(s, c, to))
    return guard, left(s, t, c, to).but(
        member=lambda d, kind: And(s.member(d, kind), Not(And(d == c, kind == s.listed(c))))
    )


def left(s: SymbolicState, t: Term, c: Term, to: Term) -> SymbolicState:
    return s.but(
        listed=at(s.listed, c, to), place=at(s.place, t, BETWEEN), begun=at(s.begun, c, True)
    )


@SYSTEM.action(k=Level)
def add_list(s: SymbolicState, k: Term) -> tuple[Term, SymbolicState]:
    """The first consumer of a priority is about to come into Interested: a list for those of its kind."""
    return Not(s.there(k)), s.but(there=at(s.there, k, True))


@SYSTEM.action(t=Thread, c=Consumer)
def enter(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """Then it puts the consumer into the other list, if there is one, and one that a walk comes to."""
    found = Implies(s.listed(c) == INTERESTED, s.there(s.level(c)))
    guard = And(s.place(t) == BETWEEN, s.moves(t) == c, found)
    return guard, entered(s, t, c)


def entered(s: SymbolicState, t: Term, c: Term) -> SymbolicState:
    return s.but(
        member=lambda d, kind: Or(
            s.member(d, kind), And(d == c, kind == s.listed(c), kind != REMOVED)
        ),
        place=at(s.place, t, DONE),
    )


@SYSTEM.action(t=Thread, c=Consumer)
def unlock(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """The move is done, or there was none to do."""
    done = Or(And(s.place(t) == INSIDE, agrees(s, c, s.listed(c))), s.place(t) == DONE)
    return And(done, s.moves(t) == c), unlocked(s, t, c)


def unlocked(s: SymbolicState, t: Term, c: Term) -> SymbolicState:
    return s.but(locked=at(s.locked, c, False), place=at(s.place, t, OUTSIDE))


@SYSTEM.action(c=Consumer)
def close(s: SymbolicState, c: Term) -> tuple[Term, SymbolicState]:
    """Its flag says that it is closed: from now on it moves to no list but out of them."""
    return And(s.in_all(c), s.begun(c), Not(s.closed(c))), s.but(closed=at(s.closed, c, True))


@SYSTEM.action(c=Consumer)
def leave_all(s: SymbolicState, c: Term) -> tuple[Term, SymbolicState]:
    """When it is in no list for good, it is deleted from the list of all."""
    guard = And(s.closed(c), s.in_all(c), s.listed(c) == REMOVED)
    return guard, s.but(in_all=at(s.in_all, c, False))


@SYSTEM.invariant("QL-1", t=Thread, c=Consumer)
def one_has_the_lock(s: SymbolicState, t: Term, c: Term) -> Term:
    """Who is inside a move has the lock of whom it moves, and no two threads move one consumer."""
    return And(
        Implies(And(s.place(t) != OUTSIDE, s.moves(t) == c), And(s.locked(c), s.mover(c) == t)),
        Implies(s.locked(c), And(s.place(s.mover(c)) != OUTSIDE, s.moves(s.mover(c)) == c)),
    )


def between(s: SymbolicState, c: Term) -> Term:
    """Somebody has taken it out of a list, and not yet put it into the other."""
    return And(s.locked(c), s.place(s.mover(c)) == BETWEEN)


@SYSTEM.invariant("QL-1", c=Consumer, kind=List)
def member_of_what_it_says(s: SymbolicState, c: Term, kind: Term) -> Term:
    """Between lists it is in none; else it is in the one that its field names, and in no other."""
    return s.member(c, kind) == And(Not(between(s, c)), s.listed(c) == kind, kind != REMOVED)


@SYSTEM.invariant("QL-1", c=Consumer)
def in_all_while_listed(s: SymbolicState, c: Term) -> Term:
    """Who is in a list, or about to be, is in the list of all; who has begun stays in a list until it closes."""
    return And(
        Implies(s.listed(c) != REMOVED, s.in_all(c)),
        Implies(And(s.begun(c), Not(s.closed(c))), And(s.listed(c) != REMOVED, s.in_all(c))),
        Implies(Not(s.begun(c)), s.listed(c) == REMOVED),
        Implies(s.closed(c), s.begun(c)),
    )


@SYSTEM.invariant("QL-1", c=Consumer)
def of_its_kind(s: SymbolicState, c: Term) -> Term:
    """A browser is never Interested nor Notified, and nobody else is NonAcquiring."""
    return And(
        Implies(s.listed(c) == NON_ACQUIRING, Not(s.acquires(c))),
        Implies(Or(s.listed(c) == INTERESTED, s.listed(c) == NOTIFIED), s.acquires(c)),
    )


@SYSTEM.invariant("QL-1", c=Consumer)
def in_a_list_that_is_there(s: SymbolicState, c: Term) -> Term:
    """Who is Interested is in a list that a walk comes to."""
    return Implies(s.member(c, INTERESTED), s.there(s.level(c)))


@SYSTEM.invariant("WK-9", c=Consumer)
def the_flag_comes_first(s: SymbolicState, c: Term) -> Term:
    """The flag says what the list does, but where it was changed just now, by who is about to move the consumer."""
    about_to_move = And(s.locked(c), s.place(s.mover(c)) == INSIDE)
    return Or(agrees(s, c, s.listed(c)), about_to_move)


@SYSTEM.safe("WK-9", c=Consumer)
def the_flag_is_as_the_list(s: SymbolicState, c: Term) -> Term:
    """While nobody moves it, and until it closes, a consumer is NotInterested exactly if its flag says so."""
    at_rest = And(Not(s.locked(c)), s.begun(c), Not(s.closed(c)))
    return Implies(at_rest, s.flag(c) == (s.listed(c) != NOT_INTERESTED))


@SYSTEM.safe("QL-1", c=Consumer, one=List, other=List)
def at_most_one_list(s: SymbolicState, c: Term, one: Term, other: Term) -> Term:
    """At no time is a consumer in two lists."""
    return Implies(And(s.member(c, one), s.member(c, other)), one == other)


@SYSTEM.safe("QL-1", c=Consumer)
def exactly_one_list(s: SymbolicState, c: Term) -> Term:
    """While nobody moves it, a consumer that has begun is in the list of all and in one other, until it closes."""
    at_rest = And(Not(s.locked(c)), s.begun(c), Not(s.closed(c)))
    return Implies(at_rest, And(s.in_all(c), Or([s.member(c, kind) for kind in LISTS])))


@SYSTEM.safe("QL-1", c=Consumer, kind=List)
def in_no_list_after_all(s: SymbolicState, c: Term, kind: Term) -> Term:
    """Who is not in the list of all is in no other."""
    return Implies(Not(s.in_all(c)), Not(s.member(c, kind)))


@SYSTEM.safe("QL-1", c=Consumer, k=Level)
def a_walk_comes_to_the_interested(s: SymbolicState, c: Term, k: Term) -> Term:
    """A walk over the lists that are there comes to the list of everybody who is Interested."""
    return Implies(And(s.member(c, INTERESTED), s.level(c) == k), s.there(k))


@SYSTEM.step("QL-1", k=Level)
def a_list_stays(s: SymbolicState, after: SymbolicState, k: Term) -> Term:
    """A list of the Interested that a walk comes to is there for good."""
    return Implies(s.there(k), after.there(k))


@SYSTEM.witness(c=Consumer, d=Consumer)
def two_on_the_move(s: SymbolicState, c: Term, d: Term) -> Term:
    """Two consumers are between lists at once, moved by different threads."""
    return And(c != d, between(s, c), between(s, d), s.mover(c) != s.mover(d))


@SYSTEM.witness(c=Consumer)
def locked_after_it_left(s: SymbolicState, c: Term) -> Term:
    """A thread that was about to notify a consumer has its lock, and the consumer is not even in the list of all."""
    return And(s.locked(c), s.closed(c), Not(s.in_all(c)))


@SYSTEM.broken("lock", "one_has_the_lock", "QL-1", "no lock", t=Thread, c=Consumer)
def lock_without_a_lock(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """A second thread moves a consumer that another is moving."""
    return s.place(t) == OUTSIDE, lock(s, t, c)[1]


@SYSTEM.broken(
    "leave", "member_of_what_it_says", "QL-1", "mutant left-in-the-old-list",
    t=Thread, c=Consumer, to=List,
)  # fmt: skip
def leave_without_a_mark(
    s: SymbolicState, t: Term, c: Term, to: Term
) -> tuple[Term, SymbolicState]:
    """The old list keeps it."""
    return leave(s, t, c, to)[0], left(s, t, c, to)


@SYSTEM.broken("leave_all", "in_all_while_listed", "QL-1", "mutant closed-before-disinterest", c=Consumer)  # fmt: skip
def leave_all_first(s: SymbolicState, c: Term) -> tuple[Term, SymbolicState]:
    """A closing consumer is deleted from the list of all before it lost its interest."""
    return And(s.closed(c), s.in_all(c)), leave_all(s, c)[1]


@SYSTEM.broken(
    "enter", "in_a_list_that_is_there", "QL-1", "a list that no walk knows", t=Thread, c=Consumer
)
def enter_unseen(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """It comes into a list of the Interested of its priority that the manager does not have yet."""
    return And(s.place(t) == BETWEEN, s.moves(t) == c), entered(s, t, c)


@SYSTEM.broken("add_list", "a_list_stays", "QL-1", "a compare-and-set that drops a list", k=Level)
def replace_lists(s: SymbolicState, k: Term) -> tuple[Term, SymbolicState]:
    """The new list takes the place of all others, and whoever is in those is not found any more."""
    return Not(s.there(k)), s.but(there=lambda j: j == k)


@SYSTEM.broken(
    "leave", "the_flag_comes_first", "WK-9", "a flag that is set behind the list",
    t=Thread, c=Consumer, to=List,
)  # fmt: skip
def leave_before_the_flag(
    s: SymbolicState, t: Term, c: Term, to: Term
) -> tuple[Term, SymbolicState]:
    """It moves a consumer whose flag says still what it said before."""
    guard = And(s.place(t) == INSIDE, s.moves(t) == c, may_move(s, c, to))
    return guard, leave(s, t, c, to)[1]


@SYSTEM.broken(
    "unlock", "the_flag_comes_first", "WK-9", "a flag that is set, and no move",
    t=Thread, c=Consumer,
)  # fmt: skip
def unlock_without_a_move(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """It sets the flag, and leaves the consumer in the list that says otherwise."""
    guard = And(Or(s.place(t) == INSIDE, s.place(t) == DONE), s.moves(t) == c)
    return guard, unlocked(s, t, c)


@SYSTEM.broken(
    "lower_the_flag", "the_flag_comes_first", "WK-9", "a flag without the lock",
    t=Thread, c=Consumer,
)  # fmt: skip
def lower_the_flag_without_the_lock(
    s: SymbolicState, t: Term, c: Term
) -> tuple[Term, SymbolicState]:
    """A thread that has not the consumer's lock says that it wants nothing."""
    return And(s.begun(c), s.flag(c)), lower_the_flag(s, t, c)[1]
