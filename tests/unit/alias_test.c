/* alias_test.c - which barriers accesses to global memory get: those that are needed, and no others.
 *
 * A row is the body of a kernel of 128 threads and what becomes of it: S store, L load, A atomic op, C asynchronous copy, w wait, | barrier,
 * ( ) around the regions of loops and ifs. `i` is arange(0, 128), one element a thread, `n` and `m` are integers of the launch. What the
 * algebra must not claim (overlaps by one element, wrapped indices, other widths, values of another iteration) stands beside what it must. */
#include "../../frontend/frontend.h"
#include "../../passes/passes.h"
#include <stdio.h>
#include <stdlib.h>

static int failures;

typedef struct Row { const char *body, *want; } Row;

#define ROWS(body, want) {"let j = arange(0, 16)[:, None]; let k = arange(0, 8)[None, :]; " body, want}

static const Row rows[] = {
  /* the same thread, another one, somewhere else */
  {"store(x + i, i); store(x + i, load(x + i) + 1);", "SLS"},
  {"store(x + i, i); store(z + i, load(x + (127 - i)));", "S|LS"},
  {"store(x + i, i); store(z + i, load(x + (128 + (127 - i))));", "SLS"},
  {"store(x + i, i); store(z + i, load(x + (127 + (127 - i))));", "S|LS"},        /* one element */
  {"store(x + i, i); store(z + i, load(x + (-128 + (127 - i))));", "SLS"},
  {"store(x + i, i); store(z + i, load(x + (-127 + (127 - i))));", "S|LS"},
  {"store(z + i, load(x + (127 - i))); store(x + i, 1);", "LS|S"},
  {"store(x + i, 1); store(x + (127 - i), 2);", "S|S"},
  {"store(z + i, load(x + i) + load(x + (127 - i)));", "LLS"},
  {"store(x + 2 * i, 1); store(z + i, load(x + (2 * (127 - i) + 1)));", "SLS"},    /* even and odd */
  {"store(x + 2 * i, 1); store(z + i, load(x + (2 * (127 - i) + 2)));", "S|LS"},
  {"store(x + 3 * i, 1); store(z + i, load(x + (3 * (n - i) + 1))); store(z + i, load(x + (3 * (n - i) - 3)));", "SLS|LS"},
  {"for k in range(n) { store(x + (k * 64 + (i & 31)), 1); store(z + i, load(x + (i % n * 64 + 32 + (i & 31)))); }", "(SLS)"},
  {"for k in range(n) { store(x + (k * 64 + (i & 31)), 1); store(z + i, load(x + (i % n * 64 + 31 + (i & 31)))); }", "(|S|LS)"},
  {"for k in range(n) { store(x + (k * 64 + (i & 32)), 1); store(z + i, load(x + (i % n * 64 + 32 + (i & 31)))); }", "(|S|LS)"},
  {"store(x + (i & 63), 1); store(z + i, load(x + (64 + (i & 63))));", "SLS"},
  {"store(x + (i & 63), 1); store(z + i, load(x + (63 + (i & 63))));", "S|LS"},
  {"store(x + i % 64, 1); store(z + i, load(x + (64 + (127 - i))));", "SLS"},
  {"store(x + i % n, 1); store(z + i, load(x + i % n));", "S|LS"},                  /* two elements at one place */
  {"store(x + (i >> 1), 1); store(z + i, load(x + (i >> 1)));", "S|LS"},
  {"store(x + (n + i), 1); store(z + i, load(x + (n + i)));", "SLS"},
  {"store(x + (n + i), 1); store(z + i, load(x + (m + i)));", "S|LS"},
  {"store(x + (n + i), 1); store(z + i, load(x + (n + 128 + (127 - i))));", "SLS"},
  {"store(x + (n + i), 1); store(z + i, load(x + (i64(n) + (127 - i))));", "S|LS"},
  {"store(x + (i64(i) + 2305843009213693951), 1); store(z + i, load(x + (i64(i) - 2305843009213693951)));", "S|LS"},
  {"store(x + (i64(i) + 100000000000000000), 1); store(z + i, load(x + (i64(i) - 100000000000000000)));", "SLS"},
  {"store(x + i64(n) * 2305843009213693951 * 4, 1); store(z + i, load(x + i64(n) * 2305843009213693951 * 4));", "S|LS"},
  {"store(x + (n - i), 1); store(z + i, load(x + (n - i)));", "SLS"},
  {"store(x + i32(u32(i) - u32(64)), 1); store(z + i, load(x + (256 + i)));", "S|LS"},          /* wraps as a matter of course */
  {"store(x + i64(u32(i) - u32(64)), 1); store(z + i, load(x + (256 + i)));", "S|LS"},
  {"store(x + max(min(n, 7), 0), 1); store(z + i, load(x + (8 + i)));", "SLS"},
  {"store(x + max(min(n, 8), 0) + (i & 7), 1); store(z + i, load(x + (15 + i)));", "S|LS"},
  {"store(x + max(min(n, 8), 0) + (i & 7), 1); store(z + i, load(x + (16 + i)));", "SLS"},
  {"store(x + i, 1, mask=i < n); store(z + i, load(x + i, mask=i < m));", "SLS"},
  {"store(x + i, 1, mask=i < 64); store(z + i, load(x + (127 - i), mask=i < 64));", "S|LS"},    /* masks other than rows' */
  {"store(x + load(z + i), 1); store(z + i, load(x + load(z + i)));", "LSL|LS"},
  /* a tile whose elements several threads hold; scalars */
  {"let j = arange(0, 32); store(x + j, load(x + j) + 1);", "L|S"},
  {"let j = arange(0, 32); store(x + j, 1); store(x + j, 2);", "SS"},
  {"store(x, 1); store(x, 2); store(x + n, 3);", "SSS"},
  {"store(x, load(x) + 1);", "L|S"},
  {"store(x, 1); store(z, load(x));", "S|LS"},
  {"store(x + n, 1); store(z + i, load(x + i));", "S|LS"},
  {"store(x + 128, 1); store(z + i, load(x + i));", "SLS"},
  {"store(x + 127, 1); store(z + i, load(x + i));", "S|LS"},
  {"let j = arange(0, 16)[:, None] * 8; let k = arange(0, 8)[None, :]; store(x + (j + k), 1); store(x + (j + k), load(x + (j + k)) + 1);", "SLS"},
  {"let j = arange(0, 16)[:, None] * 7; let k = arange(0, 8)[None, :]; store(x + (j + k), load(x + (j + k)) + 1);", "L|S"},
  {"let j = arange(0, 16)[:, None] * 8; let k = arange(0, 8)[None, :] * 0; store(x + (j + k), load(x + (j + k)) + 1);", "L|S"},
  /* other widths, other types, pointers made of pointers and of integers */
  {"let h = bitcast(x, *i16); store(x + i, 1); store(z + i, i32(load(h + 256 + i)));", "SLS"},
  {"let h = bitcast(x, *i16); store(x + i, 1); store(z + i, i32(load(h + 255 + i)));", "S|LS"},
  {"let h = bitcast(x, *i16); store(h + i, i16(1)); store(z + i, load(x + (64 + i)));", "SLS"},
  {"let h = bitcast(x, *i16); store(h + i, i16(1)); store(z + i, load(x + (63 + i)));", "S|LS"},
  {"let h = bitcast(x, *i16); store(h + 2 * i, i16(1)); store(z + i, load(x + i));", "S|LS"},
  {"let b = bitcast(x, *i8); store(x, 1); store(z + i, i32(load(b + 3 + i)));", "S|LS"},
  {"let b = bitcast(x, *i8); store(x, 1); store(z + i, i32(load(b + 4 + i)));", "SLS"},
  {"let f = bitcast(x, *f32); store(x + i, 1); store(f + i, load(f + i) + 1.0);", "SLS"},
  {"store(x + i, 1); let p = bitcast(i64(n), *i32); store(z + i, load(p + i));", "S|L|S"},
  {"store(x + i, 1); store(z + i, load(bitcast(bitcast(x, i64), *i32) + i));", "SLS"},
  {"store(x + i, 1); store(z + i, load(bitcast(bitcast(x, i64) + 4, *i32) + i));", "S|L|S"},
  {"let p = n > 0 ? x : x + 256; store(p + i, 1); store(z + i, load(p + i));", "S|LS"},
  {"let p = n > 0 ? x : z; store(p + i, 1); store(y + (127 - i), load(x + i));", "S|LS"},
  {"let p = n > 0 ? z : x; store(p + i, 1); store(y + (127 - i), load(x + i));", "S|LS"},
  {"var p = x; if n > 0 { p = z; } store(p + i, 1); store(y + (127 - i), load(x + i));", "()S|LS"},
  {"let p = n > 0 ? x : x + 256; store(p + i, 1); store(z + i, load(y + (127 - i)));", "SLS"},
  {"let p = reshape(x + i, [16, 8]); store(p, 1); store(x + i, load(x + i) + 1);", "S|LS"},
  /* parameters: x and y are different, x and z are told to be one address where a row says so with '=' */
  {"store(x + i, 1); store(y + (127 - i), load(x + i)); store(x + (127 - i), load(y + i));", "SLS|LS"},
  {"=store(x + i, 1); store(y + i, load(z + (127 - i)));", "S|LS"},
  {"=store(x + i, 1); store(y + i, load(z + i));", "SLS"},
  {"=store(x + i, 1); store(y + i, load(z + (128 + i)));", "SLS"},
  /* atomics */
  {"atomic_add(x + i, 1, sem=\"relaxed\"); atomic_add(x + (127 - i), 2, sem=\"relaxed\");", "AA"},
  {"atomic_add(x + i, 1, sem=\"relaxed\"); atomic_max(x + (127 - i), 2, sem=\"relaxed\");", "A|A"},
  {"atomic_xchg(x + i, 1, sem=\"relaxed\"); atomic_xchg(x + (127 - i), 2, sem=\"relaxed\");", "A|A"},
  {"let o = atomic_add(x + i, 1, sem=\"relaxed\"); atomic_add(x + (127 - i), o, sem=\"relaxed\");", "A|A"},
  {"atomic_add(x + i, 1, sem=\"relaxed\"); atomic_add(bitcast(x, *f32) + (127 - i), 1.0, sem=\"relaxed\");", "A|A"},
  {"atomic_add(x + i, 1, sem=\"relaxed\"); store(x + i, 3);", "AS"},
  {"let j = arange(0, 16)[:, None] * n + arange(0, 8)[None, :]; atomic_add(x + j, 1, sem=\"relaxed\"); store(z + j, load(x + j));", "A|LS"},
  {"atomic_add(x + i, 1, sem=\"relaxed\"); store(z + i, load(x + (127 - i)));", "A|LS"},
  {"store(x + i, 1); atomic_add(z, 1, sem=\"release\"); store(y + i, load(x + (127 - i)));", "SALS"},
  {"store(x + i, 1); atomic_add(z, 1, sem=\"relaxed\"); store(y + i, load(x + (127 - i)));", "SA|LS"},
  {"store(z + i, 1); atomic_add(z + (127 - i), 1, sem=\"release\"); store(y + i, load(z + (127 - i)));", "SALS"},
  {"store(z + i, 1); atomic_add(z + (127 - i), 1, sem=\"acquire\"); store(y + i, load(z + i));", "S|ALS"},
  /* loops: what an iteration leaves for another one */
  {"for k in range(n) { store(x + (k * 128 + (127 - i)), load(x + (k * 128 + i))); }", "(L|S)"},
  {"for k in range(n) { store(x + (k * 128 + i), load(x + (k * 128 + i))); }", "(LS)"},
  {"for k in range(n) { store(x + (k * 127 + i), load(x + (k * 127 + i))); }", "(|LS)"},
  {"for k in range(n) { store(x + (k * -128 + i), load(x + (k * -128 + i))); }", "(LS)"},
  {"for k in range(n) { store(x + (k * -127 + i), load(x + (k * -127 + i))); }", "(|LS)"},
  {"for k in range(0, n, 128) { store(x + (k + i), load(x + (k + i))); }", "(LS)"},
  {"for k in range(0, n, 127) { store(x + (k + i), load(x + (k + i))); }", "(|LS)"},
  {"for k in range(0, n, m) { store(x + (k + i), load(x + (k + i))); }", "(|LS)"},
  {"for k in range(0, n, m * 128) { store(x + (k + i), load(x + (k + i))); }", "(LS)"},
  {"for k in range(0, n, m * 64) { store(x + (k + i), load(x + (k + i))); }", "(|LS)"},
  {"for k in range(n) { store(x + ((k + 1) * 128 + i), load(x + (k * 128 + (127 - i)))); }", "(|LS)"},
  {"for k in range(n) { store(x + (k * 128 + i), load(x + ((k + 1) * 128 + (127 - i)))); }", "(L|S)"},   /* stored to by the iteration behind */
  {"for k in range(n) { store(x + i, load(x + i) + k); }", "(LS)"},
  {"for k in range(n) { store(x + (127 - i), k); store(x + i, k); }", "(|S|S)"},
  {"for k in range(n) { store(x + (k * 128 + i), 1); } store(z + i, load(x + (127 - i)));", "(S)|LS"},
  {"for k in range(n) { store(x + (128 + k * 128 + i), 1); } store(z + i, load(x + (127 - i)));", "(S)LS"},
  {"for k in range(3) { store(x + (k * 128 + i), 1); } store(z + i, load(x + (384 + (127 - i))));", "(S)LS"},
  {"for k in range(3) { store(x + (k * 128 + i), 1); } store(z + i, load(x + (383 + (127 - i))));", "(S)|LS"},
  {"for j in range(n) { for k in range(4) { store(x + (j * 512 + k * 128 + i), load(x + (j * 512 + k * 128 + i))); } }", "((LS))"},
  {"for j in range(n) { for k in range(4) { store(x + (j * 511 + k * 128 + i), load(x + (j * 511 + k * 128 + i))); } }", "((|LS))"},
  {"for j in range(n) { for k in range(4) { store(x + (k * 128 + (127 - i)), load(x + (k * 128 + (127 - i))) + j); } store(x + (512 + i), j); }",
   "((LS)S)"},
  {"for j in range(n) { let v = load(x + i); for k in range(m) { store(y + (k * 128 + i), v); } store(x + (127 - i), j); }", "(|L(S)|S)"},
  {"for j in range(n) { for k in range(m) { store(y + i, k); } store(z + i, load(x + (127 - i))); store(x + i, j); }", "((S)|LS|S)"},
  {"var k = 0; while k < n { store(x + (k + i), 1); k = load(z + k); }", "(|SL)"},
  {"var k = 0; while k < n { store(x + i, load(x + i) + 1); k = k + 1; }", "(LS)"},
  {"var k = 0; while load(x + k) < n { store(x + (k + i), 1); k = k + 1; }", "(|L|S)"},
  {"var p = x; for k in range(n) { store(p + i, 1); p = p + 128; }", "(|S)"},
  {"var p = x; for k in range(n) { store(p + i, load(y + (127 - i))); p = p + 128; }", "(L|S)"},
  {"var p = z; for k in range(n) { store(y + i, load(x + (127 - i))); store(p + i, 1); p = x; }", "(|LS|S)"},
  {"let b = bitcast(x, *i8); for j in range(m) { for k in range(n, stages=2) { store(b + (k * 128 + (127 - i)), load(b + (k * 128 + i))); } }", "(|L(L|S))"},
  {"for k in range(n, stages=2) { atomic_add(z, 1, sem=\"acquire\"); store(y + i, load(x + (k * 128 + i))); }", "(ALS)"},
  {"for k in range(n, stages=2) { atomic_add(z, 1, sem=\"release\"); store(y + i, load(x + (k * 128 + i))); }", "(C)(w|(C)AS)w"},
  /* parts of rows: of 8 or by a constant; what a mask keeps within stride / k, moved by several of it; what it keeps within the stride */
  ROWS("store(x + (j * 16 + k), 1); store(x + (j * 16 + 8 + (7 - k)), 2);", "SS"),
  ROWS("store(x + (j * 16 + k), 1); store(x + (j * 16 + 7 + (7 - k)), 2);", "S|S"),
  ROWS("store(x + (j * 16 + k), 1); store(x + (j * 16 + 9 + (7 - k)), 2);", "S|S"),
  ROWS("store(x + (j * 16 + k), 1); store(x + (j * 8 + 8 + (7 - k)), 2);", "S|S"),
  ROWS("store(x + (j * n + k), 1, mask=k < n / 2); store(x + (j * n + n / 2 + k), 2, mask=k < n / 2);", "SS"),
  ROWS("store(x + (j * n + k), 1, mask=k < n / 2); store(x + (m * n + n / 2 + k), 2, mask=k < n / 2);", "SS"),
  ROWS("store(x + (j * n + n / 2 + k), 1, mask=k < n / 2); store(x + (j * n + k), 2, mask=k < n / 2 && j < m);", "SS"),
  ROWS("store(x + (j * n + k), 1, mask=k < n / 3); store(x + (j * n + n / 3 * 2 + k), 2, mask=k < n / 3);", "SS"),
  ROWS("store(x + (j * n + k), 1, mask=k < n / 2); store(x + (j * n + n / 2 * 2 + k), 2, mask=k < n / 2);", "S|S"),    /* the next row */
  ROWS("store(x + k, 1, mask=k < n / 2); store(x + n / 2 * 2 + k, 2, mask=k < n / 2);", "SS"),                       /* there is none */
  ROWS("store(x + (j * n + k), 1, mask=k < n / 2); store(x + (j * n + n / 2 - 1 + k), 2, mask=k < n / 2);", "S|S"),
  ROWS("store(x + (j * n + k), 1, mask=k < n / 2); store(x + (j * n + n / 2 + k), 2);", "S|S"),
  ROWS("store(x + (j * n + k), 1, mask=k < m / 2); store(x + (j * n + m / 2 + k), 2, mask=k < m / 2);", "S|S"),
  ROWS("store(x + (j * n + k), 1, mask=k <= n / 2); store(x + (j * n + n / 2 + k), 2, mask=k < n / 2);", "S|S"),
  ROWS("store(x + (j * n + k), 1, mask=k < n / 2); store(x + (j * n + n / 3 + k), 2, mask=k < n / 3);", "S|S"),
  ROWS("store(x + (j * n + k - 1), 1, mask=k - 1 < n / 2); store(x + (j * n + n / 2 + k), 2, mask=k < n / 2);", "S|S"),  /* may begin below 0 */
  ROWS("store(x + (j * n + k), 1, mask=k < n); store(x + (j * n + 8 + k), 2, mask=8 + k < n);", "SS"),
  ROWS("store(x + (j * n + k), 1, mask=k < n); store(x + (j * n + 7 + (7 - k)), 2, mask=7 + (7 - k) < n);", "S|S"),
  ROWS("store(x + (j * n + k), 1, mask=k < n); store(x + (j * n + 8 + k), 2, mask=k < n);", "S|S"),
  /* rows by a stride of the launch: what one store writes does not overlap; what masks keep apart; nothing else */
  {"for k in range(n) { store(x + (k * m + i), 1); }", "(S)"},
  {"for k in range(n) { store(x + (k * m + i), 1); store(x + (k * m + 128 + i), 2); }", "(|SS)"},
  {"for k in range(n) { store(x + (k * m + i), load(x + (k * m + i)) + 1); }", "(LS)"},
  {"for k in range(n) { store(x + (k * m + i), load(z + k), mask=i < m); store(y + i, load(x + (k * m + (127 - i)))); }", "(L|S|LS)"},
  {"for k in range(n) { store(x + (k * m + i), k, mask=i < m); store(y + i, load(x + (k * m + (127 - i)), mask=127 - i < m)); }", "(S|LS)"},
  {"for k in range(n) { store(y + i, load(x + (k * m + (127 - i)), mask=127 - i < m)); store(x + (k * m + m + i), k, mask=i < m); }", "(|LSS)"},
  {"for k in range(n) { store(y + i, load(x + (k * m + (127 - i)), mask=127 - i < m)); store(x + (k * m - m + i), k, mask=i < m); }", "(LS|S)"},
  {"for k in range(n) { store(y + i, load(x + (k * m + (127 - i)), mask=127 - i <= m)); store(x + (k * m - m + i), k, mask=i < m); }", "(|LS|S)"},
  {"for k in range(n) { store(y + i, load(x + (k * m + (127 - i)), mask=127 - i < m)); store(x + (k * m - m + i), k, mask=i < n); }", "(|LS|S)"},
  {"for k in range(n) { store(x + (k * m + i), load(x + (k * m + i + 1), mask=i < m) + 1, mask=i < m); }", "(|L|S)"},
  {"store(x + (i - 1), 1, mask=i - 1 < n); store(x + (n + (127 - i)), 2, mask=127 - i < n);", "S|S"},          /* may begin below 0 */
  {"store(x + (i + 1), 1, mask=i < n); store(x + (n + (127 - i)), 2, mask=127 - i < n);", "S|S"},
  {"store(x + i, 1, mask=i < n); store(x + (n + (127 - i)), 2, mask=127 - i < n);", "SS"},
  {"store(x + i, 1, mask=i < n); store(x + (n + (127 - i)), 2);", "S|S"},
  {"store(x + i, 1); store(x + (n + (127 - i)), 2);", "S|S"},
  {"store(x + i, 1, mask=i < n); store(x + (m * n + (127 - i)), 2, mask=127 - i < n);", "S|S"},
  {"store(x + i, 1, mask=i < n); store(x + (num_programs(0) * n + (127 - i)), 2, mask=(127 - i < n) && i > m);", "SS"},
  {"store(x + i, 1, mask=i < n); store(x + (program_id(0) * n + (127 - i)), 2, mask=127 - i < n);", "S|S"},
  {"let j = arange(0, 16)[:, None]; let k = arange(0, 8)[None, :]; store(x + (j * n + k), load(x + (j * n + k)) + 1);", "LS"},
  {"let j = arange(0, 16)[:, None]; let k = arange(0, 8)[None, :]; store(z + (j * n + k), load(x + (j * n + k)) + load(z + (j * n + (7 - k))));", "LL|S"},
  {"let j = arange(0, 16)[:, None] / 2; let k = arange(0, 8)[None, :]; store(x + (j * n + k), load(x + (j * n + k)) + 1);", "L|S"},
  {"let j = arange(0, 16)[:, None]; let k = arange(0, 8)[None, :]; for t in range(n) { store(x + (j * m + t * 8 + k), 1); }", "(S)"},
  {"let j = arange(0, 16)[:, None]; let k = arange(0, 8)[None, :]; for t in range(n) { store(x + (j * m + t * 7 + k), 1); }", "(|S)"},
  {"let j = arange(0, 16)[:, None]; let k = arange(0, 8)[None, :]; for t in range(n) { store(x + ((t * 16 + j) * m + k), 1); }", "(S)"},
  {"let j = arange(0, 16)[:, None]; let k = arange(0, 8)[None, :]; for t in range(n) { store(x + ((t * 15 + j) * m + k), 1); }", "(|S)"},
  {"for k in range(n) { store(x + load(z + (k * 128 + i)), k); }", "(L|S)"},                     /* places that are looked up */
  {"for k in range(n) { let s = load(z + k); store(x + (k * s + i), k); }", "(L|S)"},            /* no stride: it changes */
  /* arms, calls */
  {"if n > 0 { store(x + i, 1); } else { store(x + (128 + i), 1); } store(z + i, load(x + (127 - i)));", "(SS)|LS"},
  {"if n > 0 { store(x + (256 + i), 1); } else { store(x + (128 + i), 1); } store(z + i, load(x + (127 - i)));", "(SS)LS"},
  {"store(x + i, 1); if n > 0 { store(z + i, load(x + (127 - i))); }", "S(|LS)"},
  {"store(x + i, 1); if n > 0 { barrier(); } store(z + i, load(x + (127 - i)));", "S(|)|LS"},
  {"store(x + i, 1); if n > 0 { barrier(); } else { barrier(); } store(z + i, load(x + (127 - i)));", "S(||)LS"},
  {"store(x + i, 1); barrier(); store(z + i, load(x + (127 - i)));", "S|LS"},
  {"put(x, i, 1); put(z, i, got(x, 127 - i));", "S|LS"},
  {"put(x, i, 1); put(z, i, got(x, i));", "SLS"},
  /* asynchronous copies: in flight their source is promised to stay; landed, others' copies may not have */
  {"let s = shared(i32, 128, layout=swizzled()); store(x + i, 1); async_copy(s, x + i); async_commit(); async_wait(0);", "S|Cw"},
  {"let s = shared(i32, 128, layout=swizzled()); async_copy(s, x + i); async_commit(); async_wait(0); store(x + i, 1);", "Cw|S"},
  {"let s = shared(i32, 128, layout=swizzled()); async_copy(s, x + i); async_commit(); store(x + 128 + i, 1); async_wait(0);", "CSw"},
  {"let s = shared(i32, 128, layout=swizzled()); async_copy(s, x + i); async_commit(); store(x + load(z + i), 1); async_wait(0);", "CLSw"},
  {"let s = shared(i32, 128, layout=swizzled(), count=2); async_copy(s[0], x + i); async_commit(); async_copy(s[1], x + 128 + i); async_commit();"
   "async_wait(1); store(x + i, 1); async_wait(0);", "CCw|Sw"},
};

/* ---- what became of a body ---- */

static void sketch(Buf *out, const Block *b);

static void
sketch_op(Buf *out, const Op *op)
{
  switch (op->code) {
  case OP_STORE: buf_putc(out, 'S'); break;
  case OP_LOAD: buf_putc(out, 'L'); break;
  case OP_ATOMIC_RMW: case OP_ATOMIC_CAS: buf_putc(out, 'A'); break;
  case OP_ASYNC_COPY: buf_putc(out, 'C'); break;
  case OP_ASYNC_WAIT: buf_putc(out, 'w'); break;
  case OP_BARRIER: buf_putc(out, '|'); break;
  case OP_FOR: case OP_WHILE: case OP_IF:
    buf_putc(out, '(');
    for (u32 r = 0; r < op->nregions; r++)
      sketch(out, op->regions[r]);
    buf_putc(out, ')');
    break;
  default: break;
  }
}

static void
sketch(Buf *out, const Block *b)
{
  for (const Op *op = b->first; op; op = op->next)
    sketch_op(out, op);
}

/* The scheduled kernel of a body; NULL after complaining. */
static Func *
compile(Ctx *c, const char *body, bool same)
{
  static const char head[] = "fn put(p, i, v) { store(p + i, v); }\nfn got(p, i) { return load(p + i); }\n"
                             "kernel k(x: *i32, y: *i32, z: *i32, n: i32, m: i32) warps(4) {\n  let i = arange(0, 128);\n";
  const char *text = arena_printf(c->perm, "%s%s\n}\n", head, body);
  FrontendFact fact = {"z", FACT_SAME, 0, "x"};
  FrontendOptions o = {.facts = &fact, .nfacts = same};
  PassOptions p = {.stop = PHASE_SCHED, .verify = true};
  Module *m = frontend_compile(c, source_add(c, SOURCE_PROGRAM, "row.tile", text, strlen(text)), &o);
  if (m && passes_run(c, m, &p))
    return m->funcs.data[0];
  Buf b = {.arena = c->perm};
  diag_render(c, &b, false, false);
  fprintf(stderr, "%s\n%s", body, buf_str(&b));
  return NULL;
}

static void
test_row(const Row *r)
{
  Ctx *c = ctx_new();
  c->target = target_find("sm_90a");
  bool same = *r->body == '=';
  Func *f = setjmp(c->panic) ? NULL : (c->panic_set = true, compile(c, r->body + same, same));
  Buf got = {.arena = c->perm};
  if (f)
    sketch(&got, f->body);
  if ((!f || (r->want && strcmp(buf_str(&got), r->want) != 0)) && ++failures < 60)
    fprintf(stderr, "%s\n  is %s, not %s\n", r->body, f ? buf_str(&got) : "no kernel", r->want ? r->want : "?");
  ctx_free(c);
}

int
main(void)
{
  for (u32 i = 0; i < COUNT(rows); i++)
    test_row(&rows[i]);
  return failures != 0;
}
