//! Every public type can go where users take it, and none was forgotten here: the list is compared
//! with `public-api.txt`, which `cargo xtask api` compares with the sources.

use std::collections::BTreeSet;
use std::fmt::Debug;

use podcache::pod::*;
use podcache::*;
use static_assertions::{assert_impl_all, assert_not_impl_any};

#[derive(Debug, Clone, PartialEq, Eq)]
struct Val;

impl DefaultFor<u8> for Val {
    fn default_for(_: &u8) -> Self {
        Val
    }
}

trait Everywhere: Send + Sync + Unpin + Debug {}
impl<T: Send + Sync + Unpin + Debug> Everywhere for T {}

trait Data: Everywhere + Clone + PartialEq {}
impl<T: Everywhere + Clone + PartialEq> Data for T {}

/// Asserts the trait of each type, and keeps the names.
macro_rules! all {
    ($const:ident: $trait:path; $($name:ident = $type:ty,)+) => {
        $(assert_impl_all!($type: $trait);)+
        const $const: &[&str] = &[$(stringify!($name)),+];
    };
}

all! { EVERYWHERE: Everywhere;
    Builder = Builder<u8, Val>,
    Cache = Cache<u8, Val>,
    Change = Change<u8, Val>,
    Changed = Changed<'static, u8, Val>,
    Changes = Changes<u8, Val>,
    DefaultHasher = DefaultHasher,
    Diff = Diff<'static, u8, Val>,
    Entry = Entry<'static, Val>,
    Iter = Iter<'static, u8, Val, RandomState>,
    Keys = Keys<'static, u8, Val, RandomState>,
    RandomState = RandomState,
    ReadCache = ReadCache<u8, Val>,
    RelistSummary = RelistSummary,
    Snapshot = Snapshot<Val>,
    Stats = Stats,
    Subscription = Subscription<Val>,
    Timestamp = Timestamp,
    TimestampError = TimestampError,
    Tracker = Tracker<u8, Val>,
    View = View<u8, Val>,
    ViewIter = ViewIter<'static, u8, Val>,
    ViewReader = ViewReader<u8, Val>,
    WaitError = WaitError,
    WritePolicy = WritePolicy,
}

all! { PODS: Data;
    ContainerId = ContainerId,
    ContainerResources = ContainerResources,
    ContainerSpec = ContainerSpec,
    ContainerState = ContainerState,
    ContainerStatus = ContainerStatus,
    ContainerUser = ContainerUser,
    ExitCodes = ExitCodes,
    ExitCodesOperator = ExitCodesOperator,
    LinuxContainerUser = LinuxContainerUser,
    Mount = Mount,
    MountPropagation = MountPropagation,
    ParseContainerIdError = ParseContainerIdError,
    PodError = PodError,
    PodPhase = PodPhase,
    PodRecord = PodRecord,
    PodSpec = PodSpec,
    PodStatus = PodStatus,
    PodUid = PodUid,
    RestartAction = RestartAction,
    RestartPolicy = RestartPolicy,
    RestartRule = RestartRule,
    SandboxState = SandboxState,
    SandboxStatus = SandboxStatus,
}

// A guard belongs to its thread.
assert_impl_all!(Pinned<'static, u8, Val>: Debug);
assert_not_impl_any!(Pinned<'static, u8, Val>: Send, Sync);
const THREAD_BOUND: &[&str] = &["Pinned"];

// Handles are cheap to clone; a wait has one owner.
assert_impl_all!(Cache<u8, Val>: Clone, Default);
assert_impl_all!(ReadCache<u8, Val>: Clone);
assert_impl_all!(Snapshot<Val>: Clone, AsRef<Val>);
assert_impl_all!(Subscription<Val>: Future<Output = Result<Snapshot<Val>, WaitError>>);
assert_not_impl_any!(Subscription<Val>: Clone);
assert_impl_all!(WaitError: std::error::Error);
assert_impl_all!(TimestampError: std::error::Error);
assert_impl_all!(PodError: std::error::Error);

// What nobody can name must not be asked of users: a value needs neither `Clone` nor `Debug`, and a
// key not either.
struct Bare(#[allow(dead_code)] fn());
assert_impl_all!(Cache<Bare, Bare>: Send, Sync, Unpin, Clone);
assert_impl_all!(ReadCache<Bare, Bare>: Send, Sync, Unpin, Clone);
assert_impl_all!(Snapshot<Bare>: Send, Sync, Unpin, Clone);
assert_impl_all!(Subscription<Bare>: Send, Sync, Unpin);

// A value that must not be shared is not shared by wrapping it.
type Unshared = std::cell::Cell<u8>;
assert_not_impl_any!(Snapshot<Unshared>: Send, Sync);
assert_not_impl_any!(Subscription<Unshared>: Send, Sync);
assert_not_impl_any!(Entry<'static, Unshared>: Send, Sync);
assert_not_impl_any!(View<u8, Unshared>: Send, Sync);
assert_not_impl_any!(Change<u8, Unshared>: Send, Sync);

#[test]
fn every_public_type_is_asserted() {
    let listing = include_str!("../public-api.txt");
    let listed: BTreeSet<&str> = listing
        .lines()
        .filter_map(|line| {
            let types = ["pub struct ", "pub enum ", "pub union "];
            let rest = types.iter().find_map(|start| line.strip_prefix(start))?;
            rest.split(|c: char| !c.is_alphanumeric()).next()
        })
        .collect();
    let asserted: BTreeSet<&str> = [EVERYWHERE, PODS, THREAD_BOUND]
        .concat()
        .into_iter()
        .collect();
    assert_eq!(asserted, listed);
}
