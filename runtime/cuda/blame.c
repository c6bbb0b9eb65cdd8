/* blame.c - which kernels may have lost a device: those that were launched and have not been waited for. The last BLAME_LAUNCHES launches
 * are known. Who notes and who reads do not wait for each other: a launch that is overwritten while it is read is left out. */
#include "blame.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMED = 3 };   /* so many suspects are named */

void
blame_init(Blame *b)
{
  pthread_mutex_init(&b->lock, NULL);
}

void
blame_destroy(Blame *b)
{
  for (BlameName *n = b->names, *next; n; n = next) {
    next = n->next;
    free(n);
  }
  pthread_mutex_destroy(&b->lock);
}

int
blame_name(Blame *b, const char *name, const char **label, TilertError *err)
{
  pthread_mutex_lock(&b->lock);
  BlameName *n = b->names;
  while (n && strcmp(n->name, name) != 0)
    n = n->next;
  if (!n && (n = malloc(sizeof *n)) != NULL) {
    snprintf(n->name, sizeof n->name, "%s", name);
    n->next = b->names;
    b->names = n;
  }
  pthread_mutex_unlock(&b->lock);
  *label = n ? n->name : NULL;
  return n ? TILERT_OK : error_no_memory(err);
}

static void
cross_out(BlameLaunch *l, uint64_t number)
{
  uint_fast64_t expected = number;
  atomic_compare_exchange_strong(&l->number, &expected, 0);
}

void
blame_withdraw(Blame *b, uint64_t number)
{
  cross_out(&b->last[number % BLAME_LAUNCHES], number);
}

uint64_t
blame_now(Blame *b)
{
  return atomic_load_explicit(&b->launches, memory_order_relaxed);
}

void
blame_pass(Blame *b, uint64_t number, int all, const void *stream)
{
  for (size_t i = 0; i < BLAME_LAUNCHES; i++) {
    BlameLaunch *l = &b->last[i];
    uint64_t n = atomic_load_explicit(&l->number, memory_order_acquire);
    if (n && n <= number && (all || atomic_load_explicit(&l->stream, memory_order_relaxed) == stream))
      cross_out(l, n);
  }
}

/* " x launched (1, 2, 3)" to the end of the cause; 0 if there is no such launch by now. */
static int
add_suspect(Blame *b, uint64_t number, int first)
{
  BlameLaunch *l = &b->last[number % BLAME_LAUNCHES];
  const char *label = atomic_load_explicit(&l->label, memory_order_relaxed);
  unsigned grid[3];
  for (int i = 0; i < 3; i++)
    grid[i] = atomic_load_explicit(&l->grid[i], memory_order_relaxed);
  if (!number || !label || atomic_load_explicit(&l->number, memory_order_acquire) != number)
    return 0;
  size_t n = strlen(b->cause);
  snprintf(b->cause + n, sizeof b->cause - n, "%s%.100s (launch %llu", !first ? " or " : grid[0] ? "kernel " : "", label,
           (unsigned long long)number);
  n = strlen(b->cause);
  if (grid[0])
    snprintf(b->cause + n, sizeof b->cause - n, ", grid (%u, %u, %u))", grid[0], grid[1], grid[2]);
  else
    snprintf(b->cause + n, sizeof b->cause - n, ")");
  return 1;
}

/* The latest first: the sentence that later errors begin with. */
static void
set_cause(Blame *b)
{
  uint64_t last = blame_now(b);
  int suspects = 0;
  snprintf(b->cause, sizeof b->cause, "the device was lost by a fault in ");
  for (uint64_t n = last; n && last - n < BLAME_LAUNCHES; n--) {
    if (suspects < NAMED)
      suspects += add_suspect(b, n, suspects == 0);
    else
      suspects += atomic_load_explicit(&b->last[n % BLAME_LAUNCHES].number, memory_order_relaxed) == n;
  }
  if (!suspects)
    snprintf(b->cause, sizeof b->cause, "the device was lost by a fault in a kernel that was not launched here");
  size_t at = strlen(b->cause);
  if (suspects > NAMED)
    snprintf(b->cause + at, sizeof b->cause - at, " or one of %d others", suspects - NAMED);
  at = strlen(b->cause);
  if (suspects)
    snprintf(b->cause + at, sizeof b->cause - at, "; run it on the device \"sim\" to find the line");
}

void
blame_fault(Blame *b)
{
  pthread_mutex_lock(&b->lock);
  if (!atomic_load(&b->lost)) {
    set_cause(b);
    atomic_store(&b->lost, 1);
  }
  pthread_mutex_unlock(&b->lock);
}

int
blame_is_lost(Blame *b)
{
  return atomic_load(&b->lost);
}

int
blame_explain(Blame *b, int status, TilertError *err)
{
  if (!blame_is_lost(b))
    return status;
  return error_prefix(err, TILERT_E_FAULT, "%s", b->cause);
}
