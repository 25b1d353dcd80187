//! Numbers as people read them.

/// A number with about three digits that say something.
pub fn significant(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Nanoseconds in the unit that reads best.
pub fn time(nanos: f64) -> String {
    match nanos {
        n if n < 1e3 => format!("{n:.1} ns"),
        n if n < 1e6 => format!("{:.2} us", n / 1e3),
        n if n < 1e9 => format!("{:.2} ms", n / 1e6),
        n => format!("{:.2} s", n / 1e9),
    }
}

/// A rate in the unit that reads best.
pub fn rate(per_second: f64) -> String {
    match per_second {
        r if r < 1e3 => format!("{r:.1} /s"),
        r if r < 1e6 => format!("{:.1} k/s", r / 1e3),
        r => format!("{:.2} M/s", r / 1e6),
    }
}

/// Bytes in the unit that reads best.
pub fn bytes(bytes: f64) -> String {
    match bytes.abs() {
        b if b < 10_000.0 => format!("{bytes:.0} B"),
        b if b < 1e7 => format!("{:.1} kB", bytes / 1e3),
        _ => format!("{:.1} MB", bytes / 1e6),
    }
}

/// Seconds as minutes, if that reads better.
pub fn minutes(seconds: f64) -> String {
    if seconds < 90.0 {
        format!("{seconds:.0} s")
    } else {
        format!("{:.0} min", seconds / 60.0)
    }
}
