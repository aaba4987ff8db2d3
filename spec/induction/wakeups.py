"""Who is woken, and who rests: for any number of messages, consumers and threads (WK-1).

This is `reference/seriatim/queue.py`, rules 5 to 7: announce, check once more, pass it on. Consumers acquire. Browsers
are woken besides, each that listens when a message is announced and could be shown it (WK-2), and none without a
reason (WK-11); that they look is their own affair. A message is *fit* for a consumer that
could take it now: it is wanted, not expired, its group is not another's, and nobody of higher priority who wants work
wants it. Any thread may make a message available, any may say that a consumer wants no more; one thread at a time
pulls for a consumer. A *walk* goes over the Interested consumers and wakes the first for whom it finds something.

What is borrowed: a move between lists is one step here (`lists`, `at_most_one_list`), a walk comes to
everybody who is Interested all the while (`nodes`, `nothing_live_between`), and a look may miss a message only while
the thread that made it available still owes rewinds, which it does before its walk (`entries`,
`a_look_misses_nothing`). A wake-up that is given lies there until the client draws it, which is the hand-over's promise
(`handover`, `nobody_is_left_waiting`). Each of these is a lemma of `composition.py`.
"""

from z3 import And, BoolSort, BoolVal, DeclareSort, EnumSort, If, Implies, IntSort, Not, Or

from seriatim_workshop.formal.theory import SymbolicState, Term, TransitionSystem, at, every, some

Message, Consumer, Thread, Browser = map(DeclareSort, ("Message", "Consumer", "Thread", "Browser"))
List, (NOT_INTERESTED, INTERESTED, NOTIFIED) = EnumSort(
    "Listed", ("NOT_INTERESTED", "INTERESTED", "NOTIFIED")
)
Phase, (IDLE, AWAKE, PULLING, LOOKING, DRY, TAKEN) = EnumSort(
    "Phase", ("IDLE", "AWAKE", "PULLING", "LOOKING", "DRY", "TAKEN")
)
Bool, Int = BoolSort(), IntSort()

SYSTEM = TransitionSystem(
    "wakeups", "who is woken and who rests", (Message, Consumer, Thread, Browser)
)

SYSTEM.declare("wants", Consumer, Message, Bool, rigid=True)  # its selector matches
SYSTEM.declare("higher", Consumer, Consumer, Bool, rigid=True)  # the first is of higher priority

SYSTEM.declare("available", Message, Bool)
SYSTEM.declare(
    "fit", Consumer, Message, Bool
)  # wanted, not expired, and not another's by group or priority
SYSTEM.declare(
    "stood_back", Consumer, Consumer, Message, Bool
)  # at some moment since it became available, and the first has tried, the second had no use for it, or no interest
SYSTEM.declare("has", Consumer, Message, Bool)  # it acquired it, and it was not released since
SYSTEM.declare("announcer", Message, Thread)  # who made it available, or fit, last
SYSTEM.declare("preparing", Thread, Message, Bool)  # it did so, and still owes rewinds
SYSTEM.declare("freed", Thread, Message, Bool)  # by setting its group free: it may be forgotten

SYSTEM.declare("listed", Consumer, List)
SYSTEM.declare("arrivals", Int)  # how often anybody came into Interested
SYSTEM.declare("since", Consumer, Int)  # and how often when it came last itself
SYSTEM.declare("permit", Consumer, Bool)  # it was woken, and no pull has begun since
SYSTEM.declare("lies", Consumer, Int)  # wake-ups that nobody has drawn yet
SYSTEM.declare("drawn", Consumer, Bool)  # its client has drawn one, and no pull has begun since
SYSTEM.declare("giving", Thread, Consumer, Bool)  # moved to Notified by the thread, not yet woken
SYSTEM.declare("phase", Consumer, Phase)  # how far a pull for it is
SYSTEM.declare("runs", Consumer, Thread)  # who pulls for it
SYSTEM.declare("scanned", Consumer, Message, Bool)  # in its present look it saw no use for it
SYSTEM.declare("regained", Consumer, Bool)  # since it took something it came into Interested anew

SYSTEM.declare("walking", Thread, Bool)
SYSTEM.declare("passing", Thread, Bool)  # the walk is for whatever there is, not for one message
SYSTEM.declare("about", Thread, Message)  # the message for whose sake it walks, if it is for one
SYSTEM.declare("todo", Thread, Consumer, Bool)  # the thread's walk has not come to it yet
SYSTEM.declare("seen", Thread, Consumer, Message, Bool)  # on its behalf the walk saw no use for it
SYSTEM.declare("leaving", Thread, Consumer, Bool)  # its flag is down, the move still to come
SYSTEM.declare("coming", Thread, Consumer, Bool)  # its flag is up, the move still to come
SYSTEM.declare("owing", Thread, Consumer, Bool)  # a walk to others, for this one will not look
SYSTEM.declare(
    "left_to", Thread, Consumer, Bool
)  # it left a message to this one, and has to wake it

SYSTEM.declare("likes", Browser, Message, Bool, rigid=True)  # its selector matches
SYSTEM.declare("listens", Browser, Bool)  # it is among those that wait and do not acquire
SYSTEM.declare("has_passed", Browser, Message, Bool)  # its pointer is past it, or that has expired
SYSTEM.declare("announces", Thread, Message, Bool)  # in the call that is under way
SYSTEM.declare("resumes", Thread, Browser, Bool)  # the same: it began to listen
SYSTEM.declare("owes_it", Thread, Browser, Message, Bool)  # to wake it for what it announced
SYSTEM.declare(
    "awaits", Browser, Message, Bool
)  # it could be shown it ever since that was announced, and was not woken
SYSTEM.declare("wakings", Browser, Int)  # how often it was woken


def useless(s: SymbolicState, c: Term, m: Term) -> Term:
    """A look on behalf of `c` may pass over `m` at this moment."""
    return Or(Not(s.available(m)), Not(s.fit(c, m)), s.preparing(s.announcer(m), m))


@SYSTEM.initially
def start(s: SymbolicState) -> Term:
    return And(
        every(Message, lambda m: Not(s.available(m))),
        every(Consumer, Message, lambda c, m: Not(s.has(c, m))),
        every(Thread, Message, lambda t, m: Not(s.preparing(t, m))),
        every(Consumer, lambda c: And(s.listed(c) == NOT_INTERESTED, s.phase(c) == IDLE)),
        every(
            Consumer,
            lambda c: And(Not(Or(s.permit(c), s.drawn(c), s.regained(c))), s.lies(c) == 0),
        ),
        every(Thread, Consumer, lambda t, c: Not(Or(s.todo(t, c), s.giving(t, c)))),
        every(
            Thread,
            Consumer,
            lambda t, c: Not(Or(s.leaving(t, c), s.coming(t, c), s.owing(t, c), s.left_to(t, c))),
        ),
        every(Thread, lambda t: Not(s.walking(t))),
        every(Browser, lambda b: Not(s.listens(b))),
        every(Browser, Message, lambda b, m: Not(s.awaits(b, m))),
        every(Thread, Message, lambda t, m: Not(s.announces(t, m))),
        every(Thread, Browser, lambda t, b: Not(s.resumes(t, b))),
        every(Thread, Browser, Message, lambda t, b, m: Not(s.owes_it(t, b, m))),
        every(Consumer, Message, lambda c, m: Implies(s.fit(c, m), s.wants(c, m))),
        every(Consumer, Consumer, Consumer, lambda c, d, e: an_order(s, c, d, e)),
    )


def an_order(s: SymbolicState, c: Term, d: Term, e: Term) -> Term:
    return And(Not(s.higher(c, c)), Implies(And(s.higher(c, d), s.higher(d, e)), s.higher(c, e)))


# ---- a message becomes available, fit, or neither


@SYSTEM.action(t=Thread, m=Message)
def make_available(s: SymbolicState, t: Term, m: Term) -> tuple[Term, SymbolicState]:
    """A new message, one whose delay is over, or one that is released (rule 5: available first)."""
    guard = And(Not(s.available(m)), Not(s.walking(t)))
    return guard, prepared(s, t, m).but(
        available=at(s.available, m, True),
        has=lambda c, n: And(n != m, s.has(c, n)),
        stood_back=lambda c, d, n: And(n != m, s.stood_back(c, d, n)),
    )


@SYSTEM.action(t=Thread, m=Message)
def release_of_a_group(s: SymbolicState, t: Term, m: Term) -> tuple[Term, SymbolicState]:
    """It is released with the rest of its group, of which only what is still available will be announced."""
    guard, after = make_available(s, t, m)
    return guard, after.but(freed=prepared(s, t, m, freed=True).freed)


def prepared(s: SymbolicState, t: Term, m: Term, freed: bool = False) -> SymbolicState:
    unsure = And(freed, Or(Not(s.preparing(t, m)), s.freed(t, m)))
    return s.but(
        announcer=at(s.announcer, m, t),
        preparing=at(s.preparing, t, m, True),
        freed=at(s.freed, t, m, unsure),
    )


@SYSTEM.action(t=Thread, m=Message)
def make_fit(s: SymbolicState, t: Term, m: Term) -> tuple[Term, SymbolicState]:
    """Its group is set free: whoever wants it could take it now."""
    return s.available(m), prepared(s, t, m, freed=True).but(
        fit=lambda c, n: Or(s.fit(c, n), And(n == m, s.wants(c, n)))
    )


@SYSTEM.action(t=Thread, d=Consumer, c=Consumer, m=Message)
def step_aside(s: SymbolicState, t: Term, d: Term, c: Term, m: Term) -> tuple[Term, SymbolicState]:
    """Somebody of higher priority wants no more: one of a lower priority could take the message now."""
    return And(s.leaving(t, d), s.higher(d, c), s.wants(c, m)), s.but(fit=at(s.fit, c, m, True))


@SYSTEM.action(t=Thread, c=Consumer, m=Message)
def make_fit_for_itself(s: SymbolicState, t: Term, c: Term, m: Term) -> tuple[Term, SymbolicState]:
    """Its pull makes a group its own, or drops what others wanted more: it has to look at the message anew."""
    guard = And(Or(s.phase(c) == LOOKING, s.phase(c) == DRY), s.runs(c) == t, s.wants(c, m))
    return guard, s.but(
        fit=at(s.fit, c, m, True),
        scanned=at(s.scanned, c, m, False),
        phase=at(s.phase, c, LOOKING),
    )


@SYSTEM.action(c=Consumer, m=Message)
def make_fit_unasked(s: SymbolicState, c: Term, m: Term) -> tuple[Term, SymbolicState]:
    """It could take the message, if that were available and the consumer had any interest: nobody has to look."""
    idle = Or(Not(s.available(m)), Not(up(s, c)))
    return And(s.wants(c, m), idle), s.but(fit=at(s.fit, c, m, True))


@SYSTEM.action(c=Consumer, m=Message)
def make_unfit(s: SymbolicState, c: Term, m: Term) -> tuple[Term, SymbolicState]:
    """It expires, or another consumer owns its group now, or one of higher priority wants work."""
    return s.fit(c, m), s.but(fit=at(s.fit, c, m, False))


def gone(s: SymbolicState, m: Term) -> SymbolicState:
    """It is available no more, and no browser is owed anything for it."""
    return s.but(
        available=at(s.available, m, False),
        awaits=lambda b, n: And(s.awaits(b, n), n != m),
        owes_it=lambda t, b, n: And(s.owes_it(t, b, n), n != m),
    )


@SYSTEM.action(m=Message)
def remove(s: SymbolicState, m: Term) -> tuple[Term, SymbolicState]:
    """It is dropped, before its time or after."""
    return s.available(m), gone(s, m)


@SYSTEM.action(t=Thread, m=Message)
def forget(s: SymbolicState, t: Term, m: Term) -> tuple[Term, SymbolicState]:
    """The thread set its group free, sees that it is not available any more, and announces nothing."""
    guard = And(s.preparing(t, m), s.freed(t, m), Not(s.available(m)))
    return guard, s.but(preparing=at(s.preparing, t, m, False))


# ---- who comes first


def no_rival(s: SymbolicState, d: Term, m: Term) -> Term:
    """The message is of no use to the consumer at this moment, or it has no interest, or its flag is down already."""
    lowered = some(Thread, lambda t: s.leaving(t, d))
    return Or(Not(s.fit(d, m)), Not(up(s, d)), lowered)


@SYSTEM.action(c=Consumer)
def try_to_take(s: SymbolicState, c: Term) -> tuple[Term, SymbolicState]:
    """An attempt for the consumer begins: those of higher priority are asked anew."""
    return BoolVal(True), s.but(stood_back=lambda x, d, m: And(s.stood_back(x, d, m), x != c))


@SYSTEM.action(c=Consumer, d=Consumer, m=Message)
def stand_back(s: SymbolicState, c: Term, d: Term, m: Term) -> tuple[Term, SymbolicState]:
    """An attempt for `c` that asks at this moment whether `d` wants the message, and wants work, is answered no."""
    return no_rival(s, d, m), s.but(stood_back=at(s.stood_back, c, d, m, True))


def all_stood_back(s: SymbolicState, c: Term, m: Term) -> Term:
    """Of those of higher priority that select it each had no use for it, since it is available and is tried for."""
    return every(
        Consumer, lambda d: Implies(And(s.higher(d, c), s.wants(d, m)), s.stood_back(c, d, m))
    )


# ---- a walk


def begin_walk(s: SymbolicState, t: Term, whom: Term, passing: Term) -> SymbolicState:
    return s.but(
        todo=lambda u, c: Or(And(u == t, whom(c)), And(u != t, s.todo(u, c))),
        seen=lambda u, c, m: And(u != t, s.seen(u, c, m)),
        passing=at(s.passing, t, passing),
        walking=at(s.walking, t, True),
    )


def to_browsers(s: SymbolicState, after: SymbolicState, t: Term, m: Term) -> SymbolicState:
    """From now on the thread owes a wake-up to each browser that listens, and could be shown the message."""

    def could_see(b: Term) -> Term:
        return And(s.available(m), s.listens(b), s.likes(b, m), Not(s.has_passed(b, m)))

    return after.but(
        announces=at(s.announces, t, m, True),
        owes_it=lambda u, b, n: Or(s.owes_it(u, b, n), And(u == t, n == m, could_see(b))),
        awaits=lambda b, n: Or(s.awaits(b, n), And(n == m, could_see(b))),
    )


@SYSTEM.action(t=Thread, m=Message)
def announce(s: SymbolicState, t: Term, m: Term) -> tuple[Term, SymbolicState]:
    """All pointers are moved back; now it looks for somebody to take it, among all that are Interested."""
    after = to_browsers(s, begin_walk(s, t, lambda c: True, False), t, m).but(
        preparing=at(s.preparing, t, m, False), about=at(s.about, t, m)
    )
    return And(s.preparing(t, m), Not(s.walking(t))), after


@SYSTEM.action(t=Thread, m=Message)
def announce_again(s: SymbolicState, t: Term, m: Term) -> tuple[Term, SymbolicState]:
    """Its group was set free, but it has been announced already, or is of no use to anybody."""
    after = to_browsers(s, begin_walk(s, t, lambda c: True, False), t, m)
    return Not(s.walking(t)), after.but(about=at(s.about, t, m))


@SYSTEM.action(t=Thread, c=Consumer)
def pass_on(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """Rule 7: a consumer will not look, so somebody else, if anybody, has to."""
    after = begin_walk(s, t, lambda d: d != c, True).but(owing=at(s.owing, t, c, False))
    return And(s.owing(t, c), Not(s.walking(t))), after


@SYSTEM.action(t=Thread, c=Consumer)
def skip_absent(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """The consumer is not in Interested while the walk is under way."""
    return And(s.todo(t, c), s.listed(c) != INTERESTED), s.but(todo=at(s.todo, t, c, False))


@SYSTEM.action(t=Thread, c=Consumer)
def skip_unwilling(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """The walk is for one message, and the consumer's selector does not match that one."""
    guard = And(s.todo(t, c), Not(s.passing(t)), Not(s.wants(c, s.about(t))))
    return guard, s.but(todo=at(s.todo, t, c, False))


@SYSTEM.action(t=Thread, c=Consumer, m=Message)
def see(s: SymbolicState, t: Term, c: Term, m: Term) -> tuple[Term, SymbolicState]:
    """The walk looks at a message on behalf of a consumer, and has no use for it."""
    return And(s.todo(t, c), useless(s, c, m)), s.but(seen=at(s.seen, t, c, m, True))


@SYSTEM.action(t=Thread, c=Consumer)
def skip_useless(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """It found nothing for this consumer."""
    guard = And(s.todo(t, c), every(Message, lambda m: s.seen(t, c, m)))
    return guard, s.but(todo=at(s.todo, t, c, False))


def is_left(s: SymbolicState, c: Term, d: Term, m: Term) -> Term:
    """The consumer `c` leaves the message to `d`, of higher priority, who wants it and wants work at this moment."""
    return And(s.higher(d, c), up(s, d), s.wants(c, m), s.wants(d, m))


@SYSTEM.action(t=Thread, c=Consumer, d=Consumer, m=Message)
def leave_it_to(s: SymbolicState, t: Term, c: Term, d: Term, m: Term) -> tuple[Term, SymbolicState]:
    """The walk comes to a message that is left to another, and does not see what stands behind that. It has to wake
    that other, whatever becomes of the message.
    """
    return And(s.todo(t, c), is_left(s, c, d, m)), s.but(
        todo=at(s.todo, t, c, False), left_to=at(s.left_to, t, d, True)
    )


@SYSTEM.action(t=Thread, d=Consumer, e=Consumer)
def leave_it_rather_to(s: SymbolicState, t: Term, d: Term, e: Term) -> tuple[Term, SymbolicState]:
    """It finds another that wants work, of higher priority still."""
    return And(s.left_to(t, d), s.higher(e, d), up(s, e)), s.but(
        left_to=lambda u, c: Or(And(s.left_to(u, c), Not(And(u == t, c == d))), And(u == t, c == e))
    )


@SYSTEM.action(t=Thread, d=Consumer)
def find_it_busy(s: SymbolicState, t: Term, d: Term) -> tuple[Term, SymbolicState]:
    """Whom it left the message to is not in Interested, nor on the way there: it is awake, or has lost its interest."""
    amid = some(Thread, lambda u: s.coming(u, d))
    guard = And(s.left_to(t, d), s.listed(d) != INTERESTED, Not(amid))
    return guard, s.but(left_to=at(s.left_to, t, d, False))


@SYSTEM.action(t=Thread)
def end_walk(s: SymbolicState, t: Term) -> tuple[Term, SymbolicState]:
    """It has come to everybody."""
    guard = And(s.walking(t), every(Consumer, lambda c: Not(s.todo(t, c))))
    return guard, s.but(walking=at(s.walking, t, False))


@SYSTEM.action(t=Thread, c=Consumer)
def notify(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """It found something, and moves the consumer from Interested to Notified. Its walk is over.

    A list is walked over in the order in which it was linked (`nodes`, `in_order`), so it has come to all that were in
    the list before this one all the while.
    """
    guard = And(s.walking(t), s.listed(c) == INTERESTED, Not(before_it(s, t, c)), selects(s, t, c))
    return guard, s.but(
        listed=at(s.listed, c, NOTIFIED),
        giving=at(s.giving, t, c, True),
        todo=lambda u, d: And(u != t, s.todo(u, d)),
        walking=at(s.walking, t, False),
    )


def selects(s: SymbolicState, t: Term, c: Term) -> Term:
    """The walk is for whatever there is, or for a message that the consumer's selector matches."""
    return Or(s.passing(t), s.wants(c, s.about(t)))


def before_it(s: SymbolicState, t: Term, c: Term) -> Term:
    """One of equal priority, to whom the walk has still to come, has been Interested longer; both all the while."""

    def waits_longer(d: Term) -> Term:
        equal = Not(Or(s.higher(c, d), s.higher(d, c)))
        both = And(s.todo(t, d), s.listed(d) == INTERESTED, equal)
        return And(both, s.since(d) < s.since(c))

    return And(s.todo(t, c), some(Consumer, waits_longer))


@SYSTEM.action(t=Thread, c=Consumer, d=Consumer)
def notify_the_higher(s: SymbolicState, t: Term, c: Term, d: Term) -> tuple[Term, SymbolicState]:
    """Its walk, or its pull for `c`, came to a message that it left to `d`, and that is over: `d` goes to Notified."""
    pulls = And(s.phase(c) == DRY, s.runs(c) == t)
    guard = And(s.left_to(t, d), s.listed(d) == INTERESTED, Or(s.walking(t), pulls))
    return guard, s.but(
        listed=at(s.listed, d, NOTIFIED),
        giving=at(s.giving, t, d, True),
        left_to=at(s.left_to, t, d, False),
        todo=lambda u, e: And(u != t, s.todo(u, e)),
        walking=at(s.walking, t, False),
        phase=lambda e: If(And(e == c, pulls), IDLE, s.phase(e)),
    )


@SYSTEM.action(t=Thread, c=Consumer)
def wake(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """Having moved it, it wakes the consumer."""
    return s.giving(t, c), s.but(
        giving=at(s.giving, t, c, False),
        permit=at(s.permit, c, True),
        lies=at(s.lies, c, s.lies(c) + 1),
    )


@SYSTEM.action(c=Consumer, n=Int)
def draw(s: SymbolicState, c: Term, n: Term) -> tuple[Term, SymbolicState]:
    """Its client draws a wake-up, or several at once: `n` are left."""
    guard = And(n >= 0, n < s.lies(c))
    return guard, s.but(lies=at(s.lies, c, n), drawn=at(s.drawn, c, True))


@SYSTEM.action(c=Consumer)
def let_it_be(s: SymbolicState, c: Term) -> tuple[Term, SymbolicState]:
    """It finds that the consumer has lost its interest meanwhile, and does not pull."""
    guard = And(s.drawn(c), s.listed(c) == NOT_INTERESTED)
    return guard, s.but(drawn=at(s.drawn, c, False), permit=at(s.permit, c, False))


# ---- a pull


@SYSTEM.action(t=Thread, c=Consumer)
def begin_pull(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """A thread pulls for the consumer: because that was woken, because it took something, or on its own account."""
    guard = And(Or(s.phase(c) == IDLE, s.phase(c) == AWAKE), Not(s.walking(t)))
    return guard, s.but(
        phase=at(s.phase, c, PULLING),
        runs=at(s.runs, c, t),
        permit=at(s.permit, c, False),
        drawn=at(s.drawn, c, False),
    )


@SYSTEM.action(t=Thread, c=Consumer)
def show_rest(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """Rule 6: it is seen to rest, in Interested, before it looks."""
    guard = And(s.phase(c) == PULLING, s.runs(c) == t, s.listed(c) == NOTIFIED)
    return guard, into_interested(s, c)


def into_interested(s: SymbolicState, c: Term) -> SymbolicState:
    """It comes behind all that are there (QL-5)."""
    return s.but(
        listed=at(s.listed, c, INTERESTED),
        arrivals=at(s.arrivals, s.arrivals() + 1),
        since=at(s.since, c, s.arrivals() + 1),
    )


def looks(s: SymbolicState, c: Term) -> SymbolicState:
    return s.but(phase=at(s.phase, c, LOOKING), scanned=lambda d, m: And(d != c, s.scanned(d, m)))


@SYSTEM.action(t=Thread, c=Consumer)
def begin_look(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """Then it looks."""
    return And(s.phase(c) == PULLING, s.runs(c) == t, s.listed(c) != NOTIFIED), looks(s, c)


@SYSTEM.action(t=Thread, c=Consumer, m=Message)
def scan(s: SymbolicState, t: Term, c: Term, m: Term) -> tuple[Term, SymbolicState]:
    """It looks at a message, or past the end of the list, and has no use for it."""
    guard = And(s.phase(c) == LOOKING, s.runs(c) == t, useless(s, c, m))
    return guard, s.but(scanned=at(s.scanned, c, m, True))


@SYSTEM.action(t=Thread, c=Consumer)
def find_nothing(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """It has seen everything, and has no use for any."""
    guard = And(s.phase(c) == LOOKING, s.runs(c) == t, every(Message, lambda m: s.scanned(c, m)))
    return guard, s.but(phase=at(s.phase, c, DRY))


@SYSTEM.action(t=Thread, c=Consumer, d=Consumer, m=Message)
def find_it_left(
    s: SymbolicState, t: Term, c: Term, d: Term, m: Term
) -> tuple[Term, SymbolicState]:
    """It comes to a message that it leaves to another. It has to wake that one, whatever becomes of the message."""
    guard = And(s.phase(c) == LOOKING, s.runs(c) == t, is_left(s, c, d, m))
    return guard, s.but(phase=at(s.phase, c, DRY), left_to=at(s.left_to, t, d, True))


@SYSTEM.action(t=Thread, c=Consumer)
def look_again(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """Its attempt has failed, for another was faster, and it looks anew."""
    return And(Or(s.phase(c) == DRY, s.phase(c) == LOOKING), s.runs(c) == t), looks(s, c)


@SYSTEM.action(t=Thread, c=Consumer, m=Message)
def take(s: SymbolicState, t: Term, c: Term, m: Term) -> tuple[Term, SymbolicState]:
    """It acquires a message, which nobody of higher priority has wanted all the while."""
    guard = And(could_take(s, t, c, m), all_stood_back(s, c, m))
    return guard, acquired(s, c, m).but(
        phase=at(s.phase, c, TAKEN), regained=at(s.regained, c, False)
    )


@SYSTEM.action(c=Consumer, m=Message)
def take_outside_a_pull(s: SymbolicState, c: Term, m: Term) -> tuple[Term, SymbolicState]:
    """An attempt for the consumer acquires a message, and the queue wakes nobody for that."""
    guard = And(s.available(m), s.wants(c, m), all_stood_back(s, c, m))
    return guard, acquired(s, c, m)


def could_take(s: SymbolicState, t: Term, c: Term, m: Term) -> Term:
    """The thread is in a look for the consumer, whose selector matches the message, and that is available."""
    looking = Or(s.phase(c) == LOOKING, s.phase(c) == DRY)
    return And(looking, s.runs(c) == t, s.available(m), s.wants(c, m))


def acquired(s: SymbolicState, c: Term, m: Term) -> SymbolicState:
    return gone(s, m).but(has=at(s.has, c, m, True))


@SYSTEM.action(t=Thread, c=Consumer)
def stay_notified(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """In a second step it goes to Notified, where nobody wakes it, for it will pull again."""
    guard = And(s.phase(c) == TAKEN, s.runs(c) == t, s.listed(c) == INTERESTED)
    return guard, s.but(listed=at(s.listed, c, NOTIFIED))


@SYSTEM.action(t=Thread, c=Consumer)
def return_with_something(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """The pull returns a message; the next one has to follow. It does not rest between messages (WK-8).

    Only if it lost its interest meanwhile, and a call in its callback has brought that back, is it in Interested.
    """
    stays = Or(s.listed(c) != INTERESTED, s.regained(c))
    guard = And(s.phase(c) == TAKEN, s.runs(c) == t, stays, Not(s.walking(t)))
    return guard, s.but(phase=at(s.phase, c, AWAKE))


@SYSTEM.action(t=Thread, c=Consumer)
def run_dry(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """It found nothing: rule 7 obliges its thread to walk to the others."""
    guard = And(s.phase(c) == DRY, s.runs(c) == t)
    return guard, s.but(phase=at(s.phase, c, IDLE), owing=at(s.owing, t, c, True))


@SYSTEM.action(t=Thread, c=Consumer)
def decline(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """It has lost its interest meanwhile, and returns; whoever takes its interest away passes it on."""
    lost = Or(s.listed(c) == NOT_INTERESTED, some(Thread, lambda u: s.leaving(u, c)))
    guard = And(Or(s.phase(c) == LOOKING, s.phase(c) == DRY), s.runs(c) == t, lost)
    return guard, s.but(phase=at(s.phase, c, IDLE))


# ---- interest


@SYSTEM.action(t=Thread, c=Consumer)
def lower_the_flag(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """Its credit is used up, or it pauses or closes: first its flag says so."""
    return s.listed(c) != NOT_INTERESTED, s.but(leaving=at(s.leaving, t, c, True))


@SYSTEM.action(t=Thread, c=Consumer)
def lose_interest(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """Then it leaves its list, and somebody else has to look: whoever moves it sees to that."""
    return s.listed(c) != NOT_INTERESTED, s.but(
        listed=at(s.listed, c, NOT_INTERESTED),
        leaving=lambda u, d: And(s.leaving(u, d), d != c),
        owing=at(s.owing, t, c, True),
    )


@SYSTEM.action(t=Thread, c=Consumer)
def raise_the_flag(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """It wants messages again, or comes new: first its flag says so, and those of lower priority go by that."""
    return s.listed(c) == NOT_INTERESTED, s.but(coming=at(s.coming, t, c, True))


@SYSTEM.action(t=Thread, c=Consumer)
def find_interest(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """Then it comes into Interested, and is notified if there is anything."""
    guard = And(s.listed(c) == NOT_INTERESTED, Not(s.walking(t)))
    return guard, into_interested(begin_walk(s, t, lambda d: d == c, True), c).but(
        coming=lambda u, d: And(s.coming(u, d), d != c),
        regained=at(s.regained, c, True),
    )


# ---- browsers


@SYSTEM.action(t=Thread, b=Browser)
def listen(s: SymbolicState, t: Term, b: Term) -> tuple[Term, SymbolicState]:
    """It comes among those that wait and do not acquire: whoever resumes it looks for it, too."""
    return Not(s.listens(b)), s.but(
        listens=at(s.listens, b, True), resumes=at(s.resumes, t, b, True)
    )


@SYSTEM.action(b=Browser)
def stop_listening(s: SymbolicState, b: Term) -> tuple[Term, SymbolicState]:
    """It pauses, or closes."""
    return s.listens(b), s.but(
        listens=at(s.listens, b, False),
        awaits=lambda x, m: And(s.awaits(x, m), x != b),
        owes_it=lambda t, x, m: And(s.owes_it(t, x, m), x != b),
    )


@SYSTEM.action(b=Browser, m=Message)
def pass_it(s: SymbolicState, b: Term, m: Term) -> tuple[Term, SymbolicState]:
    """Its pointer is past the message, which never comes back for it; or the message has expired."""
    return Not(s.has_passed(b, m)), s.but(
        has_passed=at(s.has_passed, b, m, True),
        awaits=at(s.awaits, b, m, False),
        owes_it=lambda t, x, n: And(s.owes_it(t, x, n), Not(And(x == b, n == m))),
    )


def has_a_reason(s: SymbolicState, t: Term, b: Term) -> Term:
    """In its call it has announced what the browser's selector matches, or the browser began to listen."""
    announced = some(Message, lambda m: And(s.announces(t, m), s.likes(b, m)))
    return Or(s.resumes(t, b), announced)


@SYSTEM.action(t=Thread, b=Browser)
def wake_browser(s: SymbolicState, t: Term, b: Term) -> tuple[Term, SymbolicState]:
    """It found something for it. That counts for all that it owes to the browser."""
    return has_a_reason(s, t, b), s.but(
        wakings=at(s.wakings, b, s.wakings(b) + 1),
        owes_it=lambda u, x, m: And(s.owes_it(u, x, m), Not(And(u == t, x == b))),
        awaits=lambda x, m: And(s.awaits(x, m), Not(And(x == b, s.owes_it(t, b, m)))),
    )


@SYSTEM.action(t=Thread)
def settle(s: SymbolicState, t: Term) -> tuple[Term, SymbolicState]:
    """Its call returns: it owes nobody anything, and has no reason any more to wake a browser."""
    return Not(busy(s, t)), s.but(
        announces=lambda u, m: And(u != t, s.announces(u, m)),
        resumes=lambda u, b: And(u != t, s.resumes(u, b)),
    )


def busy(s: SymbolicState, t: Term) -> Term:
    """It walks, or is bound to."""
    return Or(
        s.walking(t),
        some(Message, lambda m: s.preparing(t, m)),
        some(Browser, Message, lambda b, m: s.owes_it(t, b, m)),
        some(
            Consumer,
            lambda c: Or(
                s.giving(t, c), s.leaving(t, c), s.coming(t, c), s.owing(t, c), s.left_to(t, c)
            ),
        ),
    )


# ---- what is always so


@SYSTEM.invariant("WK-1", t=Thread, c=Consumer)
def a_walk_has_somewhere_to_go(s: SymbolicState, t: Term, c: Term) -> Term:
    """Who has somebody to come to walks."""
    return Implies(s.todo(t, c), s.walking(t))


@SYSTEM.invariant("WK-4", c=Consumer, d=Consumer, e=Consumer)
def priorities_are_an_order(s: SymbolicState, c: Term, d: Term, e: Term) -> Term:
    """Nobody is of higher priority than itself, and who is higher than a higher one is higher."""
    return an_order(s, c, d, e)


@SYSTEM.invariant("WK-1", c=Consumer, m=Message)
def only_the_wanted_is_fit(s: SymbolicState, c: Term, m: Term) -> Term:
    """What a consumer could take its selector matches."""
    return Implies(s.fit(c, m), s.wants(c, m))


@SYSTEM.invariant("WK-8", c=Consumer)
def a_wake_up_is_not_lost(s: SymbolicState, c: Term) -> Term:
    """Who was woken, and has not pulled since, has a wake-up that lies there, or was drawn."""
    return And(s.lies(c) >= 0, Implies(s.permit(c), Or(s.lies(c) > 0, s.drawn(c))))


@SYSTEM.invariant("WK-1", c=Consumer)
def the_notified_are_woken(s: SymbolicState, c: Term) -> Term:
    """Who is in Notified was woken, is being woken, or is in a pull that will be followed by another."""
    return Implies(s.listed(c) == NOTIFIED, woken(s, c))


def woken(s: SymbolicState, x: Term) -> Term:
    """A look of it is sure to begin."""
    pulls = Or(s.phase(x) == AWAKE, s.phase(x) == PULLING, s.phase(x) == TAKEN)
    return Or(s.permit(x), pulls, some(Thread, lambda t: s.giving(t, x)))


def bound(s: SymbolicState, x: Term, c: Term, m: Term) -> Term:
    """The consumer `x` will look, and if it does not take will pass it on: somebody will look for `c` at `m`."""
    looking = And(s.phase(x) == LOOKING, Or(x != c, Not(s.scanned(c, m))))
    dry = And(s.phase(x) == DRY, x != c)
    return And(s.listed(x) != NOT_INTERESTED, Or(woken(s, x), looking, dry))


def ahead(s: SymbolicState, t: Term, c: Term, m: Term) -> Term:
    """The thread `t` has not yet looked at `m` on behalf of `c`, and will; or it takes the interest of `c` away."""
    walking = And(s.todo(t, c), Not(s.seen(t, c, m)), Or(s.passing(t), s.wants(c, s.about(t))))
    owing = some(Consumer, lambda x: And(x != c, Or(s.owing(t, x), s.leaving(t, x))))
    sure = some(Message, lambda n: And(s.preparing(t, n), s.wants(c, n), Not(s.freed(t, n))))
    left = some(Consumer, lambda d: And(s.left_to(t, d), up(s, d)))  # who passes it on
    return Or(s.preparing(t, m), sure, walking, owing, left, s.leaving(t, c), s.coming(t, c))


def somebody_will_look(s: SymbolicState, c: Term, m: Term) -> Term:
    return Or(
        some(Thread, lambda t: ahead(s, t, c, m)), some(Consumer, lambda x: bound(s, x, c, m))
    )


def up(s: SymbolicState, c: Term) -> Term:
    """It is Interested or Notified, or its flag is up already."""
    return Or(s.listed(c) != NOT_INTERESTED, some(Thread, lambda t: s.coming(t, c)))


def waits(s: SymbolicState, c: Term, m: Term) -> Term:
    return And(s.available(m), s.fit(c, m), up(s, c))


@SYSTEM.invariant("WK-2", b=Browser, m=Message)
def what_it_awaits_it_is_owed(s: SymbolicState, b: Term, m: Term) -> Term:
    """What a browser could be shown, ever since it was announced, somebody owes it a wake-up for."""
    return Implies(s.awaits(b, m), some(Thread, lambda t: s.owes_it(t, b, m)))


@SYSTEM.invariant("WK-1", c=Consumer, m=Message)
def no_lost_wakeup(s: SymbolicState, c: Term, m: Term) -> Term:
    """An available wanted message and an Interested or Notified consumer: then somebody is bound to look for it."""
    return Implies(waits(s, c, m), somebody_will_look(s, c, m))


def quiet(s: SymbolicState) -> Term:
    """No thread is bound to anything, no wake-up lies there or was drawn for nothing, and nobody pulls."""
    return And(
        every(Thread, lambda t: Not(busy(s, t))),
        every(Consumer, lambda x: And(s.lies(x) == 0, Not(s.drawn(x)), s.phase(x) == IDLE)),
    )


@SYSTEM.safe("WK-1", c=Consumer, m=Message)
def at_rest_nothing_waits(s: SymbolicState, c: Term, m: Term) -> Term:
    """When all is quiet, no message waits for a consumer, Interested or Notified, that could take it."""
    return Implies(And(quiet(s), s.available(m), s.fit(c, m)), s.listed(c) == NOT_INTERESTED)


@SYSTEM.safe("WK-8", c=Consumer)
def nobody_sleeps_in_notified(s: SymbolicState, c: Term) -> Term:
    """When all is quiet, nobody is in Notified."""
    return Implies(quiet(s), s.listed(c) != NOTIFIED)


@SYSTEM.safe("WK-2", b=Browser, m=Message)
def every_browser_is_woken(s: SymbolicState, b: Term, m: Term) -> Term:
    """When no thread is bound to anything, no browser awaits what it could be shown ever since that was announced."""
    return Implies(every(Thread, lambda t: Not(busy(s, t))), Not(s.awaits(b, m)))


def is_woken(s: SymbolicState, after: SymbolicState, t: Term, c: Term) -> Term:
    """In this step the thread binds itself to wake the consumer."""
    return And(after.giving(t, c), Not(s.giving(t, c)))


@SYSTEM.step("WK-2", t=Thread, c=Consumer, d=Consumer)
def one_is_woken_and_the_walk_is_over(
    s: SymbolicState, after: SymbolicState, t: Term, c: Term, d: Term
) -> Term:
    """A step wakes one consumer at most, and with it the walk ends that came to it: no herd of those that acquire."""
    once = Implies(is_woken(s, after, t, d), c == d)
    return Implies(is_woken(s, after, t, c), And(Not(after.walking(t)), once))


@SYSTEM.step("WK-11", b=Browser)
def a_browser_is_woken_for_a_reason(s: SymbolicState, after: SymbolicState, b: Term) -> Term:
    """A browser is woken by a call that announces what it selects, or by which it begins to listen."""
    woken_now = after.wakings(b) > s.wakings(b)
    return Implies(woken_now, some(Thread, lambda t: has_a_reason(s, t, b)))


@SYSTEM.step("WK-11", t=Thread, c=Consumer)
def woken_for_what_it_selects(s: SymbolicState, after: SymbolicState, t: Term, c: Term) -> Term:
    """A walk for one message wakes a consumer that selects it, or to which a message was left."""
    by_the_walk = And(is_woken(s, after, t, c), Not(s.left_to(t, c)))
    return Implies(by_the_walk, selects(s, t, c))


@SYSTEM.step("WK-3", t=Thread, c=Consumer)
def only_the_interested_are_woken(s: SymbolicState, after: SymbolicState, t: Term, c: Term) -> Term:
    """Who is woken was in Interested, and is in Notified from then on: not woken again before it rests there anew."""
    moves = And(s.listed(c) == INTERESTED, after.listed(c) == NOTIFIED)
    return Implies(is_woken(s, after, t, c), moves)


@SYSTEM.step("QL-5", t=Thread, c=Consumer)
def the_longest_waiting_is_woken(s: SymbolicState, after: SymbolicState, t: Term, c: Term) -> Term:
    """A walk wakes nobody while it has still to come to one of equal priority that has been Interested longer.

    Both are in the list since the walk began. Whom a message was left to is not woken by its place in the list.
    """
    by_the_walk = And(is_woken(s, after, t, c), Not(s.left_to(t, c)))
    return Implies(by_the_walk, Not(before_it(s, t, c)))


@SYSTEM.step("WK-4", c=Consumer, d=Consumer, m=Message)
def the_higher_come_first(
    s: SymbolicState, after: SymbolicState, c: Term, d: Term, m: Term
) -> Term:
    """Who takes a message does so after each of higher priority that selects it: since it is available, and the attempt
    began, that one had no use for it at some moment, or no interest.
    """
    takes = And(after.has(c, m), Not(s.has(c, m)))
    return Implies(And(takes, s.higher(d, c), s.wants(d, m)), s.stood_back(c, d, m))


@SYSTEM.step("WK-4", c=Consumer, d=Consumer, m=Message)
def it_stands_back_when_it_is_said(
    s: SymbolicState, after: SymbolicState, c: Term, d: Term, m: Term
) -> Term:
    """Who comes to count as without use or interest is so at that moment, and what is available anew is asked anew."""
    fresh = And(after.stood_back(c, d, m), Not(s.stood_back(c, d, m)))
    anew = And(after.available(m), Not(s.available(m)))
    return And(Implies(fresh, no_rival(s, d, m)), Implies(anew, Not(after.stood_back(c, d, m))))


# ---- what is possible


@SYSTEM.witness(c=Consumer, m=Message)
def seen_to_rest(s: SymbolicState, c: Term, m: Term) -> Term:
    """A consumer has looked in vain, and what it passed over has become available since, and is announced."""
    return And(
        s.phase(c) == LOOKING, s.scanned(c, m), s.available(m), s.fit(c, m),
        Not(s.preparing(s.announcer(m), m)), s.listed(c) == INTERESTED,
    )  # fmt: skip


@SYSTEM.witness(c=Consumer, m=Message)
def all_quiet(s: SymbolicState, c: Term, m: Term) -> Term:
    """All is at rest, and a message waits that nobody is interested in now."""
    return And(quiet(s), s.available(m), s.wants(c, m))


@SYSTEM.witness(c=Consumer, d=Consumer)
def one_rests_and_one_is_woken(s: SymbolicState, c: Term, d: Term) -> Term:
    """One consumer rests in Interested, and another is in Notified with its wake-up on the way."""
    return And(s.listed(c) == INTERESTED, s.phase(c) == IDLE, s.listed(d) == NOTIFIED, s.permit(d))


@SYSTEM.witness(t=Thread, c=Consumer)
def interest_comes_back_in_a_callback(s: SymbolicState, t: Term, c: Term) -> Term:
    """A pull has taken a message, and before it returns its consumer has lost its interest and is Interested again."""
    back = And(s.regained(c), s.listed(c) == INTERESTED)
    return And(s.phase(c) == TAKEN, s.runs(c) == t, back, Not(s.walking(t)))


@SYSTEM.witness(t=Thread, b=Browser, m=Message)
def a_browser_waits_beside_a_walk(s: SymbolicState, t: Term, b: Term, m: Term) -> Term:
    """A thread walks to those that acquire, and a browser awaits the same message."""
    return And(s.walking(t), s.about(t) == m, s.owes_it(t, b, m), s.awaits(b, m))


# ---- broken variants


@SYSTEM.broken(
    "wake_browser", "a_browser_is_woken_for_a_reason", "WK-11", "a walk that asks for no interest",
    t=Thread, b=Browser,
)  # fmt: skip
def wake_any_browser(s: SymbolicState, t: Term, b: Term) -> tuple[Term, SymbolicState]:
    """It wakes a browser that listens, whether or not that selects what it announces."""
    return s.listens(b), wake_browser(s, t, b)[1]


@SYSTEM.broken(
    "announce", "what_it_awaits_it_is_owed", "WK-2", "a loop that ends with the first browser",
    t=Thread, m=Message,
)  # fmt: skip
def announce_to_acquirers_alone(s: SymbolicState, t: Term, m: Term) -> tuple[Term, SymbolicState]:
    """It does not come to every browser."""
    guard, after = announce(s, t, m)
    return guard, after.but(owes_it=s.owes_it)


@SYSTEM.broken(
    "notify", "woken_for_what_it_selects", "WK-11", "a look before the selector is asked",
    t=Thread, c=Consumer,
)  # fmt: skip
def notify_the_unwilling(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """It wakes who does not select the message, and has another to take."""
    guard = And(s.walking(t), s.listed(c) == INTERESTED, Not(before_it(s, t, c)))
    return guard, notify(s, t, c)[1]


@SYSTEM.broken("begin_look", "no_lost_wakeup", "WK-1", "F-6", t=Thread, c=Consumer)
def look_then_rest(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """What it saw while it was still in Notified counts, and it is seen to rest only after that."""
    return begin_look(s, t, c)[0], s.but(phase=at(s.phase, c, LOOKING))


@SYSTEM.broken("run_dry", "no_lost_wakeup", "WK-1", "mutant nobody-else-is-told", t=Thread, c=Consumer)  # fmt: skip
def keep_it_to_oneself(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """A consumer that was woken, and found nothing for itself, wakes nobody else."""
    return run_dry(s, t, c)[0], s.but(phase=at(s.phase, c, IDLE))


@SYSTEM.broken(
    "lose_interest", "no_lost_wakeup", "WK-1", "an interest that ends silently",
    t=Thread, c=Consumer,
)  # fmt: skip
def lose_interest_silently(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """A consumer that was to look loses its interest, and nobody else is woken."""
    guard, after = lose_interest(s, t, c)
    return guard, after.but(owing=s.owing)


@SYSTEM.broken(
    "find_interest", "no_lost_wakeup", "WK-1", "mutant registers-without-a-look",
    t=Thread, c=Consumer,
)  # fmt: skip
def find_interest_blindly(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """It comes into Interested, and does not look at what is there already."""
    return find_interest(s, t, c)[0], s.but(listed=at(s.listed, c, INTERESTED))


@SYSTEM.broken(
    "make_fit_for_itself", "no_lost_wakeup", "WK-1", "a group joined after the look",
    t=Thread, c=Consumer, m=Message,
)  # fmt: skip
def make_fit_and_go_on(s: SymbolicState, t: Term, c: Term, m: Term) -> tuple[Term, SymbolicState]:
    """It makes a group its own, and does not look again at what it had passed over."""
    return make_fit_for_itself(s, t, c, m)[0], s.but(fit=at(s.fit, c, m, True))


@SYSTEM.broken(
    "end_walk", "no_lost_wakeup", "WK-1", "F-110", t=Thread,
    only_induction="whoever left the message to somebody has woken that one since F-112 was repaired",
)  # fmt: skip
def stop_early(s: SymbolicState, t: Term) -> tuple[Term, SymbolicState]:
    """The walk ends when its message is gone: whoever took it will pass on. But it may have expired."""
    guard, after = end_walk(s, t)
    gone = And(s.walking(t), Not(s.passing(t)), Not(s.available(s.about(t))))
    return Or(guard, gone), after.but(todo=lambda u, c: And(u != t, s.todo(u, c)))


@SYSTEM.broken(
    "find_it_left", "no_lost_wakeup", "WK-1", "left to one who wants no more",
    t=Thread, c=Consumer, d=Consumer, m=Message,
)  # fmt: skip
def leave_it_to_nobody(
    s: SymbolicState, t: Term, c: Term, d: Term, m: Term
) -> tuple[Term, SymbolicState]:
    """It leaves a message to one of higher priority, who has no interest any more and passes nothing on."""
    guard = And(s.phase(c) == LOOKING, s.runs(c) == t, s.higher(d, c), s.available(m))
    return guard, s.but(phase=at(s.phase, c, DRY), left_to=at(s.left_to, t, d, True))


@SYSTEM.broken(
    "find_it_left", "no_lost_wakeup", "WK-1", "F-112",
    t=Thread, c=Consumer, d=Consumer, m=Message,
)  # fmt: skip
def leave_it_and_wake_nobody(
    s: SymbolicState, t: Term, c: Term, d: Term, m: Term
) -> tuple[Term, SymbolicState]:
    """It relies on whom it leaves the message to: that one will look. But then the message may be gone."""
    return find_it_left(s, t, c, d, m)[0], s.but(phase=at(s.phase, c, DRY))


@SYSTEM.broken(
    "leave_it_to", "no_lost_wakeup", "WK-1", "mutant left-by-a-walk",
    t=Thread, c=Consumer, d=Consumer, m=Message,
)  # fmt: skip
def walk_by_and_wake_nobody(
    s: SymbolicState, t: Term, c: Term, d: Term, m: Term
) -> tuple[Term, SymbolicState]:
    """The walk relies on whom a message is left to."""
    return leave_it_to(s, t, c, d, m)[0], s.but(todo=at(s.todo, t, c, False))


@SYSTEM.broken("announce", "no_lost_wakeup", "WK-1", "walk, then rewind", t=Thread, m=Message)
def announce_nothing(s: SymbolicState, t: Term, m: Term) -> tuple[Term, SymbolicState]:
    """It moves the pointers back, and wakes nobody."""
    return s.preparing(t, m), s.but(preparing=at(s.preparing, t, m, False))


@SYSTEM.broken(
    "notify", "one_is_woken_and_the_walk_is_over", "WK-2", "a walk that goes on",
    t=Thread, c=Consumer,
)  # fmt: skip
def notify_and_go_on(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """It wakes a consumer, and goes on to the next one."""
    guard, after = notify(s, t, c)
    return guard, after.but(todo=s.todo, walking=s.walking)


@SYSTEM.broken(
    "notify", "only_the_interested_are_woken", "WK-3", "a wake-up for somebody else",
    t=Thread, c=Consumer,
)  # fmt: skip
def notify_anybody(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """It does not ask whether the consumer is in Interested."""
    return s.walking(t), notify(s, t, c)[1]


@SYSTEM.broken(
    "notify", "the_notified_are_woken", "WK-8", "a wake-up that is not given",
    t=Thread, c=Consumer,
)  # fmt: skip
def notify_and_forget(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """It moves the consumer to Notified, and does not wake it."""
    guard, after = notify(s, t, c)
    return guard, after.but(giving=s.giving)


@SYSTEM.broken(
    "notify", "the_longest_waiting_is_woken", "QL-5", "mutant youngest-first",
    t=Thread, c=Consumer,
)  # fmt: skip
def notify_the_youngest(s: SymbolicState, t: Term, c: Term) -> tuple[Term, SymbolicState]:
    """The walk begins with whoever came last."""
    return And(s.walking(t), s.listed(c) == INTERESTED), notify(s, t, c)[1]


@SYSTEM.broken(
    "take", "the_higher_come_first", "WK-4", "mutant published-look-then-acquire",
    t=Thread, c=Consumer, m=Message,
)  # fmt: skip
def take_what_is_available_again(
    s: SymbolicState, t: Term, c: Term, m: Term
) -> tuple[Term, SymbolicState]:
    """It takes a message that became available again after it had asked who comes first."""
    return could_take(s, t, c, m), take(s, t, c, m)[1]


@SYSTEM.broken("draw", "a_wake_up_is_not_lost", "WK-8", "a wake-up that nobody follows", c=Consumer, n=Int)  # fmt: skip
def draw_and_forget(s: SymbolicState, c: Term, n: Term) -> tuple[Term, SymbolicState]:
    """Its client draws a wake-up, and is not bound to pull."""
    guard, after = draw(s, c, n)
    return guard, after.but(drawn=s.drawn)
