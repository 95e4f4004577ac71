/* Calls of which the header says that they never switch: on the only worker, no other thread runs while one makes them,
 * however often. */
#include "check.h"

enum { SPINNERS = 3, WAITERS = 100, TIMES = 5000 };

static long ran;
static int is_over, waiting;
static myth_mutex_t mutex;
static myth_cond_t cond;
static myth_rwlock_t rwlock;
static myth_felock_t felock;
static myth_spinlock_t spinlock;
static myth_join_counter_t counter;
static myth_key_t key;

/* The others that would run. */
static void *runs(void *argument) {
  while (!is_over) {
    ran++;
    myth_yield();
  }
  return argument;
}

static void *waits(void *argument) {
  CHECK(myth_mutex_lock(&mutex) == 0);
  waiting++;
  CHECK(myth_cond_wait(&cond, &mutex) == 0);
  CHECK(myth_mutex_unlock(&mutex) == 0);
  return argument;
}
static void *locks(void *argument) {
  waiting++;
  CHECK(myth_mutex_lock(&mutex) == 0 && myth_mutex_unlock(&mutex) == 0);
  return argument;
}
static void *reads(void *argument) {
  waiting++;
  CHECK(myth_rwlock_rdlock(&rwlock) == 0 && myth_rwlock_unlock(&rwlock) == 0);
  return argument;
}
static void *fills(void *argument) {
  waiting++;
  CHECK(myth_felock_wait_and_lock(&felock, 1) == 0 && myth_felock_mark_and_signal(&felock, 1) == 0);
  return argument;
}
static void *waits_for_zero(void *argument) {
  waiting++;
  CHECK(myth_join_counter_wait(&counter) == 0);
  return argument;
}
static void *does_nothing(void *argument) { return argument; }

static myth_thread_t waiters[WAITERS];
static void create_waiters(void *(*function)(void *)) {
  waiting = 0;
  for (int i = 0; i < WAITERS; i++) waiters[i] = myth_create(function, NULL);
  while (waiting < WAITERS) myth_yield();
  /* The last one goes on to its wait. */
  for (long before = ran; ran < before + 2 * SPINNERS;) myth_yield();
}
static void join_waiters(void) {
  for (int i = 0; i < WAITERS; i++) CHECK(myth_join(waiters[i], NULL) == 0);
}

#define OFTEN(times, call)                                                                          \
  do {                                                                                              \
    long before = ran;                                                                              \
    for (int i = 0; i < (times); i++) CHECK(call);                                                  \
    CHECK(ran == before);                                                                           \
  } while (0)

static void objects(void) {
  char memory[120];
  myth_mutex_t *mutex_here = (myth_mutex_t *)memory;
  myth_cond_t *cond_here = (myth_cond_t *)memory;
  myth_barrier_t *barrier_here = (myth_barrier_t *)memory;
  myth_rwlock_t *rwlock_here = (myth_rwlock_t *)memory;
  myth_felock_t *felock_here = (myth_felock_t *)memory;
  myth_uncond_t *uncond_here = (myth_uncond_t *)memory;
  myth_join_counter_t *counter_here = (myth_join_counter_t *)memory;
  OFTEN(TIMES, !myth_mutex_init(mutex_here, NULL) && !myth_mutex_destroy(mutex_here));
  OFTEN(TIMES, !myth_cond_init(cond_here, NULL) && !myth_cond_destroy(cond_here));
  OFTEN(TIMES, !myth_barrier_init(barrier_here, NULL, 2) && !myth_barrier_destroy(barrier_here));
  OFTEN(TIMES, !myth_rwlock_init(rwlock_here, NULL) && !myth_rwlock_destroy(rwlock_here));
  OFTEN(TIMES, !myth_felock_init(felock_here, NULL) && !myth_felock_destroy(felock_here));
  OFTEN(TIMES, !myth_uncond_init(uncond_here) && !myth_uncond_destroy(uncond_here));
  OFTEN(TIMES, !myth_join_counter_init(counter_here, NULL, TIMES));
  OFTEN(TIMES, !myth_join_counter_dec(counter_here));
  OFTEN(TIMES, !myth_spin_lock(&spinlock) && !myth_spin_unlock(&spinlock));
  OFTEN(TIMES, myth_spin_trylock(&spinlock) && !myth_spin_unlock(&spinlock));
  OFTEN(TIMES, !myth_mutex_trylock(&mutex) && !myth_mutex_unlock(&mutex));
  OFTEN(TIMES, !myth_rwlock_tryrdlock(&rwlock) && !myth_rwlock_unlock(&rwlock));
  OFTEN(TIMES, !myth_rwlock_trywrlock(&rwlock) && !myth_rwlock_unlock(&rwlock));
}

/* Each of them wakes threads. */
static void wakes(void) {
  create_waiters(waits);
  OFTEN(WAITERS, !myth_cond_signal(&cond));
  join_waiters();
  create_waiters(waits);
  OFTEN(TIMES, !myth_cond_broadcast(&cond));
  join_waiters();
  CHECK(myth_mutex_lock(&mutex) == 0);
  create_waiters(locks);
  OFTEN(1, !myth_mutex_unlock(&mutex));
  join_waiters();
  CHECK(myth_rwlock_wrlock(&rwlock) == 0);
  create_waiters(reads);
  OFTEN(1, !myth_rwlock_unlock(&rwlock));
  join_waiters();
  CHECK(myth_felock_lock(&felock) == 0);
  create_waiters(fills);
  OFTEN(1, !myth_felock_mark_and_signal(&felock, 1));
  join_waiters();
  CHECK(myth_join_counter_init(&counter, NULL, TIMES) == 0);
  create_waiters(waits_for_zero);
  OFTEN(TIMES, !myth_join_counter_dec(&counter));
  join_waiters();
}

static void threads(void) {
  myth_thread_t self = myth_self();
  OFTEN(TIMES, myth_equal(self, myth_self()) && myth_is_myth_worker());
  OFTEN(TIMES, myth_get_worker_num() == 0 && myth_get_num_workers() == 1);
  OFTEN(TIMES, !myth_setspecific(key, &key) && myth_getspecific(key) == &key);
  myth_thread_attr_t attr;
  OFTEN(TIMES, !myth_thread_attr_init(&attr));
  attr.child_first = 0;
  for (int i = 0; i < WAITERS; i++) {
    myth_thread_t thread;
    CHECK(myth_create_ex(&thread, &attr, does_nothing, NULL) == 0);
    OFTEN(1, !myth_detach(thread));
  }
  myth_thread_t thread = myth_create(runs, NULL);
  OFTEN(TIMES, !myth_cancel(thread));
  OFTEN(1, !myth_detach(thread));
}

static void *checks(void *argument) {
  myth_thread_t spinners[SPINNERS];
  for (int i = 0; i < SPINNERS; i++) spinners[i] = myth_create(runs, NULL);
  objects();
  wakes();
  threads();
  is_over = 1;
  for (int i = 0; i < SPINNERS; i++) CHECK(myth_join(spinners[i], NULL) == 0);
  CHECK(ran > 0);
  return argument;
}

int main(void) {
  CHECK(myth_key_create(&key, NULL) == 0);
  CHECK(myth_felock_init(&felock, NULL) == 0);
  /* Not in `main`, which under AddressSanitizer runs beside the worker. */
  myth_thread_t thread = myth_create(checks, NULL);
  CHECK(myth_join(thread, NULL) == 0);
  return 0;
}
