#include "tunetable.h"
#include <stdlib.h>
#include <string.h>

enum { BAR = 30 };

void
tunetable_progress(void *user, const char *what, size_t done, size_t total)
{
  char bar[BAR + 1];
  size_t filled = total ? done * BAR / total : BAR;
  (void)user;
  memset(bar, ' ', BAR);
  memset(bar, '#', filled);
  bar[BAR] = 0;
  fprintf(stderr, done == total ? "\r\033[K" : "\r%-15s [%s] %zu of %zu", what, bar, done, total);
  fflush(stderr);
}

static int
faster_first(const void *a, const void *b)
{
  const TilejitTrial *x = *(const TilejitTrial *const *)a, *y = *(const TilejitTrial *const *)b;
  if (!x->why != !y->why)
    return x->why ? 1 : -1;
  if (!x->why && x->ms != y->ms)
    return x->ms < y->ms ? -1 : 1;
  return x < y ? -1 : x > y;           /* as listed */
}

static void
print_rows(FILE *to, const TilejitTuning *t, const TilejitTrial *const *list, size_t n, int is_sim)
{
  size_t width = 13, hidden = 0;
  const TilejitTrial *best = tilejit_tuning_trial(t, tilejit_tuning_chosen(t));
  for (size_t i = 0; i < n; i++)
    if (strlen(list[i]->config) > width)
      width = strlen(list[i]->config);
  fprintf(to, "  %-*s  %10s  %6s  %4s  %7s  %10s\n", (int)width, "configuration", is_sim ? "M instr" : "ms", "x best", "regs",
          "shared", "compile ms");
  for (size_t i = 0; i < n; i++) {
    const TilejitTrial *x = list[i];
    if (!x->why)
      fprintf(to, "%c %-*s  %10.4f  %6.2f  %4u  %7u  %10.1f\n", x == best ? '*' : ' ', (int)width, x->config, x->ms,
              x->ms / (best->ms > 0 ? best->ms : 1), x->registers, x->shared, x->compile_ms + x->load_ms);
    else if (strcmp(x->why, "its condition is false") != 0)
      fprintf(to, "- %-*s  %s\n", (int)width, x->config, x->why);
    else
      hidden++;
  }
  if (hidden)
    fprintf(to, "  %zu more are ruled out by their condition\n", hidden);
}

void
tunetable_print(FILE *to, const TilejitTuning *t, int is_sim)
{
  size_t n = tilejit_tuning_count(t);
  const TilejitTrial **list = malloc((n + 1) * sizeof *list);
  const char *config = tilejit_tuning_trial(t, tilejit_tuning_chosen(t))->config;
  if (!list)
    return;
  for (size_t i = 0; i < n; i++)
    list[i] = tilejit_tuning_trial(t, i);
  if (tilejit_tuning_remembered(t)) {
    fprintf(to, "tuned    %s, as measured before\n", *config ? config : "(defaults)");
  } else {
    qsort(list, n, sizeof *list, faster_first);
    fprintf(to, "tuned    %s\n", *config ? config : "(defaults)");
    print_rows(to, t, list, n, is_sim);
  }
  free(list);
}
