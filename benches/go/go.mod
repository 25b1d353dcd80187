module podcache.dev/benches/onelock

go 1.21
