/* Processes: messages, ends, cancels, names, an OS thread of their own; and runtimes. */
#include "check.h"


/* Sends back what it receives, until that is empty; then it ends with the number of messages. */
static int32_t echo(void *context) {
  weald_channel answers = *(weald_channel *)context;
  for (int32_t count = 0;; count++) {
    weald_bytes message;
    DO(weald_process_receive(WEALD_FOREVER, &message));
    if (message.length == 0) {
      weald_bytes_free(&message);
      return count;
    }
    DO(weald_channel_send(answers, message.data, message.length, WEALD_FOREVER));
    weald_bytes_free(&message);
  }
}

static void messages(uint32_t flags) {
  weald_channel answers;
  DO(weald_channel_create(WEALD_UNBOUNDED, &answers));
  weald_spawn_options options = {0};
  options.size = sizeof options;
  options.flags = flags;
  options.name = "echo";
  options.stack_size = flags == 0 ? 0 : 512 << 10;
  weald_process process;
  DO(weald_process_spawn(&options, echo, &answers, &process));
  int32_t alive = 0;
  DO(weald_process_is_alive(process, &alive));
  CHECK(alive == 1);
  weald_exit exit;
  RETURNS(WEALD_TIMED_OUT, weald_process_wait(process, 0, &exit));
  for (int n = 0; n < 100; n++) DO(weald_process_send(process, "hello", 5));
  for (int n = 0; n < 100; n++) {
    weald_bytes answer;
    DO(weald_channel_receive(answers, WEALD_FOREVER, &answer));
    expect_bytes(&answer, "hello");
  }
  DO(weald_process_send(process, NULL, 0));
  DO(weald_process_wait(process, WEALD_FOREVER, &exit));
  CHECK(exit.kind == WEALD_EXIT_RETURNED && exit.code == 100);
  DO(weald_process_wait(process, WEALD_FOREVER, NULL));
  DO(weald_process_is_alive(process, &alive));
  CHECK(alive == 0);
  RETURNS(WEALD_CLOSED, weald_process_send(process, "late", 4));
  DO(weald_process_cancel(process));
  DO(weald_release(process));
  DO(weald_release(answers));
}

/* Receives with time limits; then waits until it is cancelled, and is told so again and again. */
static int32_t cancelled(void *context) {
  weald_channel *channels = context;
  weald_bytes none;
  RETURNS(WEALD_TIMED_OUT, weald_process_receive(0, &none));
  RETURNS(WEALD_TIMED_OUT, weald_process_receive(1 * MS, &none));
  CHECK(weald_in_unit());
  DO(weald_check_cancel());
  event_happens(channels[0]);
  RETURNS(WEALD_CANCELLED, weald_process_receive(WEALD_FOREVER, &none));
  RETURNS(WEALD_CANCELLED, weald_process_receive(WEALD_FOREVER, &none));
  RETURNS(WEALD_CANCELLED, weald_channel_receive(channels[1], WEALD_FOREVER, &none));
  RETURNS(WEALD_CANCELLED, weald_sleep(3600 * SECOND));
  RETURNS(WEALD_CANCELLED, weald_yield());
  RETURNS(WEALD_CANCELLED, weald_check_cancel());
  CHECK(strstr(weald_last_error(), "cancelled") != NULL);
  return 7;
}

static void cancels(void) {
  weald_channel channels[2] = {event_create(), event_create()};
  weald_process process;
  DO(weald_process_spawn(NULL, cancelled, channels, &process));
  event_wait(channels[0]);
  DO(weald_process_cancel(process));
  weald_exit exit;
  DO(weald_process_wait(process, WEALD_FOREVER, &exit));
  CHECK(exit.kind == WEALD_EXIT_CANCELLED && exit.code == 0);
  DO(weald_release(process));
  DO(weald_release(channels[0]));
  DO(weald_release(channels[1]));
}

static int32_t cancelled_alone(void *context) {
  weald_channel *channels = context;
  weald_bytes none;
  CHECK(!weald_in_unit());
  RETURNS(WEALD_TIMED_OUT, weald_process_receive(1 * MS, &none));
  DO(weald_check_cancel());
  event_happens(channels[0]);
  RETURNS(WEALD_CANCELLED, weald_process_receive(WEALD_FOREVER, &none));
  RETURNS(WEALD_CANCELLED, weald_check_cancel());
  event_happens(channels[1]);
  return 7;
}

static void cancels_own_thread(void) {
  weald_channel channels[2] = {event_create(), event_create()};
  weald_spawn_options options = {sizeof options, 0, 0, WEALD_OWN_THREAD, NULL};
  weald_process process;
  DO(weald_process_spawn(&options, cancelled_alone, channels, &process));
  event_wait(channels[0]);
  DO(weald_process_cancel(process));
  weald_exit exit;
  DO(weald_process_wait(process, WEALD_FOREVER, &exit));
  CHECK(exit.kind == WEALD_EXIT_CANCELLED);
  event_wait(channels[1]);
  DO(weald_release(process));
}

static int32_t cancelled_with_messages(void *context) {
  weald_channel *channels = context;
  weald_bytes message;
  DO(weald_process_receive(WEALD_FOREVER, &message));
  expect_bytes(&message, "one");
  event_happens(channels[2]);
  event_wait(channels[0]);
  RETURNS(WEALD_CANCELLED, weald_check_cancel());
  RETURNS(WEALD_CANCELLED, weald_process_receive(WEALD_AT_ONCE, &message));
  event_happens(channels[1]);
  return 0;
}

/* The messages that it has not received do not keep its function going. */
static void cancels_own_thread_with_messages(void) {
  weald_channel channels[3] = {event_create(), event_create(), event_create()};
  weald_spawn_options options = {sizeof options, 0, 0, WEALD_OWN_THREAD, NULL};
  weald_process process;
  DO(weald_process_spawn(&options, cancelled_with_messages, channels, &process));
  for (int n = 0; n < 100; n++) DO(weald_process_send(process, "one", 3));
  event_wait(channels[2]);
  DO(weald_process_cancel(process));
  DO(weald_process_wait(process, WEALD_FOREVER, NULL));
  event_happens(channels[0]);
  event_wait(channels[1]);
  DO(weald_release(process));
}

/* Passes itself to its parent. */
static int32_t itself(void *context) {
  weald_process self;
  DO(weald_process_self(&self));
  DO(weald_process_send(self, "to myself", 9));
  RETURNS(WEALD_DEADLOCK, weald_process_wait(self, WEALD_FOREVER, NULL));
  DO(weald_channel_send(*(weald_channel *)context, &self, sizeof self, WEALD_FOREVER));
  weald_bytes message;
  DO(weald_process_receive(WEALD_FOREVER, &message));
  expect_bytes(&message, "to myself");
  DO(weald_process_receive(WEALD_FOREVER, &message));
  expect_bytes(&message, "from the parent");
  return -3;
}

static void selves(void) {
  weald_channel selves;
  DO(weald_channel_create(1, &selves));
  weald_process process, self;
  DO(weald_process_spawn(NULL, itself, &selves, &process));
  weald_bytes bytes;
  DO(weald_channel_receive(selves, WEALD_FOREVER, &bytes));
  CHECK(bytes.length == sizeof self);
  memcpy(&self, bytes.data, sizeof self);
  weald_bytes_free(&bytes);
  DO(weald_process_send(self, "from the parent", 15));
  weald_exit exit;
  DO(weald_process_wait(self, WEALD_FOREVER, &exit));
  CHECK(exit.kind == WEALD_EXIT_RETURNED && exit.code == -3);
  DO(weald_release(self));
  DO(weald_release(process));
  DO(weald_release(selves));
}

static int32_t waits(void *context) {
  weald_bytes message;
  DO(weald_process_receive(WEALD_FOREVER, &message));
  weald_bytes_free(&message);
  return *(int32_t *)context;
}

static void tell(void *context) { event_happens(*(weald_channel *)context); }

static void names(void) {
  int32_t code = 11;
  weald_process one, other, found;
  RETURNS(WEALD_MISSING, weald_process_find("waiter", &found));
  DO(weald_process_spawn(NULL, waits, &code, &one));
  DO(weald_process_spawn(NULL, waits, &code, &other));
  DO(weald_process_register(one, "waiter"));
  RETURNS(WEALD_TAKEN, weald_process_register(other, "waiter"));
  DO(weald_process_register(other, "other"));
  DO(weald_process_unregister("other"));
  RETURNS(WEALD_MISSING, weald_process_unregister("other"));
  DO(weald_process_find("waiter", &found));
  CHECK(found != one);
  weald_channel end = event_create();
  DO(weald_process_on_end(found, tell, &end));
  DO(weald_process_send(found, "go", 2));
  weald_exit exit;
  DO(weald_process_wait(found, WEALD_FOREVER, &exit));
  CHECK(exit.kind == WEALD_EXIT_RETURNED && exit.code == 11);
  event_wait(end);
  DO(weald_release(end));
  end = event_create();
  DO(weald_process_on_end(one, tell, &end));
  event_wait(end);
  RETURNS(WEALD_MISSING, weald_process_find("waiter", &found));
  RETURNS(WEALD_CLOSED, weald_process_register(one, "late"));
  DO(weald_process_send(other, "go", 2));
  DO(weald_process_wait(other, WEALD_FOREVER, &exit));
  DO(weald_release(one));
  DO(weald_release(other));
  DO(weald_release(found));
  DO(weald_release(end));
}

/* --- runtimes --- */

static void *spawns(void *context) {
  weald_process process;
  int32_t code = 5;
  CHECK(weald_in_unit());
  DO(weald_process_spawn(NULL, waits, &code, &process));
  DO(weald_process_send(process, "go", 2));
  weald_exit exit;
  DO(weald_process_wait(process, WEALD_FOREVER, &exit));
  CHECK(exit.code == 5);
  DO(weald_release(process));
  return context;
}

static int32_t left(void *context) {
  weald_bytes none;
  event_happens(((weald_channel *)context)[0]);
  RETURNS(WEALD_CANCELLED, weald_process_receive(WEALD_FOREVER, &none));
  event_happens(((weald_channel *)context)[1]);
  return 0;
}

static weald_runtime busy_runtime;

static void *cannot_end_its_runtime(void *context) {
  RETURNS(WEALD_BUSY, weald_runtime_shutdown(busy_runtime, 0, NULL));
  return context;
}

static void runtimes(void) {
  weald_runtime runtime;
  DO(weald_runtime_create(NULL, &runtime));
  void *result = NULL;
  DO(weald_runtime_run(runtime, spawns, &runtime, &result));
  CHECK(result == &runtime);
  DO(weald_runtime_run(0, spawns, NULL, NULL));
  busy_runtime = runtime;
  DO(weald_runtime_run(runtime, cannot_end_its_runtime, NULL, NULL));
  weald_channel channels[2] = {event_create(), event_create()};
  weald_spawn_options options = {sizeof options, runtime, 0, 0, "left"};
  weald_process process;
  DO(weald_process_spawn(&options, left, channels, &process));
  event_wait(channels[0]);
  size_t unended = 1;
  DO(weald_runtime_shutdown(runtime, 1 * MS, &unended));
  event_wait(channels[1]);
  CHECK(unended == 0);
  RETURNS(WEALD_HANDLE, weald_process_spawn(&options, left, channels, &process));
  RETURNS(WEALD_HANDLE, weald_runtime_run(runtime, spawns, NULL, NULL));
  DO(weald_release(process));
}

typedef struct {
  weald_channel question, answer;
} pair;

static void *answers(void *context) {
  pair *channels = context;
  weald_bytes message;
  DO(weald_channel_receive(channels->question, WEALD_FOREVER, &message));
  expect_bytes(&message, "last");
  DO(weald_channel_send(channels->answer, "word", 4, WEALD_FOREVER));
  return NULL;
}

static int32_t asks(void *context) {
  pair *channels = context;
  weald_bytes message;
  /* With limits: a runtime that shuts down waits for units that wait for time, and cancels others that wait. */
  DO(weald_channel_send(channels->question, "last", 4, 20 * SECOND));
  DO(weald_channel_receive(channels->answer, 20 * SECOND, &message));
  expect_bytes(&message, "word");
  return 0;
}

static void *releases(void *context) {
  DO(weald_release(*(weald_runtime *)context));
  return NULL;
}

/* A unit that shuts a runtime down suspends: the units beside it give that runtime what it waits for. */
static void shutdown_waits_for_others(void) {
  pair channels = {event_create(), event_create()};
  weald_runtime runtime;
  weald_thread thread;
  weald_process process;
  size_t unended = 1;
  DO(weald_runtime_create(NULL, &runtime));
  DO(weald_thread_spawn(NULL, answers, &channels, &thread));
  DO(weald_sleep(1 * MS));
  weald_spawn_options options = {sizeof options, runtime, 0, 0, NULL};
  DO(weald_process_spawn(&options, asks, &channels, &process));
  DO(weald_runtime_shutdown(runtime, WEALD_FOREVER, &unended));
  CHECK(unended == 0);
  weald_exit exit;
  DO(weald_process_wait(process, WEALD_FOREVER, &exit));
  CHECK(exit.kind == WEALD_EXIT_RETURNED);
  DO(weald_thread_join(thread, WEALD_FOREVER, NULL));
  DO(weald_release(process));
  /* Released by a unit of its own. */
  DO(weald_runtime_create(NULL, &runtime));
  options.runtime = runtime;
  DO(weald_thread_spawn(&options, releases, &runtime, &thread));
  weald_code ended = weald_thread_join(thread, WEALD_FOREVER, NULL);
  CHECK(ended == WEALD_OK || ended == WEALD_CANCELLED);
  DO(weald_release(channels.question));
  DO(weald_release(channels.answer));
}

static void errors(void) {
  weald_process process = 0;
  int32_t code = 0, alive;
  weald_bytes bytes;
  RETURNS(WEALD_NULL, weald_process_spawn(NULL, NULL, NULL, &process));
  RETURNS(WEALD_NULL, weald_process_spawn(NULL, waits, &code, NULL));
  weald_spawn_options options = {0};
  RETURNS(WEALD_ARGUMENT, weald_process_spawn(&options, waits, &code, &process));
  CHECK(strstr(weald_last_error(), "`size`") != NULL);
  options.size = sizeof options;
  options.flags = 64;
  RETURNS(WEALD_ARGUMENT, weald_process_spawn(&options, waits, &code, &process));
  options.flags = 0;
  options.name = "\xff";
  RETURNS(WEALD_ARGUMENT, weald_process_spawn(&options, waits, &code, &process));
  options.name = NULL;
  options.runtime = 77;
  RETURNS(WEALD_HANDLE, weald_process_spawn(&options, waits, &code, &process));
  CHECK(process == 0);
  RETURNS(WEALD_HANDLE, weald_process_send(0, "", 0));
  RETURNS(WEALD_HANDLE, weald_process_wait(~0ULL, 0, NULL));
  RETURNS(WEALD_HANDLE, weald_process_cancel(1));
  RETURNS(WEALD_HANDLE, weald_process_is_alive(1, &alive));
  RETURNS(WEALD_HANDLE, weald_process_on_end(1, tell, NULL));
  RETURNS(WEALD_HANDLE, weald_process_register(1, "name"));
  RETURNS(WEALD_NO_PROCESS, weald_process_receive(0, &bytes));
  RETURNS(WEALD_NO_PROCESS, weald_process_self(&process));
  RETURNS(WEALD_NULL, weald_process_receive(0, NULL));
  RETURNS(WEALD_NULL, weald_process_self(NULL));
  DO(weald_process_spawn(NULL, waits, &code, &process));
  RETURNS(WEALD_NULL, weald_process_send(process, NULL, 1));
  RETURNS(WEALD_NO_ROOM, weald_process_send(process, "", (size_t)-1));
  RETURNS(WEALD_NULL, weald_process_is_alive(process, NULL));
  RETURNS(WEALD_NULL, weald_process_on_end(process, NULL, NULL));
  RETURNS(WEALD_NULL, weald_process_register(process, NULL));
  RETURNS(WEALD_NULL, weald_process_find("name", NULL));
  RETURNS(WEALD_NULL, weald_process_unregister(NULL));
  /* A handle of another kind, and one that was released. */
  RETURNS(WEALD_HANDLE, weald_channel_close(process));
  CHECK(strstr(weald_last_error(), "channel") != NULL);
  DO(weald_process_send(process, "go", 2));
  DO(weald_process_wait(process, WEALD_FOREVER, NULL));
  DO(weald_release(process));
  RETURNS(WEALD_HANDLE, weald_release(process));
  RETURNS(WEALD_HANDLE, weald_process_wait(process, 0, NULL));
  weald_runtime_options runtime = {0};
  RETURNS(WEALD_ARGUMENT, weald_runtime_create(&runtime, &process));
  RETURNS(WEALD_NULL, weald_runtime_create(NULL, NULL));
  RETURNS(WEALD_NULL, weald_runtime_run(0, NULL, NULL, NULL));
  RETURNS(WEALD_ARGUMENT, weald_sleep(-1));
  CHECK(errno == 0);
}

static void test(void) {
  shutdown_waits_for_others();
  errno = 0;
  errors();
  messages(0);
  messages(WEALD_OWN_THREAD);
  cancels();
  cancels_own_thread();
  cancels_own_thread_with_messages();
  selves();
  names();
  runtimes();
  DO(weald_yield());
  DO(weald_sleep(1 * MS));
  /* What waits keep. */
  errno = 77;
  DO(weald_yield());
  DO(weald_sleep(1 * MS));
  CHECK(errno == 77);
  CHECK(strcmp(weald_library_version(), "0.1.0") == 0);
  CHECK(strcmp(weald_code_text(WEALD_TIMED_OUT), "the time limit passed") == 0);
  CHECK(strcmp(weald_code_text(-1), weald_code_text(1000)) == 0);
  weald_bytes_free(NULL);
}
