/* Who is woken, and who rests: the lists of the consumer manager, wishes and priorities (WK-1, WK-4, WK-5).
 *
 * A publisher enqueues two messages. The consumer HIGH has credit for one; LOW takes whatever HIGH does not want.
 * Pointers are in pointers.pml; here a consumer sees the first available message in one step.
 *
 *   -DLOOK_THEN_REST   a consumer stays in Notified until it has found nothing, and only then rests (F-6)
 *   -DWISH_TOLD_FIRST  the queue is told of a wish that is over before the flag says so (F-8)
 *   -DRANK_IGNORED     Interested is walked from the lowest priority, and nobody is held back by a higher one
 *   -DOUTCOMES -DALONE LOW alone, which pulls once before it waits; one message: the program `enqueue-rest`
 *   -DOUTCOMES -DONE_THERE   message 1 is there and HIGH is notified of it, pulls once, and is not served again;
 *                      message 2 arrives: the program `consumer-priorities`
 *   -DOUTCOMES -DPAUSE HIGH does nothing but lose its interest; one message: the program `priority-pause`
 *
 * Beyond these bounds: a third consumer, credit that comes back, consumers that come and go.
 */
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

byte listed[2] = INTERESTED;
bool wants[2] = true;
byte permits[2];             /* wake-ups on their way */
bool busy[2];
byte state[3];               /* messages 1 and 2; 0 is none */
bool paid;                   /* HIGH's credit is used up */
bool published, outranked, taken_by_low;

#define anything_available (state[1] == AVAILABLE || state[2] == AVAILABLE)
#define resting(c) (permits[c] == 0 && !busy[c])
#if defined(ALONE) || defined(PAUSE) || defined(ONE_THERE)
bool begun;                  /* the other thread has done what it does before it waits */
#define quiet (published && begun && resting(LOW))
#else
#define quiet (published && resting(HIGH) && resting(LOW))
#endif

inline move(who, from, to) {
  atomic { yes = (listed[who] == from); if :: yes -> listed[who] = to :: else fi }   /* moves the consumer between lists */
}

inline look() {
  atomic { e = (state[1] == AVAILABLE -> 1 : (state[2] == AVAILABLE -> 2 : 0)) }   /* looks for an available message */
}

/* No higher consumer that wants work would take message e. */
inline may_take(who) {
  yes = true;
#ifndef RANK_IGNORED
  if
  :: who == LOW ->
     yes = !wants[HIGH];                              /* does HIGH want work? */
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
  look();
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
          outranked = outranked || (aim == LOW && wants[HIGH] && state[e] == AVAILABLE)   /* Interested -> Notified */
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

/* Wake the other one, if it is Interested. */
inline notify_other() {
  yes = (listed[1 - c] == INTERESTED);                /* is the other one Interested? */
  if
  :: yes -> notify(1 - c)
  :: else
  fi
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
     :: look();
        yes = false;
        if
        :: e != 0 -> may_take(c)
        :: else
        fi;
        if
        :: !yes || (c == HIGH && paid) -> break
        :: else
        fi;
        atomic { yes = (state[e] == AVAILABLE); if :: yes -> state[e] = TAKEN; taken_by_low = taken_by_low || c == LOW :: else fi }   /* takes it, if it still is there */
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

proctype Consumer(byte c) {
  byte e, got;
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
     busy[c] = false                                  /* waits to be woken */
  od
}

#ifdef PAUSE
proctype Pause(byte c) {
  byte e;
  bool yes;
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
  state[m] = AVAILABLE;                               /* links the message */
#ifdef RANK_IGNORED
  c = LOW;
#else
  c = HIGH;
#endif
  yes = false;
  turn = 0;
  do
  :: turn == 2 || yes -> break
  :: else ->
     yes = (state[m] == AVAILABLE && listed[c] == INTERESTED);   /* is the next consumer Interested? */
     if
     :: yes -> notify(c)
     :: else
     fi;
     c = 1 - c;
     turn++
  od
}

proctype Publisher() {
  byte e, c, turn;
  bool yes;
#ifndef ONE_THERE
  enqueue(1);
#endif
#if !defined(ALONE) && !defined(PAUSE)
  enqueue(2);
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
#else
    run Consumer(HIGH);
#endif
    run Consumer(LOW)
  }
#ifdef OUTCOMES
#define OUTCOME (state[1] * 1000 + state[2] * 100 + listed[HIGH] * 10 + listed[LOW])
  atomic { quiet -> assert(OUTCOME != AVOID); printf("outcome %d\n", OUTCOME) }
#endif
}

#ifndef OUTCOMES
#define could_take(c) (listed[c] == INTERESTED && wants[c] && (c == HIGH || !wants[HIGH]))
/* At rest no message waits for an interested consumer that could take it. */
ltl wk_1 { [] !(quiet && anything_available && (could_take(HIGH) || could_take(LOW))) }
ltl wk_1_rests { [] !(quiet && state[1] == TAKEN && state[2] == TAKEN) }
ltl wk_1_rests_alone { [] !(quiet && state[1] == TAKEN) }
/* LOW is not woken for a message that HIGH wants and could still have. */
ltl wk_4 { [] !outranked }
ltl wk_4_low_is_served { [] !taken_by_low }
/* Every available message is taken in the end (weak fairness). */
ltl wk_5 { [] (state[1] == AVAILABLE -> <> (state[1] == TAKEN)) && [] (state[2] == AVAILABLE -> <> (state[2] == TAKEN)) }
ltl wk_5_waits { [] !(published && state[1] == AVAILABLE) }
#endif
