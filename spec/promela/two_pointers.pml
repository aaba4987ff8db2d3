/* Two pointers per consumer: last seen, and released (SP-2).
 *
 * The broker's form. A released entry behind `last` is written into `released`; whoever goes past it clears that again.
 * A holds the only entry and B has gone past it. A gives it back, takes it if it can, and gives it back again; B tries once.
 * (The broker also tells B, which then looks on A's thread. That adds lookers of the same kind and is left out.)
 *
 *   (no flag)    a release puts a fresh object into `released` even if the entry stands there already
 *   -DPUBLISHED  a release writes nothing if `released` is at or before the entry (rule 4; F-7)
 *   -DOUTCOMES   print who holds the entry at the end, and whether B's pointers miss it: the program `release-again`
 *
 * Bounds, and why they are enough:
 *   - one entry, held, released, taken and released again: two releases are the least that leave a stale object
 *     in `released`
 *   - one consumer beside the holder: the two fields of each consumer are written by rewinds and by itself alone
 * Beyond these bounds: more entries, and a message that moves `released` back further.
 */
#define AVAILABLE 0
#define held(c)   (3 + c)
#define A 0
#define B 1

byte state = 3;               /* of entry 1; A holds it */
byte last[2] = 1;
byte released[2], mark[2], fresh = 1;   /* 0 is none; mark is the identity of the object */
byte finished;
bool wiped;                   /* for the reachability check: B cleared its `released` */
#define done (finished == 2)

inline clear(c) {
  atomic {
    if
    :: released[c] == r && mark[c] == m -> wiped = wiped || (c == B && r != 0); released[c] = 0
    :: else
    fi
  }                           /* clears `released`, if it is the one that was read */
}

inline attempt(c, got) {
  got = 0;
  do
  :: l = last[c];                                     /* reads last seen */
     atomic { r = released[c]; m = mark[c] }          /* reads released */
     n = (r != 0 && l >= r -> r : (l == 0 -> 1 : 0));
     if
     :: n == 0 -> break
     :: else
     fi;
     won = (state == AVAILABLE);                      /* looks whether the entry is available */
     if
     :: won ->
        atomic { won = (state == AVAILABLE); if :: won -> state = held(c) :: else fi }   /* acquires it, if it still is */
        if
        :: won ->
           got = n;
           atomic { r = released[c]; m = mark[c] }    /* reads released */
           last[c] = n;                               /* writes last seen */
           if
           :: r == n -> clear(c)
           :: else
           fi;
           break
        :: else
        fi
     :: else ->
        atomic { won = (last[c] == l); if :: won -> last[c] = n :: else fi }   /* goes past it */
        if
        :: won -> clear(c)
        :: else
        fi
     fi
  od
}

inline rewind(c) {
  do
  :: atomic { r = released[c]; m = mark[c] }          /* reads the released of the one, then of the other */
#ifdef PUBLISHED
     if
     :: r == 1 -> break                               /* it is there already: nothing is written */
     :: else
     fi;
#endif
     atomic {
       won = (released[c] == r && mark[c] == m);
       if
       :: won -> released[c] = 1;
#ifndef PUBLISHED
          mark[c] = fresh; fresh++
#endif
       :: else
       fi
     }                                                /* writes released, if it is the one that was read */
     if
     :: won -> break
     :: else
     fi
  od
}

inline release() {
  atomic { assert(state == held(A)); state = AVAILABLE }   /* gives the entry back */
  rewind(A);
  rewind(B)
}

proctype Holder() {
  byte l, r, m, n, got;
  bool won;
  release();
  attempt(A, got);
  if
  :: got != 0 -> release()
  :: else
  fi;
  finished++
}

proctype Consumer() {
  byte l, r, m, n, got;
  bool won;
  attempt(B, got);
  finished++
}

#define covered(c) (state != AVAILABLE || last[c] == 0 || released[c] == 1)

init {
  atomic { run Holder(); run Consumer() }
#ifdef OUTCOMES
#define OUTCOME (100 + state * 10 + (covered(B) -> 0 : 1))
  atomic { done -> assert(OUTCOME != AVOID); printf("outcome %d\n", OUTCOME) }
#endif
}

#ifndef OUTCOMES
/* At the end the available entry lies behind no pointer that says nothing of it. */
ltl sp_2 { [] (done -> covered(A) && covered(B)) }
ltl sp_2_wiped_and_left { [] !(done && wiped && state == AVAILABLE) }
#endif
