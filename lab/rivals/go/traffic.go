// The workloads of processes and messages: spawn, ring, mailbox, many-to-many, fan-in, burst-send and ping-pong.

package main

import (
	"runtime"
	"strings"
	"time"
)

// fanInRoom is the room of a receiver's channel: senders wait when it is full, as is usual in Go.
const fanInRoom = 1024

// spawn measures how long a goroutine takes to start and to end, and its memory while it waits.
func spawn() {
	n := number("n")
	started, ended := newGate(n), newGate(n)
	handles := make([]chan int, n)
	// A write to each element makes the array resident before the clock starts.
	unused := make(chan int)
	for i := range handles {
		handles[i] = unused
	}
	others := runtime.NumGoroutine()
	at(0)
	clock := time.Now()
	for i := range handles {
		mailbox := make(chan int, 1)
		handles[i] = mailbox
		go func() {
			started.add()
			<-mailbox
			ended.add()
		}()
	}
	<-started.open
	spawning := time.Since(clock)
	at(n)

	clock = time.Now()
	for _, mailbox := range handles {
		mailbox <- 0
	}
	<-ended.open
	for runtime.NumGoroutine() > others {
		runtime.Gosched()
	}
	teardown := time.Since(clock)
	printMetrics(
		metric{"ns_per_spawn", per(spawning, n)},
		metric{"ns_per_teardown", per(teardown, n)},
	)
}

// ring has tokens go round a ring of goroutines, each of which knows only its neighbour.
func ring() {
	n, m, tokens := number("n"), number("m"), number("tokens")
	if tokens > n {
		badUsage("There are more tokens than processes: give tokens <= n.")
	}
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
		metric{"ms_with_setup", 1e3 * time.Since(setup).Seconds()},
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

// message has a text, which is shared or a copy of its own, and further fields.
type message struct {
	text   string
	number int
	length int
	share  float64
}

// received keeps the reading of the messages from being optimised away.
var received float64

// mailbox has one goroutine send itself messages over a channel that has room for all, and then receive them.
func mailbox() {
	k, fresh := number("k"), word("payload", "shared", "fresh") == "fresh"
	text := strings.Repeat("x", number("bytes"))
	at(0)
	me := make(chan message, k)
	clock := time.Now()
	for i := range k {
		sent := text
		if fresh {
			sent = strings.Clone(text)
		}
		me <- message{sent, i, i + 1, float64(i) * 0.5}
	}
	sending := time.Since(clock)
	at(k)

	clock = time.Now()
	for range k {
		m := <-me
		received += m.share + float64(m.number+m.length+len(m.text))
	}
	receiving := time.Since(clock)
	printMetrics(
		metric{"ns_per_send", per(sending, k)},
		metric{"ns_per_receive", per(receiving, k)},
	)
}

// manyToMany has goroutines send to pseudo-random others.
func manyToMany() {
	processes, messages := number("processes"), number("messages")
	expected := expectedCounts(processes, messages)
	everyone := make([]chan int, processes)
	for i := range everyone {
		// Each one sends before it receives, so a mailbox must have room for all that will arrive.
		everyone[i] = make(chan int, max(expected[i], 1))
	}
	t := newTeam(processes, processes)
	for i := range everyone {
		t.add(func() {
			random := xorshift(i + 1)
			for number := range messages {
				everyone[random.nextBelow(processes)] <- number
			}
			receive(everyone[i], expected[i])
		})
	}
	printMetrics(metric{"ns_per_message", per(t.run(), processes, messages)})
}

func receive(mailbox <-chan int, count int) {
	for range count {
		<-mailbox
	}
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

// fanIn has many senders and one receiver.
func fanIn() {
	senders, messages := number("senders"), number("messages")
	t := newTeam(senders+1, 1)
	receiver := make(chan int, fanInRoom)
	t.addWaiting(func() { receive(receiver, senders*messages) })
	for range senders {
		t.addUncounted(func() { send(receiver, messages) })
	}
	printMetrics(metric{"ns_per_message", per(t.run(), senders, messages)})
}

// burstSend has one goroutine send to each of its receivers in turn.
func burstSend() {
	receivers := number("receivers")
	each := (number("messages") + receivers - 1) / receivers
	bindToProcessors(number("cores"))
	t := newTeam(receivers+1, receivers)
	everyone := make([]chan int, receivers)
	for i := range everyone {
		everyone[i] = make(chan int, fanInRoom)
		t.addWaiting(func() { receive(everyone[i], each) })
	}
	t.addUncounted(func() {
		for number := range each {
			for _, receiver := range everyone {
				receiver <- number
			}
		}
	})
	printMetrics(metric{"ns_per_message", per(t.run(), receivers, each)})
}

// pingPong has two goroutines send one small integer back and forth.
func pingPong() {
	rounds := number("rounds")
	t := newTeam(2, 1)
	ping, pong := make(chan int, 1), make(chan int, 1)
	t.addWaiting(func() {
		for left := range pong {
			ping <- left
		}
	})
	t.addWaiting(func() {
		for left := range ping {
			if left == 0 {
				return
			}
			pong <- left - 1
		}
	})
	elapsed := t.runFrom(func() { ping <- rounds })
	printMetrics(metric{"ns_per_round_trip", per(elapsed, rounds)})
}
