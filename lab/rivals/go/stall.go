// stall and handoff: what happens to the others when one goroutine does not yield.

package main

import (
	"sync/atomic"
	"syscall"
	"time"
)

const (
	tick        = 5 * time.Millisecond
	pause       = 20 * time.Millisecond
	offence     = 300 * time.Millisecond
	handoffWork = 50 * time.Millisecond
)

// exchanged counts the messages of one pair; it fills a cache line, so that pairs do not share one.
type exchanged struct {
	count atomic.Uint64
	_     [56]byte
}

func stall(offender string, offenders, seconds, pingers int) {
	pairs := make([]exchanged, pingers/2)
	serves := make([]chan<- uint64, len(pairs))
	for i := range pairs {
		serves[i] = startPair(&pairs[i])
	}
	if offender != "none" {
		for range offenders {
			go offend(offender)
		}
	}
	ended := make(chan []metric)
	go func() { ended <- runTicker(time.Duration(seconds)*time.Second, pairs) }()
	// The first balls come last: a pair that plays keeps its processor for 10 ms at a time, and
	// goroutines still to be started would wait for every pair that plays already.
	for _, serve := range serves {
		serve <- 0
	}
	printMetrics(<-ended...)
}

func runTicker(length time.Duration, pairs []exchanged) []metric {
	var lateness []time.Duration
	clock, before := time.Now(), total(pairs)
	for time.Since(clock) < length {
		due := time.Now().Add(tick)
		time.Sleep(tick)
		lateness = append(lateness, time.Since(due))
	}
	hops, running := total(pairs)-before, time.Since(clock)
	metrics := []metric{
		{"ticks", float64(len(lateness))},
		{"lateness_p999_ms", milliseconds(quantile(lateness, 0.999))},
		{"lateness_worst_ms", milliseconds(quantile(lateness, 1))},
	}
	if hops > 0 {
		metrics = append(metrics, metric{"ns_per_hop", per(running, int(hops))})
	}
	return metrics
}

func total(pairs []exchanged) uint64 {
	sum := uint64(0)
	for i := range pairs {
		sum += pairs[i].count.Load()
	}
	return sum
}

// startPair starts two goroutines and returns the channel for their first ball.
func startPair(pair *exchanged) chan<- uint64 {
	ping, pong := make(chan uint64, 1), make(chan uint64, 1)
	go func() {
		for number := range pong {
			ping <- number
		}
	}()
	go func() {
		for number := range ping {
			pair.count.Store(number)
			pong <- number + 2
		}
	}()
	return ping
}

func offend(offender string) {
	for {
		time.Sleep(pause)
		if offender == "computes" {
			computeFor(offence)
			continue
		}
		// A blocking system call, not time.Sleep, which would only park the goroutine.
		left := syscall.NsecToTimespec(offence.Nanoseconds())
		for syscall.Nanosleep(&left, &left) == syscall.EINTR {
		}
	}
}

func handoff(rounds int) {
	woken, waker := make(chan time.Time, 1), make(chan time.Duration, 1)
	go func() {
		for sent := range woken {
			waker <- time.Since(sent)
		}
	}()
	ended := make(chan []time.Duration)
	go func() {
		lateness := make([]time.Duration, 0, rounds)
		for range rounds {
			// Waits for a timer first, as in every rival.
			time.Sleep(tick)
			woken <- time.Now()
			computeFor(handoffWork)
			lateness = append(lateness, <-waker)
		}
		ended <- lateness
	}()
	lateness := <-ended
	printMetrics(
		metric{"lateness_worst_ms", milliseconds(quantile(lateness, 1))},
		metric{"lateness_p50_ms", milliseconds(quantile(lateness, 0.5))},
	)
}
