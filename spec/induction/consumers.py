"""A consumer's life: it joins, says what it wants, pays for what it takes, and closes, once (rule 9).

This is what `reference/seriatim/queue.py` keeps besides entries and lists: the flag `wants_work`, credit, the only one
of an exclusive queue, and the two locks, of admission and of sending. Any number of consumers and threads.
"""

from z3 import And, BoolSort, DeclareSort, EnumSort, If, Implies, IntSort, Not, Or

from seriatim_workshop.formal.theory import SymbolicState, Term, TransitionSystem, at, every, some

Consumer, Thread, Name = map(DeclareSort, ("Consumer", "Thread", "Name"))
Wish, (WORK, NOTHING, CLOSED) = EnumSort("Wish", ("WORK", "NOTHING", "CLOSED"))
Bool, Int = BoolSort(), IntSort()

SYSTEM = TransitionSystem(
    "consumers", "consumers that join, pay and close", (Consumer, Thread, Name)
)

SYSTEM.declare("name", Consumer, Name, rigid=True)
SYSTEM.declare("exclusive", Consumer, Bool, rigid=True)  # it wants to be the only one
SYSTEM.declare("limited", Consumer, Bool, rigid=True)  # it has credit, and needs it
SYSTEM.declare("allowance", Consumer, Int, rigid=True)  # with which it begins
SYSTEM.declare("pushed", Bool, rigid=True)  # the queue delivers by itself, from any thread

SYSTEM.declare("present", Consumer, Bool)  # it is in the list of all
SYSTEM.declare("came", Consumer, Bool)  # it was so once
SYSTEM.declare("alone", Bool)  # the queue's field names an exclusive consumer
SYSTEM.declare("the_only", Consumer)  # and this one
SYSTEM.declare("wish", Consumer, Wish)
SYSTEM.declare("closings", Consumer, Int)  # how often its close was decided
SYSTEM.declare("said", Consumer, Bool)  # what was said last: that it wants messages
SYSTEM.declare("resuming", Thread, Consumer, Bool)  # who said so has still to see that it is so
SYSTEM.declare("pausing", Thread, Consumer, Bool)  # the same, of who said that it wants none
SYSTEM.declare("drained", Thread, Consumer, Bool)  # it paid the last credit, in a pull that goes on
SYSTEM.declare("closes", Thread, Consumer, Bool)  # it decided to close it, and has not removed it
SYSTEM.declare("pulls", Thread, Consumer, Bool)
SYSTEM.declare(
    "could_ask", Thread, Consumer, Bool
)  # it wanted work at some moment since the pull began, or the send lock was taken

SYSTEM.declare("credit", Consumer, Int)
SYSTEM.declare("granted", Consumer, Int)  # all that it ever was allowed
SYSTEM.declare("spent", Consumer, Int)  # what it acquired, or was shown
SYSTEM.declare("in_flight", Consumer, Int)  # paid, and not decided yet
SYSTEM.declare("obtained", Consumer, Int)  # how often something was acquired for it, or shown
SYSTEM.declare("served_last", Consumer)  # the one behind whom a push begins
SYSTEM.declare("serves", Thread, Bool)  # it obtained something, and has not said for whom
SYSTEM.declare("served", Thread, Consumer)  # for this one
SYSTEM.declare("paid", Thread, Bool)  # by this thread
SYSTEM.declare("payer", Thread, Consumer)
SYSTEM.declare(
    "outbid", Thread, Consumer, Bool
)  # its compare-and-set of the credit failed, and it has neither paid since nor looked anew
SYSTEM.declare("taker", Thread)  # who obtained something last
SYSTEM.declare("sent", Consumer, Int)  # how often something was sent to it

SYSTEM.declare("admitting", Bool)  # the lock of admission is taken
SYSTEM.declare("admits", Thread, Bool)  # by this thread
SYSTEM.declare("sending", Consumer, Bool)  # the consumer's send lock is taken
SYSTEM.declare("sends", Thread, Consumer, Bool)  # by this thread
SYSTEM.declare("asks", Thread, Consumer, Bool)  # which has looked since whether it wants work


@SYSTEM.initially
def start(s: SymbolicState) -> Term:

    def fresh(c: Term) -> Term:
        return And(
            Not(Or(s.present(c), s.came(c), s.sending(c))),
            s.wish(c) == If(And(s.pushed(), able(s, c)), WORK, NOTHING),
            s.said(c) == able(s, c),
            s.closings(c) == 0,
            s.credit(c) == s.allowance(c),
            s.granted(c) == s.allowance(c),
            s.allowance(c) >= 0,
            s.spent(c) == 0,
            s.obtained(c) == 0,
            s.in_flight(c) == 0,
            s.sent(c) == 0,
        )

    def bound(t: Term, c: Term) -> Term:
        asks = Or(s.resuming(t, c), s.pausing(t, c), s.drained(t, c))
        return Or(s.sends(t, c), asks, s.closes(t, c), s.pulls(t, c), s.outbid(t, c))

    return And(
        every(Consumer, fresh),
        Not(s.alone()),
        Not(s.admitting()),
        every(Thread, lambda t: Not(Or(s.paid(t), s.admits(t), s.serves(t)))),
        every(Thread, Consumer, lambda t, c: Not(bound(t, c))),
    )


def able(s: SymbolicState, c: Term) -> Term:
    """It can pay, or has paid for what is not decided."""
    return Or(Not(s.limited(c)), s.credit(c) + s.in_flight(c) > 0)


# ---- admission


@SYSTEM.action(t=Thread)
def begin_to_admit(s: SymbolicState, t: Term) -> tuple[Term, SymbolicState]:
    """Who joins takes the lock of admission."""
    return Not(s.admitting()), s.but(admitting=at(s.admitting, True), admits=at(s.admits, t, True))


def admissible(s: SymbolicState, c: Term) -> Term:
    """Nobody is there who forbids it, nor whom it forbids."""
    return every(
        Consumer,
        lambda d: Implies(
            s.present(d), Not(Or(s.exclusive(c), s.exclusive(d), s.name(d) == s.name(c)))
        ),
    )


@SYSTEM.action(t=Thread, c=Consumer)
def be_the_only_one(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """An exclusive consumer that is admissible is put into the queue's field before it joins."""
    guard = And(s.admits(t), s.exclusive(c), Not(s.came(c)), admissible(s, c))
    return guard, s.but(alone=at(s.alone, True), the_only=at(s.the_only, c))


@SYSTEM.action(t=Thread, c=Consumer)
def join(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """It is linked into the list of all, by who has the lock, and has to be served if it can pay."""
    named = Implies(s.exclusive(c), And(s.alone(), s.the_only() == c))
    guard = And(s.admits(t), Not(s.came(c)), admissible(s, c), named)
    return guard, s.but(
        present=at(s.present, c, True),
        came=at(s.came, c, True),
        resuming=at(s.resuming, t, c, Or(s.resuming(t, c), And(Not(s.pushed()), able(s, c)))),
    )


@SYSTEM.action(t=Thread)
def end_admission(s: SymbolicState, t: Term) -> tuple[Term, SymbolicState]:
    """The lock is released."""
    return s.admits(t), s.but(admitting=at(s.admitting, False), admits=at(s.admits, t, False))


# ---- the send lock, what it wants, and the end


@SYSTEM.action(t=Thread, c=Consumer)
def begin_to_send(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """A thread takes the consumer's send lock: to deliver to it, or to close it."""
    return Not(s.sending(c)), asks_anew(s, t, c).but(
        sending=at(s.sending, c, True),
        sends=at(s.sends, t, c, True),
        asks=at(s.asks, t, c, False),
    )


def asks_anew(s: SymbolicState, t: Term, c: Term) -> SymbolicState:
    """From now on the thread may read that the consumer wants work, whenever that is so."""
    return s.but(could_ask=at(s.could_ask, t, c, s.wish(c) == WORK))


@SYSTEM.action(t=Thread, c=Consumer)
def ask(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """It reads whether the consumer wants work."""
    return s.sends(t, c), s.but(asks=at(s.asks, t, c, True))


@SYSTEM.action(t=Thread, c=Consumer)
def end_sending(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """The lock is released, by who has looked whether the consumer wants work, or has closed it."""
    return And(s.sends(t, c), s.asks(t, c)), s.but(
        sending=at(s.sending, c, False), sends=at(s.sends, t, c, False)
    )


@SYSTEM.action(t=Thread, c=Consumer)
def ask_to_resume(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """A thread says that the consumer wants messages, and is bound to see to it that it does."""
    return s.came(c), s.but(said=at(s.said, c, True), resuming=at(s.resuming, t, c, True))


@SYSTEM.action(t=Thread, c=Consumer)
def ask_to_pause(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """A thread says that the consumer wants none, and is bound to see to it that it does not."""
    return s.came(c), s.but(said=at(s.said, c, False), pausing=at(s.pausing, t, c, True))


@SYSTEM.action(c=Consumer)
def want(s: SymbolicState, c: Term) -> tuple[Term, SymbolicState]:
    """A compare-and-set of the flag from "nothing" to "work"; a queue that is pulled from asks for credit first."""
    guard = And(s.wish(c) == NOTHING, Or(s.pushed(), Not(s.limited(c)), s.credit(c) > 0))
    return guard, s.but(
        wish=at(s.wish, c, WORK),
        said=at(s.said, c, True),
        resuming=lambda u, d: And(s.resuming(u, d), d != c),
        could_ask=lambda u, d: Or(s.could_ask(u, d), d == c),
    )


@SYSTEM.action(c=Consumer)
def want_nothing(s: SymbolicState, c: Term) -> tuple[Term, SymbolicState]:
    """A compare-and-set of the flag from "work" to "nothing", for somebody said so."""
    return s.wish(c) == WORK, s.but(
        wish=at(s.wish, c, NOTHING),
        said=at(s.said, c, False),
        pausing=lambda u, d: And(s.pausing(u, d), d != c),
    )


@SYSTEM.action(t=Thread, c=Consumer)
def find_it_wanting(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """Who said that it wants messages reads that it does, or has closed."""
    guard = And(s.resuming(t, c), s.wish(c) != NOTHING)
    return guard, s.but(resuming=at(s.resuming, t, c, False))


@SYSTEM.action(t=Thread, c=Consumer)
def find_it_unable(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """Who said so reads that it has no credit: a queue that is pulled from waits for a grant."""
    guard = And(s.resuming(t, c), Not(s.pushed()), Not(able(s, c)))
    return guard, s.but(resuming=at(s.resuming, t, c, False))


@SYSTEM.action(t=Thread, c=Consumer)
def find_it_pausing(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """Who said that it wants none reads that it does not."""
    guard = And(s.pausing(t, c), s.wish(c) != WORK)
    return guard, s.but(pausing=at(s.pausing, t, c, False), said=at(s.said, c, False))


@SYSTEM.action(c=Consumer)
def run_out(s: SymbolicState, c: Term) -> tuple[Term, SymbolicState]:
    """A pull lowers the flag of who has spent all credit; nobody said so, and a grant resumes it."""
    guard = And(s.wish(c) == WORK, Not(s.pushed()), Not(able(s, c)))
    return guard, s.but(wish=at(s.wish, c, NOTHING))


@SYSTEM.action(t=Thread, c=Consumer)
def begin_pull(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """A pull begins, which takes something only if the consumer wants work at some moment from here on."""
    return s.came(c), asks_anew(s, t, c).but(pulls=at(s.pulls, t, c, True))


@SYSTEM.action(t=Thread, c=Consumer)
def end_pull(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """A pull returns: whose last credit it paid wants nothing, or has credit again."""
    spent = And(s.drained(t, c), s.wish(c) == WORK, s.credit(c) == 0, Not(s.pushed()))
    return Not(spent), s.but(drained=at(s.drained, t, c, False), pulls=at(s.pulls, t, c, False))


@SYSTEM.action(t=Thread)
def settle(s: SymbolicState, t: Term) -> tuple[Term, SymbolicState]:
    """Its call returns: all that it said of whether somebody wants messages is so, or was so since; and where another
    was faster with the credit, it has tried again.
    """
    bound = some(Consumer, lambda c: Or(s.resuming(t, c), s.pausing(t, c), s.outbid(t, c)))
    return Not(bound), s


@SYSTEM.action(t=Thread, c=Consumer)
def close(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """Under the send lock the flag is exchanged for "closed"; what was there before says who closes (rule 9)."""
    first = s.wish(c) != CLOSED
    guard = And(s.sends(t, c), s.came(c))
    return guard, s.but(
        wish=at(s.wish, c, CLOSED),
        closings=at(s.closings, c, s.closings(c) + If(first, 1, 0)),
        closes=at(s.closes, t, c, Or(s.closes(t, c), first)),
        asks=at(s.asks, t, c, True),
    )


@SYSTEM.action(c=Consumer)
def be_no_longer_the_only_one(s: SymbolicState, c: Term) -> tuple[Term, SymbolicState]:
    """An exclusive consumer that has closed is taken out of the queue's field while it is still in the list."""
    guard = And(s.alone(), s.the_only() == c, s.present(c), s.wish(c) == CLOSED)
    return guard, s.but(alone=at(s.alone, False))


@SYSTEM.action(c=Consumer)
def leave(s: SymbolicState, c: Term) -> tuple[Term, SymbolicState]:
    """It is deleted from the list of all: from here on others are admitted."""
    guard = And(s.present(c), s.wish(c) == CLOSED, Not(And(s.alone(), s.the_only() == c)))
    return guard, s.but(
        present=at(s.present, c, False), closes=lambda u, d: And(s.closes(u, d), d != c)
    )


@SYSTEM.action(t=Thread, c=Consumer)
def end_close(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """A call that closes it returns: if it was the one that decided, it has removed the consumer."""
    guard = And(s.wish(c) == CLOSED, Not(s.closes(t, c)))
    return guard, s.but(closes=at(s.closes, t, c, False))


# ---- credit


@SYSTEM.action(t=Thread, c=Consumer)
def pay(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """A compare-and-set from what is left, which is more than nothing, to one less."""
    guard = And(s.limited(c), s.credit(c) > 0, Not(s.paid(t)))
    return guard, paid_by(s, t, c)


def paid_by(s: SymbolicState, t: Term, c: Term) -> SymbolicState:
    return s.but(
        credit=at(s.credit, c, s.credit(c) - 1),
        in_flight=at(s.in_flight, c, s.in_flight(c) + 1),
        paid=at(s.paid, t, True),
        payer=at(s.payer, t, c),
        drained=at(s.drained, t, c, Or(s.drained(t, c), s.credit(c) == 1)),
        outbid=at(s.outbid, t, c, False),
    )


@SYSTEM.action(t=Thread, c=Consumer)
def be_outbid(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """That compare-and-set fails, for the credit is another: what is left may do, so it has to try again."""
    return s.limited(c), s.but(outbid=at(s.outbid, t, c, True))


@SYSTEM.action(t=Thread, c=Consumer)
def give_up_bidding(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """There is none left, or the consumer wants no work, at some moment since: it need not pay."""
    guard = And(s.outbid(t, c), Or(s.credit(c) == 0, s.wish(c) != WORK))
    return guard, s.but(outbid=at(s.outbid, t, c, False))


@SYSTEM.action(t=Thread, c=Consumer)
def try_again(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """It begins another attempt for the consumer, from the look on."""
    return s.came(c), s.but(outbid=at(s.outbid, t, c, False))


@SYSTEM.action(t=Thread, c=Consumer)
def obtain(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """What was paid for is acquired for the consumer, or shown to it; who needs no credit has paid nothing."""
    guard = And(
        s.came(c),
        s.wish(c) != CLOSED,
        Implies(s.limited(c), And(s.paid(t), s.payer(t) == c)),
        Implies(is_to_ask(s, t, c), s.could_ask(t, c)),
    )
    return guard, obtained_by(s, t, c)


def is_to_ask(s: SymbolicState, t: Term, c: Term) -> Term:
    """The thread pulls for the consumer, or has its send lock in a queue that pushes."""
    return Or(s.pulls(t, c), And(s.pushed(), s.sends(t, c)))


def obtained_by(s: SymbolicState, t: Term, c: Term) -> SymbolicState:
    less = If(s.limited(c), 1, 0)
    return s.but(
        spent=at(s.spent, c, s.spent(c) + less),
        in_flight=at(s.in_flight, c, s.in_flight(c) - less),
        paid=at(s.paid, t, And(s.paid(t), Not(s.limited(c)))),
        obtained=at(s.obtained, c, s.obtained(c) + 1),
        serves=at(s.serves, t, True),
        served=at(s.served, t, c),
        taker=at(s.taker, t),
    )


@SYSTEM.action(t=Thread, c=Consumer)
def be_served_last(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """A queue that pushes keeps, still under the send lock, for whom something was obtained last."""
    guard = And(s.pushed(), s.sends(t, c), s.serves(t), s.served(t) == c)
    return guard, s.but(served_last=at(s.served_last, c), serves=at(s.serves, t, False))


@SYSTEM.action(t=Thread, c=Consumer)
def send(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """What was acquired is written to the client; a queue that pushes does so under the send lock."""
    locked = And(s.sends(t, c), Not(s.serves(t)))
    guard = And(s.obtained(c) > 0, s.wish(c) != CLOSED, Implies(s.pushed(), locked))
    return guard, s.but(sent=at(s.sent, c, s.sent(c) + 1))


@SYSTEM.action(t=Thread)
def return_from_attempt(s: SymbolicState, t: Term) -> tuple[Term, SymbolicState]:
    """An attempt is over: what it paid was spent or restored."""
    return Not(s.paid(t)), s


@SYSTEM.action(t=Thread, c=Consumer)
def restore(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """What an attempt paid is refunded if it acquired nothing (ES-6)."""
    guard = And(s.paid(t), s.payer(t) == c)
    return guard, s.but(
        credit=at(s.credit, c, s.credit(c) + 1),
        in_flight=at(s.in_flight, c, s.in_flight(c) - 1),
        paid=at(s.paid, t, False),
    )


@SYSTEM.action(t=Thread, c=Consumer, n=Int)
def grant(s: SymbolicState, t: Term, c: Term, n: Term) -> tuple[Term, SymbolicState]:
    """Its client allows more, and has then to resume it: what was said before the credit was there counts no more."""
    guard = And(s.limited(c), n >= 1, s.wish(c) != CLOSED)
    return guard, ask_to_resume(s, t, c)[1].but(
        credit=at(s.credit, c, s.credit(c) + n), granted=at(s.granted, c, s.granted(c) + n)
    )


# ---- what is always so


@SYSTEM.invariant("ES-6", c=Consumer)
def accounts(s: SymbolicState, c: Term) -> Term:
    """What was granted is there, in flight, or spent; credit is never negative."""
    return And(s.credit(c) + s.in_flight(c) + s.spent(c) == s.granted(c), s.credit(c) >= 0)


@SYSTEM.invariant("QL-6", t=Thread, u=Thread)
def one_admits(s: SymbolicState, t: Term, u: Term) -> Term:
    """One thread at a time has the lock of admission."""
    return And(Implies(s.admits(t), s.admitting()), Implies(And(s.admits(t), s.admits(u)), t == u))


@SYSTEM.invariant("ES-7", t=Thread, u=Thread, c=Consumer)
def one_sends(s: SymbolicState, t: Term, u: Term, c: Term) -> Term:
    """One thread at a time has a consumer's send lock."""
    return And(
        Implies(s.sends(t, c), s.sending(c)),
        Implies(And(s.sends(t, c), s.sends(u, c)), t == u),
    )


@SYSTEM.invariant("QL-6", c=Consumer, d=Consumer)
def the_only_one(s: SymbolicState, c: Term, d: Term) -> Term:
    """Two that are there have two names, and neither of them wants to be the only one."""
    both = And(s.present(c), s.present(d), c != d)
    return And(
        Implies(both, Not(Or(s.exclusive(c), s.exclusive(d), s.name(c) == s.name(d)))),
        Implies(s.present(c), s.came(c)),
    )


@SYSTEM.invariant("QL-1", c=Consumer)
def closed_once(s: SymbolicState, c: Term) -> Term:
    """The close of a consumer is decided once, and then it is closed; who has left is closed."""
    return And(
        s.closings(c) == If(s.wish(c) == CLOSED, 1, 0),
        Implies(And(s.came(c), Not(s.present(c))), s.wish(c) == CLOSED),
        Implies(s.wish(c) == CLOSED, s.came(c)),
    )


@SYSTEM.invariant("QL-1", c=Consumer)
def who_has_closed_is_removed(s: SymbolicState, c: Term) -> Term:
    """Who is closed and still in the list of all is being removed by the call that decided it."""
    there = And(s.present(c), s.wish(c) == CLOSED)
    return Implies(there, some(Thread, lambda t: s.closes(t, c)))


@SYSTEM.invariant("SO-7", t=Thread, c=Consumer)
def who_is_served_obtained(s: SymbolicState, t: Term, c: Term) -> Term:
    """For whom a thread obtained something, something was obtained."""
    return And(Implies(And(s.serves(t), s.served(t) == c), s.obtained(c) > 0), s.obtained(c) >= 0)


@SYSTEM.invariant("WK-9", c=Consumer)
def who_wants_said_so(s: SymbolicState, c: Term) -> Term:
    """Who wants messages said so last, or somebody has still to see to it that it does not."""
    return Implies(s.wish(c) == WORK, Or(s.said(c), some(Thread, lambda t: s.pausing(t, c))))


@SYSTEM.invariant("WK-9", c=Consumer)
def who_said_so_wants(s: SymbolicState, c: Term) -> Term:
    """Who said so and wants none cannot pay, or somebody has still to see to it that it does."""
    excused = Or(And(Not(s.pushed()), Not(able(s, c))), some(Thread, lambda t: s.resuming(t, c)))
    served = Or(s.came(c), s.pushed())  # where it is pulled from, its flag is raised after it came
    return Implies(And(served, s.said(c), s.wish(c) == NOTHING), excused)


@SYSTEM.invariant("WK-9", c=Consumer)
def who_wants_can_pay(s: SymbolicState, c: Term) -> Term:
    """Of a queue that is pulled from, who wants messages can pay, or the pull that took the last credit goes on."""
    broke = And(s.limited(c), s.credit(c) == 0, Not(s.pushed()))
    return Implies(And(s.wish(c) == WORK, broke), some(Thread, lambda t: s.drained(t, c)))


# ---- what follows


@SYSTEM.safe("WK-9", c=Consumer)
def it_wants_what_was_said(s: SymbolicState, c: Term) -> Term:
    """At rest a consumer wants messages exactly if that was said last and, where it is pulled from, it has credit."""
    calls = some(Thread, lambda t: Or(s.resuming(t, c), s.pausing(t, c), s.drained(t, c)))
    at_rest = And(Not(calls), s.in_flight(c) == 0, s.came(c), s.wish(c) != CLOSED)
    pays = Or(s.pushed(), Not(s.limited(c)), s.credit(c) > 0)
    return Implies(at_rest, (s.wish(c) == WORK) == And(s.said(c), pays))


@SYSTEM.safe("ES-6", c=Consumer)
def no_more_than_granted(s: SymbolicState, c: Term) -> Term:
    """With nothing in flight, what is left is what was granted less what was spent."""
    return And(
        Implies(s.in_flight(c) == 0, s.credit(c) == s.granted(c) - s.spent(c)), s.credit(c) >= 0
    )


@SYSTEM.safe("QL-6", c=Consumer, d=Consumer)
def nobody_beside_the_only_one(s: SymbolicState, c: Term, d: Term) -> Term:
    """Nobody is there beside a consumer that wants to be the only one, and no two have one name."""
    both = And(s.present(c), s.present(d), c != d)
    return Implies(both, Not(Or(s.exclusive(c), s.name(c) == s.name(d))))


@SYSTEM.safe("QL-1", c=Consumer)
def close_is_decided_once(s: SymbolicState, c: Term) -> Term:
    """Of all calls that close a consumer at most one goes on."""
    return s.closings(c) <= 1


@SYSTEM.safe("QL-1", c=Consumer)
def the_closed_have_left(s: SymbolicState, c: Term) -> Term:
    """When no call that closes it is under way, who has closed is in the list of all no more."""
    quiet = every(Thread, lambda t: Not(s.closes(t, c)))
    return Implies(And(quiet, s.wish(c) == CLOSED), Not(s.present(c)))


@SYSTEM.step("QL-1", c=Consumer)
def closed_for_good(s: SymbolicState, after: SymbolicState, c: Term) -> Term:
    """Closed is final, and nothing is granted from then on."""
    closed = s.wish(c) == CLOSED
    return Implies(closed, And(after.wish(c) == CLOSED, after.granted(c) == s.granted(c)))


@SYSTEM.step("ES-5", c=Consumer)
def nothing_for_the_closed(s: SymbolicState, after: SymbolicState, c: Term) -> Term:
    """Nothing is acquired for a consumer that has closed."""
    return Implies(s.wish(c) == CLOSED, after.obtained(c) == s.obtained(c))


@SYSTEM.step("ES-7", c=Consumer)
def nothing_is_sent_to_the_closed(s: SymbolicState, after: SymbolicState, c: Term) -> Term:
    """Nothing is sent to a consumer that has closed."""
    return Implies(s.wish(c) == CLOSED, after.sent(c) == s.sent(c))


@SYSTEM.step("WK-9", c=Consumer)
def nothing_for_who_wants_nothing(s: SymbolicState, after: SymbolicState, c: Term) -> Term:
    """A pull, and a delivery, obtains nothing for a consumer that has wanted no work since it began."""
    takes = And(after.obtained(c) > s.obtained(c), is_to_ask(s, after.taker(), c))
    return Implies(takes, s.could_ask(after.taker(), c))


@SYSTEM.step("WK-9", t=Thread, c=Consumer)
def could_ask_when_it_is_said(s: SymbolicState, after: SymbolicState, t: Term, c: Term) -> Term:
    """A thread could have read that a consumer wants work only from when that is so."""
    fresh = And(after.could_ask(t, c), Not(s.could_ask(t, c)))
    return Implies(fresh, after.wish(c) == WORK)


@SYSTEM.step("WK-9", c=Consumer)
def who_resumes_can_pay(s: SymbolicState, after: SymbolicState, c: Term) -> Term:
    """Of a queue that is pulled from, nobody comes to want work who has no credit."""
    resumes = And(s.wish(c) == NOTHING, after.wish(c) == WORK, Not(s.pushed()), s.limited(c))
    return Implies(resumes, s.credit(c) > 0)


@SYSTEM.step("ES-7", t=Thread, c=Consumer)
def not_closed_while_it_sends(s: SymbolicState, after: SymbolicState, t: Term, c: Term) -> Term:
    """While a thread has the send lock, no other closes the consumer."""
    closes = And(s.wish(c) != CLOSED, after.wish(c) == CLOSED)
    return Implies(closes, And(s.sending(c), Implies(s.sends(t, c), after.sends(t, c))))


@SYSTEM.step("SO-7", c=Consumer)
def the_turn_is_taken_by_who_obtained(s: SymbolicState, after: SymbolicState, c: Term) -> Term:
    """Who is kept as served last has obtained something, or was shown it."""
    named = And(after.served_last() == c, s.served_last() != c)
    return Implies(named, s.obtained(c) > 0)


# ---- what is possible


@SYSTEM.witness(c=Consumer, d=Consumer)
def one_after_the_other(s: SymbolicState, c: Term, d: Term) -> Term:
    """Of two exclusive consumers one has left, and the other is there."""
    return And(s.exclusive(c), s.exclusive(d), s.came(c), Not(s.present(c)), s.present(d))


@SYSTEM.witness(t=Thread, c=Consumer)
def the_last_credit_in_flight(s: SymbolicState, t: Term, c: Term) -> Term:
    """All that a consumer was granted is paid, and what for is not decided."""
    return And(s.paid(t), s.payer(t) == c, s.credit(c) == 0, s.wish(c) == NOTHING)


# ---- broken variants


@SYSTEM.broken("pay", "accounts", "ES-6", "mutant credit-taken-twice", t=Thread, c=Consumer)
def pay_blindly(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """Credit that was seen a while ago is taken away whatever is left by now."""
    return And(s.limited(c), Not(s.paid(t))), paid_by(s, t, c)


@SYSTEM.broken("restore", "accounts", "ES-6", "mutant credit-not-restored", t=Thread, c=Consumer)
def restore_nothing(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """What was paid in vain is forgotten."""
    return restore(s, t, c)[0], restore(s, t, c)[1].but(credit=s.credit)


@SYSTEM.broken("join", "the_only_one", "QL-6", "mutant looks-then-joins", t=Thread, c=Consumer)
def join_without_the_lock(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """Who has looked and then joins without the lock does not see who joins meanwhile."""
    return Not(s.came(c)), join(s, t, c)[1]


@SYSTEM.broken("close", "closed_once", "QL-1", "mutant closed-twice", t=Thread, c=Consumer)
def close_again(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """Each call that closes goes on, whatever the flag was."""
    return close(s, t, c)[0], close(s, t, c)[1].but(closings=at(s.closings, c, s.closings(c) + 1))


@SYSTEM.broken(
    "close", "not_closed_while_it_sends", "ES-7", "mutant closed-without-the-lock",
    t=Thread, c=Consumer,
)  # fmt: skip
def close_beside_a_delivery(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """The flag is exchanged without the send lock."""
    return s.came(c), close(s, t, c)[1]


@SYSTEM.broken("want", "closed_for_good", "QL-1", "mutant granted-after-close", c=Consumer)
def want_after_the_end(s: SymbolicState, c: Term) -> tuple[Term, SymbolicState]:
    """A plain write says that it wants work, and it is closed."""
    return s.came(c), want(s, c)[1]


@SYSTEM.broken(
    "obtain", "nothing_for_the_closed", "ES-5", "mutant delivers-to-the-closed",
    t=Thread, c=Consumer,
)  # fmt: skip
def obtain_for_the_closed(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """Whether the consumer wants work was asked before its send lock was taken."""
    guard = And(s.came(c), Implies(s.limited(c), And(s.paid(t), s.payer(t) == c)))
    return guard, obtained_by(s, t, c)


@SYSTEM.broken(
    "obtain", "nothing_for_who_wants_nothing", "WK-9", "a pull that asks for no interest",
    t=Thread, c=Consumer,
)  # fmt: skip
def obtain_unasked(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """A consumer pauses and is pulled for, and the pull does not ask whether it wants anything."""
    pays = Implies(s.limited(c), And(s.paid(t), s.payer(t) == c))
    return And(s.came(c), s.wish(c) != CLOSED, pays), obtained_by(s, t, c)


@SYSTEM.broken(
    "send", "nothing_is_sent_to_the_closed", "ES-7", "mutant sent-after-the-lock",
    t=Thread, c=Consumer,
)  # fmt: skip
def send_to_the_closed(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """The send lock is released and taken again before it sends, and the consumer may have closed in between."""
    locked = And(s.sends(t, c), Not(s.serves(t)))
    return And(s.obtained(c) > 0, Implies(s.pushed(), locked)), send(s, t, c)[1]


@SYSTEM.broken(
    "end_close", "who_has_closed_is_removed", "QL-1", "a close that decides, and returns",
    t=Thread, c=Consumer,
)  # fmt: skip
def close_and_leave_it(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """It says that the consumer is closed, and leaves it in the list of all."""
    return s.wish(c) == CLOSED, end_close(s, t, c)[1]


@SYSTEM.broken("want", "who_resumes_can_pay", "WK-9", "mutant resumes-without-credit", c=Consumer)
def want_without_credit(s: SymbolicState, c: Term) -> tuple[Term, SymbolicState]:
    """A consumer resumes, and could not pay for anything."""
    return s.wish(c) == NOTHING, want(s, c)[1]


@SYSTEM.broken(
    "be_served_last", "the_turn_is_taken_by_who_obtained", "SO-7", "a turn that an attempt in vain takes",
    t=Thread, c=Consumer,
)  # fmt: skip
def be_tried_last(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """Whom a push came to last is kept, whether or not it obtained anything."""
    return And(s.pushed(), s.sends(t, c)), s.but(served_last=at(s.served_last, c))


@SYSTEM.broken(
    "grant", "who_said_so_wants", "WK-9", "a grant that resumes before it adds credit",
    t=Thread, c=Consumer, n=Int,
)  # fmt: skip
def grant_in_silence(s: SymbolicState, t: Term, c: Term, n: Term) -> tuple[Term, SymbolicState]:
    """It adds credit, and relies on what was said before: that was ignored, for there was no credit."""
    guard, after = grant(s, t, c, n)
    return guard, after.but(resuming=s.resuming)


@SYSTEM.broken(
    "run_out", "who_said_so_wants", "WK-9", "credit read before the message is sent", c=Consumer
)
def run_out_by_hearsay(s: SymbolicState, c: Term) -> tuple[Term, SymbolicState]:
    """A pull lowers the flag by what the credit was before the client was given the message, and granted more."""
    return And(s.wish(c) == WORK, Not(s.pushed())), run_out(s, c)[1]


@SYSTEM.broken(
    "end_pull", "who_wants_can_pay", "WK-9", "mutant wants-without-credit", t=Thread, c=Consumer
)
def end_pull_broke(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """A pull takes the last credit, and leaves the flag as it is."""
    return s.drained(t, c), end_pull(s, t, c)[1]


@SYSTEM.broken(
    "find_it_pausing", "who_wants_said_so", "WK-9", "mutant pause-is-not-heard",
    t=Thread, c=Consumer,
)  # fmt: skip
def pause_unheard(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """Who said that it wants none does not look whether it still does."""
    return s.pausing(t, c), find_it_pausing(s, t, c)[1]
