// stall and handoff: what happens to the others when one goroutine does not yield.

package main

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	tick      = 5 * time.Millisecond
	pause     = 20 * time.Millisecond
	offence   = 300 * time.Millisecond
	burst     = 2 * time.Second
	justBelow = 9 * time.Millisecond
	// calm is how long everything runs undisturbed before a burst.
	calm        = 500 * time.Millisecond
	handoffWork = 50 * time.Millisecond
)

// exchanged counts the messages of one pair; it fills a cache line, so that pairs do not share one.
type exchanged struct {
	count atomic.Uint64
	_     [56]byte
}

// ticked is the end of one sleep of the ticker.
type ticked struct {
	at, late time.Duration
}

func stall() {
	offender := word("offender", "none", "blocks", "computes", "holds", "just-below", "waker")
	offenders, isBurst := number("offenders"), word("burst", "no", "yes") == "yes"
	if isBurst && offender != "blocks" && offender != "computes" {
		badUsage("A burst blocks or computes.")
	}
	start := func() { startOffenders(offender, offenders, isBurst) }
	stallFor(number("seconds"), number("pingers"), isBurst, start)
}

// sleepLoop is the ticker for two seconds without offenders.
func sleepLoop() {
	pingers := 0
	if word("beside", "nothing", "pingers") == "pingers" {
		pingers = 1000
	}
	stallFor(2, pingers, false, func() {})
}

func stallFor(seconds, pingers int, isBurst bool, start func()) {
	pairs := make([]exchanged, pingers/2)
	serves := make([]chan<- uint64, len(pairs))
	for i := range pairs {
		serves[i] = startPair(&pairs[i])
	}
	length := time.Duration(seconds) * time.Second
	begin := time.Now()
	if isBurst {
		begin = begin.Add(calm)
		time.AfterFunc(calm, start)
		length += calm
	} else {
		start()
	}
	ended := make(chan []metric)
	go func() { ended <- runTicker(length, begin, pairs) }()
	// The first balls come last: a pair that plays keeps its processor for 10 ms at a time, and
	// goroutines still to be started would wait for every pair that plays already.
	for _, serve := range serves {
		serve <- 0
	}
	printMetrics(<-ended...)
}

func startOffenders(offender string, count int, isBurst bool) {
	if offender == "none" {
		return
	}
	for range count {
		if isBurst {
			go act(offender, burst)
		} else {
			go offend(offender)
		}
	}
}

// runTicker prints when each sleep ended, counted from the first offence, and how late.
func runTicker(length time.Duration, begin time.Time, pairs []exchanged) []metric {
	var ticks []ticked
	clock, before := time.Now(), total(pairs)
	for time.Since(clock) < length {
		due := time.Now().Add(tick)
		time.Sleep(tick)
		ticks = append(ticks, ticked{time.Since(begin), time.Since(due)})
	}
	hops, running := total(pairs)-before, time.Since(clock)
	for _, t := range ticks {
		fmt.Println("tick", t.at.Nanoseconds(), t.late.Nanoseconds())
	}
	if hops == 0 {
		return nil
	}
	return []metric{{"ns_per_hop", per(running, int(hops))}}
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

// held is the lock that the offenders of kind holds want.
var held sync.Mutex

func offend(offender string) {
	for {
		switch offender {
		case "just-below":
			block(justBelow)
			runtime.Gosched()
			continue
		case "waker":
			// The function of a timer is what comes nearest to a waker.
			fired := make(chan struct{})
			time.AfterFunc(pause, func() {
				block(offence)
				close(fired)
			})
			<-fired
			continue
		}
		time.Sleep(pause)
		act(offender, offence)
	}
}

// act offends once.
func act(offender string, length time.Duration) {
	switch offender {
	case "computes":
		computeFor(length)
	case "holds":
		held.Lock()
		block(length)
		held.Unlock()
	default:
		block(length)
	}
}

// block is a blocking system call, not time.Sleep, which would only park the goroutine.
func block(length time.Duration) {
	left := syscall.NsecToTimespec(length.Nanoseconds())
	for syscall.Nanosleep(&left, &left) == syscall.EINTR {
	}
}

func handoff() {
	rounds := number("rounds")
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
	for _, late := range <-ended {
		fmt.Println("late", late.Nanoseconds())
	}
}
