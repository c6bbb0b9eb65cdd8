/* kernels.h - hand-written PTX for the tests. */
#ifndef KERNELS_H
#define KERNELS_H

/* y[i] = a * x[i] + y[i] for i < n; one warp a block. */
static const char axpy_ptx[] =
  "//@tilec kernel=axpy warps=1 shared=0 grid=$3,32,cdiv target=sm_80 params=a:scalar:f32,x:ptr:f32,y:ptr:f32:16,n:scalar:i32\n"
  "//@tilec kernel=wild warps=1 shared=128 target=sm_80 params=p:ptr:i32,at:scalar:i32:4\n"
  ".version 7.0\n.target sm_80\n.address_size 64\n"
  ".visible .entry axpy(\n"
  "  .param .f32 axpy_0,\n  .param .u64 axpy_1,\n  .param .u64 axpy_2,\n  .param .u32 axpy_3\n)\n"
  ".maxntid 32, 1, 1\n{\n"
  "  .reg .pred %p<2>;\n  .reg .b32 %r<8>;\n  .reg .f32 %f<5>;\n  .reg .b64 %rd<8>;\n"
  "  ld.param.f32 %f1, [axpy_0];\n  ld.param.u64 %rd1, [axpy_1];\n  ld.param.u64 %rd2, [axpy_2];\n"
  "  ld.param.u32 %r1, [axpy_3];\n"
  "  mov.u32 %r2, %ctaid.x;\n  mov.u32 %r3, %ntid.x;\n  mov.u32 %r4, %tid.x;\n"
  "  mad.lo.s32 %r5, %r2, %r3, %r4;\n  setp.ge.s32 %p1, %r5, %r1;\n  @%p1 bra $done;\n"
  "  mul.wide.s32 %rd3, %r5, 4;\n  add.s64 %rd4, %rd1, %rd3;\n  add.s64 %rd5, %rd2, %rd3;\n"
  "  ld.global.f32 %f2, [%rd4];\n  ld.global.f32 %f3, [%rd5];\n  fma.rn.f32 %f4, %f1, %f2, %f3;\n"
  "  st.global.f32 [%rd5], %f4;\n$done:\n  ret;\n}\n"
  ".visible .entry wild(\n  .param .u64 wild_0,\n  .param .u32 wild_1\n)\n{\n"
  "  .reg .b32 %r<4>;\n  .reg .b64 %rd<4>;\n"
  "  .loc 1 7 3\n"
  "  ld.param.u64 %rd1, [wild_0];\n  ld.param.u32 %r1, [wild_1];\n  mul.wide.s32 %rd2, %r1, 4;\n"
  "  add.s64 %rd3, %rd1, %rd2;\n  mov.u32 %r2, 5;\n  st.global.u32 [%rd3], %r2;\n  ret;\n}\n"
  "  .file 1 \"wild.tile\"\n";

/* p = the grid that it is told, and how many blocks run. */
static const char told_ptx[] =
  "//@tilec kernel=told warps=1 shared=0 persistent=2 target=sm_80 "
  "params=p:ptr:i32,grid:grid:i32:axis=0,grid:grid:i32:axis=1,grid:grid:i32:axis=2\n"
  ".version 7.0\n.target sm_80\n.address_size 64\n"
  ".visible .entry told(\n  .param .u64 told_0,\n  .param .u32 told_1,\n  .param .u32 told_2,\n  .param .u32 told_3\n)\n"
  ".maxntid 32, 1, 1\n{\n  .reg .pred %p<2>;\n  .reg .b32 %r<8>;\n  .reg .b64 %rd<2>;\n"
  "  ld.param.u64 %rd1, [told_0];\n  ld.param.u32 %r1, [told_1];\n  ld.param.u32 %r2, [told_2];\n  ld.param.u32 %r3, [told_3];\n"
  "  mov.u32 %r4, %nctaid.x;\n  mov.u32 %r5, %tid.x;\n  mov.u32 %r6, %ctaid.x;\n  or.b32 %r5, %r5, %r6;\n"
  "  setp.ne.s32 %p1, %r5, 0;\n  @%p1 bra $done;\n"
  "  st.global.u32 [%rd1], %r1;\n  st.global.u32 [%rd1+4], %r2;\n  st.global.u32 [%rd1+8], %r3;\n  st.global.u32 [%rd1+12], %r4;\n"
  "$done:\n  ret;\n}\n";
#endif
