/* Attributes: of the runtime, of threads, of what threads wait with; and the sizes that other runtimes rely on. */
#include "check.h"

static char stack_of_ours[4096];

static void *uses_stack(void *argument) {
  volatile char room[600 << 10];
  for (size_t i = 0; i < sizeof room; i += 1024) room[i] = (char)i;
  return argument;
}

int main(void) {
  CHECK(sizeof(myth_mutex_t) == 40 && sizeof(myth_cond_t) == 32 && sizeof(myth_barrier_t) == 32);
  CHECK(sizeof(myth_join_counter_t) == 64 && sizeof(myth_felock_t) == 120 && sizeof(myth_uncond_t) == 8);
  CHECK(sizeof(myth_rwlock_t) == 40 && sizeof(myth_once_t) == 4 && sizeof(myth_key_t) == 4);
  CHECK(sizeof(myth_globalattr_t) == 32 && sizeof(myth_thread_attr_t) == 48 && sizeof(myth_wls_key_t) == 4);

  myth_globalattr_t global;
  CHECK(myth_globalattr_init(&global) == 0 && myth_globalattr_init(NULL) == EINVAL);
  size_t size = 0, workers = 0, guard = 0;
  int flag = -1;
  CHECK(myth_globalattr_get_stacksize(&global, &size) == 0 && size == 131072);
  CHECK(myth_globalattr_set_stacksize(&global, 262144) == 0);
  CHECK(myth_globalattr_get_stacksize(&global, &size) == 0 && size == 262144);
  CHECK(myth_globalattr_get_guardsize(&global, &guard) == 0 && guard == 4096);
  CHECK(myth_globalattr_set_guardsize(&global, 8192) == 0);
  CHECK(myth_globalattr_get_guardsize(&global, &guard) == 0 && guard == 8192);
  CHECK(myth_globalattr_get_n_workers(&global, &workers) == 0 && workers >= 1);
  CHECK(myth_globalattr_set_n_workers(&global, 3) == 0);
  CHECK(myth_globalattr_get_n_workers(&global, &workers) == 0 && workers == 3);
  CHECK(myth_globalattr_set_bind_workers(&global, 1) == 0);
  CHECK(myth_globalattr_get_bind_workers(&global, &flag) == 0 && flag == 1);
  CHECK(myth_globalattr_set_child_first(&global, 0) == 0);
  CHECK(myth_globalattr_get_child_first(&global, &flag) == 0 && flag == 0);
  CHECK(myth_globalattr_destroy(&global) == 0);
  CHECK(myth_globalattr_get_stacksize(&global, NULL) == EINVAL);
  /* NULL: the settings of the next runtime. */
  CHECK(myth_globalattr_set_stacksize(NULL, 65536) == 0);
  CHECK(myth_globalattr_get_stacksize(NULL, &size) == 0 && size == 65536);

  myth_thread_attr_t thread;
  CHECK(myth_thread_attr_init(&thread) == 0 && myth_thread_attr_init(NULL) == EINVAL);
  CHECK(myth_thread_attr_getstacksize(&thread, &size) == 0 && size == 65536);
  CHECK(myth_thread_attr_setstacksize(&thread, 1 << 20) == 0);
  CHECK(myth_thread_attr_getstacksize(&thread, &size) == 0 && size == 1 << 20);
  CHECK(myth_thread_attr_getdetachstate(&thread, &flag) == 0 && flag == 0);
  CHECK(myth_thread_attr_setdetachstate(&thread, 2) == EINVAL && myth_thread_attr_setdetachstate(&thread, 1) == 0);
  CHECK(myth_thread_attr_getdetachstate(&thread, &flag) == 0 && flag == 1);
  CHECK(myth_thread_attr_setguardsize(&thread, 8192) == 0);
  CHECK(myth_thread_attr_getguardsize(&thread, &guard) == 0 && guard == 8192);
  void *address = NULL;
  CHECK(myth_thread_attr_setstack(&thread, stack_of_ours, sizeof stack_of_ours) == 0);
  CHECK(myth_thread_attr_getstack(&thread, &address, &size) == 0);
  CHECK(address == stack_of_ours && size == sizeof stack_of_ours);

  /* The stack is as large as was asked for. */
  CHECK(myth_thread_attr_init(&thread) == 0 && myth_thread_attr_setstacksize(&thread, 1 << 20) == 0);
  myth_thread_t id;
  CHECK(myth_create_ex(&id, &thread, uses_stack, NULL) == 0 && myth_join(id, NULL) == 0);

  int number = -1;
  myth_mutexattr_t mutex;
  CHECK(myth_mutexattr_init(&mutex) == 0 && myth_mutexattr_gettype(&mutex, &number) == 0);
  CHECK(number == MYTH_MUTEX_DEFAULT && myth_mutexattr_settype(&mutex, MYTH_MUTEX_INVALID) == EINVAL);
  CHECK(myth_mutexattr_settype(&mutex, MYTH_MUTEX_RECURSIVE) == 0);
  CHECK(myth_mutexattr_gettype(&mutex, &number) == 0 && number == MYTH_MUTEX_RECURSIVE);
  CHECK(myth_mutexattr_destroy(&mutex) == 0);
  myth_rwlockattr_t rwlock;
  CHECK(myth_rwlockattr_init(&rwlock) == 0 && myth_rwlockattr_getkind(&rwlock, &number) == 0);
  CHECK(number == MYTH_RWLOCK_PREFER_READER && myth_rwlockattr_setkind(&rwlock, 9) == EINVAL);
  CHECK(myth_rwlockattr_setkind(&rwlock, MYTH_RWLOCK_PREFER_WRITER) == 0);
  CHECK(myth_rwlockattr_getkind(&rwlock, &number) == 0 && number == MYTH_RWLOCK_PREFER_WRITER);
  CHECK(myth_rwlockattr_destroy(&rwlock) == 0);
  myth_condattr_t cond;
  CHECK(myth_condattr_init(&cond) == 0 && myth_condattr_destroy(&cond) == 0);
  myth_barrierattr_t barrier;
  CHECK(myth_barrierattr_init(&barrier) == 0 && myth_barrierattr_destroy(&barrier) == 0);
  myth_join_counterattr_t counter;
  CHECK(myth_join_counterattr_init(&counter) == 0 && myth_join_counterattr_destroy(&counter) == 0);
  myth_felockattr_t felock;
  CHECK(myth_felockattr_init(&felock) == 0 && myth_felockattr_destroy(&felock) == 0);
  return 0;
}
