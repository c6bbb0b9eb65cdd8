/* interrupt.h - Ctrl-C in a program that launches. A thread of its own waits for SIGINT, so that what follows is not bound to what a
 * signal's handler may do, and nothing is global. */
#ifndef TILEC_INTERRUPT_H
#define TILEC_INTERRUPT_H
#include "tilert.h"

typedef struct Interrupt Interrupt;

/* To be called before other threads start: from here on SIGINT reaches none of them, and ends the program. NULL: out of memory or
 * threads; then SIGINT ends the program without a word. */
Interrupt *interrupt_new(void);
void interrupt_free(Interrupt *i);
/* Between these, the first SIGINT stops the launch that runs on the device, if that can be stopped (sim); the second ends the program. */
void interrupt_guard(Interrupt *i, TilertDevice *dev);
void interrupt_unguard(Interrupt *i);
/* End the program as SIGINT does, with a sentence. Returns only where the signal cannot be raised. */
void interrupt_die(void);
#endif
