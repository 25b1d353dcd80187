//! The machine, and how much of it others used meanwhile.

use std::fs;
use std::time::Instant;

use crate::harness::cores;

/// Above this share of foreign CPU time a run says that it was disturbed.
const NOISY: f64 = 0.05;

/// What is told about the machine.
#[derive(Debug, Clone)]
pub struct Machine {
    /// The processor's name.
    pub processor: String,
    /// Logical cores this process may use.
    pub cores: usize,
    /// Operating system and kernel.
    pub system: String,
    /// Whether it says that it is a virtual machine.
    pub is_virtual: bool,
    /// Whose allocator all peers in Rust use.
    pub allocator: &'static str,
    /// The compiler's version.
    pub compiler: String,
    /// That of the Go tool, if a peer in Go takes part.
    pub go: Option<String>,
}

impl Machine {
    /// Looks at this machine.
    pub fn look() -> Self {
        let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let field = |name: &str| {
            let line = info.lines().find(|line| line.starts_with(name))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        let uname = rustix::system::uname();
        let compiler = std::process::Command::new("rustc")
            .arg("--version")
            .output();
        Self {
            processor: field("model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            cores: cores().len().max(1),
            system: format!(
                "{} {}",
                uname.sysname().to_string_lossy(),
                uname.release().to_string_lossy()
            ),
            is_virtual: field("flags")
                .is_some_and(|flags| flags.split(' ').any(|f| f == "hypervisor")),
            allocator: if cfg!(target_env = "gnu") {
                "glibc's"
            } else {
                "the system's"
            },
            compiler: compiler
                .map(|out| String::from_utf8_lossy(&out.stdout).trim().to_owned())
                .unwrap_or_else(|_| "an unknown compiler".to_owned()),
            go: None,
        }
    }
}

impl std::fmt::Display for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = if self.is_virtual { " (virtual)" } else { "" };
        write!(
            f,
            "{}{kind}, {} core{}, {}, {} allocator, {}",
            self.processor,
            self.cores,
            if self.cores == 1 { "" } else { "s" },
            self.system,
            self.allocator,
            self.compiler
        )?;
        self.go.iter().try_for_each(|go| write!(f, ", {go}"))
    }
}

/// Measures how much CPU time of this machine went elsewhere since it was made.
#[derive(Debug)]
pub struct Noise {
    start: Instant,
    at_start: Option<(f64, f64)>,
}

/// CPU seconds of the whole machine that were used or stolen, and those of this process.
fn cpu_seconds() -> Option<(f64, f64)> {
    let ticks = |fields: &[&str], at: &[usize]| {
        at.iter()
            .map(|&i| fields.get(i)?.parse::<f64>().ok())
            .sum::<Option<f64>>()
    };
    let per_second = rustix::param::clock_ticks_per_second() as f64;
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let all: Vec<_> = stat.lines().next()?.split_whitespace().collect();
    // user, nice, system, irq, softirq, steal
    let all = ticks(&all, &[1, 2, 3, 6, 7, 8])?;
    let own = fs::read_to_string("/proc/self/stat").ok()?;
    // The name in parentheses may hold spaces. The 12th to 15th field after it are user and system
    // time, its own and that of its children (the peer in Go, builds, callgrind) that have ended.
    let own: Vec<_> = own.rsplit_once(')')?.1.split_whitespace().collect();
    let own = ticks(&own, &[11, 12, 13, 14])?;
    Some((all / per_second, own / per_second))
}

impl Noise {
    /// Starts to watch.
    pub fn watch() -> Self {
        Self {
            start: Instant::now(),
            at_start: cpu_seconds(),
        }
    }

    /// The share of all cores that others used, if the system tells.
    fn foreign(&self) -> Option<f64> {
        let (all, own) = cpu_seconds()?;
        let (all_before, own_before) = self.at_start?;
        let cores = cores().len().max(1) as f64;
        let foreign = (all - all_before) - (own - own_before);
        Some((foreign / (self.start.elapsed().as_secs_f64() * cores)).max(0.0))
    }
}

impl std::fmt::Display for Noise {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.foreign() {
            Some(foreign) => {
                write!(
                    f,
                    "Others used {:.0} % of the machine during the run",
                    foreign * 100.0
                )?;
                f.write_str(if foreign > NOISY {
                    ": too noisy to trust."
                } else {
                    "."
                })
            }
            None => f.write_str("This system does not tell how much of it others used."),
        }
    }
}
