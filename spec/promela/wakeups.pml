/* Who is woken, and who rests: the lists of the consumer manager, wishes and priorities (WK-1, WK-4, WK-5).
 *
 * A publisher enqueues two messages. The consumer HIGH has credit for one; LOW takes whatever HIGH does not want.
 * Pointers are in pointers.pml; here a consumer sees the first available message in one step.
 *
 *   -DTHREE            a third consumer, of LOW's priority; LOW selects message 1, HIGH message 2, THIRD both;
 *                      HIGH has spent its credit, which comes back once
 *   -DPAUSED           with -DTHREE: HIGH's credit does not come back, message 2 is first, and another thread ends
 *                      LOW's interest
 *   -DLOOK_THEN_REST   a consumer stays in Notified until it has found nothing, and only then rests (rule 6; F-6)
 *   -DWISH_TOLD_FIRST  the queue is informed of a wish that is over before the flag says so (rule 7; F-8)
 *   -DNOTIFY_FIRST     the publisher looks for a consumer, and then links the message (rule 5)
 *   -DNO_HAND_OFF      who loses its interest, or finds nothing, wakes nobody else (rule 7)
 *   -DGRANT_IN_SILENCE HIGH's credit comes back, and nobody looks for a message (with -DTHREE)
 *   -DRANK_IGNORED     Interested is walked from the lowest priority, and nobody is held back by a higher one
 *   -DOUTCOMES -DALONE LOW alone, which pulls once before it waits; one message: the program `enqueue-rest`
 *   -DOUTCOMES -DONE_THERE   message 1 is there and HIGH is notified of it, pulls once, and is not served again;
 *                      message 2 arrives: the program `consumer-priorities`
 *   -DOUTCOMES -DPAUSE HIGH does nothing but lose its interest; one message: the program `priority-pause`
 *
 * Bounds, and why they are enough:
 *   - two consumers, or three with -DTHREE: one of a higher priority, one of a lower, and one that shares the
 *     lower; a fourth would be in the place of one of them in every guard
 *   - two messages: one that is taken, and one that comes while it is
 *   - selectors of one message each and of both: what a consumer looks for is a set, and these are the sets that
 *     differ
 *   - credit for one, which comes back once: to spend it, and to find something or nothing with what came back
 *   - walks in one order: who of equals is asked first is QL-5, not WK-1
 * Beyond these bounds: more consumers and messages, consumers that come and go.
 */
#ifdef THREE
#define CONSUMERS 3
#else
#define CONSUMERS 2
#endif
#define NOT_INTERESTED 0
#define INTERESTED     1
#define NOTIFIED       2
#define NOT_YET   0
#define AVAILABLE 1
#ifdef OUTCOMES
#define TAKEN     (2 + c)    /* by whom */
#else
#define TAKEN     2
#endif
#define HIGH 0
#define LOW  1
#define THIRD 2

byte listed[CONSUMERS] = INTERESTED;
bool wants[CONSUMERS] = true;
byte permits[CONSUMERS];     /* wake-ups on their way */
bool busy[CONSUMERS];
byte state[3];               /* messages 1 and 2; 0 is none */
bool paid;                   /* HIGH's credit is used up */
#ifdef THREE
bool granted;                /* it has come back, once */
#define selects(who, m) (who == THIRD || (who == LOW && m == 1) || (who == HIGH && m == 2))
#else
#define selects(who, m) true
#endif
bool published, outranked, taken_by_low;

#define resting(c) (permits[c] == 0 && !busy[c])
#if defined(THREE) && !defined(PAUSED)
#define quiet (published && resting(HIGH) && resting(LOW) && resting(THIRD))
#elif defined(PAUSED)
bool begun;                  /* the other thread has ended LOW's interest */
#define quiet (published && begun && resting(LOW) && resting(THIRD))
#elif defined(ALONE) || defined(PAUSE) || defined(ONE_THERE)
bool begun;                  /* the other thread has done what it does before it waits */
#define quiet (published && begun && resting(LOW))
#else
#define quiet (published && resting(HIGH) && resting(LOW))
#endif

inline move(who, from, to) {
  atomic { yes = (listed[who] == from); if :: yes -> listed[who] = to :: else fi }   /* moves the consumer between lists */
}

inline look(who) {
  atomic { e = (state[1] == AVAILABLE && selects(who, 1) -> 1 : (state[2] == AVAILABLE && selects(who, 2) -> 2 : 0)) }   /* looks for an available message */
}

/* No higher consumer that wants work would take message e. */
inline may_take(who) {
  yes = true;
#ifndef RANK_IGNORED
  if
  :: who != HIGH ->
     yes = !(wants[HIGH] && selects(HIGH, e));        /* does HIGH want work? */
     if
     :: !yes -> yes = (state[e] != AVAILABLE)         /* it does; is the message still there for it? */
     :: else
     fi
  :: else
  fi
#endif
}

/* Wake `aim` if there is something that it could take. */
inline notify(aim) {
  look(aim);
  yes = false;
  if
  :: e != 0 -> may_take(aim)
  :: else
  fi;
  if
  :: yes ->
     atomic {
       yes = (listed[aim] == INTERESTED);
       if
       :: yes ->
          listed[aim] = NOTIFIED;
          outranked = outranked || (aim != HIGH && wants[HIGH] && selects(HIGH, e) && state[e] == AVAILABLE)   /* Interested -> Notified */
       :: else
       fi
     }
     if
     :: yes -> permits[aim]++                           /* wakes it */
     :: else
     fi
  :: else
  fi
}

/* Wake the first other one that is Interested and could take something. */
inline notify_other() {
#ifndef NO_HAND_OFF
#ifdef THREE
  turn = 0;
  do
  :: turn == CONSUMERS -> break
  :: else ->
     yes = (turn != c && listed[turn] == INTERESTED);   /* is the next one another, and Interested? */
     if
     :: yes -> notify(turn)
     :: else
     fi;
     if
     :: yes -> break
     :: else -> turn++
     fi
  od
#else
  yes = (listed[1 - c] == INTERESTED);                /* is the other one Interested? */
  if
  :: yes -> notify(1 - c)
  :: else
  fi
#endif
#else
  skip
#endif
}

inline wish_is_over() {
#ifndef WISH_TOLD_FIRST
  wants[c] = false;                                   /* the flag: wants no more */
#endif
  atomic { yes = (listed[c] != NOT_INTERESTED); listed[c] = NOT_INTERESTED }   /* -> NotInterested */
  if
  :: yes -> notify_other()
  :: else
  fi;
#ifdef WISH_TOLD_FIRST
  wants[c] = false;                                   /* the flag: wants no more */
#endif
}

/* One pull: the message taken, or 0. */
inline pull() {
  got = 0;
#ifndef LOOK_THEN_REST
  move(c, NOTIFIED, INTERESTED);                 /* be seen to rest, then look */
#endif
  if
  :: wants[c] ->
     do
     :: look(c);
        yes = false;
        if
        :: e != 0 -> may_take(c)
        :: else
        fi;
        if
        :: !yes || (c == HIGH && paid) -> break
        :: else
        fi;
        atomic { yes = (state[e] == AVAILABLE); if :: yes -> state[e] = TAKEN; taken_by_low = taken_by_low || c != HIGH :: else fi }   /* takes it, if it still is there */
        if
        :: yes -> got = e; break
        :: else
        fi
     od;
     if
     :: got != 0 ->
        move(c, INTERESTED, NOTIFIED);
        if
        :: c == HIGH -> paid = true; wish_is_over()
        :: else
        fi
     :: else ->
#ifdef LOOK_THEN_REST
        move(c, NOTIFIED, INTERESTED);           /* found nothing: rests */
#endif
        notify_other()
     fi
  :: else
  fi
}

/* What a thread has read is of no use to it any more; states that differ in that alone are one. */
#ifdef THREE
#define forget() e = 0; yes = false; turn = 0
#else
#define forget() e = 0; yes = false
#endif

#ifdef THREE
/* HIGH's credit comes back, on its own thread: it wants work again. */
inline grant() {
  busy[c] = true;
  granted = true;
  paid = false;                                       /* the credit comes back */
  wants[c] = true;                                    /* the flag: wants more */
  move(c, NOT_INTERESTED, INTERESTED);
#ifndef GRANT_IN_SILENCE
  if
  :: yes -> notify(c)
  :: else
  fi;
#endif
  atomic { busy[c] = false; forget() }                /* waits to be woken */
}
#endif

proctype Consumer(byte c) {
  byte e, got;
#ifdef THREE
  byte turn;
#endif
  bool yes;
#ifdef ALONE
  busy[c] = true;
  pull();
  atomic { busy[c] = false; begun = true }
#endif
end:
  do
  :: atomic { permits[c] > 0 -> permits[c]--; busy[c] = true }   /* wakes up */
     do
     :: pull();
        if
        :: got == 0 -> break
        :: else
        fi
     od;
     atomic { busy[c] = false; forget() }             /* waits to be woken */
#ifdef THREE
  :: c == HIGH && paid && !granted -> grant()
#endif
  od
}

#if defined(PAUSE) || defined(PAUSED)
proctype Pause(byte c) {
  byte e;
  bool yes;
#ifdef PAUSED
  byte turn;
#endif
  wish_is_over();
  begun = true
}
#endif

#ifdef ONE_THERE
proctype High(byte c) {
  byte e, got;
  bool yes;
  pull();
  begun = true
}
#endif

/* A new message: wake one consumer, the highest that will take it. */
inline enqueue(m) {
#ifndef NOTIFY_FIRST
  state[m] = AVAILABLE;                               /* links the message */
#endif
#ifdef RANK_IGNORED
  c = LOW;
#else
  c = HIGH;
#endif
  yes = false;
  turn = 0;
  do
  :: turn == CONSUMERS || yes -> break
  :: else ->
     yes = (state[m] == AVAILABLE && selects(c, m) && listed[c] == INTERESTED);   /* is the next consumer Interested? */
     if
     :: yes -> notify(c)
     :: else
     fi;
     c = (c + 1) % CONSUMERS;
     turn++
  od;
#ifdef NOTIFY_FIRST
  state[m] = AVAILABLE                                /* links the message */
#endif
}

proctype Publisher() {
  byte e, c, turn;
  bool yes;
#ifdef PAUSED
  enqueue(2);                                         /* for THIRD, so that it is at rest when 1 comes */
  enqueue(1);
#else
#ifndef ONE_THERE
  enqueue(1);
#endif
#if !defined(ALONE) && !defined(PAUSE)
  enqueue(2);
#endif
#endif
  published = true
}

init {
  atomic {
    run Publisher();
#ifdef ALONE
    listed[HIGH] = NOT_INTERESTED; wants[HIGH] = false;
#elif defined(PAUSE)
    run Pause(HIGH);
#elif defined(ONE_THERE)
    state[1] = AVAILABLE; listed[HIGH] = NOTIFIED;
    run High(HIGH);
#elif !defined(PAUSED)
    run Consumer(HIGH);
#endif
#ifdef THREE
    paid = true; wants[HIGH] = false; listed[HIGH] = NOT_INTERESTED;
    run Consumer(THIRD);
#endif
#ifdef PAUSED
    run Pause(LOW);
#endif
    run Consumer(LOW)
  }
#ifdef OUTCOMES
#define OUTCOME (state[1] * 1000 + state[2] * 100 + listed[HIGH] * 10 + listed[LOW])
  atomic { quiet -> assert(OUTCOME != AVOID); printf("outcome %d\n", OUTCOME) }
#endif
}

#ifndef OUTCOMES
/* Somebody who is Interested could take one of the messages. */
#define could_take(c, m) (state[m] == AVAILABLE && selects(c, m) && listed[c] == INTERESTED && wants[c] && (c == HIGH || !(wants[HIGH] && selects(HIGH, m))))
#ifdef THREE
#define somebody_could (could_take(HIGH, 2) || could_take(LOW, 1) || could_take(THIRD, 1) || could_take(THIRD, 2))
ltl wk_5_comes_back { [] !(granted && state[2] == AVAILABLE) }
ltl wk_5_third_declines { [] !(granted && state[2] == AVAILABLE && permits[THIRD] == 0 && !busy[THIRD] && published) }
#endif
#ifdef PAUSED
ltl wk_1_low_is_paused { [] !(begun && listed[LOW] == NOT_INTERESTED && state[1] == AVAILABLE) }
#endif
#ifndef THREE
#define somebody_could (could_take(HIGH, 1) || could_take(HIGH, 2) || could_take(LOW, 1) || could_take(LOW, 2))
#endif
/* At rest no message waits for an interested consumer that could take it. */
ltl wk_1 { [] !(quiet && somebody_could) }
ltl wk_1_rests { [] !(quiet && state[1] == TAKEN && state[2] == TAKEN) }
ltl wk_1_rests_alone { [] !(quiet && state[1] == TAKEN) }
/* LOW is not woken for a message that HIGH wants and could still have. */
ltl wk_4 { [] !outranked }
ltl wk_4_low_is_served { [] !taken_by_low }
/* Every available message is taken in the end (weak fairness). */
ltl wk_5 { [] (state[1] == AVAILABLE -> <> (state[1] == TAKEN)) && [] (state[2] == AVAILABLE -> <> (state[2] == TAKEN)) }
ltl wk_5_waits { [] !(published && state[1] == AVAILABLE) }
#endif
