//! Why a pod's status could not be had.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// Why the status of a pod could not be had: a message and, maybe, what caused it.
///
/// It stands in the cache beside the status, so it must be cheap to clone and go anywhere: both
/// parts are shared. The cause is kept as it is and can be got at through [`Error::source`] and
/// `downcast_ref`.
///
/// # Equality
///
/// Two errors are equal if they read the same: their messages and those of all their causes. An
/// error that comes with every listing is then no change.
///
/// # Serde
///
/// A message and the list of its causes' messages. What is read back is equal to what was written;
/// its causes are texts.
///
/// # Examples
///
/// ```
/// use podcache::pod::PodError;
/// use std::{error::Error, io};
///
/// let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
/// let error = PodError::with_source("no status from the runtime", refused);
///
/// assert_eq!(error.to_string(), "no status from the runtime");
/// let cause = error.source().unwrap().downcast_ref::<io::Error>().unwrap();
/// assert_eq!(cause.kind(), io::ErrorKind::ConnectionRefused);
/// ```
#[derive(Clone)]
pub struct PodError {
    message: Arc<str>,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

impl PodError {
    /// An error that is its message.
    #[must_use]
    pub fn new(message: impl Into<Arc<str>>) -> Self {
        Self {
            message: message.into(),
            source: None,
        }
    }

    /// An error that another one caused.
    #[must_use]
    pub fn with_source(
        message: impl Into<Arc<str>>,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self {
            message: message.into(),
            source: Some(source.into().into()),
        }
    }

    /// The message, without its causes.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The causes, the nearest first.
    fn causes(&self) -> impl Iterator<Item = &(dyn Error + 'static)> {
        std::iter::successors(self.source(), |&e| e.source())
    }
}

impl fmt::Display for PodError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.message)
    }
}

impl fmt::Debug for PodError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PodError")
            .field("message", &self.message)
            .field("source", &self.source)
            .finish()
    }
}

impl Error for PodError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|e| e as _)
    }
}

impl PartialEq for PodError {
    fn eq(&self, other: &Self) -> bool {
        self.message == other.message
            && self
                .causes()
                .map(ToString::to_string)
                .eq(other.causes().map(ToString::to_string))
    }
}

impl Eq for PodError {}

impl From<&str> for PodError {
    fn from(message: &str) -> Self {
        Self::new(message)
    }
}

impl From<String> for PodError {
    fn from(message: String) -> Self {
        Self::new(message)
    }
}

#[cfg(feature = "serde")]
mod serde_impls {
    use super::PodError;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(rename = "PodError", rename_all = "camelCase")]
    struct Texts {
        message: String,
        #[serde(default)]
        causes: Vec<String>,
    }

    impl Serialize for PodError {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            Texts {
                message: self.message().into(),
                causes: self.causes().map(ToString::to_string).collect(),
            }
            .serialize(serializer)
        }
    }

    impl<'de> Deserialize<'de> for PodError {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let Texts { message, causes } = Texts::deserialize(deserializer)?;
            let source = causes.into_iter().rev().fold(None, |source, message| {
                Some(match source {
                    None => PodError::new(message),
                    Some(source) => PodError::with_source(message, source),
                })
            });
            Ok(match source {
                None => Self::new(message),
                Some::<PodError>(source) => Self::with_source(message, source),
            })
        }
    }
}
