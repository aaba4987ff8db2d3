/* The list: append by compare-and-set, delete by a mark, unlink while iterating (QL-3, QL-4, SO-1).
 *
 * Michael and Scott's queue with lazy deletion. Node 0 is the sentinel, node 1 is there, nodes 2 and 3 are appended
 * by two threads; a third deletes node 1 and walks, a fourth walks and deletes node 2 if it meets it.
 *
 *   -DLINK_WITHOUT_CAS  the new node is linked by a plain write (rule 1)
 *   -DNUMBER_EARLY      a node draws its number once, from a tail that may not be its predecessor in the end (rule 1)
 *   -DNO_HELP           an append that lost waits for the other to move the tail, and does not move it itself (rule 8)
 *   -DTAIL_UNLINKED     an iteration unlinks the last node too (rule 8)
 *   -DRETURNS_DELETED   an iteration hands out the last node without looking whether it is deleted (rule 8)
 *   -DCOUNTED           one append only, and the size of the list is counted (QL-2)
 *   -DCOUNTED_LATE      with -DCOUNTED: the size goes up when the node is linked already (rule 8)
 *   -DOUTCOMES          one append only: the program `consumer-list`; print what is deleted, met and left
 *
 * Bounds, and why they are enough:
 *   - two appends: a lost race needs two; who loses to several loses to one after the other
 *   - two walks that unlink: each unlink is a compare-and-set of one link, contended by two
 *   - four nodes: a sentinel, one to delete first, and two that are appended; so a marked node stands first,
 *     between and last
 * Beyond these bounds: more nodes; what an append or a deletion costs (it has no loop but that of a lost race).
 */
#if defined(OUTCOMES) || defined(COUNTED)
#define ONE_APPEND
#endif
#define NODES 4

byte next[NODES], number[NODES], tail = 1;
bool gone[NODES], linked[NODES];
byte finished;
#ifdef ONE_APPEND
#define THREADS 3
#else
#define THREADS 4
#endif
#ifdef OUTCOMES
bool met;                /* the walk that deletes node 1 met node 2 */
#endif
#ifdef COUNTED
short size = 1;          /* what the list says that it contains */
#endif
bool unordered, missed, returned_deleted, lost, saw_new;
#define done (finished == THREADS)

proctype Append(byte n) {
  byte t, f;
  bool won;
#if defined(COUNTED) && !defined(COUNTED_LATE)
  size++;                                 /* counts the node */
#endif
#ifdef NUMBER_EARLY
  number[n] = number[tail] + 1;           /* draws its number */
#endif
  do
  :: t = tail;                            /* reads the tail */
     f = next[t];                         /* reads what is behind it */
     if
#ifdef NO_HELP
     :: f != 0                            /* another append has not moved the tail yet */
#else
     :: f != 0 -> atomic { if :: tail == t -> tail = f :: else fi }   /* finishes what another append began */
#endif
     :: else ->
#ifndef NUMBER_EARLY
        number[n] = number[t] + 1;        /* draws its number */
#endif
        atomic {
#ifdef LINK_WITHOUT_CAS
          won = true;
#else
          won = (next[t] == 0);
#endif
          if
          :: won ->
             next[t] = n; linked[n] = true;
             unordered = unordered || number[n] <= number[t]   /* links the node, if nothing came between */
          :: else
          fi
        }
        if
        :: won -> atomic { if :: tail == t -> tail = n :: else fi }   /* moves the tail */
           break
        :: else
        fi
     fi
  od;
#ifdef COUNTED_LATE
  size++;                                 /* counts the node */
#endif
  finished++
}

/* The first node behind `from` that is not deleted, 0 if there is none; deleted ones are unlinked on the way. */
inline after(from, out) {
  out = next[from];                       /* reads what is next */
  do
  :: out == 0 -> break
  :: else ->
     dead = gone[out];                    /* is it deleted? */
     if
     :: !dead -> break
     :: else -> b = next[out];              /* it is; what is behind it? */
        if
        :: b == 0 ->
#ifdef RETURNS_DELETED
           break
#else
#ifdef TAIL_UNLINKED
           atomic { if :: next[from] == out -> next[from] = 0 :: else fi }   /* unlinks the last node */
#endif
           out = 0; break
#endif
        :: else ->
           atomic { if :: next[from] == out -> next[from] = b :: else fi }   /* unlinks it */
           out = next[from]                 /* reads what is next */
        fi
     fi
  od
}

#define is_there(n) (linked[n] && !gone[n])
#define check(n, i) missed = missed || (there[i] && !gone[n] && !visited[i])

/* What an iteration was obliged to return, what it returned, and what it must not return. */
inline walk() {
  d_step {
    there[0] = is_there(1); there[1] = is_there(2); there[2] = is_there(3);
    before[0] = gone[1]; before[1] = gone[2]; before[2] = gone[3];
    visited[0] = false; visited[1] = false; visited[2] = false
  }                                       /* begins to iterate */
  f = 0;
  do
  :: after(f, n);
     if
     :: n == 0 -> break
     :: else
     fi;
     d_step { visited[n - 1] = true; returned_deleted = returned_deleted || before[n - 1]; saw_new = saw_new || n > 1 }   /* returns the node */
     if
     :: dropping && n == 2 -> gone[2] = true   /* deletes node 2 */
#ifdef COUNTED
        size--                            /* takes node 2 from the size */
#endif
     :: else
     fi;
     f = n
  od;
  skip;
  d_step { check(1, 0); check(2, 1); check(3, 2) }   /* ends the iteration */
}

proctype Walk(bool dropping) {
  bool there[3], before[3], visited[3], dead;
  byte f, n, b;
  if
  :: !dropping -> gone[1] = true          /* deletes node 1 */
#ifdef COUNTED
     size--                               /* takes node 1 from the size */
#endif
  :: else
  fi;
  walk();
#ifdef OUTCOMES
  met = met || (!dropping && visited[1]);
#endif
  finished++
}

init {
  byte f, steps;
  d_step { next[0] = 1; number[1] = 1; linked[1] = true; gone[0] = true }
#ifdef ONE_APPEND
  atomic { run Append(2); run Walk(false); run Walk(true) }
#else
  atomic { run Append(2); run Append(3); run Walk(false); run Walk(true) }
#endif
  done ->
  d_step {
    do
    :: f == 0 && steps > 0 -> break
    :: else -> linked[f] = false; f = next[f]; steps++
    od;
    lost = is_there(1) || is_there(2) || is_there(3);
    f = 0; steps = 0
  }                                       /* nobody iterates: what is not reachable now is lost */
#ifdef OUTCOMES
#define OUTCOME (100 * gone[2] + 10 * met + lost)
  atomic { assert(OUTCOME != AVOID); printf("outcome %d\n", OUTCOME) }
#endif
}

#ifndef OUTCOMES

/* The order of the links is the order of the numbers. */
ltl so_1 { [] !unordered }
ltl so_1_both_linked { [] !(linked[2] && linked[3]) }
/* An iteration misses nothing that is there throughout, and returns nothing that was deleted before it began. */
ltl ql_3 { [] (!missed && !returned_deleted) }
ltl ql_3_some_new_node { [] !saw_new }
/* Nothing that was appended and not deleted is lost. */
ltl ql_4 { [] !lost }
ltl ql_4_after_deletion { [] !(done && gone[1] && gone[2]) }
/* Whichever threads run, somebody completes: no execution goes on for ever (no fairness is assumed). */
ltl ql_4_completes { <> done }
#ifdef COUNTED
/* The size is never negative, and when all are done it is what the list contains. */
#define contents (2 - gone[1] - gone[2])
ltl ql_2 { [] (size >= 0 && (done -> size == contents)) }
ltl ql_2_empty { [] !(done && size == 0) }
#endif
#endif
