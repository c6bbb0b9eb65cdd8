#include "interrupt.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct Interrupt {
  pthread_t thread;
  pthread_mutex_t lock;
  TilertDevice *device;                /* whose launch is to be stopped; NULL: none */
};

static sigset_t
only_sigint(void)
{
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  return set;
}

void
interrupt_die(void)
{
  sigset_t set = only_sigint();
  fputs("tilerun: interrupted; nothing is saved\n", stderr);
  signal(SIGINT, SIG_DFL);
  pthread_sigmask(SIG_UNBLOCK, &set, NULL);
  raise(SIGINT);
}

/* False if there is nothing to stop. */
static int
stop_launch(Interrupt *i)
{
  pthread_mutex_lock(&i->lock);
  int stopping = i->device != NULL;
  tilert_device_cancel(i->device);
  pthread_mutex_unlock(&i->lock);
  return stopping;
}

/* A launch that is only about to begin when it is stopped does not notice: ask again until it has ended. What sends a signal to a
 * process and to its group sends two: one that follows at once is no second wish. */
static void *
wait_for_signals(void *user)
{
  const struct timespec pause = {0, 50000000};
  sigset_t set = only_sigint();
  for (;;) {
    if (sigwaitinfo(&set, NULL) != SIGINT)
      continue;
    if (!stop_launch(user))
      interrupt_die();
    for (int waited = 0; stop_launch(user); waited = 1)
      if (sigtimedwait(&set, NULL, &pause) == SIGINT && waited)
        interrupt_die();
  }
  return NULL;
}

Interrupt *
interrupt_new(void)
{
  sigset_t set = only_sigint(), before;
  Interrupt *i = calloc(1, sizeof *i);
  if (!i)
    return NULL;
  signal(SIGINT, SIG_DFL);             /* where it is ignored it does not arrive */
  pthread_mutex_init(&i->lock, NULL);
  pthread_sigmask(SIG_BLOCK, &set, &before);
  if (!pthread_create(&i->thread, NULL, wait_for_signals, i))
    return i;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_mutex_destroy(&i->lock);
  free(i);
  return NULL;
}

void
interrupt_free(Interrupt *i)
{
  if (!i)
    return;
  pthread_cancel(i->thread);
  pthread_join(i->thread, NULL);
  pthread_mutex_destroy(&i->lock);
  free(i);
}

static void
set_device(Interrupt *i, TilertDevice *dev)
{
  if (!i)
    return;
  pthread_mutex_lock(&i->lock);
  i->device = dev;
  pthread_mutex_unlock(&i->lock);
}

void
interrupt_guard(Interrupt *i, TilertDevice *dev)
{
  set_device(i, tilert_device_info(dev)->is_sim ? dev : NULL);
}

void
interrupt_unguard(Interrupt *i)
{
  set_device(i, NULL);
}
