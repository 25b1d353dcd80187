//! What changed from one listing to the next.

use std::collections::BTreeMap;

use podcache::pod::{PodStatus, PodUid};

pub(crate) type Listing = BTreeMap<PodUid, PodStatus>;

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Diff {
    /// New, or not as it was.
    pub(crate) changed: Vec<PodUid>,
    /// As it was.
    pub(crate) confirmed: Vec<PodUid>,
    /// No longer there.
    pub(crate) gone: Vec<PodUid>,
}

pub(crate) fn diff(before: &Listing, now: &Listing) -> Diff {
    let mut diff = Diff::default();
    for (uid, pod) in now {
        let kind = match before.get(uid) {
            Some(known) if known == pod => &mut diff.confirmed,
            _ => &mut diff.changed,
        };
        kind.push(uid.clone());
    }
    let gone = before.keys().filter(|&uid| !now.contains_key(uid));
    diff.gone = gone.cloned().collect();
    diff
}

#[cfg(test)]
mod tests {
    use podcache::pod::{ContainerId, ContainerState, ContainerStatus};

    use super::*;
    use ContainerState::{Created, Exited, Running, Unknown};

    fn listing(pods: &[(&str, ContainerState)]) -> Listing {
        let pods = pods.iter().map(|&(uid, state)| {
            let container = ContainerStatus {
                state,
                ..ContainerStatus::new(ContainerId::default(), "c")
            };
            let status = PodStatus {
                container_statuses: vec![container],
                ..PodStatus::new(uid)
            };
            (PodUid::from(uid), status)
        });
        pods.collect()
    }

    #[test]
    fn every_pod_is_changed_confirmed_or_gone() {
        let before = listing(&[("ends", Running), ("stays", Running), ("vanishes", Running)]);
        let now = listing(&[("appears", Created), ("ends", Exited), ("stays", Running)]);
        let diff = diff(&before, &now);
        assert_eq!(diff.changed, ["appears", "ends"]);
        assert_eq!(diff.confirmed, ["stays"]);
        assert_eq!(diff.gone, ["vanishes"]);
    }

    #[test]
    fn an_exit_code_that_becomes_known_is_a_change() {
        let before = listing(&[("pod", Unknown)]);
        let mut now = listing(&[("pod", Exited)]);
        assert_eq!(diff(&before, &now).changed, ["pod"]);
        let before = now.clone();
        now.get_mut("pod").unwrap().container_statuses[0].exit_code = 1;
        assert_eq!(diff(&before, &now).changed, ["pod"]);
    }

    #[test]
    fn nothing_differs_from_itself() {
        let pods = listing(&[("a", Running), ("b", Created)]);
        let diff = diff(&pods, &pods);
        assert_eq!(diff.confirmed, ["a", "b"]);
        assert!(diff.changed.is_empty() && diff.gone.is_empty());
    }

    #[test]
    fn an_empty_node_has_lost_every_pod() {
        let diff = diff(&listing(&[("a", Running), ("b", Exited)]), &Listing::new());
        assert_eq!(diff.gone, ["a", "b"]);
        assert!(diff.changed.is_empty() && diff.confirmed.is_empty());
    }
}
