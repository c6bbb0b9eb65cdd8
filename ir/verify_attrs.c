/* verify_attrs.c - an op's attributes: which it has, and what values they take. */
#include "verify.h"
#include "fp.h"

/* Words a STR attribute may be; rows for one op come before the row for any (OP_COUNT). NULL words: not empty. */
static const struct { AttrId id; OpCode op; const char *words; } str_values[] = {
  {AT_PRED, OP_COUNT, "eq ne lt le gt ge"},
  {AT_RMW, OP_TENSOR_STORE, "add min max and or xor"},
  {AT_RMW, OP_TMA_STORE, "add min max and or xor"},
  {AT_RMW, OP_COUNT, NULL},                 /* attr_rmw_words() */
  {AT_SEM, OP_COUNT, "relaxed acquire release acq_rel"},
  {AT_SCOPE, OP_MBARRIER_ARRIVE, "cluster"},
  {AT_SCOPE, OP_MBARRIER_WAIT, "cluster"},
  {AT_SCOPE, OP_COUNT, "cta gpu sys"},
  {AT_CACHE, OP_LOAD, "ca cg cs cv"},
  {AT_CACHE, OP_COUNT, "wb cg cs wt"},
  {AT_EVICT, OP_COUNT, "first last normal"},
  {AT_PREC, OP_COUNT, PRECISION_WORDS},
  {AT_ROUND, OP_COUNT, ROUND_WORDS},
  {AT_FORMAT, OP_COUNT,
#define PACKED(name, bits, cls, exp, man) name " "
#include "packed.def"
#undef PACKED
  },
  {AT_KIND, OP_FENCE, "async mbarrier"},
  {AT_KIND, OP_COUNT, "none regs shuffle shared"},
};

/* Ranges of INT attributes. */
static const struct { AttrId id; i64 least, most; bool pow2; } int_values[] = {
  {AT_AXIS, 0, MAX_RANK - 1, false}, {AT_REVERSE, 0, 1, false},
  {AT_START, INT32_MIN, INT32_MAX, false}, {AT_END, INT32_MIN, INT32_MAX, false},
  {AT_VOLATILE, 0, 1, false}, {AT_SAT, 0, 1, false}, {AT_DIVISIBLE, 1, INT32_MAX, false},
  {AT_CONTIGUOUS, 1, INT32_MAX, false}, {AT_STAGES, 1, 16, false}, {AT_UNROLL, 1, 1024, false},
  {AT_SCRATCH, 0, INT32_MAX, false}, {AT_SCRATCH_BYTES, 0, INT32_MAX, false}, {AT_VEC, 1, 64, true},
  {AT_ARRIVALS, 1, 1024, false}, {AT_BYTES, 1, (1 << 20) - 1, false}, {AT_COPIES, 1, 1, false}, {AT_READ, 1, 1, false},
  {AT_RELAXED, 1, 1, false},
  {AT_PIECES, 1, 1 << PIECES_MAX_BITS, true},
  {AT_PACK, 1, 32, true}, {AT_CONFLICTS, 0, INT32_MAX, false},
  {AT_SLOT, 1, 1, false}, {AT_LATE, 1, 1, false},
  {AT_ON_DEMAND, 1, 1, false}, {AT_GIVEN, 1, 1, false}, {AT_BOXES, 1, 1, false}, {AT_EXTENT, 1, INT64_MAX, false},
  {AT_EDGE, 1, 1, false}, {AT_DIGITS, 1, 24, false}, {AT_TF32, 1, 1, false}, {AT_PROMOTE, 0, INT32_MAX, false}, {AT_NARROW, 1, 1, false},
  {AT_TURNS, 1, 1, false},
  {AT_UNLESS_ONE, 0, 1, false},
};

/* word is one of the blank-separated words; a '?' behind a listed word does not count. */
static bool
listed(const char *words, const char *word)
{
  size_t len = strlen(word);
  for (const char *s = words; *s; s += strspn(s, " ")) {
    size_t n = strcspn(s, " "), name = n && s[n - 1] == '?' ? n - 1 : n;
    if (name == len && !memcmp(s, word, len))
      return true;
    s += n;
  }
  return false;
}

static const char *
str_words(AttrId id, OpCode op, bool *known)
{
  for (size_t i = 0; i < COUNT(str_values); i++)
    if (str_values[i].id == id && (str_values[i].op == op || str_values[i].op == OP_COUNT)) {
      *known = true;
      return id == AT_RMW && !str_values[i].words ? attr_rmw_words() : str_values[i].words;
    }
  return NULL;
}

static bool
check_str(Verifier *v, const Op *op, const Attr *a)
{
  bool known = false;
  const char *words = str_words(a->id, op->code, &known);
  if (known && !listed(words, a->s))
    return verify_fail(v, op, "%s is one of: %s; not '%s'", attr_info[a->id].name, words, a->s);
  return a->s[0] || verify_fail(v, op, "%s is empty", attr_info[a->id].name);
}

/* See ir.h. */
bool
attr_allows(AttrId id, i64 value, i64 *least, i64 *most)
{
  *least = INT64_MIN;
  *most = INT64_MAX;
  for (size_t i = 0; i < COUNT(int_values); i++) {
    if (int_values[i].id != id)
      continue;
    *least = int_values[i].least;
    *most = int_values[i].most;
    return value >= *least && value <= *most && (!int_values[i].pow2 || is_pow2((u64)value));
  }
  return true;
}

static bool
check_int(Verifier *v, const Op *op, const Attr *a)
{
  i64 least, most;
  if (attr_allows(a->id, a->i, &least, &most))
    return true;
  if (a->i < least || a->i > most)
    return verify_fail(v, op, "%s is between %lld and %lld, not %lld", attr_info[a->id].name, (long long)least, (long long)most,
                       (long long)a->i);
  return verify_fail(v, op, "%s is a power of two, not %lld", attr_info[a->id].name, (long long)a->i);
}

static bool
check_value(Verifier *v, const Op *op, const Attr *a)
{
  AttrKind kind = (AttrKind)attr_info[a->id].kind;
  return kind == AK_STR ? check_str(v, op, a) : kind == AK_INT ? check_int(v, op, a) : true;
}

/* Attributes whose doc says so stand on any op. */
static bool
for_any_op(AttrId id)
{
  return !strncmp(attr_info[id].doc, "any op", 6);
}

static bool
has_named(const Op *op, const char *name, size_t len)
{
  for (u32 i = 0; i < op->nattrs; i++) {
    const char *have = attr_info[op->attrs[i].id].name;
    if (strlen(have) == len && !memcmp(have, name, len))
      return true;
  }
  return false;
}

static bool
check_required(Verifier *v, const Op *op)
{
  for (const char *s = op_info(op->code)->attrs; *s; s += strspn(s, " ")) {
    size_t n = strcspn(s, " ");
    if (s[n - 1] != '?' && !has_named(op, s, n))
      return verify_fail(v, op, "attribute '%.*s' is missing", (int)n, s);
    s += n;
  }
  return true;
}

/* Attributes that the row demands are there, none is foreign, every value is in its range. */
bool
verify_attrs(Verifier *v, const Op *op)
{
  for (u32 i = 0; i < op->nattrs; i++) {
    const Attr *a = &op->attrs[i];
    if (!listed(op_info(op->code)->attrs, attr_info[a->id].name) && !for_any_op(a->id))
      return verify_fail(v, op, "it has no attribute '%s'", attr_info[a->id].name);
    if (!check_value(v, op, a))
      return false;
  }
  return check_required(v, op);
}
