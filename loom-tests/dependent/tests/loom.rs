//! The worker's model: whatever is asked for is served with a status that is new enough.

#![cfg(podcache_loom)]

use std::sync::{Arc, Mutex};

use podcache::{Cache, Timestamp};
use podcache_dependent::sync::thread;
use podcache_dependent::{Status, Worker};

fn at(time: u64) -> Timestamp {
    Timestamp::from_nanos(time)
}

#[test]
fn every_request_is_served() {
    let mut model = loom::model::Builder::new();
    // Without a bound it would take hours.
    model.preemption_bound = Some(3);
    model.max_branches = 10_000;
    model.check(|| {
        let cache = Cache::<u64, Status>::new();
        let worker = Arc::new(Worker::new(7, cache.read_only()));
        worker.request(at(1));

        // Not a part of the model: what the worker saw, for the assertion below.
        let served = Arc::new(Mutex::new(Vec::new()));
        let running = thread::spawn({
            let (worker, served) = (Arc::clone(&worker), Arc::clone(&served));
            move || worker.run(|status| served.lock().unwrap().push(status.modified()))
        });

        // The runtime reports, and asks for one more sync after the next report.
        cache.set(&7, Status { restarts: 1 }, at(2));
        worker.request(at(2));
        cache.set(&7, Status { restarts: 2 }, at(3));
        worker.stop();
        running.join().unwrap().expect("nobody closes the cache");

        let served = served.lock().unwrap();
        assert_eq!(
            served.last(),
            Some(&Some(at(3))),
            "the last request was lost"
        );

        drop((cache, worker));
        podcache::model::free_garbage();
    });
}
