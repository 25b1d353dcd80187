//! Recipes, each of them a program that runs.
//!
//! 1. [A lister and its workers](#a-lister-and-its-workers)
//! 2. [Read your writes](#read-your-writes)
//! 3. [A status page for everybody](#a-status-page-for-everybody)
//! 4. [In async code](#in-async-code)
//! 5. [What is it doing?](#what-is-it-doing)
//! 6. [Coming from `RwLock<HashMap>` and a `Condvar`](#coming-from-rwlockhashmap-and-a-condvar)
//! 7. [Coming from `tokio::sync::watch` for each key](#coming-from-tokiosyncwatch-for-each-key)
//!
//! # A lister and its workers
//!
//! The kubelet's arrangement. One thread lists everything that runs, about once a second, and one
//! worker per pod acts on what is found, whenever there is something newer than what it acted on.
//!
//! Two times make it right. The lister takes its time *before* it lists: what it finds is at least
//! that new. The worker takes its time *before* it acts: what it sees next is from after the action
//! was begun.
//!
//! ```
//! use std::thread;
//! use podcache::{Cache, DefaultFor, Timestamp, WaitError, WritePolicy};
//!
//! #[derive(Clone, Debug, PartialEq)]
//! enum Status { Unknown, Running { restarts: u32 }, Exited(i32) }
//!
//! impl DefaultFor<String> for Status { fn default_for(_: &String) -> Self { Status::Unknown } }
//! impl DefaultFor<str> for Status { fn default_for(_: &str) -> Self { Status::Unknown } }
//!
//! # /// What "runs": three looks at it.
//! # fn list(n: usize) -> Vec<(String, Status)> {
//! #     let web = Status::Running { restarts: n as u32 };
//! #     let job = match n { 0 => Status::Running { restarts: 0 }, _ => Status::Exited(0) };
//! #     [("web", web), ("job", job)].map(|(name, status)| (name.to_owned(), status)).into()
//! # }
//! let cache: Cache<String, Status> = Cache::builder()
//!     .write_policy(WritePolicy::Monotonic) // a late write does not undo a newer one
//!     .build();
//!
//! thread::scope(|s| {
//!     let worker = |pod: &'static str| {
//!         let reader = cache.read_only(); // does not keep the cache open
//!         move || {
//!             let mut acted = Timestamp::ZERO;
//!             let mut seen = 0;
//!             loop {
//!                 let status = match reader.get_newer_than(pod, acted) {
//!                     Ok(status) => status,
//!                     Err(WaitError::Closed) => return seen,
//!                     Err(error) => unreachable!("there is no deadline: {error}"),
//!                 };
//!                 acted = Timestamp::now();
//!                 // … bring the pod to what it should be, given its status …
//!                 seen += 1;
//!                 if let Status::Exited(_) = *status {
//!                     return seen;
//!                 }
//!             }
//!         }
//!     };
//!     let workers = ["web", "job"].map(|pod| s.spawn(worker(pod)));
//!
//!     for n in 0..3 {
//!         let time = Timestamp::now();
//!         let summary = cache.relist(time, list(n));
//!         assert_eq!(summary.refused, 0);
//!         // … sleep for a second …
//!     }
//!     cache.close(); // or drop the last handle: the workers end
//!     for worker in workers {
//!         assert!(worker.join().unwrap() >= 1);
//!     }
//! });
//! ```
//!
//! A pod that cannot be read must not be vouched for by the pods that can:
//! [`relist_results`](crate::Cache::relist_results) keeps its record, gives its error back, and
//! leaves the global time where it is.
//!
//! # Read your writes
//!
//! After an action, wait for a status from after it instead of for some time. Whoever kills a
//! container must not take the status from before the kill for its result.
//!
//! ```
//! # use std::{thread, time::Duration};
//! # use podcache::{Cache, DefaultFor, Timestamp};
//! # #[derive(Debug, PartialEq)] enum Status { Unknown, Running, Exited(i32) }
//! # impl DefaultFor<u64> for Status { fn default_for(_: &u64) -> Self { Status::Unknown } }
//! # let cache = Cache::<u64, Status>::new();
//! # cache.relist(Timestamp::now(), [(7, Status::Running)]);
//! # thread::scope(|s| {
//! # let kill = |_| _ = s.spawn(|| {
//! #     cache.relist(Timestamp::now() + Duration::from_nanos(1), [(7, Status::Exited(137))]);
//! # });
//! let acted = Timestamp::now();
//! kill(7);
//! let status = cache.get_newer_than_timeout(&7, acted, Duration::from_secs(60))?;
//! assert_eq!(*status, Status::Exited(137));
//! # Ok::<(), podcache::WaitError>(()) }).unwrap();
//! ```
//!
//! What it gets is the record as it was when the wait was satisfied, even if the pod is deleted the
//! moment after: a last exit code reaches whoever waited for it.
//!
//! # A status page for everybody
//!
//! A page of the whole node wants all records of about one instant, sorted, without a lock and
//! without a copy for each request. That is a [`View`](crate::View): built by the first who asks
//! after an `update_time`, and then the same for all until the next.
//!
//! ```
//! use std::fmt::Write as _;
//! use std::io::{BufRead, BufReader, Read, Write};
//! use std::net::{TcpListener, TcpStream};
//! use podcache::{ViewReader, Timestamp};
//! # use podcache::{Cache, DefaultFor};
//! # #[derive(Debug, PartialEq)] enum Phase { Unknown, Running }
//! # impl DefaultFor<String> for Phase { fn default_for(_: &String) -> Self { Phase::Unknown } }
//!
//! fn serve(mut client: TcpStream, views: &mut ViewReader<String, Phase>) -> std::io::Result<()> {
//!     let mut lines = BufReader::new(client.try_clone()?).lines();
//!     while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
//!
//!     let view = views.load(); // no guard, no lock: it may be kept while the client dawdles
//!     let mut page = format!("as of {}, {} pods\n", view.timestamp(), view.len());
//!     for (pod, phase) in &**view {
//!         let since = phase.modified().unwrap_or_default();
//!         writeln!(page, "{pod}\t{:?}\tsince {since}", phase.value()).expect("a String takes all");
//!     }
//!     write!(client, "HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n{page}", page.len())
//! }
//!
//! # let cache = Cache::<String, Phase>::new();
//! # let time = Timestamp::from_nanos(1_000);
//! # cache.relist(time, ["b", "a"].map(|pod| (pod.to_owned(), Phase::Running)));
//! let listener = TcpListener::bind("127.0.0.1:0")?;
//! # let mut asking = TcpStream::connect(listener.local_addr()?)?;
//! # asking.write_all(b"GET / HTTP/1.0\r\n\r\n")?;
//! let mut views = cache.view_reader(); // one for each thread that serves
//! let (client, _) = listener.accept()?;
//! serve(client, &mut views)?;
//! # let mut page = String::new();
//! # asking.read_to_string(&mut page)?;
//! # assert!(page.ends_with("a\tRunning\tsince 1970-01-01T00:00:00.000001000Z\n\
//! #                         b\tRunning\tsince 1970-01-01T00:00:00.000001000Z\n"), "{page}");
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! What changed since the last page is [`View::diff`](crate::View::diff); who wants every change as
//! it comes reads [`changes`](crate::Cache::changes).
//!
//! # In async code
//!
//! [`subscribe`](crate::Cache::subscribe) gives a future that borrows nothing: it is registered when
//! it is made, so nothing is missed between making and polling it, and it can be spawned, selected
//! and timed out. Dropping it gives up the wait, at any point.
//!
//! ```
//! # use std::time::Duration;
//! # use podcache::{Cache, DefaultFor, Timestamp, WaitError};
//! # #[derive(Debug, PartialEq)] struct Status(u32);
//! # impl DefaultFor<u64> for Status { fn default_for(_: &u64) -> Self { Status(0) } }
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
//! # runtime.block_on(async {
//! let cache = Cache::<u64, Status>::new();
//! let now = Timestamp::now();
//!
//! // Registered here, awaited on some other thread.
//! let task = tokio::spawn(cache.subscribe(&1, now));
//! cache.set(&1, Status(1), now + Duration::from_nanos(1));
//! assert_eq!(task.await.unwrap()?.value(), &Status(1));
//!
//! // A time limit of the runtime's: the wait is dropped with it.
//! let limit = Duration::from_millis(1);
//! assert!(tokio::time::timeout(limit, cache.subscribe(&2, now)).await.is_err());
//! assert_eq!(cache.waiters(), 0);
//!
//! // Whichever comes first. By reference, the other one goes on waiting.
//! let (mut first, mut second) = (cache.subscribe(&3, now), cache.subscribe(&4, now));
//! cache.set(&4, Status(4), now + Duration::from_nanos(1));
//! let came = tokio::select! {
//!     status = &mut first => status?,
//!     status = &mut second => status?,
//! };
//! assert_eq!((came.value(), cache.waiters()), (&Status(4), 1));
//! # Ok::<(), WaitError>(()) }).unwrap();
//! ```
//!
//! A future that borrows the cache and registers only when it is first polled is an `async` block
//! around it: `async { cache.subscribe(key, min).await }`.
//!
//! The blocking waits put their *thread* to sleep, and with it every task of its executor. A
//! [`Pinned`](crate::Pinned) is not to be held across an `.await`, and the compiler sees to it where
//! tasks must be `Send`.
//!
//! # What is it doing?
//!
//! [`stats`](crate::Cache::stats) tells at any time, without having cost the readers anything.
//!
//! ```
//! # use std::time::Duration;
//! # use podcache::{Cache, DefaultFor, Timestamp};
//! # struct Status;
//! # impl DefaultFor<u64> for Status { fn default_for(_: &u64) -> Self { Status } }
//! let cache: Cache<u64, Status> = Cache::builder()
//!     .name("node-7") // in `Debug`, in spans and events, and as the label of metrics
//!     .max_future_skew(Duration::from_secs(300)) // a clock that is wrong does not poison a record
//!     .build();
//! cache.update_time(Timestamp::now());
//! assert!(!cache.set(&1, Status, Timestamp::now() + Duration::from_secs(3600)));
//!
//! let stats = cache.stats();
//! assert_eq!(stats.refused_future, 1);
//! // Is the lister alive? Is somebody stuck?
//! assert!(stats.global_time_age.is_some_and(|age| age < Duration::from_secs(60)));
//! assert!(stats.longest_wait.is_none());
//! ```
//!
//! With the feature `metrics`, `stats.publish()` hands all of it to the recorder of the `metrics`
//! facade, and the latency of waits is a histogram. With `tracing`, waits are spans and refusals are
//! events.
//!
//! # Coming from `RwLock<HashMap>` and a `Condvar`
//!
//! The usual beginning: a map under a lock, a condition variable that is notified on each write, and
//! waiters that look again whenever they are woken.
//!
//! ```
//! use std::collections::HashMap;
//! use std::sync::{Condvar, Mutex, RwLock};
//!
//! struct Table {
//!     map: RwLock<HashMap<String, (u32, u64)>>, // a value, and when it was set
//!     writes: Mutex<u64>,
//!     written: Condvar,
//! }
//!
//! impl Table {
//!     fn set(&self, key: &str, value: u32, time: u64) {
//!         self.map.write().unwrap().insert(key.to_owned(), (value, time));
//!         *self.writes.lock().unwrap() += 1;
//!         self.written.notify_all(); // everybody, whatever they wait for
//!     }
//!
//!     fn newer_than(&self, key: &str, min: u64) -> u32 {
//!         let mut writes = self.writes.lock().unwrap();
//!         loop {
//!             let found = self.map.read().unwrap().get(key).copied(); // unlocked before the wait
//!             match found {
//!                 Some((value, time)) if time > min => return value,
//!                 // A value that came and went meanwhile is missed.
//!                 _ => writes = self.written.wait(writes).unwrap(),
//!             }
//!         }
//!     }
//! }
//! # let table = Table { map: RwLock::default(), writes: Mutex::default(), written: Condvar::new() };
//! # std::thread::scope(|s| {
//! #     let waiter = s.spawn(|| table.newer_than("pod", 5));
//! #     table.set("pod", 7, 6);
//! #     assert_eq!(waiter.join().unwrap(), 7);
//! # });
//! ```
//!
//! becomes
//!
//! ```
//! use podcache::{Cache, DefaultFor, Timestamp};
//!
//! struct Value(u32);
//! impl DefaultFor<String> for Value { fn default_for(_: &String) -> Self { Value(0) } }
//! impl DefaultFor<str> for Value { fn default_for(_: &str) -> Self { Value(0) } }
//!
//! let cache = Cache::<String, Value>::new();
//! let (five, six) = (Timestamp::from_nanos(5), Timestamp::from_nanos(6));
//! std::thread::scope(|s| {
//!     let waiter = s.spawn(|| cache.get_newer_than("pod", five));
//!     cache.set("pod", Value(7), six);
//!     assert_eq!(waiter.join().unwrap().unwrap().0, 7);
//! });
//! ```
//!
//! | there | here |
//! |---|---|
//! | `map.read().get(key).cloned()` | [`cache.get(key)`](crate::Cache::get): a [`Snapshot`](crate::Snapshot), no clone of the value |
//! | many reads under one `read()` | [`cache.pin()`](crate::Cache::pin) |
//! | iterating under `read()`, writers wait | [`cache.iter()`](crate::Cache::iter) (weakly consistent), [`cache.view()`](crate::Cache::view) (one map for all) |
//! | `map.write().insert(..)` and `notify_all()` | [`cache.set(..)`](crate::Cache::set): wakes who waits for this key and time, nobody else |
//! | `wait_while` | [`get_newer_than`](crate::Cache::get_newer_than) |
//! | `wait_timeout_while` | [`get_newer_than_timeout`](crate::Cache::get_newer_than_timeout) |
//! | a "synced at" field beside the map | [`update_time`](crate::Cache::update_time) |
//! | `map.write().entry(..).and_modify(..)` | nothing: a value is replaced whole, by the one who saw it |
//!
//! What is different: a wait that is satisfied gets *the record that satisfied it*, not what is
//! there when its thread comes to look. A key that is not there is no `Option` but the value that
//! your [`DefaultFor`](crate::DefaultFor) says.
//!
//! # Coming from `tokio::sync::watch` for each key
//!
//! A map of `watch` channels: `borrow` to read, `changed` to wait. It needs an entry before anybody
//! can wait, keeps a channel for every key that was ever asked for, and tells that there was a
//! change, not whether it is new enough.
//!
//! ```
//! use std::collections::HashMap;
//! use tokio::sync::watch;
//!
//! # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
//! # runtime.block_on(async {
//! let mut table: HashMap<&str, watch::Sender<(u32, u64)>> = HashMap::new();
//! let sender = table.entry("pod").or_insert_with(|| watch::channel((0, 0)).0);
//! let mut receiver = sender.subscribe();
//!
//! let waiter = tokio::spawn(async move {
//!     let found = receiver.wait_for(|(_, time)| *time > 5).await.unwrap();
//!     found.0
//! });
//! sender.send_replace((7, 6));
//! assert_eq!(waiter.await.unwrap(), 7);
//! # });
//! ```
//!
//! becomes
//!
//! ```
//! # use podcache::{Cache, DefaultFor, Timestamp};
//! # struct Value(u32);
//! # impl DefaultFor<String> for Value { fn default_for(_: &String) -> Self { Value(0) } }
//! # impl DefaultFor<str> for Value { fn default_for(_: &str) -> Self { Value(0) } }
//! # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
//! # runtime.block_on(async {
//! let cache = Cache::<String, Value>::new();
//! let (five, six) = (Timestamp::from_nanos(5), Timestamp::from_nanos(6));
//!
//! let waiter = tokio::spawn(cache.subscribe("pod", five));
//! cache.set("pod", Value(7), six);
//! assert_eq!(waiter.await.unwrap().unwrap().0, 7);
//! # });
//! ```
//!
//! | there | here |
//! |---|---|
//! | `receiver.borrow()`, which holds a lock | [`cache.get(key)`](crate::Cache::get), or a [`Tracker`](crate::Tracker) for one key again and again |
//! | `sender.send_replace(value)` | [`cache.set(key, value, time)`](crate::Cache::set) |
//! | `receiver.wait_for(newer)` | [`cache.subscribe(key, min)`](crate::Cache::subscribe) |
//! | `receiver.changed()` in a loop | `subscribe(key, seen)` with the newest time seen; or [`cache.changes()`](crate::Cache::changes) for all keys |
//! | `RecvError` when the sender is dropped | [`WaitError::Closed`](crate::WaitError::Closed) when the last [`Cache`](crate::Cache) is |
//! | removing channels that nobody uses | nothing to do: a key without a record and without waits has no place |
