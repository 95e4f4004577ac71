/* Mutexes and conditions, between units and with OS threads. */
#include "check.h"

static weald_mutex mutex;
static weald_condition condition;
static long counter;
static int turn;

enum { ROUNDS = 200 };

static void *counts(void *context) {
  for (int n = 0; n < ROUNDS; n++) {
    DO(weald_mutex_lock(mutex, WEALD_FOREVER));
    long before = counter;
    if (n % 16 == 0) DO(weald_yield());
    counter = before + 1;
    DO(weald_mutex_unlock(mutex));
  }
  return context;
}

static void *takes_turns(void *context) {
  int mine = *(int *)context;
  for (int n = 0; n < ROUNDS; n++) {
    DO(weald_mutex_lock(mutex, WEALD_FOREVER));
    while (turn != mine) DO(weald_condition_wait(condition, mutex, WEALD_FOREVER));
    turn = 1 - mine;
    DO(weald_condition_signal(condition));
    DO(weald_mutex_unlock(mutex));
  }
  return context;
}

static void *is_not_the_owner(void *context) {
  RETURNS(WEALD_NOT_OWNER, weald_mutex_unlock(mutex));
  RETURNS(WEALD_TIMED_OUT, weald_mutex_lock(mutex, WEALD_AT_ONCE));
  RETURNS(WEALD_TIMED_OUT, weald_mutex_lock(mutex, 1 * MS));
  return context;
}

/* Runs `function` in a thread of Weald and on an OS thread at once. */
static void twice(void *(*function)(void *), void *one, void *other) {
  weald_thread thread;
  pthread_t os_thread;
  DO(weald_thread_spawn(NULL, function, one, &thread));
  CHECK(pthread_create(&os_thread, NULL, function, other) == 0);
  DO(weald_thread_join(thread, WEALD_FOREVER, NULL));
  os_join(os_thread);
}

static void *waits_and_is_cancelled(void *context) {
  DO(weald_mutex_lock(mutex, WEALD_FOREVER));
  event_happens(*(weald_channel *)context);
  RETURNS(WEALD_CANCELLED, weald_condition_wait(condition, mutex, WEALD_FOREVER));
  RETURNS(WEALD_NOT_OWNER, weald_mutex_unlock(mutex));
  return context;
}

static void test(void) {
  int numbers[2] = {0, 1};
  DO(weald_mutex_create(&mutex));
  DO(weald_condition_create(&condition));
  twice(counts, NULL, NULL);
  CHECK(counter == 2 * ROUNDS);
  twice(takes_turns, &numbers[0], &numbers[1]);
  DO(weald_mutex_lock(mutex, WEALD_FOREVER));
  RETURNS(WEALD_DEADLOCK, weald_mutex_lock(mutex, WEALD_FOREVER));
  twice(is_not_the_owner, NULL, NULL);
  RETURNS(WEALD_TIMED_OUT, weald_condition_wait(condition, mutex, 1 * MS));
  DO(weald_mutex_unlock(mutex));
  RETURNS(WEALD_NOT_OWNER, weald_mutex_unlock(mutex));
  RETURNS(WEALD_NOT_OWNER, weald_condition_wait(condition, mutex, WEALD_FOREVER));
  DO(weald_condition_broadcast(condition));
  weald_channel waits = event_create();
  weald_thread thread;
  DO(weald_thread_spawn(NULL, waits_and_is_cancelled, &waits, &thread));
  event_wait(waits);
  DO(weald_thread_cancel(thread));
  RETURNS(WEALD_CANCELLED, weald_thread_join(thread, WEALD_FOREVER, NULL));
  DO(weald_mutex_lock(mutex, WEALD_FOREVER));
  /* Released while it is held. */
  DO(weald_release(mutex));
  DO(weald_release(condition));
  DO(weald_release(waits));
  RETURNS(WEALD_HANDLE, weald_mutex_lock(mutex, 0));
  RETURNS(WEALD_HANDLE, weald_mutex_unlock(mutex));
  RETURNS(WEALD_HANDLE, weald_condition_wait(condition, mutex, 0));
  RETURNS(WEALD_HANDLE, weald_condition_signal(condition));
  RETURNS(WEALD_HANDLE, weald_condition_broadcast(condition));
  RETURNS(WEALD_NULL, weald_mutex_create(NULL));
  RETURNS(WEALD_NULL, weald_condition_create(NULL));
}
