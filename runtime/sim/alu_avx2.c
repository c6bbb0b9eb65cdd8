/* alu_avx2.c - alu.def compiled for AVX2 and FMA: wider loops, and fma without a call. */
#ifdef __x86_64__
#pragma GCC target("avx2,fma,bmi,bmi2,lzcnt,popcnt")
#define ALU_TABLE alu_rows_avx2

#include "alu_rows.h"
#else
typedef int alu_avx2_empty;
#endif
