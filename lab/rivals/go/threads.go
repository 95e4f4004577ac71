// thread: what a goroutine costs, shaped like a thread that can be joined.

package main

import (
	"runtime"
	"time"
)

func thread() {
	n := number("n")
	switch word("what", "create-join", "create-all", "parked", "yield", "lock", "lock-contended",
		"barrier", "condvar") {
	case "create-join":
		createJoin(n)
	case "create-all":
		createAll(n)
	case "parked":
		parked(n)
	case "yield":
		giveWay(n)
	case "lock":
		lock(1, n, false)
	case "lock-contended":
		lock(number("threads"), n, false)
	case "barrier":
		meet(number("threads"), n)
	case "condvar":
		condvar(n)
	}
}

// create starts a goroutine that returns a number through a channel, which is how it is joined.
func create(number int) chan int {
	ended := make(chan int, 1)
	go func() { ended <- number }()
	return ended
}

func joinWith(ended chan int, wanted int) {
	if <-ended != wanted {
		fail("A goroutine returned a wrong number.")
	}
}

func createJoin(n int) {
	clock := time.Now()
	for i := range n {
		joinWith(create(i), i)
	}
	printMetrics(metric{"ns", per(time.Since(clock), n)})
}

func createAll(n int) {
	ended := make([]chan int, n)
	clock := time.Now()
	for i := range ended {
		ended[i] = create(i)
	}
	for i := range ended {
		joinWith(ended[i], i)
	}
	printMetrics(metric{"ns", per(time.Since(clock), n)})
}

func parked(n int) {
	open := make(chan struct{})
	done := newGate(n)
	var total time.Duration
	made := 0
	growInSteps(n, func(size int) {
		clock := time.Now()
		if size > made {
			arrived := newGate(size - made)
			for ; made < size; made++ {
				go func() {
					arrived.add()
					<-open
					done.add()
				}()
			}
			<-arrived.open
		}
		total += time.Since(clock)
	})
	close(open)
	<-done.open
	printMetrics(metric{"ns", per(total, n)})
}

func giveWay(n int) {
	t := newTeam(2, 2)
	for range 2 {
		t.add(func() {
			for range n {
				runtime.Gosched()
			}
		})
	}
	printMetrics(metric{"ns", per(t.run(), 2*n)})
}
