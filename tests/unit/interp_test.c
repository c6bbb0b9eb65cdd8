/* interp_test.c - the reference semantics, kernel by kernel, written as .tir text. */
#include "../../ir/interp.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static int failures;
#define CHECK(cond) do { if (!(cond) && ++failures < 40) fprintf(stderr, "%s:%d: %s\n", __func__, __LINE__, #cond); } while (0)

typedef struct Run { Ctx *ctx; Func *func; InterpError err; bool ok; } Run;

static Run
parse_kernel(const char *text)
{
  Run r = {.ctx = ctx_new()};
  Module *m = ir_parse(r.ctx, source_add(r.ctx, SOURCE_PROGRAM, "test.tir", text, strlen(text)));
  if (!m || !m->funcs.len) {
    Buf b = {r.ctx->perm, NULL, 0, 0};
    diag_render(r.ctx, &b, false, false);
    fprintf(stderr, "%s\n%s", text, buf_str(&b));
    exit(1);
  }
  r.func = m->funcs.data[0];
  return r;
}

/* Parse and run; every buffer is one parameter, in order, then the scalars. */
static Run
run_kernel(const char *text, const u32 grid[3], const InterpBuffer *buffers, u32 nbuffers, const u64 *scalars)
{
  u64 params[16];
  Run r = parse_kernel(text);
  for (u32 i = 0; i < r.func->body->nargs; i++)
    params[i] = i < nbuffers ? (u64)(uintptr_t)buffers[i].data : scalars[i - nbuffers];
  InterpOptions opt = {.max_steps = 1u << 22, .max_bytes = 1u << 26};
  r.ok = interp_run_with(r.func, grid, params, buffers, nbuffers, &opt, &r.err);
  ctx_free(r.ctx);
  return r;
}

static const u32 ONE[3] = {1, 1, 1};

static void
expect_ok(Run r, int line)
{
  if (!r.ok && ++failures)
    fprintf(stderr, "line %d: %s\n", line, r.err.message);
}

static void
expect_fault(Run r, const char *text, int line)
{
  if ((r.ok || !strstr(r.err.message, text) || !r.err.span.hi) && ++failures)
    fprintf(stderr, "line %d: wanted '%s', got '%s' at %u\n", line, text, r.ok ? "no fault" : r.err.message, r.err.span.lo);
}

static const char ADD[] =
  "module tile\n"
  "kernel @add(%x: *f32, %y: *f32, %n: i32) warps = 4 shared = 0 {\n"
  "  %pid = program_id axis = 0 : i32\n"
  "  %b = const value = 100 : i32\n"
  "  %o = mul %pid, %b : i32\n"
  "  %r = arange start = 0 end = 100 : i32[100]\n"
  "  %os = splat %o : i32[100]\n"
  "  %i = add %os, %r : i32[100]\n"
  "  %ns = splat %n : i32[100]\n"
  "  %m = cmp %i, %ns pred = \"lt\" : i1[100]\n"
  "  %xs = splat %x : (*f32)[100]\n"
  "  %xp = addptr %xs, %i : (*f32)[100]\n"
  "  %v = load %xp, %m : f32[100]\n"
  "  %w = add %v, %v : f32[100]\n"
  "  %ys = splat %y : (*f32)[100]\n"
  "  %yp = addptr %ys, %i : (*f32)[100]\n"
  "  store %yp, %w, %m\n"
  "  return\n"
  "}\n";

static void
test_add(void)
{
  static float around[1000];           /* nothing of ours lies where x ends */
  float *x = around + 100, *y = around + 600;
  for (int i = 0; i < 250; i++)
    x[i] = (float)i;
  InterpBuffer b[] = {{x, 1000, "x"}, {y, 1000, "y"}};
  u64 n = 250;
  u32 grid[3] = {3, 1, 1};
  expect_ok(run_kernel(ADD, grid, b, 2, &n), __LINE__);
  for (int i = 0; i < 250; i++)
    CHECK(y[i] == 2.f * (float)i);
  n = 251;
  Run r = run_kernel(ADD, grid, b, 2, &n);
  expect_fault(r, "load of 4 bytes at element [50] is outside every buffer: offset 1000 of the nearest, 'x'", __LINE__);
  CHECK(r.err.program[0] == 2);
  b[0].data = (char *)x + 2, b[0].bytes = 80;
  expect_fault(run_kernel(ADD, ONE, b, 2, &n), "load at element [0] is misaligned", __LINE__);
  expect_fault(run_kernel(ADD, ONE, b, 0, (u64[]){0, 0, 9}), "but there is no buffer", __LINE__);
}

/* Runs `body`, which computes %r, a scalar or 1-d tile, and stores it to the buffer. */
static u64
eval_element(const char *type, const char *body)
{
  char text[4096];
  u64 out = 0;
  snprintf(text, sizeof text, "module tile\nkernel @k(%%p: *%s) warps = 4 shared = 0 {\n%s\n  store %%p, %%r\n  return\n}\n",
           type, body);
  InterpBuffer b = {&out, sizeof out, "out"};
  expect_ok(run_kernel(text, ONE, &b, 1, NULL), __LINE__);
  return out;
}

static u64
eval_binary(const char *op, const char *type, const char *x, const char *y)
{
  char body[512];
  snprintf(body, sizeof body, "  %%x = const value = %s : %s\n  %%y = const value = %s : %s\n  %%r = %s %%x, %%y : %s\n", x, type,
           y, type, op, type);
  return eval_element(type, body);
}

static u64
eval_cast(const char *from, const char *x, const char *to, const char *attrs)
{
  char body[512];
  snprintf(body, sizeof body, "  %%x = const value = %s : %s\n  %%r = cast %%x %s : %s\n", x, from, attrs, to);
  return eval_element(to, body);
}

static void
test_integers(void)
{
  CHECK(eval_binary("add", "i8", "127", "1") == 0x80);
  CHECK(eval_binary("div", "i32", "-7", "2") == 0xfffffffd);
  CHECK(eval_binary("rem", "i32", "-7", "2") == 0xffffffff);
  CHECK(eval_binary("div", "i32", "-2147483648", "-1") == 0x80000000);
  CHECK(eval_binary("rem", "i64", "-9223372036854775808", "-1") == 0);
  CHECK(eval_binary("div", "u8", "200", "3") == 66);
  CHECK(eval_binary("shl", "i32", "1", "32") == 0);
  CHECK(eval_binary("shl", "i16", "3", "15") == 0x8000);
  CHECK(eval_binary("shr", "i32", "-8", "1") == 0xfffffffc);
  CHECK(eval_binary("shr", "i32", "-8", "99") == 0xffffffff);
  CHECK(eval_binary("shr", "u32", "8", "99") == 0);
  CHECK(eval_binary("shr", "i64", "-8", "-1") == ~0ull);
  CHECK(eval_binary("min", "i16", "-3", "2") == 0xfffd);
  CHECK(eval_binary("max", "u16", "65533", "2") == 65533);
  CHECK(eval_binary("umulhi", "u64", "18446744073709551615", "18446744073709551615") == ~0ull - 1);
  CHECK(eval_binary("umulhi", "u32", "4294967295", "65536") == 65535);
  CHECK(eval_binary("xor", "i1", "true", "true") == 0);
  u64 one = 1;
  InterpBuffer b = {&one, 8, "p"};
  expect_fault(run_kernel("module tile\nkernel @k(%p: *i32, %z: i32) warps = 4 shared = 0 {\n  %r = div %z, %z : i32\n"
                          "  store %p, %r\n  return\n}\n", ONE, &b, 1, (u64[]){0}), "integer division by zero", __LINE__);
  b = (InterpBuffer){&one, 8, "p"};
  one = 0x4e44;                /* places 2 and 3 in the third group; then 1 and 0 in the first */
  for (u32 i = 0; i < 2; i++, one = 0x4441) {
    const char *k = "module tile\nkernel @k(%p: *u16, %z: f16) warps = 1 shared = 0 {\n  %l = load %p : u16\n  %w = splat %l : u16[16, 1]\n"
                    "  %a = splat %z : f16[16, 8]\n  %b = splat %z : f16[16, 8]\n  %c = const value = 0.0 : f32[16, 8]\n"
                    "  %d = dot_sparse %a, %w, %b, %c : f32[16, 8]\n  return\n}\n";
    if (i)
      expect_fault(run_kernel(k, ONE, &b, 1, (u64[]){0}), "metadata 0x4441 at element [0, 0]: the places of a group are not in order", __LINE__);
    else
      CHECK(run_kernel(k, ONE, &b, 1, (u64[]){0}).ok);
  }
}

/* An index where the mask is on, and nowhere else, is checked: one scalar and a tile of which one element is wrong. */
static void
test_bounds(void)
{
  i32 at[4] = {0, 130, -1, 7}, out[4] = {0};
  static const char scalar[] =
    "module tile\nkernel @k(%o: *i32, %i: i32, %c: i1) warps = 4 shared = 0 {\n"
    "  %b = bounded %i, %c extent = 128 : i32\n  store %o, %b\n  return\n}\n";
  static const char tile[] =
    "module tile\nkernel @k(%p: *i32, %o: *i32, %n: i32) warps = 4 shared = 0 {\n"
    "  %i = arange start = 0 end = 4 : i32[4]\n  %ps = splat %p : (*i32)[4]\n  %pi = addptr %ps, %i : (*i32)[4]\n"
    "  %x = load %pi : i32[4]\n  %ns = splat %n : i32[4]\n  %m = cmp %i, %ns pred = \"ge\" : i1[4]\n"
    "  %b = bounded %x, %m extent = 128 : i32[4]\n  %os = splat %o : (*i32)[4]\n  %oi = addptr %os, %i : (*i32)[4]\n"
    "  store %oi, %b\n  return\n}\n";
  InterpBuffer both[2] = {{at, sizeof at, "p"}, {out, sizeof out, "o"}};
  expect_ok(run_kernel(scalar, ONE, &both[1], 1, (u64[]){127, 1}), __LINE__);
  expect_ok(run_kernel(scalar, ONE, &both[1], 1, (u64[]){128, 0}), __LINE__);
  CHECK(out[0] == 128);
  expect_fault(run_kernel(scalar, ONE, &both[1], 1, (u64[]){128, 1}), "index 128 of 128", __LINE__);
  expect_fault(run_kernel(scalar, ONE, &both[1], 1, (u64[]){(u32)-5, 1}), "index -5 of 128", __LINE__);
  expect_fault(run_kernel(tile, ONE, both, 2, (u64[]){0}), "index 130 of 128 at element [1]", __LINE__);
  expect_fault(run_kernel(tile, ONE, both, 2, (u64[]){2}), "index -1 of 128 at element [2]", __LINE__);
  expect_ok(run_kernel(tile, ONE, both, 2, (u64[]){3}), __LINE__);
  CHECK(out[1] == 130 && out[3] == 7);
}

static void
test_floats(void)
{
  CHECK(eval_binary("min", "f32", "0x7fc00000", "2.0") == 0x40000000);
  CHECK(eval_binary("max", "f16", "-0.0", "0.0") == 0);
  CHECK(eval_binary("min", "f64", "0.0", "-0.0") == 1ull << 63);
  CHECK(eval_binary("add", "f16", "2048.0", "1.0") == 0x6800);
  CHECK(eval_binary("add", "f16", "2048.0", "3.0") == 0x6802);
  CHECK(eval_binary("mul", "bf16", "1.5", "1.5") == 0x4010);
  CHECK(eval_binary("div", "f32", "1.0", "0.0") == 0x7f800000);
  CHECK(eval_binary("sub", "f32", "0x7f800000", "0x7f800000") == 0x7fffffff);
  CHECK(eval_binary("rem", "f32", "-7.0", "2.0") == 0xbf800000);
  CHECK(eval_binary("mul", "f8e4m3", "64.0", "64.0") == 0x7e);
  u64 out;
  CHECK(scalar_unary(OP_RSQRT, DT_F32, 0x40800000) == 0x3f000000);
  CHECK(scalar_unary(OP_NEG, DT_F16, 0x3c00) == 0xbc00 && scalar_unary(OP_ABS, DT_BF16, 0xbf80) == 0x3f80);
  CHECK(scalar_unary(OP_RINT, DT_F32, 0x40200000) == 0x40000000);
  CHECK(scalar_unary(OP_FAST_EXP2, DT_F16, 0x4200) == 0x4800);
  /* 1.0078125 * 1.0078125 is a tie of bf16 plus a bit; adding a value far below must break it upward, not to even */
  CHECK(scalar_fma(DT_BF16, 0x3f81, 0x3f80, 0x0080) == 0x3f81);
  CHECK(scalar_binary(OP_ADD, DT_BF16, 0x4380, 0x3f80, &out) && out == 0x4380);        /* 256 + 1: tie to even */
  CHECK(scalar_fma(DT_BF16, 0x4000, 0x3f00, 0x4380) == 0x4380);                         /* the same by fma */
  CHECK(scalar_fma(DT_BF16, 0x3f82, 0x3fc0, 0) == 0x3fc3);                              /* 1.015625 * 1.5 exact */
  CHECK(scalar_fma(DT_BF16, 0x3f81, 0x3fc0, 0x0080) == 0x3fc2);                         /* 1.51171875 + tiny: up */
  CHECK(scalar_fma(DT_BF16, 0x3f81, 0x3fc0, 0x8080) == 0x3fc1);                         /* 1.51171875 - tiny: down */
}

static void
test_casts(void)
{
  CHECK(eval_cast("f32", "-1.9", "i32", "") == 0xffffffff);
  CHECK(eval_cast("f32", "1e20", "i32", "") == 0x7fffffff);
  CHECK(eval_cast("f32", "-1e20", "u8", "") == 0);
  CHECK(eval_cast("f32", "300.0", "u8", "") == 255);
  CHECK(eval_cast("f64", "0x7ff8000000000000", "i64", "") == 0);
  CHECK(eval_cast("f64", "1e30", "u64", "") == ~0ull);
  CHECK(eval_cast("f64", "-9.3e18", "i64", "") == 1ull << 63);
  CHECK(eval_cast("i8", "-1", "u32", "") == 0xffffffff);
  CHECK(eval_cast("u8", "255", "i32", "") == 255);
  CHECK(eval_cast("i32", "-5", "u8", "sat = 1") == 0);
  CHECK(eval_cast("i32", "-500", "i8", "sat = 1") == 0x80);
  CHECK(eval_cast("u32", "4000000000", "i32", "sat = 1") == 0x7fffffff);
  CHECK(eval_cast("i32", "2", "i1", "") == 1);
  CHECK(eval_cast("i1", "true", "f32", "") == 0x3f800000);
  CHECK(eval_cast("u64", "18446744073709551615", "f32", "") == 0x5f800000);
  CHECK(eval_cast("i32", "16777217", "f32", "round = \"rz\"") == 0x4b800000);
  CHECK(eval_cast("f32", "1e9", "f8e4m3", "") == 0x7e);
  CHECK(eval_cast("f32", "1e9", "f16", "") == 0x7c00);
  CHECK(eval_cast("f32", "1e9", "f16", "sat = 1") == 0x7bff);
  CHECK(eval_cast("bf16", "3.0", "f8e5m2", "") == 0x42);
}

static void
test_shapes(void)
{
  i32 out[24];
  InterpBuffer b = {out, sizeof out, "out"};
  expect_ok(run_kernel(
    "module tile\nkernel @k(%p: *i32) warps = 4 shared = 0 {\n"
    "  %a = arange start = 0 end = 6 : i32[6]\n"
    "  %m = reshape %a : i32[2, 3]\n"
    "  %t = permute %m perm = [1, 0] : i32[3, 2]\n"
    "  %e = expand_dims %t axis = 1 : i32[3, 1, 2]\n"
    "  %b = broadcast %e : i32[3, 4, 2]\n"
    "  %f = reshape %b : i32[24]\n"
    "  %i = arange start = 0 end = 24 : i32[24]\n"
    "  %ps = splat %p : (*i32)[24]\n"
    "  %q = addptr %ps, %i : (*i32)[24]\n"
    "  store %q, %f\n"
    "  return\n}\n", ONE, &b, 1, NULL), __LINE__);
  for (int i = 0; i < 24; i++)
    CHECK(out[i] == i % 2 * 3 + i / 8);
}

static void
test_control(void)
{
  i32 out[4] = {0};
  InterpBuffer b = {out, sizeof out, "out"};
  /* Fibonacci by swapping carried values: out[0] = fib(10), out[1] = fib(11); Collatz steps of 27 by while */
  expect_ok(run_kernel(
    "module tile\nkernel @k(%p: *i32) warps = 4 shared = 0 {\n"
    "  %z = const value = 0 : i32\n  %1 = const value = 1 : i32\n  %2 = const value = 2 : i32\n"
    "  %3 = const value = 3 : i32\n  %ten = const value = 10 : i32\n  %n0 = const value = 27 : i32\n"
    "  %a, %b = for %z, %ten, %1, %z, %1 : i32, i32 {\n"
    "  ^(%i: i32, %x: i32, %y: i32):\n"
    "    %s = add %x, %y : i32\n"
    "    yield %y, %s\n"
    "  }\n"
    "  %c, %steps = while %n0, %z : i32, i32 {\n"
    "  ^(%n: i32, %k: i32):\n"
    "    %go = cmp %n, %1 pred = \"ne\" : i1\n"
    "    condition %go, %n, %k\n"
    "  } {\n"
    "  ^(%n2: i32, %k2: i32):\n"
    "    %r = rem %n2, %2 : i32\n"
    "    %odd = cmp %r, %z pred = \"ne\" : i1\n"
    "    %m = if %odd : i32 {\n"
    "      %t = mul %n2, %3 : i32\n"
    "      %t1 = add %t, %1 : i32\n"
    "      yield %t1\n"
    "    } else {\n"
    "      %h = div %n2, %2 : i32\n"
    "      yield %h\n"
    "    }\n"
    "    %k3 = add %k2, %1 : i32\n"
    "    yield %m, %k3\n"
    "  }\n"
    "  %p1 = addptr %p, %1 : *i32\n  %p2 = addptr %p, %2 : *i32\n"
    "  store %p, %a\n  store %p1, %b\n  store %p2, %steps\n"
    "  return\n}\n", ONE, &b, 1, NULL), __LINE__);
  CHECK(out[0] == 55 && out[1] == 89 && out[2] == 111);
}

static void
test_reduce(void)
{
  float x[12] = {3, 1, 2, 9, -4, 9, 0, 5, 5, 2, 2, 1}, sum[4];
  i32 arg[4];
  InterpBuffer b[] = {{x, sizeof x, "x"}, {sum, sizeof sum, "sum"}, {arg, sizeof arg, "arg"}};
  expect_ok(run_kernel(
    "module tile\nkernel @k(%x: *f32, %s: *f32, %g: *i32) warps = 4 shared = 0 {\n"
    "  %i = arange start = 0 end = 12 : i32[12]\n"
    "  %xs = splat %x : (*f32)[12]\n  %xp = addptr %xs, %i : (*f32)[12]\n  %v = load %xp : f32[12]\n"
    "  %m = reshape %v : f32[4, 3]\n"
    "  %sum = reduce %m axis = 1 : f32[4] {\n  ^(%a: f32, %b: f32):\n    %c = add %a, %b : f32\n    yield %c\n  }\n"
    "  %j = arange start = 0 end = 3 : i32[3]\n  %je = expand_dims %j axis = 0 : i32[1, 3]\n"
    "  %jj = broadcast %je : i32[4, 3]\n"
    "  %max, %arg = reduce %m, %jj axis = 1 : f32[4], i32[4] {\n"
    "  ^(%v1: f32, %i1: i32, %v2: f32, %i2: i32):\n"
    "    %t = cmp %v2, %v1 pred = \"gt\" : i1\n"
    "    %vm = select %t, %v2, %v1 : f32\n    %im = select %t, %i2, %i1 : i32\n"
    "    yield %vm, %im\n  }\n"
    "  %o = arange start = 0 end = 4 : i32[4]\n"
    "  %ss = splat %s : (*f32)[4]\n  %sp = addptr %ss, %o : (*f32)[4]\n  store %sp, %sum\n"
    "  %gs = splat %g : (*i32)[4]\n  %gp = addptr %gs, %o : (*i32)[4]\n  store %gp, %arg\n"
    "  return\n}\n", ONE, b, 3, NULL), __LINE__);
  for (int i = 0; i < 4; i++)
    CHECK(sum[i] == x[3 * i] + x[3 * i + 1] + x[3 * i + 2]);
  CHECK(arg[0] == 0 && arg[1] == 0 && arg[2] == 1 && arg[3] == 0);
}

/* A 3x5 times 5x2 dot of constants: every a is x, every b is y, acc is z. */
static u64
eval_dot(const char *in, const char *x, const char *y, const char *acc, const char *z, const char *attrs)
{
  char body[1024];
  snprintf(body, sizeof body,
           "  %%a = const value = %s : %s[3, 5]\n  %%b = const value = %s : %s[5, 2]\n  %%c = const value = %s : %s[3, 2]\n"
           "  %%d = dot %%a, %%b, %%c %s : %s[3, 2]\n"
           "  %%f = reshape %%d : %s[6]\n  %%r = reduce %%f axis = 0 : %s {\n  ^(%%p1: %s, %%q1: %s):\n"
           "    %%m = max %%p1, %%q1 : %s\n    yield %%m\n  }\n", x, in, y, in, z, acc, attrs, acc, acc, acc, acc, acc, acc);
  return eval_element(acc, body);
}

static void
test_dot(void)
{
  CHECK(eval_dot("f16", "1.5", "2.0", "f32", "1.0", "") == 0x41800000);
  CHECK(eval_dot("bf16", "3.0", "3.0", "f32", "0.0", "") == 0x42340000);
  CHECK(eval_dot("i8", "-128", "127", "i32", "7", "") == (u32)(7 - 5 * 128 * 127));
  CHECK(eval_dot("f16", "1.0", "1.0", "f16", "0.00048828125", "") == 0x4500);      /* rounded once, to even */
  CHECK(eval_dot("f16", "256.0", "64.0", "f16", "0.0", "") == 0x7c00);             /* beyond f16 */
  CHECK(eval_dot("f8e5m2", "3.0", "2.0", "f16", "0.0", "") == 0x4f80);
  CHECK(eval_dot("f64", "0.5", "3.0", "f64", "0.5", "") == 0x4020000000000000ull);
  CHECK(eval_dot("f32", "1.00048828125", "1.0", "f32", "0.0", "") == 0x40a02800);
  CHECK(eval_dot("f32", "1.000244140625", "1.0", "f32", "0.0", "") == 0x40a00000);
  CHECK(eval_dot("f32", "1.000244140625", "1.0", "f32", "0.0", "prec = \"ieee\"") == 0x40a00a00);
}

static void
test_atomics(void)
{
  i32 cell[2] = {5, 100}, old[4] = {0};
  InterpBuffer b[] = {{cell, sizeof cell, "cell"}, {old, sizeof old, "old"}};
  expect_ok(run_kernel(
    "module tile\nkernel @k(%p: *i32, %o: *i32) warps = 4 shared = 0 {\n"
    "  %i = arange start = 1 end = 5 : i32[4]\n  %three = const value = 3 : i32[4]\n"
    "  %ps = splat %p : (*i32)[4]\n  %m = cmp %i, %three pred = \"ne\" : i1[4]\n"
    "  %r = atomic_rmw %ps, %i, %m rmw = \"add\" sem = \"relaxed\" scope = \"gpu\" : i32[4]\n"
    "  %z = arange start = 0 end = 4 : i32[4]\n  %os = splat %o : (*i32)[4]\n  %op = addptr %os, %z : (*i32)[4]\n"
    "  store %op, %r\n"
    "  %one = const value = 1 : i32\n  %q = addptr %p, %one : *i32\n"
    "  %e = const value = 100 : i32\n  %v = const value = 7 : i32\n"
    "  %c = atomic_cas %q, %e, %v sem = \"acq_rel\" scope = \"gpu\" : i32\n"
    "  %c2 = atomic_cas %q, %e, %one sem = \"acq_rel\" scope = \"gpu\" : i32\n"
    "  return\n}\n", ONE, b, 2, NULL), __LINE__);
  CHECK(cell[0] == 12 && cell[1] == 7);
  CHECK(old[0] == 5 && old[1] == 6 && old[2] == 0 && old[3] == 8);
}

#define K(body) "module tile\nkernel @k(%p: *i32, %n: i32) warps = 4 shared = 0 {\n" body "  return\n}\n"

static void
test_faults(void)
{
  i32 x[8] = {0};
  InterpBuffer b = {x, sizeof x, "x"};
  const u64 zero = 0, seven = 7;
  expect_fault(run_kernel(K("  %h = hint %n divisible = 4 : i32\n"), ONE, &b, 1, &seven), "is not a multiple of 4", __LINE__);
  expect_ok(run_kernel(K("  %h = hint %n divisible = 4 : i32\n"), ONE, &b, 1, &zero), __LINE__);
  expect_ok(run_kernel(K("  %a = arange start = 8 end = 16 : i32[8]\n  %h = hint %a divisible = 4 contiguous = 4 : i32[8]\n"),
                       ONE, &b, 1, &zero), __LINE__);
  expect_fault(run_kernel(K("  %a = arange start = 8 end = 16 : i32[8]\n  %c = add %a, %a : i32[8]\n"
                            "  %h = hint %c contiguous = 4 : i32[8]\n"), ONE, &b, 1, &zero), "does not continue its run", __LINE__);
  expect_fault(run_kernel(K("  %c = cmp %n, %n pred = \"ne\" : i1\n  assume %c message = \"n differs\"\n"), ONE, &b, 1, &zero),
               "false assumption: n differs", __LINE__);
  expect_fault(run_kernel(K("  for %n, %n, %n {\n  ^(%i: i32):\n    yield\n  }\n"), ONE, &b, 1, &zero),
               "must be positive", __LINE__);
  expect_ok(run_kernel(K("  %s = const value = 2147483646 : i32\n  %e = const value = 2147483647 : i32\n"
                         "  %two = const value = 2 : i32\n"
                         "  for %s, %e, %two {\n  ^(%i: i32):\n    yield\n  }\n"), ONE, &b, 1, &zero), __LINE__);
  expect_fault(run_kernel(K("  %t = const value = true : i1\n  while {\n    condition %t\n  } {\n    yield\n  }\n"), ONE, &b, 1,
                          &zero), "step limit", __LINE__);
  expect_fault(run_kernel(K("  %o = const value = 4611686018427387904 : i64\n  %q = addptr %p, %o : *i32\n"), ONE, &b, 1, &zero),
               "address overflows", __LINE__);
  expect_fault(run_kernel(K("  %v = const value = 1 : i32[1024, 1024]\n  %w = add %v, %v : i32[1024, 1024]\n"
                            "  %y = add %v, %v : i32[1024, 1024]\n  %z = add %v, %v : i32[1024, 1024]\n"
                            "  %u = add %v, %v : i32[1024, 1024]\n"), ONE, &b, 1, &zero), "limit", __LINE__);
}

int
main(void)
{
  test_add();
  test_integers();
  test_bounds();
  test_floats();
  test_casts();
  test_shapes();
  test_control();
  test_reduce();
  test_dot();
  test_atomics();
  test_faults();
  return failures != 0;
}
