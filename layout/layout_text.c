/* layout_text.c - layouts as text: the canonical form, the constructors, the picture.
 *
 *   layout<8x16; reg (0,1) (0,8); lane (0,2) (0,4) (1,0) (2,0) (4,0)>     columns as coordinates, lowest bit
 *   first shared<8x16; off (0,1) (0,2) (0,4) (0,8) (1,2) (2,4) (4,8)>
 *   blocked<shape; size per thread; threads; warps; order>                lists as 128x64, order as 1,0
 *   mma<128x128; 2x2>   operand<0; 128x64; 2x2; 16>   slice<1; layout>   swizzled<64x64; 8, 1, 8; 1,0>
 *   panels<128x64; 2, 128; 1,0>                                           bytes of an element, of a panel's row; order
 *
 * A reader keeps the first error and goes on with zeros; nothing is made after an error.
 */
#include "layout_gf2.h"

static const char *const in_name[IN_COUNT] = {"reg", "lane", "warp", "block", "off"};
enum { MAX_LANE_BITS = 5, MAX_WARP_BITS = 5, MAX_BLOCK_BITS = 4, MAX_NESTING = 8 };
static const u8 in_limit[IN_COUNT] = {
  LAYOUT_MAX_BITS, MAX_LANE_BITS, MAX_WARP_BITS, MAX_BLOCK_BITS, LAYOUT_MAX_BITS
};

/* ---- printing ---- */

static void
print_shape(Buf *b, const Layout *l)
{
  for (u32 d = 0; d < l->rank; d++) buf_printf(b, d ? "x%u" : "%u", 1u << l->out_bits[d]);
}

static void
print_coords(Buf *b, const Layout *l, u32 flat)
{
  u32 at[MAX_RANK];
  layout_coords(l, flat, at);
  for (u32 d = 0; d < l->rank; d++) buf_printf(b, d ? ",%u" : "(%u", at[d]);
  buf_putc(b, ')');
}

void
layout_print(Buf *b, const Layout *l)
{
  buf_puts(b, layout_is_shared(l) ? "shared<" : "layout<");
  print_shape(b, l);
  for (u32 in = 0; in < IN_COUNT; in++) {
    if (l->in_bits[in]) buf_printf(b, "; %s", in_name[in]);
    for (u32 i = 0; i < l->in_bits[in]; i++) {
      buf_putc(b, ' ');
      print_coords(b, l, l->col[in][i]);
    }
  }
  buf_putc(b, '>');
}

/* ---- reading: characters ---- */

typedef struct Reader {
  Ctx *c;
  const char *s;
  size_t len, pos;
  const char *error;   /* the first */
  size_t at;
  u32 depth;
} Reader;

static void
fail_at(Reader *r, size_t at, const char *error)
{
  if (r->error) return;
  r->error = error;
  r->at = at;
}

static char
peek(Reader *r)
{
  while (r->pos < r->len && (r->s[r->pos] == ' ' || r->s[r->pos] == '\t' || r->s[r->pos] == '\n')) r->pos++;
  return r->pos < r->len ? r->s[r->pos] : '\0';
}

static bool
accept(Reader *r, char ch)
{
  if (r->error || peek(r) != ch) return false;
  r->pos++;
  return true;
}

static void
expect(Reader *r, char ch, const char *error)
{
  if (!accept(r, ch)) fail_at(r, r->pos, error);
}

static u32
read_number(Reader *r)
{
  u32 x = 0;
  peek(r);
  size_t at = r->pos;
  for (; r->pos < r->len && r->s[r->pos] >= '0' && r->s[r->pos] <= '9'; r->pos++)
    if (x <= 1u << LAYOUT_MAX_BITS) x = x * 10 + (u32)(r->s[r->pos] - '0');
  if (r->pos == at) fail_at(r, at, "expected a number");
  if (x > 1u << LAYOUT_MAX_BITS) fail_at(r, at, "number too large");
  return r->error ? 0 : x;
}

static bool
accept_word(Reader *r, const char *word)
{
  size_t n = strlen(word);
  peek(r);
  if (r->error || r->len - r->pos < n || memcmp(r->s + r->pos, word, n)) return false;
  if (r->pos + n < r->len && r->s[r->pos + n] >= 'a' && r->s[r->pos + n] <= 'z') return false;
  r->pos += n;
  return true;
}

/* ---- reading: arguments ---- */

typedef struct List {
  u32 n, v[MAX_RANK];
  size_t at;
} List;

static List
read_list(Reader *r, char separator)
{
  List out = {0};
  peek(r);
  out.at = r->pos;
  do {
    u32 x = read_number(r);
    if (out.n < MAX_RANK) out.v[out.n++] = x;
    else fail_at(r, r->pos, "too many dimensions");
  } while (accept(r, separator));
  return out;
}

/* Extents: at least 1, at most 2^24 elements with the padding. */
static List
read_shape(Reader *r)
{
  List out = read_list(r, 'x');
  u32 bits = 0;
  for (u32 d = 0; d < out.n; d++) {
    if (out.v[d] == 0) fail_at(r, out.at, "an extent of 0");
    bits += log2_u32(next_pow2(out.v[d]));
  }
  if (bits > LAYOUT_MAX_BITS) fail_at(r, out.at, "too many elements");
  return out;
}

static u32
read_pow2(Reader *r)
{
  peek(r);
  size_t at = r->pos;
  u32 x = read_number(r);
  if (!is_pow2(x)) fail_at(r, at, "expected a power of two");
  return x;
}

/* `rank` powers of two with a product of at most `most`. */
static List
read_powers(Reader *r, u32 rank, u32 most)
{
  List out = read_list(r, 'x');
  u64 product = 1;
  if (out.n != rank) fail_at(r, out.at, "expected one number per dimension");
  for (u32 d = 0; d < out.n && !r->error; d++) {
    product *= out.v[d];
    if (!is_pow2(out.v[d])) fail_at(r, out.at, "expected powers of two");
    if (product > most) fail_at(r, out.at, "the product is too large");
  }
  return out;
}

static void
read_order(Reader *r, u32 rank, int *order)
{
  List l = read_list(r, ',');
  u32 seen = 0;
  for (u32 i = 0; i < l.n && l.v[i] < rank; i++) seen |= 1u << l.v[i];
  if (l.n != rank || seen != (1u << rank) - 1) fail_at(r, l.at, "expected an order: every dimension once");
  for (u32 i = 0; i < MAX_RANK; i++) order[i] = i < l.n ? (int)l.v[i] : 0;
}

static void
next_argument(Reader *r)
{
  expect(r, ';', "expected ';'");
}

/* ---- reading: columns ---- */

static u32
read_column(Reader *r, const Layout *l)
{
  size_t at = r->pos;
  List x = read_list(r, ',');
  if (x.n != l->rank) fail_at(r, at, "expected one coordinate per dimension");
  for (u32 d = 0; d < l->rank && !r->error; d++)
    if (x.v[d] >> l->out_bits[d]) fail_at(r, at, "coordinate outside the tile");
  expect(r, ')', "expected ')'");
  return r->error ? 0 : layout_flat(l, x.v);
}

static void
read_section(Reader *r, Layout *l, LayoutIn in)
{
  while (!r->error && accept(r, '(')) {
    if (l->in_bits[in] >= in_limit[in]) fail_at(r, r->pos, "too many columns");
    layout_push(l, in, read_column(r, l));
  }
}

static const Layout *
read_columns(Reader *r, LayoutIn first, LayoutIn last)
{
  const char *expected = first == IN_OFFSET ? "expected 'off'" : "expected reg, lane, warp, block in this order";
  size_t at = r->pos;
  List shape = read_shape(r);
  if (r->error) return NULL;
  Layout l = layout_blank(r->c, (int)shape.n, shape.v);
  u32 in = first;
  while (!r->error && accept(r, ';')) {
    while (in <= (u32)last && !accept_word(r, in_name[in])) in++;
    if (in > (u32)last) fail_at(r, r->pos, expected);
    else read_section(r, &l, (LayoutIn)in++);
  }
  if (!r->error && !layout_covers(&l)) fail_at(r, at, "some elements are held by nobody");
  if (first == IN_REG) l.in_bits[IN_LANE] = MAX_LANE_BITS;
  return r->error ? NULL : layout_intern(r->c, &l);
}

/* ---- reading: constructors ---- */

static const Layout *read_layout(Reader *r);

static const Layout *
read_registers(Reader *r)
{
  return read_columns(r, IN_REG, IN_BLOCK);
}

static const Layout *
read_offsets(Reader *r)
{
  return read_columns(r, IN_OFFSET, IN_OFFSET);
}

static const Layout *
read_blocked(Reader *r)
{
  int order[MAX_RANK];
  List shape = read_shape(r);
  next_argument(r);
  List size = read_powers(r, shape.n, 1u << LAYOUT_MAX_BITS);
  next_argument(r);
  List threads = read_powers(r, shape.n, 32);
  u32 product = 1;
  for (u32 d = 0; d < threads.n; d++) product *= threads.v[d];
  if (product != 32) fail_at(r, threads.at, "threads must multiply to 32");
  next_argument(r);
  List warps = read_powers(r, shape.n, 1u << MAX_WARP_BITS);
  next_argument(r);
  read_order(r, shape.n, order);
  return r->error ? NULL : layout_blocked(r->c, (int)shape.n, shape.v, size.v, threads.v, warps.v, order);
}

static List
read_matrix_shape(Reader *r)
{
  List out = read_shape(r);
  if (out.n < 2) fail_at(r, out.at, "expected two dimensions or more");
  return out;
}

static const Layout *
read_mma(Reader *r)
{
  List shape = read_matrix_shape(r);
  next_argument(r);
  List warps = read_powers(r, shape.n, 1u << MAX_WARP_BITS);
  return r->error ? NULL : layout_mma(r->c, (int)shape.n, shape.v, warps.v);
}

static const Layout *
read_operand(Reader *r)
{
  size_t at = r->pos;
  u32 which = read_number(r);
  if (which > 1) fail_at(r, at, "expected operand 0 or 1");
  next_argument(r);
  List shape = read_matrix_shape(r);
  next_argument(r);
  List warps = read_powers(r, shape.n, 1u << MAX_WARP_BITS);
  next_argument(r);
  at = r->pos;
  u32 bits = read_number(r);
  if (bits != 8 && bits != 16 && bits != 32) fail_at(r, at, "expected 8, 16 or 32 bits");
  return r->error ? NULL : layout_mma_operand(r->c, (int)which, (int)shape.n, shape.v, warps.v, bits);
}

static const Layout *
read_slice(Reader *r)
{
  size_t at = r->pos;
  u32 axis = read_number(r);
  next_argument(r);
  const Layout *of = read_layout(r);
  if (of && (layout_is_shared(of) || of->rank < 2 || axis >= of->rank))
    fail_at(r, at, "nothing to slice at this axis");
  return r->error ? NULL : layout_slice(r->c, of, (int)axis);
}

static const Layout *
read_swizzled(Reader *r)
{
  int order[MAX_RANK];
  List shape = read_shape(r);
  next_argument(r);
  u32 vec = read_pow2(r);
  expect(r, ',', "expected ','");
  u32 per_phase = read_pow2(r);
  expect(r, ',', "expected ','");
  u32 max_phase = read_pow2(r);
  next_argument(r);
  read_order(r, shape.n, order);
  return r->error ? NULL : layout_swizzled(r->c, (int)shape.n, shape.v, vec, per_phase, max_phase, order);
}

static const Layout *
read_panels(Reader *r)
{
  int order[MAX_RANK];
  List shape = read_shape(r);
  next_argument(r);
  u32 bytes = read_pow2(r);
  expect(r, ',', "expected ','");
  size_t at = r->pos;
  u32 width = read_pow2(r);
  if (bytes > 8 || width < 16 || width > 128) fail_at(r, at, "expected elements of up to 8 bytes in rows of 16, 32, 64 or 128");
  next_argument(r);
  read_order(r, shape.n, order);
  if (!r->error && order[0] + 2 < (int)shape.n) fail_at(r, at, "expected panels along one of the last two dimensions");
  const Layout *l = r->error ? NULL : layout_panels(r->c, (int)shape.n, shape.v, bytes, width, order);
  if (!r->error && !l) fail_at(r, at, "expected rows of whole panels");
  return l;
}

static const struct { const char *name; const Layout *(*read)(Reader *); } kinds[] = {
  {"layout", read_registers}, {"shared", read_offsets}, {"blocked", read_blocked}, {"mma", read_mma},
  {"operand", read_operand},  {"slice", read_slice},    {"swizzled", read_swizzled},
  {"panels", read_panels},
};

static const Layout *
read_layout(Reader *r)
{
  const Layout *l = NULL;
  size_t k = 0;
  if (r->depth++ >= MAX_NESTING) fail_at(r, r->pos, "layouts nested too deeply");
  while (k < COUNT(kinds) && !accept_word(r, kinds[k].name)) k++;
  if (k == COUNT(kinds))
    fail_at(r, r->pos, "expected layout, shared, blocked, mma, operand, slice, swizzled or panels");
  expect(r, '<', "expected '<'");
  if (!r->error) l = kinds[k].read(r);
  expect(r, '>', "expected '>'");
  r->depth--;
  return r->error ? NULL : l;
}

const Layout *
layout_parse(Ctx *c, const char *s, size_t len, size_t *used, const char **error, size_t *at)
{
  Reader r = {.c = c, .s = s, .len = len};
  const Layout *l = read_layout(&r);
  *used = r.pos;
  *error = r.error;
  *at = r.at;
  return l;
}
