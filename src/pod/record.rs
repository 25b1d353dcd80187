//! What the pod cache holds for each pod.

use super::{PodError, PodPhase, PodSpec, PodStatus, PodUid};
use crate::DefaultFor;

/// What the cache holds for a pod: its status, or why there is none, or both.
///
/// The kubelet stores the two side by side. A status with an error is the part that could be found
/// out, or the last one that could.
///
/// A pod that the cache has no record of reads as a status with nothing but its UID.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "camelCase", default)
)]
pub struct PodRecord {
    /// The status, as far as it is known.
    pub status: Option<PodStatus>,
    /// Why it is not known, or not fully.
    pub error: Option<PodError>,
}

impl PodRecord {
    /// A record with what is given of both.
    #[must_use]
    pub fn new(status: Option<PodStatus>, error: Option<PodError>) -> Self {
        Self { status, error }
    }

    /// The status if there is no error, as who asks the runtime directly would get it: with an
    /// error, what there is of a status is not to be relied on.
    ///
    /// A record that has neither reads as an unknown status, `Ok(None)`.
    ///
    /// ```
    /// use podcache::pod::{PodError, PodRecord, PodStatus};
    ///
    /// let mut record = PodRecord::from(PodStatus::new("8f1c36a2"));
    /// assert_eq!(record.result().unwrap().unwrap().id, "8f1c36a2");
    ///
    /// record.error = Some(PodError::new("deadline exceeded"));
    /// assert_eq!(record.result().unwrap_err().message(), "deadline exceeded");
    /// ```
    ///
    /// # Errors
    ///
    /// The record's error, if it has one.
    pub fn result(&self) -> Result<Option<&PodStatus>, &PodError> {
        match &self.error {
            Some(error) => Err(error),
            None => Ok(self.status.as_ref()),
        }
    }

    /// The pod's phase as [`PodStatus::phase`] derives it, [`PodPhase::Unknown`] without a status.
    #[must_use]
    pub fn phase(&self, spec: &PodSpec) -> PodPhase {
        self.status
            .as_ref()
            .map_or(PodPhase::Unknown, |status| status.phase(spec))
    }

    /// A changed copy.
    ///
    /// What the cache hands out is shared by all who have read it and cannot be changed in place.
    /// This is the way to a record that differs in something:
    ///
    /// ```
    /// use podcache::Timestamp;
    /// use podcache::pod::{PodCache, PodRecord, PodStatus, PodUid};
    ///
    /// let cache = PodCache::new();
    /// let uid = PodUid::from("8f1c36a2");
    /// cache.set(&uid, PodStatus::new(&uid).into(), Timestamp::now());
    ///
    /// let before = cache.get(&uid);
    /// let moved = before.edit(|record| {
    ///     if let Some(status) = &mut record.status {
    ///         status.ips = vec!["10.1.0.7".into()];
    ///     }
    /// });
    /// cache.set(&uid, moved, Timestamp::now());
    ///
    /// assert!(before.status.as_ref().unwrap().ips.is_empty());
    /// assert_eq!(cache.get(&uid).status.as_ref().unwrap().ips, ["10.1.0.7"]);
    /// ```
    ///
    /// Reading, editing and setting are three steps: what another writer set in between is lost.
    /// Where there is more than one writer for a pod, let a
    /// [`WritePolicy`](crate::WritePolicy) refuse the older one.
    #[must_use = "the record itself is not changed"]
    pub fn edit(&self, change: impl FnOnce(&mut Self)) -> Self {
        let mut copy = self.clone();
        change(&mut copy);
        copy
    }
}

impl From<PodStatus> for PodRecord {
    fn from(status: PodStatus) -> Self {
        Self {
            status: Some(status),
            error: None,
        }
    }
}

impl From<PodError> for PodRecord {
    fn from(error: PodError) -> Self {
        Self {
            status: None,
            error: Some(error),
        }
    }
}

impl From<Result<PodStatus, PodError>> for PodRecord {
    fn from(result: Result<PodStatus, PodError>) -> Self {
        result.map_or_else(Self::from, Self::from)
    }
}

impl DefaultFor<str> for PodRecord {
    fn default_for(uid: &str) -> Self {
        PodStatus::default_for(uid).into()
    }
}

impl DefaultFor<PodUid> for PodRecord {
    fn default_for(uid: &PodUid) -> Self {
        PodStatus::default_for(uid).into()
    }
}
