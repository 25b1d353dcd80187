// The one-lock design in Go, as a peer of the benchmarks.
//
// It reads a line that says what to do, does that for a moment, writes what it measured and a line
// "end", and waits for the next line; so it takes its turn among the peers of the other process.
package main

import (
	"bufio"
	"fmt"
	"math/bits"
	"math/rand"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

const (
	drawn   = 16 * 1024
	timed   = 16
	changed = 10
)

func uuids(n int) []string {
	random := rand.New(rand.NewSource(1))
	keys := make([]string, n)
	for i := range keys {
		a, b := random.Uint64(), random.Uint64()
		keys[i] = fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", a>>32, a>>16&0xffff, a&0xfff, b>>52, b&0xffffffffffff)
	}
	return keys
}

func filled(keys []string) *cache {
	c := newCache(len(keys))
	for _, key := range keys {
		c.set(key, &status{generation: 1}, 1)
	}
	return c
}

// histogram counts times in classes whose width is at most 1/64 of their value.
type histogram map[uint64]uint64

func (h histogram) add(nanos time.Duration) {
	n := uint64(nanos)
	if shift := bits.Len64(n) - 7; shift > 0 {
		n = n >> shift << shift
	}
	h[n]++
}

func (h histogram) write(name string) {
	fmt.Fprint(out, name)
	for nanos, count := range h {
		fmt.Fprintf(out, " %d:%d", nanos, count)
	}
	fmt.Fprintln(out)
}

func (h histogram) merge(other histogram) {
	for nanos, count := range other {
		h[nanos] += count
	}
}

var out = bufio.NewWriter(os.Stdout)

// order is a sequence of keys, drawn beforehand; a negative one is to be set.
func order(pick string, keys int, sets float64, seed int64) []int {
	random := rand.New(rand.NewSource(seed))
	var sums []float64
	sum := 0.0
	for rank := 1; rank <= keys; rank++ {
		sum += 1 / float64(rank)
		sums = append(sums, sum)
	}
	list := make([]int, drawn)
	for i := range list {
		key := 0
		switch pick {
		case "uniform":
			key = random.Intn(keys)
		case "zipf":
			at := random.Float64() * sum
			for sums[key] < at {
				key++
			}
		}
		if random.Float64() < sets {
			key = -key - 1
		}
		list[i] = key
	}
	return list
}

// closed reads and sets as fast as it goes on some goroutines, of which each does its share of sets.
func closed(c *cache, keys []string, threads int, share func(thread int) float64, pick string, length time.Duration) {
	var stop atomic.Bool
	var count, setCount atomic.Uint64
	var lock sync.Mutex
	gets, setTimes := histogram{}, histogram{}
	start, done := make(chan struct{}), sync.WaitGroup{}
	for t := 0; t < threads; t++ {
		own, how := keys, pick
		if pick == "own" {
			own, how = keys[t*len(keys)/threads:(t+1)*len(keys)/threads], "uniform"
		}
		sets := share(t)
		list := order(how, len(own), sets, int64(t))
		done.Add(1)
		go func() {
			defer done.Done()
			ownGets, ownSets := histogram{}, histogram{}
			<-start
			n, now, set := uint64(0), uint64(1), uint64(0)
			var sink uint64
			for !stop.Load() {
				for turn := 0; turn < timed; turn++ {
					key := list[n%drawn]
					n++
					timeIt := turn == 0 || (key < 0 && sets < 0.01)
					var begin time.Time
					if timeIt {
						begin = time.Now()
					}
					if key < 0 {
						now++
						set++
						c.set(own[-key-1], &status{generation: now}, now)
						if timeIt {
							ownSets.add(time.Since(begin))
						}
					} else {
						sink += c.get(own[key]).status.generation
						if timeIt {
							ownGets.add(time.Since(begin))
						}
					}
				}
			}
			runtime.KeepAlive(sink)
			count.Add(n)
			setCount.Add(set)
			lock.Lock()
			gets.merge(ownGets)
			setTimes.merge(ownSets)
			lock.Unlock()
		}()
	}
	begin := time.Now()
	close(start)
	time.Sleep(length)
	stop.Store(true)
	done.Wait()
	seconds := time.Since(begin).Seconds()
	all, set := float64(count.Load()), float64(setCount.Load())
	fmt.Fprintf(out, "operations/s %f\nreads/s %f\nsets/s %f\n", all/seconds, (all-set)/seconds, set/seconds)
	gets.write("get")
	setTimes.write("set")
}

// storm lets a goroutine per key wait and wakes them all.
func storm(c *cache, keys []string) {
	min := c.time
	var waiting, woken sync.WaitGroup
	for _, key := range keys {
		waiting.Add(1)
		woken.Add(1)
		go func(key string) {
			ready := c.newerThan(key, min+1)
			waiting.Done()
			<-ready
			woken.Done()
		}(key)
	}
	waiting.Wait()
	runtime.Gosched()
	begin := time.Now()
	c.updateTime(min + 2)
	call := time.Since(begin)
	woken.Wait()
	fmt.Fprintf(out, "call %d\nall %d\n", call.Nanoseconds(), time.Since(begin).Nanoseconds())
}

// node is a lister and a worker per pod.
type node struct {
	c       *cache
	keys    []string
	start   time.Time
	relist  atomic.Uint64
	woken   atomic.Int64
	relists int
}

func newNode(keys []string) *node {
	n := &node{c: filled(keys), keys: keys, start: time.Now()}
	n.relist.Store(1)
	for _, key := range keys {
		go func(key string) {
			seen := uint64(1)
			for {
				<-n.c.newerThan(key, seen)
				seen = n.relist.Load()
				n.woken.Add(1)
			}
		}(key)
	}
	return n
}

func (n *node) day(length time.Duration) {
	begin, relists := time.Now(), 0
	for time.Since(begin) < length || relists == 0 {
		now := uint64(time.Since(n.start)) + 2
		n.woken.Store(0)
		n.relist.Store(now)
		n.relists++
		for i := n.relists % changed; i < len(n.keys); i += changed {
			n.c.set(n.keys[i], &status{generation: now}, now)
		}
		n.c.updateTime(now)
		for n.woken.Load() < int64(len(n.keys)) {
			runtime.Gosched()
		}
		relists++
	}
	fmt.Fprintf(out, "relists/s %f\n", float64(relists)/time.Since(begin).Seconds())
}

func main() {
	keys := uuids(1024)
	c := filled(keys)
	many := map[int]*cache{}
	nodes := map[int]*node{}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var what, pick string
		var size, millis int
		var sets float64
		fmt.Sscan(lines.Text(), &what, &size, &sets, &pick, &millis)
		length := time.Duration(millis) * time.Millisecond
		switch what {
		case "closed":
			closed(c, keys, size, func(int) float64 { return sets }, pick, length)
		case "one-writer":
			closed(c, keys, size, func(thread int) float64 {
				if thread == 0 {
					return 1
				}
				return 0
			}, pick, length)
		case "storm":
			if many[size] == nil {
				many[size] = filled(uuids(size))
				many[size].time = 1
			}
			storm(many[size], uuids(size))
		case "day":
			if nodes[size] == nil {
				nodes[size] = newNode(uuids(size))
			}
			nodes[size].day(length)
		}
		fmt.Fprintln(out, "end")
		out.Flush()
	}
}
