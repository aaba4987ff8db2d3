/* How the channel of a log waits and is notified (LC-4, LC-5).
 *
 * A topic with BACKLOG messages written before the consumer connects, and a publisher that writes two more;
 * a consumer that reads until there is nothing and then waits on a condition variable.
 *
 *   (no flag)          the consumer sleeps while nothing is unread, and asks that under the lock
 *   -DPUBLISHED        it counts: each notify adds one to `waiting`, and what was read is subtracted
 *   -DSIGNAL_UNLOCKED  the publisher signals without having held the lock since it wrote
 *   -DNEVER_UNLOCKED   the lock is not released, so that threads get stuck
 *   -DTRUSTS_THE_SIGNAL  the consumer takes it that something is there when it wakes up
 *   -DSPURIOUS=n       how often it wakes up though nobody has signalled, 1 unless said
 *   -DBACKLOG=n        1 unless said
 *   -DNEWS=n           messages that the publisher writes, 2 unless said
 *   -DOUTCOMES         print how often the consumer slept: `log-rest`, `log-two-messages`, `log-backlog-and-news`
 *
 * Bounds, and why they are enough:
 *   - one publisher: a publisher is a sequence of writes and signals, and several take the lock one after the
 *     other
 *   - two new messages and one or no backlog: one before it sleeps, one while it is about to
 *   - one wake-up without a signal: after it the consumer is where it was before it slept
 * Beyond these bounds: several publishers (they share nothing but the lock), handlers that fail (LC-6).
 */
#ifndef BACKLOG
#define BACKLOG 1
#endif
#ifndef NEWS
#define NEWS 2
#endif
#define MESSAGES (BACKLOG + NEWS)
#ifndef SPURIOUS
#ifdef OUTCOMES
#define SPURIOUS 0            /* the explorer's conditions wake nobody up for nothing */
#else
#define SPURIOUS 1
#endif
#endif

byte written = BACKLOG, handled, spurious = SPURIOUS;
bool locked, asleep, publishing = true, announcing;
short waiting;

#ifdef OUTCOMES
byte sleeps;
#define count_sleep sleeps++;
#else
#define count_sleep
#endif

#define unread (handled < written)
#define lock() atomic { !locked -> locked = true }
#ifdef NEVER_UNLOCKED
#define unlock() skip
#else
#define unlock() locked = false
#endif

/* Gives the lock back and sleeps, in one step; takes it again when woken. */
inline sleep() {
  atomic { count_sleep locked = false; asleep = true }    /* unlocks and sleeps */
end_asleep:                                   /* to be asleep at the end is right */
  if
  :: atomic { !asleep && !locked -> locked = true }   /* is woken, and locks */
  :: atomic { asleep && !locked && spurious > 0 -> spurious--; asleep = false; locked = true }   /* wakes up by itself, and locks */
  fi
}

proctype Publisher() {
  do
  :: written == MESSAGES -> break
  :: else ->
     atomic { written++; announcing = true }  /* writes a message */
#ifndef SIGNAL_UNLOCKED
     lock();                                  /* locks */
#ifdef PUBLISHED
     waiting++;                               /* one more is waiting */
#endif
     unlock();                                /* unlocks */
#endif
     atomic { asleep = false; announcing = false }   /* signals */
  od;
  publishing = false
}

proctype Consumer() {
  short processed;
  lock();                                     /* locks */
end:
  do
  ::
#ifdef PUBLISHED
     do
     :: waiting != 0 -> break                 /* something is waiting */
     :: else -> sleep()
     od;
     unlock();                                /* unlocks */
     processed = 0;
     do
     :: unread -> atomic { handled++; processed++ }   /* reads and handles a message */
     :: else -> break                         /* nothing to read */
     od;
     lock();                                  /* locks */
     waiting = waiting - processed            /* subtracts what was handled */
#else
#ifdef TRUSTS_THE_SIGNAL
     if
     :: unread                                /* something is unread */
     :: else -> sleep()
     fi;
     unlock();                                /* unlocks */
     handled++;                               /* reads and handles a message */
#else
     do
     :: unread -> break                       /* something is unread */
     :: else -> sleep()
     od;
     unlock();                                /* unlocks */
#endif
     do
     :: unread -> handled++                   /* reads and handles a message */
     :: else -> break                         /* nothing to read */
     od;
     lock()                                   /* locks */
#endif
  od
}

init {
  atomic { run Publisher(); run Consumer() }
#ifdef OUTCOMES
#define OUTCOME (sleeps * 10 + handled)
  atomic { !publishing && asleep -> assert(OUTCOME != AVOID); printf("outcome %d\n", OUTCOME) }
#endif
}

#ifndef OUTCOMES

/* It reads nothing that has not been written. */
ltl lc_1 { [] (handled <= written) }
ltl lc_1_all_read { [] !(handled == MESSAGES) }
/* It does not sleep while something is unread and no notification is on its way. */
ltl lc_4 { [] !(asleep && unread && !announcing) }
ltl lc_4_sleeps_at_the_end { [] !(asleep && handled == MESSAGES) }
ltl lc_4_wakes_by_itself { [] !(spurious == 0 && !unread && !asleep) }
ltl lc_4_sleeps_in_between { [] !(asleep && publishing && handled == BACKLOG + 1) }
/* Everything is handled in the end (weak fairness). */
ltl lc_4_is_handled { <> (handled == MESSAGES) }
/* The count is never negative. */
ltl lc_5_count { [] (waiting >= 0) }
/* With nothing more to come it sleeps in the end, and does not spin (weak fairness). */
ltl lc_5_rests { <> [] asleep }
ltl lc_5_rests_after_work { [] !(!publishing && handled == MESSAGES && !asleep) }
#endif
