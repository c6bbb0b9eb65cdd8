/* facts.c - what the asynchronous machinery of sm_90a does where its manual leaves room, asked of a device by small kernels in PTX.
 *
 *   facts sim FILE       the simulator's answers are those that FILE has (facts.txt)
 *   facts both [FILE]    those of the simulator and of a GPU, word by word; exit status 1 if any differ. FILE gets the GPU's: of each fact its
 *                        name in 32 bytes, and its words
 *   facts sim | cuda     answers of one device, as lines of FILE
 *   facts ptx NAME       the kernel
 *
 * A fact is a kernel and what it leaves behind: 16 KB of shared memory after the copy of a box, of global memory after one the other way, or the
 * sums of a product. Kernels wait a bounded time: bytes that never come are part of the answer. A GPU is asked by a process for each fact, as a
 * fault takes the device from all that the process does later, and may be the answer: its digest is 0. Rows of FILE: name, digest, and whether
 * a device has confirmed it. */
#include "tilert.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 16384, WORDS = BYTES / 4, TEXT = 16384, FLAG = WORDS, ANSWER = WORDS + 1, SHOWN = 6 };
/* CUtensorMapDataType */
enum { U8 = 0, U16 = 1, U32 = 2, F16 = 6, F32 = 7, F64 = 8, BF16 = 9, F32_FTZ = 10, TF32 = 11, TF32_FTZ = 12 };

typedef enum Kind { LOAD, PIXELS, STORE, PRODUCT } Kind;
typedef enum Data { COUNT, EDGES_F32, EDGES_F16, PAIRS_F16, SPREAD, LARGE } Data;

typedef struct Fact {
  const char *name;
  Kind kind;
  Data data;
  int32_t type, swizzle, fill;
  uint32_t rank, box[5], steps[5];
  uint64_t extents[5], strides[4];
  int32_t at[5];
  uint32_t bytes;            /* announced */
  const char *text;          /* of a STORE: the reduction, "" for none; of a PRODUCT: the shape and types; of PIXELS: the offsets */
  uint32_t offset;           /* of the box in shared memory */
  int32_t lower[3], upper[3];
  uint32_t channels, pixels;
  uint64_t left, right;      /* of a PRODUCT: its descriptors but for the addresses */
  const char *tail;          /* of a PRODUCT: what stands behind the descriptors */
  uint32_t sum;              /* of a PRODUCT: what is added to, 1.0 if 0 */
  const char *lanes;         /* of a sparse PRODUCT: the selector of the lanes that give metadata */
} Fact;

#define HALVES(n) .rank = 2, .extents = {n, 64}, .strides = {256}, .steps = {1, 1}      /* rows of 256 bytes, n elements of them */
#define ROW128 HALVES(64)
#define IMAGES(step) .rank = 4, .lower = {-1, -1}, .upper = {-1, -1}, .extents = {8, 6, 6, 3}, .strides = {32, 192, 1152}, .steps = {1, step, step, 1}
#define DESC(leading, stride, mode) ((uint64_t)(mode) << 62 | (uint64_t)((stride) >> 4) << 32 | (uint64_t)((leading) >> 4) << 16)

static const Fact facts[] = {
  /* Numbers that maps change on the way in. */
  {"load.tf32", LOAD, EDGES_F32, TF32, .box = {32, 8}, .bytes = 1024, ROW128},
  {"load.tf32_ftz", LOAD, EDGES_F32, TF32_FTZ, .box = {32, 8}, .bytes = 1024, ROW128},
  {"load.f32_ftz", LOAD, EDGES_F32, F32_FTZ, .box = {32, 8}, .bytes = 1024, ROW128},
  {"load.f32", LOAD, EDGES_F32, F32, .box = {32, 8}, .bytes = 1024, ROW128},
  {"load.f16", LOAD, EDGES_F16, F16, .box = {64, 8}, .bytes = 1024, HALVES(128)},
  /* What is outside. */
  {"fill.nan_f16", LOAD, COUNT, F16, .fill = 1, .box = {64, 8}, .bytes = 1024, .at = {-8, -2}, HALVES(64)},
  {"fill.nan_bf16", LOAD, COUNT, BF16, .fill = 1, .box = {64, 8}, .bytes = 1024, .at = {56, 60}, HALVES(64)},
  {"fill.nan_f16_end", LOAD, COUNT, F16, .fill = 1, .box = {64, 8}, .bytes = 1024, .at = {56, 60}, HALVES(64)},
  {"fill.nan_bf16_begin", LOAD, COUNT, BF16, .fill = 1, .box = {64, 8}, .bytes = 1024, .at = {-8, -2}, HALVES(64)},
  {"fill.zero_bf16_end", LOAD, COUNT, BF16, .box = {64, 8}, .bytes = 1024, .at = {56, 60}, HALVES(64)},
  {"fill.nan_f32", LOAD, COUNT, F32, .fill = 1, .box = {32, 8}, .bytes = 1024, .at = {-4, 0}, ROW128},
  {"fill.nan_tf32", LOAD, COUNT, TF32, .fill = 1, .box = {32, 8}, .bytes = 1024, .at = {-4, 0}, ROW128},
  {"fill.nan_f64", LOAD, COUNT, F64, .fill = 1, .box = {16, 8}, .bytes = 1024, .at = {30, 0}, .rank = 2, .extents = {32, 64}, .strides = {256}, .steps = {1, 1}},
  {"fill.zero", LOAD, COUNT, F32, .box = {32, 8}, .bytes = 1024, .at = {52, 60}, ROW128},
  {"fill.nothing_inside", LOAD, COUNT, F32, .box = {32, 8}, .bytes = 1024, .at = {64, 64}, ROW128},
  /* From the middle of 16 bytes. */
  {"begin.load", LOAD, COUNT, F16, .box = {64, 8}, .bytes = 1024, .at = {60, 0}, HALVES(64)},
  {"begin.store", STORE, COUNT, F32, .text = "", .box = {32, 8}, .at = {5, 0}, ROW128},
  {"begin.pixels", PIXELS, COUNT, F32, .bytes = 16 * 4 * 4, .channels = 4, .pixels = 16, .text = "{1, 2}", .at = {2, -1, -1, 0}, IMAGES(1)},
  /* Swizzles: rows narrower than the pattern, boxes that do not begin where it does. */
  {"swizzle.128", LOAD, COUNT, F32, .swizzle = 3, .box = {32, 16}, .bytes = 2048, ROW128},
  {"swizzle.128_rows_of_64", LOAD, COUNT, F32, .swizzle = 3, .box = {16, 16}, .bytes = 1024, ROW128},
  {"swizzle.128_rows_of_32", LOAD, COUNT, F32, .swizzle = 3, .box = {8, 16}, .bytes = 512, ROW128},
  {"swizzle.128_rows_of_48", LOAD, COUNT, F32, .swizzle = 3, .box = {12, 16}, .bytes = 768, ROW128},
  {"swizzle.64_rows_of_16", LOAD, COUNT, F32, .swizzle = 2, .box = {4, 32}, .bytes = 512, ROW128},
  {"swizzle.32_rows_of_16", LOAD, COUNT, F32, .swizzle = 1, .box = {4, 32}, .bytes = 512, ROW128},
  {"swizzle.128_from_128", LOAD, COUNT, F32, .swizzle = 3, .box = {32, 16}, .bytes = 2048, .offset = 128, ROW128},
  {"swizzle.64_from_128", LOAD, COUNT, F32, .swizzle = 2, .box = {16, 16}, .bytes = 1024, .offset = 128, ROW128},
  {"swizzle.32_from_384", LOAD, COUNT, F32, .swizzle = 1, .box = {8, 16}, .bytes = 512, .offset = 384, ROW128},
  /* Steps: elements copied, and bytes that count. */
  {"steps.rows", LOAD, COUNT, F32, .box = {32, 16}, .bytes = 1024, .rank = 2, .extents = {64, 64}, .strides = {256}, .steps = {1, 2}},
  {"steps.rows_odd", LOAD, COUNT, F32, .box = {32, 15}, .bytes = 512, .rank = 2, .extents = {64, 64}, .strides = {256}, .steps = {1, 4}},
  {"steps.first", LOAD, COUNT, F32, .box = {32, 8}, .bytes = 1024, .rank = 2, .extents = {64, 64}, .strides = {256}, .steps = {2, 1}},
  {"steps.past_end", LOAD, COUNT, F32, .box = {32, 16}, .bytes = 1024, .at = {0, 57}, .rank = 2, .extents = {64, 64}, .strides = {256}, .steps = {1, 2}},
  /* Ranks. */
  {"rank.1", LOAD, COUNT, F32, .box = {64}, .bytes = 256, .at = {4088}, .rank = 1, .extents = {4096}, .steps = {1}},
  {"rank.3", LOAD, COUNT, F32, .box = {8, 4, 4}, .bytes = 512, .at = {4, -1, 6}, .rank = 3, .extents = {16, 8, 8}, .strides = {64, 512}, .steps = {1, 1, 1}},
  {"rank.5", LOAD, COUNT, U16, .box = {8, 2, 2, 2, 2}, .bytes = 256, .at = {0, 1, 0, -1, 1}, .rank = 5, .extents = {8, 4, 4, 4, 4}, .strides = {16, 64, 256, 1024}, .steps = {1, 1, 1, 1, 1}},
  /* Pixels (im2col): channels, width, height, images. */
  {"pixels.all", PIXELS, COUNT, F32, .bytes = 16 * 4 * 4, .channels = 4, .pixels = 16, .text = "{1, 2}", .at = {0, -1, -1, 0}, IMAGES(1)},
  {"pixels.wrap", PIXELS, COUNT, F32, .bytes = 64 * 4 * 4, .channels = 4, .pixels = 64, .text = "{0, 0}", .at = {4, 3, 2, 1}, IMAGES(1)},
  {"pixels.steps", PIXELS, COUNT, F32, .bytes = 16 * 4 * 4, .channels = 4, .pixels = 16, .text = "{2, 0}", .at = {0, -1, -1, 0}, IMAGES(2)},
  {"pixels.swizzle", PIXELS, COUNT, F32, .swizzle = 1, .bytes = 16 * 8 * 4, .channels = 8, .pixels = 16, .text = "{1, 1}", .at = {0, -1, -1, 0}, IMAGES(1)},
  /* The other way: rows that end within 16 bytes, and what is added. */
  {"store.plain", STORE, COUNT, F32, .text = "", .box = {32, 8}, .at = {8, 60}, ROW128},
  {"store.rows_of_61", STORE, COUNT, F32, .text = "", .box = {32, 8}, .at = {40, 0}, .rank = 2, .extents = {61, 64}, .strides = {256}, .steps = {1, 1}},
  {"store.tf32", STORE, EDGES_F32, TF32, .text = "", .box = {32, 8}, ROW128},
  {"store.swizzle", STORE, COUNT, F32, .swizzle = 3, .text = "", .box = {32, 8}, ROW128},
  {"add.f32", STORE, EDGES_F32, F32, .text = "add", .box = {32, 8}, ROW128},
  {"add.f16", STORE, EDGES_F16, F16, .text = "add", .box = {64, 8}, HALVES(128)},
  {"add.bf16", STORE, EDGES_F16, BF16, .text = "add", .box = {64, 8}, HALVES(128)},
  {"min.f16", STORE, EDGES_F16, F16, .text = "min", .box = {64, 8}, HALVES(128)},
  {"max.bf16", STORE, EDGES_F16, BF16, .text = "max", .box = {64, 8}, HALVES(128)},
  {"min.f16_pairs", STORE, PAIRS_F16, F16, .text = "min", .box = {64, 8}, HALVES(128)},
  {"max.f16_pairs", STORE, PAIRS_F16, F16, .text = "max", .box = {64, 8}, HALVES(128)},
  {"inc.u32", STORE, COUNT, U32, .text = "inc", .box = {32, 8}, ROW128},
  /* Products: strides of descriptors, and how sums are rounded. */
  {"product.k_128", PRODUCT, SPREAD, .text = "m64n16k16.f32.f16.f16", .left = DESC(16, 1024, 1), .right = DESC(16, 1024, 1), .tail = "1, 1, 1, 0, 0"},
  {"product.k_plain", PRODUCT, SPREAD, .text = "m64n16k16.f32.f16.f16", .left = DESC(128, 256, 0), .right = DESC(128, 256, 0), .tail = "1, 1, 1, 0, 0"},
  {"product.mn_plain", PRODUCT, SPREAD, .text = "m64n16k16.f32.f16.f16", .left = DESC(256, 128, 0), .right = DESC(256, 128, 0), .tail = "1, 1, 1, 1, 1"},
  {"product.mn_plain_other", PRODUCT, SPREAD, .text = "m64n16k16.f32.f16.f16", .left = DESC(128, 1024, 0), .right = DESC(128, 256, 0), .tail = "1, 1, 1, 1, 1"},
  {"product.mn_128", PRODUCT, SPREAD, .text = "m64n16k16.f32.f16.f16", .left = DESC(1024, 2048, 1), .right = DESC(1024, 2048, 1), .tail = "1, 1, 1, 1, 1"},
  {"product.minus", PRODUCT, SPREAD, .text = "m64n16k16.f32.bf16.bf16", .left = DESC(128, 256, 0), .right = DESC(128, 256, 0), .tail = "1, -1, 1, 0, 0"},
  {"product.tf32", PRODUCT, EDGES_F32, .text = "m64n16k8.f32.tf32.tf32", .left = DESC(128, 256, 0), .right = DESC(128, 256, 0), .tail = "1, 1, 1"},
  {"product.e4m3", PRODUCT, SPREAD, .text = "m64n16k32.f32.e4m3.e4m3", .left = DESC(128, 256, 0), .right = DESC(128, 256, 0), .tail = "1, 1, 1"},
  {"product.e5m2", PRODUCT, SPREAD, .text = "m64n16k32.f32.e5m2.e5m2", .left = DESC(128, 256, 0), .right = DESC(128, 256, 0), .tail = "1, 1, 1"},
  /* Whether the largest exponent is that of a product or the sum of those of its factors; a zero's; what is cut off of the sum before. */
  {"product.large_f16", PRODUCT, LARGE, .text = "m64n16k16.f32.f16.f16", .left = DESC(128, 256, 0), .right = DESC(128, 256, 0), .tail = "1, 1, 1, 0, 0", .sum = 0x3eaaaaab},
  {"product.large_e4m3", PRODUCT, LARGE, .text = "m64n16k32.f32.e4m3.e4m3", .left = DESC(128, 256, 0), .right = DESC(128, 256, 0), .tail = "1, 1, 1", .sum = 0x3eaaaaab},
  /* Sparse: whose metadata, of which rows and columns; how far B goes on along K and across it; how many products are added at once. */
  {"product.sparse_k_128", PRODUCT, SPREAD, .text = "m64n16k32.f32.f16.f16", .left = DESC(16, 1024, 1), .right = DESC(16, 1024, 1), .tail = "1, 1, 1, 0, 0", .lanes = "0"},
  {"product.sparse_k_plain", PRODUCT, SPREAD, .text = "m64n16k32.f32.f16.f16", .left = DESC(128, 256, 0), .right = DESC(128, 512, 0), .tail = "1, 1, 1, 0, 0", .lanes = "1"},
  {"product.sparse_mn_plain", PRODUCT, SPREAD, .text = "m64n16k32.f32.f16.f16", .left = DESC(128, 256, 0), .right = DESC(256, 128, 0), .tail = "1, 1, 1, 0, 1", .lanes = "0"},
  {"product.sparse_mn_128", PRODUCT, SPREAD, .text = "m64n16k32.f32.f16.f16", .left = DESC(16, 1024, 1), .right = DESC(1024, 1024, 1), .tail = "1, 1, 1, 0, 1", .lanes = "1"},
  {"product.sparse_e4m3", PRODUCT, SPREAD, .text = "m64n16k64.f32.e4m3.e4m3", .left = DESC(128, 256, 0), .right = DESC(128, 512, 0), .tail = "1, 1, 1", .lanes = "0"},
  {"product.sparse_large_f16", PRODUCT, LARGE, .text = "m64n16k32.f32.f16.f16", .left = DESC(128, 256, 0), .right = DESC(128, 512, 0), .tail = "1, 1, 1, 0, 0", .sum = 0x3eaaaaab, .lanes = "0"},
  {"product.sparse_large_e4m3", PRODUCT, LARGE, .text = "m64n16k64.f32.e4m3.e4m3", .left = DESC(128, 256, 0), .right = DESC(128, 512, 0), .tail = "1, 1, 1", .sum = 0x3eaaaaab, .lanes = "0"},
  {"product.sum_e4m3", PRODUCT, SPREAD, .text = "m64n16k32.f32.e4m3.e4m3", .left = DESC(128, 256, 0), .right = DESC(128, 256, 0), .tail = "1, 1, 1", .sum = 0x42aaaaab},
};

/* ---- kernels ---- */

typedef struct Text { char s[TEXT]; size_t n; } Text;

static void __attribute__((format(printf, 2, 3)))
put(Text *t, const char *format, ...)
{
  va_list a;
  va_start(a, format);
  int n = vsnprintf(t->s + t->n, TEXT - t->n, format, a);
  va_end(a);
  t->n += n > 0 ? (size_t)n : 0;
}

static void
begin(Text *t, uint32_t threads)
{
  put(t, ".version 8.4\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 box[];\n"
         ".visible .entry fact(.param .align 64 .b8 fact_param_0[128], .param .u64 fact_param_1, .param .u64 fact_param_2)\n.reqntid %u\n{\n"
         "  .reg .pred %%p<8>;\n  .reg .b32 %%r<40>;\n  .reg .b64 %%d<16>;\n"
         "  mov.u32 %%r1, %%tid.x;\n  setp.eq.s32 %%p1, %%r1, 0;\n  shl.b32 %%r2, %%r1, 2;\n  mov.u32 %%r3, box;\n"
         "  mov.b64 %%d1, fact_param_0;\n  cvta.param.u64 %%d1, %%d1;\n  ld.param.u64 %%d2, [fact_param_1];\n  cvta.to.global.u64 %%d2, %%d2;\n"
         "  ld.param.u64 %%d3, [fact_param_2];\n  cvta.to.global.u64 %%d3, %%d3;\n", threads);
}

/* for each word of shared memory, by turns of the threads: %r6 is its address, %d4 and %d5 the words of the two global arrays. */
static void
each_word(Text *t, uint32_t threads, const char *label, const char *what)
{
  put(t, "  mov.u32 %%r5, %%r2;\n%s:\n  add.s32 %%r6, %%r3, %%r5;\n  cvt.u64.u32 %%d6, %%r5;\n  add.s64 %%d4, %%d2, %%d6;\n  add.s64 %%d5, %%d3, %%d6;\n"
         "  %s\n  add.s32 %%r5, %%r5, %u;\n  setp.lt.s32 %%p2, %%r5, %d;\n  @%%p2 bra %s;\n", label, what, 4 * threads, BYTES, label);
}

static void
coordinates(Text *t, const Fact *f)
{
  for (uint32_t d = 0; d < f->rank; d++)
    put(t, "  mov.u32 %%r%u, %d;\n", 20 + d, f->at[d]);
}

static void
coordinate_list(Text *t, const Fact *f)
{
  for (uint32_t d = 0; d < f->rank; d++)
    put(t, "%s%%r%u", d ? ", " : "{", 20 + d);
  put(t, "}");
}

/* 16 KB of 0xee, the copy, a bounded wait; what is there then, and whether the phase had ended. */
static void
load_text(Text *t, const Fact *f)
{
  begin(t, 32);
  each_word(t, 32, "FILL", "st.shared.b32 [%r6], -286331154;");
  coordinates(t, f);
  put(t, "  @%%p1 mbarrier.init.shared.b64 [box+%d], 1;\n  fence.proxy.async;\n  bar.sync 0;\n", BYTES);
  put(t, "  mov.u32 %%r8, %u;\n  @%%p1 mbarrier.arrive.expect_tx.shared.b64 _, [box+%d], %%r8;\n  add.s32 %%r7, %%r3, %u;\n  add.s32 %%r9, %%r3, %d;\n", f->bytes, BYTES, f->offset, BYTES);
  put(t, "  @%%p1 cp.async.bulk.tensor.%ud.shared::cluster.global.%s.mbarrier::complete_tx::bytes [%%r7], [%%d1, ", f->rank, f->kind == PIXELS ? "im2col" : "tile");
  coordinate_list(t, f);
  put(t, "], [%%r9]%s%s;\n", f->kind == PIXELS ? ", " : "", f->kind == PIXELS ? f->text : "");
  put(t, "  mov.u32 %%r10, 0;\nWAIT:\n  mbarrier.test_wait.parity.shared.b64 %%p3, [box+%d], 0;\n  add.s32 %%r10, %%r10, 1;\n  setp.lt.s32 %%p4, %%r10, 200000;\n"
         "  not.pred %%p5, %%p3;\n  and.pred %%p4, %%p4, %%p5;\n  @%%p4 bra WAIT;\n  bar.sync 0;\n", BYTES);
  each_word(t, 32, "DUMP", "ld.shared.b32 %r11, [%r6]; st.global.b32 [%d4], %r11;");
  put(t, "  selp.b32 %%r12, 1, 0, %%p3;\n  @%%p1 st.global.b32 [%%d2+%d], %%r12;\n  ret;\n}\n", BYTES);
}

static void
store_text(Text *t, const Fact *f)
{
  bool adds = f->text[0];
  begin(t, 32);
  each_word(t, 32, "FILL", "ld.global.b32 %r11, [%d5]; st.shared.b32 [%r6], %r11;");
  coordinates(t, f);
  put(t, "  fence.proxy.async;\n  bar.sync 0;\n  @%%p1 cp.%sasync.bulk.tensor.%ud.global.shared::cta%s%s.tile.bulk_group [%%d1, ", adds ? "reduce." : "", f->rank, adds ? "." : "", f->text);
  coordinate_list(t, f);
  put(t, "], [%%r3];\n  cp.async.bulk.commit_group;\n  cp.async.bulk.wait_group 0;\n  ret;\n}\n");
}

/* Metadata in %r14, another word for each lane of four: six pairs of places, turned by a group of four for each four lanes. */
static void
metadata(Text *t)
{
  put(t, "  and.b32 %%r12, %%r1, 3;\n  mov.b32 %%r14, 0x4e9dc848;\n");
  for (int i = 1; i < 4; i++)
    put(t, "  setp.eq.s32 %%p2, %%r12, %d;\n  @%%p2 mov.b32 %%r14, 0x%08x;\n", i, i == 1 ? 0x84dce94eu : i == 2 ? 0xd9e48c9du : 0xc48ed94cu);
  put(t, "  shr.u32 %%r12, %%r1, 2;\n  shl.b32 %%r12, %%r12, 2;\n  shf.l.wrap.b32 %%r14, %%r14, %%r14, %%r12;\n");
}

/* A from the beginning of shared memory, B from its middle; eight sums of each of 128 threads. */
static void
product_text(Text *t, const Fact *f)
{
  begin(t, 128);
  each_word(t, 128, "FILL", "ld.global.b32 %r11, [%d5]; st.shared.b32 [%r6], %r11;");
  put(t, "  fence.proxy.async;\n  bar.sync 0;\n  .reg .f32 %%f<8>;\n");
  if (f->lanes)
    metadata(t);
  for (int i = 0; i < 8; i++)
    put(t, "  mov.f32 %%f%d, 0f%08X;\n", i, f->sum ? f->sum : 0x3f800000u);
  put(t, "  add.s32 %%r7, %%r3, %d;\n  shr.u32 %%r8, %%r3, 4;\n  shr.u32 %%r9, %%r7, 4;\n  cvt.u64.u32 %%d8, %%r8;\n  cvt.u64.u32 %%d9, %%r9;\n", BYTES / 2);
  put(t, "  or.b64 %%d8, %%d8, %" PRIu64 ";\n  or.b64 %%d9, %%d9, %" PRIu64 ";\n  wgmma.fence.sync.aligned;\n", f->left, f->right);
  put(t, "  wgmma.mma_async%s.sync.aligned.%s {%%f0, %%f1, %%f2, %%f3, %%f4, %%f5, %%f6, %%f7}, %%d8, %%d9, %s%s%s%s;\n", f->lanes ? ".sp" : "", f->text,
      f->lanes ? "%r14, " : "", f->lanes ? f->lanes : "", f->lanes ? ", " : "", f->tail);
  put(t, "  wgmma.commit_group.sync.aligned;\n  wgmma.wait_group.sync.aligned 0;\n  shl.b32 %%r12, %%r1, 5;\n  cvt.u64.u32 %%d10, %%r12;\n  add.s64 %%d10, %%d2, %%d10;\n");
  for (int i = 0; i < 8; i++)
    put(t, "  st.global.f32 [%%d10+%d], %%f%d;\n", 4 * i, i);
  put(t, "  ret;\n}\n");
}

/* ---- what goes in ---- */

static uint32_t
edge_f32(uint32_t i)
{
  static const uint32_t some[] = {0x3f800fff, 0x3f801000, 0x3f801001, 0x3f803000, 0x3f802fff, 0xbf801000, 0xbf803000, 0x3f801fff, 0x7f7fffff, 0x7f800000, 0xff800000, 0x7f800001,
                                  0x7fc00000, 0xffc12345, 0x7fffe000, 0x00000001, 0x80000001, 0x007fffff, 0x00001000, 0x00003000, 0x00800fff, 0x80801000, 0x7f7ff000, 0x7f7fefff};
  enum { N = sizeof some / sizeof *some };
  return i < N ? some[i] : 0x3f800000 + i * 0x9e3779b9u % 0x01000000;
}

static uint32_t
edge_f16(uint32_t i)
{
  static const uint32_t some[] = {0x00003c00, 0x7c00fc00, 0x7c017e00, 0x03ff0001, 0x80008001, 0x7bff0400, 0x7bfffbff, 0x7f80ff80, 0x7f817fc0, 0x7f7fff7f, 0x0080007f};
  enum { N = sizeof some / sizeof *some };
  return i < N ? some[i] : i * 0x9e3779b9u;
}

/* Zeros of both signs and nans, of which each meets each. */
static uint32_t
pair_f16(uint32_t i)
{
  static const uint16_t some[] = {0x0000, 0x8000, 0x7e00, 0xfe01, 0x7c01, 0x0001, 0x8001};
  enum { N = sizeof some / sizeof *some };
  return some[i % N] | (uint32_t)some[i / N % N] << 16;
}

/* Factors of 16 or 8 bits with exponents that are far apart, so that sums are rounded; none of them is an infinity or a nan. */
static uint32_t
spread(uint32_t i)
{
  uint32_t x = i * 0x9e3779b9u ^ i * 0x85ebca6bu >> 7;
  return x & 0xbfbfbfbf & ~0x20202020u;
}

/* Such of which some are larger than the sum, up to just below 4 (f16), or zero. */
static uint32_t
large(uint32_t i)
{
  uint32_t x = spread(i), kind = i * 0x9e3779b9u >> 29;
  return kind == 0 ? x | 0x3f003f00u : kind == 1 ? x & 0xffff0000u : x;
}

static uint32_t
word(const Fact *f, uint32_t i)
{
  switch (f->data) {
  case EDGES_F32: return edge_f32(i % 512);
  case EDGES_F16: return edge_f16(i % 512);
  case PAIRS_F16: return pair_f16(i % 512);
  case SPREAD: return spread(i);
  case LARGE: return large(i);
  default: return f->type == U16 || f->type == F16 || f->type == BF16 ? (2 * i + 1) << 16 | 2 * i : 0x10000 + i;
  }
}

/* What a STORE finds where it stores. */
static uint32_t
before(const Fact *f, uint32_t i)
{
  return f->data == COUNT ? 0x01010101u * (i % 5) : word(f, i * 37 % 512);
}

/* ---- asking ---- */

typedef struct Answer { uint32_t words[ANSWER]; char error[512]; } Answer;

static int
encode(TilertDevice *dev, const Fact *f, TilertBuffer *at, void *map, TilertError *err)
{
  TilertTensor t = {.type = f->type, .swizzle = f->swizzle, .fill = f->fill, .rank = f->rank, .address = tilert_buffer_address(at),
                    .extents = f->extents, .strides = f->strides, .box = f->box, .steps = f->steps};
  TilertPixels p = {f->lower, f->upper, f->channels, f->pixels};
  return f->kind == PIXELS ? tilert_tensor_map_im2col(dev, &t, &p, map, err) : tilert_tensor_map(dev, &t, map, err);
}

static int
launch(TilertDevice *dev, TilertStream *s, const Fact *f, TilertKernel *k, TilertBuffer *const *buffers, TilertError *err)
{
  _Alignas(64) uint8_t map[128] = {0};
  int rc = f->kind == PRODUCT ? TILERT_OK : encode(dev, f, f->kind == STORE ? buffers[0] : buffers[1], map, err);
  TilertArg args[] = {{TILERT_ARG_BYTES, 0, {.bytes = map}}, {TILERT_ARG_BUFFER, 0, {.buffer = buffers[0]}}, {TILERT_ARG_BUFFER, 0, {.buffer = buffers[1]}}};
  const uint32_t grid[] = {1, 1, 1}, block[] = {f->kind == PRODUCT ? 128 : 32, 1, 1};
  rc = rc ? rc : tilert_launch_shaped(s, k, grid, block, BYTES + 64, args, 3, err);
  return rc ? rc : tilert_stream_synchronize(s, err);
}

static void
write_text(const Fact *f, Text *t)
{
  t->n = 0;
  (f->kind == STORE ? store_text : f->kind == PRODUCT ? product_text : load_text)(t, f);
}

static int
run(TilertDevice *dev, const Fact *f, TilertStream *s, TilertModule **m, TilertBuffer **buffers, Answer *a, TilertError *err)
{
  static Text t;
  static uint32_t in[WORDS];
  TilertManifest man;
  TilertKernel *k;
  size_t n;
  write_text(f, &t);
  for (uint32_t i = 0; i < WORDS; i++) {
    in[i] = word(f, i);
    a->words[i] = f->kind == STORE ? before(f, i) : 0;
  }
  int rc = tilert_manifest_derive(t.s, t.n, &man, 1, &n, err);
  rc = rc ? rc : tilert_module_load(dev, t.s, t.n, &man, 1, m, err);
  rc = rc ? rc : tilert_module_kernel(*m, "fact", &k, err);
  rc = rc ? rc : tilert_buffer_create(dev, sizeof a->words, &buffers[0], err);
  rc = rc ? rc : tilert_buffer_create(dev, sizeof in, &buffers[1], err);
  rc = rc ? rc : tilert_buffer_write(buffers[0], 0, a->words, sizeof a->words, s, err);
  rc = rc ? rc : tilert_buffer_write(buffers[1], 0, in, sizeof in, s, err);
  rc = rc ? rc : launch(dev, s, f, k, buffers, err);
  return rc ? rc : tilert_buffer_read(buffers[0], 0, a->words, sizeof a->words, s, err);
}

static void
ask(TilertDevice *dev, const Fact *f, Answer *a)
{
  TilertError err = {0};
  TilertStream *s = NULL;
  TilertModule *m = NULL;
  TilertBuffer *buffers[2] = {0};
  memset(a, 0, sizeof *a);
  int rc = tilert_stream_create(dev, &s, &err);
  rc = rc ? rc : run(dev, f, s, &m, buffers, a, &err);
  if (rc)
    snprintf(a->error, sizeof a->error, "%s", err.message);
  for (int i = 0; i < 2; i++)
    tilert_buffer_destroy(buffers[i]);
  tilert_module_destroy(m);
  tilert_stream_destroy(s);
}

/* A device of its own for the fact. */
static void
ask_afresh(const char *spec, const Fact *f, Answer *a)
{
  TilertError err = {0};
  TilertDevice *dev = NULL;
  memset(a, 0, sizeof *a);
  if (tilert_device_open(spec, NULL, &dev, &err))
    snprintf(a->error, sizeof a->error, "%s", err.message);
  else
    ask(dev, f, a);
  tilert_device_close(dev);
}

/* ask_afresh in a process of its own. */
static void
ask_apart(const char *spec, const Fact *f, Answer *a)
{
  int ends[2], status;
  memset(a, 0, sizeof *a);
  snprintf(a->error, sizeof a->error, "the process that asked ended without an answer");
  fflush(stdout);
  if (pipe(ends))
    return;
  pid_t child = fork();
  if (!child) {
    ask_afresh(spec, f, a);
    for (size_t n = 0, more; n < sizeof *a; n += more) {
      ssize_t put = write(ends[1], (char *)a + n, sizeof *a - n);
      more = put > 0 ? (size_t)put : sizeof *a;
    }
    _exit(0);
  }
  close(ends[1]);
  static Answer got;
  size_t n = 0;
  for (ssize_t more; child > 0 && n < sizeof got && (more = read(ends[0], (char *)&got + n, sizeof got - n)) > 0;)
    n += (size_t)more;
  close(ends[0]);
  if (child > 0)
    waitpid(child, &status, 0);
  if (n == sizeof got)
    *a = got;
}

static uint64_t
digest(const Answer *a)
{
  uint64_t h = 0xcbf29ce484222325u;
  for (uint32_t i = 0; i < ANSWER; i++)
    h = (h ^ a->words[i]) * 0x100000001b3u;
  return a->error[0] ? 0 : h;
}

/* ---- what is said ---- */

static void
print(const char *spec, const Fact *f, const Answer *a)
{
  printf("%s %016" PRIx64 " %s%s%.*s\n", f->name, digest(a), strcmp(spec, "sim") ? "seen" : "-", a->error[0] ? " " : "", (int)strcspn(a->error, "\n"), a->error);
}

/* The line of a file that begins with the name: its digest, or NULL. */
static const char *
kept(const char *text, const char *name)
{
  size_t n = strlen(name);
  for (const char *p = text; p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL)
    if (!strncmp(p, name, n) && p[n] == ' ')
      return p + n + 1;
  return NULL;
}

static bool
as_kept(const char *text, const Fact *f, const Answer *a)
{
  char now[32];
  const char *was = kept(text, f->name);
  snprintf(now, sizeof now, "%016" PRIx64, digest(a));
  if (was && !strncmp(was, now, 16))
    return true;
  printf("%s: %s, and the file has %.16s %s\n", f->name, now, was ? was : "nothing", a->error);
  return false;
}

static bool
same(const Fact *f, const Answer *a, const Answer *b)
{
  uint32_t n = 0, differ = 0;
  for (uint32_t i = 0; i < ANSWER; i++)
    differ += a->words[i] != b->words[i];
  bool stop = a->error[0] && b->error[0], agree = stop || (!differ && !a->error[0] && !b->error[0]);
  printf("%-24s %s", f->name, stop ? "both stop\n" : agree ? "agree\n" : "");
  if (agree)
    return true;
  printf("%u words differ%s%s%s%s\n", differ, a->error[0] ? "; sim: " : "", a->error, b->error[0] ? "; device: " : "", b->error);
  for (uint32_t i = 0; i < ANSWER && n < SHOWN; i++)
    if (a->words[i] != b->words[i] && ++n)
      printf("    %s %u: sim %08x, device %08x\n", i == FLAG ? "phase ended, word" : "word", i, a->words[i], b->words[i]);
  return false;
}

static char *
read_file(const char *path)
{
  FILE *in = fopen(path, "r");
  char *text = calloc(1, 1 << 16);
  if (!in || !text || !fread(text, 1, (1 << 16) - 1, in))
    fprintf(stderr, "facts: cannot read %s\n", path);
  if (in)
    fclose(in);
  return text;
}

static int
print_text(const char *name)
{
  static Text t;
  for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
    if (!strcmp(facts[i].name, name)) {
      write_text(&facts[i], &t);
      return fputs(t.s, stdout) < 0;
    }
  return 2;
}

/* Every fact of a device; of the file's answers, if there is a text. */
static bool
all_of(const char *spec, const char *text)
{
  static Answer a;
  bool right = true;
  for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
    (strcmp(spec, "sim") ? ask_apart : ask_afresh)(spec, &facts[i], &a);
    if (text)
      right &= as_kept(text, &facts[i], &a);
    else
      print(spec, &facts[i], &a);
  }
  return right;
}

static bool
compare(FILE *out)
{
  static Answer a, b;
  bool right = true;
  for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
    char name[32] = {0};
    ask_apart("cuda", &facts[i], &b);
    ask_afresh("sim", &facts[i], &a);
    right &= same(&facts[i], &a, &b);
    snprintf(name, sizeof name, "%s", facts[i].name);
    if (out)
      right &= fwrite(name, sizeof name, 1, out) && fwrite(b.words, sizeof b.words, 1, out);
  }
  return right;
}

int
main(int argc, char **argv)
{
  const char *what = argc > 1 ? argv[1] : "sim";
  if (argc == 3 && !strcmp(what, "ptx"))
    return print_text(argv[2]);
  if (!strcmp(what, "both")) {
    FILE *out = argc > 2 ? fopen(argv[2], "wb") : NULL;
    bool right = compare(out);
    return (out && fclose(out)) || !right;
  }
  char *text = argc > 2 ? read_file(argv[2]) : NULL;
  bool right = all_of(what, text);
  free(text);
  return !right;
}
