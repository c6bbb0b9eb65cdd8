/* args.h - makers of arguments, so that a launch is one statement:
 *
 *   tilert_launch(stream, kernel, TILERT_GRID(m, n), TILERT_ARGS(2.0f, x, y, count), &err);
 *
 * TILERT_ARGS stands for two arguments of a call, the array and its length, of 1 to 32 values, each by its type: buffers, tensors
 * (TilertTensorArg *), void * as an address of the device, numbers, and a TilertArg as it is (tilert_arg_address for what is an address but
 * has the type of a number, tilert_arg_bytes for structures and tensor maps). TILERT_GRID is up to three extents, 1 where there is none.
 * Both are good for the statement that they stand in, or in C for its block. C11, C++11.
 */
#ifndef TILERT_ARGS_H
#define TILERT_ARGS_H
#include "tilert.h"

#ifdef __cplusplus
#define TILERT_NO_ARG TilertArg()
#else
#define TILERT_NO_ARG (TilertArg){0}
#endif

static inline TilertArg
tilert_arg_buffer(TilertBuffer *v)
{
  TilertArg a = TILERT_NO_ARG;
  a.kind = TILERT_ARG_BUFFER;
  a.u.buffer = v;
  return a;
}

static inline TilertArg
tilert_arg_tensor(const TilertTensorArg *v)
{
  TilertArg a = TILERT_NO_ARG;
  a.kind = TILERT_ARG_TENSOR;
  a.u.tensor = v;
  return a;
}

static inline TilertArg
tilert_arg_int(int64_t v)
{
  TilertArg a = TILERT_NO_ARG;
  a.kind = TILERT_ARG_INT;
  a.u.i = v;
  return a;
}

static inline TilertArg
tilert_arg_float(double v)
{
  TilertArg a = TILERT_NO_ARG;
  a.kind = TILERT_ARG_FLOAT;
  a.u.f = v;
  return a;
}

static inline TilertArg
tilert_arg_address(uint64_t v)
{
  TilertArg a = TILERT_NO_ARG;
  a.kind = TILERT_ARG_POINTER;
  a.u.pointer = v;
  return a;
}

static inline TilertArg
tilert_arg_pointer(const void *v)
{
  TilertArg a = TILERT_NO_ARG;
  a.kind = TILERT_ARG_POINTER;
#ifdef __cplusplus
  a.u.pointer = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(v));
#else
  a.u.pointer = (uint64_t)(uintptr_t)v;
#endif
  return a;
}

static inline TilertArg
tilert_arg_bytes(const void *v)
{
  TilertArg a = TILERT_NO_ARG;
  a.kind = TILERT_ARG_BYTES;
  a.u.bytes = v;
  return a;
}

static inline TilertArg
tilert_arg_same(TilertArg v)
{
  return v;
}

#ifdef __cplusplus
#include <type_traits>

namespace tilert {
inline TilertArg arg(TilertBuffer *v) { return tilert_arg_buffer(v); }
inline TilertArg arg(const TilertTensorArg *v) { return tilert_arg_tensor(v); }
inline TilertArg arg(const void *v) { return tilert_arg_pointer(v); }
inline TilertArg arg(decltype(nullptr)) { return tilert_arg_address(0); }
inline TilertArg arg(TilertArg v) { return v; }
template <class T>
typename std::enable_if<std::is_integral<T>::value || std::is_enum<T>::value, TilertArg>::type arg(T v)
{
  return tilert_arg_int(static_cast<int64_t>(v));
}
template <class T>
typename std::enable_if<std::is_floating_point<T>::value, TilertArg>::type arg(T v) { return tilert_arg_float(static_cast<double>(v)); }

template <class T, size_t N> struct List {
  T list[N];
  const T *data() const { return list; }
};
template <class... T> List<TilertArg, sizeof...(T)> args(T... v) { return {{arg(v)...}}; }
inline List<uint32_t, 3> grid(uint32_t x, uint32_t y = 1, uint32_t z = 1) { return {{x, y, z}}; }
}

#define TILERT_ARGS(...) tilert::args(__VA_ARGS__).data(), sizeof(tilert::args(__VA_ARGS__).list) / sizeof(TilertArg)
#define TILERT_GRID(...) tilert::grid(__VA_ARGS__).data()

#else

#define TILERT_ARG(x) _Generic((x), TilertArg: tilert_arg_same, TilertBuffer *: tilert_arg_buffer,                   \
    TilertTensorArg *: tilert_arg_tensor, const TilertTensorArg *: tilert_arg_tensor,                                \
    void *: tilert_arg_pointer, const void *: tilert_arg_pointer, float: tilert_arg_float, double: tilert_arg_float, \
    _Bool: tilert_arg_int, char: tilert_arg_int, signed char: tilert_arg_int, unsigned char: tilert_arg_int,         \
    short: tilert_arg_int, unsigned short: tilert_arg_int, int: tilert_arg_int, unsigned: tilert_arg_int,            \
    long: tilert_arg_int, unsigned long: tilert_arg_int, long long: tilert_arg_int, unsigned long long: tilert_arg_int)(x)

#define TILERT_A1(x) TILERT_ARG(x)
#define TILERT_A2(x, ...) TILERT_ARG(x), TILERT_A1(__VA_ARGS__)
#define TILERT_A3(x, ...) TILERT_ARG(x), TILERT_A2(__VA_ARGS__)
#define TILERT_A4(x, ...) TILERT_ARG(x), TILERT_A3(__VA_ARGS__)
#define TILERT_A5(x, ...) TILERT_ARG(x), TILERT_A4(__VA_ARGS__)
#define TILERT_A6(x, ...) TILERT_ARG(x), TILERT_A5(__VA_ARGS__)
#define TILERT_A7(x, ...) TILERT_ARG(x), TILERT_A6(__VA_ARGS__)
#define TILERT_A8(x, ...) TILERT_ARG(x), TILERT_A7(__VA_ARGS__)
#define TILERT_A9(x, ...) TILERT_ARG(x), TILERT_A8(__VA_ARGS__)
#define TILERT_A10(x, ...) TILERT_ARG(x), TILERT_A9(__VA_ARGS__)
#define TILERT_A11(x, ...) TILERT_ARG(x), TILERT_A10(__VA_ARGS__)
#define TILERT_A12(x, ...) TILERT_ARG(x), TILERT_A11(__VA_ARGS__)
#define TILERT_A13(x, ...) TILERT_ARG(x), TILERT_A12(__VA_ARGS__)
#define TILERT_A14(x, ...) TILERT_ARG(x), TILERT_A13(__VA_ARGS__)
#define TILERT_A15(x, ...) TILERT_ARG(x), TILERT_A14(__VA_ARGS__)
#define TILERT_A16(x, ...) TILERT_ARG(x), TILERT_A15(__VA_ARGS__)
#define TILERT_A17(x, ...) TILERT_ARG(x), TILERT_A16(__VA_ARGS__)
#define TILERT_A18(x, ...) TILERT_ARG(x), TILERT_A17(__VA_ARGS__)
#define TILERT_A19(x, ...) TILERT_ARG(x), TILERT_A18(__VA_ARGS__)
#define TILERT_A20(x, ...) TILERT_ARG(x), TILERT_A19(__VA_ARGS__)
#define TILERT_A21(x, ...) TILERT_ARG(x), TILERT_A20(__VA_ARGS__)
#define TILERT_A22(x, ...) TILERT_ARG(x), TILERT_A21(__VA_ARGS__)
#define TILERT_A23(x, ...) TILERT_ARG(x), TILERT_A22(__VA_ARGS__)
#define TILERT_A24(x, ...) TILERT_ARG(x), TILERT_A23(__VA_ARGS__)
#define TILERT_A25(x, ...) TILERT_ARG(x), TILERT_A24(__VA_ARGS__)
#define TILERT_A26(x, ...) TILERT_ARG(x), TILERT_A25(__VA_ARGS__)
#define TILERT_A27(x, ...) TILERT_ARG(x), TILERT_A26(__VA_ARGS__)
#define TILERT_A28(x, ...) TILERT_ARG(x), TILERT_A27(__VA_ARGS__)
#define TILERT_A29(x, ...) TILERT_ARG(x), TILERT_A28(__VA_ARGS__)
#define TILERT_A30(x, ...) TILERT_ARG(x), TILERT_A29(__VA_ARGS__)
#define TILERT_A31(x, ...) TILERT_ARG(x), TILERT_A30(__VA_ARGS__)
#define TILERT_A32(x, ...) TILERT_ARG(x), TILERT_A31(__VA_ARGS__)
#define TILERT_PICK(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, \
    a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, which, ...) which
#define TILERT_EACH(...)                                                                                         \
    TILERT_PICK(__VA_ARGS__, TILERT_A32, TILERT_A31, TILERT_A30, TILERT_A29, TILERT_A28, TILERT_A27, TILERT_A26, \
    TILERT_A25, TILERT_A24, TILERT_A23, TILERT_A22, TILERT_A21, TILERT_A20, TILERT_A19, TILERT_A18, TILERT_A17,  \
    TILERT_A16, TILERT_A15, TILERT_A14, TILERT_A13, TILERT_A12, TILERT_A11, TILERT_A10, TILERT_A9, TILERT_A8,    \
    TILERT_A7, TILERT_A6, TILERT_A5, TILERT_A4, TILERT_A3, TILERT_A2, TILERT_A1, 0)(__VA_ARGS__)
#define TILERT_ARGS(...) \
    (const TilertArg[]){TILERT_EACH(__VA_ARGS__)}, sizeof((const TilertArg[]){TILERT_EACH(__VA_ARGS__)}) / sizeof(TilertArg)

#define TILERT_GRID3(x, y, z, ...) ((const uint32_t[3]){x, y, z})
#define TILERT_GRID(...) TILERT_GRID3(__VA_ARGS__, 1, 1, 0)
#endif
#endif
