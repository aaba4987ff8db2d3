"""How a list is linked, and what an iteration over it sees: for any number of lists, nodes and threads (QL-2 to QL-4).

This is `NodeList` and `ConsumerList` of `reference/seriatim/queue.py`, rules 1 and 8; the entries are such a list too.
Each node has a number; the head of a list is a node with the number 0. A node is deleted by a mark, once and for all.
Other systems borrow `nothing_live_between`: who goes on from a node to the next skips nothing that is not deleted.

A *walk* is one iteration of one thread. It returns what it has seen undeleted, in order, and ends where it has read
that nothing follows. *Moments* number what comes, goes and begins, so that a claim can say "before the walk began".
"""

from z3 import And, BoolSort, DeclareSort, If, Implies, IntSort, Not, Or

from seriatim_workshop.formal.theory import SymbolicState, Term, TransitionSystem, at, every

Node, List, Thread, Walk = map(DeclareSort, ("Node", "List", "Thread", "Walk"))
Bool, Int = BoolSort(), IntSort()

SYSTEM = TransitionSystem("nodes", "how lists are linked", (Node, List, Thread, Walk))

SYSTEM.declare("of", Node, List, rigid=True)
SYSTEM.declare("is_head", Node, Bool, rigid=True)
SYSTEM.declare("sized", List, Bool, rigid=True)  # it knows its size: a list of consumers

SYSTEM.declare("linked", Node, Bool)
SYSTEM.declare("number", Node, Int)
SYSTEM.declare("last", Node, Bool)  # nothing is linked behind it
SYSTEM.declare("next", Node, Node)  # what is linked behind it, if anything is
SYSTEM.declare("marked", Node, Bool)
SYSTEM.declare("tail", List, Node)
SYSTEM.declare("counted", Node, Bool)  # it has been added to the size
SYSTEM.declare("uncounted", Node, Bool)  # and taken away again

SYSTEM.declare("knows", Thread, Bool)  # it has read what was next behind a node
SYSTEM.declare("here", Thread, Node)
SYSTEM.declare("there", Thread, Node)

SYSTEM.declare("moment", Int)  # the next
SYSTEM.declare("linked_at", Node, Int)
SYSTEM.declare("marked_at", Node, Int)
SYSTEM.declare("began_at", Walk, Int)
SYSTEM.declare("going", Walk, Bool)  # it has begun and not ended
SYSTEM.declare("done", Walk, Bool)
SYSTEM.declare("walker", Walk, Thread)
SYSTEM.declare("base", Walk, Node)  # what it returned last; before that the head
SYSTEM.declare(
    "covered", Walk, Int
)  # what it knows of all nodes up to this number: seen live, or marked
SYSTEM.declare("at_the_end", Walk, Bool)  # it has read that nothing follows
SYSTEM.declare("seen_live", Walk, Node, Bool)
SYSTEM.declare("returned", Walk, Node, Bool)
SYSTEM.declare(
    "calm", Walk, Bool
)  # only this walk has changed what comes next in its list, where it stands


@SYSTEM.initially
def start(s: SymbolicState) -> Term:
    return And(
        every(Node, lambda n: And(s.linked(n) == s.is_head(n), s.last(n), s.number(n) == 0)),
        every(Node, lambda n: Not(Or(s.marked(n), s.counted(n), s.uncounted(n)))),
        every(Node, Node, lambda m, n: Implies(And(s.is_head(m), s.is_head(n), s.of(m) == s.of(n)), m == n)),
        every(List, lambda k: And(s.is_head(s.tail(k)), s.of(s.tail(k)) == k)),
        every(Thread, lambda t: Not(s.knows(t))),
        every(Walk, lambda w: Not(Or(s.going(w), s.done(w), s.at_the_end(w)))),
        every(Walk, Node, lambda w, n: Not(Or(s.seen_live(w, n), s.returned(w, n)))),
    )  # fmt: skip


# ---- a node comes


@SYSTEM.action(n=Node)
def count(s: SymbolicState, n: Term) -> tuple[Term, SymbolicState]:
    """The size goes up before the node is linked (rule 8)."""
    guard = And(s.sized(s.of(n)), Not(s.linked(n)), Not(s.counted(n)))
    return guard, s.but(counted=at(s.counted, n, True))


@SYSTEM.action(n=Node, x=Node)
def link(s: SymbolicState, n: Term, x: Term) -> tuple[Term, SymbolicState]:
    """A compare-and-set of the last node's `next`, from nothing: the node comes behind it (rule 1)."""
    guard = And(
        Not(s.linked(n)),
        Not(s.marked(n)),
        Implies(s.sized(s.of(n)), s.counted(n)),
        s.linked(x),
        s.last(x),
        s.of(n) == s.of(x),
    )
    return guard, linked_behind(s, n, x)


def linked_behind(s: SymbolicState, n: Term, x: Term) -> SymbolicState:
    return s.but(
        linked=at(s.linked, n, True),
        number=at(s.number, n, s.number(x) + 1),
        last=at(at(s.last, n, True), x, False),
        next=at(s.next, x, n),
        linked_at=at(s.linked_at, n, s.moment()),
        moment=at(s.moment, s.moment() + 1),
        calm=lambda w: And(s.calm(w), s.of(s.base(w)) != s.of(x)),
    )


@SYSTEM.action(x=Node)
def swing(s: SymbolicState, x: Term) -> tuple[Term, SymbolicState]:
    """The tail goes on by one: by whoever linked there, or by another that finds it so."""
    k = s.of(x)
    guard = And(s.linked(x), s.tail(k) == x, Not(s.last(x)))
    return guard, s.but(tail=at(s.tail, k, s.next(x)))


# ---- a node goes


@SYSTEM.action(n=Node)
def mark(s: SymbolicState, n: Term) -> tuple[Term, SymbolicState]:
    """It is deleted, and stays linked for now."""
    guard = And(s.linked(n), Not(s.is_head(n)), Not(s.marked(n)))
    return guard, s.but(
        marked=at(s.marked, n, True),
        marked_at=at(s.marked_at, n, s.moment()),
        moment=at(s.moment, s.moment() + 1),
    )


@SYSTEM.action(n=Node)
def uncount(s: SymbolicState, n: Term) -> tuple[Term, SymbolicState]:
    """The size goes down after the node was marked (rule 8)."""
    guard = And(s.counted(n), Not(s.uncounted(n)), s.marked(n))
    return guard, s.but(uncounted=at(s.uncounted, n, True))


@SYSTEM.action(t=Thread, x=Node)
def follow(s: SymbolicState, t: Term, x: Term) -> tuple[Term, SymbolicState]:
    """A thread reads what comes next."""
    guard = And(s.linked(x), Not(s.last(x)))
    return guard, s.but(
        knows=at(s.knows, t, True), here=at(s.here, t, x), there=at(s.there, t, s.next(x))
    )


@SYSTEM.action(t=Thread, x=Node)
def unlink(s: SymbolicState, t: Term, x: Term) -> tuple[Term, SymbolicState]:
    """A marked node that is not the last is left out: a compare-and-set to what the thread has read behind it."""
    guard = And(
        s.linked(x), Not(s.last(x)), s.knows(t), s.next(x) == s.here(t), s.marked(s.here(t))
    )
    return guard, s.but(
        next=at(s.next, x, s.there(t)),
        calm=lambda w: And(
            s.calm(w), Or(s.of(s.base(w)) != s.of(x), And(s.walker(w) == t, s.base(w) == x))
        ),
    )


# ---- a walk


@SYSTEM.action(w=Walk, t=Thread, h=Node)
def begin_walk(s: SymbolicState, w: Term, t: Term, h: Term) -> tuple[Term, SymbolicState]:
    """A thread begins to iterate over a list."""
    return And(Not(begun(s, w)), s.is_head(h)), s.but(
        going=at(s.going, w, True),
        walker=at(s.walker, w, t),
        base=at(s.base, w, h),
        covered=at(s.covered, w, 0),
        calm=at(s.calm, w, True),
        began_at=at(s.began_at, w, s.moment()),
        moment=at(s.moment, s.moment() + 1),
    )


@SYSTEM.action(w=Walk, x=Node)
def read_on(s: SymbolicState, w: Term, x: Term) -> tuple[Term, SymbolicState]:
    """It reads what comes next behind a node that it has come to: what is skipped is marked."""
    before = s.number(s.next(x)) - 1
    guard = And(come_to(s, w, x), Not(s.last(x)))
    return guard, s.but(covered=at(s.covered, w, If(before > s.covered(w), before, s.covered(w))))


@SYSTEM.action(w=Walk, x=Node)
def read_the_end(s: SymbolicState, w: Term, x: Term) -> tuple[Term, SymbolicState]:
    """It reads that nothing follows."""
    return And(come_to(s, w, x), s.last(x)), s.but(at_the_end=at(s.at_the_end, w, True))


@SYSTEM.action(w=Walk, n=Node)
def see_live(s: SymbolicState, w: Term, n: Term) -> tuple[Term, SymbolicState]:
    """It looks whether the next node is deleted, and it is not."""
    up_to = If(s.number(n) > s.covered(w), s.number(n), s.covered(w))
    guard = And(next_in_turn(s, w, n), Not(s.is_head(n)), Not(s.marked(n)))
    return guard, s.but(seen_live=at(s.seen_live, w, n, True), covered=at(s.covered, w, up_to))


@SYSTEM.action(w=Walk, n=Node)
def see_marked(s: SymbolicState, w: Term, n: Term) -> tuple[Term, SymbolicState]:
    """It looks whether the next node is deleted, and it is."""
    up_to = If(s.number(n) > s.covered(w), s.number(n), s.covered(w))
    guard = And(next_in_turn(s, w, n), s.marked(n))
    return guard, s.but(covered=at(s.covered, w, up_to))


@SYSTEM.action(w=Walk, n=Node)
def hand_out(s: SymbolicState, w: Term, n: Term) -> tuple[Term, SymbolicState]:
    """It returns a node that it has seen undeleted: the next one, if nobody else has changed the list."""
    guard = And(
        s.going(w),
        s.seen_live(w, n),
        s.number(n) > s.number(s.base(w)),
        Implies(s.calm(w), And(Not(s.last(s.base(w))), s.next(s.base(w)) == n)),
    )
    return guard, handed_out(s, w, n)


def handed_out(s: SymbolicState, w: Term, n: Term) -> SymbolicState:
    return s.but(returned=at(s.returned, w, n, True), base=at(s.base, w, n))


@SYSTEM.action(w=Walk)
def end_walk(s: SymbolicState, w: Term) -> tuple[Term, SymbolicState]:
    """It has read that nothing follows. Undisturbed it leaves one node at most behind the one it returned last."""
    base = s.base(w)
    guard = And(
        s.going(w),
        s.at_the_end(w),
        every(Node, lambda n: Implies(s.seen_live(w, n), Or(s.returned(w, n), s.marked(n)))),
        Implies(s.calm(w), Or(s.last(base), s.last(s.next(base)))),
    )
    return guard, ended(s, w)


def ended(s: SymbolicState, w: Term) -> SymbolicState:
    return s.but(going=at(s.going, w, False), done=at(s.done, w, True))


def begun(s: SymbolicState, w: Term) -> Term:
    return Or(s.going(w), s.done(w))


def in_its_list(s: SymbolicState, w: Term, n: Term) -> Term:
    return And(s.linked(n), s.of(n) == s.of(s.base(w)))


def come_to(s: SymbolicState, w: Term, x: Term) -> Term:
    """It goes on, and knows of everything up to this node."""
    return And(s.going(w), in_its_list(s, w, x), s.number(x) <= s.covered(w))


def next_in_turn(s: SymbolicState, w: Term, n: Term) -> Term:
    return And(s.going(w), in_its_list(s, w, n), s.number(n) <= s.covered(w) + 1)


def there_before(s: SymbolicState, w: Term, n: Term) -> Term:
    """It was linked when the walk began."""
    return And(in_its_list(s, w, n), Not(s.is_head(n)), s.linked_at(n) < s.began_at(w))


def dead_before(s: SymbolicState, w: Term, n: Term) -> Term:
    """It was deleted when the walk began."""
    return And(s.marked(n), s.marked_at(n) < s.began_at(w))


# ---- what is always so


@SYSTEM.invariant("SO-1", n=Node, k=List)
def in_order(s: SymbolicState, n: Term, k: Term) -> Term:
    """What comes next is linked, in the same list, and has a greater number."""
    m = s.next(n)
    return And(
        Implies(
            Not(s.last(n)),
            And(s.linked(n), s.linked(m), s.of(m) == s.of(n), s.number(m) > s.number(n)),
        ),
        s.linked(s.tail(k)),
        s.of(s.tail(k)) == k,
        Implies(s.is_head(n), And(s.linked(n), Not(s.marked(n)))),
        Implies(s.linked(n), And(s.number(n) >= 0, s.is_head(n) == (s.number(n) == 0))),
    )


@SYSTEM.invariant("SO-1", n=Node, x=Node)
def the_last_is_last(s: SymbolicState, n: Term, x: Term) -> Term:
    """Behind what has nothing behind it is nothing of its list; no two nodes of a list have one number."""
    both = And(s.linked(n), s.linked(x), s.of(n) == s.of(x))
    return And(
        Implies(And(both, s.last(x)), s.number(n) <= s.number(x)),
        Implies(And(both, s.number(n) == s.number(x)), n == x),
    )


@SYSTEM.invariant("QL-3", n=Node, m=Node)
def skipped_is_marked(s: SymbolicState, n: Term, m: Term) -> Term:
    """What lies between a node and the next one is marked."""
    between = And(s.number(n) < s.number(m), s.number(m) < s.number(s.next(n)))
    there = And(s.linked(m), s.of(m) == s.of(n), Not(s.last(n)))
    return Implies(And(there, between), s.marked(m))


@SYSTEM.invariant("QL-3", t=Thread, m=Node)
def read_is_still_so(s: SymbolicState, t: Term, m: Term) -> Term:
    """What lies between two nodes that a thread has read one after the other is marked, and stays so."""
    x, y = s.here(t), s.there(t)
    order = And(
        s.linked(x), Not(s.last(x)), s.linked(y), s.of(x) == s.of(y), s.number(x) < s.number(y)
    )
    between = And(
        s.linked(m), s.of(m) == s.of(x), s.number(x) < s.number(m), s.number(m) < s.number(y)
    )
    return Implies(s.knows(t), And(order, Implies(between, s.marked(m))))


@SYSTEM.invariant("QL-2", n=Node)
def size_of_one(s: SymbolicState, n: Term) -> Term:
    """Up before it is linked, down after it is marked."""
    return And(
        Implies(And(s.linked(n), s.sized(s.of(n)), Not(s.is_head(n))), s.counted(n)),
        Implies(s.uncounted(n), And(s.counted(n), s.marked(n))),
        Implies(s.marked(n), s.linked(n)),
    )


@SYSTEM.invariant("", n=Node, w=Walk)
def moments(s: SymbolicState, n: Term, w: Term) -> Term:
    """What came, went or began did so before now."""
    return And(
        Implies(And(s.linked(n), Not(s.is_head(n))), s.linked_at(n) < s.moment()),
        Implies(s.marked(n), s.marked_at(n) < s.moment()),
        Implies(begun(s, w), s.began_at(w) < s.moment()),
    )


@SYSTEM.invariant("QL-3", w=Walk, n=Node)
def what_it_returns(s: SymbolicState, w: Term, n: Term) -> Term:
    """It returns what it has seen live, in order; what it has seen live was not deleted when it began."""
    seen = And(begun(s, w), in_its_list(s, w, n), Not(s.is_head(n)), Not(dead_before(s, w, n)))
    return And(
        Implies(s.seen_live(w, n), seen),
        Implies(s.returned(w, n), And(s.seen_live(w, n), s.number(n) <= s.number(s.base(w)))),
        Implies(begun(s, w), Or(s.is_head(s.base(w)), s.returned(w, s.base(w)))),
    )


@SYSTEM.invariant("QL-3", w=Walk, m=Node)
def what_it_knows(s: SymbolicState, w: Term, m: Term) -> Term:
    """Of what was there before it began and is not deleted it has seen all up to where it is; at the end, all."""
    there = And(begun(s, w), there_before(s, w, m))
    return And(
        Implies(And(there, s.number(m) <= s.covered(w), Not(s.marked(m))), s.seen_live(w, m)),
        Implies(And(there, s.at_the_end(w)), s.number(m) <= s.covered(w)),
        Implies(s.at_the_end(w), begun(s, w)),
        Implies(s.done(w), And(s.at_the_end(w), Not(s.going(w)))),
        Implies(And(s.done(w), s.seen_live(w, m)), Or(s.returned(w, m), s.marked(m))),
    )


@SYSTEM.invariant("QL-4", w=Walk, m=Node)
def what_lies_behind_it(s: SymbolicState, w: Term, m: Term) -> Term:
    """Undisturbed it leaves behind it a list of what it has returned."""
    by = And(in_its_list(s, w, m), Or(s.is_head(m), s.returned(w, m)))
    behind = And(s.going(w), s.calm(w), by, s.number(m) < s.number(s.base(w)))
    return Implies(behind, And(Not(s.last(m)), s.returned(w, s.next(m))))


# ---- what follows


@SYSTEM.safe("QL-3", n=Node, m=Node)
def nothing_live_between(s: SymbolicState, n: Term, m: Term) -> Term:
    """Who goes on from a node to the next skips nothing that is linked and not deleted: each iteration is complete."""
    live = And(s.linked(m), s.of(m) == s.of(n), Not(s.marked(m)), Not(s.last(n)))
    return Implies(And(live, s.number(m) > s.number(n)), s.number(m) >= s.number(s.next(n)))


@SYSTEM.safe("QL-3", w=Walk, n=Node)
def returns_nothing_dead(s: SymbolicState, w: Term, n: Term) -> Term:
    """An iteration returns nothing that was deleted before it began."""
    return Implies(s.returned(w, n), Not(dead_before(s, w, n)))


@SYSTEM.safe("QL-3", w=Walk, n=Node)
def misses_nothing(s: SymbolicState, w: Term, n: Term) -> Term:
    """An iteration that has ended has returned what was there before it began and is not deleted."""
    return Implies(And(s.done(w), there_before(s, w, n), Not(s.marked(n))), s.returned(w, n))


@SYSTEM.safe("QL-2", n=Node)
def sizes(s: SymbolicState, n: Term) -> Term:
    """A node counts for one as long as it is in the list; the size is the sum, and never less than the contents."""
    inside = And(s.linked(n), s.sized(s.of(n)), Not(s.is_head(n)), Not(s.marked(n)))
    return And(
        Implies(inside, And(s.counted(n), Not(s.uncounted(n)))),
        Implies(s.uncounted(n), s.counted(n)),
    )


@SYSTEM.step("QL-4", n=Node)
def only_the_marked_go(s: SymbolicState, after: SymbolicState, n: Term) -> Term:
    """Only a marked node that has another behind it is unlinked, and a link never goes back."""
    old, new = s.next(n), after.next(n)
    changed = And(Not(s.last(n)), old != new)
    return And(
        Implies(changed, And(s.marked(old), Not(s.last(old)), s.number(new) > s.number(old))),
        Implies(Not(s.last(n)), Not(after.last(n))),
    )


@SYSTEM.step("QL-4", w=Walk, n=Node)
def leaves_nothing_dead(s: SymbolicState, after: SymbolicState, w: Term, n: Term) -> Term:
    """An iteration in whose list nobody else changes a link leaves, behind the head and what it has returned,
    nothing that was deleted before it began but the last.
    """
    ends = And(Not(s.done(w)), after.done(w), s.calm(w))
    by = And(in_its_list(s, w, n), Or(s.is_head(n), s.returned(w, n)), Not(s.last(n)))
    return Implies(And(ends, by), Or(s.last(s.next(n)), Not(dead_before(s, w, s.next(n)))))


@SYSTEM.step("SO-2", n=Node)
def number_for_life(s: SymbolicState, after: SymbolicState, n: Term) -> Term:
    """A linked node keeps its number, and a deleted one stays deleted."""
    return And(
        Implies(s.linked(n), And(after.linked(n), after.number(n) == s.number(n))),
        Implies(s.marked(n), after.marked(n)),
    )


# ---- what is possible


@SYSTEM.witness(n=Node, t=Thread)
def unlinked_and_still_read(s: SymbolicState, n: Term, t: Term) -> Term:
    """A thread stands on a node that has been left out meanwhile, and has read what is behind it."""
    return And(
        s.knows(t), s.here(t) == n, s.marked(n),
        every(Node, lambda x: Or(s.last(x), s.next(x) != n)),
    )  # fmt: skip


@SYSTEM.witness(k=List)
def the_tail_lags(s: SymbolicState, k: Term) -> Term:
    """The tail is two nodes behind the last."""
    return And(Not(s.last(s.tail(k))), Not(s.last(s.next(s.tail(k)))))


@SYSTEM.witness(w=Walk, n=Node, m=Node)
def unlinked_undisturbed(s: SymbolicState, w: Term, n: Term, m: Term) -> Term:
    """A walk that nobody disturbed has ended, has returned something, and has left out what was deleted before."""
    return And(
        s.done(w), s.calm(w), s.returned(w, n), dead_before(s, w, m), s.of(m) == s.of(n),
        every(Node, lambda x: Or(s.last(x), s.marked(x), s.next(x) != m)),
    )  # fmt: skip


# ---- broken variants


@SYSTEM.broken(
    "hand_out", "what_it_returns", "QL-3", "mutant iteration-returns-deleted", w=Walk, n=Node
)
def hand_out_unseen(s: SymbolicState, w: Term, n: Term) -> tuple[Term, SymbolicState]:
    """It returns a node without having seen it undeleted: the last one, say."""
    guard = And(s.going(w), in_its_list(s, w, n), s.number(n) > s.number(s.base(w)))
    return guard, handed_out(s, w, n)


@SYSTEM.broken(
    "hand_out", "what_lies_behind_it", "QL-4", "mutant unlink-at-the-head-only", w=Walk, n=Node
)
def hand_out_beyond(s: SymbolicState, w: Term, n: Term) -> tuple[Term, SymbolicState]:
    """It goes by what is deleted, and leaves it linked."""
    guard = And(s.going(w), s.seen_live(w, n), s.number(n) > s.number(s.base(w)))
    return guard, handed_out(s, w, n)


@SYSTEM.broken("end_walk", "what_it_knows", "QL-3", "the last is taken for the end", w=Walk)
def end_walk_early(s: SymbolicState, w: Term) -> tuple[Term, SymbolicState]:
    """It ends where it has not read that nothing follows."""
    return s.going(w), ended(s, w)


@SYSTEM.broken("link", "the_last_is_last", "SO-1", "mutant link-without-cas", n=Node, x=Node)
def link_without_a_look(s: SymbolicState, n: Term, x: Term) -> tuple[Term, SymbolicState]:
    """A plain write links it, though another may have been linked there meanwhile."""
    guard = And(Not(s.linked(n)), Not(s.marked(n)), s.linked(x), s.of(n) == s.of(x), s.counted(n))
    return guard, linked_behind(s, n, x)


@SYSTEM.broken("unlink", "skipped_is_marked", "QL-3", "mutant unlink-acquired", t=Thread, x=Node)
def unlink_the_live(s: SymbolicState, t: Term, x: Term) -> tuple[Term, SymbolicState]:
    """A node that is not marked is left out."""
    guard = And(s.linked(x), Not(s.last(x)), s.knows(t), s.next(x) == s.here(t))
    return guard, unlink(s, t, x)[1]


@SYSTEM.broken("unlink", "only_the_marked_go", "QL-4", "mutant tail-unlinked", t=Thread, x=Node)
def unlink_the_last(s: SymbolicState, t: Term, x: Term) -> tuple[Term, SymbolicState]:
    """The last node is left out, though an append may be under way behind it."""
    guard = And(s.linked(x), Not(s.last(x)), s.marked(s.next(x)), s.last(s.next(x)))
    return guard, s.but(last=at(s.last, x, True))


@SYSTEM.broken("link", "size_of_one", "QL-2", "mutant published-size-late", n=Node, x=Node)
def link_uncounted(s: SymbolicState, n: Term, x: Term) -> tuple[Term, SymbolicState]:
    """It is linked first and counted later: meanwhile it may be marked, and the size read negative."""
    guard = And(Not(s.linked(n)), Not(s.marked(n)), s.linked(x), s.last(x), s.of(n) == s.of(x))
    return guard, linked_behind(s, n, x)


@SYSTEM.broken("uncount", "size_of_one", "QL-2", "down before the mark", n=Node)
def uncount_early(s: SymbolicState, n: Term) -> tuple[Term, SymbolicState]:
    """The size goes down while the node is still in the list."""
    guard = And(s.counted(n), Not(s.uncounted(n)))
    return guard, uncount(s, n)[1]


@SYSTEM.broken("uncount", "number_for_life", "SO-2", "a place is used again", n=Node)
def recycle(s: SymbolicState, n: Term) -> tuple[Term, SymbolicState]:
    """A deleted node becomes a new one, while somebody may still stand on it."""
    return And(s.marked(n), s.last(n)), s.but(
        marked=at(s.marked, n, False), number=at(s.number, n, s.number(n) + 1)
    )
