//! Contention benchmarks of podcache and its peers.
