//! Runs random programs on real threads and judges what they returned, by the clock too.
//!
//! `histories SEED SECONDS THREADS CALLS`. A JSON line at the end, and one for each failure.

#[cfg(podcache_loom)]
compile_error!("real threads need the real atomics: run `cargo xtask histories`");

use std::time::{Duration, Instant};

use podcache_loom_tests::execute::execute;
use podcache_loom_tests::generate;
use podcache_loom_tests::subject::Spread;
use serde::Serialize;

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
enum Event {
    Failed {
        seed: u64,
        program: String,
        history: String,
    },
    Done {
        histories: usize,
        calls: usize,
        overlapping: usize,
        failed: usize,
        seconds: f64,
    },
}

fn say(event: &Event) {
    println!("{}", serde_json::to_string(event).expect("plain data"));
}

fn main() {
    let numbers: Vec<u64> = std::env::args()
        .skip(1)
        .filter_map(|arg| arg.parse().ok())
        .collect();
    let &[first, seconds, threads, calls] = &numbers[..] else {
        eprintln!("usage: histories SEED SECONDS THREADS CALLS");
        std::process::exit(2);
    };
    let start = Instant::now();
    let (mut histories, mut made, mut overlapping, mut failed) = (0, 0, 0, 0);
    for seed in first.. {
        if start.elapsed() > Duration::from_secs(seconds) {
            break;
        }
        let program = generate::random(seed, threads as usize, calls as usize);
        let spread = if seed.is_multiple_of(4) {
            Spread::Alike
        } else {
            Spread::Apart
        };
        let history = execute(&program, spread);
        histories += 1;
        made += history.calls();
        overlapping += history.overlapping();
        if !history.is_explained() {
            failed += 1;
            say(&Event::Failed {
                seed,
                program: program.to_string(),
                history: history.to_string(),
            });
        }
    }
    say(&Event::Done {
        histories,
        calls: made,
        overlapping,
        failed,
        seconds: start.elapsed().as_secs_f64(),
    });
    std::process::exit(i32::from(failed > 0));
}
