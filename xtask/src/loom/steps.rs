//! The steps of the protocol that a model must miss when they are left out, and the mistakes that
//! such caches are made with (`--filter mistake`).
//!
//! Each is a few edits of the sources. In what is put in, `$on` asks whether this mutant is the one.
//! A text that is not found exactly once stops the run: the table follows the sources.

/// A step.
pub(crate) struct Step {
    pub(crate) name: &'static str,
    /// What the step is for.
    pub(crate) what: &'static str,
    /// The file below `src`, the text in it, what is put in its place.
    pub(crate) edits: &'static [(&'static str, &'static str, &'static str)],
}

pub(crate) const STEPS: &[Step] = &[
    Step {
        name: "finishing a hand-over before the swap",
        what: "a move gives a result to whom the last one named: no waiter is hostage to a stopped thread",
        edits: &[(
            "raw/node.rs",
            "let claimed = aux.offer(self, ended);
            inherited",
            "let claimed = if $on { aux.fate.is_claimed() } else { aux.offer(self, ended) };
            inherited",
        )],
    },
    Step {
        name: "a deleted slot that was left for a feed goes",
        what: "whoever comes last of a reader and who left a bare slot retires it",
        edits: &[(
            "raw/writes.rs",
            "if node.is_some_and(|node| !node.is_record() && node.aux().is_none()) {",
            "if !$on && node.is_some_and(|node| !node.is_record() && node.aux().is_none()) {",
        )],
    },
    Step {
        name: "a feed that was left takes nothing",
        what: "a late push to a feed that its reader has left takes back its mark",
        edits: &[(
            "raw/feed.rs",
            "feed.swap_top(left())",
            "feed.swap_top(if $on { ptr::null_mut() } else { left() })",
        ), (
            "raw/feed.rs",
            "debug_assert!(self.top.load(Ordering::Relaxed) == left());",
            "if $on {
            self.take().iter().for_each(|slot| self.clear(slot));
        }",
        )],
    },
    Step {
        name: "retiring",
        what: "a slot with nothing to remember goes",
        edits: &[(
            "raw/writes.rs",
            "if !node.is_record() && aux.proposal.is_none() {",
            "if !$on && !node.is_record() && aux.proposal.is_none() {",
        )],
    },
    Step {
        name: "helping to unlink",
        what: "who meets a retired slot takes it out of the index",
        edits: &[("raw/cache.rs", "if node.is_none() {", "if node.is_none() && !$on {")],
    },
    Step {
        name: "tidying an opened slot",
        what: "a bare slot that was not used after all goes",
        edits: &[(
            "raw/writes.rs",
            "if let Some(slot) = self.opened.take() {",
            "if let Some(slot) = self.opened.take().filter(|_| !$on) {",
        )],
    },
    Step {
        name: "mistake: strict wake",
        what: "a registered waiter is woken by an equal time",
        edits: &[
            ("raw/node.rs", "if time >= self.list.greatest() {", "if time > self.list.greatest() || (!$on && time == self.list.greatest()) {"),
            ("raw/node.rs", "if time < self.list.least() {", "if time < self.list.least() || ($on && time == self.list.least()) {"),
            ("raw/node.rs", "let to = if waiter.min <= time {", "let to = if waiter.min < time || (!$on && waiter.min == time) {"),
        ],
    },
    Step {
        name: "mistake: cancel loses a neighbour",
        what: "who gives up takes nothing from the others",
        edits: &[(
            "raw/node.rs",
            "let dead = self.dead + 1;",
            "if $on {
            return Waiters::none();
        }
        let dead = self.dead + 1;",
        )],
    },
    Step {
        name: "throwing out the dead loses one",
        what: "who gives up takes nothing from the others",
        edits: &[(
            "raw/node.rs",
            "let mut living = List::EMPTY;
        for waiter in self.list.iter().filter(|waiter| waiter.is_waiting()) {",
            "let mut living = List::EMPTY;
        for waiter in self.list.iter().filter(|waiter| waiter.is_waiting()).skip(usize::from($on)) {",
        )],
    },
    Step {
        name: "mistake: observed kept across a set",
        what: "a set sets both times",
        edits: &[(
            "raw/writes.rs",
            "let node = new.take().expect(\"not stored yet\");
            let node = if",
            "let mut node = new.take().expect(\"not stored yet\");
            if $on && old.is_record() {
                Arc::get_mut(&mut node).expect(\"not published\").observed = old.observed;
            }
            let node = if",
        )],
    },
    Step {
        name: "deciding a proposal by the clock",
        what: "a monotonic set counts only if the global time has not passed it when it is there",
        edits: &[(
            "raw/cache.rs",
            "let in_time = self.clock.tick(guard).time <= proposal.time;",
            "let in_time = $on || self.clock.tick(guard).time <= proposal.time;",
        )],
    },
    Step {
        name: "putting back what a refused proposal replaced",
        what: "a refused set changes nothing",
        edits: &[(
            "raw/cache.rs",
            "if standing == Standing::Refused && slot.put_back(node.as_ptr(), proposal.before.as_ptr()) {",
            "if standing == Standing::Refused && !$on && slot.put_back(node.as_ptr(), proposal.before.as_ptr()) {",
        )],
    },
    Step {
        name: "a tombstone outlives the record",
        what: "a late set does not bring a deleted key back",
        edits: &[(
            "raw/writes.rs",
            "let tomb = Some(old.newest()).filter(|time| monotonic && *time > tick.time);",
            "let tomb = Some(old.newest()).filter(|time| !$on && monotonic && *time > tick.time);",
        )],
    },
    Step {
        name: "a tombstone that was overtaken goes",
        what: "what is remembered of a deleted key is dropped once the global time has reached it",
        edits: &[(
            "raw/writes.rs",
            "(self.clock.tick(guard).time >= tomb).then(",
            "(!$on && self.clock.tick(guard).time >= tomb).then(",
        )],
    },
    Step {
        name: "freezing the old words",
        what: "no writer changes a bucket that is being migrated",
        edits: &[("raw/index.rs", "*word = freeze(&prev.buckets[i]);", "*word = if $on { load(&prev.buckets[i]) } else { freeze(&prev.buckets[i]) };")],
    },
    Step {
        name: "reading on in the old table",
        what: "a reader in a migration finds what is not migrated yet",
        edits: &[(
            "raw/index.rs",
            "        let mut word = load(table.bucket(hash));
        if word.is_uninit() {
            word = table.in_migration(hash).1;
        }",
            "        let mut word = load(table.bucket(hash));
        if word.is_uninit() && !$on {
            word = table.in_migration(hash).1;
        }",
        )],
    },
    Step {
        name: "migrating the whole unit before a release",
        what: "the old table does not lead to what is freed",
        edits: &[("raw/index.rs", "self.migrate_for(gone.hash);", "if !$on { self.migrate_for(gone.hash); }")],
    },
    Step {
        name: "mistake: subscribe without the second look",
        what: "a wait that is registered while update_time or close passes by asks anew",
        edits: &[(
            "raw/waits.rs",
            "fence(Ordering::SeqCst);
            if !ptr::eq(tick, self.clock.tick(guard)) {",
            "fence(Ordering::SeqCst);
            if !$on && !ptr::eq(tick, self.clock.tick(guard)) {",
        )],
    },
    Step {
        name: "mistake: close misses who is just registering",
        what: "a wait that is registered while close passes by ends",
        edits: &[(
            "raw/waits.rs",
            "return Some(Wait::over(tick, node, min));",
            "return Some(
                    Wait::over(tick, node, min)
                        .filter(|over| !($on && matches!(over, Wait::Over(Outcome::Closed)))),
                );",
        )],
    },
    Step {
        name: "listing before the swap",
        what: "who finds a waiter's node can rely on its listing",
        edits: &[
            (
                "raw/waits.rs",
                "if inherited.listing.is_none() {",
                "let unlisted = $on && inherited.listing.is_none();
            if unlisted {
                inherited.listing = Some(super::waiting::Listing::of(slot.hash()));
            }
            if inherited.listing.is_none() {",
            ),
            (
                "raw/waits.rs",
                "ready.used(new);",
                "ready.used(new);
            if unlisted {
                let listing = new.and_then(Current::listing).expect(\"listed\");
                self.waiting.put(&slot.to_arc(), listing, guard);
            }",
            ),
            (
                "raw/waiting.rs",
                "impl Listing {",
                "impl Listing {
    pub(crate) fn of(hash: u64) -> Arc<Self> {
        Arc::new(Listing { gone: AtomicBool::new(false), shard: hash as usize % SHARDS })
    }
",
            ),
            (
                "raw/waiting.rs",
                "impl<T> WaitingSet<T> {",
                "impl<T> WaitingSet<T> {
    pub(crate) fn put(&self, slot: &Arc<T>, listing: &Arc<Listing>, guard: &Guard) {
        self.change(listing.shard, guard, |roll| {
            let (members, gone) = roll.map_or((List::EMPTY, 0), |r| (r.members.clone(), r.gone));
            let member = Member { listing: Arc::clone(listing), slot: Arc::clone(slot) };
            Some(Roll { members: members.push(member), gone })
        });
    }
",
            ),
            ("raw/waits.rs", "use super::slot::Slot;", "use super::index::Entry;\nuse super::slot::Slot;"),
        ],
    },
    Step {
        name: "finishing the own hand-over of set",
        what: "who is named is told before set returns",
        edits: &[(
            "raw/writes.rs",
            "later.hand_over(node);
                    Some(true)",
            "if !$on {
                        later.hand_over(node);
                    }
                    Some(true)",
        )],
    },
    Step {
        name: "claiming from the waiter's side",
        what: "a wait that is named is ready for its owner even if the caller was stopped",
        edits: &[("raw/waits.rs", "        let guard = pin();
        if waiter.is_waiting() {", "        let guard = pin();
        if waiter.is_waiting() && !$on {")],
    },
    Step {
        name: "mistake: wake and look again",
        what: "a waiter gets the snapshot that woke it, not what is there when it looks",
        edits: &[
            (
                "raw/waits.rs",
                "    fn cancel(&self, waiter: &Waiter<V>);",
                "    fn cancel(&self, waiter: &Waiter<V>);
    /// The record as it is now.
    fn look_again(&self, waiter: &Waiter<V>) -> Option<Arc<super::node::Node<V>>>;",
            ),
            (
                "raw/waits.rs",
                "    fn cancel(&self, waiter: &Waiter<V>) {",
                "    fn look_again(&self, waiter: &Waiter<V>) -> Option<Arc<super::node::Node<V>>> {
        let guard = pin();
        let slot = unsafe { Shared::new(waiter.slot.cast::<Slot<K, V>>()) }?;
        self.current(slot, &guard).filter(|node| node.is_record()).map(Current::to_arc)
    }

    fn cancel(&self, waiter: &Waiter<V>) {",
            ),
            (
                "subscription.rs",
                "        home.upgrade()?.claim(waiter);
        waiter.outcome()
    })",
                "        home.upgrade()?.claim(waiter);
        waiter.outcome()
    }).map(|outcome| match outcome {
        Outcome::Snapshot(_) if $on => match home.upgrade().and_then(|home| home.look_again(waiter)) {
            Some(node) => Outcome::Snapshot(node),
            None => outcome,
        },
        outcome => outcome,
    })",
            ),
        ],
    },
    Step {
        name: "mistake: non-strict entry by the record",
        what: "on entry, equal is not newer",
        edits: &[("raw/cache.rs", "record.newest() > min)", "record.newest() > min || $on && record.newest() == min)")],
    },
    Step {
        name: "mistake: non-strict entry by the global time",
        what: "on entry, equal is not newer",
        edits: &[("raw/cache.rs", "let fresh = tick.time > min ||", "let fresh = tick.time > min || $on && tick.time == min && min > 0 ||")],
    },
    Step {
        name: "time and record at one instant, to read",
        what: "an answer that rests on both holds at one instant",
        edits: &[("raw/cache.rs", "if std::ptr::eq(tick, again) {", "if $on || std::ptr::eq(tick, again) {")],
    },
    Step {
        name: "time and record at one instant, to register",
        what: "an answer that rests on both holds at one instant",
        edits: &[(
            "raw/waits.rs",
            "if !ptr::eq(tick, self.clock.tick(guard)) {
                return None;
            }",
            "if !ptr::eq(tick, self.clock.tick(guard)) && !$on {
                return None;
            }",
        )],
    },
    Step {
        name: "the waker's second look",
        what: "a result that came before the waker is found",
        edits: &[(
            "subscription.rs",
            "            outcome = outcome_of(waiter, home);
        }",
            "            if !$on {
                outcome = outcome_of(waiter, home);
            }
        }",
        )],
    },
    Step {
        name: "the place of a waker is free",
        what: "nobody is still at the place that a waker is put in",
        edits: &[(
            "raw/bell.rs",
            "if self.free.load(Ordering::Acquire) {",
            "if self.free.load(Ordering::Acquire) || $on {",
        )],
    },
    Step {
        name: "the last waker counts",
        what: "a re-poll with another waker replaces the first",
        edits: &[(
            "raw/bell.rs",
            "before.take_if(|before| before.will_wake(waker));",
            "before.take_if(|before| $on || before.will_wake(waker));",
        )],
    },
    Step {
        name: "the waker goes with its wait",
        what: "a dropped subscription drops its waker at once",
        edits: &[(
            "subscription.rs",
            "let waker = waiter.bell.withdraw_waker();",
            "let waker = (!$on).then(|| waiter.bell.withdraw_waker());",
        )],
    },
    Step {
        name: "waking a parked thread",
        what: "who sleeps is woken",
        edits: &[("raw/bell.rs", "if before & (PARKED | WOKEN) == PARKED {", "if !$on && before & (PARKED | WOKEN) == PARKED {")],
    },
    Step {
        name: "mistake: publish after hand-over",
        what: "a waiter is not told before the record is there",
        edits: &[
            (
                "raw/writes.rs",
                "inherited.waiters = rest;
                let aux = Aux {
                    handed: Handed::to(meant, None),
                    proposal:",
                "inherited.waiters = rest;
                if $on {
                    for waiter in meant.iter() {
                        waiter.offer(Outcome::Snapshot(Arc::clone(&node)));
                    }
                }
                let aux = Aux {
                    handed: Handed::to(meant, None),
                    proposal:",
            ),
            (
                "raw/node.rs",
                "let node = Arc::get_mut(node).expect(\"an unpublished node has one owner\");",
                "let node = if $on { unsafe { &mut *Arc::as_ptr(node).cast_mut() } } else { Arc::get_mut(node).expect(\"an unpublished node has one owner\") };",
            ),
        ],
    },
    Step {
        name: "sealing before the swap",
        what: "waiters that a successor carries on are not claimed where they were",
        edits: &[(
            "raw/node.rs",
            "&& aux.fate.seal()",
            "&& ($on || aux.fate.seal())",
        )],
    },
    Step {
        name: "claimed waiters are not carried on",
        what: "who is claimed is served by the claim",
        edits: &[(
            "raw/node.rs",
            "inherited.waiters = aux.waiters.clone();
        }",
            "inherited.waiters = aux.waiters.clone();
        } else if $on {
            inherited.waiters = aux.waiters.clone();
        }",
        )],
    },
    Step {
        name: "serving the claimed",
        what: "a move gives a result to whom a claimer left: no waiter is hostage to a stopped thread",
        edits: &[(
            "raw/node.rs",
            "(aux.is_handing() || aux.fate.is_claimed()).then_some(aux)",
            "(aux.is_handing() || !$on && aux.fate.is_claimed()).then_some(aux)",
        )],
    },
    Step {
        name: "threads are told after deciding",
        what: "who is woken finds the result",
        edits: &[
            (
                "raw/waiter.rs",
                "                if waiter.is_waiting() {
                    let snapshot",
                "                if $on {
                    waiter.bell.ring_threads();
                }
                if waiter.is_waiting() {
                    let snapshot",
            ),
            (
                "raw/waiter.rs",
                "                waiter.bell.ring_threads();
            }
        }
        claimed",
                "                if !$on {
                    waiter.bell.ring_threads();
                }
            }
        }
        claimed",
            ),
        ],
    },
    Step {
        name: "tasks are told after deciding",
        what: "who is woken finds the result",
        edits: &[
            (
                "raw/waiter.rs",
                "        let claimed = self.fate.is_claimed();
        let handed = self.handed.as_ref();",
                "        let claimed = self.fate.is_claimed();
        if $on {
            for waiter in self.told(claimed).flat_map(List::iter) {
                waiter.bell.ring_task();
            }
        }
        let handed = self.handed.as_ref();",
            ),
            (
                "raw/waiter.rs",
                "for waiter in self.told(claimed).flat_map(List::iter) {
            panics.catch",
                "for waiter in self.told(claimed).flat_map(List::iter).filter(|_| !$on) {
            panics.catch",
            ),
        ],
    },
];
