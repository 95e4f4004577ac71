// callbacks and timers: time.AfterFunc, and goroutines that sleep in a loop.

package main

import (
	"runtime"
	"sync/atomic"
	"time"
)

const (
	// sleepBegins is how long everything that has just been started gets to begin its sleep.
	sleepBegins = 20 * time.Millisecond
	// spread is the time over which deadlines are spread.
	spread = 2 * time.Second
	// place is the step in which latenesses are counted.
	place = 10 * time.Microsecond
	// places is how many of them there are: up to a second and above.
	places = 100_000
)

// used keeps the work of a callback from being optimised away.
var used atomic.Uint64

func sleepOnce(index int) {
	first, second := uint64(index), uint64(index)
	time.AfterFunc(time.Hour, func() { used.Add(first + second) })
}

func sleepInLoop(index int) {
	go func() {
		for {
			used.Add(uint64(index))
			time.Sleep(time.Hour)
		}
	}()
}

func callbacks() {
	n, start, made := number("n"), sleepInLoop, 0
	if word("kind", "once", "loop") == "once" {
		start = sleepOnce
	}
	growInSteps(n, func(size int) {
		for ; made < size; made++ {
			start(made)
		}
		time.Sleep(sleepBegins)
	})
}

func timers() {
	pending := number("pending")
	handles := make([]*time.Timer, pending)
	var started, stopped time.Duration
	// The first round touches the memory; the last one counts.
	for range 3 {
		clock := time.Now()
		for i := range handles {
			first, second := uint64(i), uint64(i)
			handles[i] = time.AfterFunc(time.Hour, func() { used.Add(first + second) })
		}
		started = time.Since(clock)
		clock = time.Now()
		for i := range handles {
			handles[i].Stop()
		}
		stopped = time.Since(clock)
		clear(handles)
	}
	printMetrics(
		metric{"ns_per_after", per(started, pending)},
		metric{"ns_per_stop", per(stopped, pending)},
		metric{"lateness_p99_us", lateness(pending)},
	)
}

// lateness returns the lateness in microseconds that 99 of 100 timers do not exceed. With two workers or
// more, a goroutine computes meanwhile.
func lateness(pending int) float64 {
	counts := make([]atomic.Uint64, places)
	var ran atomic.Uint64
	lead := 500*time.Millisecond + time.Duration(pending)*2*time.Microsecond
	start := time.Now().Add(lead)
	for i := range pending {
		after := time.Duration(uint64(i)*7919%uint64(pending)) * spread / time.Duration(pending)
		due := start.Add(after)
		time.AfterFunc(time.Until(due), func() {
			late := int(time.Since(due) / place)
			counts[min(max(late, 0), places-1)].Add(1)
			ran.Add(1)
		})
	}
	if runtime.GOMAXPROCS(0) > 1 {
		go func() {
			for {
				computeFor(time.Second)
			}
		}()
	}
	for ran.Load() < uint64(pending) {
		time.Sleep(50 * time.Millisecond)
	}
	left := uint64(pending / 100)
	for i := places - 1; i >= 0; i-- {
		count := counts[i].Load()
		if count > left {
			return float64(time.Duration(i+1) * place / time.Microsecond)
		}
		left -= count
	}
	return 0
}
