/* The runtime: it begins and ends several times, with settings of the program and of the environment. */
#define _GNU_SOURCE
#include "check.h"
#include <sched.h>

static void *counts_cores(void *argument) {
  cpu_set_t set;
  CHECK(sched_getaffinity(0, sizeof set, &set) == 0);
  *(int *)argument = CPU_COUNT(&set);
  return NULL;
}

static myth_uncond_t never, unheard;
static void *waits(void *argument) {
  myth_uncond_wait(&never);
  return argument;
}
static void *signals(void *argument) {
  myth_uncond_signal(&unheard);
  return argument;
}

/* At the end of the runtime a destructor is a thread's still, and starts no other runtime. */
static myth_key_t key;
static int begun, destroyed;
static void *same(void *argument) { return argument; }
static void destroys(void *value) {
  myth_thread_t thread;
  CHECK(value == &key && !myth_equal(myth_self(), NULL));
  CHECK(myth_setspecific(key, NULL) == 0 && myth_getspecific(key) == NULL);
  CHECK(myth_create_ex(&thread, NULL, same, NULL) == ECANCELED);
  __atomic_add_fetch(&destroyed, 1, __ATOMIC_RELAXED);
}
static void *keeps(void *argument) {
  CHECK(myth_setspecific(key, &key) == 0);
  __atomic_add_fetch(&begun, 1, __ATOMIC_RELAXED);
  myth_uncond_wait(&never);
  return argument;
}

static int first_began;
static void *begins(void *argument) {
  first_began = 1;
  return argument;
}

/* In a function of its own: the address of errno must not be kept over a call that switches. */
__attribute__((noinline)) static int errno_is(int number) { return errno == number; }
__attribute__((noinline)) static void set_errno(int number) { errno = number; }

static void threads_run(void) {
  int cores = 0;
  myth_thread_t thread = myth_create(counts_cores, &cores);
  CHECK(thread != NULL && myth_join(thread, NULL) == 0 && cores >= 1);
}

int main(void) {
  /* The environment, which the test sets to 3. */
  set_errno(77);
  CHECK(myth_init() == 0 && errno_is(77) && myth_get_num_workers() == 3);
  threads_run();
  myth_globalattr_t attr;
  CHECK(myth_globalattr_init(&attr) == 0 && attr.stacksize == 98304);
  CHECK(myth_globalattr_set_n_workers(&attr, 2) == 0);
  /* Without effect while it runs. */
  CHECK(myth_init_ex(&attr) == 0 && myth_get_num_workers() == 3);
  CHECK(myth_is_myth_worker() == 1 || getenv("ASAN_OPTIONS"));
  set_errno(78);
  myth_fini();
  CHECK(errno_is(78) && myth_is_myth_worker() == 0);
  myth_fini();

  CHECK(myth_globalattr_set_bind_workers(&attr, 1) == 0);
  CHECK(myth_init_ex(&attr) == 0 && myth_get_num_workers() == 2);
  int cores = 0;
  myth_thread_t thread = myth_create(counts_cores, &cores);
  CHECK(myth_join(thread, NULL) == 0 && cores == 1);
  myth_fini();

  CHECK(myth_globalattr_set_n_workers(&attr, 5000) == 0 && myth_init_ex(&attr) == EINVAL);
  /* With one worker a thread begins before its creator goes on, unless that is not wanted. */
  CHECK(myth_globalattr_set_n_workers(&attr, 1) == 0 && myth_globalattr_set_bind_workers(&attr, 0) == 0);
  CHECK(myth_init_ex(&attr) == 0);
  if (myth_is_myth_worker()) {
    for (int i = 0; i < 1000; i++) {
      first_began = 0;
      thread = myth_create(begins, NULL);
      CHECK(first_began && myth_join(thread, NULL) == 0);
    }
    myth_thread_attr_t later;
    CHECK(myth_thread_attr_init(&later) == 0 && later.child_first == 1);
    later.child_first = 0;
    first_began = 0;
    CHECK(myth_create_ex(&thread, &later, begins, NULL) == 0 && !first_began);
    CHECK(myth_join(thread, NULL) == 0 && first_began);
  }
  /* Threads that wait for nothing do not keep it from ending. */
  for (int i = 0; i < 10; i++) CHECK(myth_create(i % 2 ? waits : signals, NULL) != NULL);
  CHECK(myth_key_create(&key, destroys) == 0);
  for (int i = 0; i < 10; i++) CHECK(myth_create(keeps, NULL) != NULL);
  while (__atomic_load_n(&begun, __ATOMIC_RELAXED) < 10) myth_yield();
  myth_fini();
  /* It does not wait for all of them on a busy machine. */
  while (__atomic_load_n(&destroyed, __ATOMIC_RELAXED) < 10) usleep(100);
  CHECK(myth_key_delete(key) == 0);
  CHECK(myth_globalattr_set_stacksize(&attr, 196608) == 0 && myth_globalattr_set_child_first(&attr, 0) == 0);
  CHECK(myth_init_ex(&attr) == 0);
  threads_run();
  /* The attributes of a thread are those of the runtime that runs. */
  myth_thread_attr_t of_thread;
  CHECK(myth_thread_attr_init(&of_thread) == 0 && of_thread.stacksize == 196608 && of_thread.child_first == 0);
  /* No myth_fini: the program ends as it is. */
  return 0;
}
