/* key.c - what a closed region computes, as words that can be compared and hashed.
 *
 * A region is closed if it uses nothing but its own arguments and what it makes itself (a map's is). Values are numbered as they stand, so
 * regions have equal keys exactly if they are the same ops on the same types in the same order; places and names do not count. */
#include "ir.h"

typedef struct Key { Buf *out; u32 *numbers, next; } Key;

void
key_put(Buf *key, u64 word)
{
  buf_write(key, (const char *)&word, sizeof word);
}

static void
put(Key *k, u64 word)
{
  key_put(k->out, word);
}

/* A value that is made here. */
static void
put_new(Key *k, const Value *v)
{
  k->numbers[v->id] = k->next++;
  put(k, (uintptr_t)v->type);
}

void
key_put_attr(Buf *key, const Attr *a)
{
  key_put(key, a->id);
  if (attr_info[a->id].kind != AK_INTS) {
    key_put(key, (u64)a->i);                           /* strings, types and layouts are interned */
    return;
  }
  key_put(key, a->ints.n);
  for (u32 i = 0; i < a->ints.n; i++)
    key_put(key, (u64)a->ints.v[i]);
}

static void put_block(Key *k, const Block *b);

static void
put_op(Key *k, const Op *op)
{
  put(k, (u64)op->code << 32 | op->nattrs);
  put(k, (u64)op->noperands << 32 | op->nresults);
  for (u32 i = 0; i < op->nattrs; i++)
    key_put_attr(k->out, &op->attrs[i]);
  for (u32 i = 0; i < op->noperands; i++)
    put(k, op_operand(op, i) ? k->numbers[op_operand(op, i)->id] : ~0ull);
  for (u32 i = 0; i < op->nresults; i++)
    put_new(k, op->results[i]);
  for (u32 r = 0; r < op->nregions; r++)
    put_block(k, op->regions[r]);
}

static void
put_block(Key *k, const Block *b)
{
  put(k, b->nargs);
  for (u32 i = 0; i < b->nargs; i++)
    put_new(k, b->args[i]);
  for (const Op *op = b->first; op; op = op->next)
    put_op(k, op);
}

void
region_key(Buf *out, const Block *b, u32 *numbers)
{
  Key k = {out, numbers, 0};
  put_block(&k, b);
}

u64
key_hash(const Buf *key)
{
  u64 h = 0, word;
  for (size_t i = 0; i + sizeof word <= key->len; i += sizeof word) {
    memcpy(&word, key->data + i, sizeof word);
    h = (h ^ word) * 0x9e3779b97f4a7c15u;
    h ^= h >> 29;
  }
  return h;
}
