import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import org.jetbrains.lincheck.Lincheck;
import org.jetbrains.lincheck.LincheckAssertionError;

/**
 * The bench's programs under Lincheck: Side PROGRAM SECONDS.
 * Prints one JSON object. Lincheck does not say whether it has seen every schedule,
 * but stops early when it has none left; else a program without a find ends as "nothing found".
 */
public class Side {
    /** How many threads it starts, and what it does. */
    record Program(int threads, Runnable body) {}

    /**
     * How many threads this machine has had: Lincheck puts every field of ours back after each execution,
     * so that executions are counted by the threads that they start.
     */
    static long threadsSoFar() {
        return new Thread().getId();
    }

    static void check(boolean holds, String otherwise) {
        if (!holds) throw new IllegalStateException(otherwise);
    }

    static void together(Runnable... bodies) {
        Thread[] threads = new Thread[bodies.length];
        String[] failed = new String[bodies.length];
        for (int k = 0; k < bodies.length; k++) {
            int me = k;
            threads[k] = new Thread(() -> {
                try {
                    bodies[me].run();
                } catch (IllegalStateException wrong) {
                    failed[me] = wrong.getMessage();
                }
            });
        }
        for (Thread thread : threads) thread.start();
        for (Thread thread : threads) {
            try {
                thread.join();
            } catch (InterruptedException e) {
                throw new RuntimeException(e);
            }
        }
        for (String why : failed) check(why == null, why);
    }

    static Runnable[] times(int n, Runnable body) {
        Runnable[] all = new Runnable[n];
        java.util.Arrays.fill(all, body);
        return all;
    }

    static int countUp(int threads) {
        AtomicInteger counter = new AtomicInteger();
        together(times(threads, () -> {
            int value = counter.get();
            counter.set(value + 1);
        }));
        return counter.get();
    }

    static void lastzero(int n) {
        AtomicIntegerArray a = new AtomicIntegerArray(n + 1);
        Runnable[] bodies = new Runnable[n + 1];
        bodies[0] = () -> {
            int i = n;
            while (a.get(i) != 0) i--;
        };
        for (int k = 1; k <= n; k++) {
            int j = k;
            bodies[k] = () -> {
                int v = a.get(j - 1);
                a.set(j, v + 1);
            };
        }
        together(bodies);
    }

    /** The lock-free queue of Michael and Scott; nodes are numbers, 0 is none. */
    static class Queue {
        final AtomicInteger head = new AtomicInteger(1);
        final AtomicInteger tail = new AtomicInteger(1);
        final AtomicIntegerArray next = new AtomicIntegerArray(4);

        void enqueue(int node) {
            while (true) {
                int last = tail.get();
                int following = next.get(last);
                if (last != tail.get()) continue;
                if (following != 0) {
                    tail.compareAndSet(last, following);
                } else if (next.compareAndSet(last, 0, node)) {
                    tail.compareAndSet(last, node);
                    return;
                }
            }
        }

        int dequeue() {
            while (true) {
                int first = head.get();
                int last = tail.get();
                int following = next.get(first);
                if (first != head.get()) continue;
                if (first != last) {
                    if (head.compareAndSet(first, following)) return following;
                } else if (following == 0) {
                    return 0;
                } else {
                    tail.compareAndSet(last, following);
                }
            }
        }
    }

    static void michaelScott() {
        Queue queue = new Queue();
        together(() -> queue.enqueue(2), () -> queue.enqueue(3), queue::dequeue);
    }

    /** A place for one item. One of those who wait is notified, whoever it is. */
    static class Place {
        boolean full;

        void move(boolean to, int items) {
            for (int k = 0; k < items; k++) {
                synchronized (this) {
                    while (full == to) pause();
                    full = to;
                    notify();
                }
            }
        }

        void pause() {
            try {
                wait();
            } catch (InterruptedException e) {
                throw new RuntimeException(e);
            }
        }
    }

    static void buffer(int items, boolean... movers) {
        Place place = new Place();
        Runnable[] bodies = new Runnable[movers.length];
        for (int k = 0; k < movers.length; k++) {
            boolean to = movers[k];
            bodies[k] = () -> place.move(to, items);
        }
        together(bodies);
    }

    static void lostWakeup() {
        Place place = new Place();
        AtomicInteger ready = new AtomicInteger();
        together(
            () -> {
                if (ready.get() == 0) {
                    synchronized (place) {
                        place.pause();
                    }
                }
            },
            () -> {
                synchronized (place) {
                    ready.set(1);
                    place.notify();
                }
            });
    }

    static class Items extends Place {
        int count;

        synchronized void takeOnce() {
            if (count == 0) pause();
            check(count > 0, "stolen wake-up");
            count--;
        }

        synchronized void takeIfAny() {
            if (count > 0) count--;
        }

        void putTwo() {
            for (int k = 0; k < 2; k++) {
                synchronized (this) {
                    count++;
                    notify();
                }
            }
        }
    }

    static void stolenWakeup() {
        Items items = new Items();
        together(items::takeOnce, items::takeIfAny, items::putTwo);
    }

    /** A stack whose pop compares the head only: a node that came back looks as if it had never left. */
    static class Stack {
        final AtomicInteger head = new AtomicInteger(1);
        final AtomicIntegerArray next = new AtomicIntegerArray(3);
        final AtomicIntegerArray owners = new AtomicIntegerArray(3);

        Stack() {
            next.set(1, 2);
        }

        int pop() {
            while (true) {
                int top = head.get();
                if (top == 0) return 0;
                int following = next.get(top);
                if (head.compareAndSet(top, following)) {
                    check(owners.getAndIncrement(top) == 0, "ABA: popped twice");
                    return top;
                }
            }
        }

        void slow() {
            pop();
            pop();
        }

        void quick() {
            int first = pop();
            int second = pop();
            if (first == 0 || second == 0) return;
            owners.getAndDecrement(first);
            while (true) {
                int top = head.get();
                next.set(first, top);
                if (head.compareAndSet(top, first)) return;
            }
        }
    }

    static void aba() {
        Stack stack = new Stack();
        together(stack::slow, stack::quick);
    }

    /** 0 available, 1 acquired, 2 dequeued: the publisher looks, then dequeues. */
    static void immediateRace() {
        AtomicInteger entry = new AtomicInteger();
        AtomicInteger delivered = new AtomicInteger();
        AtomicInteger dequeued = new AtomicInteger();
        together(
            () -> {
                if (entry.compareAndSet(0, 1)) delivered.set(1);
            },
            () -> {
                if (entry.get() != 1) {
                    entry.set(2);
                    dequeued.set(1);
                }
            });
        check(delivered.get() + dequeued.get() == 1, "delivered and dequeued");
    }

    static void doubleDispose() {
        AtomicInteger disposed = new AtomicInteger();
        AtomicInteger count = new AtomicInteger();
        together(times(2, () -> {
            if (disposed.get() == 0) {
                disposed.set(1);
                count.getAndIncrement();
            }
        }));
        check(count.get() == 1, "disposed twice");
    }

    static void lockOrder() {
        Object one = new Object();
        Object two = new Object();
        together(
            () -> {
                synchronized (one) {
                    synchronized (two) {
                    }
                }
            },
            () -> {
                synchronized (two) {
                    synchronized (one) {
                    }
                }
            });
    }

    static void tornRead() {
        AtomicIntegerArray pair = new AtomicIntegerArray(2);
        together(
            () -> {
                pair.set(0, 1);
                pair.set(1, 1);
            },
            () -> {
                int low = pair.get(0);
                int high = pair.get(1);
                check(low == high, "torn read");
            });
    }

    /** Peterson's entry with its two writes in the wrong order; who may not enter goes away. */
    static void petersonTurned() {
        AtomicInteger turn = new AtomicInteger();
        AtomicIntegerArray flags = new AtomicIntegerArray(2);
        AtomicInteger inside = new AtomicInteger();
        Runnable[] bodies = new Runnable[2];
        for (int k = 0; k < 2; k++) {
            int me = k;
            bodies[k] = () -> {
                turn.set(1 - me);
                flags.set(me, 1);
                if (flags.get(1 - me) == 0 || turn.get() == me) {
                    check(inside.getAndIncrement() == 0, "two inside");
                    inside.getAndDecrement();
                    flags.set(me, 0);
                }
            };
        }
        together(bodies);
    }

    static void unsafePublication() {
        AtomicInteger ready = new AtomicInteger();
        AtomicInteger data = new AtomicInteger();
        together(
            () -> {
                ready.set(1);
                data.set(42);
            },
            () -> {
                if (ready.get() == 1) check(data.get() == 42, "published before it was written");
            });
    }

    /** A list that counts an item after linking it; who takes the item counts it down. */
    static void lateCounter() {
        AtomicInteger linked = new AtomicInteger();
        AtomicInteger size = new AtomicInteger();
        together(
            () -> {
                linked.set(1);
                size.getAndIncrement();
            },
            () -> {
                if (linked.compareAndSet(1, 0)) check(size.getAndDecrement() > 0, "counted below zero");
            });
    }

    static final Map<String, Program> PROGRAMS = Map.ofEntries(
        Map.entry("racy counter, 2 threads", new Program(2, () -> countUp(2))),
        Map.entry("racy counter, 3 threads", new Program(3, () -> countUp(3))),
        Map.entry("racy counter, 4 threads", new Program(4, () -> countUp(4))),
        Map.entry("lastzero(5)", new Program(6, () -> lastzero(5))),
        Map.entry("Michael-Scott, 2 enqueuers, 1 dequeuer", new Program(3, Side::michaelScott)),
        Map.entry("condition buffer, 3 items", new Program(2, () -> buffer(3, true, false))),
        Map.entry("lost update", new Program(2, () -> check(countUp(2) == 2, "lost update"))),
        Map.entry("lost wake-up", new Program(2, Side::lostWakeup)),
        Map.entry("stolen wake-up", new Program(3, Side::stolenWakeup)),
        Map.entry("notify for notify_all", new Program(4, () -> buffer(1, true, true, false, false))),
        Map.entry("ABA", new Program(2, Side::aba)),
        Map.entry("immediate race", new Program(2, Side::immediateRace)),
        Map.entry("double dispose", new Program(2, Side::doubleDispose)),
        Map.entry("lock order", new Program(2, Side::lockOrder)),
        Map.entry("torn read", new Program(2, Side::tornRead)),
        Map.entry("Peterson turned round", new Program(2, Side::petersonTurned)),
        Map.entry("unsafe publication", new Program(2, Side::unsafePublication)),
        Map.entry("late counter", new Program(2, Side::lateCounter)));

    public static void main(String[] args) {
        Program program = PROGRAMS.get(args[0]);
        if (program == null) {
            System.err.println("no program " + args[0]);
            System.exit(2);
        }
        double limit = Double.parseDouble(args[1]) * 1e9;
        // The first search also starts the agent and rewrites classes: seconds that are not measured.
        Lincheck.runConcurrentTest(1, () -> new AtomicInteger().set(1));
        long executions = 0;
        long begun = System.nanoTime();
        double best = 0;
        int invocations = 20;
        String verdict = "nothing found";
        while (System.nanoTime() - begun < limit) {
            long start = System.nanoTime();
            long before = threadsSoFar();
            try {
                Lincheck.runConcurrentTest(invocations, program.body());            } catch (LincheckAssertionError found) {
                String[] lines = found.getMessage().strip().split("\n");
                executions += (threadsSoFar() - before) / program.threads();
                verdict = "violated: " + lines[0].replaceAll("[=|\"\\\\]", " ").strip();
                break;
            }
            double took = System.nanoTime() - start;
            long done = (threadsSoFar() - before) / program.threads();
            executions += done;
            best = Math.max(best, done / took * 1e9);
            // It saw every schedule that it knows of; a few threads are its own.
            if (done < invocations - 10) {
                verdict = "ok";
                break;
            }
            // Few searches with many invocations: each begins anew.
            double left = Math.max(0, limit - (System.nanoTime() - begun));
            invocations = (int) Math.min(10_000_000, Math.max(invocations, left / took * invocations / 2));
        }
        double seconds = (System.nanoTime() - begun) / 1e9;
        System.out.printf(
            java.util.Locale.ROOT,
            "{\"executions\": %d, \"speed\": %f, \"seconds\": %s, \"verdict\": \"%s\"}%n",
            executions,
            best > 0 ? best : executions / seconds,
            verdict.equals("nothing found") ? "null" : Double.toString(seconds),
            verdict);
        System.exit(0);
    }
}
