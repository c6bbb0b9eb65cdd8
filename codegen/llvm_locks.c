/* llvm_locks.c - what LLVM holds while it works: locks, and things that it makes on first use.
 *
 * A jump out of LLVM (llvm.c) passes over the destructors that would give these back; another thread would then wait for ever. So the
 * linker hands LLVM the functions below for the calls that take and give back (--wrap in CMakeLists.txt). They note what this
 * thread holds, and whoever jumps gives it back first, the last one first, as unwinding would. What a lock protects is whole then:
 * LLVM's maps allocate before they change. Only an interrupted pthread_once cannot be taken back.
 *
 * Nothing is noted outside of LLVM. The table is the thread's own; LLVM holds two or three things at a time. */
#include "gen.h"
#include <pthread.h>

enum { HELD_MAX = 32 };
typedef enum HeldKind { HELD_MUTEX, HELD_RWLOCK, HELD_STATIC, HELD_ONCE } HeldKind;
typedef struct HeldList { struct { HeldKind kind; void *what; } at[HELD_MAX]; u32 n; bool noting; } HeldList;

static HeldList *
held_here(void)
{
  static _Thread_local HeldList held;
  return &held;
}

/* From here to the end that gen_locks_end gets; what it gets is given back. */
LlvmLocks
gen_locks_begin(void)
{
  HeldList *h = held_here();
  LlvmLocks begun = {h->n, h->noting};
  h->noting = true;
  return begun;
}

static void
take(HeldKind kind, void *what)
{
  HeldList *h = held_here();
  if (!h->noting)
    return;
  if (h->n < HELD_MAX) {
    h->at[h->n].kind = kind;
    h->at[h->n].what = what;
  }
  h->n++;
}

static void
give(HeldKind kind, const void *what)
{
  HeldList *h = held_here();
  for (u32 i = h->n < HELD_MAX ? h->n : HELD_MAX; i-- > 0;)
    if (h->at[i].kind == kind && h->at[i].what == what) {
      memmove(&h->at[i], &h->at[i + 1], (HELD_MAX - 1 - i) * sizeof h->at[0]);
      h->n--;
      return;
    }
}

/* ---- in LLVM's way ---- */

/* The real functions, and ours in their place; the latter's names are the linker's. */
#define REAL(name) real_##name
#define WRAPPED(type, name, params, args) \
  type REAL(name) params __asm__("__real_" #name); \
  type wrap_##name params __asm__("__wrap_" #name); \
  type wrap_##name params

/* Taking one: noted when it is taken. Giving it back: no longer noted. */
#define TAKES(name, kind, what_type) \
  WRAPPED(int, name, (what_type *what), (what)) { int error = REAL(name)(what); if (!error) take(kind, what); return error; }
#define GIVES(name, kind, what_type) \
  WRAPPED(int, name, (what_type *what), (what)) { give(kind, what); return REAL(name)(what); }

TAKES(pthread_mutex_lock, HELD_MUTEX, pthread_mutex_t)
TAKES(pthread_mutex_trylock, HELD_MUTEX, pthread_mutex_t)
GIVES(pthread_mutex_unlock, HELD_MUTEX, pthread_mutex_t)
TAKES(pthread_rwlock_rdlock, HELD_RWLOCK, pthread_rwlock_t)
TAKES(pthread_rwlock_wrlock, HELD_RWLOCK, pthread_rwlock_t)
GIVES(pthread_rwlock_unlock, HELD_RWLOCK, pthread_rwlock_t)

/* C++: 1 if this thread is to make the static object. */
WRAPPED(int, __cxa_guard_acquire, (i64 *what), (what))
{
  int mine = REAL(__cxa_guard_acquire)(what);
  if (mine)
    take(HELD_STATIC, what);
  return mine;
}

WRAPPED(void, __cxa_guard_release, (i64 *what), (what))
{
  give(HELD_STATIC, what);
  REAL(__cxa_guard_release)(what);
}

WRAPPED(int, pthread_once, (pthread_once_t *what, void (*make)(void)), (what, make))
{
  take(HELD_ONCE, what);
  int error = REAL(pthread_once)(what, make);
  give(HELD_ONCE, what);
  return error;
}

/* ---- giving back ---- */

void cxa_guard_abort(i64 *what) __asm__("__cxa_guard_abort");

bool
gen_locks_end(LlvmLocks begun)
{
  HeldList *h = held_here();
  bool whole = h->n <= HELD_MAX;
  h->noting = false;
  for (u32 i = whole ? h->n : HELD_MAX; i-- > begun.n;)
    switch (h->at[i].kind) {
    case HELD_MUTEX: REAL(pthread_mutex_unlock)(h->at[i].what); break;
    case HELD_RWLOCK: REAL(pthread_rwlock_unlock)(h->at[i].what); break;
    case HELD_STATIC: cxa_guard_abort(h->at[i].what); break;
    case HELD_ONCE: whole = false; break;
    }
  h->n = begun.n;
  h->noting = begun.noting;
  return whole;
}
