// call and broadcast: a request carries a channel for its answer; a group is a list of channels.

package main

import "time"

// patience is how long a caller waits, if its time is limited.
const patience = 5 * time.Second

type request struct {
	value int
	reply chan int
}

func call() {
	rounds, hasTimeout := number("rounds"), word("timeout", "yes", "no") == "yes"
	word("callee", "process", "oneshot") // Go has no servers.
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

func broadcast() {
	members, rounds := number("members"), number("rounds")
	group := make([]chan int, members)
	t := newTeam(members, members)
	for i := range group {
		group[i] = make(chan int, rounds)
		t.addWaiting(func() { receive(group[i], rounds) })
	}
	elapsed := t.runFrom(func() {
		for round := range rounds {
			for _, member := range group {
				member <- round
			}
		}
	})
	printMetrics(metric{"ns_per_message", per(elapsed, members, rounds)})
}
