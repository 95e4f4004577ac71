/* myth/myth_spinlock.h: a lock whose waiters spin. myth/myth.h includes it, and has the rules.
 *
 * None of its functions switches, so a thread that has it must not wait: on the same worker nobody else could unlock it.
 */
#pragma once
#ifndef WEALD_MYTH_SPINLOCK_H
#define WEALD_MYTH_SPINLOCK_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  volatile int locked;
} myth_spinlock_t;

#define MYTH_SPINLOCK_INITIALIZER { 0 }

int myth_spin_init(myth_spinlock_t *lock);
int myth_spin_destroy(myth_spinlock_t *lock);
/* Returns how often it found the lock taken. */
int myth_spin_lock(myth_spinlock_t *lock);
/* Returns 1 if it has taken the lock, else 0, also for NULL. */
int myth_spin_trylock(myth_spinlock_t *lock);
int myth_spin_unlock(myth_spinlock_t *lock);

#ifdef __cplusplus
}
#endif

#endif
