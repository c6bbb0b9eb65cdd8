// The header of kernels compiled ahead in C++: spans, memory that gives itself back, and errors that are thrown; on the simulator.
#include <tilec/tilert.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include "ahead.h"

#define CHECK(condition) \
  ((condition) ? void() : (std::fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition), std::exit(1)))

template <class F> static bool throws(F &&f, int status, const char *words)
{
  try {
    f();
  } catch (const tilert::Error &e) {
    return e.status() == status && std::strstr(e.what(), words);
  }
  return false;
}

static_assert(!std::is_copy_constructible_v<tilert::Device> && std::is_nothrow_move_constructible_v<tilert::Buffer<float>>);
static_assert(std::is_convertible_v<tilert::Buffer<float>, tilert::Span<const float>>);
static_assert(!std::is_convertible_v<tilert::Span<const float>, tilert::Span<float>>);
static_assert(!std::is_convertible_v<tilert::Buffer<double>, tilert::Span<const float>>);

int main()
{
  tilert::Device device("sim");
  tilert::Stream stream(device), moved = tilert::Stream::wrap(device, nullptr);
  std::vector<float> host(1000);
  for (std::size_t i = 0; i < host.size(); i++)
    host[i] = float(i);
  tilert::Buffer<float> x(device, host), y(device, host.size());
  ahead::load(device);
  ahead::scale_BLOCK128(stream, x, y, 1000, 2);
  CHECK(y.read()[999] == 1998);
  stream = std::move(moved);
  tilert::Span<float> part = tilert::Span<float>(y).subspan(4, 16);
  ahead::scale_BLOCK64_warps2(stream, part, part, int32_t(part.size()), 10);
  CHECK(y.read()[4] == 80 && y.read()[20] == 40);
  tilert::Buffer<int32_t> z(device, 64);
  ahead::fill(stream, {2, 1, 1}, z, 8, 8, 1);
  CHECK(z.read()[63] == 64);
  tilert::Buffer<tile_f16> h(device, std::vector<tile_f16>(64, tile_f16{0x3c00}));
  ahead::add_bias(stream, h, nullptr, h, 1, 64);
  CHECK(h.read()[63].bits == 0x3c00);
  CHECK(throws([&] { ahead::scale_BLOCK128(stream, nullptr, y, 1, 1); }, TILERT_E_ARGUMENT, "argument 0 (x): it is null"));
  CHECK(throws([&] { tilert::Device d("gpu"); }, TILERT_E_ARGUMENT, "unknown device"));
  try {
    part.subspan(17);
    CHECK(false);
  } catch (const std::out_of_range &) {
  }
  ahead::unload();
  return 0;
}
