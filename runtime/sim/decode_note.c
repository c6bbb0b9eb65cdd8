/* decode_note.c - comments that say which registers are indices, and of how many: the compiler of the text knows, the instructions do not.
 *
 *   //@tilec.index REGISTER EXTENT [PREDICATE]
 *
 * (docs/ir.md, "Bounds in PTX".) A note stands between statements and is checked there, as an instruction of its own kind that costs no
 * instruction. A comment of another form says nothing. */
#include "decode.h"
#include <string.h>

size_t
note_first(const Reader *r, size_t body)
{
  size_t lo = 0, hi = r->nnotes;
  while (lo < hi) {
    size_t mid = (lo + hi) / 2;
    if (r->note[mid].at < body)
      lo = mid + 1;
    else
      hi = mid;
  }
  return lo;
}

/* The next word of a note; empty at its end. */
static Tok
next_word(Name *left)
{
  while (left->n && (*left->s == ' ' || *left->s == '\t' || *left->s == '\r'))
    left->s++, left->n--;
  Tok t = {.kind = TK_IDENT, .s = left->s};
  while (left->n && *left->s != ' ' && *left->s != '\t' && *left->s != '\r')
    left->s++, left->n--, t.n++;
  return t;
}

static bool
read_extent(const Tok *t, uint64_t *out)
{
  *out = 0;
  for (uint32_t i = 0; i < t->n; i++) {
    uint64_t digit = (uint64_t)(t->s[i] - '0');
    if (t->s[i] < '0' || t->s[i] > '9' || *out > (UINT64_MAX - digit) / 10)
      return false;
    *out = *out * 10 + digit;
  }
  return t->n != 0;
}

static void
read_note(Decoder *d, const Note *n)
{
  Name left = {n->text, n->n};
  Tok index = next_word(&left), extent = next_word(&left), when = next_word(&left), end = next_word(&left);
  Opnd x = {.kind = O_NONE}, p = {.kind = O_NONE};
  uint64_t count;
  if (end.n || !read_extent(&extent, &count) || !opnd_register(d, &index, &x) || x.type == T_PRED || x.width < 2)
    return;
  if (when.n && (!opnd_register(d, &when, &p) || p.type != T_PRED))
    return;
  d->here.ptx_line = n->line;
  d->guard = when.n ? p.slot + 1 : NO_GUARD;
  d->guard_not = false;
  Insn *in = insn_warp(d, K_NOTE, index_exec, 1);
  if (in)
    in->index = (IndexOps){x.slot, count, x.width};
}

void
decode_notes(Decoder *d)
{
  const Reader *r = d->r;
  for (; d->note < r->nnotes && r->note[d->note].at <= d->pos; d->note++)
    if (r->note[d->note].at == d->pos)
      read_note(d, &r->note[d->note]);
}
