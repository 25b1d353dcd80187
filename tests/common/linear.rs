//! A linearizability checker after Wing and Gong, with Lowe's memory of the states already tried.
//!
//! A history is explained if its operations can be put into an order that keeps real time (what had
//! returned before another was called comes first) and in which the sequential model gives every
//! recorded result. Two operations are wider than one instant: `update_time` moves the time (or
//! `close` shuts the door) at one instant, and then serves the waits that it names at one instant
//! each, all of them before it returns. It owes that to those which were registered before; it may do
//! so for those that come while it is under way.

use std::collections::HashSet;

use podcache::WritePolicy;

use super::model::{Model, Outcome, Seen, Wait};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Get {
        key: u8,
        got: Seen,
    },
    TryGetNewerThan {
        key: u8,
        min: u64,
        got: Option<Seen>,
    },
    Contains {
        key: u8,
        got: bool,
    },
    Set {
        key: u8,
        value: u64,
        ts: u64,
        stored: bool,
    },
    SetObservedTime {
        key: u8,
        ts: u64,
    },
    Delete {
        key: u8,
        was: bool,
    },
    DeleteAt {
        key: u8,
        ts: u64,
        was: bool,
    },
    UpdateTime {
        ts: u64,
    },
    GlobalTime {
        got: u64,
    },
    Close,
    /// Registers the wait, or ends it at once.
    Subscribe {
        wait: usize,
        key: u8,
        min: u64,
    },
    /// What the wait has come to at this moment.
    Look {
        wait: usize,
        got: Option<Outcome>,
    },
    /// The wait gives up, and it was not over.
    TimeOut {
        wait: usize,
    },
    /// The wait gives up, whatever it had come to.
    Drop {
        wait: usize,
    },
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) thread: usize,
    pub(crate) op: Op,
    pub(crate) called: u64,
    pub(crate) returned: u64,
}

/// Whether some order explains the history.
pub(crate) fn is_linearizable(policy: WritePolicy, history: &[Event]) -> bool {
    let mut steps = Vec::new();
    for event in history {
        let step = |kind| Step {
            kind,
            called: event.called,
            returned: event.returned,
        };
        match event.op {
            Op::UpdateTime { ts } => {
                let sweep = Sweep::Time(ts);
                steps.push(step(Kind::Start(sweep)));
                steps.push(step(Kind::Finish(steps.len() - 1)));
            }
            Op::Close => {
                steps.push(step(Kind::Start(Sweep::Close)));
                steps.push(step(Kind::Finish(steps.len() - 1)));
            }
            op => steps.push(step(Kind::Whole(op))),
        }
    }
    assert!(steps.len() <= 128, "a history too long for the bit set");
    let mut outcomes = Vec::new();
    for event in history {
        if let Op::Look {
            wait,
            got: Some(outcome),
        } = event.op
        {
            if outcomes.len() <= wait {
                outcomes.resize(wait + 1, None);
            }
            outcomes[wait] = Some(outcome);
        }
    }
    let mut search = Search {
        policy,
        steps,
        outcomes,
        tried: HashSet::new(),
    };
    search.explains(State {
        done: 0,
        model: Model::new(),
        sweeps: Vec::new(),
    })
}

#[derive(Clone, Copy)]
struct Step {
    kind: Kind,
    called: u64,
    returned: u64,
}

#[derive(Clone, Copy)]
enum Kind {
    Whole(Op),
    Start(Sweep),
    /// Of the sweep that began as the step of this number.
    Finish(usize),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Sweep {
    Time(u64),
    Close,
}

impl Sweep {
    fn names(self, min: u64) -> bool {
        match self {
            Self::Time(ts) => ts >= min,
            Self::Close => true,
        }
    }
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    /// A bit per step.
    done: u128,
    model: Model,
    sweeps: Vec<UnderWay>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct UnderWay {
    start: usize,
    sweep: Sweep,
    /// The waits that it has to serve, if nobody else does, before it returns.
    owed: Vec<usize>,
}

struct Search {
    policy: WritePolicy,
    steps: Vec<Step>,
    /// What each wait comes to in the end, as far as somebody looked.
    outcomes: Vec<Option<Outcome>>,
    tried: HashSet<State>,
}

impl Search {
    fn explains(&mut self, state: State) -> bool {
        if state.done.count_ones() as usize == self.steps.len() {
            return true;
        }
        if !self.tried.insert(state.clone()) {
            return false;
        }
        let open = |step: &usize| state.done & (1 << step) == 0;
        let horizon = (0..self.steps.len())
            .filter(open)
            .map(|step| self.steps[step].returned)
            .min();
        for step in (0..self.steps.len()).filter(open) {
            if Some(self.steps[step].called) <= horizon
                && let Some(next) = self.take(&state, step)
                && self.explains(next)
            {
                return true;
            }
        }
        for sweep in 0..state.sweeps.len() {
            for (id, wait) in state.model.waits() {
                if let Wait::Registered { min, .. } = wait
                    && state.sweeps[sweep].sweep.names(min)
                {
                    let mut next = state.clone();
                    match state.sweeps[sweep].sweep {
                        Sweep::Time(_) => next.model.serve(id),
                        Sweep::Close => next.model.end_by_close(id),
                    }
                    if self.plausible(&next.model) && self.explains(next) {
                        return true;
                    }
                }
            }
        }
        false
    }

    /// The state after this step, if it can be the next one.
    fn take(&self, state: &State, step: usize) -> Option<State> {
        let mut next = state.clone();
        next.done |= 1 << step;
        let model = &mut next.model;
        let fits = match self.steps[step].kind {
            Kind::Start(sweep) => {
                match sweep {
                    Sweep::Time(ts) => model.move_time(self.policy, ts),
                    Sweep::Close => model.start_closing(),
                }
                let owed = model.waits().filter_map(|(id, wait)| match wait {
                    Wait::Registered { min, .. } if sweep.names(min) => Some(id),
                    _ => None,
                });
                next.sweeps.push(UnderWay {
                    start: step,
                    sweep,
                    owed: owed.collect(),
                });
                // The order in which sweeps began makes no difference to what they may do.
                next.sweeps.sort_by_key(|sweep| sweep.start);
                true
            }
            Kind::Finish(start) => {
                let at = next.sweeps.iter().position(|s| s.start == start)?;
                let sweep = next.sweeps.remove(at);
                let waiting = |id: &usize| matches!(model.wait(*id), Some(Wait::Registered { .. }));
                !sweep.owed.iter().any(waiting)
            }
            Kind::Whole(op) => match op {
                Op::Get { key, got } => model.get(key) == got,
                Op::TryGetNewerThan {
                    key,
                    min,
                    got: Some(got),
                } => {
                    let passing = |s: &UnderWay| matches!(s.sweep, Sweep::Time(ts) if ts > min);
                    model.get(key) == got
                        && (model.fresh(key, min) || next.sweeps.iter().any(passing))
                }
                Op::TryGetNewerThan {
                    key,
                    min,
                    got: None,
                } => !model.fresh(key, min),
                Op::Contains { key, got } => model.contains(key) == got,
                Op::Set {
                    key,
                    value,
                    ts,
                    stored,
                } => model.set(self.policy, key, value, ts) == stored,
                Op::SetObservedTime { key, ts } => {
                    model.set_observed_time(self.policy, key, ts);
                    true
                }
                Op::Delete { key, was } => model.delete(self.policy, key) == was,
                Op::DeleteAt { key, ts, was } => model.delete_at(self.policy, key, ts) == was,
                Op::GlobalTime { got } => model.global_time() == got,
                Op::Subscribe { wait, key, min } => {
                    model.subscribe(wait, key, min);
                    true
                }
                Op::Look { wait, got } => model.wait(wait).is_some() && model.outcome(wait) == got,
                Op::TimeOut { wait } => {
                    let registered = matches!(model.wait(wait), Some(Wait::Registered { .. }));
                    if registered {
                        model.give_up(wait);
                    }
                    registered
                }
                Op::Drop { wait } => {
                    let begun = model.wait(wait).is_some();
                    if begun {
                        model.give_up(wait);
                    }
                    begun
                }
                Op::UpdateTime { .. } | Op::Close => unreachable!("these are taken in two steps"),
            },
        };
        (fits && self.plausible(&next.model)).then_some(next)
    }

    /// No wait is over in another way than it is seen to be.
    fn plausible(&self, model: &Model) -> bool {
        model.waits().all(|(id, wait)| match wait {
            Wait::Over(outcome) => match self.outcomes.get(id).copied().flatten() {
                Some(seen) => seen == outcome,
                None => true,
            },
            _ => true,
        })
    }
}
