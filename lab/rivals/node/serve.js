// serve-echo and serve-hello on Node.js: the servers that rival-load measures.
//
// Invariants: node's own net and http, on its one thread; the server prints its port first and ends with its input.

'use strict';

const net = require('node:net');
const http = require('node:http');

// The greeting and its type are those of every measured server.
const GREETING = 'hello, world\n';

const servers = { 'serve-echo': echo, 'serve-hello': hello };

function echo() {
  return net.createServer({ noDelay: true }, (socket) => {
    socket.on('data', (bytes) => socket.write(bytes));
    // A client that resets its connection is gone.
    socket.on('error', () => socket.destroy());
  });
}

function hello() {
  const answer = (_request, response) => {
    // No measured server announces that it keeps the connection, which is the default of HTTP/1.1.
    response.removeHeader('connection');
    response.writeHead(200, { 'content-type': 'text/plain', 'content-length': GREETING.length });
    response.end(GREETING);
  };
  // A limit would add a line to the answer.
  return http.createServer({ noDelay: true, keepAliveTimeout: 0 }, answer);
}

function end(sentence, code) {
  console.error(sentence);
  process.exit(code);
}

const [name, workers] = process.argv.slice(2);
if (name === '--version') {
  console.log(`Node.js ${process.version.slice(1)}`);
  process.exit(0);
}
if (!Object.hasOwn(servers, name)) {
  end('Call it as serve-echo or serve-hello with workers=1, or with --version.', 2);
}
if (workers !== 'workers=1') {
  end('Node.js runs JavaScript on one thread: call it with workers=1.', 2);
}
const server = servers[name]();
server.on('error', () => end('No port can be had: let the program listen on 127.0.0.1.', 1));
server.listen({ host: '127.0.0.1', port: 0, backlog: 4096 }, () => {
  console.log(`port ${server.address().port}`);
});
process.stdin.on('end', () => process.exit(0)).resume();
