/* Locks for readers and writers, and semaphores, between units and with OS threads. */
#include "check.h"

static weald_rwlock lock;
static weald_semaphore semaphore;
static long counter, inside, most_inside;

enum { ROUNDS = 200, PERMITS = 2, UNITS = 8 };

static void *writes(void *context) {
  for (int n = 0; n < ROUNDS; n++) {
    DO(weald_rwlock_write(lock, WEALD_FOREVER));
    long before = counter;
    if (n % 16 == 0) DO(weald_yield());
    counter = before + 1;
    DO(weald_rwlock_unlock(lock));
    DO(weald_rwlock_read(lock, WEALD_FOREVER));
    before = counter;
    if (n % 16 == 0) DO(weald_yield());
    CHECK(counter == before);
    DO(weald_rwlock_unlock(lock));
  }
  return context;
}

static void *is_outside(void *context) {
  RETURNS(WEALD_NOT_OWNER, weald_rwlock_unlock(lock));
  RETURNS(WEALD_TIMED_OUT, weald_rwlock_write(lock, WEALD_AT_ONCE));
  RETURNS(WEALD_TIMED_OUT, weald_rwlock_write(lock, 1 * MS));
  return context;
}

static void *cannot_read(void *context) {
  is_outside(NULL);
  RETURNS(WEALD_TIMED_OUT, weald_rwlock_read(lock, WEALD_AT_ONCE));
  RETURNS(WEALD_TIMED_OUT, weald_rwlock_read(lock, 1 * MS));
  return context;
}

static void *can_read(void *context) {
  is_outside(NULL);
  /* The other one may wait to write, for a while. */
  DO(weald_rwlock_read(lock, WEALD_FOREVER));
  DO(weald_rwlock_unlock(lock));
  return context;
}

static void *waits_to_write(void *context) {
  event_happens(*(weald_channel *)context);
  RETURNS(WEALD_CANCELLED, weald_rwlock_write(lock, WEALD_FOREVER));
  RETURNS(WEALD_NOT_OWNER, weald_rwlock_unlock(lock));
  RETURNS(WEALD_CANCELLED, weald_rwlock_read(lock, WEALD_FOREVER));
  return context;
}

static void *enters(void *context) {
  for (int n = 0; n < ROUNDS; n++) {
    DO(weald_semaphore_acquire(semaphore, 1, WEALD_FOREVER));
    long now = __atomic_add_fetch(&inside, 1, __ATOMIC_RELAXED);
    CHECK(now <= PERMITS);
    if (now == PERMITS) most_inside = now;
    DO(weald_yield());
    __atomic_sub_fetch(&inside, 1, __ATOMIC_RELAXED);
    DO(weald_semaphore_release(semaphore, 1));
  }
  return context;
}

static void *waits_for_all(void *context) {
  event_happens(*(weald_channel *)context);
  RETURNS(WEALD_CANCELLED, weald_semaphore_acquire(semaphore, PERMITS, WEALD_FOREVER));
  return context;
}

/* Runs `function` in threads of Weald and on an OS thread at once. */
static void together(void *(*function)(void *), int units) {
  weald_thread threads[UNITS];
  pthread_t os_thread;
  for (int n = 0; n < units; n++) DO(weald_thread_spawn(NULL, function, NULL, &threads[n]));
  CHECK(pthread_create(&os_thread, NULL, function, NULL) == 0);
  for (int n = 0; n < units; n++) DO(weald_thread_join(threads[n], WEALD_FOREVER, NULL));
  os_join(os_thread);
}

/* A unit that waits, which is told by an event that it is about to, and is cancelled. */
static void cancelled(void *(*function)(void *)) {
  weald_channel waits = event_create();
  weald_thread thread;
  DO(weald_thread_spawn(NULL, function, &waits, &thread));
  event_wait(waits);
  DO(weald_thread_cancel(thread));
  RETURNS(WEALD_CANCELLED, weald_thread_join(thread, WEALD_FOREVER, NULL));
  DO(weald_release(waits));
}

static void rwlocks(void) {
  DO(weald_rwlock_create(&lock));
  together(writes, UNITS);
  CHECK(counter == (UNITS + 1) * ROUNDS);
  RETURNS(WEALD_NOT_OWNER, weald_rwlock_unlock(lock));
  DO(weald_rwlock_write(lock, WEALD_FOREVER));
  RETURNS(WEALD_DEADLOCK, weald_rwlock_write(lock, WEALD_FOREVER));
  RETURNS(WEALD_DEADLOCK, weald_rwlock_read(lock, WEALD_FOREVER));
  together(cannot_read, 1);
  DO(weald_rwlock_unlock(lock));
  DO(weald_rwlock_read(lock, WEALD_FOREVER));
  RETURNS(WEALD_DEADLOCK, weald_rwlock_write(lock, WEALD_FOREVER));
  together(can_read, 1);
  cancelled(waits_to_write);
  /* It reads twice, and unlocks as often. */
  DO(weald_rwlock_read(lock, WEALD_AT_ONCE));
  DO(weald_rwlock_unlock(lock));
  together(can_read, 1);
  DO(weald_rwlock_unlock(lock));
  RETURNS(WEALD_NOT_OWNER, weald_rwlock_unlock(lock));
  DO(weald_rwlock_write(lock, WEALD_AT_ONCE));
  /* Released while it is held. */
  DO(weald_release(lock));
  RETURNS(WEALD_HANDLE, weald_rwlock_read(lock, 0));
  RETURNS(WEALD_HANDLE, weald_rwlock_write(lock, 0));
  RETURNS(WEALD_HANDLE, weald_rwlock_unlock(lock));
  RETURNS(WEALD_NULL, weald_rwlock_create(NULL));
}

static void semaphores(void) {
  DO(weald_semaphore_create(PERMITS, &semaphore));
  together(enters, UNITS);
  CHECK(inside == 0 && most_inside == PERMITS);
  DO(weald_semaphore_acquire(semaphore, 1, WEALD_AT_ONCE));
  RETURNS(WEALD_TIMED_OUT, weald_semaphore_acquire(semaphore, PERMITS, WEALD_AT_ONCE));
  RETURNS(WEALD_TIMED_OUT, weald_semaphore_acquire(semaphore, PERMITS, 1 * MS));
  cancelled(waits_for_all);
  /* What did not come to an end has taken nothing. */
  DO(weald_semaphore_acquire(semaphore, PERMITS - 1, WEALD_AT_ONCE));
  DO(weald_semaphore_release(semaphore, PERMITS));
  RETURNS(WEALD_ARGUMENT, weald_semaphore_release(semaphore, UINT32_MAX));
  DO(weald_semaphore_release(semaphore, UINT32_MAX - PERMITS));
  RETURNS(WEALD_ARGUMENT, weald_semaphore_release(semaphore, 1));
  DO(weald_semaphore_acquire(semaphore, UINT32_MAX, WEALD_AT_ONCE));
  RETURNS(WEALD_ARGUMENT, weald_semaphore_acquire(semaphore, 0, WEALD_AT_ONCE));
  DO(weald_semaphore_release(semaphore, 0));
  DO(weald_release(semaphore));
  RETURNS(WEALD_HANDLE, weald_semaphore_acquire(semaphore, 1, 0));
  RETURNS(WEALD_HANDLE, weald_semaphore_release(semaphore, 1));
  RETURNS(WEALD_NULL, weald_semaphore_create(1, NULL));
}

static void test(void) {
  rwlocks();
  semaphores();
}
