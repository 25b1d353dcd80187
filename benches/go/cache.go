package main

import "sync"

// status is as wide as the kubelet's PodStatus.
type status struct {
	generation uint64
	fields     [20]uint64
}

// record is a status with the time at which it was set.
type record struct {
	status   *status
	modified uint64
}

// waiter is told once, by the call that wakes it.
type waiter struct {
	min   uint64
	ready chan *record
}

// cache is the design with one lock: everything under a readers-writer lock, and one buffered
// channel per waiter.
type cache struct {
	lock    sync.RWMutex
	records map[string]*record
	waiters map[string][]waiter
	time    uint64
}

func newCache(keys int) *cache {
	return &cache{records: make(map[string]*record, keys), waiters: map[string][]waiter{}}
}

func (c *cache) getLocked(key string) *record {
	if r, ok := c.records[key]; ok {
		return r
	}
	return &record{status: &status{}}
}

func (c *cache) get(key string) *record {
	c.lock.RLock()
	defer c.lock.RUnlock()
	return c.getLocked(key)
}

func (c *cache) set(key string, s *status, time uint64) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.records[key] = &record{status: s, modified: time}
	c.notifyLocked(key, time)
}

func (c *cache) updateTime(time uint64) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.time = time
	for key := range c.waiters {
		c.notifyLocked(key, time)
	}
}

func (c *cache) notifyLocked(key string, time uint64) {
	list, ok := c.waiters[key]
	if !ok {
		return
	}
	var rest []waiter
	for _, w := range list {
		if time < w.min {
			rest = append(rest, w)
			continue
		}
		w.ready <- c.getLocked(key)
	}
	if len(rest) == 0 {
		delete(c.waiters, key)
	} else {
		c.waiters[key] = rest
	}
}

// newerThan gives a channel on which the record arrives once it is newer than min.
func (c *cache) newerThan(key string, min uint64) <-chan *record {
	ready := make(chan *record, 1)
	c.lock.Lock()
	defer c.lock.Unlock()
	r, ok := c.records[key]
	if c.time > min || (ok && r.modified > min) {
		ready <- c.getLocked(key)
	} else {
		c.waiters[key] = append(c.waiters[key], waiter{min, ready})
	}
	return ready
}
