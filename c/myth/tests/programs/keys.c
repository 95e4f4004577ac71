/* What threads and workers keep under keys; and cancels. */
#include "check.h"

static myth_key_t key, other;
static int destroyed, destroyed_null;

static void destroys(void *value) {
  if (value == NULL) __atomic_add_fetch(&destroyed_null, 1, __ATOMIC_RELAXED);
  else __atomic_add_fetch(&destroyed, (int)(long)value, __ATOMIC_RELAXED);
}

static void *keeps(void *argument) {
  CHECK(myth_getspecific(key) == NULL);
  CHECK(myth_setspecific(key, argument) == 0);
  for (int i = 0; i < 5; i++) {
    myth_yield();
    CHECK(myth_getspecific(key) == argument);
  }
  if ((long)argument % 2) myth_exit(NULL);
  return NULL;
}

static void *keeps_null(void *argument) {
  CHECK(myth_setspecific(key, argument) == 0 && myth_setspecific(key, NULL) == 0);
  return NULL;
}

static void *keeps_nothing(void *argument) { return argument; }

static void run(myth_func_t function, void *argument) {
  myth_thread_t thread = myth_create(function, argument);
  CHECK(myth_join(thread, NULL) == 0);
}

static void of_threads(void) {
  CHECK(myth_key_create(&key, destroys) == 0 && myth_key_create(NULL, NULL) == EINVAL);
  CHECK(myth_setspecific(key, &key) == 0 && myth_getspecific(key) == &key);
  myth_thread_t threads[10];
  for (long i = 0; i < 10; i++) threads[i] = myth_create(keeps, (void *)(i + 1));
  for (long i = 0; i < 10; i++) CHECK(myth_join(threads[i], NULL) == 0);
  /* The destructors have run before the joins ended, also after an exit. */
  CHECK(destroyed == 55 && destroyed_null == 0);
  run(keeps_null, &key);
  CHECK(destroyed_null == 1);
  run(keeps_nothing, NULL);
  CHECK(destroyed_null == 1);
  /* A key that is made again has no value. */
  CHECK(myth_key_delete(key) == 0 && myth_key_delete(key) == EINVAL);
  CHECK(myth_getspecific(key) == NULL && myth_setspecific(key, &key) == EINVAL);
  CHECK(myth_key_create(&other, NULL) == 0 && other == key && myth_getspecific(other) == NULL);
  CHECK(myth_setspecific(other, &other) == 0 && myth_getspecific(other) == &other);
  CHECK(myth_key_delete(other) == 0);
  CHECK(myth_setspecific(-1, NULL) == EINVAL && myth_getspecific(100000) == NULL);
  myth_key_t all[1025];
  int made = 0;
  while (made < 1025 && myth_key_create(&all[made], NULL) == 0) made++;
  CHECK(made == 1024 && myth_key_create(&other, NULL) == EAGAIN);
  for (int i = 0; i < made; i++) CHECK(myth_key_delete(all[i]) == 0);
}

static void of_workers(void) {
  myth_wls_key_t worker_key;
  CHECK(myth_wls_key_create(&worker_key, NULL) == 0 && myth_wls_key_create(NULL, NULL) == EINVAL);
  CHECK(myth_wls_getspecific(worker_key) == NULL);
  CHECK(myth_wls_setspecific(worker_key, &worker_key) == 0);
  CHECK(myth_wls_getspecific(worker_key) == &worker_key);
  int worker = myth_get_worker_num();
  CHECK(worker >= -1 && worker < myth_get_num_workers());
  CHECK(myth_wls_key_delete(worker_key) == 0);
}

static myth_uncond_t begun, go;
static void *is_cancelled(void *argument) {
  int before;
  CHECK(myth_setcancelstate(MYTH_CANCEL_DISABLE, &before) == 0 && before == MYTH_CANCEL_ENABLE);
  CHECK(myth_uncond_signal(&begun) == 0 && myth_uncond_wait(&go) == 0);
  myth_testcancel();
  CHECK(myth_setcancelstate(MYTH_CANCEL_ENABLE, &before) == 0 && before == MYTH_CANCEL_DISABLE);
  CHECK(myth_setcancelstate(7, NULL) == EINVAL);
  myth_testcancel();
  CHECK(argument != NULL);
  return argument;
}

static void cancels(void) {
  int type;
  CHECK(myth_setcanceltype(MYTH_CANCEL_DEFERRED, &type) == 0 && type == MYTH_CANCEL_DEFERRED);
  CHECK(myth_setcanceltype(MYTH_CANCEL_ASYNCHRONOUS, NULL) == EINVAL);
  for (int asked = 0; asked <= 1; asked++) {
    myth_thread_t thread = myth_create(is_cancelled, &key);
    void *result;
    CHECK(myth_uncond_wait(&begun) == 0);
    if (asked) CHECK(myth_cancel(thread) == 0);
    CHECK(myth_uncond_signal(&go) == 0 && myth_join(thread, &result) == 0);
    CHECK(result == (asked ? MYTH_CANCELED : (void *)&key));
  }
}

int main(void) {
  of_threads();
  of_workers();
  cancels();
  return 0;
}
