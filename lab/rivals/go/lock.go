// lock, condvar and barrier: goroutines that exclude each other, take turns, or meet.

package main

import (
	"runtime"
	"sync"
)

func readLock(k keys) func() {
	units, rounds := k.number("units", 1), k.number("rounds", 1)
	yields := k.word("inside", "nothing", "yield") == "yield"
	return func() { lock(units, rounds, yields) }
}

func lock(units, rounds int, yields bool) {
	var mutex sync.Mutex
	count := 0
	work := func() {
		for range rounds {
			mutex.Lock()
			count++
			mutex.Unlock()
		}
	}
	if yields {
		work = func() {
			for range rounds {
				mutex.Lock()
				runtime.Gosched()
				count++
				mutex.Unlock()
			}
		}
	}
	t := newTeam(units)
	for range units {
		t.add(work)
	}
	elapsed := t.run()
	if count != units*rounds {
		fail("The lock let two in at once: the count is wrong.")
	}
	printMetrics(metric{"ns", per(elapsed, units, rounds)})
}

func condvar(rounds int) {
	var mutex sync.Mutex
	changed := sync.NewCond(&mutex)
	turn := 0
	t := newTeam(2)
	for me := range 2 {
		t.add(func() {
			mutex.Lock()
			for range rounds {
				for turn != me {
					changed.Wait()
				}
				turn = 1 - me
				changed.Signal()
			}
			mutex.Unlock()
		})
	}
	printMetrics(metric{"ns", per(t.run(), rounds)})
}

// barrier is where goroutines meet. Go has none, so it is a mutex and a condition variable.
type barrier struct {
	mutex          sync.Mutex
	open           *sync.Cond
	units, arrived int
	round          int
}

func newBarrier(units int) *barrier {
	b := &barrier{units: units}
	b.open = sync.NewCond(&b.mutex)
	return b
}

func (b *barrier) wait() {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.arrived++
	if b.arrived == b.units {
		b.arrived = 0
		b.round++
		b.open.Broadcast()
		return
	}
	for mine := b.round; mine == b.round; {
		b.open.Wait()
	}
}

func readBarrier(k keys) func() {
	units, rounds := k.number("units", 1), k.number("rounds", 1)
	return func() { meet(units, rounds) }
}

func meet(units, rounds int) {
	b := newBarrier(units)
	t := newTeam(units)
	for range units {
		t.add(func() {
			for range rounds {
				b.wait()
			}
		})
	}
	printMetrics(metric{"ns", per(t.run(), rounds)})
}
