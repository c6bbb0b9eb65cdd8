// spans.cpp - ahead.c and graph.c in C++: the functions that tilec --emit=c wrote, in a namespace of their header's name, with typed memory,
// spans of it, objects that give back what they hold, and errors that are thrown.
//
//   spans [cuda|sim]
#include <cstdio>
#include <vector>
#include <tilec/tilert.hpp>
#include "axpy_kernels.h"

constexpr std::size_t N = 10000, HALF = N / 2;

static bool right(const std::vector<float> &y)
{
  for (std::size_t i = 0; i < N; i++) {
    const float expected = 1 + (i < HALF ? 3 : 2 * 5) * float(i);
    if (y[i] != expected) {
      std::printf("y[%zu] is %g, expected %g\n", i, double(y[i]), double(expected));
      return false;
    }
  }
  return true;
}

static int run(const char *spec)
{
  tilert::Device device(spec);
  tilert::Stream first(device), second(device);
  std::vector<float> host(N);
  for (std::size_t i = 0; i < N; i++)
    host[i] = float(i);
  tilert::Buffer<float> x(device, host), y(device, std::vector<float>(N, 1));
  axpy_kernels::load(device);                            // what is captured below is not to load anything

  // The first half in one stream; the second, which waits for that, as a graph of another one, launched twice.
  tilert::Span<const float> from = x;
  tilert::Span<float> to = y;
  axpy_kernels::axpy(first, 3, from.subspan(0, HALF), to.subspan(0, HALF), int(HALF));
  tilert::Graph graph = second.capture([&] { axpy_kernels::axpy(second, 1, from.subspan(HALF), to.subspan(HALF), int(N - HALF)); });
  tilert::GraphExec ready(graph);
  ready.set_arg(0, 0, 5.0f);                             // argument 0 of node 0
  second.wait(first.record());
  ready(second);
  ready(second);
  if (!right(y.read()))
    return 1;
  std::printf("axpy of %zu elements on %s, by spans: right\n", N, device.info().name);
  axpy_kernels::unload();
  return 0;
}

int main(int argc, char **argv)
{
  try {
    return run(argc > 1 ? argv[1] : nullptr);
  } catch (const std::exception &e) {
    std::fprintf(stderr, "spans: %s\n", e.what());
    return 1;
  }
}
