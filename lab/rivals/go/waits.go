// What goroutines wait with: channel and select, lock, condvar and barrier, and the footprint of such things.

package main

import (
	"runtime"
	"sync"
)

// receivedSum keeps the messages from being optimised away.
var receivedSum int

// readRoom reads how many messages a channel has room for.
func readRoom() int {
	switch word("kind", "bounded", "unbounded", "rendezvous") {
	case "bounded":
		return number("capacity")
	case "rendezvous":
		return 0
	}
	badUsage("Go has no channel without a bound: give kind=bounded or kind=rendezvous.")
	return 0
}

func channel() {
	senders, messages := number("senders"), number("messages")
	messenger := make(chan int, readRoom())
	t := newTeam(senders+1, senders+1)
	t.add(func() {
		sum := 0
		for range senders * messages {
			sum += <-messenger
		}
		receivedSum = sum
	})
	for range senders {
		t.add(func() { send(messenger, messages) })
	}
	printMetrics(metric{"ns_per_message", per(t.run(), senders, messages)})
}

func send(messenger chan<- int, messages int) {
	for number := range messages {
		messenger <- number
	}
}

func selection() {
	branches, messages, room := number("branches"), number("messages"), readRoom()
	if branches != 2 && branches != 8 {
		badUsage("The key `branches` takes `2` or `8`.")
	}
	channels := make([]chan int, branches)
	for i := range channels {
		channels[i] = make(chan int, room)
	}
	t := newTeam(branches+1, branches+1)
	total := branches * messages
	if branches == 2 {
		t.add(func() { receivedSum = fromTwo([2]chan int(channels), total) })
	} else {
		t.add(func() { receivedSum = fromEight([8]chan int(channels), total) })
	}
	for _, messenger := range channels {
		t.add(func() { send(messenger, messages) })
	}
	printMetrics(metric{"ns_per_message", per(t.run(), branches, messages)})
}

func fromTwo(c [2]chan int, total int) int {
	sum := 0
	for range total {
		select {
		case value := <-c[0]:
			sum += value
		case value := <-c[1]:
			sum += value
		}
	}
	return sum
}

func fromEight(c [8]chan int, total int) int {
	sum := 0
	for range total {
		select {
		case value := <-c[0]:
			sum += value
		case value := <-c[1]:
			sum += value
		case value := <-c[2]:
			sum += value
		case value := <-c[3]:
			sum += value
		case value := <-c[4]:
			sum += value
		case value := <-c[5]:
			sum += value
		case value := <-c[6]:
			sum += value
		case value := <-c[7]:
			sum += value
		}
	}
	return sum
}

func lockKeys() {
	yields := word("inside", "nothing", "yield") == "yield"
	lock(number("units"), number("rounds"), yields)
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
	t := newTeam(units, units)
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
	t := newTeam(2, 2)
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

func meet(units, rounds int) {
	b := newBarrier(units)
	t := newTeam(units, units)
	for range units {
		t.add(func() {
			for range rounds {
				b.wait()
			}
		})
	}
	printMetrics(metric{"ns", per(t.run(), rounds)})
}

// footprint measures how much memory unused mutexes or channels take.
func footprint() {
	n := number("n")
	at(0)
	switch word("what", "mutex", "bounded", "rendezvous") {
	case "mutex":
		things := make([]sync.Mutex, n)
		for i := range things {
			// Fresh pages are resident only when they are written to.
			things[i].Lock()
			things[i].Unlock()
		}
		at(n)
		runtime.KeepAlive(things)
	case "bounded":
		footprintOfChannels(n, 1)
	default:
		footprintOfChannels(n, 0)
	}
}

func footprintOfChannels(n, room int) {
	things := make([]chan int, n)
	for i := range things {
		things[i] = make(chan int, room)
	}
	at(n)
	runtime.KeepAlive(things)
}
