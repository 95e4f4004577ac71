/* Callbacks at once, later, and in periods; and the readiness of descriptors. */
#define _GNU_SOURCE
#include "check.h"
#include <fcntl.h>
#include <sched.h>

static void tell(void *context) { event_happens(*(weald_channel *)context); }

static void send_one(void *context) {
  CHECK(weald_in_unit());
  DO(weald_channel_send(*(weald_channel *)context, "x", 1, WEALD_AT_ONCE));
}

static void once(void) {
  weald_channel event = event_create(), later = event_create();
  weald_callback callback;
  int32_t prevented = 7;
  DO(weald_callback_start(tell, &event, &callback));
  event_wait(event);
  DO(weald_callback_after(1 * MS, tell, &later, NULL));
  event_wait(later);
  DO(weald_callback_cancel(callback, &prevented));
  CHECK(prevented == 0);
  DO(weald_release(callback));
  DO(weald_callback_after(3600 * SECOND, tell, &later, &callback));
  DO(weald_callback_cancel(callback, &prevented));
  CHECK(prevented == 1);
  DO(weald_callback_cancel(callback, NULL));
  DO(weald_release(callback));
  DO(weald_release(event));
  event = event_create();
  DO(weald_callback_start(tell, &event, NULL));
  event_wait(event);
  DO(weald_release(event));
  DO(weald_release(later));
}

static void every(void) {
  weald_channel ticks;
  weald_callback callback;
  DO(weald_channel_create(WEALD_UNBOUNDED, &ticks));
  DO(weald_callback_every(1 * MS, send_one, &ticks, &callback));
  for (int n = 0; n < 3; n++) {
    weald_bytes tick;
    DO(weald_channel_receive(ticks, WEALD_FOREVER, &tick));
    weald_bytes_free(&tick);
  }
  DO(weald_callback_cancel(callback, NULL));
  DO(weald_release(callback));
  /* A call that had begun may still send; so the channel stays. */
}

static void *writes(void *context) {
  CHECK(write(*(int *)context, "x", 1) == 1);
  return NULL;
}

static void readiness(void) {
  int ends[2];
  char byte;
  CHECK(pipe(ends) == 0);
  RETURNS(WEALD_TIMED_OUT, weald_wait_readable(ends[0], WEALD_AT_ONCE));
  RETURNS(WEALD_TIMED_OUT, weald_wait_readable(ends[0], 1 * MS));
  DO(weald_wait_writable(ends[1], WEALD_AT_ONCE));
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, writes, &ends[1]) == 0);
  DO(weald_wait_readable(ends[0], WEALD_FOREVER));
  DO(weald_wait_readable(ends[0], WEALD_AT_ONCE));
  CHECK(read(ends[0], &byte, 1) == 1 && byte == 'x');
  os_join(thread);
  RETURNS(WEALD_TIMED_OUT, weald_wait_readable(ends[0], 1 * MS));
  CHECK(close(ends[1]) == 0);
  DO(weald_wait_readable(ends[0], WEALD_FOREVER));
  CHECK(close(ends[0]) == 0);
  RETURNS(WEALD_ARGUMENT, weald_wait_readable(ends[0], WEALD_FOREVER));
  RETURNS(WEALD_ARGUMENT, weald_wait_writable(-1, WEALD_FOREVER));
}

enum { ROUNDS = 2000 };

typedef struct {
  int ends[2];
  weald_channel taken;
} shared_pipe;

static void *takes(void *context) {
  shared_pipe *pipe = context;
  for (int round = 0; round < ROUNDS;) {
    char bytes[2];
    DO(weald_wait_readable(pipe->ends[0], WEALD_FOREVER));
    ssize_t length = read(pipe->ends[0], bytes, sizeof bytes);
    CHECK(length > 0 || errno == EAGAIN);
    if (length <= 0 || bytes[length - 1] != 'b') continue;
    DO(weald_channel_send(pipe->taken, "", 0, WEALD_FOREVER));
    round++;
  }
  return NULL;
}

/* Another reader takes what the waiter was woken for; what comes next wakes it again. */
static void readers(void) {
  shared_pipe pipe;
  CHECK(pipe2(pipe.ends, O_NONBLOCK) == 0);
  DO(weald_channel_create(WEALD_UNBOUNDED, &pipe.taken));
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, takes, &pipe) == 0);
  for (int round = 0; round < ROUNDS; round++) {
    char byte;
    weald_bytes none;
    CHECK(write(pipe.ends[1], "a", 1) == 1);
    for (int turn = 0; turn < round % 64; turn++) sched_yield();
    CHECK(read(pipe.ends[0], &byte, 1) == 1 ? byte == 'a' : errno == EAGAIN);
    for (int turn = 0; turn < round / 16 % 64; turn++) sched_yield();
    CHECK(write(pipe.ends[1], "b", 1) == 1);
    DO(weald_channel_receive(pipe.taken, WEALD_FOREVER, &none));
    weald_bytes_free(&none);
  }
  os_join(thread);
  CHECK(close(pipe.ends[0]) == 0 && close(pipe.ends[1]) == 0);
  DO(weald_release(pipe.taken));
}

static void test(void) {
  weald_callback callback;
  RETURNS(WEALD_NULL, weald_callback_start(NULL, NULL, NULL));
  RETURNS(WEALD_NULL, weald_callback_after(1, NULL, NULL, &callback));
  RETURNS(WEALD_NULL, weald_callback_every(1, NULL, NULL, &callback));
  RETURNS(WEALD_ARGUMENT, weald_callback_after(-1, tell, NULL, NULL));
  RETURNS(WEALD_ARGUMENT, weald_callback_every(0, tell, NULL, NULL));
  RETURNS(WEALD_ARGUMENT, weald_callback_every(-1, tell, NULL, NULL));
  RETURNS(WEALD_HANDLE, weald_callback_cancel(0, NULL));
  once();
  every();
  readiness();
  readers();
}
