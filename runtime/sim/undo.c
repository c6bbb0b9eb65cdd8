/* undo.c - memory as it was before a launch, page by page, kept by those workers that write to a page first. */
#include "internal.h"
#include <stdlib.h>
#include <string.h>

struct Undo { Shadow *shadow; size_t page; uint8_t *bytes; uint8_t state; uint64_t init[PAGE_WORDS]; };

static size_t
page_bytes(const Shadow *s, size_t page)
{
  size_t left = s->bytes - page * PAGE_BYTES;
  return left < PAGE_BYTES ? left : PAGE_BYTES;
}

bool
undo_save(Worker *k, Shadow *s, Page *p, size_t page)
{
  size_t n = page_bytes(s, page);
  if (p->saved)
    return true;
  if (!sim_vec_grow(&k->undo, &k->undo_cap, k->nundo + 1, sizeof *k->undo))
    return false;
  Undo *u = &k->undo[k->nundo];
  *u = (Undo){.shadow = s, .page = page, .state = s->state[page]};
  if (u->state != INIT_NONE) {
    u->bytes = malloc(n);
    if (!u->bytes)
      return false;
    memcpy(u->bytes, s->memory + page * PAGE_BYTES, n);
    memcpy(u->init, s->init + page * PAGE_WORDS, sizeof u->init);
  }
  k->nundo++;
  p->saved = true;
  return true;
}

void
undo_all(Worker *k)
{
  for (size_t i = 0; i < k->nundo; i++) {
    const Undo *u = &k->undo[i];
    u->shadow->state[u->page] = u->state;
    if (!u->bytes)
      continue;
    memcpy(u->shadow->memory + u->page * PAGE_BYTES, u->bytes, page_bytes(u->shadow, u->page));
    memcpy(u->shadow->init + u->page * PAGE_WORDS, u->init, sizeof u->init);
  }
}

void
undo_free(Worker *k)
{
  for (size_t i = 0; i < k->nundo; i++)
    free(k->undo[i].bytes);
  free(k->undo);
}
