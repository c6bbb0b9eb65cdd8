// tilert.hpp - all of tilert.h for C++17: objects that close themselves, typed memory, spans of it, errors as exceptions. Header only.
//
//     tilert::Device device("sim");
//     tilert::Stream stream(device);
//     tilert::Buffer<float> x(device, host), y(device, host.size());
//     kernels::softmax(stream, x, y, rows, n, n);         // of a header by tilec --emit=c that is included behind this one
//     std::vector<float> result = y.read();
//
//     tilert::Module module(device, ptx);                 // or what was compiled to PTX, or a cubin with its manifests
//     tilert::Kernel softmax = module.kernel("softmax");
//     softmax(stream, x, y, rows, n, n);                  // as many programs as its grid clause says
//     softmax[{rows}](stream, x, y, rows, n, n);          // or so many
//     tilert::Launch launch = softmax.bind(x, y, rows, n, n);
//     tilert::Graph graph = stream.capture([&] { launch(stream); launch(stream); });
//     tilert::GraphExec(graph)(stream);
//
// Objects move and do not copy, but for kernels, which share their module. get() is the object of the C API, which stays theirs. What a call
// needs and is there no more (moved from, or none) is an error with the argument's name, as in C.
//
// Copies and fills that are given no stream come behind what is in any stream, and are done when the call returns; with a stream they are in
// its order, and the host's memory has to stay until the stream has passed them.
#ifndef TILERT_HPP
#define TILERT_HPP
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>
#include "args.h"
#include "tilert.h"

namespace tilert {

// What a call of the C API says when its status is not 0. what() is the sentence; error() has the place of a fault on the simulator, too.
class Error : public std::runtime_error {
public:
  explicit Error(const TilertError &e) : std::runtime_error(e.message), error_(e) {}
  int status() const noexcept { return error_.status; }
  const char *status_name() const noexcept { return tilert_status_name(error_.status); }
  const TilertError &error() const noexcept { return error_; }

private:
  TilertError error_;
};

// Of the library; TILEC_VERSION is the headers'.
inline const char *version() noexcept
{
  return tilert_version();
}

// check([&](TilertError *err) { return tilert_...(..., err); });
template <class Call> void check(Call &&call)
{
  TilertError e{};
  if (call(&e) != TILERT_OK)
    throw Error(e);
}

namespace detail {

[[noreturn]] inline void refuse(const char *sentence)
{
  TilertError e{};
  e.status = TILERT_E_ARGUMENT;
  std::snprintf(e.message, sizeof e.message, "%s", sentence);
  throw Error(e);
}

// NULL would be the default stream.
inline TilertStream *needed(TilertStream *stream)
{
  if (!stream)
    refuse("the stream is NULL: it has been moved from");
  return stream;
}

template <class T, void (*destroy)(T *)> struct Destroy {
  void operator()(T *object) const noexcept { destroy(object); }
};
template <class T, void (*destroy)(T *)> using Handle = std::unique_ptr<T, Destroy<T, destroy>>;
using DeviceHandle = Handle<TilertDevice, tilert_device_close>;

// What a call makes: make<TilertStream>([&](TilertStream **out, TilertError *e) { return tilert_stream_create(device, out, e); })
template <class T, class Call> T *make(Call &&call)
{
  T *object = nullptr;
  check([&](TilertError *e) { return call(&object, e); });
  return object;
}

template <class T> std::size_t bytes_of(std::size_t count)
{
  if (count > static_cast<std::size_t>(-1) / sizeof(T))
    throw std::length_error("tilert: more elements than memory has bytes");
  return count * sizeof(T);
}

} // namespace detail

// How many programs a launch has, or threads a block, along each axis; integers of any type.
class Grid {
public:
  template <class X, class Y = int, class Z = int,
            class = std::enable_if_t<std::is_integral_v<X> && std::is_integral_v<Y> && std::is_integral_v<Z>>>
  constexpr Grid(X x, Y y = 1, Z z = 1) noexcept : extent_{word(x), word(y), word(z)} {}
  constexpr Grid(const std::array<std::uint32_t, 3> &extents) noexcept : extent_(extents) {}
  constexpr const std::uint32_t *data() const noexcept { return extent_.data(); }
  constexpr std::uint32_t operator[](std::size_t axis) const { return extent_[axis]; }

private:
  // What no device takes stays that.
  template <class X> static constexpr std::uint32_t word(X x) noexcept
  {
    const bool fits = x >= X(0) && static_cast<std::make_unsigned_t<X>>(x) <= UINT32_MAX;
    return fits ? static_cast<std::uint32_t>(x) : UINT32_MAX;
  }
  std::array<std::uint32_t, 3> extent_;
};

// size elements at data, in memory of a device: nothing here reads or writes it.
template <class T> class Span {
public:
  constexpr Span() noexcept = default;
  constexpr Span(std::nullptr_t) noexcept {}
  constexpr Span(T *data, std::size_t size) noexcept : data_(data), size_(size) {}
  template <class U, class = std::enable_if_t<std::is_same_v<const U, T>>>
  constexpr Span(const Span<U> &s) noexcept : data_(s.data()), size_(s.size()) {}
  constexpr T *data() const noexcept { return data_; }
  constexpr std::size_t size() const noexcept { return size_; }
  constexpr bool empty() const noexcept { return size_ == 0; }
  // From element `from`, as many as `count` or as there are.
  constexpr Span subspan(std::size_t from, std::size_t count = static_cast<std::size_t>(-1)) const
  {
    if (from > size_)
      throw std::out_of_range("tilert::Span::subspan");
    return Span(data_ + from, count < size_ - from ? count : size_ - from);
  }

private:
  T *data_ = nullptr;
  std::size_t size_ = 0;
};

// ---- devices ----

class Device {
public:
  // "cuda", "cuda:1", "sim", or nullptr for the best there is. A library that is older than this header is refused.
  explicit Device(const char *spec = nullptr, const TilertOptions *options = nullptr)
  {
    check([](TilertError *e) { return tilert_version_check(TILEC_VERSION_NUMBER, e); });
    device_.reset(detail::make<TilertDevice>([&](TilertDevice **out, TilertError *e) { return tilert_device_open(spec, options, out, e); }));
  }
  // Of a context of the caller's (a CUcontext), which outlives it; nullptr: the thread's current one.
  static Device wrap(void *context)
  {
    return Device(detail::make<TilertDevice>([&](TilertDevice **out, TilertError *e) { return tilert_device_wrap(context, out, e); }));
  }
  static int gpus() noexcept { return tilert_cuda_count(); }
  static TilertOptions options()
  {
    TilertOptions o{};
    tilert_options_default(&o);
    return o;
  }
  // The same device once more.
  Device share() const noexcept { return Device(tilert_device_retain(get())); }

  TilertDevice *get() const noexcept { return device_.get(); }
  const TilertDeviceInfo &info() const
  {
    const TilertDeviceInfo *info = tilert_device_info(get());
    if (!info)
      detail::refuse("tilert::Device::info: the device is NULL: it has been moved from");
    return *info;
  }
  void synchronize() const
  {
    check([&](TilertError *e) { return tilert_device_synchronize(get(), e); });
  }
  // The part of the L2 cache that is for persisting accesses (Stream::set_window), of what info().l2_persisting_max allows.
  void set_persisting(std::size_t bytes) const
  {
    check([&](TilertError *e) { return tilert_device_set_persisting(get(), bytes, e); });
  }
  void reset_persisting() const
  {
    check([&](TilertError *e) { return tilert_device_reset_persisting(get(), e); });
  }
  // Whether kernels of this device can reach memory of the other one; from now on they do.
  bool can_reach(const Device &other) const
  {
    int can = 0;
    check([&](TilertError *e) { return tilert_peer_possible(get(), other.get(), &can, e); });
    return can != 0;
  }
  void reach(const Device &other) const
  {
    check([&](TilertError *e) { return tilert_peer_enable(get(), other.get(), e); });
  }
  // Of the simulator: stop what runs; the last fault in full; what was counted.
  void cancel() const noexcept { tilert_device_cancel(get()); }
  std::string fault() const
  {
    std::string text(tilert_device_fault(get(), nullptr, 0), '\0');
    tilert_device_fault(get(), text.data(), text.size() + 1);
    return text;
  }
  TilertStats stats() const
  {
    TilertStats s{};
    check([&](TilertError *e) { return tilert_device_stats(get(), &s, e); });
    return s;
  }
  void reset_stats() const
  {
    check([&](TilertError *e) { return tilert_device_stats_reset(get(), e); });
  }

private:
  explicit Device(TilertDevice *d) noexcept : device_(d) {}
  detail::DeviceHandle device_;
};

// What profilers show for the time that this object is there (NVTX).
class Range {
public:
  Range(const Device &device, const char *name) : device_(device.share()) { tilert_range_push(device_.get(), name); }
  ~Range() { tilert_range_pop(device_.get()); }
  Range(const Range &) = delete;
  Range &operator=(const Range &) = delete;

private:
  Device device_;
};

// ---- streams and events ----

class Graph;
class Stream;

class Event {
public:
  // timed false: one that is for waiting only, and costs less.
  explicit Event(const Device &device, bool timed = true)
      : event_(detail::make<TilertEvent>([&](TilertEvent **out, TilertError *e) {
          return timed ? tilert_event_create(device.get(), out, e) : tilert_event_create_untimed(device.get(), out, e);
        }))
  {
  }
  TilertEvent *get() const noexcept { return event_.get(); }
  void record(const Stream &stream) const;
  void synchronize() const
  {
    check([&](TilertError *e) { return tilert_event_synchronize(get(), e); });
  }
  bool done() const
  {
    int done = 0;
    check([&](TilertError *e) { return tilert_event_query(get(), &done, e); });
    return done != 0;
  }
  // Milliseconds from this one to another; waits for both.
  float ms_to(const Event &other) const
  {
    float ms = 0;
    check([&](TilertError *e) { return tilert_event_elapsed(get(), other.get(), &ms, e); });
    return ms;
  }

private:
  detail::Handle<TilertEvent, tilert_event_destroy> event_;
};

class Stream {
public:
  explicit Stream(const Device &device) : Stream(device, 0) {}
  // priority: from info().priority_greatest, the lower number, whose work comes first, to priority_least.
  Stream(const Device &device, int priority)
      : device_(device.share()), stream_(detail::make<TilertStream>([&](TilertStream **out, TilertError *e) {
          return tilert_stream_create_priority(device.get(), priority, out, e);
        }))
  {
  }
  // One of another library (a CUstream), or with nullptr the device's default stream.
  static Stream wrap(const Device &device, void *native)
  {
    return Stream(device, detail::make<TilertStream>([&](TilertStream **out, TilertError *e) {
      return tilert_stream_wrap(device.get(), native, out, e);
    }));
  }
  TilertStream *get() const noexcept { return stream_.get(); }
  void *native() const noexcept { return tilert_stream_native(get()); }
  const Device &device() const noexcept { return device_; }
  void synchronize() const
  {
    check([&](TilertError *e) { return tilert_stream_synchronize(get(), e); });
  }
  bool done() const
  {
    int done = 0;
    check([&](TilertError *e) { return tilert_stream_query(get(), &done, e); });
    return done != 0;
  }
  // What is put into the stream from here on begins when that is complete which the event was recorded behind; the host goes on.
  void wait(const Event &event) const
  {
    check([&](TilertError *e) { return tilert_stream_wait(detail::needed(get()), event.get(), e); });
  }
  Event record(bool timed = false) const
  {
    Event event(device_, timed);
    event.record(*this);
    return event;
  }
  // f() on the host, once, when the stream comes there; what follows waits for that. It throws nothing, calls nothing of tilert, and waits for
  // nothing that does. What a graph is to call is Graph::add_host's.
  template <class F> void host(F f) const
  {
    if (capturing())
      detail::refuse("tilert::Stream::host: the stream is being captured; what a graph calls is added by tilert::Graph::add_host");
    auto own = std::make_unique<F>(std::move(f));
    void (*call)(void *) = [](void *user) noexcept { (*std::unique_ptr<F>(static_cast<F *>(user)))(); };
    check([&](TilertError *e) { return tilert_stream_host(get(), call, own.get(), e); });
    static_cast<void>(own.release());
  }
  // How the L2 cache treats accesses of the launches that follow (tilert::window); without one as it treats all.
  void set_window(const TilertWindow &window) const
  {
    check([&](TilertError *e) { return tilert_stream_set_window(get(), &window, e); });
  }
  void no_window() const
  {
    check([&](TilertError *e) { return tilert_stream_set_window(get(), nullptr, e); });
  }
  bool capturing() const noexcept { return tilert_stream_capturing(get()) != 0; }
  // What f() puts into the stream, and into others that wait for it, is not done, but becomes the nodes of a graph. If f throws, there is none.
  template <class F> Graph capture(F &&f) const;

private:
  Stream(const Device &device, TilertStream *s) noexcept : device_(device.share()), stream_(s) {}
  Device device_;
  detail::Handle<TilertStream, tilert_stream_destroy> stream_;
};

inline void Event::record(const Stream &stream) const
{
  check([&](TilertError *e) { return tilert_event_record(get(), detail::needed(stream.get()), e); });
}

// ---- memory ----

// Memory that Buffer::in takes and gives back in a stream's order.
class Pool {
public:
  // keep: so many unused bytes stay in it when something waits for the device; limit: so many it may have, 0 for what the device has.
  explicit Pool(const Device &device, std::uint64_t keep = 0, std::uint64_t limit = 0)
  {
    TilertPoolOptions o{};
    o.size = sizeof o;
    o.keep = keep;
    o.limit = limit;
    pool_.reset(detail::make<TilertPool>([&](TilertPool **out, TilertError *e) { return tilert_pool_create(device.get(), &o, out, e); }));
  }
  TilertPool *get() const noexcept { return pool_.get(); }
  TilertPoolInfo info() const
  {
    TilertPoolInfo info{};
    check([&](TilertError *e) { return tilert_pool_info(get(), &info, e); });
    return info;
  }
  void trim(std::uint64_t keep = 0) const
  {
    check([&](TilertError *e) { return tilert_pool_trim(get(), keep, e); });
  }

private:
  detail::Handle<TilertPool, tilert_pool_destroy> pool_;
};

// Memory for elements of one type.
template <class T> class Buffer {
  static_assert(std::is_trivially_copyable_v<T>, "elements are copied byte by byte");

public:
  Buffer(const Device &device, std::size_t size)
      : Buffer(size, [&](TilertBuffer **out, TilertError *e) {
          return tilert_buffer_create(device.get(), detail::bytes_of<T>(size), out, e);
        })
  {
  }
  Buffer(const Device &device, const std::vector<T> &from) : Buffer(device, from.size()) { write(from); }
  // Memory of the host that kernels reach, too: new (TILERT_HOST_*), or the caller's, as long as the buffer is there.
  static Buffer on_host(const Device &device, std::size_t size, std::uint32_t flags = 0)
  {
    return Buffer(size, [&](TilertBuffer **out, TilertError *e) {
      return tilert_buffer_create_host(device.get(), detail::bytes_of<T>(size), flags, out, e);
    });
  }
  static Buffer pin(const Device &device, T *host, std::size_t size)
  {
    return Buffer(size, [&](TilertBuffer **out, TilertError *e) {
      return tilert_buffer_pin(device.get(), host, detail::bytes_of<T>(size), out, e);
    });
  }
  // Another library's memory, at an address of the device; it stays theirs.
  static Buffer wrap(const Device &device, T *address, std::size_t size)
  {
    return Buffer(size, [&](TilertBuffer **out, TilertError *e) {
      return tilert_buffer_wrap(device.get(), static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(address)),
                                detail::bytes_of<T>(size), out, e);
    });
  }
  // Memory that is there for what comes into the stream from here on; of a pool, or of the device's own.
  static Buffer in(const Stream &stream, std::size_t size, const Pool *pool = nullptr)
  {
    return Buffer(size, [&](TilertBuffer **out, TilertError *e) {
      return tilert_buffer_create_in(stream.get(), pool ? pool->get() : nullptr, detail::bytes_of<T>(size), out, e);
    });
  }
  // Of memory that is in a stream's order: destroyed when this stream comes there. Otherwise that is the stream in which it was made.
  void destroy_in(const Stream &stream)
  {
    check([&](TilertError *e) { return tilert_buffer_destroy_in(get(), stream.get(), e); });
    static_cast<void>(buffer_.release());
    size_ = 0;
  }
  // Elements of this one as a buffer by itself; the memory stays until both are gone.
  Buffer part(std::size_t from, std::size_t count) const
  {
    return Buffer(count, [&](TilertBuffer **out, TilertError *e) {
      return tilert_buffer_part(get(), detail::bytes_of<T>(from), detail::bytes_of<T>(count), out, e);
    });
  }

  void write(const std::vector<T> &from, const Stream *stream = nullptr)
  {
    if (from.size() != size_)
      throw std::length_error("tilert::Buffer::write");
    write(from.data(), size_, 0, stream);
  }
  // count elements, from element `at` on.
  void write(const T *from, std::size_t count, std::size_t at = 0, const Stream *stream = nullptr)
  {
    check([&](TilertError *e) {
      return tilert_buffer_write(get(), detail::bytes_of<T>(at), from, detail::bytes_of<T>(count), in_order(stream), e);
    });
  }
  std::vector<T> read() const
  {
    std::vector<T> to(size_);
    read(to.data(), size_);
    return to;
  }
  // Behind what is in the stream; waits for that.
  std::vector<T> read(const Stream &stream) const
  {
    std::vector<T> to(size_);
    read(to.data(), size_, 0, &stream);
    stream.synchronize();
    return to;
  }
  void read(T *to, std::size_t count, std::size_t at = 0, const Stream *stream = nullptr) const
  {
    check([&](TilertError *e) {
      return tilert_buffer_read(get(), detail::bytes_of<T>(at), to, detail::bytes_of<T>(count), in_order(stream), e);
    });
  }
  // The elements of another buffer, of this device or another, from the beginning on; or count of them, from `of` to `at`.
  void copy(const Buffer &from, const Stream *stream = nullptr) { copy(from, from.size(), 0, 0, stream); }
  void copy(const Buffer &from, std::size_t count, std::size_t of, std::size_t at, const Stream *stream = nullptr)
  {
    check([&](TilertError *e) {
      return tilert_buffer_copy(get(), detail::bytes_of<T>(at), from.get(), detail::bytes_of<T>(of), detail::bytes_of<T>(count),
                                in_order(stream), e);
    });
  }
  // Every element becomes value, which has 1, 2 or 4 bytes.
  void fill(const T &value, const Stream *stream = nullptr)
  {
    check([&](TilertError *e) {
      return tilert_buffer_fill(get(), 0, detail::bytes_of<T>(size_), pattern(value), sizeof(T), in_order(stream), e);
    });
  }
  static std::uint32_t pattern(const T &value) noexcept
  {
    static_assert(sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4, "elements of 1, 2 or 4 bytes are filled in");
    std::conditional_t<sizeof(T) == 1, std::uint8_t, std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint32_t>> bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
  }

  T *data() const noexcept { return reinterpret_cast<T *>(static_cast<std::uintptr_t>(tilert_buffer_address(get()))); }
  T *host() const noexcept { return static_cast<T *>(tilert_buffer_host(get())); }      // nullptr: it is the device's
  std::size_t size() const noexcept { return size_; }
  std::size_t bytes() const noexcept { return tilert_buffer_size(get()); }
  TilertBuffer *get() const noexcept { return buffer_.get(); }
  operator Span<T>() const noexcept { return Span<T>(data(), size_); }
  operator Span<const T>() const noexcept { return Span<const T>(data(), size_); }

private:
  template <class Call>
  Buffer(std::size_t size, Call &&call)
      : buffer_(detail::make<TilertBuffer>(std::forward<Call>(call))), size_(size)
  {
  }
  static TilertStream *in_order(const Stream *stream) { return stream ? detail::needed(stream->get()) : nullptr; }
  detail::Handle<TilertBuffer, tilert_buffer_destroy> buffer_;
  std::size_t size_;
};

// Rows for copy_rows and Graph::add_copy: from element `from` on, `pitch` elements from one to the next.
template <class T> TilertRows rows(const Buffer<T> &buffer, std::size_t pitch, std::size_t from = 0)
{
  return TilertRows{buffer.get(), nullptr, detail::bytes_of<T>(from), detail::bytes_of<T>(pitch)};
}
template <class T> TilertRows rows(T *host, std::size_t pitch)
{
  return TilertRows{nullptr, const_cast<std::remove_const_t<T> *>(host), 0, detail::bytes_of<T>(pitch)};
}
// height rows of width bytes.
inline void copy_rows(const TilertRows &to, const TilertRows &from, std::size_t width, std::size_t height, const Stream &stream)
{
  check([&](TilertError *e) { return tilert_copy_rows(&to, &from, width, height, detail::needed(stream.get()), e); });
}

// Of accesses to a buffer `ratio` as hit says, the others as miss.
template <class T>
TilertWindow window(const Buffer<T> &buffer, float ratio = 1, TilertAccess hit = TILERT_ACCESS_PERSISTING,
                    TilertAccess miss = TILERT_ACCESS_STREAMING)
{
  return TilertWindow{buffer.get(), 0, buffer.bytes(), ratio, static_cast<std::uint32_t>(hit), static_cast<std::uint32_t>(miss)};
}

// ---- arguments ----

// A tensor argument: what lies in a buffer from element `from` on, with extents and strides in elements; without strides (the last is 1, if
// there are any) the last dimension is the fastest, with nothing in between.
template <std::size_t RANK> class Tensor {
public:
  using Extents = std::array<std::int64_t, RANK>;
  template <class T>
  Tensor(const Buffer<T> &buffer, const Extents &extents, const Extents &strides = {}, std::size_t from = 0)
      : buffer_(buffer.get()), address_(detail::bytes_of<T>(from)), extents_(extents), strides_(strides)
  {
  }
  const TilertTensorArg *c() const noexcept
  {
    c_ = TilertTensorArg{};
    c_.buffer = buffer_;
    c_.address = address_;
    c_.rank = static_cast<std::uint32_t>(RANK);
    c_.extents = extents_.data();
    c_.strides = strides_.back() ? strides_.data() : nullptr;
    return &c_;
  }

private:
  TilertBuffer *buffer_;
  std::uint64_t address_;
  Extents extents_, strides_;
  mutable TilertTensorArg c_{};
};

// The map of a tensor, which a parameter of type tensormap takes.
class alignas(64) TensorMap {
public:
  TensorMap(const Device &device, const TilertTensor &tensor)
  {
    check([&](TilertError *e) { return tilert_tensor_map(device.get(), &tensor, bytes_, e); });
  }
  TensorMap(const Device &device, const TilertTensor &tensor, const TilertPixels &pixels)
  {
    check([&](TilertError *e) { return tilert_tensor_map_im2col(device.get(), &tensor, &pixels, bytes_, e); });
  }
  const void *data() const noexcept { return bytes_; }

private:
  unsigned char bytes_[128] = {};
};

template <class T> TilertArg arg(const Buffer<T> &v) { return tilert_arg_buffer(v.get()); }
template <class T> TilertArg arg(const Span<T> &v) { return tilert_arg_pointer(v.data()); }
template <std::size_t RANK> TilertArg arg(const Tensor<RANK> &v) { return tilert_arg_tensor(v.c()); }
inline TilertArg arg(const TensorMap &v) { return tilert_arg_bytes(v.data()); }

// ---- modules, kernels, launches ----

class Launch;

class Kernel {
public:
  Kernel(const Kernel &) = default;                      // and no moves, which would leave a kernel without its module
  Kernel &operator=(const Kernel &) = default;
  TilertKernel *get() const noexcept { return kernel_; }
  const TilertManifest &manifest() const noexcept { return *tilert_kernel_manifest(get()); }
  std::string name() const { return manifest().kernel; }
  // "axpy(a: f32, x: *f32, n: i32)"
  std::string signature() const
  {
    std::string text(tilert_kernel_signature(get(), nullptr, 0), '\0');
    tilert_kernel_signature(get(), text.data(), text.size() + 1);
    return text;
  }
  std::size_t arg_count() const noexcept { return tilert_kernel_arg_count(get()); }
  TilertArgInfo arg_info(std::size_t index) const
  {
    TilertArgInfo info{};
    check([&](TilertError *e) { return tilert_kernel_arg(get(), index, &info, e); });
    return info;
  }
  TilertKernelInfo info() const
  {
    TilertKernelInfo info{};
    check([&](TilertError *e) { return tilert_kernel_info(get(), &info, e); });
    return info;
  }
  std::uint32_t occupancy() const
  {
    std::uint32_t blocks = 0;
    check([&](TilertError *e) { return tilert_kernel_occupancy(get(), &blocks, e); });
    return blocks;
  }
  // What the kernel's grid clause says of these arguments.
  template <class... A> Grid grid(const A &...values) const
  {
    std::array<std::uint32_t, 3> grid{};
    const std::array<TilertArg, sizeof...(A)> args{{arg(values)...}};
    check([&](TilertError *e) { return tilert_kernel_grid(get(), args.data(), args.size(), grid.data(), e); });
    return grid;
  }
  // false: a launch with these arguments is refused because of a map of a tensor, or a negative integer.
  template <class... A> bool fits(const A &...values) const
  {
    const std::array<TilertArg, sizeof...(A)> args{{arg(values)...}};
    return tilert_kernel_fits(get(), args.data(), args.size()) != 0;
  }

  // As many programs as the grid clause says: launch; check and pack once, to be launched often.
  template <class... A> void operator()(const Stream &stream, const A &...values) const { launch(stream, nullptr, values...); }
  template <class... A> Launch bind(const A &...values) const;
  // kernel[{x, y}](stream, ...), kernel[{x, y}].bind(...)
  class Sized;
  Sized operator[](const Grid &grid) const;
  // Of another compiler's PTX: blocks of any shape, with so many bytes of dynamic shared memory.
  template <class... A>
  void shaped(const Stream &stream, const Grid &grid, const Grid &block, std::uint32_t dynamic_shared, const A &...values) const
  {
    const std::array<TilertArg, sizeof...(A)> args{{arg(values)...}};
    check([&](TilertError *e) {
      return tilert_launch_shaped(detail::needed(stream.get()), get(), grid.data(), block.data(), dynamic_shared, args.data(), args.size(), e);
    });
  }

private:
  friend class Module;
  Kernel(std::shared_ptr<TilertModule> module, TilertKernel *kernel) noexcept : module_(std::move(module)), kernel_(kernel) {}
  template <class... A> void launch(const Stream &stream, const std::uint32_t *grid, const A &...values) const
  {
    const std::array<TilertArg, sizeof...(A)> args{{arg(values)...}};
    check([&](TilertError *e) { return tilert_launch(detail::needed(stream.get()), get(), grid, args.data(), args.size(), e); });
  }
  std::shared_ptr<TilertModule> module_;
  TilertKernel *kernel_;
};

class Kernel::Sized {
public:
  template <class... A> void operator()(const Stream &stream, const A &...values) const { kernel_.launch(stream, grid_.data(), values...); }
  template <class... A> Launch bind(const A &...values) const;

private:
  friend class Kernel;
  Sized(const Kernel &kernel, const Grid &grid) : kernel_(kernel), grid_(grid) {}
  Kernel kernel_;
  Grid grid_;
};

inline Kernel::Sized Kernel::operator[](const Grid &grid) const
{
  return Sized(*this, grid);
}

class Module {
public:
  // PTX, or a cubin with the manifests of its kernels.
  Module(const Device &device, std::string_view image, const std::vector<TilertManifest> &manifests = {})
      : module_(detail::make<TilertModule>([&](TilertModule **out, TilertError *e) {
                  return tilert_module_load(device.get(), image.data(), image.size(), manifests.empty() ? nullptr : manifests.data(),
                                            manifests.size(), out, e);
                }),
                tilert_module_destroy)
  {
  }
  // What the //@tilec lines of PTX say of its kernels; or, of another compiler's, their headers.
  static std::vector<TilertManifest> manifests(std::string_view ptx) { return told(ptx, tilert_manifest_parse); }
  static std::vector<TilertManifest> derived(std::string_view ptx) { return told(ptx, tilert_manifest_derive); }
  TilertModule *get() const noexcept { return module_.get(); }
  std::size_t size() const noexcept { return tilert_module_kernel_count(get()); }
  Kernel operator[](std::size_t index) const
  {
    TilertKernel *k = tilert_module_kernel_at(get(), index);
    if (!k)
      throw std::out_of_range("tilert::Module");
    return Kernel(module_, k);
  }
  // nullptr: the only one there is.
  Kernel kernel(const char *name = nullptr) const
  {
    return Kernel(module_, detail::make<TilertKernel>([&](TilertKernel **out, TilertError *e) {
                    return tilert_module_kernel(get(), name, out, e);
                  }));
  }

private:
  template <class Tell> static std::vector<TilertManifest> told(std::string_view ptx, Tell tell)
  {
    std::size_t n = 0;
    check([&](TilertError *e) { return tell(ptx.data(), ptx.size(), nullptr, 0, &n, e); });
    std::vector<TilertManifest> m(n);
    check([&](TilertError *e) { return tell(ptx.data(), ptx.size(), m.data(), m.size(), &n, e); });
    return m;
  }
  std::shared_ptr<TilertModule> module_;
};

// Time f(), which puts something into the stream: in milliseconds, as tilert_bench does it. What f throws comes out of here.
template <class F>
TilertBench bench(const Device &device, const Stream &stream, F &&f, double warmup_ms = 25, double rep_ms = 100)
{
  struct User { F &f; std::exception_ptr thrown; } user{f, nullptr};
  TilertBench result{};
  const TilertRun run = [](void *at, TilertStream *, TilertError *e) noexcept -> int {
    User &u = *static_cast<User *>(at);
    try {
      u.f();
      return TILERT_OK;
    } catch (...) {
      u.thrown = std::current_exception();
    }
    e->status = TILERT_E_ARGUMENT;
    std::snprintf(e->message, sizeof e->message, "tilert::bench: the function has thrown");
    return TILERT_E_ARGUMENT;
  };
  TilertError e{};
  const int status = tilert_bench(device.get(), detail::needed(stream.get()), nullptr, run, &user, warmup_ms, rep_ms, &result, &e);
  if (user.thrown)
    std::rethrow_exception(user.thrown);
  if (status)
    throw Error(e);
  return result;
}

// A kernel with its arguments, checked and packed: launched by one call of the driver's.
class Launch {
public:
  Launch(const Kernel &kernel, const Grid *grid, const TilertArg *args, std::size_t count)
      : launch_(detail::make<TilertLaunch>([&](TilertLaunch **out, TilertError *e) {
          return tilert_launch_create(kernel.get(), grid ? grid->data() : nullptr, args, count, out, e);
        }))
  {
  }
  TilertLaunch *get() const noexcept { return launch_.get(); }
  TilertKernel *kernel() const noexcept { return tilert_launch_kernel(get()); }
  void operator()(const Stream &stream) const
  {
    check([&](TilertError *e) { return tilert_launch_packed(get(), detail::needed(stream.get()), e); });
  }
  template <class A> void set_arg(std::size_t index, const A &value)
  {
    const TilertArg a = arg(value);
    check([&](TilertError *e) { return tilert_launch_set_arg(get(), index, &a, e); });
  }
  Grid grid() const
  {
    std::array<std::uint32_t, 3> grid{};
    check([&](TilertError *e) { return tilert_launch_grid(get(), grid.data(), e); });
    return grid;
  }
  void set_grid(const Grid &grid)
  {
    check([&](TilertError *e) { return tilert_launch_set_grid(get(), grid.data(), e); });
  }
  // Programmatic dependent launch; blocks in clusters; whatever priority the stream has; the L2 cache; blocks of another compiler's kernel.
  void set_pdl(TilertPdl how)
  {
    check([&](TilertError *e) { return tilert_launch_set_pdl(get(), how, e); });
  }
  void set_cluster(const Grid &cluster)
  {
    check([&](TilertError *e) { return tilert_launch_set_cluster(get(), cluster.data(), e); });
  }
  void set_priority(int priority)
  {
    check([&](TilertError *e) { return tilert_launch_set_priority(get(), priority, e); });
  }
  void set_window(const TilertWindow &window)
  {
    check([&](TilertError *e) { return tilert_launch_set_window(get(), &window, e); });
  }
  void no_window()
  {
    check([&](TilertError *e) { return tilert_launch_set_window(get(), nullptr, e); });
  }
  void set_shape(const Grid &block, std::uint32_t dynamic_shared = 0)
  {
    check([&](TilertError *e) { return tilert_launch_set_shape(get(), block.data(), dynamic_shared, e); });
  }
  TilertBench bench(const Stream &stream, double warmup_ms = 25, double rep_ms = 100) const
  {
    TilertBench b{};
    check([&](TilertError *e) { return tilert_bench_launch(get(), detail::needed(stream.get()), warmup_ms, rep_ms, &b, e); });
    return b;
  }

private:
  detail::Handle<TilertLaunch, tilert_launch_destroy> launch_;
};

template <class... A> Launch Kernel::bind(const A &...values) const
{
  const std::array<TilertArg, sizeof...(A)> args{{arg(values)...}};
  return Launch(*this, nullptr, args.data(), args.size());
}

template <class... A> Launch Kernel::Sized::bind(const A &...values) const
{
  const std::array<TilertArg, sizeof...(A)> args{{arg(values)...}};
  return Launch(kernel_, &grid_, args.data(), args.size());
}

// ---- graphs ----

using Node = TilertNode;

class Graph {
public:
  using After = std::initializer_list<Node>;

  explicit Graph(const Device &device)
      : device_(device.share()), graph_(detail::make<TilertGraph>([&](TilertGraph **out, TilertError *e) { return tilert_graph_create(device.get(), out, e); }))
  {
  }
  TilertGraph *get() const noexcept { return graph_.get(); }
  std::size_t size() const noexcept { return tilert_graph_count(get()); }
  TilertNodeInfo node(Node number) const
  {
    TilertNodeInfo info{};
    check([&](TilertError *e) { return tilert_graph_node(get(), number, &info, e); });
    return info;
  }
  // Each adds a node behind others, and gives its number.
  Node add_launch(const Launch &launch, After after = {})
  {
    return add([&](Node *node, TilertError *e) { return tilert_graph_add_launch(get(), launch.get(), after.begin(), after.size(), node, e); });
  }
  Node add_copy(const TilertRows &to, const TilertRows &from, std::size_t width, std::size_t height, After after = {})
  {
    return add([&](Node *node, TilertError *e) {
      return tilert_graph_add_copy(get(), &to, &from, width, height, after.begin(), after.size(), node, e);
    });
  }
  template <class T> Node add_fill(const Buffer<T> &buffer, const T &value, After after = {})
  {
    return add([&](Node *node, TilertError *e) {
      return tilert_graph_add_fill(get(), buffer.get(), 0, buffer.bytes(), Buffer<T>::pattern(value), sizeof(T), after.begin(), after.size(),
                                   node, e);
    });
  }
  // f() at each launch, as in Stream::host. It stays as long as the graph, or one that was made of it.
  template <class F> Node add_host(F f, After after = {})
  {
    auto own = std::make_shared<F>(std::move(f));
    void (*call)(void *) = [](void *user) noexcept { (*static_cast<F *>(user))(); };
    called_.push_back(own);
    return add([&](Node *node, TilertError *e) {
      return tilert_graph_add_host(get(), call, own.get(), after.begin(), after.size(), node, e);
    });
  }
  Node add_empty(After after = {})
  {
    return add([&](Node *node, TilertError *e) { return tilert_graph_add_empty(get(), after.begin(), after.size(), node, e); });
  }

private:
  friend class Stream;
  friend class GraphExec;
  Graph(const Device &device, TilertGraph *g) noexcept : device_(device.share()), graph_(g) {}
  template <class Call> static Node add(Call &&call)
  {
    Node node = 0;
    check([&](TilertError *e) { return call(&node, e); });
    return node;
  }
  Device device_;
  detail::Handle<TilertGraph, tilert_graph_destroy> graph_;
  std::vector<std::shared_ptr<void>> called_;
};

template <class F> Graph Stream::capture(F &&f) const
{
  check([&](TilertError *e) { return tilert_stream_capture_begin(get(), e); });
  try {
    f();
  } catch (...) {
    TilertGraph *none = nullptr;
    tilert_stream_capture_end(get(), &none, nullptr);
    tilert_graph_destroy(none);
    throw;
  }
  return Graph(device_, detail::make<TilertGraph>([&](TilertGraph **out, TilertError *e) { return tilert_stream_capture_end(get(), out, e); }));
}

// A graph that the device has made ready. Its buffers stay the caller's. Where it calls functions of the host, its end waits for the device, as
// a launch may still call them.
class GraphExec {
public:
  explicit GraphExec(const Graph &graph)
      : device_(graph.device_.share()), called_(graph.called_), exec_(detail::make<TilertGraphExec>([&](TilertGraphExec **out, TilertError *e) {
          return tilert_graph_instantiate(graph.get(), out, e);
        }))
  {
  }
  GraphExec(GraphExec &&) noexcept = default;
  GraphExec &operator=(GraphExec &&other) noexcept
  {
    if (this != &other) {
      end();
      device_ = std::move(other.device_);
      called_ = std::move(other.called_);
      exec_ = std::move(other.exec_);
    }
    return *this;
  }
  ~GraphExec() { end(); }
  TilertGraphExec *get() const noexcept { return exec_.get(); }
  void operator()(const Stream &stream) const
  {
    check([&](TilertError *e) { return tilert_graph_launch(get(), detail::needed(stream.get()), e); });
  }
  // Of a launch in it, for the launches of the graph that follow: another argument, grid, or launch.
  template <class A> void set_arg(Node node, std::size_t index, const A &value)
  {
    const TilertArg a = arg(value);
    check([&](TilertError *e) { return tilert_graph_set_arg(get(), node, index, &a, e); });
  }
  void set_grid(Node node, const Grid &grid)
  {
    check([&](TilertError *e) { return tilert_graph_set_grid(get(), node, grid.data(), e); });
  }
  void set_launch(Node node, const Launch &launch)
  {
    check([&](TilertError *e) { return tilert_graph_set_launch(get(), node, launch.get(), e); });
  }

private:
  // Where nothing can be waited for (a lost device, a stream that is captured), the functions stay for ever.
  void end() noexcept
  {
    if (exec_ && !called_.empty() && tilert_device_synchronize(device_.get(), nullptr) != TILERT_OK)
      static_cast<void>(new (std::nothrow) std::vector<std::shared_ptr<void>>(std::move(called_)));
    exec_.reset();
    called_.clear();
  }
  Device device_;
  std::vector<std::shared_ptr<void>> called_;
  detail::Handle<TilertGraphExec, tilert_graph_exec_destroy> exec_;
};

} // namespace tilert
#endif
