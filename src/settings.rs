//! What is chosen for a cache once, when it is built.

use std::sync::Arc;
use std::time::Duration;

use crate::WritePolicy;

#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    pub(crate) policy: WritePolicy,
    pub(crate) name: Option<Arc<str>>,
    pub(crate) max_future_skew: Option<Duration>,
}
