// serve-echo, serve-hello and serve-board (board.go): the servers that rival-load measures.
//
// Invariants: a goroutine for each connection; the server prints its port first and ends with its input.

package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
)

// greeting and its type are those of every measured server.
const greeting = "hello, world\n"

func serve(accept func(net.Listener) error) func() {
	return func() {
		listener, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			fail("Cannot listen on 127.0.0.1: allow the program to do so.")
		}
		fmt.Printf("port %d\n", listener.Addr().(*net.TCPAddr).Port)
		go func() {
			io.Copy(io.Discard, os.Stdin)
			os.Exit(0)
		}()
		fail(fmt.Sprintf("The server has ended: %v.", accept(listener)))
	}
}

func serveEcho(listener net.Listener) error {
	for {
		connection, err := listener.Accept()
		if err != nil {
			return err
		}
		go giveBack(connection)
	}
}

func giveBack(connection net.Conn) {
	defer connection.Close()
	place := make([]byte, 1024)
	for {
		count, err := connection.Read(place)
		if err != nil {
			return
		}
		if _, err := connection.Write(place[:count]); err != nil {
			return
		}
	}
}

func serveHello(listener net.Listener) error {
	body := []byte(greeting)
	hello := func(writer http.ResponseWriter, _ *http.Request) {
		writer.Header().Set("Content-Type", "text/plain")
		writer.Write(body)
	}
	return http.Serve(listener, http.HandlerFunc(hello))
}
