// tilert.hpp, all of it: on the simulator; with "cuda", over the driver that only records, what is asked of it and in which order. Every
// function of tilert.h is in it.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fstream>
#include <sstream>
#include <string>
#include "tilert.hpp"
#include "fakecuda.h"
#include "kernels.h"

#define CHECK(condition) \
  ((condition) ? void() : (std::fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition), std::exit(1)))

using tilert::Buffer;
using tilert::Grid;

enum { N = 100 };

template <class F> static bool throws(F &&f, int status, const char *words)
{
  try {
    f();
  } catch (const tilert::Error &e) {
    if (e.status() == status && std::strstr(e.what(), words))
      return true;
    std::fprintf(stderr, "status %s: %s\n", e.status_name(), e.what());
  }
  return false;
}

template <class E, class F> static bool throws_a(F &&f)
{
  try {
    f();
  } catch (const E &) {
    return true;
  }
  return false;
}

template <class T> constexpr bool moves = !std::is_copy_constructible_v<T> && std::is_nothrow_move_constructible_v<T>;
static_assert(moves<tilert::Device> && moves<tilert::Stream> && moves<tilert::Event> && moves<tilert::Pool> && moves<Buffer<float>>);
static_assert(moves<tilert::Launch> && moves<tilert::Graph> && moves<tilert::GraphExec>);
static_assert(std::is_copy_constructible_v<tilert::Kernel> && !std::is_copy_constructible_v<tilert::Range>);
static_assert(!std::is_convertible_v<double, Grid> && std::is_convertible_v<long, Grid>);

static std::string text_of(const char *name)
{
  std::ifstream f(std::string(SOURCE_DIR "/") + name);
  std::stringstream s;
  s << f.rdbuf();
  CHECK(s.str().size() > 1000);
  return s.str();
}

// ---- the header has everything ----

static void test_complete()
{
  const std::string c = text_of("runtime/tilert.h"), cpp = text_of("runtime/tilert.hpp");
  const std::string letters = "abcdefghijklmnopqrstuvwxyz_0123456789";
  int functions = 0;
  for (std::size_t at = 0; (at = c.find("\nTILERT_API ", at + 1)) != std::string::npos; functions++) {
    const std::size_t open = c.find('(', at), from = c.find_last_not_of(letters, open - 1) + 1;
    const std::string name = c.substr(from, open - from);
    if (name == "tilert_stream_create")                  // which is the one with a priority, that being 0
      continue;
    bool there = false;
    for (std::size_t p = 0; !there && (p = cpp.find(name, p + 1)) != std::string::npos;)
      there = letters.find(cpp[p + name.size()]) == std::string::npos;
    if (!there)
      std::fprintf(stderr, "tilert.hpp has nothing of %s\n", name.c_str());
    CHECK(there);
  }
  CHECK(functions > 90);
}

// ---- what is there ----

struct Setup {
  tilert::Device device;
  tilert::Stream s{device};
  tilert::Module module{device, axpy_ptx};
  tilert::Kernel axpy = module.kernel("axpy");
  std::vector<float> ones = std::vector<float>(N, 1);
  Buffer<float> x{device, ones}, y{device, ones};
  explicit Setup(const char *spec) : device(spec) {}
};

static void test_devices(Setup &u)
{
  CHECK(u.device.info().is_sim && tilert::version() == std::string(TILEC_VERSION));
  TilertOptions o = tilert::Device::options();
  o.sim_multiprocessors = 2;
  tilert::Device small("sim", &o), again = small.share();
  CHECK(small.info().multiprocessors == 2 && again.get() == small.get());
  CHECK(u.device.can_reach(u.device) && !u.device.can_reach(small));
  u.device.reach(u.device);
  CHECK(throws([&] { u.device.reach(small); }, TILERT_E_UNAVAILABLE, "sim"));
  u.device.set_persisting(0);
  u.device.reset_persisting();
  CHECK(throws([&] { u.device.set_persisting(1); }, TILERT_E_ARGUMENT, "persisting"));
  CHECK(tilert::Device::gpus() == 0 && throws([] { tilert::Device d("cuda"); }, TILERT_E_UNAVAILABLE, "cuda"));
  CHECK(throws([] { tilert::Device::wrap(nullptr); }, TILERT_E_UNAVAILABLE, "driver"));
  u.device.reset_stats();
  u.axpy(u.s, 1, u.x, u.y, N);
  CHECK(u.device.stats().launches == 1 && u.device.stats().blocks == (N + 31) / 32);
  u.device.cancel();                                     // nothing runs
  CHECK(u.device.fault().empty());
  tilert::Range outer(u.device, "outer"), inner(u.device, "inner");
  u.device.synchronize();
}

static void test_launches(Setup &u)
{
  u.y.fill(0);
  u.axpy(u.s, 2, u.x, u.y, N);                           // its own grid; 2 is for an f32
  CHECK(u.y.read() == std::vector<float>(N, 2));
  u.axpy[{1, 1}](u.s, 0.5f, u.x, tilert::Span<float>(u.y), N);
  CHECK(u.y.read(u.s)[31] == 2.5f && u.y.read()[32] == 2);
  u.axpy[0](u.s, 7, nullptr, u.y.data(), N);             // nothing to do
  CHECK(u.axpy.grid(1, u.x, u.y, 65)[0] == 3 && u.axpy.fits(1, u.x, u.y, 65));
  CHECK(u.axpy.signature() == "axpy(a: f32, x: *f32, y: *f32, n: i32)" && u.axpy.name() == "axpy" && u.axpy.arg_count() == 4);
  CHECK(u.axpy.arg_info(3).name == std::string("n") && u.axpy.info().threads == 32 && u.axpy.occupancy() > 0);
  CHECK(u.module.size() == 2 && u.module[1].name() == "wild" && throws_a<std::out_of_range>([&] { u.module[2]; }));
  CHECK(throws([&] { u.module.kernel(); }, TILERT_E_ARGUMENT, "kernel"));
  CHECK(tilert::Module::manifests(axpy_ptx).size() == 2 && tilert::Module::derived(axpy_ptx)[0].kernel == std::string("axpy"));
  CHECK(throws([&] { tilert::Module m(u.device, "nothing"); }, TILERT_E_MODULE, "no //@tilec line"));
  CHECK(throws([&] { u.axpy(u.s, 1, u.x, 2.5, N); }, TILERT_E_ARGUMENT, "argument 2 (y: *f32): a floating-point number"));
  CHECK(throws([&] { u.axpy(u.s, 1, u.x, u.y); }, TILERT_E_ARGUMENT, "takes 4 arguments"));
  CHECK(throws([&] { u.axpy[-1](u.s, 1, u.x, u.y, N); }, TILERT_E_ARGUMENT, "grid"));
  CHECK(throws([&] { u.axpy[std::int64_t(1) << 32](u.s, 1, u.x, u.y, N); }, TILERT_E_ARGUMENT, "grid"));

  tilert::Launch l = u.axpy[4u].bind(1, u.x, u.y, N);
  CHECK(l.grid()[0] == 4 && l.grid()[2] == 1 && l.kernel() == u.axpy.get());
  l.set_grid(u.axpy.grid(1, u.x, u.y, 32));
  l.set_arg(0, 10);
  l.set_pdl(TILERT_PDL_AUTO);
  l.set_cluster(1);
  l.set_priority(0);
  l.set_window(tilert::window(u.x, 0.5f));
  l.no_window();
  l.set_shape(32);
  u.y.fill(0);
  l(u.s);
  CHECK(u.y.read()[31] == 10 && u.y.read()[32] == 0);
  CHECK(throws([&] { l.set_arg(9, 1); }, TILERT_E_ARGUMENT, "none at"));
  u.axpy.shaped(u.s, 1, {32}, 0, 1, u.x, u.y, 1);
  CHECK(l.bench(u.s, 0, 0).runs > 0 && u.axpy.bind(1, u.x, u.y, 1).grid()[0] == 1);
  int runs = 0;
  CHECK(tilert::bench(u.device, u.s, [&] { runs++; }, 0, 0).runs > 0 && runs > 0);
  CHECK(throws([&] { tilert::bench(u.device, u.s, [&] { u.axpy(u.s, 1); }, 0, 0); }, TILERT_E_ARGUMENT, "takes 4 arguments"));
  CHECK(throws_a<int>([&] { tilert::bench(u.device, u.s, [] { throw 5; }, 0, 0); }));

  tilert::Kernel kept = tilert::Module(u.device, axpy_ptx).kernel("axpy");       // its module stays as long as it
  kept(u.s, 0, u.x, u.y, N);
  CHECK(throws([&] { u.module[1](u.s, u.x, 1); }, TILERT_E_ARGUMENT, "grid"));
  try {
    u.module[1][1](u.s, u.x, 1 << 20);
    CHECK(false);
  } catch (const tilert::Error &e) {
    CHECK(e.status() == TILERT_E_FAULT && e.status_name() == std::string("fault") && e.error().line == 7 && u.device.fault().size() > 20);
  }
}

static void test_streams(Setup &u)
{
  tilert::Stream t(u.device, 0), whole = tilert::Stream::wrap(u.device, nullptr);
  CHECK(t.native() && !whole.native() && t.device().get() == u.device.get());
  tilert::Event before(u.device), after(u.device);
  before.record(u.s);
  u.y.fill(0);
  u.axpy(u.s, 1, u.x, u.y, N);
  t.wait(u.s.record());
  u.axpy(t, 1, u.y, u.y, N);
  after.record(t);
  after.synchronize();
  CHECK(after.done() && t.done() && before.ms_to(after) >= 0 && u.y.read()[N - 1] == 2);
  std::string said;
  t.host([&said, own = std::make_unique<int>(3)] { said = std::string("called ") + char('0' + *own); });
  t.synchronize();
  CHECK(said == "called 3");
  u.s.set_window(tilert::window(u.x, 0.5f, TILERT_ACCESS_STREAMING, TILERT_ACCESS_NORMAL));
  u.s.no_window();
  CHECK(throws([&] { u.s.set_window(tilert::window(u.x, 2)); }, TILERT_E_ARGUMENT, "ratio"));
  CHECK(throws([&] { tilert::Stream s(u.device, 100); }, TILERT_E_ARGUMENT, "priority"));
  tilert::Event untimed(u.device, false);
  untimed.record(u.s);
  CHECK(untimed.done() && throws([&] { untimed.ms_to(after); }, TILERT_E_ARGUMENT, "time"));
}

static void test_memory(Setup &u)
{
  Buffer<std::int32_t> b(u.device, 8);
  b.fill(-2);
  const std::int32_t three[] = {1, 2, 3};
  b.write(three, 3, 2);
  b.write(three, 1, 7, &u.s);
  std::int32_t two[2];
  b.read(two, 2, 3);
  CHECK(two[0] == 2 && two[1] == 3 && b.read() == (std::vector<std::int32_t>{-2, -2, 1, 2, 3, -2, -2, 1}) && b.bytes() == 32 && !b.host());
  Buffer<std::int32_t> part = b.part(2, 3), other(u.device, 3);
  other.copy(part);
  other.copy(part, 1, 2, 0, &u.s);
  CHECK(other.read(u.s) == (std::vector<std::int32_t>{3, 2, 3}));
  CHECK(throws([&] { other.copy(b); }, TILERT_E_ARGUMENT, "outside") && throws([&] { b.part(7, 2); }, TILERT_E_ARGUMENT, "outside"));
  CHECK(throws_a<std::length_error>([&] { b.write({1, 2}); }) && throws_a<std::length_error>([&] { b.part(SIZE_MAX / 2, 1); }));
  Buffer<std::uint8_t> bytes(u.device, 5);
  bytes.fill(200);
  CHECK(bytes.read() == std::vector<std::uint8_t>(5, 200));
  Buffer<std::uint16_t> halves(u.device, 4);
  halves.fill(60000, &u.s);
  CHECK(halves.read()[3] == 60000);

  auto shared = Buffer<float>::on_host(u.device, N, TILERT_HOST_WRITE_COMBINED);
  for (int i = 0; i < N; i++)
    shared.host()[i] = float(i);
  alignas(16) static float mine[N];
  auto pinned = Buffer<float>::pin(u.device, mine, N);
  u.axpy(u.s, 3, shared, pinned, N);
  u.s.synchronize();
  CHECK(mine[99] == 297);
  auto wrapped = Buffer<float>::wrap(u.device, u.x.data(), 4);
  CHECK(wrapped.read() == std::vector<float>(4, 1));

  tilert::Pool pool(u.device, 1 << 20, 1 << 20);
  auto ordered = Buffer<float>::in(u.s, N, &pool), own = Buffer<float>::in(u.s, N);
  CHECK(pool.info().used >= N * 4);
  ordered.destroy_in(u.s);
  CHECK(!ordered.get() && pool.info().used == 0 && throws([&] { u.x.destroy_in(u.s); }, TILERT_E_ARGUMENT, "b"));
  pool.trim();
  CHECK(throws([&] { Buffer<char>::in(u.s, 2 << 20, &pool); }, TILERT_E_MEMORY, "the pool may have 1048576"));

  float across[2][3] = {{1, 2, 3}, {4, 5, 6}};
  Buffer<float> wide(u.device, std::vector<float>(10, 0));
  tilert::copy_rows(tilert::rows(wide, 5, 1), tilert::rows(across[0], 3), 2 * sizeof(float), 2, u.s);
  CHECK(wide.read() == (std::vector<float>{0, 1, 2, 0, 0, 0, 4, 5, 0, 0}));
  Buffer<float> gone = std::move(wide);
  CHECK(throws([&] { wide.fill(1); }, TILERT_E_ARGUMENT, "is NULL") && gone.size() == 10);
}

static void test_graphs(Setup &u)
{
  tilert::Stream t(u.device);
  const tilert::Launch l = u.axpy.bind(1, u.x, u.y, N);
  u.y.fill(0);
  tilert::Graph captured = u.s.capture([&] {
    CHECK(u.s.capturing());
    l(u.s);
    t.wait(u.s.record());
    u.axpy(t, 1, u.y, u.y, N);
    u.s.wait(t.record());
    CHECK(throws([&] { u.device.synchronize(); }, TILERT_E_ARGUMENT, "being captured"));
    CHECK(throws([&] { u.s.host([] {}); }, TILERT_E_ARGUMENT, "tilert::Graph::add_host"));
  });
  CHECK(!u.s.capturing() && captured.size() == 2 && captured.node(1).kind == TILERT_NODE_LAUNCH && u.y.read()[0] == 0);
  tilert::GraphExec exec(captured);
  exec(u.s);
  CHECK(u.y.read()[N - 1] == 2);
  exec.set_arg(0, 0, 0);                                 // adds nothing
  exec(u.s);
  CHECK(u.y.read()[N - 1] == 4);
  exec.set_grid(1, 1);
  exec(u.s);
  CHECK(u.y.read()[31] == 8 && u.y.read()[32] == 4);
  exec.set_launch(1, l);
  exec(u.s);
  CHECK(u.y.read()[31] == 9);
  CHECK(throws_a<int>([&] { u.s.capture([&]() { l(u.s); throw 1; }); }) && !u.s.capturing());

  std::vector<int> seen;
  float row[2] = {};
  Buffer<float> z(u.device, 4);
  std::unique_ptr<tilert::GraphExec> built;
  {
    tilert::Graph g(u.device);
    const tilert::Node a = g.add_fill(z, 5.0f), b = g.add_fill(u.y, 1.0f, {a}), both = g.add_empty({a, b});
    const tilert::Node c = g.add_copy(tilert::rows(row, 1), tilert::rows(z, 2), sizeof(float), 2, {both});
    const tilert::Node d = g.add_host([&seen, own = std::make_unique<int>(7)] { seen.push_back(*own); }, {c});
    CHECK(g.add_launch(l, {d}) == 5 && g.size() == 6 && g.node(both).nafter == 2);
    CHECK(throws([&] { g.add_empty({17}); }, TILERT_E_ARGUMENT, "17"));
    built = std::make_unique<tilert::GraphExec>(g);
  }
  (*built)(u.s);
  (*built)(u.s);
  u.s.synchronize();
  CHECK(row[0] == 5 && row[1] == 5 && seen == (std::vector<int>{7, 7}) && u.y.read()[N - 1] == 2);
  z = Buffer<float>(u.device, 4);
  CHECK(throws([&] { (*built)(u.s); }, TILERT_E_ARGUMENT, "the buffer of b has been destroyed"));
}

// What was moved from is refused where it is used; a kernel that was is still one.
static void test_moved(Setup &u)
{
  tilert::Device device("sim"), device_now = std::move(device);
  CHECK(throws([&] { device.info(); }, TILERT_E_ARGUMENT, "the device is NULL") && device_now.info().multiprocessors);
  CHECK(throws([&] { tilert::Stream s(device); }, TILERT_E_ARGUMENT, "dev is NULL") && throws([&] { Buffer<float> b(device, 1); }, TILERT_E_ARGUMENT, "NULL"));

  tilert::Stream s(u.device), now = std::move(s);
  const tilert::Launch l = u.axpy.bind(1, u.x, u.y, N);
  const tilert::Event event(u.device);
  tilert::GraphExec exec(now.capture([&] { l(now); }));
  float host = 0;
  CHECK(throws([&] { u.axpy(s, 1, u.x, u.y, N); }, TILERT_E_ARGUMENT, "the stream is NULL") && throws([&] { l(s); }, TILERT_E_ARGUMENT, "the stream"));
  CHECK(throws([&] { exec(s); }, TILERT_E_ARGUMENT, "the stream") && throws([&] { event.record(s); }, TILERT_E_ARGUMENT, "the stream"));
  CHECK(throws([&] { s.wait(event); }, TILERT_E_ARGUMENT, "the stream") && throws([&] { u.x.read(&host, 1, 0, &s); }, TILERT_E_ARGUMENT, "the stream"));
  CHECK(throws([&] { l.bench(s, 0, 0); }, TILERT_E_ARGUMENT, "the stream") && throws([&] { s.synchronize(); }, TILERT_E_ARGUMENT, "s is NULL"));
  u.axpy(now, 1, u.x, u.y, N);

  tilert::Kernel k = u.axpy;
  {
    const tilert::Kernel taken = std::move(k);
  }
  k(now, 1, u.x, u.y, N);
  tilert::GraphExec other = std::move(exec);
  other = tilert::GraphExec(now.capture([&] { k(now, 1, u.x, u.y, N); }));
  other(now);
  CHECK(throws([&] { exec(now); }, TILERT_E_ARGUMENT, "x is NULL"));
}

// Rows of a, as boxes, by maps that launches make (tensors.ptx) and by one that is made here.
static void test_tensors(Setup &u)
{
  const std::string ptx = text_of("tests/runtime/tensors.ptx");
  tilert::Module module(u.device, ptx);
  std::vector<std::int32_t> host(150);
  for (int i = 0; i < 150; i++)
    host[std::size_t(i)] = i;
  Buffer<std::int32_t> a(u.device, host), y(u.device, std::vector<std::int32_t>(160, -1));
  module.kernel("row")[3](u.s, tilert::Tensor<1>(a, {146}, {}, 4), tilert::Tensor<1>(y, {146}, {1}), 146);
  CHECK(y.read()[0] == 4 && y.read()[145] == 149 && y.read()[150] == -1);
  CHECK(throws([&] { module.kernel("row")[3](u.s, tilert::Tensor<1>(a, {151}), tilert::Tensor<1>(y, {151}), 151); }, TILERT_E_ARGUMENT, "(a)"));
  const std::uint64_t extents[] = {64, 8, 8}, strides[] = {256, 2048};
  const std::uint32_t box[] = {32, 1, 1}, steps[] = {1, 1, 1};
  const std::int32_t corner[] = {0};
  TilertTensor t{};
  t.type = 7;                                            // CU_TENSOR_MAP_DATA_TYPE_FLOAT32
  t.rank = 3;
  t.address = std::uint64_t(reinterpret_cast<std::uintptr_t>(u.x.data()));
  t.extents = extents;
  t.strides = strides;
  t.box = box;
  t.steps = steps;
  const TilertPixels pixels{corner, corner, 32, 8};
  const tilert::TensorMap map(u.device, t), seen(u.device, t, pixels);
  CHECK(tilert::arg(map).kind == TILERT_ARG_BYTES && std::memcmp(map.data(), seen.data(), 128) != 0);
  t.rank = 9;
  CHECK(throws([&] { tilert::TensorMap bad(u.device, t); }, TILERT_E_ARGUMENT, "rank"));
}

// ---- over the driver that records ----

static FakeCuda *fake;

// How often a function of the driver's was called.
static int calls(const char *name)
{
  for (int i = 0; i < fake->ncalls; i++)
    if (!std::strcmp(fake->calls[i].name, name))
      return fake->calls[i].count;
  return 0;
}

// Copies without a stream wait for all streams; those with one do not.
static void test_order()
{
  void *lib = dlopen("libcuda.so.1", RTLD_NOW);
  CHECK(lib);
  auto get = reinterpret_cast<FakeCuda *(*)()>(dlsym(lib, "fakecuda"));
  CHECK(get && (fake = get()));
  tilert::Device device("cuda");
  CHECK(tilert::Device::gpus() > 0);
  tilert::Stream stream(device);
  Buffer<float> x(device, 64), y(device, 64);
  int waits = calls("cuCtxSynchronize");
  x.write(std::vector<float>(64, 1));
  CHECK(calls("cuCtxSynchronize") == waits + 1);
  x.read();
  y.copy(x);
  x.fill(1);
  CHECK((waits += 4) == calls("cuCtxSynchronize"));
  const int waited = calls("cuStreamSynchronize");
  float host[64];
  x.read(host, 64, 0, &stream);
  y.copy(x, &stream);
  x.fill(2, &stream);
  CHECK(calls("cuCtxSynchronize") == waits && calls("cuStreamSynchronize") == waited);
  x.read(stream);
  CHECK(calls("cuCtxSynchronize") == waits && calls("cuStreamSynchronize") == waited + 1);
  stream.capture([&] { x.fill(3); });                    // where nothing may wait for what is captured
  CHECK(calls("cuCtxSynchronize") == waits);
  // A graph that calls the host goes when nothing can call it any more; others need not wait.
  int called = 0;
  {
    tilert::Graph graph(device);
    graph.add_host([&called] { called++; });
    tilert::GraphExec ready(graph), moved = std::move(ready);
    moved(stream);
    moved = tilert::GraphExec(graph);
    CHECK((waits += 1) == calls("cuCtxSynchronize"));
    tilert::GraphExec plain(stream.capture([&] { x.fill(3, &stream); }));
    plain(stream);
  }
  CHECK((waits += 1) == calls("cuCtxSynchronize"));
  tilert::Device other("cuda");
  Buffer<float> z(other, 64);
  z.copy(x);                                             // of both, if they were opened apart
  CHECK(calls("cuCtxSynchronize") == waits + 2);
}

int main(int argc, char **argv)
{
  if (argc > 1 && !std::strcmp(argv[1], "cuda")) {
    test_order();
    return 0;
  }
  test_complete();
  Setup u("sim");
  test_devices(u);
  test_launches(u);
  test_streams(u);
  test_memory(u);
  test_graphs(u);
  test_moved(u);
  test_tensors(u);
  return 0;
}
