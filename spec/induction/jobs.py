"""Whether what can be delivered is delivered: for any number of messages, consumers, threads and jobs (WK-1, IM-3).

This is `PushQueue` of `reference/seriatim/queue.py`. A message *could go* to a consumer if it is available, selected,
not expired, of no other's group, and the consumer wants work and has credit; what an attempt has paid and not yet
spent counts as credit. Whoever makes this so, by whatever call, is bound to see to a delivery job, unless it sees
that it is not so any more: it, or somebody else, has delivered the message. A job clears its flag first, and then
comes to every consumer until it finds nothing for that one (rule 6).

Whoever raises the flag submits the job, by a permit of the executor, and one of the executor's threads draws that.
If the executor refuses it, the thread goes on, and who refused is bound to ask again.
How a message stops being deliverable, `entries` and `consumers` say. That a permit which lies there is drawn some time
is the executor's promise. Who is served first is not here.

A publisher offers what it enqueued to each consumer, one after the other, and asks for a job only for what it has seen
available since (IM-4). Calls that it makes meanwhile, by whom it delivers to, have reasons of their own. Nothing is
ever deliverable to a browser here, but it is asked like others.
"""

from z3 import And, BoolSort, DeclareSort, If, Implies, Not, Or

from seriatim_workshop.formal.theory import SymbolicState, Term, TransitionSystem, at, every, some

Message, Consumer, Thread = map(DeclareSort, ("Message", "Consumer", "Thread"))
Bool = BoolSort()

SYSTEM = TransitionSystem("jobs", "what a push queue's jobs deliver", (Message, Consumer, Thread))

SYSTEM.declare("deliverable", Consumer, Message, Bool)
SYSTEM.declare("maker", Consumer, Message, Thread)  # who made it so last
SYSTEM.declare("bound", Thread, Consumer, Message, Bool)  # to see to a job, on its account
SYSTEM.declare("followed", Consumer, Message, Bool)  # a job is pending, or has begun, since then
SYSTEM.declare(
    "offered", Message, Bool
)  # available, and not left to its publisher: whoever could take it
SYSTEM.declare("offerer", Message, Thread)  # who made it so last
SYSTEM.declare(
    "owes", Thread, Message, Bool
)  # a job on its account, whether or not it could go to anybody
SYSTEM.declare("answered", Message, Bool)  # a job is pending, or has begun, since then
SYSTEM.declare("pending", Bool)
SYSTEM.declare("to_submit", Thread, Bool)  # it has raised the flag, its permit to come
SYSTEM.declare("lies", Bool)  # a permit, that may be drawn
SYSTEM.declare("drawn", Thread, Bool)  # it has drawn that, and not begun the job
SYSTEM.declare("looks", Thread, Bool)  # it runs a job
SYSTEM.declare(
    "seen", Thread, Consumer, Message, Bool
)  # at some moment of its job this could not go there, or another job had still to come

SYSTEM.declare("arrives", Thread, Message, Bool)  # it was linked, and its publisher delivers it
SYSTEM.declare("asked", Thread, Consumer, Bool)  # an attempt was made to deliver it there
SYSTEM.declare("turn", Thread, Consumer, Bool)  # and none was made for anybody since
SYSTEM.declare(
    "within", Thread, Bool
)  # an attempt, or a call that was made meanwhile, is under way
SYSTEM.declare("served", Thread, Bool)  # who acquires took it
SYSTEM.declare("steady", Thread, Consumer, Bool)  # it could go there ever since it was linked
SYSTEM.declare("there", Thread, Bool)  # the publisher has seen it available since its last attempt
SYSTEM.declare("was_there", Thread, Bool)  # and so it was
SYSTEM.declare("dropped", Message, Bool)  # by its publisher: nobody took it


@SYSTEM.initially
def start(s: SymbolicState) -> Term:
    return And(
        Not(Or(s.pending(), s.lies())),
        every(Consumer, Message, lambda c, m: Not(s.deliverable(c, m))),
        every(Thread, lambda t: Not(Or(s.looks(t), s.to_submit(t), s.drawn(t)))),
        every(Thread, Consumer, Message, lambda t, c, m: Not(s.bound(t, c, m))),
        every(Message, lambda m: Not(s.offered(m))),
        every(Thread, Message, lambda t, m: Not(Or(s.owes(t, m), s.arrives(t, m)))),
        every(Message, lambda m: Not(s.dropped(m))),
    )


# ---- what could go to whom


@SYSTEM.action(t=Thread, c=Consumer, m=Message)
def make_deliverable(s: SymbolicState, t: Term, c: Term, m: Term) -> tuple[Term, SymbolicState]:
    """By a new message, a release, the end of a delay, a group set free, credit, interest or a new consumer."""
    return Not(s.deliverable(c, m)), s.but(
        deliverable=at(s.deliverable, c, m, True),
        maker=at(s.maker, c, m, t),
        bound=at(s.bound, t, c, m, True),
        followed=at(s.followed, c, m, False),
    )


@SYSTEM.action(c=Consumer, m=Message)
def make_undeliverable(s: SymbolicState, c: Term, m: Term) -> tuple[Term, SymbolicState]:
    """It is delivered, to this consumer or another, or dropped; or the consumer can or will take no more."""
    return s.deliverable(c, m), s.but(
        deliverable=at(s.deliverable, c, m, False),
        steady=lambda t, d: And(s.steady(t, d), Not(And(c == d, s.arrives(t, m)))),
    )


@SYSTEM.action(t=Thread, c=Consumer, m=Message)
def forget(s: SymbolicState, t: Term, c: Term, m: Term) -> tuple[Term, SymbolicState]:
    """The thread sees that what it made deliverable is so no more: whoever makes it so again is bound to see to it."""
    return Not(s.deliverable(c, m)), s.but(bound=at(s.bound, t, c, m, False))


@SYSTEM.action(t=Thread, m=Message)
def offer(s: SymbolicState, t: Term, m: Term) -> tuple[Term, SymbolicState]:
    """It is available, new or again; an immediate message counts from its first release on."""
    return Not(s.offered(m)), s.but(
        offered=at(s.offered, m, True),
        offerer=at(s.offerer, m, t),
        owes=at(s.owes, t, m, True),
        answered=at(s.answered, m, False),
        was_there=lambda u: Or(s.was_there(u), s.arrives(u, m)),
    )


@SYSTEM.action(m=Message)
def withdraw(s: SymbolicState, m: Term) -> tuple[Term, SymbolicState]:
    """It is acquired, or dropped."""
    return s.offered(m), s.but(offered=at(s.offered, m, False))


@SYSTEM.action(t=Thread, m=Message)
def leave_out(s: SymbolicState, t: Term, m: Term) -> tuple[Term, SymbolicState]:
    """The thread sees that what it offered is not available any more."""
    return Not(s.offered(m)), s.but(owes=at(s.owes, t, m, False))


# ---- an arrival


def arriving(s: SymbolicState, t: Term) -> Term:
    """It delivers what it enqueued."""
    return some(Message, lambda m: s.arrives(t, m))


def all_were_asked(s: SymbolicState, t: Term) -> Term:
    """Each consumer to which it could go all the while."""
    return every(Consumer, lambda c: Implies(s.steady(t, c), s.asked(t, c)))


@SYSTEM.action(t=Thread, m=Message)
def begin_to_deliver(s: SymbolicState, t: Term, m: Term) -> tuple[Term, SymbolicState]:
    """It has linked a message that is available, as nobody else has."""
    nobody = every(Thread, lambda u: Not(s.arrives(u, m)))
    return And(Not(arriving(s, t)), nobody), s.but(
        arrives=at(s.arrives, t, m, True),
        asked=lambda u, c: And(u != t, s.asked(u, c)),
        turn=lambda u, c: And(u != t, s.turn(u, c)),
        within=at(s.within, t, False),
        served=at(s.served, t, False),
        steady=lambda u, c: If(u == t, s.deliverable(c, m), s.steady(u, c)),
        there=at(s.there, t, False),
        was_there=at(s.was_there, t, s.offered(m)),
    )


@SYSTEM.action(t=Thread, c=Consumer)
def ask(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """An attempt to deliver it to a consumer whose turn is not over, while nobody has taken it."""
    now = Or(Not(s.asked(t, c)), s.turn(t, c))
    return And(arriving(s, t), Not(s.within(t)), Not(s.served(t)), now), s.but(
        asked=at(s.asked, t, c, True),
        turn=lambda u, d: If(u == t, d == c, s.turn(u, d)),
        within=at(s.within, t, True),
        there=at(s.there, t, False),
    )


def after_an_attempt(s: SymbolicState, t: Term) -> SymbolicState:
    """What counts is what is seen from now on."""
    offered = some(Message, lambda m: And(s.arrives(t, m), s.offered(m)))
    return s.but(
        within=at(s.within, t, False),
        there=at(s.there, t, False),
        was_there=at(s.was_there, t, offered),
    )


@SYSTEM.action(t=Thread)
def deliver(s: SymbolicState, t: Term) -> tuple[Term, SymbolicState]:
    """The attempt is over: who acquires took it."""
    return s.within(t), after_an_attempt(s, t).but(served=at(s.served, t, True))


@SYSTEM.action(t=Thread)
def ask_in_vain(s: SymbolicState, t: Term) -> tuple[Term, SymbolicState]:
    """The attempt is over, and it may be there still; a browser was shown it, or not."""
    return s.within(t), after_an_attempt(s, t)


@SYSTEM.action(t=Thread)
def call_meanwhile(s: SymbolicState, t: Term) -> tuple[Term, SymbolicState]:
    """Whoever it delivers to calls something, on the same thread."""
    return Not(s.within(t)), s.but(within=at(s.within, t, True))


@SYSTEM.action(t=Thread)
def return_meanwhile(s: SymbolicState, t: Term) -> tuple[Term, SymbolicState]:
    """That call is over."""
    return s.within(t), s.but(within=at(s.within, t, False))


@SYSTEM.action(t=Thread, m=Message)
def see_it_there(s: SymbolicState, t: Term, m: Term) -> tuple[Term, SymbolicState]:
    """The publisher looks once more, and its message is available."""
    guard = And(s.arrives(t, m), Not(s.within(t)), s.offered(m))
    return guard, s.but(there=at(s.there, t, True))


@SYSTEM.action(t=Thread, m=Message)
def drop(s: SymbolicState, t: Term, m: Term) -> tuple[Term, SymbolicState]:
    """An immediate message that nobody took."""
    guard = And(s.arrives(t, m), Not(s.within(t)), all_were_asked(s, t))
    return guard, s.but(dropped=at(s.dropped, m, True))


@SYSTEM.action(t=Thread)
def end_delivery(s: SymbolicState, t: Term) -> tuple[Term, SymbolicState]:
    """The enqueue returns."""
    return Not(s.within(t)), s.but(arrives=lambda u, m: And(u != t, s.arrives(u, m)))


def has_a_reason(s: SymbolicState, t: Term) -> Term:
    """A publisher has seen its message available since it asked the last. Calls meanwhile have their own reasons."""
    seen = And(Not(s.served(t)), s.there(t), all_were_asked(s, t))
    return Implies(And(arriving(s, t), Not(s.within(t))), seen)


# ---- a job


def followed_by_a_job(s: SymbolicState, t: Term) -> SymbolicState:
    """What `t` was bound to is done: a job will begin after this moment."""
    return s.but(
        bound=lambda u, c, m: And(u != t, s.bound(u, c, m)),
        followed=lambda c, m: Or(s.followed(c, m), s.bound(t, c, m)),
        owes=lambda u, m: And(u != t, s.owes(u, m)),
        answered=lambda m: Or(s.answered(m), s.owes(t, m)),
    )


@SYSTEM.action(t=Thread)
def set_pending(s: SymbolicState, t: Term) -> tuple[Term, SymbolicState]:
    """A compare-and-set of the flag: whoever wins submits a job. It has a reason to."""
    return And(Not(s.pending()), has_a_reason(s, t)), followed_by_a_job(s, t).but(
        pending=at(s.pending, True), to_submit=at(s.to_submit, t, True)
    )


@SYSTEM.action(t=Thread)
def submit(s: SymbolicState, t: Term) -> tuple[Term, SymbolicState]:
    """It hands the job to the executor, and gives a permit for it."""
    return s.to_submit(t), s.but(to_submit=at(s.to_submit, t, False), lies=at(s.lies, True))


@SYSTEM.action(t=Thread, r=Thread)
def be_refused(s: SymbolicState, t: Term, r: Term) -> tuple[Term, SymbolicState]:
    """The executor refuses the job. The thread lowers the flag; `r`, who refused, has to ask again, for everybody."""
    return s.to_submit(t), s.but(
        to_submit=at(s.to_submit, t, False),
        pending=at(s.pending, False),
        maker=lambda c, m: If(s.deliverable(c, m), r, s.maker(c, m)),
        bound=lambda u, c, m: Or(s.bound(u, c, m), And(u == r, s.deliverable(c, m))),
        followed=lambda c, m: And(s.followed(c, m), Not(s.deliverable(c, m))),
        offerer=lambda m: If(s.offered(m), r, s.offerer(m)),
        owes=lambda u, m: Or(s.owes(u, m), And(u == r, s.offered(m))),
        answered=lambda m: And(s.answered(m), Not(s.offered(m))),
    )


@SYSTEM.action(t=Thread)
def draw_permit(s: SymbolicState, t: Term) -> tuple[Term, SymbolicState]:
    """A thread of the executor that runs no job draws the permit."""
    return And(s.lies(), Not(s.looks(t))), s.but(lies=at(s.lies, False), drawn=at(s.drawn, t, True))


@SYSTEM.action(t=Thread)
def find_pending(s: SymbolicState, t: Term) -> tuple[Term, SymbolicState]:
    """That compare-and-set fails, or the flag is read before: a job was submitted, and has not begun."""
    return And(s.pending(), has_a_reason(s, t)), followed_by_a_job(s, t)


@SYSTEM.action(t=Thread)
def begin_job(s: SymbolicState, t: Term) -> tuple[Term, SymbolicState]:
    """Rule 6: the flag is cleared first. Whatever comes from now on starts another job."""
    return And(s.drawn(t), Not(s.looks(t))), s.but(
        drawn=at(s.drawn, t, False),
        pending=at(s.pending, False),
        looks=at(s.looks, t, True),
        seen=lambda u, c, m: And(u != t, s.seen(u, c, m)),
        followed=lambda c, m: True,
        answered=lambda m: True,
    )


@SYSTEM.action(t=Thread, c=Consumer, m=Message)
def see(s: SymbolicState, t: Term, c: Term, m: Term) -> tuple[Term, SymbolicState]:
    """At some moment of the job this message cannot go to this consumer."""
    return And(s.looks(t), Not(s.deliverable(c, m))), s.but(seen=at(s.seen, t, c, m, True))


@SYSTEM.action(t=Thread, u=Thread, c=Consumer, m=Message)
def leave_it_to_its_maker(
    s: SymbolicState, t: Term, u: Term, c: Term, m: Term
) -> tuple[Term, SymbolicState]:
    """Whoever made this deliverable is bound to see to a job that begins after that moment: this one may miss it."""
    guard = And(s.looks(t), s.bound(u, c, m), u != t)
    return guard, s.but(seen=at(s.seen, t, c, m, True))


@SYSTEM.action(t=Thread)
def leave_it_to_the_next(s: SymbolicState, t: Term) -> tuple[Term, SymbolicState]:
    """A job that makes another one pending, or finds that one is, need not look any further."""
    return And(s.looks(t), s.pending()), s.but(seen=lambda u, c, m: Or(u == t, s.seen(u, c, m)))


@SYSTEM.action(t=Thread)
def end_job(s: SymbolicState, t: Term) -> tuple[Term, SymbolicState]:
    """It has come to every consumer, until there was nothing for it or another job had still to come."""
    everything = every(Consumer, Message, lambda c, m: s.seen(t, c, m))
    return And(s.looks(t), everything), s.but(looks=at(s.looks, t, False))


@SYSTEM.action(t=Thread)
def settle(s: SymbolicState, t: Term) -> tuple[Term, SymbolicState]:
    """Its call returns: it is bound to nothing."""
    return nothing_to_do(s, t), s


def nothing_to_do(s: SymbolicState, t: Term) -> Term:
    return And(
        Not(s.to_submit(t)),
        every(Consumer, Message, lambda c, m: Not(s.bound(t, c, m))),
        every(Message, lambda m: Not(s.owes(t, m))),
    )


# ---- what is always so


@SYSTEM.invariant("WK-1", c=Consumer, m=Message)
def somebody_comes(s: SymbolicState, c: Term, m: Term) -> Term:
    """What could go to a consumer is seen to: a thread is bound to, a job is pending, or one has still to look."""
    bound = some(Thread, lambda t: s.bound(t, c, m))
    looking = some(Thread, lambda t: And(s.looks(t), Not(s.seen(t, c, m))))
    return Implies(s.deliverable(c, m), Or(bound, s.pending(), looking))


@SYSTEM.invariant("WK-1", t=Thread, u=Thread)
def on_its_way(s: SymbolicState, t: Term, u: Term) -> Term:
    """A pending job is about to be submitted, lies with the executor, or was drawn there: one of the three."""
    has, other = Or(s.to_submit(t), s.drawn(t)), Or(s.to_submit(u), s.drawn(u))
    somewhere = Or(s.lies(), some(Thread, lambda v: Or(s.to_submit(v), s.drawn(v))))
    return And(
        s.pending() == somewhere,
        Not(And(has, s.lies())),
        Not(And(s.to_submit(t), s.drawn(t))),
        Implies(And(has, other), t == u),
    )


@SYSTEM.invariant("IM-3", c=Consumer, m=Message)
def bound_until_it_is_done(s: SymbolicState, c: Term, m: Term) -> Term:
    """Who made something deliverable is bound to see to a job until one is pending or has begun."""
    there = And(s.deliverable(c, m), Not(s.followed(c, m)))
    return Implies(there, s.bound(s.maker(c, m), c, m))


@SYSTEM.invariant("IM-3", m=Message)
def owed_until_it_is_done(s: SymbolicState, m: Term) -> Term:
    """Who offered a message owes it a job until one is pending or has begun."""
    return Implies(And(s.offered(m), Not(s.answered(m))), s.owes(s.offerer(m), m))


@SYSTEM.invariant("IM-4", t=Thread, u=Thread, m=Message, n=Message)
def one_arrival_at_a_time(s: SymbolicState, t: Term, u: Term, m: Term, n: Term) -> Term:
    """A thread delivers one message that it enqueued, and then the next; each is enqueued by one."""
    return And(
        Implies(And(s.arrives(t, m), s.arrives(t, n)), m == n),
        Implies(And(s.arrives(t, m), s.arrives(u, m)), t == u),
    )


@SYSTEM.invariant("IM-4", t=Thread, m=Message)
def what_it_has_seen_was_so(s: SymbolicState, t: Term, m: Term) -> Term:
    """What a publisher has seen available since its last attempt was so, and what is available is so since then."""
    return Implies(And(s.arrives(t, m), Or(s.there(t), s.offered(m))), s.was_there(t))


@SYSTEM.invariant("IM-4", t=Thread, c=Consumer, m=Message)
def the_steady_could_have_it(s: SymbolicState, t: Term, c: Term, m: Term) -> Term:
    """To whom it could go all the while it could go now."""
    return Implies(And(s.arrives(t, m), s.steady(t, c)), s.deliverable(c, m))


# ---- what follows


@SYSTEM.step("IM-4", t=Thread, m=Message)
def a_job_for_what_is_there(s: SymbolicState, after: SymbolicState, t: Term, m: Term) -> Term:
    """An enqueue submits a job only for a message that was available since its last attempt, and that nobody took."""
    submits = And(after.to_submit(t), Not(s.to_submit(t)), s.arrives(t, m), Not(s.within(t)))
    return Implies(submits, And(s.was_there(t), Not(s.served(t))))


@SYSTEM.step("IM-4", t=Thread, c=Consumer)
def each_is_asked_once(s: SymbolicState, after: SymbolicState, t: Term, c: Term) -> Term:
    """Whose turn it comes to be was not asked before, and none after one has taken the message."""
    comes = And(arriving(s, t), after.turn(t, c), Not(s.turn(t, c)))
    return Implies(comes, And(Not(s.asked(t, c)), Not(s.served(t))))


@SYSTEM.step("IM-4", t=Thread, c=Consumer, m=Message)
def dropped_when_all_were_asked(
    s: SymbolicState, after: SymbolicState, t: Term, c: Term, m: Term
) -> Term:
    """An immediate message is dropped by its publisher after each was asked to whom it could go all the while."""
    drops = And(after.dropped(m), Not(s.dropped(m)))
    steady = And(s.arrives(t, m), s.steady(t, c))
    return Implies(And(drops, steady), s.asked(t, c))


@SYSTEM.safe("WK-1", c=Consumer, m=Message)
def at_rest_nothing_could_go(s: SymbolicState, c: Term, m: Term) -> Term:
    """When no thread is bound to anything, no permit lies there and no job runs, nothing could go to anybody."""
    quiet = And(
        Not(s.lies()),
        every(Thread, lambda t: Not(Or(s.looks(t), s.to_submit(t), s.drawn(t)))),
        every(Thread, Consumer, Message, lambda t, d, n: Not(s.bound(t, d, n))),
    )
    return Implies(quiet, Not(s.deliverable(c, m)))


@SYSTEM.safe("IM-3", t=Thread, c=Consumer, m=Message)
def a_job_follows(s: SymbolicState, t: Term, c: Term, m: Term) -> Term:
    """A call that has returned: for what it made available, or deliverable, a job is pending or has begun since."""
    deliverable = And(s.deliverable(c, m), s.maker(c, m) == t)
    offered = And(s.offered(m), s.offerer(m) == t)
    return Implies(
        nothing_to_do(s, t),
        And(Implies(deliverable, s.followed(c, m)), Implies(offered, s.answered(m))),
    )


# ---- what is possible


@SYSTEM.witness(t=Thread, c=Consumer, m=Message)
def comes_during_a_job(s: SymbolicState, t: Term, c: Term, m: Term) -> Term:
    """A job has seen that there was nothing for a consumer, there is something by now, and another job is pending."""
    return And(s.looks(t), s.seen(t, c, m), s.deliverable(c, m), s.pending())


@SYSTEM.witness(t=Thread, u=Thread, c=Consumer, m=Message)
def misses_what_is_on_its_way(s: SymbolicState, t: Term, u: Term, c: Term, m: Term) -> Term:
    """The only job has looked at everything, and something could go somewhere all the while: its maker is not done."""
    everything = every(Consumer, Message, lambda d, n: s.seen(t, d, n))
    only = And(s.looks(t), every(Thread, lambda v: Implies(s.looks(v), v == t)), Not(s.pending()))
    before = And(s.deliverable(c, m), s.followed(c, m))
    return And(only, everything, before, s.bound(u, c, m), u != t)


@SYSTEM.witness(t=Thread, m=Message)
def taken_as_it_was_seen(s: SymbolicState, t: Term, m: Term) -> Term:
    """A publisher has seen its message available, after it asked in vain, and it is taken already."""
    asked = some(Consumer, lambda c: s.asked(t, c))
    return And(s.arrives(t, m), s.there(t), asked, Not(s.offered(m)), Not(s.within(t)))


# ---- broken variants


@SYSTEM.broken(
    "set_pending", "a_job_for_what_is_there", "IM-4", "mutant job-for-what-is-gone", t=Thread
)
def ask_for_what_is_gone(s: SymbolicState, t: Term) -> tuple[Term, SymbolicState]:
    """A publisher asks for a job without a look whether its message is still there."""
    return Not(s.pending()), set_pending(s, t)[1]


@SYSTEM.broken(
    "ask", "each_is_asked_once", "IM-4", "a loop that goes on where one was enough",
    t=Thread, c=Consumer,
)  # fmt: skip
def ask_on(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """A publisher goes on to offer what somebody has taken."""
    return And(arriving(s, t), Not(s.within(t))), ask(s, t, c)[1]


@SYSTEM.broken(
    "drop", "dropped_when_all_were_asked", "IM-4", "a loop that ends with the first consumer",
    t=Thread, m=Message,
)  # fmt: skip
def drop_too_early(s: SymbolicState, t: Term, m: Term) -> tuple[Term, SymbolicState]:
    """A publisher drops its message when it has asked one of the consumers."""
    one = some(Consumer, lambda c: s.asked(t, c))
    return And(s.arrives(t, m), Not(s.within(t)), one), drop(s, t, m)[1]


@SYSTEM.broken("end_job", "somebody_comes", "WK-1", "mutant job-stops-at-the-first", t=Thread)
def end_job_early(s: SymbolicState, t: Term) -> tuple[Term, SymbolicState]:
    """A job ends when there is nothing for one of the consumers."""
    one = some(Consumer, lambda c: every(Message, lambda m: s.seen(t, c, m)))
    return And(s.looks(t), one), end_job(s, t)[1]


@SYSTEM.broken(
    "make_deliverable", "bound_until_it_is_done", "IM-3", "mutant credit-without-a-job",
    t=Thread, c=Consumer, m=Message,
)  # fmt: skip
def deliverable_in_silence(
    s: SymbolicState, t: Term, c: Term, m: Term
) -> tuple[Term, SymbolicState]:
    """Something could go to a consumer now, and nobody sees to a job."""
    guard, after = make_deliverable(s, t, c, m)
    return guard, after.but(bound=s.bound)


@SYSTEM.broken(
    "offer", "owed_until_it_is_done", "IM-3", "mutant no-job",
    t=Thread, m=Message,
)  # fmt: skip
def offer_in_silence(s: SymbolicState, t: Term, m: Term) -> tuple[Term, SymbolicState]:
    """A message is available that nobody can take at present, and no job comes to see."""
    guard, after = offer(s, t, m)
    return guard, after.but(owes=s.owes)


@SYSTEM.broken("set_pending", "on_its_way", "WK-1", "a job that nobody submits", t=Thread)
def raise_the_flag_only(s: SymbolicState, t: Term) -> tuple[Term, SymbolicState]:
    """The flag says that a job is pending, and the executor was given none."""
    guard, after = set_pending(s, t)
    return guard, after.but(to_submit=s.to_submit)


@SYSTEM.broken("begin_job", "on_its_way", "WK-1", "mutant job-clears-flag-last", t=Thread)
def begin_and_keep_the_flag(s: SymbolicState, t: Term) -> tuple[Term, SymbolicState]:
    """A job that begins leaves the flag as it is: what comes during it finds the flag up, and submits no other."""
    guard, after = begin_job(s, t)
    return guard, after.but(pending=s.pending)


@SYSTEM.broken(
    "leave_it_to_its_maker", "somebody_comes", "WK-1", "a job submitted before the rewind",
    t=Thread, u=Thread, c=Consumer, m=Message,
)  # fmt: skip
def leave_it_to_who_is_done(
    s: SymbolicState, t: Term, u: Term, c: Term, m: Term
) -> tuple[Term, SymbolicState]:
    """A job leaves what could go to somebody to a thread that made it so and is bound to nothing any more."""
    guard = And(s.looks(t), s.deliverable(c, m), s.maker(c, m) == u, u != t)
    return guard, leave_it_to_its_maker(s, t, u, c, m)[1]


@SYSTEM.broken(
    "be_refused", "somebody_comes", "WK-1", "a refusal that nobody makes good", t=Thread, r=Thread
)
def be_refused_in_silence(s: SymbolicState, t: Term, r: Term) -> tuple[Term, SymbolicState]:
    """The flag is lowered, and nobody asks again: others have found that a job was pending."""
    return s.to_submit(t), s.but(to_submit=at(s.to_submit, t, False), pending=at(s.pending, False))
