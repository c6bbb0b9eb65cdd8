/* ir_test.c - the IR's foundations: arenas, texts, sources, diagnostics, types, use lists, editing, cloning, and the
 * text of every op: print, parse, print gives the same bytes. */
#include "packed.h"
#include <stdio.h>
#include <stdlib.h>

#define CHECK(cond) \
  do { \
    if (!(cond)) { \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond); \
      exit(1); \
    } \
  } while (0)

static void
check_text(const char *got, const char *wanted, int line)
{
  if (!strcmp(got, wanted))
    return;
  fprintf(stderr, "%s:%d: got:\n%s\nwanted:\n%s\n", __FILE__, line, got, wanted);
  exit(1);
}
#define CHECK_TEXT(got, wanted) check_text(got, wanted, __LINE__)

/* ---- arenas, texts, sources ---- */

static void
test_arena(Ctx *c)
{
  Arena *a = arena_new(c);
  for (u32 i = 1; i < 2000; i++) {
    size_t align = (size_t)1 << (i % 7);
    u8 *p = arena_alloc(a, i * 7, align);
    CHECK((uintptr_t)p % align == 0 && !p[0] && !p[i * 7 - 1]);
    memset(p, 0xaa, i * 7);
  }
  arena_reset(a);
  CHECK(arena_used(a) == 0);
  u8 *again = arena_alloc(a, 1000, 1);
  for (u32 i = 0; i < 1000; i++)
    CHECK(!again[i]);
  CHECK(arena_alloc(a, 0, 1) != NULL);
  CHECK_TEXT(arena_printf(a, "%d-%s", 42, "x"), "42-x");
  CHECK_TEXT(arena_strndup(a, "abcdef", 3), "abc");
  arena_free(a);
}

static void
test_vec_and_buf(Ctx *c)
{
  VEC(u32) v = {0};
  for (u32 i = 0; i < 1000; i++)
    vec_push(c->scratch, &v, i * i);
  CHECK(v.len == 1000);
  for (u32 i = 0; i < 1000; i++)
    CHECK(v.data[i] == i * i);
  Buf b = {.arena = c->scratch};
  CHECK_TEXT(buf_str(&b), "");
  for (int i = 0; i < 300; i++)
    buf_printf(&b, "%d,", i % 10);
  CHECK(b.len == 600 && strlen(buf_str(&b)) == 600);
  buf_printf(&b, "%0*d", 500, 7);
  CHECK(b.len == 1100 && b.data[1099] == '7');
}

static void
test_intern(Ctx *c)
{
  const char *first = intern(c, "name7");
  for (int i = 0; i < 3000; i++)
    CHECK(!strncmp(intern(c, arena_printf(c->scratch, "name%d", i)), "name", 4));
  CHECK(intern_n(c, "name77", 5) == first && intern(c, "name7") == first && intern(c, "") == intern_n(c, "x", 0));
}

static void
test_sources(Ctx *c)
{
  u32 a = source_add(c, SOURCE_PROGRAM, "a.tile", "one\ntwo\r\n\nfour", 14), b = source_add(c, SOURCE_PROGRAM, "b.tile", "", 0);
  CHECK(a && b > a);
  SourceLoc l = source_locate(c, a + 5);
  CHECK(!strcmp(l.file, "a.tile") && l.line == 2 && l.col == 2 && l.line_len == 3 && l.byte == 5);
  l = source_locate(c, a + 14);
  CHECK(l.line == 4 && l.col == 5 && l.line_len == 4);
  CHECK(!strcmp(source_locate(c, b).file, "b.tile") && !source_locate(c, 0).file && !source_locate(c, b + 1).file);
  Span known = source_foreign(c, "a.tile", 2, 2);
  CHECK(known.lo == a + 5);
  Span far = source_foreign(c, "elsewhere.tile", 12, 5), same = source_foreign(c, "elsewhere.tile", 12, 5);
  l = source_locate(c, far.lo);
  CHECK(!strcmp(l.file, "elsewhere.tile") && l.line == 12 && l.col == 5 && !l.line_text && far.lo == same.lo);
  CHECK(!source_locate(c, UINT32_MAX).file && source_length(c, a) == 14 && !strcmp(source_text(c, a), "one\ntwo\r\n\nfour"));
}

static const char *
rendered(Ctx *c, bool json)
{
  Buf b = {.arena = c->scratch};
  diag_render(c, &b, json, false);
  return buf_str(&b);
}

static void
test_diagnostics(void)
{
  Ctx *c = ctx_new();
  static const char text[] = "let x = 1;\n\tlet \xc3\xa4 = dot(a, b);\n";
  u32 a = source_add(c, SOURCE_PROGRAM, "k.tile", text, sizeof text - 1);
  Diag *d = diag(c, (Span){a + 21, a + 30}, E_SYNTAX, "no \"dot\"");
  diag_note(c, d, (Span){a + 4, a + 5}, "here");
  diag(c, (Span){a, a + 3}, E_TIR_NAME, "op", "lett");
  diag(c, (Span){a, a + 3}, E_TIR_NAME, "op", "lett");
  diag(c, (Span){0, 0}, E_MISUSE, "first");
  CHECK(diag_errors(c) == 4 && diag_warnings(c) == 0);
  CHECK_TEXT(rendered(c, false),
             "error[E0901]: first\n"
             "k.tile:1:1: error[E0402]: unknown op 'lett'\n 1 | let x = 1;\n   | ^~~\n"
             "k.tile:2:11: error[E0101]: no \"dot\"\n 1 | let x = 1;\n   |     - here\n"
             " 2 |     let \xc3\xa4 = dot(a, b);\n   |             ^~~~~~~~~\n");
  const char *json = rendered(c, true);
  CHECK(strstr(json, "{\"code\":\"E0101\",\"severity\":\"error\",\"message\":\"no \\\"dot\\\"\",\"file\":\"k.tile\","
                     "\"start\":{\"line\":2,\"col\":11,\"byte\":21},\"end\":{\"line\":2,\"col\":20,\"byte\":30},"
                     "\"notes\":[{\"kind\":\"label\",\"message\":\"here\",\"file\":\"k.tile\",\"start\":{\"line\":1"));
  CHECK(strstr(json, "\"message\":\"first\",\"file\":null,\"start\":null,\"end\":null,\"notes\":[]}\n"));
  for (int i = 0; i < 30; i++)
    diag(c, (Span){a, a + 1}, E_SYNTAX, arena_printf(c->scratch, "error %d", i));
  CHECK(strstr(rendered(c, false), "error 17\n") && strstr(rendered(c, false), "too many errors") &&
        !strstr(rendered(c, false), "error 18\n"));
  ctx_free(c);
}

static void
test_suggestions(void)
{
  static const char *const names[] = {"load", "store", "program_id", "expand_dims"};
  CHECK_TEXT(diag_suggest("laod", names, 4), "load");
  CHECK_TEXT(diag_suggest("progam_id", names, 4), "program_id");
  CHECK_TEXT(diag_suggest("stor", names, 4), "store");
  CHECK(!diag_suggest("zzz", names, 4) && !diag_suggest("", names, 4) && !diag_suggest("x", names, 4));
}

/* ---- types and tables ---- */

static void
test_types(Ctx *c)
{
  const Type *f32 = type_scalar(c, DT_F32), *p = type_ptr(c, DT_F16);
  const Type *t = type_tile(c, f32, 2, (u32[]){128, 48}, NULL);
  CHECK(t == type_tile(c, f32, 2, (u32[]){128, 48}, NULL) && t != type_tile(c, f32, 2, (u32[]){48, 128}, NULL));
  CHECK_TEXT(type_str(c, t), "f32[128, 48]");
  CHECK_TEXT(type_str(c, type_with_elem(c, t, p)), "(*f16)[128, 48]");
  CHECK_TEXT(type_str(c, p), "*f16");
  CHECK(type_elem(c, t) == f32 && type_elem(c, type_with_elem(c, t, p)) == p && type_elem(c, p) == p);
  CHECK(type_numel(t) == 6144 && type_padded(t) && type_numel(p) == 1 && !type_padded(p));
  CHECK(type_elem_bits(p) == 64 && type_elem_bytes(type_i1_like(c, t)) == 1 && type_elem_bits(type_i1_like(c, t)) == 1);
  CHECK(type_is_float(t) && !type_is_float(p) && type_is_ptr(type_with_elem(c, t, p)) && type_with_elem(c, f32, p) == p);
  for (u32 i = 1; i < 500; i++)
    CHECK(type_tile(c, f32, 1, &i, NULL)->shape[0] == i);
  CHECK(type_shape_error(c, 1, (u32[]){0}) && type_shape_error(c, 2, (u32[]){1 << 20, 2}) &&
        type_shape_error(c, 6, (u32[]){1, 1, 1, 1, 1, 1}) && !type_shape_error(c, 2, (u32[]){1 << 19, 2}));
}

static void
test_tables(void)
{
  OpCode code;
  DType d;
  CHECK(op_info(OP_LOAD)->min_operands == 1 && op_info(OP_LOAD)->max_operands == 3 && op_info(OP_LOAD)->nresults == 1);
  CHECK(op_info(OP_FOR)->min_operands == 3 && op_info(OP_FOR)->max_operands == MANY && op_info(OP_FOR)->nresults == MANY);
  CHECK(op_info(OP_RETURN)->max_operands == 0 && op_info(OP_RETURN)->nresults == 0 && op_info(OP_IF)->regions == 2);
  for (int i = 0; i < OP_COUNT; i++)
    CHECK(op_find(op_info((OpCode)i)->name, &code) && code == (OpCode)i);
  for (int i = 0; i < DT_COUNT; i++)
    CHECK(dtype_find(dtype_info[i].name, &d) && d == (DType)i);
  CHECK(!op_find("nope", &code) && !dtype_find("f31", &d));
  CHECK(target_find("sm_90a") && !target_find("sm_1") && target_has(target_find("sm_90a"), F_WGMMA) &&
        !target_has(target_find("sm_80"), F_TMA) && target_at(0) && !target_at(1000));
}

static void
test_numbers(Ctx *c)
{
  double v;
  static const struct { DType d; u64 bits; const char *text; } rows[] = {
    {DT_F32, 0x3dcccccd, "0.1"}, {DT_F32, 0x42c80000, "100.0"}, {DT_F32, 0x7f800000, "0x7f800000"},
    {DT_F32, 0x80000000, "0x80000000"}, {DT_F32, 0, "0.0"}, {DT_F32, 1, "1e-45"}, {DT_F16, 0x7bff, "65504.0"},
    {DT_F64, 0x3fb999999999999a, "0.1"}, {DT_BF16, 0x3dcd, "0.1"}, {DT_F64, 0x7fefffffffffffff, "1.7976931348623157e+308"},
    {DT_F8E4M3, 0x7f, "0x7f"},
  };
  for (size_t i = 0; i < COUNT(rows); i++) {
    Buf b = {.arena = c->scratch};
    number_print(&b, rows[i].d, rows[i].bits);
    CHECK_TEXT(buf_str(&b), rows[i].text);
  }
  CHECK(number_parse("1.5e3,", 5, &v) && v == 1500 && !number_parse("1.5x", 4, &v) && !number_parse("", 0, &v));
}

/* ---- use lists and editing ---- */

static Func *
small_func(Ctx *c, Builder *b)
{
  Func *f = func_new(module_new(c), "k", (Span){0, 0});
  func_add_param(f, type_ptr(c, DT_F32), "p", 16);
  func_add_param(f, type_scalar(c, DT_I32), "n", 1);
  *b = builder_at_end(f, f->body);
  return f;
}

static void
test_uses(Ctx *c)
{
  Builder b;
  Func *f = small_func(c, &b);
  Value *n = f->body->args[1], *two = ir_const_int(&b, n->type, 2);
  Op *yield = ir_yield(&b, 0, NULL);
  for (int i = 0; i < 9; i++)
    op_add_operand(yield, i % 3 ? n : two);
  op_add_operand(yield, NULL);
  CHECK(value_use_count(n) == 6 && value_use_count(two) == 3 && yield->noperands == 10);
  op_remove_operand(yield, 0);
  op_remove_operand(yield, 4);
  CHECK(yield->noperands == 8 && value_use_count(two) == 2 && value_use_count(n) == 5);
  op_set_operand(yield, 0, two);
  CHECK(value_use_count(two) == 3 && value_use_count(n) == 4);
  value_replace_uses(n, two);
  CHECK(value_unused(n) && value_use_count(two) == 7);
  for (const Use *u = two->uses; u; u = u->next)
    CHECK(u->user == yield && u->value == two && *u->prev == u);
  op_set_operand(yield, 7, n);
  CHECK(value_use_count(n) == 1);
  op_remove(yield);
  CHECK(value_unused(two) && value_unused(n) && !yield->block && f->body->last == two->def);
}

static void
count_ops(Op *op, void *user)
{
  ++*(u32 *)user;
}

static void
remove_adds(Op *op, void *user)
{
  if (op->code == OP_ADD && value_unused(op_result(op)))
    op_remove(op);
}

static void
test_moving(Ctx *c)
{
  Builder b;
  Func *f = small_func(c, &b);
  Value *n = f->body->args[1];
  Value *x = ir_binary(&b, OP_ADD, n, n), *y = ir_binary(&b, OP_SUB, n, n), *z = ir_binary(&b, OP_MUL, n, n);
  op_move_before(z->def, x->def);
  CHECK(f->body->first == z->def && z->def->next == x->def && f->body->last == y->def && !z->def->prev);
  op_move_to_end(z->def, f->body);
  CHECK(f->body->first == x->def && f->body->last == z->def && y->def->next == z->def);
  Builder before = builder_before(y->def), after = builder_after(y->def);
  Value *v = ir_unary(&before, OP_NEG, n), *w = ir_unary(&after, OP_NOT, n);
  CHECK(x->def->next == v->def && v->def->next == y->def && y->def->next == w->def && w->def->next == z->def);
  func_walk(f, remove_adds, NULL);
  u32 count = 0;
  func_walk(f, count_ops, &count);
  CHECK(count == 4 && f->body->first == v->def);
}

static void
test_attrs(Ctx *c)
{
  Builder b;
  Func *f = small_func(c, &b);
  Op *op = ir_load(&b, f->body->args[0], NULL, NULL)->def;
  op_set_int(op, AT_VEC, 4);
  op_set_str(op, AT_CACHE, "cg");
  op_set_ints(op, AT_PERM, (i64[]){1, 0}, 2);
  op_set_int(op, AT_VEC, 8);
  CHECK(op->nattrs == 3 && op->attrs[0].id == AT_PERM && op->attrs[1].id == AT_CACHE && op->attrs[2].id == AT_VEC);
  CHECK(op_int(op, AT_VEC, 0) == 8 && op_int(op, AT_AXIS, -1) == -1 && !strcmp(op_str(op, AT_CACHE, ""), "cg"));
  op_remove_attr(op, AT_CACHE);
  op_remove_attr(op, AT_CACHE);
  CHECK(op->nattrs == 2 && !op_attr(op, AT_CACHE) && op_attr(op, AT_PERM)->ints.v[0] == 1);
}

static void
test_clone(Ctx *c)
{
  Builder b;
  Func *f = small_func(c, &b);
  Value *n = f->body->args[1], *zero = ir_const_int(&b, n->type, 0), *one = ir_const_int(&b, n->type, 1);
  Op *loop = ir_for(&b, zero, n, one, 1, &zero);
  op_set_int(loop, AT_STAGES, 3);
  Builder in = builder_at_end(f, loop->regions[0]);
  Value *sum = ir_binary(&in, OP_ADD, loop->regions[0]->args[1], loop->regions[0]->args[0]);
  ir_yield(&in, 1, &sum);
  Value **map = NEW_ARRAY(c->scratch, Value *, f->nvalues);
  map[n->id] = one;
  Op *copy = op_clone(&b, loop, map);
  Op *inner = copy->regions[0]->first;
  CHECK(op_operand(copy, 1) == one && op_operand(copy, 0) == zero && op_int(copy, AT_STAGES, 0) == 3);
  CHECK(inner->code == OP_ADD && op_operand(inner, 0) == copy->regions[0]->args[1] && inner->block == copy->regions[0]);
  CHECK(op_operand(copy->regions[0]->last, 0) == op_result(inner) && map[sum->id] == op_result(inner));
  CHECK(map[op_result(loop)->id] == op_result(copy) && op_inside(inner, copy) && !op_inside(inner, loop));
  CHECK(block_terminator(copy->regions[0])->code == OP_YIELD && !block_terminator(f->body));
  u32 uses = value_use_count(zero);
  op_remove(copy);
  CHECK(value_use_count(zero) == uses - 2);
  op_remove_result(loop, 0);
  op_set_operand(loop->regions[0]->last, 0, NULL);
  op_remove(sum->def);
  block_remove_arg(loop->regions[0], 1);
  op_remove_operand(loop, 3);
  CHECK(loop->nresults == 0 && loop->regions[0]->nargs == 1 && loop->noperands == 3);
}

static void
test_constants(Ctx *c)
{
  Builder b;
  Func *f = small_func(c, &b);
  u64 bits;
  i64 v;
  Value *k = ir_const_int(&b, type_scalar(c, DT_I8), -3);
  Value *s = ir_splat(&b, k, type_tile(c, k->type, 1, (u32[]){8}, NULL));
  CHECK(value_const_bits(s, &bits) && bits == 0xfd && value_const_int(s, &v) && v == -3);
  CHECK(value_const_int(ir_const_int(&b, type_scalar(c, DT_U8), -3), &v) && v == 253);
  CHECK(!value_const_int(ir_const_float(&b, type_scalar(c, DT_F32), 1), &v) && !value_const_bits(f->body->args[1], &bits));
  CHECK(value_const_bits(ir_const_float(&b, type_scalar(c, DT_F32), 1), &bits) && bits == 0x3f800000);
  CHECK(op_has(k->def, T_PURE) && !op_has(k->def, T_PURE | T_ELEM) && op_is(k, OP_CONST) && !op_is(f->body->args[0], OP_CONST));
}

/* ---- keys of closed regions ---- */

/* A map of x whose region adds a constant, under a predicate of that name. */
static Op *
map_of(Builder *b, Value *x, i64 k, const char *pred)
{
  Op *map = ir_map(b, 1, &x);
  Builder in = builder_at_end(b->func, map->regions[0]);
  Value *a = map->regions[0]->args[0], *sum = ir_binary(&in, OP_ADD, a, ir_const_int(&in, a->type, k));
  Value *r = ir_select(&in, ir_cmp(&in, pred, a, sum), a, sum);
  r->name = "r";
  ir_yield(&in, 1, &r);
  map_add_result(map, r->type);
  return map;
}

static Buf
key_of(Ctx *c, const Op *map)
{
  Buf key = {.arena = c->scratch};
  region_key(&key, map->regions[0], NEW_ARRAY(c->scratch, u32, map->block->func->nvalues));
  return key;
}

static bool
same_key(Ctx *c, const Op *a, const Op *b)
{
  Buf x = key_of(c, a), y = key_of(c, b);
  bool same = x.len == y.len && !memcmp(x.data, y.data, x.len);
  CHECK(!same || key_hash(&x) == key_hash(&y));
  return same;
}

static void
test_keys(Ctx *c)
{
  Builder b;
  small_func(c, &b);
  Value *x = ir_arange(&b, 0, 64), *y = ir_arange(&b, 64, 128), *wide = ir_cast(&b, x, DT_I64);
  Op *map = map_of(&b, x, 1, "lt");
  CHECK(op_on_elements(map) && op_result(map)->type == x->type);
  CHECK(same_key(c, map, map_of(&b, x, 1, "lt")));
  CHECK(same_key(c, map, map_of(&b, y, 1, "lt")));       /* of another operand */
  CHECK(!same_key(c, map, map_of(&b, x, 2, "lt")));
  CHECK(!same_key(c, map, map_of(&b, x, 1, "gt")));
  CHECK(!same_key(c, map, map_of(&b, wide, 1, "lt")));
  Op *other = map_of(&b, x, 1, "lt");
  op_set_operand(region_end(other, 0), 0, other->regions[0]->args[0]);
  CHECK(!same_key(c, map, other));
}

/* ---- every op: build, verify, print, parse, print ---- */

static void
build_elementwise(Ctx *c, Builder *b, const Layout *l)
{
  const Type *f32 = type_tile(c, type_scalar(c, DT_F32), 1, (u32[]){256}, l);
  Value *x[] = {ir_const_float(b, f32, 1.5), ir_const_int(b, type_with_elem(c, f32, type_scalar(c, DT_I32)), -7)};
  for (int i = 0; i < OP_COUNT; i++) {
    const OpInfo *info = op_info((OpCode)i);
    Value *v = info->traits & T_INT ? x[1] : x[0];
    if (info->rule == RULE_SAME)
      op_create(b, (OpCode)i, info->min_operands, (Value *[]){v, v, v}, 1, &v->type, 0);
  }
  Value *less = ir_cmp(b, "lt", x[0], x[0]);
  ir_select(b, less, x[1], x[1]);
  Op *cast = ir_cast(b, x[0], DT_F8E5M2)->def;
  op_set_str(cast, AT_ROUND, "rz");
  op_set_int(cast, AT_SAT, 1);
  ir_bitcast(b, x[0], type_scalar(c, DT_U32));
  Op *hint = op_create(b, OP_HINT, 1, &x[1], 1, &x[1]->type, 0);
  op_set_int(hint, AT_DIVISIBLE, 16);
}

static Value *
build_loop(Builder *b, Value *n, Value *acc)
{
  Value *zero = ir_const_int(b, n->type, 0), *one = ir_const_int(b, n->type, 1);
  Op *loop = ir_for(b, zero, n, one, 1, &acc);
  op_set_int(loop, AT_STAGES, 2);
  Builder in = builder_at_end(b->func, loop->regions[0]);
  Value *more = ir_binary(&in, OP_ADD, loop->regions[0]->args[1], acc);
  ir_yield(&in, 1, &more);
  return op_result(loop);
}

static void
build_control(Builder *b, Value *n)
{
  Value *one = ir_const_int(b, n->type, 1);
  Op *loop = ir_while(b, 1, &n);
  Builder in = builder_at_end(b->func, loop->regions[0]);
  Value *go = ir_cmp(&in, "gt", loop->regions[0]->args[0], one);
  op_create(&in, OP_CONDITION, 2, (Value *[]){go, loop->regions[0]->args[0]}, 0, NULL, 0);
  in = builder_at_end(b->func, loop->regions[1]);
  Value *less = ir_binary(&in, OP_SUB, loop->regions[1]->args[0], one);
  ir_yield(&in, 1, &less);
  Value *cond = ir_cmp(b, "ne", op_result(loop), n);
  op_create(b, OP_ASSUME, 1, &cond, 0, NULL, 0);
  op_set_str(op_create(b, OP_ASSERT, 1, &cond, 0, NULL, 0), AT_MESSAGE, "not n");
  op_set_str(op_create(b, OP_PRINT, 2, (Value *[]){n, cond}, 0, NULL, 0), AT_MESSAGE, "100% \"n\"");
  Op *branch = ir_if(b, cond, 1, &n->type);
  for (int i = 0; i < 2; i++) {
    in = builder_at_end(b->func, branch->regions[i]);
    ir_yield(&in, 1, i ? &one : &n);
  }
}

static void
build_map(Builder *b, Value *x)
{
  Op *op = ir_map(b, 1, &x);
  Builder in = builder_at_end(b->func, op->regions[0]);
  Value *twice[2] = {op->regions[0]->args[0], ir_binary(&in, OP_ADD, op->regions[0]->args[0], op->regions[0]->args[0])};
  ir_yield(&in, 2, twice);
  for (u32 i = 0; i < 2; i++)
    map_add_result(op, twice[i]->type);
}

static void
build_exchanges(Builder *b, Value *x)
{
  build_map(b, x);
  Value *upto = ir_combine(b, ir_scan(b, 1, &x, 1, true, false), OP_MUL);
  Op *swap = op_create(b, OP_BUTTERFLY, 1, &upto, 1, &x->type, 0);
  op_set_int(swap, AT_AXIS, 0);
  op_set_int(swap, AT_MASK, 6);
}

static void
build_memory(Ctx *c, Builder *b, Value *p, Value *off, Value *mask)
{
  Value *ps = ir_addptr(b, ir_splat(b, p, off->type), off);
  Value *other = ir_const_float(b, type_with_elem(c, off->type, type_scalar(c, DT_F32)), -0.0);
  Op *load = ir_load(b, ps, NULL, other)->def;
  op_set_str(load, AT_CACHE, "cg");
  op_set_str(load, AT_EVICT, "first");
  op_set_int(load, AT_VOLATILE, 1);
  ir_store(b, ps, op_result(load), mask);
  Op *rmw = op_create(b, OP_ATOMIC_RMW, 2, (Value *[]){ps, other}, 1, &other->type, 0);
  op_set_str(rmw, AT_RMW, "add");
  Op *cas = op_create(b, OP_ATOMIC_CAS, 3, (Value *[]){ps, other, other}, 1, &other->type, 0);
  for (int i = 0; i < 2; i++) {
    op_set_str(i ? cas : rmw, AT_SEM, "acq_rel");
    op_set_str(i ? cas : rmw, AT_SCOPE, "gpu");
  }
}

/* Buffers of every kind and the copies into them. */
static void
build_shared(Ctx *c, Builder *b, Value *p, const Layout *tile)
{
  const u32 square[] = {16, 16}, half[] = {16, 8}, flat[] = {256};
  const Layout *l = layout_swizzled(c, 2, square, 4, 1, 4, (int[]){1, 0});
  Value *row = ir_shared_alloc(b, type_shared(c, DT_F32, 3, 2, square, NULL, l, 32, 4));
  Value *one = ir_shared_index(b, row, ir_const_int(b, type_scalar(c, DT_I32), 2));
  const Type *t = type_tile(c, type_scalar(c, DT_F32), 2, square, tile);
  Value *at = ir_splat(b, p, t);
  ir_async_copy(b, one, at, NULL);
  ir_async_commit(b);
  ir_async_wait(b, 1);
  ir_shared_store(b, one, ir_shared_load(b, one, t));
  ir_shared_slice(b, ir_shared_permute(b, one, (int[]){1, 0}), (i64[]){0, 8}, half);
  const Type *line = type_shared(c, DT_F32, 0, 1, flat, NULL, layout_reshape(c, l, 1, flat), 32, 4);
  op_create(b, OP_SHARED_RESHAPE, 1, &one, 1, &line, 0);
  Value *index = ir_splat(b, ir_const_int(b, type_scalar(c, DT_I32), 3), type_with_elem(c, t, type_scalar(c, DT_I32)));
  Op *gather = op_create(b, OP_SHARED_GATHER, 2, (Value *[]){one, index}, 1, &t, 0);
  op_set_int(gather, AT_AXIS, 1);
  Value *counts = ir_shared_alloc(b, type_shared(c, DT_F32, 0, 1, flat, NULL, layout_reshape(c, l, 1, flat), 0, 0));
  op_create(b, OP_SHARED_ADD, 3, (Value *[]){counts, index, op_result(gather)}, 0, NULL, 0);
  op_create(b, OP_SHARED_SCATTER, 3, (Value *[]){counts, index, op_result(gather)}, 0, NULL, 0);
  const u32 rows[] = {4, 32};
  const Layout *counted = tile ? layout_blocked(c, 2, rows, (u32[]){1, 1}, (u32[]){1, 32}, (u32[]){4, 1}, (int[]){1, 0}) : NULL;
  const Layout *plain = layout_swizzled(c, 2, rows, 1, 1, 1, (int[]){1, 0});
  const Type *ranks = type_tile(c, type_scalar(c, DT_I32), 2, rows, counted);
  Value *by_row = ir_shared_alloc(b, type_shared(c, DT_I32, 0, 2, rows, NULL, plain, 0, 0));
  op_create(b, OP_SHARED_COUNT, 2, (Value *[]){by_row, ir_splat(b, ir_const_int(b, type_scalar(c, DT_I32), 3), ranks)}, 1, &ranks, 0);
  const Type *bits = type_shared(c, DT_I32, 0, 2, square, NULL, l, 0, 0);
  op_create(b, OP_SHARED_CAST, 1, &one, 1, &bits, 0);
  op_create(b, OP_SHARED_FREE, 1, &row, 0, NULL, 0);
}

/* A product of a warpgroup, in a loop's care, and its wait. */
static void
build_products(Ctx *c, Builder *b, Value *n, bool place)
{
  const u32 shape[] = {64, 64};
  const Type *sums = type_tile(c, type_scalar(c, DT_F32), 2, shape, place ? layout_mma(c, 2, shape, (u32[]){4, 1}) : NULL);
  const Layout *panels = place ? layout_panels(c, 2, shape, 2, 128, (int[]){1, 0}) : NULL;
  Value *s = ir_shared_alloc(b, type_shared(c, DT_F16, 0, 2, shape, NULL, panels, 0, 0));
  Value *turned = ir_shared_permute(b, s, (int[]){1, 0}), *acc = ir_pending(b, ir_const_float(b, sums, 0.0));
  Value *one = ir_const_int(b, n->type, 1);
  Op *loop = ir_for(b, one, n, one, 1, &acc);
  Builder in = builder_at_end(b->func, loop->regions[0]);
  Value *next = ir_wgmma(&in, s, NULL, turned, loop_arg(loop, 0, 0));
  ir_wgmma_wait(&in, 0, NULL, 1);
  ir_yield(&in, 1, &next);
  const Type *t = op_result(loop)->type;
  CHECK(t->pending && t == next->type && type_pending(c, t, false) == sums && !strcmp(type_str(c, t), "pending f32[64, 64]"));
  CHECK(op_result(ir_wgmma_wait(b, 1, loop->results, 0))->type == sums && buffer_in_panels(s) && buffer_in_panels(turned));
  CHECK(buffer_align(s->def) == (place ? 1024 : SHARED_ALIGN));
}

static void
build_cluster(Ctx *c, Builder *b)
{
  static const u32 flat[] = {256};
  const Type *word = type_scalar(c, DT_I32);
  Value *s = ir_shared_alloc(b, type_shared(c, DT_F32, 0, 1, flat, NULL, layout_swizzled(c, 1, flat, 1, 1, 1, (int[]){0}), 0, 0));
  Value *rank = op_result(op_create(b, OP_CLUSTER_RANK, 0, NULL, 1, &word, 0));
  Value *there = op_result(op_create(b, OP_SHARED_REMOTE, 2, (Value *[]){s, rank}, 1, &s->type, 0));
  op_create(b, OP_CLUSTER_BARRIER, 0, NULL, 0, NULL, 0);
  CHECK(buffer_remote(there) == there->def && !buffer_remote(s) && buffer_alloc(there) == s->def && buffer_whole(there) == s->def);
  CHECK(cluster_reaches(s) && !cluster_reaches(there) && func_cluster(b->func) == 1);
}

static void
build_teams(Ctx *c, Builder *b)
{
  static const i64 warps[] = {1, 1, 2}, registers[] = {24, 40};
  static const u32 single[] = {1};
  Value *m = ir_shared_alloc(b, type_shared(c, DT_MBAR, 0, 1, single, NULL, layout_swizzled(c, 1, single, 1, 1, 1, (int[]){0}), 0, 0));
  Value *parity = ir_const_int(b, type_scalar(c, DT_I32), 1);
  op_set_int(op_create(b, OP_MBARRIER_INIT, 1, &m, 0, NULL, 0), AT_ARRIVALS, 3);
  Op *op = ir_warp_specialize(b, COUNT(warps), warps);
  for (u32 r = 0; r < op->nregions; r++) {
    Builder in = builder_at_end(b->func, op->regions[r]);
    op_create(&in, OP_BARRIER, 0, NULL, 0, NULL, 0);
    op_create(&in, OP_MBARRIER_ARRIVE, 1, &m, 0, NULL, 0);
    op_create(&in, OP_MBARRIER_WAIT, 2, (Value *[]){m, parity}, 0, NULL, 0);
    op_set_str(op_create(&in, OP_FENCE, 0, NULL, 0, NULL, 0), AT_KIND, "async");
    op_create(&in, OP_WAIT_FOR_PREVIOUS, 0, NULL, 0, NULL, 0);
    op_create(&in, OP_LET_NEXT_START, 0, NULL, 0, NULL, 0);
    ir_yield(&in, 0, NULL);
  }
  CHECK(func_teams(b->func) == op && block_team(op->block).warps == 4 && !block_team(op->block).op);
  Team last = block_team(op->regions[2]);
  CHECK(last.first == 2 && last.warps == 2 && last.op == op && last.part == 2 && !last.registers);
  c->target = target_find("sm_90a");
  op_set_ints(op, AT_REGISTERS, registers, 2);
  CHECK(block_team(op->regions[1]).registers == 40 && !block_team(op->regions[2]).registers);
  op_remove_attr(op, AT_REGISTERS);
  c->target = NULL;
}

static void
build_tensors(Ctx *c, Builder *b)
{
  static const u32 single[] = {1}, shape[] = {8, 64};
  Value *t = func_add_param(b->func, type_tensor(c, DT_F16, 3), "t", 1), *at[3];
  Value *m = ir_shared_alloc(b, type_shared(c, DT_MBAR, 0, 1, single, NULL, layout_swizzled(c, 1, single, 1, 1, 1, (int[]){0}), 0, 0));
  Value *s = ir_shared_alloc(b, type_shared(c, DT_F16, 0, 2, shape, NULL, layout_panels_default(c, 2, shape, 2, 1), 0, 0));
  const Type *types[] = {type_ptr(c, DT_F16), type_scalar(c, DT_I32), type_scalar(c, DT_I64)};
  op_set_int(op_create(b, OP_MBARRIER_INIT, 1, &m, 0, NULL, 0), AT_ARRIVALS, 1);
  op_create(b, OP_TENSOR_BASE, 1, &t, 1, &types[0], 0);
  op_set_int(op_create(b, OP_TENSOR_EXTENT, 1, &t, 1, &types[1], 0), AT_AXIS, 2);
  op_set_int(op_create(b, OP_TENSOR_STRIDE, 1, &t, 1, &types[2], 0), AT_AXIS, 0);
  for (u32 d = 0; d < 3; d++)
    at[d] = ir_const_int(b, types[1], d);
  op_create(b, OP_TMA_PREFETCH, 5, (Value *[]){s, t, at[0], at[1], at[2]}, 0, NULL, 0);
  op_create(b, OP_TMA_LOAD, 6, (Value *[]){s, t, m, at[0], at[1], at[2]}, 0, NULL, 0);
  op_set_str(op_create(b, OP_TMA_STORE, 5, (Value *[]){s, t, at[0], at[1], at[2]}, 0, NULL, 0), AT_RMW, "add");
  op_create(b, OP_TMA_COMMIT, 0, NULL, 0, NULL, 0);
  op_set_int(op_create(b, OP_TMA_WAIT, 0, NULL, 0, NULL, 0), AT_PENDING, 1);
}

/* Boxes as tiles, in phase tile. */
static void
build_boxes(Builder *b, Value *x, Value *i)
{
  Value *t = func_add_param(b->func, type_tensor(b->func->module->ctx, x->type->dt, 3), "boxes", 1);
  Ctx *c = b->func->module->ctx;
  Value *p = func_add_param(b->func, type_ptr(c, DT_F32), "of", 16), *stride = ir_const_int(b, type_scalar(c, DT_I64), 64);
  b->func->params[i->index].nonneg = true;
  const Type *view = type_tensor(c, DT_F32, 2);
  op_create(b, OP_TENSOR_OF, 4, (Value *[]){p, i, stride, stride}, 1, &view, 0);
  op_create(b, OP_TENSOR_AT, 4, (Value *[]){p, i, i, stride}, 1, &view, 0);
  op_set_str(op_create(b, OP_TENSOR_LOAD, 4, (Value *[]){t, i, i, i}, 1, &x->type, 0), AT_EVICT, "first");
  op_set_str(op_create(b, OP_TENSOR_STORE, 5, (Value *[]){t, x, i, i, i}, 0, NULL, 0), AT_RMW, "add");
}

static void
build_packed(Ctx *c, Builder *b, const Type *words)
{
  Packing p;
  const u32 shape[] = {16, 128};
  packing_find(16, 32, packed_find("i4"), &p);
  const Type *values = type_tile(c, type_scalar(c, DT_I8), 2, shape,
                                 words->layout ? packing_values(c, &p, words, words->layout) : NULL);
  Value *x = ir_const_int(b, words, 0x12345678);
  Op *unpack = op_create(b, OP_UNPACK, 1, &x, 1, &values, 0);
  op_set_str(unpack, AT_FORMAT, "i4");
  x = op_result(unpack);
  op_set_str(op_create(b, OP_PACK, 1, &x, 1, &words, 0), AT_FORMAT, "i4");
}

static void
build_ptx(Builder *b, Value *x)
{
  for (OpCode code = OP_PTX; code <= OP_PTX_EFFECT; code++) {
    Op *op = op_create(b, code, 1, &x, 1, &x->type, 0);
    op_set_str(op, AT_TEXT, "{ neg.f32 $0, $1;\n }");
    op_set_str(op, AT_CONSTRAINTS, "=f,f");
    op_set_int(op, AT_PACK, 1);
  }
}

/* Equal calls are one site, wherever others were added between them; a call that was inlined through another is a site of its own. */
static void
test_sites(void)
{
  enum { N = 1000 };
  Ctx *c = ctx_new();
  u32 site[N], base = source_add(c, SOURCE_PROGRAM, "a.tile", "0123456789", 10);
  for (u32 i = 0; i < N; i++)
    site[i] = site_add(c, (Span){base + i % 10, base + i % 10 + 1, i / 10 ? site[i - 10] : 0}, i % 2 ? "f" : "g");
  for (u32 i = 0; i < N; i++) {
    Site s = site_get(c, site[i]);
    CHECK(site[i] == i + 1 && s.call.lo == base + i % 10 && !strcmp(s.function, i % 2 ? "f" : "g"));
    CHECK(s.call.site == (i / 10 ? site[i - 10] : 0) && site_add(c, s.call, i % 2 ? "f" : "g") == site[i]);
  }
  CHECK(site_add(c, (Span){base, base + 1, 0}, "f") == N + 1);
  Span a = source_foreign(c, "b.tile", 3, 4), b = source_foreign(c, "b.tile", 3, 5);
  for (u32 i = 0; i < N; i++)
    source_foreign(c, "c.tile", i, i);
  CHECK(source_foreign(c, "b.tile", 3, 4).lo == a.lo && source_foreign(c, "b.tile", 3, 5).lo == b.lo && a.lo != b.lo);
  CHECK(source_foreign(c, "a.tile", 1, 3).lo == base + 2);
  ctx_free(c);
}

/* A kernel with every op; conversions where there are layouts. */
/* A sparse dot, on an instruction where tiles are placed. */
static void
build_sparse(Ctx *c, Builder *b, bool place)
{
  u32 a[] = {16, 16}, w[] = {16, 2}, y[] = {32, 8}, z[] = {16, 8}, warps[] = {4, 1};
  const Type *half = type_scalar(c, DT_F16);
  Value *x = ir_const_bits(b, type_tile(c, half, 2, a, place ? layout_mma_sparse_operand(c, 0, 2, a, warps, 16) : NULL), 0);
  Value *meta = ir_const_bits(b, type_tile(c, type_scalar(c, DT_U16), 2, w, place ? layout_mma_meta(c, 2, w, warps, 16) : NULL), 0);
  Value *right = ir_const_bits(b, type_tile(c, half, 2, y, place ? layout_mma_sparse_operand(c, 1, 2, y, warps, 16) : NULL), 0);
  Value *acc = ir_const_bits(b, type_tile(c, type_scalar(c, DT_F32), 2, z, place ? layout_mma(c, 2, z, warps) : NULL), 0);
  Op *dot = ir_dot_sparse(b, x, meta, right, acc)->def;
  if (!place)
    return;
  op_set_str(dot, AT_MMA, "m16n8k32.sp.f16");
  op_set_ints(dot, AT_WARPS, (i64[]){4, 1}, 2);
}

static Module *
build_all(Ctx *c, bool place)
{
  Module *m = module_new(c);
  Func *f = func_new(m, "all", (Span){0, 0});
  Value *p = func_add_param(f, type_ptr(c, DT_F32), "p", 16), *n = func_add_param(f, type_scalar(c, DT_I32), "n", 1);
  Builder b = builder_at_end(f, f->body);
  const u32 flat[] = {256}, square[] = {16, 16};
  const Layout *l1 = place ? layout_default(c, 1, flat, 4, 2, (int[]){0}) : NULL;
  const Layout *l2 = place ? layout_default(c, 2, square, 4, 1, (int[]){1, 0}) : NULL;
  m->phase = place ? PHASE_SCHED : PHASE_TILE;
  build_elementwise(c, &b, l1);
  ir_binary(&b, OP_ADD, ir_program_id(&b, 2), ir_num_programs(&b, 0));
  Value *index = ir_arange(&b, 0, 256);
  index->type = type_with_layout(c, index->type, l1);
  build_memory(c, &b, p, index, ir_cmp(&b, "lt", index, ir_splat(&b, n, index->type)));
  ir_bounded(&b, ir_bounded(&b, n, NULL, 77), ir_cmp(&b, "lt", n, n), 78);
  Value *tile = ir_const_float(&b, type_tile(c, type_scalar(c, DT_F32), 2, square, l2), 0.25);
  build_exchanges(&b, tile);
  build_ptx(&b, tile);
  build_packed(c, &b, type_with_elem(c, tile->type, type_scalar(c, DT_U32)));
  Value *row = ir_combine(&b, ir_reduce(&b, 1, &tile, 0), OP_MAX), *all = ir_combine(&b, ir_reduce(&b, 1, &row, 0), OP_MAX);
  ir_splat(&b, all, tile->type);
  Value *wide = ir_broadcast(&b, ir_expand_dims(&b, row, 0), square);
  wide->type = type_with_layout(c, wide->type, l2);
  ir_reshape(&b, ir_permute(&b, tile, (int[]){1, 0}), 1, flat);
  Value *a = tile, *k = tile;
  if (place) {
    a = ir_convert_layout(&b, tile, layout_fma_operand(c, 0, square, l2));
    k = ir_convert_layout(&b, tile, layout_fma_operand(c, 1, square, l2));
    op_set_str(a->def, AT_KIND, "shared");
    op_set_int(a->def, AT_SCRATCH, 128);
    op_set_str(k->def, AT_KIND, "shared");
  }
  Op *dot = ir_dot(&b, a, k, build_loop(&b, n, tile))->def;
  op_set_str(dot, AT_PREC, "ieee");
  build_sparse(c, &b, place);
  build_control(&b, n);
  build_shared(c, &b, p, l2);
  build_products(c, &b, n, place);
  build_cluster(c, &b);
  build_teams(c, &b);
  build_tensors(c, &b);
  if (!place)
    build_boxes(&b, tile, n);
  op_create(&b, OP_BARRIER, 0, NULL, 0, NULL, 0);
  op_create(&b, OP_RETURN, 0, NULL, 0, NULL, 0);
  return m;
}

static void
mark_op(Op *op, void *user)
{
  ((bool *)user)[op->code] = true;
}

static void
test_every_op(bool place)
{
  Ctx *c = ctx_new();
  Module *m = build_all(c, place);
  bool seen[OP_COUNT] = {false};
  if (!ir_verify(m)) {
    fputs(rendered(c, false), stderr);
    CHECK(!"every op verifies");
  }
  func_walk(m->funcs.data[0], mark_op, seen);
  for (int i = 0; i < OP_COUNT; i++)        /* those of persistent kernels are in tests/ir/persistent.tir */
    CHECK(seen[i] || i == OP_RESIDENT_ID || i == OP_NUM_RESIDENTS || (place ? i == OP_TENSOR_LOAD || i == OP_TENSOR_STORE || i == OP_TENSOR_OF || i == OP_TENSOR_AT : i == OP_CONVERT_LAYOUT));
  for (int locs = 0; locs < 2; locs++) {
    Buf once = {.arena = c->perm}, twice = {.arena = c->perm};
    ir_print(&once, m, locs);
    Module *again = ir_parse(c, source_add(c, SOURCE_PROGRAM, "again.tir", buf_str(&once), once.len));
    if (!again || !ir_verify(again)) {
      fputs(buf_str(&once), stderr);
      fputs(rendered(c, false), stderr);
      CHECK(!"printed text reads back");
    }
    ir_print(&twice, again, locs);
    CHECK_TEXT(buf_str(&twice), buf_str(&once));
  }
  ctx_free(c);
}

/* ---- text ---- */

static void
test_locations(Ctx *c)
{
  static const char text[] =
    "module tile\n\nkernel @k(%0_n: i32) warps = 2 shared = 0 @\"x y.tile\":3:1 {\n"
    "  %1 = neg %0_n : i32 @\"x y.tile\":4:7\n  return @\"\":0:0\n}\n";
  Module *m = ir_parse(c, source_add(c, SOURCE_PROGRAM, "locs.tir", text, sizeof text - 1));
  CHECK(m && ir_verify(m));
  SourceLoc l = source_locate(c, m->funcs.data[0]->body->first->span.lo);
  CHECK(!strcmp(l.file, "x y.tile") && l.line == 4 && l.col == 7 && !m->funcs.data[0]->body->last->span.lo);
  Buf b = {.arena = c->scratch};
  ir_print(&b, m, true);
  CHECK_TEXT(buf_str(&b), text);
}

static void
test_nesting(void)
{
  for (u32 depth = 100; depth <= 5000; depth += 4900) {
    Ctx *c = ctx_new();
    Buf b = {.arena = c->perm};
    buf_puts(&b, "module tile\nkernel @k(%c: i1) {\n");
    for (u32 i = 0; i < depth; i++)
      buf_puts(&b, "if %c {\n");
    for (u32 i = 0; i < depth; i++)
      buf_puts(&b, "yield\n} else {\nyield\n}\n");
    buf_puts(&b, "return\n}\n");
    Module *m = ir_parse(c, source_add(c, SOURCE_PROGRAM, "deep.tir", buf_str(&b), b.len));
    CHECK(depth == 100 ? m && ir_verify(m) : !m && diag_errors(c) == 1 && strstr(rendered(c, false), "nested deeper"));
    ctx_free(c);
  }
}

static void
test_panic(void)
{
  Ctx *c = ctx_new();
  if (setjmp(c->panic)) {
    CHECK_TEXT(c->panic_message, "in pass test: 42");
    ctx_free(c);
    return;
  }
  c->panic_set = true;
  c->pass = "test";
  ctx_panic(c, "%d", 42);
}

int
main(void)
{
  Ctx *c = ctx_new();
  CHECK(c != NULL);
  test_arena(c);
  test_vec_and_buf(c);
  test_intern(c);
  test_sources(c);
  test_sites();
  test_diagnostics();
  test_suggestions();
  test_types(c);
  test_tables();
  test_numbers(c);
  test_uses(c);
  test_moving(c);
  test_attrs(c);
  test_clone(c);
  test_constants(c);
  test_keys(c);
  test_every_op(false);
  test_locations(c);
  test_nesting();
  test_panic();
  test_every_op(true);
  ctx_free(c);
  return 0;
}
