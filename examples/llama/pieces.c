/* pieces.c - text to SentencePiece's pieces: characters, of which the best pair is merged, of the best ones the first, until none is left.
 *
 * Pairs that could be merged wait in a heap. One of which a part has become something else meanwhile is known by its length and passed over. */
#include "tokenizer.h"
#include <string.h>

enum { NONE = -1 };
static const char SPACE[] = "\xe2\x96\x81";

/* A part of the text; len 0: it has become one with that to its left. */
typedef struct Part { const char *at; size_t len; int32_t token, left, right; } Part;
typedef struct Pair { double rank; int32_t left, right, token; size_t len; } Pair;
typedef struct Merger { const Tokenizer *t; Part *parts; Pair *heap; size_t waiting, room; Memory *memory; Fail *fail; } Merger;

/* Of a character by its first byte, as far as the text goes. */
static size_t
char_length(const char *at, const char *end)
{
  uint8_t first = (uint8_t)*at;
  size_t n = first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4, left = (size_t)(end - at), i = 1;
  while (i < n && i < left && ((uint8_t)at[i] & 0xc0) == 0x80)
    i++;
  return i;
}

/* A piece that text may become; NONE: there is none. */
static int32_t
piece_of(const Tokenizer *t, const char *at, size_t len)
{
  int32_t token = tokenizer_find(t, (Text){at, len});
  return token >= 0 && t->kind[token] == TOKEN_TEXT ? token : NONE;
}

/* ---- the heap: the highest rank first, of equal ones that which is further to the left ---- */

static bool
comes_first(const Pair *a, const Pair *b)
{
  return a->rank > b->rank || (a->rank == b->rank && a->left < b->left);
}

static int
heap_add(Merger *m, Pair pair)
{
  Pair *heap = memory_grow(m->memory, m->heap, m->waiting, 1, &m->room, sizeof *heap, m->fail);
  if (!heap)
    return -1;
  m->heap = heap;
  size_t i = m->waiting++;
  for (; i && comes_first(&pair, &m->heap[(i - 1) / 2]); i = (i - 1) / 2)
    m->heap[i] = m->heap[(i - 1) / 2];
  m->heap[i] = pair;
  return 0;
}

static Pair
heap_take(Merger *m)
{
  Pair first = m->heap[0], last = m->heap[--m->waiting];
  size_t i = 0;
  for (size_t child; (child = 2 * i + 1) < m->waiting; i = child) {
    if (child + 1 < m->waiting && comes_first(&m->heap[child + 1], &m->heap[child]))
      child++;
    if (!comes_first(&m->heap[child], &last))
      break;
    m->heap[i] = m->heap[child];
  }
  m->heap[i] = last;
  return first;
}

/* ---- merging ---- */

/* These stay as they are. */
static bool
is_added(const Tokenizer *t, const Part *p)
{
  return p->token != NONE && t->kind[p->token] == TOKEN_ADDED;
}

static int
consider(Merger *m, int32_t left, int32_t right)
{
  if (left == NONE || right == NONE)
    return 0;
  const Part *a = &m->parts[left], *b = &m->parts[right];
  if (is_added(m->t, a) || is_added(m->t, b))
    return 0;
  Pair pair = {0, left, right, NONE, a->len + b->len};
  if (m->t->scores) {
    pair.token = piece_of(m->t, a->at, pair.len);
    pair.rank = pair.token == NONE ? 0 : (double)m->t->scores[pair.token];
  } else if (a->token != NONE && b->token != NONE) {
    const Slot *s = tokenizer_merge(m->t, a->token, b->token);
    pair.token = s ? s->result : NONE;
    pair.rank = s ? -(double)s->rank : 0;
  }
  return pair.token == NONE ? 0 : heap_add(m, pair);
}

static int
merge(Merger *m, const Pair *pair)
{
  Part *a = &m->parts[pair->left], *b = &m->parts[pair->right];
  if (!a->len || !b->len || a->len + b->len != pair->len)
    return 0;
  a->len = pair->len;
  a->token = pair->token;
  a->right = b->right;
  b->len = 0;
  if (a->right != NONE)
    m->parts[a->right].left = pair->left;
  return consider(m, a->left, pair->left) || consider(m, pair->left, a->right) ? -1 : 0;
}

static int
add_part(const Tokenizer *t, const Part *p, Tokens *out, Memory *memory, Fail *fail)
{
  if (p->token != NONE)
    return tokens_add(out, p->token, memory, fail);
  for (size_t i = 0; i < p->len; i++) {
    int32_t byte = t->byte_token[(uint8_t)p->at[i]];
    if (byte < 0 && t->unknown < 0)
      return fail_with(fail, "tokenizer: no token for byte %u", (uint8_t)p->at[i]);
    if (byte < 0)
      return tokens_add(out, t->unknown, memory, fail);
    if (tokens_add(out, byte, memory, fail))
      return -1;
  }
  return 0;
}

/* The text with U+2581 for spaces; NULL: no memory. */
static const char *
spaced(const Tokenizer *t, Text text, size_t *len, Memory *memory, Fail *fail)
{
  size_t n = 0, space = sizeof SPACE - 1;
  char *to = memory_take(memory, text.len + 1, space, fail);
  if (!to)
    return NULL;
  if (t->add_space)
    memcpy(to + (n += space) - space, SPACE, space);
  for (size_t i = 0; i < text.len; i++)
    if (text.at[i] == ' ')
      memcpy(to + (n += space) - space, SPACE, space);
    else
      to[n++] = text.at[i];
  *len = n;
  return to;
}

int
pieces_encode(const Tokenizer *t, Text text, Tokens *out, Memory *memory, Fail *fail)
{
  size_t len;
  Merger m = {.t = t, .memory = memory, .fail = fail};
  if (!text.len)
    return 0;
  if (text.len > INT32_MAX / 4)
    return fail_with(fail, "tokenizer: a text of %zu bytes", text.len);
  const char *at = spaced(t, text, &len, memory, fail), *end = at ? at + len : NULL;
  m.parts = at ? memory_take(memory, len, sizeof *m.parts, fail) : NULL;
  if (!m.parts)
    return -1;
  int32_t count = 0;
  for (size_t n; at < end; at += n, count++) {
    int32_t added = tokenizer_added(t, at, end);
    n = added != NONE ? t->pieces[added].len : char_length(at, end);
    m.parts[count] = (Part){at, n, added != NONE ? added : piece_of(t, at, n), count - 1, at + n < end ? count + 1 : NONE};
  }
  for (int32_t i = 0; i + 1 < count; i++)
    if (consider(&m, i, i + 1))
      return -1;
  while (m.waiting) {
    Pair pair = heap_take(&m);
    if (merge(&m, &pair))
      return -1;
  }
  for (int32_t i = 0; i != NONE; i = m.parts[i].right)
    if (add_part(t, &m.parts[i], out, memory, fail))
      return -1;
  return 0;
}
