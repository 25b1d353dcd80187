//! The newest snapshot of X, or a wake-up when there is one newer than T.
mod raw;
