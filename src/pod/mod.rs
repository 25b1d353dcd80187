//! The types that the kubelet caches: a pod's status as the container runtime reports it.
//!
//! The cache itself takes any key and value. These are the ones that it was made for, in the shape
//! that the kubelet gives them: [`PodCache`] maps a [`PodUid`] to a [`PodRecord`], which holds a
//! [`PodStatus`] with its [`ContainerStatus`]es and [`SandboxStatus`]es, or the [`PodError`] that
//! stood in the way, or both.
//!
//! # A lister and a worker
//!
//! One part of a program lists the runtime and sets what it finds. Others act on pods, and before
//! they act again they wait for a status that is newer than what they did:
//!
//! ```
//! use podcache::Timestamp;
//! use podcache::pod::{ContainerId, ContainerState, ContainerStatus, PodCache, PodStatus, PodUid};
//! use std::thread;
//!
//! let cache = PodCache::new();
//! let uid = PodUid::from("8f1c36a2");
//!
//! let worker = thread::spawn({
//!     let (cache, uid) = (cache.clone(), uid.clone());
//!     move || {
//!         let acted = Timestamp::now();
//!         // ... start the container "web" ...
//!         let record = cache.get_newer_than(&uid, acted).unwrap();
//!         let status = record.result().unwrap().unwrap();
//!         status.running_container_statuses().any(|c| c.name == "web")
//!     }
//! });
//!
//! # while cache.waiters() == 0 { thread::yield_now() }
//! // The time of a listing is the time before it.
//! let listed = Timestamp::now();
//! let web = ContainerStatus {
//!     state: ContainerState::Running,
//!     ..ContainerStatus::new(ContainerId::new("containerd", "4f2a9c"), "web")
//! };
//! let status = PodStatus {
//!     name: "shop".into(),
//!     namespace: "default".into(),
//!     container_statuses: vec![web],
//!     timestamp: listed,
//!     ..PodStatus::new(&uid)
//! };
//! cache.set(&uid, status.into(), listed);
//! cache.update_time(listed);
//!
//! assert!(worker.join().unwrap());
//! ```
//!
//! # A pod that nobody has heard of
//!
//! reads as a status with nothing but its UID: the kubelet's default, given here by [`DefaultFor`].
//! It is an answer like any other. A worker that waits for a pod until after a listing that did not
//! find it gets this, and knows that the pod is gone.
//!
//! ```
//! # use podcache::pod::PodCache;
//! let cache = PodCache::new();
//! let unknown = cache.get("8f1c36a2");
//!
//! assert!(!unknown.is_present());
//! assert_eq!(unknown.status.as_ref().unwrap().id, "8f1c36a2");
//! ```
//!
//! # Reading, sorting, changing
//!
//! A record that comes out of the cache is shared with everyone else who reads it. In the kubelet
//! that has gone wrong: one reader sorted the containers of a cached status in place while another
//! did the same, and containers were lost from it and others doubled ([#90216], [#117694]).
//!
//! Here a [`Snapshot`](crate::Snapshot) gives `&PodRecord` and nothing else, so the compiler rules
//! that out. What such code wants is still one call:
//!
//! * sorted: [`containers_by_creation`](PodStatus::containers_by_creation) sorts references;
//! * changed: [`edit`](PodRecord::edit) changes a copy. It copies all of the record, a few
//!   microseconds for a pod of ten containers; readers share snapshots and never copy.
//!
//! # Phase
//!
//! [`PodStatus::phase`] says whether a pod that was asked to run a [`PodSpec`] is pending, running
//! or done, by the kubelet's rules. Its documentation says which of them.
//!
//! # Writing them down
//!
//! All fields are public and all structs have a `Default` or a `new`. Write literals with `..` and
//! one of these at their end: fields will be added as Kubernetes adds them, and that is not counted
//! as a breaking change.
//!
//! With the feature `serde` all types can be serialized. Names are written as Kubernetes writes
//! them (`containerStatuses`, `"running"`, `"containerd://4f2a9c"`), but the whole is this crate's
//! own: Kubernetes has no JSON form of the runtime's pod status. Every field is written, so that
//! formats without names can be used too; a field that is missing reads as its default (but the
//! `message` of an error, the `action` of a restart rule and the `operator` of its exit codes have to
//! be there), and one that is not known is ignored.
//!
//! # What differs from the kubelet
//!
//! * A container says in which sandbox it was made, [`ContainerStatus::sandbox_id`]; the kubelet
//!   keeps a second list of the active sandbox's containers. [`PodStatus::active_container_statuses`]
//!   is that list.
//! * A time that has not come is [`Timestamp::ZERO`](crate::Timestamp::ZERO); in the kubelet, year 1.
//! * Resources are counted in thousandths of a core and in bytes, not in `resource.Quantity`.
//! * Mounts do not have the name that the kubelet marks as to be removed.
//!
//! [#90216]: https://github.com/kubernetes/kubernetes/pull/90216
//! [#117694]: https://github.com/kubernetes/kubernetes/issues/117694
//! [`DefaultFor`]: crate::DefaultFor

mod container;
mod container_id;
mod error;
mod mount;
mod phase;
mod record;
mod sandbox;
mod spec;
mod status;
mod uid;

pub use container::{
    ContainerResources, ContainerState, ContainerStatus, ContainerUser, LinuxContainerUser,
};
pub use container_id::{ContainerId, ParseContainerIdError};
pub use error::PodError;
pub use mount::{Mount, MountPropagation};
pub use phase::PodPhase;
pub use record::PodRecord;
pub use sandbox::{SandboxState, SandboxStatus};
pub use spec::{
    ContainerSpec, ExitCodes, ExitCodesOperator, PodSpec, RestartAction, RestartPolicy, RestartRule,
};
pub use status::PodStatus;
pub use uid::PodUid;

use crate::Cache;

/// The kubelet's pod status cache.
pub type PodCache = Cache<PodUid, PodRecord>;
