/* options.h - the command line. */
#ifndef LLAMA_OPTIONS_H
#define LLAMA_OPTIONS_H
#include "step.h"

typedef struct Options {
  const char *model, *prompt, *system, *device, *logits;
  const char *ids;              /* the prompt as numbers, with commas between */
  uint64_t tokens, context, piece;
  Sampling sampling;
  bool raw, timing, wide, rounds, help;
} Options;

int options_read(Options *o, int argc, char **argv, Fail *fail);
extern const char options_help[];
#endif
