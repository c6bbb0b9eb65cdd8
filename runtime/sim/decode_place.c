/* decode_place.c - .loc: where in the source instructions come from, and through which calls they were inlined.
 *
 *   .loc file line column [, function_name label [+ n], inlined_at file line column]
 *
 * (PTX ISA, "Debugging Directives: .loc"). The place after inlined_at is that of an earlier .loc, which may itself have been
 * inlined: so places form chains, from the innermost outward. function_name is a label in .debug_str. */
#include "decode.h"
#include <stdlib.h>
#include <string.h>

static uint32_t
place_hash(const Place *p)
{
  return (p->line * 0x9e3779b1u ^ p->column * 0x85ebca6bu ^ p->file * 0xc2b2ae35u) >> 3;
}

/* The newest place with these three numbers + 1, or 0; exact: with the same origin, too. */
static uint32_t
place_find(const Decoder *d, const Place *p, bool exact)
{
  for (uint32_t i = chains_first(&d->place_chains, place_hash(p)); i; i = chains_next(&d->place_chains, i)) {
    const Place *q = &d->u->places[i - 1];
    if (q->line == p->line && q->column == p->column && q->file == p->file &&
        (!exact || (q->at == p->at && q->function.s == p->function.s)))
      return i;
  }
  return 0;
}

static uint32_t
place_add(Decoder *d, const Place *p)
{
  Unit *u = d->u;
  if (!sim_vec_grow(&u->places, &d->place_cap, u->nplaces + 1u, sizeof *u->places) || !chains_add(&d->place_chains, place_hash(p))) {
    decode_no_memory(d);
    return 0;
  }
  u->places[u->nplaces] = *p;
  return ++u->nplaces;
}

static Place
read_place(Decoder *d)
{
  uint64_t file = decode_number(d), line = decode_number(d), column = decode_number(d);
  return (Place){.file = (uint16_t)file, .line = (uint32_t)line, .column = column > UINT16_MAX ? 0 : (uint16_t)column};
}

/* The string that a label of .debug_str stands before. */
static Name
function_name(Decoder *d)
{
  const Tok *t = decode_peek(d);
  const SimModule *m = d->r->mod;
  const Sym *s = t->kind == TK_IDENT ? names_find(&d->r->strings, t->s, t->n) : NULL;
  uint64_t at = s ? s->addr : m->nstrings;
  d->pos++;
  if (decode_accept(d, '+'))
    at += decode_number(d);
  if (at >= m->nstrings)
    return (Name){NULL, 0};
  const char *text = m->strings + at;
  return (Name){text, (uint32_t)strnlen(text, m->nstrings - at)};
}

void
decode_loc(Decoder *d)
{
  Place p = read_place(d);
  while (!d->failed && decode_accept(d, ',')) {
    const Tok *word = decode_peek(d);
    d->pos++;
    if (ptx_tok_is(word, "function_name"))
      p.function = function_name(d);
    else if (ptx_tok_is(word, "inlined_at")) {
      Place from = read_place(d);
      p.at = place_find(d, &from, false);
      if (!p.at && !d->failed)
        p.at = place_add(d, &from);
    } else
      decode_fail(d, "malformed .loc");
  }
  if (d->failed || !p.line)            /* line 0: code of no line of its own, which stays with the line before */
    return;
  d->here.place = place_find(d, &p, true);
  if (!d->here.place)
    d->here.place = place_add(d, &p);
}
