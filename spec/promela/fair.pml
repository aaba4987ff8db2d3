/* Fair consuming: deficits and tokens of the round robin (FQ-1, FQ-3, FQ-4).
 *
 * Two slots of quantum 1 and 2, messages of weight 2; a broker that keeps up to PREFETCH deliveries waiting in each slot;
 * one loop that takes a token, makes a round, and settles the tokens of what it processed.
 *
 *   -DPUBLISHED      what was processed is not counted, so the token that was taken is always returned
 *   -DLOOKS_AGAIN    the loop ends because nothing waits, and a second look decides whether the slot was idle (so published)
 *   -DRESETS_ALWAYS  a slot's deficit is set to zero after every visit, also when deliveries wait
 *   -DMESSAGES=n     deliveries per slot, 3 unless said; 0 is without end
 *   -DOUTCOMES -DWEIGHT=n, and per slot a quantum, deliveries that are there, and how many there are in all:
 *                    print how many rounds the loop made: `fair-park`, `fair-heavy`, `fair-two-brokers`
 *
 * Bounds, and why they are enough:
 *   - two slots, quanta 1 and 2: one that must save up for a message and one that need not
 *   - messages of weight 2: the least that a slot of quantum 1 cannot pay at once
 *   - three deliveries a slot (without end in fair-stream) and a prefetch of two: what waits can be none, some
 *     and all that the broker keeps
 * Beyond these bounds: more slots, varying weights, what the broker's push does to the rates (FQ-5).
 */
#ifndef MESSAGES
#define MESSAGES 3
#endif
#ifndef OUTCOMES
#define PREFETCH 2
#define WEIGHT 2
#define QUANTUM(i) (1 + i)
#define SENT(s) 0
#define TO_SEND(s) MESSAGES
#else
#define PREFETCH 9
#define QUANTUM(i) (i == 0 -> FIRST_QUANTUM : SECOND_QUANTUM)
#define SENT(s) (s == 0 -> FIRST_THERE : SECOND_THERE)
#define TO_SEND(s) (s == 0 -> FIRST : SECOND)
byte made, brokers;
#endif
#define ROUNDS 2              /* the smallest quantum reaches the weight in two */

byte deliveries[2], tokens, deficit[2], rounds[2];
byte delivering, done_with[2];
bool parked = true;

#define waiting (deliveries[0] + deliveries[1])

/* One thread of the broker's client for each slot. */
proctype Broker(byte s) {
#if MESSAGES > 0
  byte sent = SENT(s);
#endif
end:
  do
#if MESSAGES > 0
  :: sent == TO_SEND(s) -> break
  :: sent < TO_SEND(s) && deliveries[s] < PREFETCH ->
     sent++;
#else
  :: deliveries[s] < PREFETCH ->
#endif
     atomic { deliveries[s]++; delivering++ }       /* puts a delivery into the slot */
     atomic { tokens++; delivering-- }              /* releases a token */
  od
#ifdef OUTCOMES
  ; brokers++
#endif
}

proctype Loop() {
  byte processed, i, before;
end:
  do
  :: atomic { tokens > 0 -> tokens--; parked = false }   /* gets a token */
#ifdef OUTCOMES
     made++;
#endif
     processed = 0;
     i = 0;
     do
     :: i == 2 -> break
     :: else ->
        before = done_with[i];
        deficit[i] = deficit[i] + QUANTUM(i);       /* the slot may spend its quantum */
        do
        :: atomic { deliveries[i] > 0 && deficit[i] >= WEIGHT ->
             deliveries[i]--; deficit[i] = deficit[i] - WEIGHT; done_with[i] = 1 - done_with[i]; rounds[i] = 0 }   /* processes a delivery */
#ifndef PUBLISHED
           processed++
#endif
#ifdef LOOKS_AGAIN
        :: else -> break
#else
        :: atomic { deliveries[i] == 0 -> deficit[i] = 0; rounds[i] = 0; before = 2; break }   /* nothing waits: an idle slot's deficit is zero */
        :: deliveries[i] > 0 && deficit[i] < WEIGHT -> break
#endif
        od;
        atomic {
          if
#ifdef LOOKS_AGAIN
          :: deliveries[i] == 0 -> deficit[i] = 0; rounds[i] = 0
#else
          :: deliveries[i] == 0 -> rounds[i] = 0
#endif
          :: deliveries[i] > 0 && before == done_with[i] -> rounds[i]++
          :: else
          fi
#ifdef RESETS_ALWAYS
          ; deficit[i] = 0
#endif
        }                                           /* ends the visit */
        i++
     od;
     if
     :: processed > 0 -> atomic { tokens >= processed - 1 -> tokens = tokens - (processed - 1); parked = true }   /* acquires the other tokens */
     :: else -> atomic { tokens++; parked = true }  /* gives the token back */
     fi
  od
}

init {
#ifdef OUTCOMES
  d_step {
    deliveries[0] = FIRST_THERE; deliveries[1] = SECOND_THERE;
    tokens = FIRST_THERE + SECOND_THERE
  }
#endif
  atomic { run Broker(0); run Broker(1); run Loop() }
#ifdef OUTCOMES
#define OUTCOME (made * 10 + waiting)
  atomic { brokers == 2 && parked && tokens == 0 -> assert(OUTCOME != AVOID); printf("outcome %d\n", OUTCOME) }
#endif
}

#ifndef OUTCOMES

/* The deficit stays below quantum + weight. */
ltl fq_1 { [] (deficit[0] < QUANTUM(0) + WEIGHT && deficit[1] < QUANTUM(1) + WEIGHT) }
ltl fq_1_carried_over { [] !(parked && deficit[0] > 0) }
/* A busy slot is not passed over more than ROUNDS - 1 times. */
ltl fq_3 { [] (rounds[0] < ROUNDS && rounds[1] < ROUNDS) }
ltl fq_3_passed_over { [] !(rounds[0] == ROUNDS - 1) }
/* Whatever waits in slot 0 is served (weak fairness). */
ltl fq_3_is_served { [] (deliveries[0] > 0 -> <> (deliveries[0] < PREFETCH)) }
/* When the loop parks there are as many tokens as deliveries. */
ltl fq_4 { [] (parked && delivering == 0 -> tokens == waiting) }
ltl fq_4_empty { [] !(parked && delivering == 0 && waiting == 0 && done_with[1] == 1) }
ltl fq_4_full { [] !(parked && delivering == 0 && waiting == 4) }
#endif
