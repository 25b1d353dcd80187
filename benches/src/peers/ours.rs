//! podcache itself.

use podcache::{Cache, Timestamp};

use super::{Peer, Snapshot};
use crate::data::{Hasher, Key, Status};

/// podcache.
#[derive(Debug, Clone)]
pub struct Ours(
    /// The cache, for what the trait does not name.
    pub Cache<Key, Status, Hasher>,
);

impl Snapshot for podcache::Snapshot<Status> {
    #[inline]
    fn status(&self) -> &Status {
        self.value()
    }
}

const OPEN: &str = "the cache stays open while a benchmark runs";

impl Peer for Ours {
    const NAME: &'static str = "podcache";
    type Snapshot = podcache::Snapshot<Status>;

    fn with_capacity(keys: usize) -> Self {
        Self(
            Cache::<Key, Status>::builder()
                .capacity(keys)
                .hasher(Hasher::default())
                .build(),
        )
    }

    #[inline]
    fn get(&self, key: &Key) -> Self::Snapshot {
        self.0.get(key)
    }

    #[inline]
    fn set(&self, key: &Key, status: Status, time: u64) {
        self.0.set(key, status, Timestamp::from_nanos(time));
    }

    #[inline]
    fn delete(&self, key: &Key) {
        self.0.delete(key);
    }

    #[inline]
    fn update_time(&self, time: u64) {
        self.0.update_time(Timestamp::from_nanos(time));
    }

    async fn newer_than(&self, key: &Key, min: u64) -> Self::Snapshot {
        self.0
            .subscribe(key, Timestamp::from_nanos(min))
            .await
            .expect(OPEN)
    }

    fn wait_newer_than(&self, key: &Key, min: u64) -> Self::Snapshot {
        self.0
            .get_newer_than(key, Timestamp::from_nanos(min))
            .expect(OPEN)
    }
}
