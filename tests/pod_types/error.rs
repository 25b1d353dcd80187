//! `PodError`: messages, causes, equality.

use super::*;
use std::error::Error;
use std::io;

fn chain(error: &PodError) -> Vec<String> {
    std::iter::successors(Some(error as &dyn Error), |&e| e.source())
        .map(ToString::to_string)
        .collect()
}

#[test]
fn the_cause_is_kept_as_it_is() {
    let error = PodError::with_source("no status", io::Error::from(io::ErrorKind::TimedOut));
    let copy = error.clone();
    let cause = copy.source().unwrap().downcast_ref::<io::Error>().unwrap();
    assert_eq!(cause.kind(), io::ErrorKind::TimedOut);
    assert!(std::ptr::addr_eq(cause, error.source().unwrap()));
    assert_eq!(chain(&error), ["no status", "timed out"]);
}

#[test]
fn equal_if_they_read_the_same() {
    let deep = || PodError::with_source("a", PodError::with_source("b", PodError::new("c")));
    assert_eq!(deep(), deep());
    assert_eq!(chain(&deep()), ["a", "b", "c"]);
    assert_eq!(
        PodError::with_source("a", "b"),
        PodError::with_source("a", PodError::new("b"))
    );
    assert_ne!(PodError::new("a"), PodError::new("b"));
    assert_ne!(PodError::new("a"), PodError::with_source("a", "b"));
    assert_ne!(deep(), PodError::with_source("a", "b"));
    assert_ne!(
        PodError::with_source("a", "b"),
        PodError::with_source("a", "c")
    );
}

#[test]
fn debug_shows_the_cause() {
    let text = format!("{:?}", PodError::with_source("a", PodError::new("b")));
    assert!(text.contains("\"a\"") && text.contains("\"b\""), "{text}");
}
