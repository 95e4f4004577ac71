// Goroutines that are parked before the clock starts and then work at the same time.

package main

import (
	"sync/atomic"
	"time"
)

// settle is long enough for a goroutine that has counted itself started to reach its receive.
const settle = 50 * time.Millisecond

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

// team holds the goroutines of one measurement.
type team struct {
	started, done *gate
	start         []chan struct{}
}

// newTeam returns a team that will have this many goroutines, of which so many count themselves as done.
func newTeam(units, done int) *team {
	return &team{started: newGate(units), done: newGate(done)}
}

// add adds a goroutine that waits for the start and then does this work.
func (t *team) add(work func()) {
	t.addUncounted(func() {
		work()
		t.done.add()
	})
}

// addUncounted adds one that the clock does not wait for.
func (t *team) addUncounted(work func()) {
	start := make(chan struct{}, 1)
	t.start = append(t.start, start)
	go func() {
		t.started.add()
		<-start
		work()
	}()
}

// addWaiting adds one that works as soon as a message comes.
func (t *team) addWaiting(work func()) {
	go func() {
		t.started.add()
		work()
		t.done.add()
	}()
}

// run starts all goroutines and returns how long it took until the last one was done.
func (t *team) run() time.Duration {
	return t.runFrom(func() {})
}

// runFrom does the same, and begin when all are started.
func (t *team) runFrom(begin func()) time.Duration {
	<-t.started.open
	time.Sleep(settle)
	clock := time.Now()
	for _, start := range t.start {
		start <- struct{}{}
	}
	begin()
	<-t.done.open
	return time.Since(clock)
}
