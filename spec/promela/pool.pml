/* The work pool: a reader adds items of two channels, two workers run them in blocks (CH-1, CH-2, CH-4).
 *
 * The channels are in one of three states: dormant, ready, in progress. The number of runnables that have not started
 * is the number of ready channels. The pool's own monitor makes each of its operations one step.
 *
 *   -DNO_IN_PROGRESS   a channel with a block in progress is made ready by the next item
 *   -DFINISH_BLIND     the end of a block makes the channel dormant without looking for more items
 *   -DPUBLISHED        the first callback of channel 0 raises, and what was drained into its block is lost with it
 *                      (without the flag a callback that raises is one that returns: its block goes on)
 *   -DOUTCOMES -DFIRST=n -DSECOND=n -DBLOCK=n -DWORKERS=n   first n items of the one channel, then n of the other;
 *                      print who runs what in which order: `pool-one-channel`, `pool-two-channels`
 *
 * Bounds, and why they are enough:
 *   - two channels and two workers: two of each are needed for a callback beside another, of one channel or of
 *     two
 *   - three items per channel, blocks of two: a full block, one that is not full, and an item that comes during a
 *     block
 * Beyond these bounds: more channels and workers, bounded queues (a reader that waits), channels that close.
 */
#define ITEMS 3               /* per channel */
#ifndef BLOCK
#define BLOCK 2
#endif
#define DORMANT     0
#define READY       1
#define IN_PROGRESS 2

chan queue0 = [ITEMS] of { byte };
chan queue1 = [ITEMS] of { byte };
chan ready = [4] of { byte };
byte status[2], last[2], running[2], ran[2], runnables;
bool disorder, all_added, both_at_once;

#ifdef OUTCOMES
int order;
#define enough (ran[0] == FIRST && ran[1] == SECOND)
#endif

#define all_ran (ran[0] == ITEMS && ran[1] == ITEMS)

/* Adds an item; the channel becomes ready, and somebody runs it, unless somebody does already. */
inline add(c, queue, item) {
  atomic {
    queue!item;
    if
#ifdef NO_IN_PROGRESS
    :: status[c] != READY -> status[c] = READY; ready!c; runnables++
#else
    :: status[c] == DORMANT -> status[c] = READY; ready!c; runnables++
#endif
    :: else
    fi
  }                                           /* adds an item */
}

proctype Reader() {
  byte item;
#ifdef OUTCOMES
  item = 1;
  do
  :: item > FIRST -> break
  :: else -> add(0, queue0, item); item++
  od;
  item = 1;
  do
  :: item > SECOND -> break
  :: else -> add(1, queue1, item); item++
  od;
#else
  for (item : 1 .. ITEMS) {
    add(0, queue0, item);
    add(1, queue1, item)
  }
#endif
  all_added = true
}

inline call(item) {
  d_step {
    running[c]++;
#ifdef OUTCOMES
    order = order * 100 + name * 10 + c * ITEMS + item;
#endif
    disorder = disorder || item != last[c] + 1;
    last[c] = item;
    both_at_once = both_at_once || (running[0] > 0 && running[1] > 0)
  }                                           /* a callback begins */
  atomic { running[c]--; ran[c]++ }           /* the callback ends */
}

inline block(queue) {
  atomic {
    size = 0;
    do
    :: size < BLOCK && len(queue) > 0 -> queue?items[size]; size++
    :: else -> break
    od
  }                                           /* drains a block of items */
  i = 0;
  do
  :: i == size -> break
  :: else ->
     call(items[i]);
     i++;
#ifdef PUBLISHED
     if
     :: c == 0 && items[i - 1] == 1 -> break  /* the callback raised: the block ends */
     :: else
     fi
#endif
  od;
  atomic {
#ifdef FINISH_BLIND
    status[c] = DORMANT
#else
    if
    :: len(queue) > 0 -> status[c] = READY; ready!c; runnables++
    :: else -> status[c] = DORMANT
    fi
#endif
  }                                           /* ends the block */
}

proctype Worker(byte name) {
  byte c, i, size, items[BLOCK];
end:
  do
  :: atomic { runnables > 0 -> runnables--; ready?c; status[c] = IN_PROGRESS }   /* starts the next ready channel */
     if
     :: c == 0 -> block(queue0)
     :: else -> block(queue1)
     fi
  od
}

init {
#ifdef OUTCOMES
  atomic {
    run Reader();
    run Worker(1);
#if WORKERS > 1
    run Worker(2)
#endif
  }
#define OUTCOME order
  atomic { enough -> assert(OUTCOME != AVOID); printf("outcome %d\n", OUTCOME) }
#else
  atomic { run Reader(); run Worker(1); run Worker(2) }
#endif
}

#ifndef OUTCOMES

/* At most one callback of a channel at a time. */
ltl ch_1 { [] (running[0] <= 1 && running[1] <= 1) }
ltl ch_1_channels_overlap { [] !both_at_once }
/* In the order in which they were pushed. */
ltl ch_2 { [] !disorder }
ltl ch_2_all_ran { [] !all_ran }
/* Nothing queued is stranded: its channel is ready or in progress. */
ltl ch_4 { [] ((len(queue0) > 0 -> status[0] != DORMANT) && (len(queue1) > 0 -> status[1] != DORMANT)) }
ltl ch_4_queued_in_progress { [] !(len(queue0) > 0 && status[0] == IN_PROGRESS) }
/* Everything runs in the end (weak fairness). */
ltl ch_4_all_run { <> all_ran }
#endif
