// Included twice, once for each explorer: `host` is loom or shuttle.
// Every shared thing is an atomic of that host or stands behind its Mutex; all orderings are SeqCst.

use host::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use host::sync::{Arc, Condvar, Mutex};
use host::thread::{self, JoinHandle};

fn join(threads: Vec<JoinHandle<()>>) {
    for thread in threads {
        thread.join().unwrap();
    }
}

fn cas(cell: &AtomicUsize, expected: usize, new: usize) -> bool {
    cell.compare_exchange(expected, new, SeqCst, SeqCst).is_ok()
}

fn cells(n: usize) -> Arc<Vec<AtomicUsize>> {
    Arc::new((0..n).map(|_| AtomicUsize::new(0)).collect())
}

fn count_up(threads: usize) -> usize {
    let counter = Arc::new(AtomicUsize::new(0));
    join(
        (0..threads)
            .map(|_| {
                let counter = counter.clone();
                thread::spawn(move || {
                    let value = counter.load(SeqCst);
                    counter.store(value + 1, SeqCst);
                })
            })
            .collect(),
    );
    counter.load(SeqCst)
}

pub fn racy_counter_2() {
    count_up(2);
}

pub fn racy_counter_3() {
    count_up(3);
}

pub fn racy_counter_4() {
    count_up(4);
}

pub fn lastzero_5() {
    let n = 5;
    let a = cells(n + 1);
    let mut threads = vec![];
    let row = a.clone();
    threads.push(thread::spawn(move || {
        let mut i = n;
        while row[i].load(SeqCst) != 0 {
            i -= 1;
        }
    }));
    for j in 1..=n {
        let row = a.clone();
        threads.push(thread::spawn(move || {
            let v = row[j - 1].load(SeqCst);
            row[j].store(v + 1, SeqCst);
        }));
    }
    join(threads);
}

/// The lock-free queue of Michael & Scott; nodes are numbers, 0 is none.
struct Queue {
    head: AtomicUsize,
    tail: AtomicUsize,
    next: Vec<AtomicUsize>,
}

impl Queue {
    fn new(nodes: usize) -> Queue {
        Queue {
            head: AtomicUsize::new(1),
            tail: AtomicUsize::new(1),
            next: (0..nodes + 2).map(|_| AtomicUsize::new(0)).collect(),
        }
    }

    fn enqueue(&self, node: usize) {
        loop {
            let last = self.tail.load(SeqCst);
            let following = self.next[last].load(SeqCst);
            if last != self.tail.load(SeqCst) {
                continue;
            }
            if following != 0 {
                cas(&self.tail, last, following);
            } else if cas(&self.next[last], 0, node) {
                cas(&self.tail, last, node);
                return;
            }
        }
    }

    fn dequeue(&self) -> usize {
        loop {
            let first = self.head.load(SeqCst);
            let last = self.tail.load(SeqCst);
            let following = self.next[first].load(SeqCst);
            if first != self.head.load(SeqCst) {
                continue;
            }
            if first != last {
                if cas(&self.head, first, following) {
                    return following;
                }
            } else if following == 0 {
                return 0;
            } else {
                cas(&self.tail, last, following);
            }
        }
    }
}

pub fn michael_scott() {
    let queue = Arc::new(Queue::new(2));
    let mut threads = vec![];
    for node in [2, 3] {
        let queue = queue.clone();
        threads.push(thread::spawn(move || queue.enqueue(node)));
    }
    threads.push(thread::spawn(move || {
        queue.dequeue();
    }));
    join(threads);
}

/// A place for one item. One of those who wait is notified, whoever it is.
fn move_items(place: &(Mutex<bool>, Condvar), to: bool, items: usize) {
    for _ in 0..items {
        let mut full = place.0.lock().unwrap();
        while *full == to {
            full = place.1.wait(full).unwrap();
        }
        *full = to;
        place.1.notify_one();
    }
}

fn buffer(movers: &[bool], items: usize) {
    let place = Arc::new((Mutex::new(false), Condvar::new()));
    join(
        movers
            .iter()
            .map(|&to| {
                let place = place.clone();
                thread::spawn(move || move_items(&place, to, items))
            })
            .collect(),
    );
}

pub fn condition_buffer() {
    buffer(&[true, false], 3);
}

pub fn lost_update() {
    assert_eq!(count_up(2), 2, "lost update");
}

pub fn lost_wakeup() {
    let ready = Arc::new(AtomicUsize::new(0));
    let place = Arc::new((Mutex::new(()), Condvar::new()));
    let (seen, at) = (ready.clone(), place.clone());
    let waiter = thread::spawn(move || {
        if seen.load(SeqCst) == 0 {
            let held = at.0.lock().unwrap();
            drop(at.1.wait(held).unwrap());
        }
    });
    let setter = thread::spawn(move || {
        let _held = place.0.lock().unwrap();
        ready.store(1, SeqCst);
        place.1.notify_one();
    });
    join(vec![waiter, setter]);
}

pub fn stolen_wakeup() {
    let items = Arc::new((Mutex::new(0), Condvar::new()));
    let at = items.clone();
    let once = thread::spawn(move || {
        let mut count = at.0.lock().unwrap();
        if *count == 0 {
            count = at.1.wait(count).unwrap();
        }
        assert!(*count > 0, "stolen wake-up");
        *count -= 1;
    });
    let at = items.clone();
    let any = thread::spawn(move || {
        let mut count = at.0.lock().unwrap();
        if *count > 0 {
            *count -= 1;
        }
    });
    let put = thread::spawn(move || {
        for _ in 0..2 {
            let mut count = items.0.lock().unwrap();
            *count += 1;
            items.1.notify_one();
        }
    });
    join(vec![once, any, put]);
}

pub fn notify_for_notify_all() {
    buffer(&[true, true, false, false], 1);
}

/// A stack of numbered nodes whose `pop` compares the head only: a node that came back looks as if it had never left.
pub fn aba() {
    let head = Arc::new(AtomicUsize::new(1));
    let next = cells(3);
    let owners = cells(3);
    next[1].store(2, SeqCst);

    fn pop(head: &AtomicUsize, next: &[AtomicUsize], owners: &[AtomicUsize]) -> usize {
        loop {
            let top = head.load(SeqCst);
            if top == 0 {
                return 0;
            }
            let following = next[top].load(SeqCst);
            if cas(head, top, following) {
                assert_eq!(owners[top].fetch_add(1, SeqCst), 0, "ABA: popped twice");
                return top;
            }
        }
    }

    let (h, n, o) = (head.clone(), next.clone(), owners.clone());
    let slow = thread::spawn(move || {
        pop(&h, &n, &o);
        pop(&h, &n, &o);
    });
    let quick = thread::spawn(move || {
        let first = pop(&head, &next, &owners);
        let second = pop(&head, &next, &owners);
        if first != 0 && second != 0 {
            owners[first].fetch_sub(1, SeqCst);
            loop {
                let top = head.load(SeqCst);
                next[first].store(top, SeqCst);
                if cas(&head, top, first) {
                    break;
                }
            }
        }
    });
    join(vec![slow, quick]);
}

/// 0 available, 1 acquired, 2 dequeued: the publisher looks, then dequeues.
pub fn immediate_race() {
    let entry = Arc::new(AtomicUsize::new(0));
    let delivered = Arc::new(AtomicUsize::new(0));
    let dequeued = Arc::new(AtomicUsize::new(0));
    let (e, d) = (entry.clone(), delivered.clone());
    let deliverer = thread::spawn(move || {
        if cas(&e, 0, 1) {
            d.store(1, SeqCst);
        }
    });
    let gone = dequeued.clone();
    let publisher = thread::spawn(move || {
        if entry.load(SeqCst) != 1 {
            entry.store(2, SeqCst);
            gone.store(1, SeqCst);
        }
    });
    join(vec![deliverer, publisher]);
    assert_eq!(delivered.load(SeqCst) + dequeued.load(SeqCst), 1, "delivered and dequeued");
}

pub fn double_dispose() {
    let disposed = Arc::new(AtomicUsize::new(0));
    let times = Arc::new(AtomicUsize::new(0));
    join(
        (0..2)
            .map(|_| {
                let (disposed, times) = (disposed.clone(), times.clone());
                thread::spawn(move || {
                    if disposed.load(SeqCst) == 0 {
                        disposed.store(1, SeqCst);
                        times.fetch_add(1, SeqCst);
                    }
                })
            })
            .collect(),
    );
    assert_eq!(times.load(SeqCst), 1, "disposed twice");
}

pub fn lock_order() {
    let locks = Arc::new((Mutex::new(()), Mutex::new(())));
    let other = locks.clone();
    let forth = thread::spawn(move || {
        let _one = locks.0.lock().unwrap();
        let _two = locks.1.lock().unwrap();
    });
    let back = thread::spawn(move || {
        let _two = other.1.lock().unwrap();
        let _one = other.0.lock().unwrap();
    });
    join(vec![forth, back]);
}

pub fn torn_read() {
    let pair = cells(2);
    let written = pair.clone();
    let writer = thread::spawn(move || {
        written[0].store(1, SeqCst);
        written[1].store(1, SeqCst);
    });
    let reader = thread::spawn(move || {
        let low = pair[0].load(SeqCst);
        let high = pair[1].load(SeqCst);
        assert_eq!(low, high, "torn read");
    });
    join(vec![writer, reader]);
}

/// Peterson's entry with its two writes in the wrong order; who may not enter goes away.
pub fn peterson_turned() {
    let turn = Arc::new(AtomicUsize::new(0));
    let flags = cells(2);
    let inside = Arc::new(AtomicUsize::new(0));
    join(
        (0..2)
            .map(|me| {
                let (turn, flags, inside) = (turn.clone(), flags.clone(), inside.clone());
                thread::spawn(move || {
                    turn.store(1 - me, SeqCst);
                    flags[me].store(1, SeqCst);
                    if flags[1 - me].load(SeqCst) == 0 || turn.load(SeqCst) == me {
                        assert_eq!(inside.fetch_add(1, SeqCst), 0, "two inside");
                        inside.fetch_sub(1, SeqCst);
                        flags[me].store(0, SeqCst);
                    }
                })
            })
            .collect(),
    );
}

pub fn unsafe_publication() {
    let ready = Arc::new(AtomicUsize::new(0));
    let data = Arc::new(AtomicUsize::new(0));
    let (r, d) = (ready.clone(), data.clone());
    let writer = thread::spawn(move || {
        r.store(1, SeqCst);
        d.store(42, SeqCst);
    });
    let reader = thread::spawn(move || {
        if ready.load(SeqCst) == 1 {
            assert_eq!(data.load(SeqCst), 42, "published before it was written");
        }
    });
    join(vec![writer, reader]);
}

/// A list that counts an item after linking it; the count is taken down by who takes the item.
pub fn late_counter() {
    let linked = Arc::new(AtomicUsize::new(0));
    let size = Arc::new(AtomicUsize::new(10));
    let (l, s) = (linked.clone(), size.clone());
    let put = thread::spawn(move || {
        l.store(1, SeqCst);
        s.fetch_add(1, SeqCst);
    });
    let take = thread::spawn(move || {
        if cas(&linked, 1, 0) {
            let before = size.fetch_sub(1, SeqCst);
            assert!(before > 10, "counted below zero");
        }
    });
    join(vec![put, take]);
}

pub fn named(name: &str) -> Option<fn()> {
    Some(match name {
        "racy counter, 2 threads" => racy_counter_2,
        "racy counter, 3 threads" => racy_counter_3,
        "racy counter, 4 threads" => racy_counter_4,
        "lastzero(5)" => lastzero_5,
        "Michael-Scott, 2 enqueuers, 1 dequeuer" => michael_scott,
        "condition buffer, 3 items" => condition_buffer,
        "lost update" => lost_update,
        "lost wake-up" => lost_wakeup,
        "stolen wake-up" => stolen_wakeup,
        "notify for notify_all" => notify_for_notify_all,
        "ABA" => aba,
        "immediate race" => immediate_race,
        "double dispose" => double_dispose,
        "lock order" => lock_order,
        "torn read" => torn_read,
        "Peterson turned round" => peterson_turned,
        "unsafe publication" => unsafe_publication,
        "late counter" => late_counter,
        _ => return None,
    })
}
