/* The bench's programs for Spin, one chosen by -D; every statement is one step, as everywhere else.
   Nobody may be stuck at the end: that, and the assertions, are what Spin looks for. */

#define acquire(m) atomic { m == 0 -> m = 1 }
#define release(m) m = 0

inline cas(cell, old, new, ok) {
    atomic { if :: cell == old -> cell = new; ok = true :: else -> ok = false fi }
}

#if defined(RACY_COUNTER)
byte c;
active [RACY_COUNTER] proctype increment() { byte v; v = c; c = v + 1 }

#elif defined(LASTZERO)
byte a[LASTZERO + 1];
active proctype search() {
    byte i = LASTZERO, v;
    v = a[i];
    do :: v != 0 -> i--; v = a[i] :: else -> break od
}
active [LASTZERO] proctype writer() { byte v; v = a[_pid - 1]; a[_pid] = v + 1 }

#elif defined(MICHAEL_SCOTT)
byte head = 1, tail = 1, next[4];
active [2] proctype enqueue() {
    byte last, following, seen; bool ok;
again:
    last = tail;
    following = next[last];
    seen = tail;
    if
    :: last != seen -> goto again
    :: else
    fi;
    if
    :: following != 0 -> cas(tail, last, following, ok); goto again
    :: else
    fi;
    cas(next[last], 0, _pid + 2, ok);
    if :: !ok -> goto again :: else fi;
    cas(tail, last, _pid + 2, ok)
}
active proctype dequeue() {
    byte first, last, following, seen; bool ok;
again:
    first = head;
    last = tail;
    following = next[first];
    seen = head;
    if
    :: first != seen -> goto again
    :: else
    fi;
    if
    :: first != last -> cas(head, first, following, ok); if :: !ok -> goto again :: else fi
    :: first == last && following != 0 -> cas(tail, last, following, ok); goto again
    :: else
    fi
}

#elif defined(BUFFER)
/* BUFFER items; PAIRS movers each way. The thread that is notified is any of those asleep. */
#ifndef PAIRS
#define PAIRS 1
#endif
#define THREADS (2 * PAIRS)
byte m;
bool filled, asleep[THREADS];
active [THREADS] proctype mover() {
    bool to = (_pid % 2 == 0);
    byte n;
    for (n : 1 .. BUFFER) {
        acquire(m);
        do
        :: filled == to -> atomic { m = 0; asleep[_pid] = true }; !asleep[_pid]; acquire(m)
        :: else -> break
        od;
        filled = to;
        atomic {
            if
            :: asleep[0] -> asleep[0] = false
            :: asleep[1] -> asleep[1] = false
#if PAIRS > 1
            :: asleep[2] -> asleep[2] = false
            :: asleep[3] -> asleep[3] = false
#endif
            :: else
            fi
        };
        release(m)
    }
}

#elif defined(LOST_UPDATE)
byte c, done;
active [2] proctype increment() { byte v; v = c; c = v + 1; atomic { done++; assert(done < 2 || c == 2) } }

#elif defined(LOST_WAKEUP)
byte m; bool ready, asleep;
active proctype waiter() {
    if
    :: !ready -> acquire(m); atomic { m = 0; asleep = true }; !asleep; acquire(m); release(m)
    :: else
    fi
}
active proctype setter() { acquire(m); ready = true; asleep = false; release(m) }

#elif defined(STOLEN_WAKEUP)
byte m, count; bool asleep;
active proctype once() {
    acquire(m);
    if
    :: count == 0 -> atomic { m = 0; asleep = true }; !asleep; acquire(m)
    :: else
    fi;
    assert(count > 0);
    count--;
    release(m)
}
active proctype any() { acquire(m); if :: count > 0 -> count-- :: else fi; release(m) }
active proctype put() { byte k; for (k : 1 .. 2) { acquire(m); count++; asleep = false; release(m) } }

#elif defined(ABA)
byte head = 1, next[3], owners[3];
init { next[1] = 2; run slow(); run quick() }
inline pop(top, following, ok) {
    ok = false;
    do
    :: ok -> break
    :: else ->
        top = head;
        if
        :: top == 0 -> break
        :: else ->
            following = next[top];
            cas(head, top, following, ok);
            if :: ok -> atomic { assert(owners[top] == 0); owners[top]++ } :: else fi
        fi
    od
}
proctype slow() { byte top, following; bool ok; pop(top, following, ok); pop(top, following, ok) }
proctype quick() {
    byte one, two, following, top; bool ok;
    pop(one, following, ok);
    pop(two, following, ok);
    if
    :: one != 0 && two != 0 ->
        owners[one]--;
        ok = false;
        do
        :: ok -> break
        :: else -> top = head; next[one] = top; cas(head, top, one, ok)
        od
    :: else
    fi
}

#elif defined(IMMEDIATE_RACE)
mtype = { AVAILABLE, ACQUIRED, DEQUEUED };
mtype entry = AVAILABLE; byte delivered, dequeued, done;
#define finish() atomic { done++; assert(done < 2 || delivered + dequeued == 1) }
active proctype deliverer() { bool ok; cas(entry, AVAILABLE, ACQUIRED, ok); if :: ok -> delivered = 1 :: else fi; finish() }
active proctype publisher() { if :: entry != ACQUIRED -> entry = DEQUEUED; dequeued = 1 :: else fi; finish() }

#elif defined(DOUBLE_DISPOSE)
bool disposed; byte times;
active [2] proctype dispose() { if :: !disposed -> disposed = true; atomic { times++; assert(times == 1) } :: else fi }

#elif defined(LOCK_ORDER)
byte one, two;
active proctype forth() { acquire(one); acquire(two); release(two); release(one) }
active proctype back() { acquire(two); acquire(one); release(one); release(two) }

#elif defined(TORN_READ)
byte pair[2];
active proctype writer() { pair[0] = 1; pair[1] = 1 }
active proctype reader() { byte low, high; low = pair[0]; high = pair[1]; assert(low == high) }

#elif defined(PETERSON_TURNED)
byte turn, inside; bool flag[2];
active [2] proctype peterson() {
    turn = 1 - _pid;
    flag[_pid] = true;
    if
    :: !flag[1 - _pid] -> goto inner
    :: else
    fi;
    if
    :: turn == _pid -> goto inner
    :: else -> goto away
    fi;
inner:
    atomic { assert(inside == 0); inside++ };
    inside--;
    flag[_pid] = false;
away:
    skip
}

#elif defined(UNSAFE_PUBLICATION)
bool ready; byte data;
active proctype writer() { ready = true; data = 42 }
active proctype reader() { if :: ready -> assert(data == 42) :: else fi }

#elif defined(LATE_COUNTER)
bool linked; byte size = 10;
active proctype put() { linked = true; size++ }
active proctype take() { bool ok; cas(linked, true, false, ok); if :: ok -> atomic { size--; assert(size >= 10) } :: else fi }

#else
#error "name a program"
#endif
