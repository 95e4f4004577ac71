/* Threads: results, joins with time limits, cancels; forks and parallel ranges; functions that block. */
#include "check.h"

static void *same(void *context) { return context; }

static void *waits_for(void *context) {
  event_wait(*(weald_channel *)context);
  return context;
}

static void tell(void *context) { event_happens(*(weald_channel *)context); }

static void joins(void) {
  weald_thread thread;
  void *result = NULL;
  int place;
  for (int n = 0; n < 100; n++) {
    DO(weald_thread_spawn(NULL, same, &place, &thread));
    DO(weald_thread_join(thread, WEALD_FOREVER, &result));
    CHECK(result == &place);
    RETURNS(WEALD_HANDLE, weald_thread_join(thread, WEALD_FOREVER, &result));
  }
  weald_channel go = event_create(), end = event_create();
  weald_spawn_options options = {sizeof options, 0, 64 << 10, 0, "waiter"};
  DO(weald_thread_spawn(&options, waits_for, &go, &thread));
  RETURNS(WEALD_TIMED_OUT, weald_thread_join(thread, WEALD_AT_ONCE, &result));
  RETURNS(WEALD_TIMED_OUT, weald_thread_join(thread, 1 * MS, &result));
  DO(weald_thread_on_end(thread, tell, &end));
  event_happens(go);
  event_wait(end);
  DO(weald_thread_join(thread, WEALD_FOREVER, &result));
  CHECK(result == &go);
  DO(weald_release(end));
  /* Detached. */
  end = event_create();
  DO(weald_thread_spawn(NULL, same, NULL, &thread));
  DO(weald_thread_on_end(thread, tell, &end));
  DO(weald_thread_detach(thread));
  RETURNS(WEALD_HANDLE, weald_thread_detach(thread));
  event_wait(end);
  DO(weald_release(end));
  DO(weald_release(go));
}

typedef struct {
  weald_thread thread;
  weald_channel go;
  weald_code codes[2];
} joined_twice;

static void *joins_one(void *context) {
  joined_twice *joined = context;
  event_wait(joined->go);
  joined->codes[0] = weald_thread_join(joined->thread, WEALD_FOREVER, NULL);
  return NULL;
}

/* Of two joiners one gets the result. The other is told so, and not that the thread was cancelled. */
static void joins_at_once(void) {
  for (int n = 0; n < 500; n++) {
    joined_twice joined = {0, event_create(), {-1, -1}};
    DO(weald_thread_spawn(NULL, same, NULL, &joined.thread));
    pthread_t other;
    CHECK(pthread_create(&other, NULL, joins_one, &joined) == 0);
    event_happens(joined.go);
    joined.codes[1] = weald_thread_join(joined.thread, WEALD_FOREVER, NULL);
    os_join(other);
    weald_code *refused = &joined.codes[joined.codes[0] == WEALD_OK];
    CHECK(joined.codes[0] == WEALD_OK || joined.codes[1] == WEALD_OK);
    CHECK(*refused == WEALD_BUSY || *refused == WEALD_HANDLE);
    DO(weald_release(joined.go));
  }
}

static void *is_cancelled(void *context) {
  weald_channel *channels = context;
  weald_bytes none;
  event_happens(channels[0]);
  RETURNS(WEALD_CANCELLED, weald_channel_receive(channels[1], WEALD_FOREVER, &none));
  weald_thread thread;
  DO(weald_thread_spawn(NULL, same, NULL, &thread));
  RETURNS(WEALD_CANCELLED, weald_thread_join(thread, WEALD_FOREVER, NULL));
  DO(weald_thread_detach(thread));
  RETURNS(WEALD_CANCELLED, weald_yield());
  return context;
}

static void cancels(void) {
  weald_channel channels[2] = {event_create(), event_create()};
  weald_thread thread;
  void *result = NULL;
  DO(weald_thread_spawn(NULL, is_cancelled, channels, &thread));
  event_wait(channels[0]);
  DO(weald_thread_cancel(thread));
  RETURNS(WEALD_CANCELLED, weald_thread_join(thread, WEALD_FOREVER, &result));
  CHECK(result == NULL);
  DO(weald_check_cancel());
  RETURNS(WEALD_HANDLE, weald_thread_cancel(thread));
  DO(weald_release(channels[0]));
  DO(weald_release(channels[1]));
}

typedef struct {
  weald_runtime runtime;
  weald_channel begun, go, done;
  /* What the function of another runtime uses, until it has set `ended`. */
  int ended;
} other_runtime;

static void *holds(void *context) {
  other_runtime *other = context;
  event_happens(other->begun);
  while (!weald_check_cancel()) usleep(100);
  other->ended = 1;
  return context;
}

static void *runs_in_another(void *context) {
  other_runtime *other = context;
  RETURNS(WEALD_CANCELLED, weald_runtime_run(other->runtime, holds, other, NULL));
  CHECK(other->ended);
  event_happens(other->done);
  return context;
}

static void *spawns_in_another(void *context) {
  other_runtime *other = context;
  weald_spawn_options options = {sizeof options, other->runtime, 0, 0, NULL};
  weald_thread thread;
  /* The worker is busy, and the spawn does not wait for it: it is told what it has done. */
  DO(weald_thread_spawn(&options, same, context, &thread));
  event_happens(other->done);
  weald_bytes none;
  RETURNS(WEALD_CANCELLED, weald_channel_receive(other->go, WEALD_FOREVER, &none));
  DO(weald_thread_detach(thread));
  RETURNS(WEALD_CANCELLED, weald_thread_spawn(&options, same, context, &thread));
  return context;
}

static void release_all(other_runtime *other) {
  DO(weald_release(other->begun));
  DO(weald_release(other->go));
  DO(weald_release(other->done));
}

/* A unit that is cancelled while it uses another runtime, whose only worker is busy. */
static void cancels_across_runtimes(void) {
  weald_runtime_options options = {0};
  options.size = sizeof options;
  options.workers = 1;
  weald_runtime runtime;
  DO(weald_runtime_create(&options, &runtime));
  other_runtime other = {runtime, event_create(), event_create(), event_create(), 0};
  weald_thread thread, busy;
  DO(weald_thread_spawn(NULL, runs_in_another, &other, &thread));
  event_wait(other.begun);
  DO(weald_thread_cancel(thread));
  event_wait(other.done);
  RETURNS(WEALD_CANCELLED, weald_thread_join(thread, WEALD_FOREVER, NULL));
  release_all(&other);
  other = (other_runtime){runtime, event_create(), event_create(), event_create(), 0};
  weald_spawn_options there = {sizeof there, runtime, 0, 0, NULL};
  DO(weald_thread_spawn(&there, holds, &other, &busy));
  event_wait(other.begun);
  DO(weald_thread_spawn(NULL, spawns_in_another, &other, &thread));
  event_wait(other.done);
  DO(weald_thread_cancel(thread));
  RETURNS(WEALD_CANCELLED, weald_thread_join(thread, WEALD_FOREVER, NULL));
  DO(weald_thread_cancel(busy));
  RETURNS(WEALD_CANCELLED, weald_thread_join(busy, WEALD_FOREVER, NULL));
  release_all(&other);
  DO(weald_runtime_shutdown(runtime, 60 * SECOND, NULL));
}

typedef struct {
  long n;
  long result;
} fib_call;

static void fib(void *context) {
  fib_call *call = context;
  if (call->n < 2) {
    call->result = call->n;
    return;
  }
  fib_call one = {call->n - 1, 0}, other = {call->n - 2, 0};
  DO(weald_fork(fib, &one, fib, &other));
  call->result = one.result + other.result;
}

static void adds(void *context, size_t begin, size_t end) {
  unsigned char *seen = context;
  CHECK(begin < end);
  for (size_t n = begin; n < end; n++) seen[n]++;
}

static void receives_nothing(void *context) {
  weald_bytes none;
  (void)context;
  RETURNS(WEALD_NO_PROCESS, weald_process_receive(0, &none));
  DO(weald_sleep(1 * MS));
}

static int32_t forks_in_a_process(void *context) {
  DO(weald_fork(receives_nothing, context, receives_nothing, context));
  weald_bytes message;
  DO(weald_process_receive(WEALD_FOREVER, &message));
  expect_bytes(&message, "still here");
  return 1;
}

static void forks(void) {
  fib_call call = {18, 0};
  fib(&call);
  CHECK(call.result == 2584);
  static unsigned char seen[10000];
  DO(weald_fork_range(0, sizeof seen, 0, adds, seen));
  DO(weald_fork_range(0, sizeof seen, 7, adds, seen));
  DO(weald_fork_range(5000, 5000, 7, adds, seen));
  DO(weald_fork_range(5000, sizeof seen, 100000, adds, seen));
  for (size_t n = 0; n < sizeof seen; n++) CHECK(seen[n] == (n < 5000 ? 2 : 3));
  RETURNS(WEALD_ARGUMENT, weald_fork_range(2, 1, 0, adds, seen));
  RETURNS(WEALD_NULL, weald_fork_range(1, 2, 0, NULL, seen));
  RETURNS(WEALD_NULL, weald_fork(fib, &call, NULL, NULL));
  weald_process process;
  weald_exit exit;
  DO(weald_process_spawn(NULL, forks_in_a_process, NULL, &process));
  DO(weald_process_send(process, "still here", 10));
  DO(weald_process_wait(process, WEALD_FOREVER, &exit));
  CHECK(exit.code == 1);
  DO(weald_release(process));
}

static void blocks(void *context) {
  CHECK(!weald_in_unit());
  usleep(1000);
  *(int *)context = 7;
}

static void *joins_itself(void *context) {
  weald_thread self;
  weald_bytes bytes;
  DO(weald_channel_receive(*(weald_channel *)context, WEALD_FOREVER, &bytes));
  memcpy(&self, bytes.data, sizeof self);
  weald_bytes_free(&bytes);
  RETURNS(WEALD_DEADLOCK, weald_thread_join(self, WEALD_FOREVER, NULL));
  return context;
}

static void waits_for_itself(void) {
  weald_channel channel;
  weald_thread thread;
  DO(weald_channel_create(1, &channel));
  DO(weald_thread_spawn(NULL, joins_itself, &channel, &thread));
  DO(weald_channel_send(channel, &thread, sizeof thread, WEALD_FOREVER));
  DO(weald_thread_join(thread, WEALD_FOREVER, NULL));
  DO(weald_release(channel));
  weald_runtime_options options = {0};
  weald_runtime runtime;
  options.size = sizeof options;
  options.workers = (size_t)1 << 40;
  RETURNS(WEALD_ARGUMENT, weald_runtime_create(&options, &runtime));
}

static void errors(void) {
  weald_thread thread;
  weald_spawn_options options = {0};
  RETURNS(WEALD_NULL, weald_thread_spawn(NULL, NULL, NULL, &thread));
  RETURNS(WEALD_NULL, weald_thread_spawn(NULL, same, NULL, NULL));
  RETURNS(WEALD_ARGUMENT, weald_thread_spawn(&options, same, NULL, &thread));
  options.size = sizeof options;
  options.flags = WEALD_OWN_THREAD;
  RETURNS(WEALD_ARGUMENT, weald_thread_spawn(&options, same, NULL, &thread));
  options.flags = 0;
  options.stack_size = (size_t)1 << 40;
  RETURNS(WEALD_NO_ROOM, weald_thread_spawn(&options, same, NULL, &thread));
  RETURNS(WEALD_HANDLE, weald_thread_join(0, 0, NULL));
  RETURNS(WEALD_HANDLE, weald_thread_cancel(0));
  RETURNS(WEALD_HANDLE, weald_thread_on_end(0, tell, NULL));
  RETURNS(WEALD_NULL, weald_thread_on_end(0, NULL, NULL));
}

static void test(void) {
  errors();
  joins();
  joins_at_once();
  waits_for_itself();
  cancels();
  cancels_across_runtimes();
  forks();
  int number = 0;
  DO(weald_blocking(blocks, &number));
  CHECK(number == 7);
  RETURNS(WEALD_NULL, weald_blocking(NULL, NULL));
}
