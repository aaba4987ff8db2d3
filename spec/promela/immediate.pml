/* An immediate message (IM-1, ES-1, ES-2, ES-3).
 *
 * It was linked and offered in vain. Its publisher now gives up on it, while deliveries run on other threads.
 * Each step is one operation on the entry's state; who wins a compare-and-set owns the consequence.
 *
 *   -DPUBLISHED       the publisher checks, and then dequeues whatever the state is by now (F-1)
 *   -DACQUIRE_BY_SET  a delivery that saw the entry available acquires it without a compare-and-set
 *   -DOUTCOMES        one delivery, which keeps what it gets: the program `immediate-race` of the explorer
 *
 * Beyond these bounds: more deliveries repeat the same race; the pointers are in pointers.pml.
 */
#define AVAILABLE 0
#define DEQUEUED  1
#define DELETED   2
#define held(c)   (3 + c)

#ifdef OUTCOMES
#define TAKERS 1
#else
#define TAKERS 2
#endif
#ifndef AVOID
#define AVOID 255
#endif

#define legal(old, new) ((old == AVAILABLE && new != DELETED) || (old >= held(0) && new <= DEQUEUED) || \
                         (old == DEQUEUED && new == DELETED))

byte state = AVAILABLE;
byte delivered, dropped, holders, finished;
bool illegal, revived;   /* for the properties: a step that ES-1 forbids; a delivery of what was gone */

#define done (finished == TAKERS + 1)

/* One compare-and-set. */
#define CAS(old, new, won) atomic { won = (state == old); if :: won -> state = new :: else fi }
/* One plain write, which the right algorithm never does. */
#define SET(new) atomic { illegal = illegal || !legal(state, new); revived = revived || state == DELETED; state = new }

proctype Publisher() {
  bool won
#ifdef PUBLISHED
  won = (state == AVAILABLE)             /* sees whether it is still available */
  if
  :: won -> SET(DEQUEUED)                /* dequeues it */
  :: else
  fi
#else
  CAS(AVAILABLE, DEQUEUED, won)          /* available -> dequeued, if it still is */
#endif
  if
  :: won -> dropped++; CAS(DEQUEUED, DELETED, won)   /* dequeued -> deleted */
  :: else
  fi
  finished++
}

proctype Delivery(byte c) {
  bool won
  won = (state == AVAILABLE)             /* sees whether it is available */
  if
  :: won ->
#ifdef ACQUIRE_BY_SET
     SET(held(c))                        /* acquires it by a plain write */
#else
     CAS(AVAILABLE, held(c), won)        /* available -> acquired, if it still is */
#endif
  :: else
  fi
  if
  :: won ->
     atomic { delivered++; holders++ }   /* delivers it */
#ifndef OUTCOMES
     atomic { won = (state == held(c)); if :: won -> state = DEQUEUED :: else fi; holders-- }   /* acquired -> dequeued */
     if
     :: won -> CAS(DEQUEUED, DELETED, won)   /* dequeued -> deleted */
     :: else
     fi
#endif
  :: else
  fi
  finished++
}

init {
  atomic {
    run Publisher();
    run Delivery(0);
#if TAKERS > 1
    run Delivery(1)
#endif
  }
#ifdef OUTCOMES
  done -> assert(state * 10 + delivered != AVOID);
  c_code { printf("outcome %d\n", now.state * 10 + now.delivered); }
#endif
}

#ifndef OUTCOMES
/* Delivered to exactly one or dequeued undelivered: never both, never neither. */
ltl im_1 { [] (done -> delivered + dropped == 1) }
ltl im_1_some_delivery { [] !(done && delivered == 1) }
ltl im_1_some_drop { [] !(done && dropped == 1) }
/* Only legal transitions. */
ltl es_1 { [] !illegal }
ltl es_1_all_the_way { [] !(state == DELETED) }
/* At most one acquirer. */
ltl es_2 { [] (holders <= 1) }
ltl es_2_some_holder { [] !(holders == 1) }
/* Deleted is final. */
ltl es_3 { [] (state == DELETED -> [] (state == DELETED)) }
ltl es_3_late_delivery { [] !(state == DELETED && !done) }
#endif
