/* rounds.h - measuring a model beside others: texts of any length, on demand. */
#ifndef LLAMA_ROUNDS_H
#define LLAMA_ROUNDS_H
#include "step.h"

/* Lines of standard input say how many tokens a text begins with and how many follow them; each is answered by a line with the seconds that
 * either took. The tokens are any. */
int rounds_run(Session *s, Memory *memory, Fail *fail);
double seconds_now(void);
#endif
