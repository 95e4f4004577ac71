// many-to-many, fan-in and ping-pong: goroutines that are parked before the clock starts exchange
// small integers.

package main

import "time"

// settle is long enough for a goroutine that has counted itself started to reach its receive.
const settle = 50 * time.Millisecond

// fanInRoom is the room of the receiver's channel: senders wait when it is full, as is usual in Go.
const fanInRoom = 1024

func manyToMany(processes, messages int) {
	started, done := newGate(processes), newGate(processes)
	expected := expectedCounts(processes, messages)
	everyone := make([]chan int, processes)
	for i := range everyone {
		// Each one sends before it receives, so a mailbox must have room for all that will arrive.
		everyone[i] = make(chan int, max(expected[i], 1))
	}
	start := make([]chan struct{}, processes)
	for i := range everyone {
		start[i] = make(chan struct{}, 1)
		go func() {
			started.add()
			<-start[i]
			random := xorshift(i + 1)
			for number := range messages {
				everyone[random.nextBelow(processes)] <- number
			}
			for range expected[i] {
				<-everyone[i]
			}
			done.add()
		}()
	}
	<-started.open
	clock := startAll(start)
	<-done.open
	printMetrics(metric{"ns_per_message", per(time.Since(clock), processes, messages)})
}

// expectedCounts returns how many messages each will receive, by running all the generators.
func expectedCounts(processes, messages int) []int {
	counts := make([]int, processes)
	for i := range processes {
		random := xorshift(i + 1)
		for range messages {
			counts[random.nextBelow(processes)]++
		}
	}
	return counts
}

func fanIn(senders, messages int) {
	started, done := newGate(senders+1), newGate(1)
	receiver := make(chan int, fanInRoom)
	go func() {
		started.add()
		for range senders * messages {
			<-receiver
		}
		done.add()
	}()
	start := make([]chan struct{}, senders)
	for i := range start {
		start[i] = make(chan struct{}, 1)
		go func() {
			started.add()
			<-start[i]
			for number := range messages {
				receiver <- number
			}
		}()
	}
	<-started.open
	clock := startAll(start)
	<-done.open
	printMetrics(metric{"ns_per_message", per(time.Since(clock), senders, messages)})
}

// burstSend has one goroutine send to each of its receivers in turn.
func burstSend(receivers, each int) {
	started, done := newGate(receivers+1), newGate(receivers)
	everyone := make([]chan int, receivers)
	for i := range everyone {
		everyone[i] = make(chan int, fanInRoom)
		go func() {
			started.add()
			for range each {
				<-everyone[i]
			}
			done.add()
		}()
	}
	start := []chan struct{}{make(chan struct{}, 1)}
	go func() {
		started.add()
		<-start[0]
		for number := range each {
			for _, receiver := range everyone {
				receiver <- number
			}
		}
	}()
	<-started.open
	clock := startAll(start)
	<-done.open
	printMetrics(metric{"ns_per_message", per(time.Since(clock), receivers, each)})
}

// startAll starts the clock and then every goroutine, after all have parked.
func startAll(start []chan struct{}) time.Time {
	time.Sleep(settle)
	clock := time.Now()
	for _, s := range start {
		s <- struct{}{}
	}
	return clock
}

func pingPong(rounds int) {
	started, done := newGate(2), newGate(1)
	ping, pong := make(chan int, 1), make(chan int, 1)
	go func() {
		started.add()
		for left := range pong {
			ping <- left
		}
	}()
	go func() {
		started.add()
		for left := range ping {
			if left == 0 {
				done.add()
				return
			}
			pong <- left - 1
		}
	}()
	<-started.open
	time.Sleep(settle)
	clock := time.Now()
	ping <- rounds
	<-done.open
	printMetrics(metric{"ns_per_round_trip", per(time.Since(clock), rounds)})
}
