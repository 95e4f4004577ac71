// mailbox: one goroutine sends itself messages over a channel that has room for all, and then
// receives them.

package main

import (
	"strings"
	"time"
)

// message has a text, which is shared or a copy of its own, and further fields.
type message struct {
	text   string
	number int
	length int
	share  float64
}

// received keeps the reading of the messages from being optimised away.
var received float64

func mailbox(k, bytes int, fresh bool) {
	text := strings.Repeat("x", bytes)
	before := rssBytes()
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
	grown := rssBytes() - before

	clock = time.Now()
	for range k {
		m := <-me
		received += m.share + float64(m.number+m.length+len(m.text))
	}
	receiving := time.Since(clock)
	printMetrics(
		metric{"ns_per_send", per(sending, k)},
		metric{"ns_per_receive", per(receiving, k)},
		metric{"bytes_per_message", float64(grown) / float64(k)},
	)
}
