//! A pin that is never given back. It holds back what all of the process throws away, so this test
//! has a process of its own.

mod common;

use std::sync::atomic::Ordering::SeqCst;

use common::t;
use common::values::{Live, TrapVal};
use podcache::Cache;

/// Safe code can make a reference out of a leaked pin that outlives the thread that pinned: what it
/// refers to has to stay, for ever.
#[test]
fn what_a_leaked_pin_has_lent_stays_valid_beyond_its_thread() {
    let cache: &'static Cache<u64, TrapVal> = Box::leak(Box::new(Cache::new()));
    let live = Live::default();
    cache.set(&1, TrapVal::counted(1, &live), t(1));
    let lent: &'static TrapVal = std::thread::spawn(|| {
        let pinned = Box::leak(Box::new(cache.pin()));
        let entry = Box::leak(Box::new(pinned.get(&1).expect("a record")));
        entry.value()
    })
    .join()
    .unwrap();
    assert!(cache.delete(&1));
    // Nobody is held up by it, and all goes on but the freeing of memory.
    for n in 0..20_000 {
        cache.set(&2, TrapVal::counted(n, &live), t(n));
        assert_eq!(cache.get(&2).number, n);
        drop(cache.subscribe(&3, t(5)));
    }
    assert_eq!(lent.number, 1);
    assert!(live.load(SeqCst) >= 2);
}
