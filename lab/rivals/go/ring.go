// ring: tokens go round a ring of goroutines, each of which knows only its neighbour.

package main

import "time"

func ring(n, m, tokens int) {
	started, arrived := newGate(n), newGate(tokens)
	handles := make([]chan int, n)
	setup := time.Now()
	// The ring is built backwards: the last goroutine is started first and gets the first one's
	// channel at the end.
	tell := make(chan chan int, 1)
	handles[0] = make(chan int, 1)
	go func(mailbox chan int) {
		pass(mailbox, <-tell, started, arrived)
	}(handles[0])
	for i := 1; i < n; i++ {
		handles[i] = make(chan int, 1)
		go pass(handles[i], handles[i-1], started, arrived)
	}
	tell <- handles[n-1]
	<-started.open

	clock := time.Now()
	for token := range tokens {
		handles[token*n/tokens] <- n * m
	}
	<-arrived.open
	running := time.Since(clock)
	printMetrics(
		metric{"ns_per_hop", per(running, n, m, tokens)},
		metric{"ms_with_setup", milliseconds(time.Since(setup))},
	)
}

// pass passes tokens on; the number in a token is how many hops it has left.
func pass(mailbox <-chan int, neighbour chan<- int, started, arrived *gate) {
	started.add()
	for hops := range mailbox {
		if hops == 0 {
			arrived.add()
		} else {
			neighbour <- hops - 1
		}
	}
}
