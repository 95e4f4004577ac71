/* Barriers, join counters, full/empty locks, unconditional waits, and functions that are called once. */
#include "check.h"

enum { THREADS = 20, ROUNDS = 50 };

static myth_barrier_t barrier;
static int leaders[ROUNDS];

static void *meets(void *argument) {
  for (int round = 0; round < ROUNDS; round++) {
    int led = myth_barrier_wait(&barrier);
    CHECK(led == 0 || led == MYTH_BARRIER_SERIAL_THREAD);
    if (led) __atomic_add_fetch(&leaders[round], 1, __ATOMIC_RELAXED);
    CHECK(myth_barrier_wait(&barrier) >= 0);
    CHECK(__atomic_load_n(&leaders[round], __ATOMIC_RELAXED) == 1);
  }
  return argument;
}

static void barriers(void) {
  CHECK(myth_barrier_init(&barrier, NULL, 0) == EINVAL && myth_barrier_init(&barrier, NULL, THREADS) == 0);
  CHECK(myth_barrier_wait(NULL) == EINVAL);
  myth_thread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++) threads[i] = myth_create(meets, NULL);
  for (int i = 0; i < THREADS; i++) CHECK(myth_join(threads[i], NULL) == 0);
  CHECK(myth_barrier_destroy(&barrier) == 0);
  myth_barrier_t alone;
  CHECK(myth_barrier_init(&alone, NULL, 1) == 0 && myth_barrier_wait(&alone) == MYTH_BARRIER_SERIAL_THREAD);
}

static myth_join_counter_t counter;
static void *counts_down(void *argument) {
  myth_yield();
  CHECK(myth_join_counter_dec(&counter) == 0);
  return argument;
}
static void *waits_for_zero(void *argument) {
  CHECK(myth_join_counter_wait(&counter) == 0);
  return argument;
}

static void join_counters(void) {
  CHECK(myth_join_counter_init(&counter, NULL, -1) == EINVAL);
  CHECK(myth_join_counter_init(&counter, NULL, THREADS) == 0);
  myth_thread_t threads[2 * THREADS];
  for (int i = 0; i < 2 * THREADS; i++) threads[i] = myth_create(i % 2 ? counts_down : waits_for_zero, NULL);
  CHECK(myth_join_counter_wait(&counter) == 0 && myth_join_counter_wait(&counter) == 0);
  CHECK(myth_join_counter_dec(&counter) == EINVAL);
  for (int i = 0; i < 2 * THREADS; i++) CHECK(myth_join(threads[i], NULL) == 0);
}

static myth_felock_t cell;
static long content, received;

static void *fills(void *argument) {
  for (long i = 1; i <= 100; i++) {
    CHECK(myth_felock_wait_and_lock(&cell, 0) == 0);
    content = i;
    CHECK(myth_felock_mark_and_signal(&cell, 1) == 0);
  }
  return argument;
}
static void *empties(void *argument) {
  for (long i = 1; i <= 100; i++) {
    CHECK(myth_felock_wait_and_lock(&cell, 1) == 0);
    received += content;
    CHECK(myth_felock_mark_and_signal(&cell, 0) == 0);
  }
  return argument;
}

static void full_empty_locks(void) {
  CHECK(myth_felock_init(&cell, NULL) == 0 && myth_felock_status(&cell) == 0);
  CHECK(myth_felock_wait_and_lock(&cell, 2) == EINVAL && myth_felock_mark_and_signal(&cell, 1) == EPERM);
  myth_thread_t threads[6];
  for (int i = 0; i < 6; i++) threads[i] = myth_create(i % 2 ? fills : empties, NULL);
  for (int i = 0; i < 6; i++) CHECK(myth_join(threads[i], NULL) == 0);
  CHECK(received == 3 * 5050 && myth_felock_status(&cell) == 0);
  CHECK(myth_felock_lock(&cell) == 0 && myth_felock_destroy(&cell) == EBUSY);
  CHECK(myth_felock_unlock(&cell) == 0 && myth_felock_unlock(&cell) == EPERM);
  CHECK(myth_felock_destroy(&cell) == 0);
}

static myth_uncond_t ping, pong; /* all zero */
static void *answers(void *argument) {
  for (int i = 0; i < 300; i++) CHECK(myth_uncond_wait(&ping) == 0 && myth_uncond_signal(&pong) == 0);
  return argument;
}

static myth_uncond_t both; /* all zero */
static int asked, answered;
/* Its wait begins after the signal, which must not be taken by the one that signals. */
static void *answers_late(void *argument) {
  for (int i = 1; i <= 300; i++) {
    while (__atomic_load_n(&asked, __ATOMIC_ACQUIRE) < i) myth_yield();
    CHECK(myth_uncond_wait(&both) == 0);
    answered = i;
    CHECK(myth_uncond_signal(&both) == 0);
  }
  return argument;
}

static myth_uncond_t crowd;
static void *waits_once(void *argument) {
  CHECK(myth_uncond_wait(&crowd) == 0);
  return argument;
}
static void *signals_once(void *argument) {
  CHECK(myth_uncond_signal(&crowd) == 0);
  return argument;
}

static void unconditional_waits(void) {
  myth_thread_t thread = myth_create(answers, NULL);
  for (int i = 0; i < 300; i++) CHECK(myth_uncond_signal(&ping) == 0 && myth_uncond_wait(&pong) == 0);
  CHECK(myth_join(thread, NULL) == 0);
  thread = myth_create(answers_late, NULL);
  for (int i = 1; i <= 300; i++) {
    __atomic_store_n(&asked, i, __ATOMIC_RELEASE);
    CHECK(myth_uncond_signal(&both) == 0 && myth_uncond_wait(&both) == 0);
    CHECK(answered == i);
  }
  CHECK(myth_join(thread, NULL) == 0);
  /* Several on each side, first those that signal; among them a thread of the system. */
  memset(&crowd, 0xff, sizeof crowd);
  CHECK(myth_uncond_init(&crowd) == 0);
  pthread_t outside;
  CHECK(pthread_create(&outside, NULL, signals_once, NULL) == 0);
  myth_thread_t threads[2 * THREADS];
  for (int i = 0; i < 2 * THREADS; i++) threads[i] = myth_create(i < THREADS ? signals_once : waits_once, NULL);
  CHECK(myth_uncond_wait(&crowd) == 0);
  for (int i = 0; i < 2 * THREADS; i++) CHECK(myth_join(threads[i], NULL) == 0);
  CHECK(pthread_join(outside, NULL) == 0);
  CHECK(myth_uncond_destroy(&crowd) == 0);
}

static myth_once_t once; /* all zero */
static int calls;
static void is_called_once(void) {
  CHECK(myth_usleep(5000) == 0);
  calls++;
}
static void *calls_once(void *argument) {
  CHECK(myth_once(&once, is_called_once) == 0 && calls == 1 && once.state == myth_once_state_completed);
  return argument;
}

static void once_only(void) {
  static myth_once_t without_function = MYTH_ONCE_INIT;
  CHECK(myth_once(&without_function, NULL) == EINVAL && without_function.state == myth_once_state_init);
  myth_thread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++) threads[i] = myth_create(calls_once, NULL);
  for (int i = 0; i < THREADS; i++) CHECK(myth_join(threads[i], NULL) == 0);
  CHECK(calls == 1);
}

static myth_mutex_t order_mutex;
static myth_cond_t opened;
static long order[2 * THREADS];
static int is_open, waiting, came;

/* Every second one waits with a deadline. */
static void *comes_in_order(void *argument) {
  CHECK(myth_mutex_lock(&order_mutex) == 0);
  struct timespec late = in_ms(1000000);
  waiting++;
  while (!is_open) {
    if ((long)argument % 2)
      CHECK(myth_cond_timedwait(&opened, &order_mutex, &late) == 0);
    else
      CHECK(myth_cond_wait(&opened, &order_mutex) == 0);
  }
  order[came++] = (long)argument;
  CHECK(myth_mutex_unlock(&order_mutex) == 0);
  return NULL;
}

/* A broadcast wakes its waiters in the order in which they came, those with deadlines, too. */
static void broadcasts(void) {
  CHECK(myth_mutex_init(&order_mutex, NULL) == 0 && myth_cond_init(&opened, NULL) == 0);
  myth_thread_t threads[2 * THREADS];
  for (long i = 0; i < 2 * THREADS; i++) {
    threads[i] = myth_create(comes_in_order, (void *)i);
    for (int here = 0; here <= i;) {
      myth_yield();
      CHECK(myth_mutex_lock(&order_mutex) == 0);
      here = waiting;
      CHECK(myth_mutex_unlock(&order_mutex) == 0);
    }
  }
  CHECK(myth_mutex_lock(&order_mutex) == 0);
  is_open = 1;
  CHECK(myth_mutex_unlock(&order_mutex) == 0 && myth_cond_broadcast(&opened) == 0);
  for (int i = 0; i < 2 * THREADS; i++) CHECK(myth_join(threads[i], NULL) == 0);
  /* Several workers run them at the same time. */
  for (int i = 0; myth_get_num_workers() == 1 && i < 2 * THREADS; i++) CHECK(order[i] == i);
}

int main(void) {
  barriers();
  join_counters();
  full_empty_locks();
  unconditional_waits();
  once_only();
  broadcasts();
  return 0;
}
