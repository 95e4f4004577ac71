/* Mutexes of each type, conditions, locks for readers and writers; each with deadlines. */
#include "check.h"

static myth_mutex_t mutex;
static myth_cond_t cond;
static long counted;

static void *counts(void *argument) {
  for (int i = 0; i < 2000; i++) {
    CHECK(myth_mutex_lock(&mutex) == 0);
    long seen = counted;
    if (i % 16 == 0) myth_yield();
    counted = seen + 1;
    CHECK(myth_mutex_unlock(&mutex) == 0);
  }
  return argument;
}

static myth_uncond_t release;
static void *holds(void *argument) {
  CHECK(myth_mutex_lock(&mutex) == 0);
  CHECK(myth_uncond_signal((myth_uncond_t *)argument) == 0 && myth_uncond_wait(&release) == 0);
  CHECK(myth_mutex_unlock(&mutex) == 0);
  return NULL;
}

static int others_try(void *(*try)(void *)) {
  void *result;
  myth_thread_t thread = myth_create(try, &mutex);
  CHECK(myth_join(thread, &result) == 0);
  return (int)(long)result;
}
static void *tries(void *of) { return (void *)(long)myth_mutex_trylock((myth_mutex_t *)of); }
static void *unlocks(void *of) { return (void *)(long)myth_mutex_unlock((myth_mutex_t *)of); }

static void mutexes(void) {
  CHECK(myth_mutex_init(&mutex, NULL) == 0 && myth_mutex_init(NULL, NULL) == EINVAL);
  CHECK(myth_mutex_lock(&mutex) == 0 && myth_mutex_trylock(&mutex) == EBUSY);
  CHECK(myth_mutex_destroy(&mutex) == EBUSY);
  CHECK(myth_mutex_unlock(&mutex) == 0 && myth_mutex_unlock(&mutex) == EPERM);
  CHECK(myth_mutex_trylock(&mutex) == 0 && myth_mutex_unlock(&mutex) == 0);

  enum { THREADS = 8 };
  myth_thread_t threads[THREADS];
  for (long i = 0; i < THREADS; i++) threads[i] = myth_create(counts, NULL);
  for (long i = 0; i < THREADS; i++) CHECK(myth_join(threads[i], NULL) == 0);
  CHECK(counted == THREADS * 2000);

  myth_uncond_t held = { 0 };
  myth_thread_t holder = myth_create(holds, &held);
  CHECK(myth_uncond_wait(&held) == 0);
  struct timespec past = in_ms(0), late = in_ms(60000);
  CHECK(myth_mutex_timedlock(&mutex, &past) == ETIMEDOUT);
  CHECK(myth_mutex_timedlock(&mutex, NULL) == EINVAL && myth_uncond_signal(&release) == 0);
  CHECK(myth_mutex_timedlock(&mutex, &late) == 0 && myth_mutex_unlock(&mutex) == 0);
  CHECK(myth_join(holder, NULL) == 0);
  /* A free mutex is locked whatever the deadline. */
  CHECK(myth_mutex_timedlock(&mutex, &past) == 0 && myth_mutex_unlock(&mutex) == 0);
  CHECK(myth_mutex_destroy(&mutex) == 0);

  myth_mutexattr_t type;
  CHECK(myth_mutexattr_init(&type) == 0 && myth_mutexattr_settype(&type, MYTH_MUTEX_ERRORCHECK) == 0);
  CHECK(myth_mutex_init(&mutex, &type) == 0);
  CHECK(myth_mutex_lock(&mutex) == 0 && myth_mutex_lock(&mutex) == EDEADLK);
  CHECK(myth_mutex_trylock(&mutex) == EBUSY && others_try(unlocks) == EPERM);
  CHECK(myth_mutex_unlock(&mutex) == 0 && myth_mutex_unlock(&mutex) == EPERM);

  CHECK(myth_mutexattr_settype(&type, MYTH_MUTEX_RECURSIVE) == 0);
  CHECK(myth_mutex_init(&mutex, &type) == 0);
  CHECK(myth_mutex_lock(&mutex) == 0 && myth_mutex_lock(&mutex) == 0 && myth_mutex_trylock(&mutex) == 0);
  CHECK(others_try(tries) == EBUSY && others_try(unlocks) == EPERM);
  CHECK(myth_mutex_unlock(&mutex) == 0 && myth_mutex_unlock(&mutex) == 0);
  CHECK(others_try(tries) == EBUSY);
  CHECK(myth_mutex_unlock(&mutex) == 0 && myth_mutex_unlock(&mutex) == EPERM);
  type.type = MYTH_MUTEX_INVALID;
  CHECK(myth_mutex_init(&mutex, &type) == EINVAL);

  static myth_mutex_t of_nothing, made = MYTH_MUTEX_INITIALIZER;
  CHECK(myth_mutex_lock(&of_nothing) == 0 && myth_mutex_unlock(&of_nothing) == 0);
  CHECK(myth_mutex_lock(&made) == 0 && myth_mutex_unlock(&made) == 0);
}

static int turn, waiting, released;

static void *takes_turns(void *argument) {
  int me = (int)(long)argument;
  CHECK(myth_mutex_lock(&mutex) == 0);
  for (int round = 0; round < 200; round++) {
    while (turn != me) CHECK(myth_cond_wait(&cond, &mutex) == 0);
    turn = 1 - me;
    CHECK(myth_cond_signal(&cond) == 0);
  }
  CHECK(myth_mutex_unlock(&mutex) == 0);
  return NULL;
}

static void *waits_for_release(void *argument) {
  CHECK(myth_mutex_lock(&mutex) == 0);
  waiting++;
  while (!released) CHECK(myth_cond_wait(&cond, &mutex) == 0);
  waiting--;
  CHECK(myth_mutex_unlock(&mutex) == 0);
  return argument;
}

static void conditions(void) {
  CHECK(myth_mutex_init(&mutex, NULL) == 0 && myth_cond_init(&cond, NULL) == 0);
  CHECK(myth_cond_wait(&cond, &mutex) == EPERM);
  CHECK(myth_cond_signal(&cond) == 0 && myth_cond_broadcast(&cond) == 0);
  myth_thread_t one = myth_create(takes_turns, (void *)0), other = myth_create(takes_turns, (void *)1);
  CHECK(myth_join(one, NULL) == 0 && myth_join(other, NULL) == 0);

  enum { WAITERS = 50 };
  myth_thread_t threads[WAITERS];
  for (int i = 0; i < WAITERS; i++) threads[i] = myth_create(waits_for_release, NULL);
  for (int all = 0; !all;) {
    CHECK(myth_mutex_lock(&mutex) == 0);
    all = waiting == WAITERS;
    if (all) {
      released = 1;
      CHECK(myth_cond_broadcast(&cond) == 0);
    }
    CHECK(myth_mutex_unlock(&mutex) == 0);
    myth_yield();
  }
  for (int i = 0; i < WAITERS; i++) CHECK(myth_join(threads[i], NULL) == 0);
  CHECK(waiting == 0);

  CHECK(myth_mutex_lock(&mutex) == 0);
  struct timespec soon = in_ms(20);
  CHECK(myth_cond_timedwait(&cond, &mutex, &soon) == ETIMEDOUT && has_passed(soon));
  CHECK(myth_mutex_trylock(&mutex) == EBUSY && myth_mutex_unlock(&mutex) == 0);
  /* The wait that gave up is in no queue any longer. */
  CHECK(myth_cond_signal(&cond) == 0 && myth_cond_destroy(&cond) == 0);

  /* A recursive mutex is locked as often as before. */
  myth_mutexattr_t type;
  CHECK(myth_mutexattr_init(&type) == 0 && myth_mutexattr_settype(&type, MYTH_MUTEX_RECURSIVE) == 0);
  CHECK(myth_mutex_init(&mutex, &type) == 0);
  CHECK(myth_mutex_lock(&mutex) == 0 && myth_mutex_lock(&mutex) == 0);
  soon = in_ms(5);
  CHECK(myth_cond_timedwait(&cond, &mutex, &soon) == ETIMEDOUT);
  CHECK(myth_mutex_unlock(&mutex) == 0 && others_try(tries) == EBUSY && myth_mutex_unlock(&mutex) == 0);
}

static myth_rwlock_t rwlock;
static long written[2];

static void *writes(void *argument) {
  for (int i = 0; i < 300; i++) {
    CHECK(myth_rwlock_wrlock(&rwlock) == 0);
    written[0]++;
    if (i % 8 == 0) myth_yield();
    written[1]++;
    CHECK(myth_rwlock_unlock(&rwlock) == 0);
  }
  return argument;
}

static void *reads(void *argument) {
  for (int i = 0; i < 300; i++) {
    CHECK(myth_rwlock_rdlock(&rwlock) == 0);
    long first = written[0];
    if (i % 8 == 0) myth_yield();
    CHECK(written[1] == first);
    CHECK(myth_rwlock_unlock(&rwlock) == 0);
  }
  return argument;
}

static void *try_to_read(void *argument) {
  (void)argument;
  return (void *)(long)myth_rwlock_tryrdlock(&rwlock);
}
static void *write_once(void *argument) {
  (void)argument;
  CHECK(myth_rwlock_wrlock(&rwlock) == 0);
  return (void *)(long)myth_rwlock_unlock(&rwlock);
}

static void readers_and_writers(void) {
  for (int kind = 0; kind <= 2; kind++) {
    myth_rwlockattr_t attr;
    CHECK(myth_rwlockattr_init(&attr) == 0 && myth_rwlockattr_setkind(&attr, kind) == 0);
    CHECK(myth_rwlock_init(&rwlock, &attr) == 0);
    written[0] = written[1] = 0;
    myth_thread_t threads[8];
    for (int i = 0; i < 8; i++) threads[i] = myth_create(i % 4 ? reads : writes, NULL);
    for (int i = 0; i < 8; i++) CHECK(myth_join(threads[i], NULL) == 0);
    CHECK(written[0] == 600 && written[1] == 600);

    /* While a writer waits, a further reader enters only if readers are preferred. */
    CHECK(myth_rwlock_rdlock(&rwlock) == 0);
    struct timespec past = in_ms(0), soon = in_ms(10);
    CHECK(myth_rwlock_timedrdlock(&rwlock, &past) == 0 && myth_rwlock_unlock(&rwlock) == 0);
    CHECK(myth_rwlock_timedwrlock(&rwlock, &soon) == ETIMEDOUT && has_passed(soon));
    CHECK(myth_rwlock_trywrlock(&rwlock) == EBUSY && myth_rwlock_destroy(&rwlock) == EBUSY);
    myth_thread_t writer = myth_create(write_once, NULL);
    /* Until the writer waits, which shows only where it keeps readers out. */
    while (kind != MYTH_RWLOCK_PREFER_READER && myth_rwlock_tryrdlock(&rwlock) == 0) {
      CHECK(myth_rwlock_unlock(&rwlock) == 0);
      myth_yield();
    }
    myth_thread_t reader = myth_create(try_to_read, NULL);
    void *entered, *left;
    CHECK(myth_join(reader, &entered) == 0);
    CHECK((long)entered == (kind == MYTH_RWLOCK_PREFER_READER ? 0 : EBUSY));
    if (entered == NULL) CHECK(myth_rwlock_unlock(&rwlock) == 0);
    CHECK(myth_rwlock_unlock(&rwlock) == 0);
    CHECK(myth_join(writer, &left) == 0 && left == NULL);

    CHECK(myth_rwlock_wrlock(&rwlock) == 0 && myth_rwlock_tryrdlock(&rwlock) == EBUSY);
    CHECK(myth_rwlock_timedrdlock(&rwlock, &soon) == ETIMEDOUT);
    CHECK(myth_rwlock_unlock(&rwlock) == 0 && myth_rwlock_unlock(&rwlock) == EPERM);
    CHECK(myth_rwlock_timedwrlock(&rwlock, &soon) == 0 && myth_rwlock_unlock(&rwlock) == 0);
    CHECK(myth_rwlock_trywrlock(&rwlock) == 0 && myth_rwlock_unlock(&rwlock) == 0);
    CHECK(myth_rwlock_destroy(&rwlock) == 0);
  }
  myth_rwlockattr_t wrong = { MYTH_RWLOCK_PREFER_INVALID };
  CHECK(myth_rwlock_init(&rwlock, &wrong) == EINVAL);
}

int main(void) {
  mutexes();
  conditions();
  readers_and_writers();
  return 0;
}
