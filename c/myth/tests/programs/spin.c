/* Spin locks. With no other header than the library's, which declares abort(), too. */
#include <myth/myth.h>

#define CHECK(condition)                                                                            \
  do {                                                                                              \
    if (!(condition)) abort();                                                                      \
  } while (0)

enum { THREADS = 20, ROUNDS = 1000 };

static myth_spinlock_t lock = MYTH_SPINLOCK_INITIALIZER;
static long count;

static void *counts(void *argument) {
  for (int i = 0; i < ROUNDS; i++) {
    if (i % 2)
      CHECK(myth_spin_lock(&lock) >= 0);
    else
      while (!myth_spin_trylock(&lock)) myth_yield();
    count++;
    CHECK(myth_spin_unlock(&lock) == 0);
    if (i % 16 == 0) myth_yield();
  }
  return argument;
}

int main(void) {
  /* Among them a thread of the system, which runs beside the workers. */
  pthread_t outside;
  CHECK(pthread_create(&outside, NULL, counts, NULL) == 0);
  myth_thread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++) threads[i] = myth_create(counts, NULL);
  for (int i = 0; i < THREADS; i++) CHECK(myth_join(threads[i], NULL) == 0);
  CHECK(pthread_join(outside, NULL) == 0);
  CHECK(count == (THREADS + 1) * ROUNDS);

  myth_spinlock_t another = { 7 };
  CHECK(myth_spin_init(&another) == 0 && another.locked == 0);
  CHECK(myth_spin_lock(&another) == 0 && another.locked == 1);
  CHECK(myth_spin_trylock(&another) == 0);
  CHECK(myth_spin_unlock(&another) == 0 && myth_spin_trylock(&another) == 1);
  CHECK(myth_spin_unlock(&another) == 0 && myth_spin_destroy(&another) == 0);
  CHECK(sizeof another == sizeof(int));
  CHECK(myth_spin_init(NULL) && myth_spin_destroy(NULL) && myth_spin_unlock(NULL) && !myth_spin_trylock(NULL));
  return 0;
}
