/* Channels of each kind, and choices among them and time. */
#include "check.h"

static weald_channel channel_of(size_t capacity) {
  weald_channel channel;
  DO(weald_channel_create(capacity, &channel));
  return channel;
}

static void state(weald_channel channel, size_t expected_length, int expected_closed) {
  size_t length = 77;
  int32_t closed = 77;
  DO(weald_channel_state(channel, &length, &closed));
  CHECK(length == expected_length && closed == expected_closed);
}

static void bounded(void) {
  weald_channel channel = channel_of(2);
  weald_bytes message;
  RETURNS(WEALD_TIMED_OUT, weald_channel_receive(channel, WEALD_AT_ONCE, &message));
  RETURNS(WEALD_TIMED_OUT, weald_channel_receive(channel, 1 * MS, &message));
  DO(weald_channel_send(channel, "one", 3, WEALD_FOREVER));
  DO(weald_channel_send(channel, "two", 3, WEALD_AT_ONCE));
  RETURNS(WEALD_TIMED_OUT, weald_channel_send(channel, "three", 5, WEALD_AT_ONCE));
  RETURNS(WEALD_TIMED_OUT, weald_channel_send(channel, "three", 5, 1 * MS));
  state(channel, 2, 0);
  DO(weald_channel_receive(channel, WEALD_FOREVER, &message));
  expect_bytes(&message, "one");
  DO(weald_channel_close(channel));
  DO(weald_channel_close(channel));
  state(channel, 1, 1);
  RETURNS(WEALD_CLOSED, weald_channel_send(channel, "late", 4, WEALD_FOREVER));
  DO(weald_channel_receive(channel, WEALD_FOREVER, &message));
  expect_bytes(&message, "two");
  RETURNS(WEALD_CLOSED, weald_channel_receive(channel, WEALD_FOREVER, &message));
  DO(weald_release(channel));
}

static void unbounded(void) {
  weald_channel channel = channel_of(WEALD_UNBOUNDED);
  for (int n = 0; n < 1000; n++) DO(weald_channel_send(channel, &n, sizeof n, WEALD_AT_ONCE));
  for (int n = 0; n < 1000; n++) {
    weald_bytes message;
    DO(weald_channel_receive(channel, WEALD_AT_ONCE, &message));
    CHECK(message.length == sizeof n && memcmp(message.data, &n, sizeof n) == 0);
    weald_bytes_free(&message);
  }
  DO(weald_release(channel));
}

static void *sends_from_an_os_thread(void *context) {
  weald_channel channel = *(weald_channel *)context;
  CHECK(!weald_in_unit());
  DO(weald_channel_send(channel, "outside", 7, WEALD_FOREVER));
  return NULL;
}

static int32_t sends_from_a_process(void *context) {
  DO(weald_channel_send(*(weald_channel *)context, "inside", 6, WEALD_FOREVER));
  return 0;
}

static void rendezvous(void) {
  weald_channel channel = channel_of(0);
  weald_bytes message;
  RETURNS(WEALD_TIMED_OUT, weald_channel_send(channel, "x", 1, WEALD_AT_ONCE));
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, sends_from_an_os_thread, &channel) == 0);
  DO(weald_channel_receive(channel, WEALD_FOREVER, &message));
  expect_bytes(&message, "outside");
  os_join(thread);
  weald_process process;
  DO(weald_process_spawn(NULL, sends_from_a_process, &channel, &process));
  DO(weald_channel_receive(channel, WEALD_FOREVER, &message));
  expect_bytes(&message, "inside");
  DO(weald_process_wait(process, WEALD_FOREVER, NULL));
  DO(weald_release(process));
  DO(weald_release(channel));
}

/* A release closes the channel for those who wait for it. */
static int32_t waits(void *context) {
  weald_channel *channels = context;
  weald_bytes none;
  event_happens(channels[1]);
  RETURNS(WEALD_CLOSED, weald_channel_receive(channels[0], WEALD_FOREVER, &none));
  return 0;
}

static void released(void) {
  weald_channel channels[2] = {channel_of(1), event_create()};
  weald_process process;
  DO(weald_process_spawn(NULL, waits, channels, &process));
  event_wait(channels[1]);
  DO(weald_sleep(1 * MS));
  DO(weald_channel_close(channels[0]));
  DO(weald_process_wait(process, WEALD_FOREVER, NULL));
  DO(weald_release(channels[0]));
  DO(weald_release(process));
}

static void selects(void) {
  weald_channel one = channel_of(1), other = channel_of(1), meeting = channel_of(0);
  weald_select_case cases[4];
  memset(cases, 0, sizeof cases);
  cases[0].kind = WEALD_CASE_RECEIVE;
  cases[0].channel = one;
  cases[1].kind = WEALD_CASE_RECEIVE;
  cases[1].channel = other;
  cases[2].kind = WEALD_CASE_SEND;
  cases[2].channel = meeting;
  cases[2].data = "from a choice";
  cases[2].length = 13;
  cases[3].kind = WEALD_CASE_NEVER;
  size_t chosen = 77;
  RETURNS(WEALD_TIMED_OUT, weald_select(cases, 4, WEALD_AT_ONCE, &chosen));
  RETURNS(WEALD_TIMED_OUT, weald_select(cases, 4, 1 * MS, &chosen));
  RETURNS(WEALD_TIMED_OUT, weald_select(NULL, 0, 1 * MS, &chosen));
  CHECK(chosen == 77);
  DO(weald_channel_send(other, "to the other", 12, WEALD_FOREVER));
  DO(weald_select(cases, 4, WEALD_FOREVER, &chosen));
  CHECK(chosen == 1);
  expect_bytes(&cases[1].message, "to the other");
  cases[3].kind = WEALD_CASE_AFTER;
  cases[3].duration_ns = 1 * MS;
  DO(weald_select(cases, 4, WEALD_FOREVER, &chosen));
  CHECK(chosen == 3);
  cases[3].duration_ns = 3600 * SECOND;
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, sends_from_an_os_thread, &one) == 0);
  DO(weald_select(cases, 4, WEALD_FOREVER, &chosen));
  CHECK(chosen == 0);
  expect_bytes(&cases[0].message, "outside");
  os_join(thread);
  /* A send that is chosen. */
  cases[2].channel = one;
  DO(weald_select(&cases[2], 1, WEALD_FOREVER, &chosen));
  CHECK(chosen == 0);
  DO(weald_channel_receive(one, WEALD_AT_ONCE, &cases[0].message));
  expect_bytes(&cases[0].message, "from a choice");
  cases[2].channel = meeting;
  /* A channel that is closed is chosen. */
  DO(weald_channel_close(other));
  chosen = 77;
  RETURNS(WEALD_CLOSED, weald_select(cases, 4, WEALD_FOREVER, &chosen));
  CHECK(chosen == 1);
  RETURNS(WEALD_NULL, weald_select(cases, 4, 0, NULL));
  RETURNS(WEALD_NULL, weald_select(NULL, 4, 0, &chosen));
  RETURNS(WEALD_ARGUMENT, weald_select(cases, (size_t)-1, 0, &chosen));
  cases[0].kind = 9;
  RETURNS(WEALD_ARGUMENT, weald_select(cases, 4, 0, &chosen));
  cases[0].kind = WEALD_CASE_RECEIVE;
  cases[0].channel = 0;
  RETURNS(WEALD_HANDLE, weald_select(cases, 4, 0, &chosen));
  cases[0].channel = one;
  cases[3].duration_ns = -1;
  RETURNS(WEALD_ARGUMENT, weald_select(cases, 4, 0, &chosen));
  cases[2].data = NULL;
  RETURNS(WEALD_NULL, weald_select(&cases[2], 1, 0, &chosen));
  DO(weald_release(one));
  DO(weald_release(other));
  DO(weald_release(meeting));
}

enum { TRIES = 2000 };

static void *sends_at_once(void *context) {
  weald_select_case send;
  memset(&send, 0, sizeof send);
  send.kind = WEALD_CASE_SEND;
  send.channel = *(weald_channel *)context;
  send.data = "x";
  send.length = 1;
  for (size_t sent = 0, chosen; sent < TRIES;) {
    weald_code code = weald_select(&send, 1, WEALD_AT_ONCE, &chosen);
    CHECK(code == WEALD_OK || code == WEALD_TIMED_OUT);
    sent += code == WEALD_OK;
  }
  DO(weald_channel_close(send.channel));
  return NULL;
}

/* A choice that says that it sent nothing has sent nothing, also if a receiver comes just then. */
static void selects_at_once(void) {
  weald_channel meeting = channel_of(0);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, sends_at_once, &meeting) == 0);
  weald_bytes message;
  size_t received = 0;
  for (; weald_channel_receive(meeting, WEALD_FOREVER, &message) == WEALD_OK; received++) {
    weald_bytes_free(&message);
  }
  os_join(thread);
  CHECK(received == TRIES);
  DO(weald_release(meeting));
}

static void errors(void) {
  weald_channel channel = channel_of(1);
  weald_bytes message;
  RETURNS(WEALD_NULL, weald_channel_create(1, NULL));
  RETURNS(WEALD_ARGUMENT, weald_channel_create((size_t)-2, &channel));
  RETURNS(WEALD_NULL, weald_channel_send(channel, NULL, 1, 0));
  RETURNS(WEALD_NULL, weald_channel_receive(channel, 0, NULL));
  DO(weald_channel_state(channel, NULL, NULL));
  DO(weald_release(channel));
  RETURNS(WEALD_HANDLE, weald_channel_send(channel, "", 0, 0));
  RETURNS(WEALD_HANDLE, weald_channel_receive(channel, 0, &message));
  RETURNS(WEALD_HANDLE, weald_channel_close(channel));
  RETURNS(WEALD_HANDLE, weald_channel_state(channel, NULL, NULL));
  RETURNS(WEALD_HANDLE, weald_release(channel));
}

static void test(void) {
  errors();
  bounded();
  unbounded();
  rendezvous();
  released();
  selects();
  selects_at_once();
}
