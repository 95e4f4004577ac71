// channel and select: integers through bounded or unbuffered channels.

package main

// receivedSum keeps the messages from being optimised away.
var receivedSum int

// readRoom reads how many messages a channel has room for.
func readRoom(k keys) int {
	switch k.word("kind", "bounded", "unbounded", "rendezvous") {
	case "bounded":
		return k.number("capacity", 1)
	case "rendezvous":
		return 0
	}
	badUsage("Go has no channel without a bound: give kind=bounded or kind=rendezvous.")
	return 0
}

func readChannel(k keys) func() {
	senders, messages, room := k.number("senders", 1), k.number("messages", 1), readRoom(k)
	return func() { channel(senders, messages, room) }
}

func channel(senders, messages, room int) {
	messenger := make(chan int, room)
	t := newTeam(senders + 1)
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

func readSelect(k keys) func() {
	branches, messages, room := k.number("branches", 2), k.number("messages", 1), readRoom(k)
	if branches != 2 && branches != 8 {
		badUsage("The key `branches` takes `2` or `8`.")
	}
	return func() { selection(branches, messages, room) }
}

func selection(branches, messages, room int) {
	channels := make([]chan int, branches)
	for i := range channels {
		channels[i] = make(chan int, room)
	}
	t := newTeam(branches + 1)
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
