//! The feature `metrics`: under which names the figures of a cache are published.

use std::sync::Arc;
use std::time::Duration;

use metrics::{Key, KeyName, Label, Level, Metadata, Unit, with_recorder};

use crate::Stats;
use crate::settings::Settings;

const METADATA: Metadata<'static> = Metadata::new("podcache", Level::INFO, Some(module_path!()));

const WAIT_SECONDS: &str = "podcache_wait_seconds";

type Figure<T> = (&'static str, Option<Unit>, &'static str, fn(&Stats) -> T);

const COUNTERS: [Figure<u64>; 11] = [
    (
        "podcache_sets_total",
        None,
        "Records that were stored.",
        |stats| stats.sets,
    ),
    (
        "podcache_refused_sets_total",
        None,
        "Sets that the write policy refused.",
        |stats| stats.refused_sets,
    ),
    (
        "podcache_refused_future_total",
        None,
        "Timestamps that were refused for being too far in the future.",
        |stats| stats.refused_future,
    ),
    (
        "podcache_deletes_total",
        None,
        "Records that were deleted.",
        |stats| stats.deletes,
    ),
    (
        "podcache_observations_total",
        None,
        "Calls that confirmed a record.",
        |stats| stats.observations,
    ),
    (
        "podcache_time_updates_total",
        None,
        "Times that the global time was stated.",
        |stats| stats.time_updates,
    ),
    (
        "podcache_waits_total",
        None,
        "Waits that were registered.",
        |stats| stats.waits,
    ),
    (
        "podcache_wake_ups_total",
        None,
        "Waits that ended with a snapshot.",
        |stats| stats.wake_ups,
    ),
    (
        "podcache_closed_waits_total",
        None,
        "Waits that ended because the cache was closed.",
        |stats| stats.closed_waits,
    ),
    (
        "podcache_cancellations_total",
        None,
        "Waits that were given up.",
        |stats| stats.cancellations,
    ),
    (
        "podcache_time_outs_total",
        None,
        "Times that a blocking wait ran out of time.",
        |stats| stats.time_outs,
    ),
];

/// A gauge that has nothing to say is zero.
const GAUGES: [Figure<f64>; 7] = [
    (
        "podcache_records",
        None,
        "Records that are there.",
        |stats| stats.records as f64,
    ),
    (
        "podcache_waiters",
        None,
        "Waits that are registered.",
        |stats| stats.waiters as f64,
    ),
    (
        "podcache_longest_wait_seconds",
        Some(Unit::Seconds),
        "For how long the oldest registered wait has been waiting.",
        |stats| seconds(stats.longest_wait),
    ),
    (
        "podcache_global_time_age_seconds",
        Some(Unit::Seconds),
        "How far the global time is behind the clock.",
        |stats| seconds(stats.global_time_age),
    ),
    (
        "podcache_index_slots",
        None,
        "Keys in the hash table, with or without a record.",
        |stats| stats.index_slots as f64,
    ),
    (
        "podcache_index_buckets",
        None,
        "Buckets of the hash table.",
        |stats| stats.index_buckets as f64,
    ),
    (
        "podcache_index_bytes",
        Some(Unit::Bytes),
        "Memory of the hash table, without the records.",
        |stats| stats.index_bytes as f64,
    ),
];

fn seconds(duration: Option<Duration>) -> f64 {
    duration.unwrap_or_default().as_secs_f64()
}

fn key(metric: &'static str, cache: Option<&Arc<str>>) -> Key {
    match cache {
        None => Key::from_static_name(metric),
        Some(cache) => Key::from_parts(metric, vec![Label::new("cache", Arc::clone(cache))]),
    }
}

/// Waits of a cache were satisfied, after so long each.
pub(crate) fn satisfied(cache: &Settings, waited: &[Duration]) {
    with_recorder(|recorder| {
        let key = key(WAIT_SECONDS, cache.name.as_ref());
        let histogram = recorder.register_histogram(&key, &METADATA);
        for waited in waited {
            histogram.record(waited.as_secs_f64());
        }
    });
}

pub(crate) fn publish(stats: &Stats, name: Option<&Arc<str>>) {
    with_recorder(|recorder| {
        for (metric, _, _, figure) in COUNTERS {
            let counter = recorder.register_counter(&key(metric, name), &METADATA);
            counter.absolute(figure(stats));
        }
        for (metric, _, _, figure) in GAUGES {
            let gauge = recorder.register_gauge(&key(metric, name), &METADATA);
            gauge.set(figure(stats));
        }
    });
}

pub(crate) fn describe() {
    with_recorder(|recorder| {
        for (metric, unit, text, _) in COUNTERS {
            recorder.describe_counter(KeyName::from_const_str(metric), unit, text.into());
        }
        for (metric, unit, text, _) in GAUGES {
            recorder.describe_gauge(KeyName::from_const_str(metric), unit, text.into());
        }
        let text = "How long satisfied waits had been registered.";
        let unit = Some(Unit::Seconds);
        recorder.describe_histogram(KeyName::from_const_str(WAIT_SECONDS), unit, text.into());
    });
}
