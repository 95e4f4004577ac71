// Goroutines that are parked before the clock starts and then work at the same time.

package main

import "time"

// team holds the goroutines of one measurement.
type team struct {
	started, done *gate
	start         []chan struct{}
}

// newTeam returns a team that will have this many goroutines.
func newTeam(units int) *team {
	return &team{started: newGate(units), done: newGate(units)}
}

// add adds a goroutine that will do this work.
func (t *team) add(work func()) {
	start := make(chan struct{}, 1)
	t.start = append(t.start, start)
	go func() {
		t.started.add()
		<-start
		work()
		t.done.add()
	}()
}

// run starts all goroutines and returns how long it took until the last one was done.
func (t *team) run() time.Duration {
	<-t.started.open
	clock := startAll(t.start)
	<-t.done.open
	return time.Since(clock)
}
