/* Subscription pointers, release and priority arrival (SP-2).
 *
 * Entries stand at places 1, 2, 3 behind a sentinel at 0. A holds entry 1 and nobody else anything.
 * A pointer says which entry its consumer looks at next; `mark` is the identity of the pointer object.
 *
 *   (no flag)                A gives entry 1 back while B takes two: the program `release-behind` of the explorer
 *   -DARRIVAL                places 1 and 2 are a sub-queue of high priority, 3 is one of low; 2 arrives while B takes one
 *   -DPUBLISHED_REWIND       a pointer is moved back only if it is past the entry (rule 4; F-2; with -DARRIVAL, F-3)
 *   -DFREE                   with -DARRIVAL: entry 1 is available from the beginning, and B has not come to it
 *   -DNO_MINIMUM             a rewind puts the pointer at the entry, also if that moves it forward (rule 4)
 *   -DPUBLISHED_BY_VALUE     pointers are compared by the entry that they stand at (rule 3; F-4)
 *   -DADVANCE_BY_SET         a pointer is moved on by a plain write (rule 3)
 *   -DADVANCE_UNSEEN         a pointer is moved on past an entry at which its consumer has not looked (rule 3)
 *   -DREWIND_FIRST           entry 1 is released after the pointers have been moved (rule 5)
 *   -DREADS_ONCE             a rewind that lost tries again from the pointer that it read in the beginning (rule 4)
 *   -DOUTCOMES               print who holds what, and whether B's pointer misses any: `release-behind`, and with -DARRIVAL `priority-arrival`
 *
 * Bounds, and why they are enough:
 *   - two consumers, A and B: each pointer is moved by its own compare-and-set; A's shows the rewind of who
 *     released, B's that of another
 *   - three entries: one that comes back, one that is taken meanwhile, and one behind, so that a pointer can be
 *     before, at and past the entry
 *   - one release or arrival: each begins its own walk of rewinds; that several do not disturb each other is
 *     proved for any number in `entries`
 *   - two attempts: one to come past the entry, one to find it again
 * Beyond these bounds: more consumers, more entries, more releases; see spec/induction for any number.
 */
#define AVAILABLE 0
#define GONE      2
#define held(c)   (3 + c)
#define A 0
#define B 1
byte state[4];
bool linked[4];
byte at[2], mark[2], fresh = 1;
byte finished;
bool went_back;          /* for the reachability check: a rewind moved a pointer back */
#define done (finished == 2)

/* A new pointer object at entry e for consumer c. */
inline point(c, e) {
  at[c] = e;
#ifndef PUBLISHED_BY_VALUE
  mark[c] = fresh; fresh++
#endif
}

/* The place behind p, 0 if there is none: one look at the sub-queue of p, and another at the next one. */
inline following(p, n) {
#ifdef ARRIVAL
  atomic {
    if
    :: p == 0 -> n = 1
    :: p == 1 -> n = (linked[2] -> 2 : 0)
    :: p == 2 || p == 3 -> n = 0
    fi
  }                                       /* looks behind it in its own sub-queue */
  if
  :: n == 0 && p != 3 -> n = 3            /* that was the end: the head of the lower one */
  :: else
  fi
#else
  n = (p < 3 -> p + 1 : 0)
#endif
}

/* The next entry for c is taken; 0 if there is none. */
inline attempt(c, got) {
  got = 0;
  do
  :: atomic { p = at[c]; m = mark[c] }    /* reads the pointer */
#ifdef ADVANCE_UNSEEN
     won = (state[p] == AVAILABLE && p != 2);   /* looks at entries 1 and 3 only */
#else
     won = (state[p] == AVAILABLE);       /* looks whether the entry there is available */
#endif
     if
     :: won ->
        atomic { won = (state[p] == AVAILABLE); if :: won -> state[p] = held(c) :: else fi }   /* acquires it, if it still is */
        if
        :: won -> got = p; break
        :: else
        fi
     :: else ->
        following(p, n);
        if
        :: n == 0 -> break
        :: else
        fi;
#ifdef ADVANCE_BY_SET
        atomic { point(c, n) }               /* moves the pointer on, whichever it is by now */
#else
        atomic { if :: at[c] == p && mark[c] == m -> point(c, n) :: else fi }   /* moves the pointer on, if it is the one that was read */
#endif
     fi
  od
}

/* Whoever makes entry e wanted puts a fresh pointer into consumer c. */
inline rewind(c, e) {
#ifdef READS_ONCE
  atomic { p = at[c]; m = mark[c] }       /* reads the pointer of the one, then of the other */
  do
  ::
#else
  do
  :: atomic { p = at[c]; m = mark[c] }    /* reads the pointer of the one, then of the other */
#endif
#ifdef PUBLISHED_REWIND
     if
     :: e >= p -> break                   /* it is not past the entry */
     :: else
     fi;
#endif
     atomic {
       won = (at[c] == p && mark[c] == m);
       if
#ifdef NO_MINIMUM
       :: won -> point(c, e)               /* moves it to the entry, if it is the one that was read */
#else
       :: won -> went_back = went_back || e < p; point(c, (e < p -> e : p))   /* moves it back, if it is the one that was read */
#endif
       :: else
       fi
     }
     if
     :: won -> break
     :: else
     fi
  od
}

proctype Mover() {
  byte p, m;
  bool won;
#ifdef ARRIVAL
  linked[2] = true;                       /* links entry 2 */
  rewind(A, 2);
  rewind(B, 2);
#else
#ifdef REWIND_FIRST
  rewind(A, 1);
  rewind(B, 1);
#endif
  atomic { assert(state[1] == held(A)); state[1] = AVAILABLE }   /* gives entry 1 back */
#ifndef REWIND_FIRST
  rewind(A, 1);
  rewind(B, 1);
#endif
#endif
  finished++
}

proctype Consumer() {
  byte p, m, n, got;
  bool won;
  attempt(B, got);
#ifndef ARRIVAL
  attempt(B, got);
#endif
  finished++
}

#define covered(c, e) (!linked[e] || state[e] != AVAILABLE || e >= at[c])

init {
  d_step { state[0] = GONE; state[1] = held(A); linked[1] = true; linked[3] = true; at[A] = 1 }
#ifndef ARRIVAL
  linked[2] = true;
#endif
#ifdef FREE
  d_step { state[1] = AVAILABLE; at[A] = 0 }
#endif
  atomic { run Mover(); run Consumer() }
#ifdef OUTCOMES
#define missed (!covered(B, 1) || !covered(B, 2) || !covered(B, 3))
#define OUTCOME (10000 + state[1] * 1000 + state[2] * 100 + state[3] * 10 + (missed -> 1 : 0))
  atomic { done -> assert(OUTCOME != AVOID); printf("outcome %d\n", OUTCOME) }
#endif
}

#ifndef OUTCOMES
/* At the end no available entry lies behind a pointer. */
ltl sp_2 { [] (done -> covered(A, 1) && covered(A, 2) && covered(A, 3) && covered(B, 1) && covered(B, 2) && covered(B, 3)) }
ltl sp_2_went_back { [] !(done && went_back) }
/* Whichever threads run, somebody completes: no execution goes on for ever (no fairness is assumed). */
ltl sp_2_completes { <> done }
ltl sp_2_left_over { [] !(done && (state[1] == AVAILABLE || state[2] == AVAILABLE)) }
#endif
