/* What a thread expects to keep over a switch: errno, its frames, alloca, jumps within its stack; and sleeps. */
#include "check.h"
#include <alloca.h>
#include <pthread.h>
#include <setjmp.h>

/* Not inlined: the compiler may keep the address of errno over a call. */
__attribute__((noinline)) static int own_errno(void) { return errno; }
__attribute__((noinline)) static void set_errno(int value) { errno = value; }

static void *keeps_errno(void *argument) {
  CHECK(own_errno() == 0);
  set_errno((int)(long)argument);
  for (int i = 0; i < 100; i++) {
    myth_yield_ex(i % 5);
    CHECK(own_errno() == (int)(long)argument);
  }
  CHECK(myth_usleep(100) == 0 && own_errno() == (int)(long)argument);
  return NULL;
}

static void *jumps(void *argument) {
  volatile int rounds = 0;
  jmp_buf place;
  int size = (int)(long)argument;
  char *room = alloca(size);
  memset(room, size & 0x7f, size);
  if (setjmp(place) < 10) {
    rounds++;
    myth_yield();
    longjmp(place, rounds);
  }
  for (int i = 0; i < size; i++) CHECK(room[i] == (size & 0x7f));
  CHECK(rounds == 10);
  return NULL;
}

static double depth(int n) {
  volatile double here = n;
  if (n % 10 == 0) myth_yield();
  return n == 0 ? 0 : here + depth(n - 1);
}
static void *recurses(void *argument) {
  (void)argument;
  CHECK(depth(300) == 45150);
  return NULL;
}

static void *in_a_thread_of_the_system(void *argument) {
  CHECK(!myth_is_myth_worker() && myth_get_worker_num() == -1);
  myth_thread_t thread = myth_create(keeps_errno, (void *)5);
  CHECK(thread != NULL && myth_join(thread, NULL) == 0);
  CHECK(myth_self() != NULL && myth_usleep(1) == 0);
  myth_yield();
  CHECK(myth_uncond_signal((myth_uncond_t *)argument) == 0);
  return NULL;
}

int main(void) {
  enum { THREADS = 12 };
  myth_thread_t threads[3 * THREADS];
  CHECK(myth_init() == 0);
  set_errno(77);
  for (long i = 0; i < THREADS; i++) {
    threads[3 * i] = myth_create(keeps_errno, (void *)(i + 1));
    threads[3 * i + 1] = myth_create(jumps, (void *)(100 * i + 50));
    threads[3 * i + 2] = myth_create(recurses, NULL);
  }
  for (int i = 0; i < 3 * THREADS; i++) CHECK(myth_join(threads[i], NULL) == 0);
  CHECK(own_errno() == 77);

  struct timespec until = in_ms(10), wrong = { 0, 2000000000 }, negative = { -1, 0 }, left = { 9, 9 };
  CHECK(myth_usleep(10000) == 0 && has_passed(until));
  struct timespec time = { 0, 5000000 };
  until = in_ms(5);
  CHECK(myth_nanosleep(&time, &left) == 0 && has_passed(until) && left.tv_sec == 0 && left.tv_nsec == 0);
  CHECK(myth_nanosleep(&wrong, NULL) == EINVAL && myth_nanosleep(&negative, NULL) == EINVAL);
  CHECK(myth_nanosleep(NULL, NULL) == EINVAL && myth_sleep(0) == 0);

  pthread_t outside;
  myth_uncond_t ended = { 0 };
  CHECK(pthread_create(&outside, NULL, in_a_thread_of_the_system, &ended) == 0);
  /* Not with pthread_join alone, which would hold the worker that the other thread needs. */
  CHECK(myth_uncond_wait(&ended) == 0 && pthread_join(outside, NULL) == 0);
  return 0;
}
