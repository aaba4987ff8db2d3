/* The hand-over from a notified session to an IO thread (WK-6).
 *
 * Two threads notify, each its own session; one connection; two IO threads serve whatever connection is ready.
 * At every level the flag is cleared first, and then one looks for work.
 *
 *   -DLOOKS_THEN_CLEARS   the connection looks for work once more, and then clears its flag (rule 6)
 *   -DNOT_LOOKED_AT_AGAIN the connection clears its flag and does not look again (rule 6)
 *   -DTWO_THREADS         a notification schedules the connection whether or not it is scheduled (rule 2)
 *   -DOUTCOMES            print how often the connection ran: what `outcomes.py` does with two sessions
 *
 * Bounds, and why they are enough:
 *   - two sessions and two threads that notify: one that is served while the other comes
 *   - one connection: connections share nothing but the list of the ready
 *   - two IO threads: two are needed for a connection on two threads
 * Beyond these bounds: more connections, which share nothing but the IO threads; more sessions.
 */
#define SESSIONS 2

byte work[SESSIONS];          /* notifications whose work nobody has done yet */
bool waiting[SESSIONS];       /* the sessions with work */
bool scheduled;
byte ready;                   /* how often the connection stands in the scheduler's list */
byte permits, running, served;

#ifdef OUTCOMES
byte runs, notified, about;
#define quiet (notified == SESSIONS && about == 0 && permits == 0)
#endif

#define some_work (work[0] + work[1] > 0)

inline submit() {
  atomic { ready++; permits++ }               /* puts it on the scheduler's list */
}

inline schedule() {
#ifdef TWO_THREADS
  submit()
#else
  atomic { won = !scheduled; scheduled = true }   /* scheduled: false -> true */
  if
  :: won -> submit()
  :: else
  fi
#endif
}

proctype Notifier(byte s) {
  bool won;
  work[s]++;                                  /* has work for its session */
  atomic { won = !waiting[s]; waiting[s] = true }   /* adds its session, if it is not there */
  if
  :: won -> schedule()
  :: else
  fi
#ifdef OUTCOMES
  notified++
#endif
}

proctype IoThread() {
  byte s;
  bool won;
end:
  do
  :: atomic {
       permits > 0 -> permits--; ready--
#ifdef OUTCOMES
       ; runs++; about++
#endif
     }                                        /* takes the connection from the list */
     running++;                               /* begins to run it */
     do
     :: atomic {
          if
          :: waiting[0] -> s = 0; waiting[0] = false
          :: !waiting[0] && waiting[1] -> s = 1; waiting[1] = false
          :: else -> s = SESSIONS
          fi
        }                                     /* takes a session with work */
        if
        :: s == SESSIONS -> break
        :: else -> atomic { served = served + work[s]; work[s] = 0 }   /* does the session's work */
        fi
     od;
#ifdef LOOKS_THEN_CLEARS
     won = waiting[0] || waiting[1];          /* looks once more */
     running--;                               /* ends */
     scheduled = false;                       /* scheduled: -> false */
     if
     :: won -> schedule()
     :: else
     fi
#else
     running--;                               /* ends */
     scheduled = false;                       /* scheduled: -> false */
#ifndef NOT_LOOKED_AT_AGAIN
     won = waiting[0] || waiting[1];          /* looks once more */
     if
     :: won -> schedule()
     :: else
     fi
#endif
#endif
#ifdef OUTCOMES
     about--
#endif
  od
}

init {
  atomic { run Notifier(0); run Notifier(1); run IoThread(); run IoThread() }
#ifdef OUTCOMES
#define OUTCOME (runs * 10 + served)
  atomic { quiet -> assert(OUTCOME != AVOID); printf("outcome %d\n", OUTCOME) }
#endif
}

#ifndef OUTCOMES

/* Never on two threads at once. */
ltl wk_6_one_thread { [] (running <= 1) }
/* Every notification is followed by a run that does its work (weak fairness). */
ltl wk_6_is_served { [] (some_work -> <> !some_work) }
ltl wk_6_some_service { [] !(served == 2) }
ltl wk_6_serves_twice { [] !(served == 1 && running == 1 && some_work) }
#endif
