//! Points in time as the cache compares them.

use std::fmt;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::str::FromStr;
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A point in time: nanoseconds since the Unix epoch, from 1970 to 2554.
///
/// To the cache a timestamp is a plain number compared with `<`. It never asks what time it is, so
/// any clock will do that all its writers share: [`Timestamp::now`], the time stamps of a container
/// runtime, or a counter through [`from_nanos`](Timestamp::from_nanos).
///
/// [`Timestamp::ZERO`] stands for "no time yet": nothing is older.
///
/// # Arithmetic
///
/// The operators panic when the result does not fit, as those of [`Instant`] and [`SystemTime`] do,
/// in release builds too: a silent [`Timestamp::MAX`] would be newer than all that ever follows.
/// The `checked_` and `saturating_` methods say what they do instead.
///
/// # Text
///
/// [`Display`](fmt::Display) writes RFC 3339 in UTC with all nine digits of the nanoseconds, so that
/// texts sort as their times do. [`FromStr`] reads RFC 3339 with any offset and up to nine digits,
/// and the other forms of ISO 8601 that [jiff](https://docs.rs/jiff) takes for an instant.
///
/// With the feature `serde` a timestamp is that text in formats for people, such as JSON, and the
/// `u64` of [`as_nanos`](Timestamp::as_nanos) in binary ones.
///
/// # Examples
///
/// ```
/// use podcache::Timestamp;
/// use std::time::Duration;
///
/// let start: Timestamp = "2026-03-01T13:00:00+01:00".parse()?;
/// let later = start + Duration::from_nanos(1);
///
/// assert!(start < later);
/// assert_eq!(later.to_string(), "2026-03-01T12:00:00.000000001Z");
/// assert_eq!(later.duration_since(start), Duration::from_nanos(1));
/// # Ok::<(), podcache::TimestampError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The Unix epoch; to the cache, "no time yet".
    pub const ZERO: Self = Self(0);

    /// The last representable time, in July 2554.
    pub const MAX: Self = Self(u64::MAX);

    /// The time that many nanoseconds after the Unix epoch.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the Unix epoch.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The current time: the wall clock as it was at the first call in this process, plus what the
    /// monotonic clock has counted since.
    ///
    /// # What it promises
    ///
    /// * It never goes back, across all threads: if one call happens before another, the later
    ///   one's result is not smaller. It may be equal: these are times, not unique ticks. Calls
    ///   that overlap may give their results in either order.
    /// * Stepping the wall clock, by hand or by NTP, changes nothing.
    /// * It is never [`Timestamp::ZERO`]. A wall clock that stands before 1970 at the first call
    ///   counts as 1970; one beyond 2554 gives [`Timestamp::MAX`].
    ///
    /// The price is that it drifts from the wall clock: by the steps that the wall clock makes, by
    /// the time that the machine sleeps where the monotonic clock sleeps too (on Linux it does),
    /// and not at all in step with other processes. Compare it with timestamps of this process.
    ///
    /// # Examples
    ///
    /// ```
    /// use podcache::Timestamp;
    ///
    /// let before = Timestamp::now();
    /// let after = Timestamp::now();
    /// assert!(Timestamp::ZERO < before && before <= after);
    /// ```
    #[must_use]
    pub fn now() -> Self {
        static ORIGIN: OnceLock<(Instant, Timestamp)> = OnceLock::new();
        let (start, wall) =
            ORIGIN.get_or_init(|| (Instant::now(), at_first_use(SystemTime::now())));
        wall.saturating_add(start.elapsed())
    }

    /// `self + duration`, or `None` beyond [`Timestamp::MAX`].
    #[must_use]
    pub const fn checked_add(self, duration: Duration) -> Option<Self> {
        match nanos(duration) {
            Some(nanos) => match self.0.checked_add(nanos) {
                Some(sum) => Some(Self(sum)),
                None => None,
            },
            None => None,
        }
    }

    /// `self - duration`, or `None` before [`Timestamp::ZERO`].
    #[must_use]
    pub const fn checked_sub(self, duration: Duration) -> Option<Self> {
        match nanos(duration) {
            Some(nanos) => match self.0.checked_sub(nanos) {
                Some(difference) => Some(Self(difference)),
                None => None,
            },
            None => None,
        }
    }

    /// `self + duration`, or [`Timestamp::MAX`] if that is beyond it.
    #[must_use]
    pub const fn saturating_add(self, duration: Duration) -> Self {
        match self.checked_add(duration) {
            Some(sum) => sum,
            None => Self::MAX,
        }
    }

    /// `self - duration`, or [`Timestamp::ZERO`] if that is before it.
    #[must_use]
    pub const fn saturating_sub(self, duration: Duration) -> Self {
        match self.checked_sub(duration) {
            Some(difference) => difference,
            None => Self::ZERO,
        }
    }

    /// The time from `earlier` to `self`; zero if `earlier` is the later one.
    #[must_use]
    pub const fn duration_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// The nanoseconds of a duration, if a `Timestamp` can hold them.
const fn nanos(duration: Duration) -> Option<u64> {
    let nanos = duration.as_nanos();
    if nanos <= u64::MAX as u128 {
        Some(nanos as u64)
    } else {
        None
    }
}

/// What [`Timestamp::now`] starts from when the wall clock stands at `wall`.
fn at_first_use(wall: SystemTime) -> Timestamp {
    match Timestamp::try_from(wall) {
        Err(TimestampError::BeforeEpoch) | Ok(Timestamp::ZERO) => Timestamp(1),
        Err(_) => Timestamp::MAX,
        Ok(time) => time,
    }
}

/// # Panics
///
/// If the sum is beyond [`Timestamp::MAX`].
impl Add<Duration> for Timestamp {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        self.checked_add(duration)
            .expect("overflow when adding a duration to a timestamp")
    }
}

/// # Panics
///
/// If the sum is beyond [`Timestamp::MAX`].
impl AddAssign<Duration> for Timestamp {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

/// # Panics
///
/// If the difference is before [`Timestamp::ZERO`].
impl Sub<Duration> for Timestamp {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        self.checked_sub(duration)
            .expect("overflow when subtracting a duration from a timestamp")
    }
}

/// # Panics
///
/// If the difference is before [`Timestamp::ZERO`].
impl SubAssign<Duration> for Timestamp {
    fn sub_assign(&mut self, duration: Duration) {
        *self = *self - duration;
    }
}

impl TryFrom<SystemTime> for Timestamp {
    type Error = TimestampError;

    /// # Errors
    ///
    /// [`BeforeEpoch`](TimestampError::BeforeEpoch) before 1970,
    /// [`TooLate`](TimestampError::TooLate) after [`Timestamp::MAX`].
    fn try_from(time: SystemTime) -> Result<Self, TimestampError> {
        let since = time
            .duration_since(UNIX_EPOCH)
            .map_err(|_| TimestampError::BeforeEpoch)?;
        nanos(since).map(Self).ok_or(TimestampError::TooLate)
    }
}

/// Exact where the system's clock type holds nanoseconds, rounded down where it holds less (Windows:
/// 100 ns).
impl From<Timestamp> for SystemTime {
    fn from(time: Timestamp) -> Self {
        UNIX_EPOCH + Duration::from_nanos(time.0)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = jiff::Timestamp::from_nanosecond(self.0.into())
            .expect("a u64 ends in 2554, the years of jiff in 9999");
        write!(f, "{time:.9}")
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Timestamp({self})")
    }
}

impl FromStr for Timestamp {
    type Err = TimestampError;

    /// Reads RFC 3339 with any offset, and what jiff takes beside it. A leap second counts as the
    /// second before it.
    ///
    /// # Errors
    ///
    /// [`Syntax`](TimestampError::Syntax) if `text` is no such time, or else as for a
    /// [`SystemTime`].
    fn from_str(text: &str) -> Result<Self, TimestampError> {
        let time: jiff::Timestamp = text
            .parse()
            .map_err(|e: jiff::Error| TimestampError::Syntax(e.to_string().into()))?;
        let nanos = time.as_nanosecond();
        if nanos < 0 {
            return Err(TimestampError::BeforeEpoch);
        }
        u64::try_from(nanos)
            .map(Self)
            .map_err(|_| TimestampError::TooLate)
    }
}

/// Why something is not a [`Timestamp`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TimestampError {
    /// It is before 1970.
    #[error("the time is before the Unix epoch")]
    BeforeEpoch,
    /// It is after [`Timestamp::MAX`].
    #[error("the time is after {}", Timestamp::MAX)]
    TooLate,
    /// The text is not an RFC 3339 time; what is wrong with it.
    #[error("not an RFC 3339 time: {0}")]
    Syntax(Box<str>),
}

#[cfg(feature = "serde")]
mod serde_impls {
    use super::Timestamp;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
    use std::fmt;

    impl Serialize for Timestamp {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            if serializer.is_human_readable() {
                serializer.collect_str(self)
            } else {
                serializer.serialize_u64(self.as_nanos())
            }
        }
    }

    impl<'de> Deserialize<'de> for Timestamp {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            if deserializer.is_human_readable() {
                deserializer.deserialize_str(Text)
            } else {
                u64::deserialize(deserializer).map(Self::from_nanos)
            }
        }
    }

    struct Text;

    impl de::Visitor<'_> for Text {
        type Value = Timestamp;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an RFC 3339 time between 1970 and 2554")
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Timestamp, E> {
            text.parse().map_err(E::custom)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_odd_wall_clock_at_first_use() {
        let second = Duration::from_secs(1);
        assert_eq!(at_first_use(UNIX_EPOCH - second), Timestamp(1));
        assert_eq!(at_first_use(UNIX_EPOCH), Timestamp(1));
        assert_eq!(at_first_use(UNIX_EPOCH + second), Timestamp(1_000_000_000));
        let last = SystemTime::from(Timestamp::MAX);
        assert_eq!(at_first_use(last + second), Timestamp::MAX);
    }
}
