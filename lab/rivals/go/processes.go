// call and broadcast: a request carries a channel for its answer; a group is a list of channels.

package main

import "time"

// patience is how long a caller waits, if its time is limited.
const patience = 5 * time.Second

type request struct {
	value int
	reply chan int
}

func readCall(k keys) func() {
	rounds, callee := k.number("rounds", 1), k.word("callee", "process", "oneshot", "server")
	hasTimeout := k.word("timeout", "yes", "no") == "yes"
	if callee == "server" {
		badUsage("Go has no servers: give callee=process.")
	}
	return func() { call(rounds, hasTimeout) }
}

func call(rounds int, hasTimeout bool) {
	callee, done := make(chan request, 1), newGate(1)
	go func() {
		for asked := range callee {
			asked.reply <- asked.value
		}
	}()
	var elapsed time.Duration
	go func() {
		ask(callee, 0, hasTimeout)
		clock := time.Now()
		for value := range rounds {
			ask(callee, value, hasTimeout)
		}
		elapsed = time.Since(clock)
		done.add()
	}()
	<-done.open
	printMetrics(metric{"ns_per_round_trip", per(elapsed, rounds)})
}

func ask(callee chan request, value int, hasTimeout bool) {
	// Room for one, so that an answer that comes too late holds nobody up.
	reply := make(chan int, 1)
	callee <- request{value, reply}
	if !hasTimeout {
		check(<-reply, value)
		return
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case answer := <-reply:
		check(answer, value)
	case <-timer.C:
		fail("A call had no answer in time.")
	}
}

func check(answer, value int) {
	if answer != value {
		fail("A call had a wrong answer.")
	}
}

func readBroadcast(k keys) func() {
	members, rounds := k.number("members", 1), k.number("rounds", 1)
	return func() { broadcast(members, rounds) }
}

func broadcast(members, rounds int) {
	started, done := newGate(members), newGate(members)
	group := make([]chan int, members)
	for i := range group {
		group[i] = make(chan int, rounds)
		go func() {
			started.add()
			for range rounds {
				<-group[i]
			}
			done.add()
		}()
	}
	<-started.open
	time.Sleep(settle)
	clock := time.Now()
	for round := range rounds {
		for _, member := range group {
			member <- round
		}
	}
	<-done.open
	printMetrics(metric{"ns_per_message", per(time.Since(clock), members, rounds)})
}
