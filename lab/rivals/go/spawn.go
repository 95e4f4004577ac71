// spawn: how long a goroutine takes to start and to end, and how much memory it holds while it
// waits.

package main

import (
	"runtime"
	"sync/atomic"
	"time"
)

// gate is a counter that wakes the main goroutine when it is full.
type gate struct {
	count atomic.Int64
	full  int64
	open  chan struct{}
}

func newGate(full int) *gate {
	return &gate{full: int64(full), open: make(chan struct{}, 1)}
}

func (g *gate) add() {
	if g.count.Add(1) == g.full {
		g.open <- struct{}{}
	}
}

func spawn(n int) {
	started, ended := newGate(n), newGate(n)
	handles := make([]chan int, n)
	// A write to each element makes the array resident before the clock starts.
	unused := make(chan int)
	for i := range handles {
		handles[i] = unused
	}
	others := runtime.NumGoroutine()
	before := rssBytes()
	clock := time.Now()
	for i := range handles {
		mailbox := make(chan int, 1)
		handles[i] = mailbox
		go func() {
			started.add()
			<-mailbox
			ended.add()
		}()
	}
	<-started.open
	spawning := time.Since(clock)
	grown := rssBytes() - before

	clock = time.Now()
	for _, mailbox := range handles {
		mailbox <- 0
	}
	<-ended.open
	for runtime.NumGoroutine() > others {
		runtime.Gosched()
	}
	teardown := time.Since(clock)
	printMetrics(
		metric{"ns_per_spawn", per(spawning, n)},
		metric{"ns_per_teardown", per(teardown, n)},
		metric{"bytes_per_process", float64(grown) / float64(n)},
	)
}
