#include "rounds.h"
#include <stdio.h>
#include <time.h>

double
seconds_now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void
fill(int32_t *tokens, size_t count, uint64_t vocabulary)
{
  for (size_t i = 0; i < count; i++)
    tokens[i] = (int32_t)((i * 0x9e3779b97f4a7c15u >> 33) % vocabulary);
}

static int
round_run(Session *s, const int32_t *tokens, size_t prompt, size_t steps, Fail *fail)
{
  int32_t next;
  session_empty(s);
  double began = seconds_now();
  if (session_prefill(s, tokens, prompt, &next, fail))
    return -1;
  double filled = seconds_now();
  for (size_t i = 0; i < steps; i++)
    if (session_decode(s, &next, fail))
      return -1;
  printf("%.9f %.9f\n", filled - began, seconds_now() - filled);
  fflush(stdout);
  return 0;
}

int
rounds_run(Session *s, Memory *memory, Fail *fail)
{
  char line[64];
  uint64_t places = s->model->context;
  int32_t *tokens = memory_take(memory, places, sizeof *tokens, fail);
  if (!tokens)
    return -1;
  fill(tokens, places, s->model->vocabulary);
  while (fgets(line, sizeof line, stdin)) {
    size_t prompt, steps;
    if (sscanf(line, "%zu %zu", &prompt, &steps) != 2 || !prompt || prompt > places || steps > places - prompt)
      return fail_with(fail, "a round is two numbers, that of tokens and that of steps, together up to %llu", (unsigned long long)places);
    if (round_run(s, tokens, prompt, steps, fail))
      return -1;
  }
  return 0;
}
