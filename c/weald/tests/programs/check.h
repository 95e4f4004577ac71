/* What the test programs share: checks that end the program, and a main that runs the test outside of units or in one.
 *
 *   PROGRAM outside   on the OS thread of main, with the default runtime
 *   PROGRAM N         in a thread of a runtime with N workers */
#pragma once
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weald.h>

#define CHECK(condition)                                                                            \
  do {                                                                                              \
    if (!(condition)) {                                                                             \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                       \
      abort();                                                                                      \
    }                                                                                               \
  } while (0)

/* A call returns this code. */
#define RETURNS(expected, call)                                                                     \
  do {                                                                                              \
    weald_code returned = (call);                                                                   \
    if (returned != (expected)) {                                                                   \
      fprintf(stderr, "%s:%d: %s returned %d and not %s: %s\n", __FILE__, __LINE__, #call,           \
              (int)returned, #expected, weald_last_error());                                         \
      abort();                                                                                      \
    }                                                                                               \
  } while (0)

#define DO(call) RETURNS(WEALD_OK, call)

#define MS 1000000LL
#define SECOND (1000 * MS)

static inline void expect_bytes(weald_bytes *bytes, const char *expected) {
  CHECK(bytes->length == strlen(expected) && memcmp(bytes->data, expected, bytes->length + 1) == 0);
  weald_bytes_free(bytes);
  CHECK(bytes->data == NULL && bytes->length == 0);
}

/* An event that anybody may wait for: a channel without messages, until it is closed. */
static inline weald_channel event_create(void) {
  weald_channel event;
  DO(weald_channel_create(0, &event));
  return event;
}

static inline void event_happens(weald_channel event) { DO(weald_channel_close(event)); }

static inline void event_wait(weald_channel event) {
  weald_bytes none;
  RETURNS(WEALD_CLOSED, weald_channel_receive(event, WEALD_FOREVER, &none));
}

static void join_os_thread_here(void *context) { CHECK(pthread_join(*(pthread_t *)context, NULL) == 0); }

/* Joins an OS thread of the program, and leaves the worker to others meanwhile. */
static inline void os_join(pthread_t thread) { DO(weald_blocking(join_os_thread_here, &thread)); }

static int is_in_unit;

/* The test of the program. */
static void test(void);

static inline void *run_test(void *context) {
  test();
  return context;
}

#ifndef OWN_MAIN
int main(int arguments, char **argument) {
  CHECK(arguments == 2);
  is_in_unit = strcmp(argument[1], "outside") != 0;
  if (!is_in_unit) {
    CHECK(!weald_in_unit());
    test();
    return 0;
  }
  weald_runtime_options options;
  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  options.workers = (size_t)atol(argument[1]);
  options.name = "test";
  weald_runtime runtime;
  DO(weald_runtime_create(&options, &runtime));
  void *result = NULL;
  DO(weald_runtime_run(runtime, run_test, &options, &result));
  CHECK(result == &options);
  size_t unended = 1;
  DO(weald_runtime_shutdown(runtime, 60 * SECOND, &unended));
  CHECK(unended == 0);
  RETURNS(WEALD_HANDLE, weald_runtime_shutdown(runtime, 0, NULL));
  return 0;
}
#endif
