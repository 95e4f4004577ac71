/* A ring of processes that pass a number on: how to spawn, send, receive, and wait for the end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weald.h>

enum { PROCESSES = 1000 };

static weald_process ring[PROCESSES];

static void need(weald_code code) {
  if (code == WEALD_OK) return;
  fprintf(stderr, "%s: %s\n", weald_code_text(code), weald_last_error());
  exit(1);
}

/* Receives one number, and passes the next one on, unless it is the last in the ring. */
static int32_t pass_on(void *context) {
  size_t position = (size_t)context;
  weald_bytes message;
  need(weald_process_receive(WEALD_FOREVER, &message));
  int32_t number;
  memcpy(&number, message.data, sizeof number);
  weald_bytes_free(&message);
  number++;
  if (position + 1 < PROCESSES) need(weald_process_send(ring[position + 1], &number, sizeof number));
  return number;
}

int main(void) {
  for (size_t n = 0; n < PROCESSES; n++) need(weald_process_spawn(NULL, pass_on, (void *)n, &ring[n]));
  int32_t zero = 0;
  need(weald_process_send(ring[0], &zero, sizeof zero));
  weald_exit last;
  need(weald_process_wait(ring[PROCESSES - 1], WEALD_FOREVER, &last));
  printf("%d processes have passed it on\n", (int)last.code);
  return last.code == PROCESSES ? 0 : 1;
}
