//! The bench's programs under loom or shuttle: `explorers loom|shuttle|shuttle-random PROGRAM SECONDS`.
//! Prints one JSON object: executions of one exploration, executions a second over all of them,
//! seconds of the shortest one (null if none ended), and the verdict.

use std::panic;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

mod on_loom {
    use loom as host;
    include!("programs.rs");
}

mod on_shuttle {
    use shuttle as host;
    include!("programs.rs");
}

static EXECUTIONS: AtomicU64 = AtomicU64::new(0);
static ROUNDS: AtomicU64 = AtomicU64::new(0);
static BEGUN: OnceLock<Instant> = OnceLock::new();

fn explore(host: &str, program: fn()) {
    let once = move || {
        EXECUTIONS.fetch_add(1, Relaxed);
        program();
    };
    if host == "loom" {
        let mut builder = loom::model::Builder::new();
        builder.max_branches = 100_000;
        builder.check(once);
    } else if host == "shuttle" {
        shuttle::check_dfs(once, None);
    } else {
        // Its usual way. It never ends by itself; the clock does.
        shuttle::check_random(once, usize::MAX);
    }
}

fn elapsed() -> f64 {
    BEGUN.get().map_or(0.0, |t| t.elapsed().as_secs_f64())
}

/// The end of this process, with what was seen. `best` is the time of the shortest whole exploration.
fn leave(verdict: &str, best: Option<f64>) -> ! {
    let executions = EXECUTIONS.load(Relaxed);
    let each = executions / ROUNDS.load(Relaxed).max(1);
    let seconds = best.map_or("null".into(), |s| s.to_string());
    let speed = executions as f64 / elapsed().max(1e-9);
    println!(
        "{{\"executions\": {each}, \"speed\": {speed}, \"seconds\": {seconds}, \"verdict\": {verdict:?}}}"
    );
    std::process::exit(0);
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let [_, host, name, seconds] = args.as_slice() else {
        eprintln!("usage: explorers loom|shuttle|shuttle-random PROGRAM SECONDS");
        std::process::exit(2);
    };
    let found = if host == "loom" { on_loom::named(name) } else { on_shuttle::named(name) };
    let (Some(program), Ok(limit)) = (found, seconds.parse::<f64>()) else {
        eprintln!("no program {name:?}, or no number {seconds:?}");
        std::process::exit(2);
    };
    let _ = BEGUN.set(Instant::now());
    // The first panic says what was found; what a host makes of it afterwards may even abort the process.
    panic::set_hook(Box::new(|info| {
        let told = info.payload();
        let why = told
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| told.downcast_ref::<&str>().copied())
            .unwrap_or("no reason");
        let line = why.lines().next().unwrap_or("");
        // How loom says that a program has more threads than it can hold.
        let refused = line.contains("self.threads.len() < self.max()");
        leave(&format!("{}: {line}", if refused { "refused" } else { "violated" }), Some(elapsed()));
    }));
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs_f64(limit));
        leave("unfinished", None);
    });
    let mut best = f64::INFINITY;
    while best.is_infinite() || elapsed() < limit / 2.0 {
        let start = Instant::now();
        explore(host, program);
        ROUNDS.fetch_add(1, Relaxed);
        best = best.min(start.elapsed().as_secs_f64());
    }
    leave("ok", Some(best));
}
