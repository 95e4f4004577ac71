/* Callbacks at once, later, and in periods; and the readiness of descriptors. */
#include "check.h"

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
}
