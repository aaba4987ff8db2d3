/* An immediate message (IM-1, ES-1, ES-2, ES-3).
 *
 * It was linked and offered in vain. Its publisher now gives up on it, while deliveries run on other threads.
 * Each step is one operation on the entry's state; who wins a compare-and-set owns the consequence.
 * A client may be done with what it got, or give it back at once; it is then an ordinary message, RETURNED,
 * which to a consumer is the same as AVAILABLE.
 *
 *   -DPUBLISHED         the publisher checks, and then dequeues whatever the state is by now (rule 2; F-1)
 *   -DPUBLISHED_REPAIR  one compare-and-set from AVAILABLE, but what was released is AVAILABLE again (rule 2; F-10)
 *   -DACQUIRE_BY_SET    a delivery that saw the entry available acquires it without a compare-and-set (rule 2)
 *   -DOUTCOMES          one delivery, which keeps what it gets: the program `immediate-race` of the explorer
 *   -DOUTCOMES -DRELEASES   one delivery, released at once: the program `immediate-returned`
 *
 * Bounds, and why they are enough:
 *   - one message: the reference decides per entry, by the state of that entry alone
 *   - one publisher and two deliveries: a compare-and-set has one winner, so a third delivery loses as the second
 *     does; two are needed for a holder beside another
 *   - one release by each: what was released can be acquired again by the other, which is the only new state
 * Beyond these bounds: more deliveries repeat the same race; the pointers are in pointers.pml.
 */
#define AVAILABLE 0
#define DEQUEUED  1
#define DELETED   2
#define RETURNED  3
#define held(c)   (4 + c)

#ifdef PUBLISHED_REPAIR
#define RELEASED AVAILABLE
#else
#define RELEASED RETURNED
#endif
#define there (state == AVAILABLE || state == RETURNED)

#ifdef OUTCOMES
#define CONSUMERS 1
#else
#define CONSUMERS 2
#endif

#define legal(old, new) (((old == AVAILABLE || old == RETURNED) && new != DELETED) || \
                         (old >= held(0) && (new == RELEASED || new == DEQUEUED)) || (old == DEQUEUED && new == DELETED))

byte state = AVAILABLE;
byte delivered, dropped, holders, finished;
bool illegal;            /* for the property: a step that ES-1 forbids */
bool released;          /* for the property and the reachability check: it was released */

#define done (finished == CONSUMERS + 1)

/* One compare-and-set. */
#define CAS(old, new, won) atomic { won = (state == old); if :: won -> state = new :: else fi }
/* One plain write, which the right algorithm never does. */
#define SET(new) atomic { illegal = illegal || !legal(state, new); state = new }

proctype Publisher() {
  bool won
#ifdef PUBLISHED
  won = there                            /* sees whether it is still available */
  if
  :: won -> SET(DEQUEUED)                /* dequeues it */
  :: else
  fi
#else
  CAS(AVAILABLE, DEQUEUED, won)          /* available -> dequeued, if it still is as it was born */
#endif
  if
  :: won ->
     dropped++;                          /* owns it: dropped undelivered */
     CAS(DEQUEUED, DELETED, won)         /* dequeued -> deleted */
  :: else
  fi
  finished++
}

proctype Delivery(byte c) {
  bool won
  won = there                            /* sees whether it is available */
  if
  :: won ->
#ifdef ACQUIRE_BY_SET
     SET(held(c))                        /* acquires it by a plain write */
#else
     CAS(AVAILABLE, held(c), won)        /* available -> acquired, if it still is as it was born */
     if
     :: !won -> CAS(RETURNED, held(c), won)   /* returned -> acquired, if it was released */
     :: else
     fi
#endif
  :: else
  fi
  if
  :: won ->
     atomic { delivered++; holders++ }   /* delivers it */
#if !defined(OUTCOMES) || defined(RELEASES)
     if
#ifndef OUTCOMES
     :: atomic { won = (state == held(c)); if :: won -> state = DEQUEUED :: else fi; holders-- }   /* acquired -> dequeued: the client is done with it */
        if
        :: won -> CAS(DEQUEUED, DELETED, won)   /* dequeued -> deleted */
        :: else
        fi
#endif
#ifndef PUBLISHED                        /* F-1 needs no such client */
     :: atomic {
          if :: state == held(c) -> state = RELEASED; released = true :: else fi;
          holders--
        }                                /* acquired -> returned: the client releases it at once */
#endif
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
#if CONSUMERS > 1
    run Delivery(1)
#endif
  }
#ifdef OUTCOMES
#define OUTCOME (state * 10 + delivered)
  atomic { done -> assert(OUTCOME != AVOID); printf("outcome %d\n", OUTCOME) }
#endif
}

#ifndef OUTCOMES
/* Delivered or dequeued undelivered: never both, never neither; and to one consumer, unless it was released. */
ltl im_1 { [] (done -> (delivered > 0) != (dropped > 0) && dropped <= 1 && (released || delivered <= 1)) }
ltl im_1_some_delivery { [] !(done && delivered == 1) }
ltl im_1_some_drop { [] !(done && dropped == 1) }
ltl im_1_released { [] !(released && finished < CONSUMERS) }
ltl im_1_delivered_again { [] !(done && delivered == 2) }
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
