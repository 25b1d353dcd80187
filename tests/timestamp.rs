//! `Timestamp`: arithmetic at its bounds, text, conversions and the clock.

use podcache::{Timestamp, TimestampError};
use proptest::prelude::*;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const NANO: Duration = Duration::from_nanos(1);

fn t(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

/// Times from all over the range, its ends as likely as its middle.
fn times() -> impl Strategy<Value = Timestamp> {
    prop_oneof![0..1000u64, any::<u64>(), (u64::MAX - 1000)..=u64::MAX].prop_map(t)
}

fn durations() -> impl Strategy<Value = Duration> {
    prop_oneof![
        (0..1000u64).prop_map(Duration::from_nanos),
        any::<u64>().prop_map(Duration::from_nanos),
        (any::<u64>(), 0..1_000_000_000u32).prop_map(|(s, n)| Duration::new(s, n)),
    ]
}

#[test]
fn text_at_both_ends() {
    assert_eq!(
        Timestamp::ZERO.to_string(),
        "1970-01-01T00:00:00.000000000Z"
    );
    assert_eq!(Timestamp::MAX.to_string(), "2554-07-21T23:34:33.709551615Z");
    assert_eq!(
        format!("{:?}", t(1)),
        "Timestamp(1970-01-01T00:00:00.000000001Z)"
    );
}

#[test]
fn other_spellings_of_rfc_3339() {
    let noon = t(1_772_366_400_000_000_000);
    for text in [
        "2026-03-01T12:00:00Z",
        "2026-03-01t12:00:00.0z",
        "2026-03-01T12:00:00.000000000+00:00",
        "2026-03-01T07:30:00-04:30",
        "2026-03-02T02:00:00+14:00",
    ] {
        assert_eq!(text.parse(), Ok(noon), "{text}");
    }
}

#[test]
fn what_is_not_a_timestamp() {
    for text in [
        "",
        "now",
        "1772366400",
        "2026-03-01",
        "2026-03-01T12:00:00",
        "2026-02-30T12:00:00Z",
    ] {
        let error = text.parse::<Timestamp>().unwrap_err();
        assert!(
            matches!(error, TimestampError::Syntax(_)),
            "{text}: {error:?}"
        );
    }
    let parse = |text: &str| text.parse::<Timestamp>();
    assert_eq!(
        parse("1970-01-01T00:00:00+00:01"),
        Err(TimestampError::BeforeEpoch)
    );
    assert_eq!(
        parse("1969-12-31T23:59:59.999999999Z"),
        Err(TimestampError::BeforeEpoch)
    );
    assert_eq!(
        parse("2554-07-21T23:34:33.709551616Z"),
        Err(TimestampError::TooLate)
    );
    assert_eq!(parse("9999-12-30T00:00:00Z"), Err(TimestampError::TooLate));
}

#[test]
fn system_times_out_of_range() {
    let last = SystemTime::from(Timestamp::MAX);
    assert_eq!(Timestamp::try_from(UNIX_EPOCH), Ok(Timestamp::ZERO));
    assert_eq!(
        Timestamp::try_from(UNIX_EPOCH - Duration::from_secs(1)),
        Err(TimestampError::BeforeEpoch)
    );
    assert_eq!(
        Timestamp::try_from(last + Duration::from_secs(1)),
        Err(TimestampError::TooLate)
    );
}

#[test]
#[should_panic(expected = "overflow")]
fn adding_beyond_the_end_panics() {
    let _ = Timestamp::MAX + NANO;
}

#[test]
#[should_panic(expected = "overflow")]
fn subtracting_beyond_the_start_panics() {
    let _ = Timestamp::ZERO - NANO;
}

#[test]
fn a_failed_assignment_changes_nothing() {
    let mut time = Timestamp::MAX;
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| time += NANO)).unwrap_err();
    assert_eq!(time, Timestamp::MAX);
    time -= NANO;
    assert_eq!(time, t(u64::MAX - 1));
}

#[test]
fn now_never_goes_back_between_threads() {
    // Each thread hands its reading to the next, which must not read less.
    let mut last = Timestamp::now();
    assert_ne!(last, Timestamp::ZERO);
    for _ in 0..200 {
        let next = thread::spawn(Timestamp::now).join().unwrap();
        assert!(last <= next);
        last = next;
    }
}

#[test]
fn now_never_goes_back_through_a_shared_maximum() {
    use std::sync::atomic::{AtomicU64, Ordering};
    // What a thread finds published happened before its own reading.
    let newest = AtomicU64::new(0);
    thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| {
                for _ in 0..10_000 {
                    let seen = newest.load(Ordering::Acquire);
                    let now = Timestamp::now().as_nanos();
                    assert!(seen <= now);
                    newest.fetch_max(now, Ordering::AcqRel);
                }
            });
        }
    });
}

proptest! {
    #[test]
    fn text_reads_back(time in times()) {
        prop_assert_eq!(time.to_string().parse(), Ok(time));
    }

    #[test]
    fn texts_sort_as_their_times(a in times(), b in times()) {
        prop_assert_eq!(a.to_string().cmp(&b.to_string()), a.cmp(&b));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,40}") {
        if let Ok(time) = text.parse::<Timestamp>() {
            prop_assert_eq!(time.to_string().parse(), Ok(time));
        }
    }

    #[test]
    fn system_time_and_back(time in times()) {
        let back = Timestamp::try_from(SystemTime::from(time)).unwrap();
        if cfg!(unix) {
            prop_assert_eq!(back, time);
        } else {
            prop_assert!(back <= time && time.duration_since(back) < Duration::from_nanos(100));
        }
    }

    #[test]
    fn sums_are_those_of_wide_integers(time in times(), by in durations()) {
        let sum = u128::from(time.as_nanos()) + by.as_nanos();
        let expected = u64::try_from(sum).ok().map(t);
        prop_assert_eq!(time.checked_add(by), expected);
        prop_assert_eq!(time.saturating_add(by), expected.unwrap_or(Timestamp::MAX));
        if let Some(expected) = expected {
            prop_assert_eq!(time + by, expected);
        }
    }

    #[test]
    fn differences_are_those_of_wide_integers(time in times(), by in durations()) {
        let difference = u128::from(time.as_nanos()).checked_sub(by.as_nanos());
        let expected = difference.map(|nanos| t(nanos as u64));
        prop_assert_eq!(time.checked_sub(by), expected);
        prop_assert_eq!(time.saturating_sub(by), expected.unwrap_or(Timestamp::ZERO));
        if let Some(expected) = expected {
            prop_assert_eq!(time - by, expected);
        }
    }

    #[test]
    fn duration_since_undoes_addition(time in times(), by in durations()) {
        if let Some(later) = time.checked_add(by) {
            prop_assert_eq!(later.duration_since(time), by);
            if !by.is_zero() {
                prop_assert_eq!(time.duration_since(later), Duration::ZERO);
            }
        }
    }
}

#[cfg(feature = "serde")]
mod serde {
    use super::*;
    use serde_test::{Configure, Token, assert_de_tokens_error, assert_tokens};

    #[test]
    fn text_for_people_a_number_for_machines() {
        let time = t(1_000_000_001);
        assert_tokens(
            &time.readable(),
            &[Token::Str("1970-01-01T00:00:01.000000001Z")],
        );
        assert_tokens(&time.compact(), &[Token::U64(1_000_000_001)]);
    }

    #[test]
    fn what_is_refused() {
        assert_de_tokens_error::<serde_test::Readable<Timestamp>>(
            &[Token::Str("1969-01-01T00:00:00Z")],
            "the time is before the Unix epoch",
        );
        assert_de_tokens_error::<serde_test::Readable<Timestamp>>(
            &[Token::U64(1)],
            "invalid type: integer `1`, expected an RFC 3339 time between 1970 and 2554",
        );
    }
}
