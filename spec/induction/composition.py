"""What one system takes for granted, derived from what another proves: each lemma for any number of members.

A lemma reads a state of the system that lends as a state of the one that borrows: an entry *is* a node, say, and its
place is the number of that. From the proved claim, for all members, must follow the formula that the borrower's
guards use, taken from its own text. So a claim that is weakened, or a guard that asks for more than was proved, is
found. That the mapping is the code's no lemma says: both systems follow the same executions.
"""

from collections.abc import Callable
from dataclasses import dataclass

from z3 import And, BoolSort, Const, ForAll, Function, If, Implies, Not, Or

from seriatim_workshop.formal.theory import Formula, SymbolicState, Term, every, module

NODES, ENTRIES, LISTS, WAKEUPS, HANDOVER = map(
    module, ("nodes", "entries", "lists", "wakeups", "handover")
)


@dataclass(frozen=True)
class Lemma:
    """What a system borrows, and the claims that it follows from."""

    borrower: str
    lenders: tuple[str, ...]
    """system/claim, each."""
    conclusion: Term
    description: str


LEMMAS: dict[str, Lemma] = {}


def borrowed(borrower: str, *lenders: str) -> Callable[[Formula], Formula]:
    """Declare a lemma: the function returns what the borrower uses."""

    def register(build: Formula) -> Formula:
        text = " ".join((build.__doc__ or "").split())
        LEMMAS[build.__name__] = Lemma(borrower, lenders, build(), text)
        return build

    return register


# ---- a list of nodes, read as the entries of a queue, and as the list of all consumers

node_of_entry = Function("node of the entry", ENTRIES.Entry, NODES.Node)
node_of_consumer = Function("node of the consumer", ENTRIES.Consumer, NODES.Node)
the_list = Const("the list", NODES.List)


def entries_in_a_list() -> SymbolicState:
    """Entries that are the nodes of one list: linked as they are, gone when they are marked."""
    s = NODES.SYSTEM.state()

    def status(e: Term) -> Term:
        n = node_of_entry(e)
        there = And(s.linked(n), s.of(n) == the_list)
        return If(there, If(s.marked(n), ENTRIES.DELETED, ENTRIES.AVAILABLE), ENTRIES.ABSENT)

    return SymbolicState({"status": status, "place": lambda e: s.number(node_of_entry(e))})


@borrowed("entries", "nodes/nothing_live_between")
def an_iteration_skips_nothing() -> Term:
    """Between an entry and what comes next behind it is nothing that is linked and not gone (`go_on`)."""
    s, n = NODES.SYSTEM.state(), Const("n", NODES.Node)
    here = And(s.of(n) == the_list, s.linked(n), Not(s.last(n)))
    between = ENTRIES.nothing_between(entries_in_a_list(), s.number(n), s.number(s.next(n)))
    return ForAll([n], Implies(here, between))


@borrowed("entries", "nodes/nothing_live_between")
def a_walk_comes_to_everybody() -> Term:
    """Between a consumer of the list of all and the next is nobody who is registered (`announce`, `rewind`)."""
    s, n = NODES.SYSTEM.state(), Const("n", NODES.Node)

    def registered(c: Term) -> Term:
        m = node_of_consumer(c)
        return And(s.linked(m), s.of(m) == the_list, Not(s.marked(m)))

    def skipped(c: Term) -> Term:
        at = s.number(node_of_consumer(c))
        return And(registered(c), s.number(n) < at, at < s.number(s.next(n)))

    here = And(s.of(n) == the_list, s.linked(n), Not(s.last(n)))
    return ForAll([n], Implies(here, every(ENTRIES.Consumer, lambda c: Not(skipped(c)))))


# ---- the lists of the manager, read as the one list that `wakeups` has for each consumer


@borrowed("wakeups", "lists/at_most_one_list", "lists/a_walk_comes_to_the_interested")
def found_where_it_is() -> Term:
    """Whom a walk over Interested finds is in no other list, and the walk comes to the list that it is in."""
    s, c, other = (
        LISTS.SYSTEM.state(), Const("c", LISTS.Consumer), Const("other", LISTS.List),
    )  # fmt: skip
    alone = Implies(s.member(c, other), other == LISTS.INTERESTED)
    found = And(alone, s.there(s.level(c)))
    return ForAll([c, other], Implies(s.member(c, LISTS.INTERESTED), found))


# ---- entries and pointers, read as the messages that a look passes over

entry_of = Function("entry of the message", WAKEUPS.Message, ENTRIES.Entry)
consumer_of = Function("consumer of the consumer", WAKEUPS.Consumer, ENTRIES.Consumer)
thread_of = Function("thread of the thread", WAKEUPS.Thread, ENTRIES.Thread)
its_thread = Function("and back", ENTRIES.Thread, WAKEUPS.Thread)
higher_comes_first = Function("left to a higher one", ENTRIES.Consumer, ENTRIES.Entry, BoolSort())


def messages_of_entries() -> SymbolicState:
    """Messages that are entries. Fit is what is wanted, and not left to somebody of a higher priority."""
    s = ENTRIES.SYSTEM.state()

    def fit(c: Term, m: Term) -> Term:
        d, e = consumer_of(c), entry_of(m)
        return And(ENTRIES.wanted(s, d, e), Not(higher_comes_first(d, e)))

    def preparing(t: Term, m: Term) -> Term:
        d = Const("d", ENTRIES.Consumer)
        e = entry_of(m)
        return Not(ForAll([d], Not(s.owes(thread_of(t), e, d))))

    return SymbolicState(
        {
            "available": lambda m: ENTRIES.available(s, entry_of(m)),
            "fit": fit,
            "preparing": preparing,
            "announcer": lambda m: its_thread(s.announcer(entry_of(m))),
        }
    )


@borrowed("wakeups", "entries/a_look_misses_nothing", "entries/of_no_use_when_it_is_said")
def a_look_scans_everything() -> Term:
    """What a look comes to pass over may be scanned then; at its end that is all that is available (`see`, `scan`)."""
    s, after = ENTRIES.SYSTEM.state(), ENTRIES.SYSTEM.next_state()
    t, e = Const("t", ENTRIES.Thread), Const("e", ENTRIES.Entry)
    c, m = Const("c", WAKEUPS.Consumer), Const("m", WAKEUPS.Message)
    same = And(entry_of(m) == e, consumer_of(c) == after.whose(t))
    back = every(ENTRIES.Thread, lambda v: thread_of(its_thread(v)) == v)
    newly = And(after.vain(t, e), Not(s.vain(t, e)))
    may_scan = WAKEUPS.useless(messages_of_entries(), c, m)
    passed = Implies(And(back, same, newly), may_scan)
    whose = s.whose(t)
    end = every(
        ENTRIES.Entry,
        lambda f: Or(
            Not(ENTRIES.linked(s, f)), ENTRIES.gone(s, f), ENTRIES.behind_the_look(s, t, f)
        ),
    )
    over = And(s.looking(t), s.registered(whose), s.acquires(whose), end)
    missed = And(ENTRIES.available(s, e), Not(s.vain(t, e)))
    return ForAll([t, e, c, m], And(passed, Implies(over, Not(missed))))


# ---- targets of the hand-over, read as the wake-ups of their consumers

target_of = Function("target of the consumer", WAKEUPS.Consumer, HANDOVER.Target)


@borrowed("wakeups", "handover/nobody_is_left_waiting")
def a_wake_up_is_drawn() -> Term:
    """When the threads of the hand-over are bound to nothing, no wake-up of a consumer lies there (`draw`)."""
    s, c = HANDOVER.SYSTEM.state(), Const("c", WAKEUPS.Consumer)
    lies = If(s.waits(target_of(c)), 1, 0)
    return ForAll([c], Implies(HANDOVER.quiet(s), lies == 0))
