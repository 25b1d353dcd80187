//! How long each program may take, if there is an end to the whole.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::worker::Model;

/// So many times its fair share may a program take: most need less.
const SLACK: f64 = 2.0;

/// The time that is left, for what is left to explore.
pub(crate) struct Budget {
    end: Option<Instant>,
    processes: f64,
    /// The weights of those that have not begun.
    left: Mutex<f64>,
}

impl Budget {
    pub(crate) fn new(minutes: Option<f64>, weights: f64, processes: usize) -> Self {
        Budget {
            end: minutes.map(|minutes| Instant::now() + Duration::from_secs_f64(minutes * 60.0)),
            processes: processes as f64,
            left: Mutex::new(weights),
        }
    }

    /// One of this weight takes no time.
    pub(crate) fn leave_out(&self, weight: f64) {
        *self.left.lock().expect("no panic under it") -= weight;
    }

    /// The model with the time that it may take; nothing if the time is over.
    pub(crate) fn share(&self, mut model: Model, weight: f64) -> Option<Model> {
        let mut left = self.left.lock().expect("no panic under it");
        if let Some(end) = self.end {
            let time = end.saturating_duration_since(Instant::now()).as_secs_f64();
            if time == 0.0 {
                return None;
            }
            let share = SLACK * time * self.processes * weight / left.max(weight);
            model.seconds = Some(model.seconds.map_or(share, |most| most.min(share)));
        }
        *left -= weight;
        Some(model)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_later_gets_what_others_left() {
        let model: Model = serde_json::from_str("{\"program\":\"overwrite: get(a)\"}").unwrap();
        let free = Budget::new(None, 10.0, 2);
        assert_eq!(free.share(model.clone(), 1.0).unwrap().seconds, None);
        let budget = Budget::new(Some(1.0), 10.0, 2);
        let first = budget.share(model.clone(), 1.0).unwrap().seconds.unwrap();
        let heavy = budget.share(model.clone(), 5.0).unwrap().seconds.unwrap();
        let last = budget.share(model.clone(), 1.0).unwrap().seconds.unwrap();
        assert!(first <= 24.0 && first < last && last < heavy);
        let over = Budget::new(Some(0.0), 10.0, 2);
        assert!(over.share(model, 1.0).is_none());
    }
}
