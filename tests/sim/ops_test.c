/* ops_test.c - single instructions. Every row is a kernel of one thread: x, y and z are in %r1 %r2 %r3 (low 32
 * bits), %h1.. (low 16), %d1.. (64), with %p1 true and %p2 false; the result is left in %r0, %h0, %d0 or %p0. */
#include "sim_test.h"
#include <string.h>

typedef struct Op { const char *body; char result; uint64_t x, y, z, want; } Op;

#define NAN32 0x7fffffffu
#define INF32 0x7f800000u

static const Op int_ops[] = {
  {"add.u32 %r0,%r1,%r2;", 'r', 0xffffffff, 2, 0, 1},
  {"add.s64 %d0,%d1,-3;", 'd', 1, 0, 0, -2ull},
  {"add.sat.s32 %r0,%r1,%r2;", 'r', 0x7fffffff, 2, 0, 0x7fffffff},
  {"sub.sat.s32 %r0,%r1,%r2;", 'r', 0x80000000, 2, 0, 0x80000000},
  {"sub.s16 %h0,%h1,%h2;", 'h', 1, 2, 0, 0xffff},
  {"mul.lo.s32 %r0,%r1,%r2;", 'r', -3u, 7, 0, -21u},
  {"mul.hi.s32 %r0,%r1,%r2;", 'r', -3u, 0x40000000, 0, -1u},
  {"mul.hi.u32 %r0,%r1,%r2;", 'r', 0x80000000, 6, 0, 3},
  {"mul.wide.s32 %d0,%r1,%r2;", 'd', -3u, 7, 0, -21ull},
  {"mul.wide.u16 %r0,%h1,%h2;", 'r', 0xffff, 0xffff, 0, 0xfffe0001},
  {"mul.hi.u64 %d0,%d1,%d2;", 'd', 1ull << 63, 6, 0, 3},
  {"mul.hi.s64 %d0,%d1,%d2;", 'd', -1ull, 5, 0, -1ull},
  {"mul24.lo.s32 %r0,%r1,%r2;", 'r', 0xffffff, 5, 0, -5u},
  {"mad.lo.s32 %r0,%r1,%r2,%r3;", 'r', 5, 6, 7, 37},
  {"mad.wide.s32 %d0,%r1,%r2,%d3;", 'd', -5u, 6, 7, -23ull},
  {"mad.hi.s32 %r0,%r1,%r2,%r3;", 'r', -5u, 6, 7, 6},
  {"div.s32 %r0,%r1,%r2;", 'r', -7u, 2, 0, -3u},
  {"div.u32 %r0,%r1,%r2;", 'r', -7u, 2, 0, 0x7ffffffc},
  {"div.s32 %r0,%r1,%r2;", 'r', 0x80000000, -1u, 0, 0x80000000},
  {"rem.s32 %r0,%r1,%r2;", 'r', -7u, 2, 0, -1u},
  {"rem.s64 %d0,%d1,%d2;", 'd', 1ull << 63, -1ull, 0, 0},
  {"abs.s32 %r0,%r1;", 'r', -7u, 0, 0, 7},
  {"neg.s16 %h0,%h1;", 'h', 7, 0, 0, 0xfff9},
  {"min.s32 %r0,%r1,%r2;", 'r', -7u, 3, 0, -7u},
  {"min.u32 %r0,%r1,%r2;", 'r', -7u, 3, 0, 3},
  {"max.s64 %d0,%d1,%d2;", 'd', -7ull, 3, 0, 3},
  {"max.relu.s32 %r0,%r1,%r2;", 'r', -7u, -3u, 0, 0},
  {"min.s16x2 %r0,%r1,%r2;", 'r', 0xffff0005, 0x00010006, 0, 0xffff0005},
  {"sad.u32 %r0,%r1,%r2,%r3;", 'r', 3, 10, 1, 8},
  {"and.b32 %r0,%r1,%r2;", 'r', 12, 10, 0, 8},
  {"xor.b64 %d0,%d1,%d2;", 'd', 12, 10, 0, 6},
  {"not.b16 %h0,%h1;", 'h', 12, 0, 0, 0xfff3},
  {"cnot.b32 %r0,%r1;", 'r', 0, 0, 0, 1},
  {"shl.b32 %r0,%r1,%r2;", 'r', 5, 33, 0, 0},
  {"shl.b64 %d0,%d1,%r2;", 'd', 5, 33, 0, 5ull << 33},
  {"shr.s32 %r0,%r1,%r2;", 'r', -5u, 40, 0, -1u},
  {"shr.u32 %r0,%r1,%r2;", 'r', -5u, 28, 0, 15},
  {"shr.s16 %h0,%h1,%r2;", 'h', 0x8000, 3, 0, 0xf000},
  {"shf.l.wrap.b32 %r0,%r1,%r2,%r3;", 'r', 0x80000001, 2, 33, 5},
  {"shf.r.wrap.b32 %r0,%r1,%r2,%r3;", 'r', 0x80000001, 3, 1, 0xc0000000},
  {"shf.l.clamp.b32 %r0,%r1,%r2,%r3;", 'r', 7, 3, 40, 7},
  {"shf.r.clamp.b32 %r0,%r1,%r2,%r3;", 'r', 7, 3, 40, 3},
  {"lop3.b32 %r0,%r1,%r2,%r3,0x96;", 'r', 0xff00ff, 0x0f0f0f0f, 0x33333333, 0xff00ff ^ 0x0f0f0f0f ^ 0x33333333},
  {"lop3.b32 %r0,%r1,%r2,%r3,0xca;", 'r', 0xf0f0, 0x1234, 0x5678, 0x1638},
  {"prmt.b32 %r0,%r1,%r2,0x7654;", 'r', 0x33221100, 0x77665544, 0, 0x77665544},
  {"prmt.b32 %r0,%r1,%r2,0x4c02;", 'r', 0x80221100, 0x776655c4, 0, 0xc4ff0022},
  {"prmt.b32.f4e %r0,%r1,%r2,%r3;", 'r', 0x33221100, 0x77665544, 1, 0x44332211},
  {"cvt.pack.sat.s8.s32.b32 %r0,%r1,%r2,%r3;", 'r', 300, 0xffffff00, 0x561234, 0x12347f80},
  {"cvt.pack.sat.u8.s32.b32 %r0,%r1,%r2,%r3;", 'r', 0xfffffffb, 300, 0x1234, 0x123400ff},
  {"bfe.u32 %r0,%r1,%r2,%r3;", 'r', 0xabcdef, 4, 8, 0xde},
  {"bfe.s32 %r0,%r1,%r2,%r3;", 'r', 0xabcdef, 4, 8, 0xffffffde},
  {"bfe.s32 %r0,%r1,%r2,%r3;", 'r', 0x80000000, 28, 12, 0xfffffff8},
  {"bfi.b32 %r0,%r1,%r2,%r3,8;", 'r', 0xab, 0xffffffff, 8, 0xffffabff},
  {"bfi.b64 %d0,%d1,%d2,%r3,16;", 'd', 0xabcd, 0, 40, 0xabcdull << 40},
  {"bfind.u32 %r0,%r1;", 'r', 0x1000, 0, 0, 12},
  {"bfind.s32 %r0,%r1;", 'r', -2u, 0, 0, 0},
  {"bfind.shiftamt.u32 %r0,%r1;", 'r', 0x1000, 0, 0, 19},
  {"bfind.u64 %r0,%d1;", 'r', 0, 0, 0, -1u},
  {"popc.b64 %r0,%d1;", 'r', -1ull, 0, 0, 64},
  {"clz.b32 %r0,%r1;", 'r', 0, 0, 0, 32},
  {"clz.b64 %r0,%d1;", 'r', 1, 0, 0, 63},
  {"brev.b32 %r0,%r1;", 'r', 6, 0, 0, 0x60000000},
  {"bmsk.clamp.b32 %r0,%r1,%r2;", 'r', 4, 8, 0, 0xff0},
  {"fns.b32 %r0,%r1,%r2,%r3;", 'r', 0xaaaaaaaa, 3, 1, 3},
  {"fns.b32 %r0,%r1,%r2,%r3;", 'r', 0xaaaaaaaa, 2, 2, 5},
  {"fns.b32 %r0,%r1,%r2,%r3;", 'r', 0xaaaaaaaa, 2, -1u, 1},
  {"fns.b32 %r0,%r1,%r2,%r3;", 'r', 0xaaaaaaaa, 2, 0, -1u},
  {"fns.b32 %r0,%r1,%r2,%r3;", 'r', 0xaaaaaaaa, 2, 17, -1u},
  {"fns.b32 %r0,%r1,%r2,%r3;", 'r', 0xaaaaaaaa, 0, 0x80000000, -1u},
  {"dp4a.s32.s32 %r0,%r1,%r2,%r3;", 'r', 0x01ff0203, 0x02030405, 10, 10 + 2 - 3 + 8 + 15},
  {"dp2a.lo.u32.u32 %r0,%r1,%r2,%r3;", 'r', 0x00020003, 0x01000405, 10, 10 + 15 + 8},
  {"add.cc.u32 %r0,%r1,%r2; addc.u32 %r0,%r3,0;", 'r', 0xffffffff, 1, 5, 6},
  {"sub.cc.u32 %r0,%r1,%r2; subc.u32 %r0,%r3,0;", 'r', 1, 2, 5, 4},
  {"mad.lo.cc.u32 %r0,%r1,%r2,%r3; madc.hi.u32 %r0,%r1,%r2,0;", 'r', 0xffffffff, 2, 2, 2},
  {"selp.b32 %r0,%r1,%r2,%p1;", 'r', 1, 2, 0, 1},
  {"selp.b64 %d0,%d1,%d2,%p2;", 'd', 1, 2, 0, 2},
  {"slct.s32.s32 %r0,%r1,%r2,%r3;", 'r', 1, 2, -1u, 2},
  {"setp.lt.s32 %p0,%r1,%r2;", 'p', -1u, 2, 0, 1},
  {"setp.lo.u32 %p0,%r1,%r2;", 'p', -1u, 2, 0, 0},
  {"setp.lt.and.s32 %p0|%p3,%r1,%r2,%p2;", 'p', -1u, 2, 0, 0},
  {"setp.lt.or.s32 %p3|%p0,%r1,%r2,!%p1;", 'p', -1u, 2, 0, 0},
  {"setp.ge.u64 %p0,%d1,%d2;", 'p', 1ull << 40, 2, 0, 1},
  {"set.eq.u32.u32 %r0,%r1,%r2;", 'r', 2, 2, 0, -1u},
  {"set.lt.f32.s32 %r0,%r1,%r2;", 'r', 1, 2, 0, 0x3f800000},
  {"and.pred %p0,%p1,%p2;", 'p', 0, 0, 0, 0},
  {"xor.pred %p0,%p1,%p2;", 'p', 0, 0, 0, 1},
  {"not.pred %p0,%p2;", 'p', 0, 0, 0, 1},
  {"mov.pred %p0,1;", 'p', 0, 0, 0, 1},
  {"@%p2 add.u32 %r1,%r1,1; mov.u32 %r0,%r1;", 'r', 5, 0, 0, 5},
  {"@!%p2 add.u32 %r1,%r1,1; mov.u32 %r0,%r1;", 'r', 5, 0, 0, 6},
  {"mov.b64 {%r2,%r0},%d1;", 'r', 0x123456789abcdef0, 0, 0, 0x12345678},
  {"mov.b64 {_,%r0},%d1;", 'r', 0x123456789abcdef0, 0, 0, 0x12345678},
  {"mov.b32 %r0,{%h1,%h2};", 'r', 0x1234, 0x5678, 0, 0x56781234},
  {"mov.b64 %d0,{%h1,%h2,%h3,%h1};", 'd', 1, 2, 3, 0x0001000300020001},
  {"mov.b64 {%h1,%h2,%h0,%h3},%d1;", 'h', 0x4444333322221111, 0, 0, 0x3333},
  {"mov.u32 %r0,%ntid.x;", 'r', 0, 0, 0, 1},
  {"mov.u32 %r0,WARP_SZ;", 'r', 0, 0, 0, 32},
  {"isspacep.global %p0,%d9;", 'p', 0, 0, 0, 1},
  {"cvta.shared.u64 %d0,%d1; isspacep.shared %p0,%d0;", 'p', 64, 0, 0, 1},
  {"{ .reg .b32 %r1; mov.u32 %r1, 9; mov.u32 %r0,%r1; }", 'r', 1, 0, 0, 9},
};

static const Op float_ops[] = {
  {"add.f32 %r0,%r1,%r2;", 'r', 0x3f800000, 0x40000000, 0, 0x40400000},
  {"add.f32 %r0,%r1,%r2;", 'r', INF32, 0xff800000, 0, NAN32},
  {"add.f32 %r0,%r1,%r2;", 'r', 0x7fc12345, 0, 0, NAN32},
  {"add.rz.f32 %r0,%r1,%r2;", 'r', 0x3f800000, 0x33c00000, 0, 0x3f800000},
  {"add.rn.f32 %r0,%r1,%r2;", 'r', 0x3f800000, 0x33c00000, 0, 0x3f800001},
  {"add.rp.f32 %r0,%r1,%r2;", 'r', 0x3f800000, 1, 0, 0x3f800001},
  {"add.rm.f32 %r0,%r1,%r2;", 'r', 0x3f800000, 0x80000001, 0, 0x3f7fffff},
  {"add.f32 %r0,%r1,%r2;", 'r', 1, 1, 0, 2},
  {"add.ftz.f32 %r0,%r1,%r2;", 'r', 1, 0x3f800000, 0, 0x3f800000},
  {"add.ftz.f32 %r0,%r1,%r2;", 'r', 0x80000001, 0x80000001, 0, 0x80000000},
  {"add.sat.f32 %r0,%r1,%r2;", 'r', 0x3f800000, 0x40000000, 0, 0x3f800000},
  {"add.sat.f32 %r0,%r1,%r2;", 'r', NAN32, 0x40000000, 0, 0},
  {"sub.f64 %d0,%d1,%d2;", 'd', 0x4008000000000000, 0x3ff0000000000000, 0, 0x4000000000000000},
  {"mul.f32 %r0,%r1,0f40400000;", 'r', 0x3f800000, 0, 0, 0x40400000},
  {"mul.f32 %r0,%r1,1.5;", 'r', 0x40000000, 0, 0, 0x40400000},
  {"fma.rn.f32 %r0,%r1,%r2,%r3;", 'r', 0x3f800001, 0x3f800001, 0xbf800002, 0x28800000},
  {"fma.rz.f32 %r0,%r1,%r2,%r3;", 'r', 0x3f800001, 0x3f800001, 0, 0x3f800002},
  {"fma.rn.f64 %d0,%d1,%d2,%d3;", 'd', 0x4000000000000000, 0x4000000000000000, 0x3ff0000000000000, 0x4014000000000000},
  {"fma.rn.relu.f16 %h0,%h1,%h2,%h3;", 'h', 0xbc00, 0x3c00, 0, 0},
  {"fma.rn.f16 %h0,%h1,%h2,%h3;", 'h', 0x3c01, 0x3c01, 0xbc02, 0x0010},
  {"fma.rn.f16 %h0,%h1,%h2,%h3;", 'h', 0x6400, 0x3c01, 0x8001, 0x6401},
  {"fma.rn.bf16 %h0,%h1,%h2,%h3;", 'h', 0x3f80, 0x4000, 0x3f80, 0x4040},
  {"fma.rn.f32.f16 %r0,%h1,%h2,%r3;", 'r', 0x3c01, 0x3c01, 0xbf800000, 0x3b001000},
  {"fma.rn.f32.bf16 %r0,%h1,%h2,%r3;", 'r', 0x3f80, 0x4000, 0x3f800000, 0x40400000},
  {"add.rn.f32.f16 %r0,%h1,%r2;", 'r', 0x3c00, 0x40000000, 0, 0x40400000},
  {"sub.f32.bf16 %r0,%h1,%r2;", 'r', 0x3f80, 0x40000000, 0, 0xbf800000},
  {"add.f16 %h0,%h1,%h2;", 'h', 0x7bff, 0x7bff, 0, 0x7c00},
  {"add.f16 %h0,%h1,%h2;", 'h', 0x0001, 0x0001, 0, 0x0002},
  {"mul.rn.bf16x2 %r0,%r1,%r2;", 'r', 0x40003f80, 0x40404000, 0, 0x40c04000},
  {"add.rn.f16x2 %r0,%r1,%r2;", 'r', 0x3c004000, 0x3c003c00, 0, 0x40004200},
  {"add.rn.f32x2 %d0,%d1,%d2;", 'd', 0x3f80000040000000, 0x3f80000040000000, 0, 0x4000000040800000},
  {"fma.rn.f32x2 %d0,%d1,%d2,%d3;", 'd', 0x3f80000040000000, 0x4000000040000000, 0x3f8000003f800000, 0x4040000040a00000},
  {"div.rn.f32 %r0,%r1,%r2;", 'r', 0x3f800000, 0x40400000, 0, 0x3eaaaaab},
  {"div.full.f32 %r0,%r1,%r2;", 'r', 0x40c00000, 0x40400000, 0, 0x40000000},
  {"rcp.approx.ftz.f32 %r0,%r1;", 'r', 0x40800000, 0, 0, 0x3e800000},
  {"rcp.rn.f32 %r0,%r1;", 'r', 0x80000000, 0, 0, 0xff800000},
  {"sqrt.rn.f32 %r0,%r1;", 'r', 0x40800000, 0, 0, 0x40000000},
  {"sqrt.approx.f32 %r0,%r1;", 'r', 0xbf800000, 0, 0, NAN32},
  {"rsqrt.approx.f32 %r0,%r1;", 'r', 0x40800000, 0, 0, 0x3f000000},
  {"ex2.approx.f32 %r0,%r1;", 'r', 0x40400000, 0, 0, 0x41000000},
  {"ex2.approx.ftz.f32 %r0,%r1;", 'r', 0xff800000, 0, 0, 0},
  {"ex2.approx.f32 %r0,%r1;", 'r', 0xc3090000, 0, 0, 0x00001000},
  {"lg2.approx.f32 %r0,%r1;", 'r', 0x41000000, 0, 0, 0x40400000},
  {"lg2.approx.f32 %r0,%r1;", 'r', 0, 0, 0, 0xff800000},
  {"sin.approx.f32 %r0,%r1;", 'r', 0, 0, 0, 0},
  {"cos.approx.f32 %r0,%r1;", 'r', 0, 0, 0, 0x3f800000},
  {"tanh.approx.f32 %r0,%r1;", 'r', 0x42c80000, 0, 0, 0x3f800000},
  {"ex2.approx.f16x2 %r0,%r1;", 'r', 0x40003c00, 0, 0, 0x44004000},
  {"tanh.approx.bf16 %h0,%h1;", 'h', 0, 0, 0, 0},
  {"min.f32 %r0,%r1,%r2;", 'r', NAN32, 0x3f800000, 0, 0x3f800000},
  {"max.f32 %r0,%r1,%r2;", 'r', 0x7fc00000, 0xffc00000, 0, NAN32},
  {"max.NaN.f32 %r0,%r1,%r2;", 'r', 0x7fc00000, 0x3f800000, 0, NAN32},
  {"min.f32 %r0,%r1,%r2;", 'r', 0, 0x80000000, 0, 0x80000000},
  {"max.f32 %r0,%r1,%r2;", 'r', 0x80000000, 0, 0, 0},
  {"max.f64 %d0,%d1,%d2;", 'd', 0x7ff8000000000000, 0x3ff0000000000000, 0, 0x3ff0000000000000},
  {"min.f16x2 %r0,%r1,%r2;", 'r', 0x3c007e00, 0x40003c00, 0, 0x3c003c00},
  {"max.NaN.bf16 %h0,%h1,%h2;", 'h', 0x7fc0, 0x3f80, 0, 0x7fff},
  {"abs.f32 %r0,%r1;", 'r', 0xbf800000, 0, 0, 0x3f800000},
  {"neg.f16x2 %r0,%r1;", 'r', 0x3c00bc00, 0, 0, 0xbc003c00},
  {"copysign.f32 %r0,%r1,%r2;", 'r', 0x80000000, 0x3f800000, 0, 0xbf800000},
  {"testp.finite.f32 %p0,%r1;", 'p', INF32, 0, 0, 0},
  {"testp.subnormal.f32 %p0,%r1;", 'p', 1, 0, 0, 1},
  {"testp.notanumber.f64 %p0,%d1;", 'p', 0x7ff8000000000000, 0, 0, 1},
  {"setp.lt.f32 %p0,%r1,%r2;", 'p', NAN32, 0, 0, 0},
  {"setp.ltu.f32 %p0,%r1,%r2;", 'p', NAN32, 0, 0, 1},
  {"setp.ne.f32 %p0,%r1,%r2;", 'p', NAN32, NAN32, 0, 0},
  {"setp.neu.f32 %p0,%r1,%r2;", 'p', NAN32, NAN32, 0, 1},
  {"setp.nan.f32 %p0,%r1,%r2;", 'p', 0, NAN32, 0, 1},
  {"setp.num.f64 %p0,%d1,%d2;", 'p', 0, 0, 0, 1},
  {"setp.eq.ftz.f32 %p0,%r1,%r2;", 'p', 1, 0x80000000, 0, 1},
  {"setp.eq.f32 %p0,%r1,%r2;", 'p', 1, 0x80000000, 0, 0},
  {"setp.gt.f16 %p0,%h1,%h2;", 'p', 0x3c00, 0xbc00, 0, 1},
  {"setp.gt.f16x2 %p3|%p0,%r1,%r2;", 'p', 0x3c003c00, 0x00007c00, 0, 1},
  {"setp.lt.bf16 %p0,%h1,%h2;", 'p', 0x3f80, 0x4000, 0, 1},
  {"set.gt.f16x2.f16x2 %r0,%r1,%r2;", 'r', 0x3c003c00, 0x00007c00, 0, 0x3c000000},
  {"slct.b32.f32 %r0,%r1,%r2,%r3;", 'r', 1, 2, 0x80000000, 1},
};

static const Op cvt_ops[] = {
  {"cvt.u32.u16 %r0,%h1;", 'r', 0xfff0, 0, 0, 0xfff0},
  {"cvt.s32.s16 %r0,%h1;", 'r', 0xfff0, 0, 0, 0xfffffff0},
  {"cvt.s32.s8 %r0,%r1;", 'r', 0x1280, 0, 0, 0xffffff80},
  {"cvt.u32.u8 %r0,%r1;", 'r', 0x1280, 0, 0, 0x80},
  {"cvt.u16.u8 %h0,%h1;", 'h', 0x1280, 0, 0, 0x80},
  {"cvt.s64.s32 %d0,%r1;", 'd', 0x80000000, 0, 0, 0xffffffff80000000},
  {"cvt.u64.u32 %d0,%r1;", 'd', 0x80000000, 0, 0, 0x80000000},
  {"cvt.u32.u64 %r0,%d1;", 'r', 0x123456789, 0, 0, 0x23456789},
  {"cvt.sat.u8.s32 %r0,%r1;", 'r', 300, 0, 0, 255},
  {"cvt.sat.s8.s32 %r0,%r1;", 'r', -300u, 0, 0, 0xffffff80},
  {"cvt.sat.u32.s32 %r0,%r1;", 'r', -1u, 0, 0, 0},
  {"cvt.sat.s16.s32 %h0,%r1;", 'h', 40000, 0, 0, 0x7fff},
  {"cvt.rn.f32.s32 %r0,%r1;", 'r', -1u, 0, 0, 0xbf800000},
  {"cvt.rn.f32.u32 %r0,%r1;", 'r', 0x01000001, 0, 0, 0x4b800000},
  {"cvt.rz.f32.u32 %r0,%r1;", 'r', 0xffffffff, 0, 0, 0x4f7fffff},
  {"cvt.rn.f32.s64 %r0,%d1;", 'r', 0x4000004000000001, 0, 0, 0x5e800001},
  {"cvt.rn.f64.u64 %d0,%d1;", 'd', 1ull << 63, 0, 0, 0x43e0000000000000},
  {"cvt.rn.f16.s32 %h0,%r1;", 'h', 100000, 0, 0, 0x7c00},
  {"cvt.rn.bf16.s32 %h0,%r1;", 'h', 3, 0, 0, 0x4040},
  {"cvt.rzi.s32.f32 %r0,%r1;", 'r', 0xbfc00000, 0, 0, -1u},
  {"cvt.rmi.s32.f32 %r0,%r1;", 'r', 0xbfc00000, 0, 0, -2u},
  {"cvt.rpi.s32.f32 %r0,%r1;", 'r', 0x3f8ccccd, 0, 0, 2},
  {"cvt.rni.s32.f32 %r0,%r1;", 'r', 0x40200000, 0, 0, 2},
  {"cvt.rzi.s32.f32 %r0,%r1;", 'r', NAN32, 0, 0, 0},
  {"cvt.rzi.s32.f32 %r0,%r1;", 'r', INF32, 0, 0, 0x7fffffff},
  {"cvt.rzi.s32.f32 %r0,%r1;", 'r', 0xff800000, 0, 0, 0x80000000},
  {"cvt.rzi.u32.f32 %r0,%r1;", 'r', 0xbf800000, 0, 0, 0},
  {"cvt.rzi.u32.f32 %r0,%r1;", 'r', 0x4f000000, 0, 0, 0x80000000},
  {"cvt.rzi.s64.f32 %d0,%r1;", 'd', NAN32, 0, 0, 1ull << 63},
  {"cvt.rzi.s32.f64 %r0,%d1;", 'r', 0xc000000000000000, 0, 0, -2u},
  {"cvt.rzi.u8.f32 %r0,%r1;", 'r', 0x43fa0000, 0, 0, 255},
  {"cvt.rni.f32.f32 %r0,%r1;", 'r', 0x40200000, 0, 0, 0x40000000},
  {"cvt.rmi.f32.f32 %r0,%r1;", 'r', 0xbf000000, 0, 0, 0xbf800000},
  {"cvt.rzi.f64.f64 %d0,%d1;", 'd', 0x3ff8000000000000, 0, 0, 0x3ff0000000000000},
  {"cvt.sat.f32.f32 %r0,%r1;", 'r', 0xbf000000, 0, 0, 0},
  {"cvt.ftz.f32.f32 %r0,%r1;", 'r', 0x80000001, 0, 0, 0x80000000},
  {"cvt.rn.f32.f64 %r0,%d1;", 'r', 0x3ff0000010000000, 0, 0, 0x3f800000},
  {"cvt.rp.f32.f64 %r0,%d1;", 'r', 0x3ff0000010000000, 0, 0, 0x3f800001},
  {"cvt.f64.f32 %d0,%r1;", 'd', 1, 0, 0, 0x36a0000000000000},
  {"cvt.f32.f16 %r0,%h1;", 'r', 0x0001, 0, 0, 0x33800000},
  {"cvt.f32.f16 %r0,%h1;", 'r', 0xfc00, 0, 0, 0xff800000},
  {"cvt.f32.bf16 %r0,%h1;", 'r', 0x3f80, 0, 0, 0x3f800000},
  {"cvt.rn.f16.f32 %h0,%r1;", 'h', 0x477fefff, 0, 0, 0x7bff},
  {"cvt.rn.f16.f32 %h0,%r1;", 'h', 0x477ff000, 0, 0, 0x7c00},
  {"cvt.rn.f16.f32 %h0,%r1;", 'h', 0x33000000, 0, 0, 0},
  {"cvt.rn.f16.f32 %h0,%r1;", 'h', 0x33000001, 0, 0, 1},
  {"cvt.rn.f16.f32 %h0,%r1;", 'h', 0x3f801000, 0, 0, 0x3c00},
  {"cvt.rn.f16.f32 %h0,%r1;", 'h', 0x3f803000, 0, 0, 0x3c02},
  {"cvt.rz.f16.f32 %h0,%r1;", 'h', 0x477fffff, 0, 0, 0x7bff},
  {"cvt.rn.f16.f64 %h0,%d1;", 'h', 0x3ff0020000000001, 0, 0, 0x3c01},
  {"cvt.rn.bf16.f32 %h0,%r1;", 'h', 0x3f808000, 0, 0, 0x3f80},
  {"cvt.rn.bf16.f32 %h0,%r1;", 'h', 0x3f818000, 0, 0, 0x3f82},
  {"cvt.rz.bf16.f32 %h0,%r1;", 'h', 0x3f81ffff, 0, 0, 0x3f81},
  {"cvt.rn.relu.bf16.f32 %h0,%r1;", 'h', 0xbf800000, 0, 0, 0},
  {"cvt.rn.f16x2.f32 %r0,%r1,%r2;", 'r', 0x3f800000, 0x40000000, 0, 0x3c004000},
  {"cvt.rn.bf16x2.f32 %r0,%r1,%r2;", 'r', 0x3f800000, 0x40000000, 0, 0x3f804000},
  {"cvt.rn.relu.f16x2.f32 %r0,%r1,%r2;", 'r', 0xbf800000, 0x40000000, 0, 0x00004000},
  {"cvt.rna.tf32.f32 %r0,%r1;", 'r', 0x3f801000, 0, 0, 0x3f802000},
  {"cvt.rna.tf32.f32 %r0,%r1;", 'r', 0x3f800fff, 0, 0, 0x3f800000},
  {"cvt.rn.satfinite.e4m3x2.f32 %h0,%r1,%r2;", 'h', 0x3f800000, 0x7f800000, 0, 0x387e},
  {"cvt.rn.satfinite.e5m2x2.f32 %h0,%r1,%r2;", 'h', 0x3f800000, 0xff800000, 0, 0x3cfb},
  {"cvt.rn.satfinite.e4m3x2.f32 %h0,%r1,%r2;", 'h', NAN32, 0x3b000000, 0, 0x7f01},
  {"cvt.rn.satfinite.e4m3x2.f16x2 %h0,%r1;", 'h', 0x3c004000, 0, 0, 0x3840},
  {"cvt.rn.f16x2.e4m3x2 %r0,%h1;", 'r', 0x3840, 0, 0, 0x3c004000},
  {"cvt.rn.f16x2.e5m2x2 %r0,%h1;", 'r', 0x7cbc, 0, 0, 0x7c00bc00},
};

static void
build(char *ptx, size_t size, const Op *op)
{
  static const char *const results[] = {['h'] = "cvt.u64.u16 %d0, %h0;", ['r'] = "cvt.u64.u32 %d0, %r0;", ['d'] = "",
                                        ['p'] = "selp.u64 %d0, 1, 0, %p0;"};
  snprintf(ptx, size,
           ".version 8.6\n.target sm_100a\n.address_size 64\n"
           ".visible .entry k(.param .u64 in, .param .u64 out) {\n"
           ".reg .b16 %%h<8>; .reg .b32 %%r<8>; .reg .b64 %%d<10>; .reg .pred %%p<5>;\n"
           "ld.param.u64 %%d9, [in]; ld.global.b64 %%d1, [%%d9]; ld.global.b64 %%d2, [%%d9+8];\n"
           "ld.global.b64 %%d3, [%%d9+16]; cvt.u32.u64 %%r1, %%d1; cvt.u32.u64 %%r2, %%d2; cvt.u32.u64 %%r3, %%d3;\n"
           "cvt.u16.u64 %%h1, %%d1; cvt.u16.u64 %%h2, %%d2; cvt.u16.u64 %%h3, %%d3;\n"
           "setp.eq.u32 %%p1, %%r1, %%r1; setp.ne.u32 %%p2, %%r1, %%r1;\n%s\n%s\n"
           "ld.param.u64 %%d8, [out]; st.global.u64 [%%d8], %%d0; ret; }\n",
           op->body, results[(int)op->result]);
}

static void
run_op(Test *t, const Op *op, uint64_t *in, uint64_t *out)
{
  char ptx[2048];
  build(ptx, sizeof ptx, op);
  in[0] = op->x, in[1] = op->y, in[2] = op->z;
  *out = 0;
  Run r = {ptx, "k", {1}, {1}, 0, {&in, &out}, {0}, {0}};
  int rc = test_run(t, &r);
  if (CHECK(t, rc == 0, "%s: %s", op->body, r.err.message))
    CHECK(t, *out == op->want, "%s: 0x%llx, not 0x%llx", op->body, (unsigned long long)*out,
          (unsigned long long)op->want);
}

static void
run_list(Test *t, const Op *list, size_t n)
{
  uint64_t *in = test_alloc(t, 24), *out = test_alloc(t, 8);
  for (size_t i = 0; i < n; i++)
    run_op(t, &list[i], in, out);
  test_free(t, in), test_free(t, out);
}

void
test_ops(Test *t)
{
  run_list(t, int_ops, sizeof int_ops / sizeof *int_ops);
  run_list(t, float_ops, sizeof float_ops / sizeof *float_ops);
  run_list(t, cvt_ops, sizeof cvt_ops / sizeof *cvt_ops);
}
