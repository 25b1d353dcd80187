//! The data that every peer is fed with: keys, statuses and the orders in which keys are asked for.

use std::sync::Arc;

/// The one kind of key of all peers: text that is cheap to clone, since some can only be set with an
/// owned key.
pub type Key = Arc<str>;

/// The one hasher of all peers.
pub type Hasher = foldhash::fast::FixedState;

/// How many keys a mix works on unless it says otherwise.
pub const KEYS: usize = 1024;

/// A pod's status as wide as the kubelet's own (168 bytes on a 64-bit machine). What hangs below it
/// would cost every peer the same and is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// Grows with every set: lets a reader tell two statuses apart.
    pub generation: u64,
    fields: [u64; 20],
}

impl Status {
    /// A status with this generation.
    #[inline]
    pub fn new(generation: u64) -> Self {
        Self {
            generation,
            fields: [generation; 20],
        }
    }
}

impl podcache::DefaultFor<Key> for Status {
    fn default_for(_: &Key) -> Self {
        Self::new(0)
    }
}

/// A status with its two times: what the peers keep behind an `Arc`.
#[derive(Debug)]
pub struct Record {
    /// The value.
    pub status: Status,
    /// When it was set.
    pub modified: u64,
    /// When it was last confirmed.
    pub observed: u64,
}

impl Record {
    /// A record that was just set.
    #[inline]
    pub fn new(status: Status, time: u64) -> Arc<Self> {
        Arc::new(Self {
            status,
            modified: time,
            observed: time,
        })
    }

    /// What a missing key reads as.
    #[inline]
    pub fn missing() -> Arc<Self> {
        Self::new(Status::new(0), 0)
    }

    /// Whether the record itself is newer than `min`.
    #[inline]
    pub fn newer_than(&self, min: u64) -> bool {
        self.modified > min || self.observed > min
    }
}

/// `count` version-4 UUIDs, the same ones in every run.
pub fn uuids(count: usize) -> Vec<Key> {
    let mut random = fastrand::Rng::with_seed(0x0070_0dca);
    (0..count)
        .map(|_| {
            let bits = random.u128(..) & !(0xf << 76 | 0x3 << 62) | 4 << 76 | 2 << 62;
            let hex = format!("{bits:032x}");
            [
                &hex[..8],
                &hex[8..12],
                &hex[12..16],
                &hex[16..20],
                &hex[20..],
            ]
            .join("-")
            .into()
        })
        .collect()
}

/// Which key comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pick {
    /// Every key alike.
    Uniform,
    /// Always the first key.
    Hot,
    /// The key of rank r with a weight of 1/r.
    Zipf,
}

/// An endless sequence of key numbers, drawn beforehand so that drawing costs the measurement one
/// load.
#[derive(Debug, Clone)]
pub struct Order {
    next: usize,
    drawn: Arc<[u32]>,
}

/// Long enough that a branch predictor does not learn it by heart, short enough for the cache.
const DRAWN: usize = 16 * 1024;

/// Marks a drawn key as one to be set.
const SET: u32 = 1 << 31;

impl Order {
    /// A sequence over `keys` keys.
    pub fn new(pick: Pick, keys: usize, seed: u64) -> Self {
        Self::mixed(pick, keys, 0.0, seed)
    }

    /// A sequence over `keys` keys, a share of which is to be set.
    pub fn mixed(pick: Pick, keys: usize, sets: f64, seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut sums = Vec::new();
        if pick == Pick::Zipf {
            let mut sum = 0.0;
            sums.extend((1..=keys).map(|rank| {
                sum += 1.0 / rank as f64;
                sum
            }));
        }
        let drawn = (0..DRAWN)
            .map(|_| {
                let key = match pick {
                    Pick::Hot => 0,
                    Pick::Uniform => random.u32(..keys as u32),
                    Pick::Zipf => {
                        let at = random.f64() * sums[keys - 1];
                        sums.partition_point(|&sum| sum < at) as u32
                    }
                };
                if random.f64() < sets { key | SET } else { key }
            })
            .collect();
        Self { next: 0, drawn }
    }

    /// The next key number.
    #[inline]
    pub(crate) fn next(&mut self) -> usize {
        self.next_with_kind().0
    }

    /// The next key number, and whether the key is to be set.
    #[inline]
    pub fn next_with_kind(&mut self) -> (usize, bool) {
        self.next = (self.next + 1) % DRAWN;
        let drawn = self.drawn[self.next];
        ((drawn & !SET) as usize, drawn & SET != 0)
    }
}
