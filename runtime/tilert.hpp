// tilert.hpp - tilert.h for C++17: objects that close themselves, typed memory, spans of it, and errors as exceptions. Header only.
//
//     tilert::Device device("sim");
//     tilert::Stream stream(device);
//     tilert::Buffer<float> x(device, host), y(device, host.size());
//     kernels::softmax(stream, x, y, rows, n, n);         // of a header by tilec --emit=c that is included behind this one
//     std::vector<float> result = y.read();
//
// Objects move and do not copy. get() is the object of the C API, which stays theirs.
#ifndef TILERT_HPP
#define TILERT_HPP
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>
#include "tilert.h"

namespace tilert {

using Grid = std::array<std::uint32_t, 3>;

// What a call of the C API says when its status is not 0.
class Error : public std::runtime_error {
public:
  explicit Error(const TilertError &e) : std::runtime_error(e.message), status_(e.status) {}
  int status() const noexcept { return status_; }

private:
  int status_;
};

// check([&](TilertError *err) { return tilert_...(..., err); });
template <class Call> void check(Call &&call)
{
  TilertError e{};
  if (call(&e) != TILERT_OK)
    throw Error(e);
}

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

class Device {
public:
  explicit Device(const char *spec = nullptr, const TilertOptions *options = nullptr)
  {
    TilertDevice *d = nullptr;
    check([&](TilertError *e) { return tilert_device_open(spec, options, &d, e); });
    device_.reset(d);
  }
  TilertDevice *get() const noexcept { return device_.get(); }
  const TilertDeviceInfo &info() const noexcept { return *tilert_device_info(get()); }
  void synchronize() const
  {
    check([&](TilertError *e) { return tilert_device_synchronize(get(), e); });
  }

private:
  struct Close { void operator()(TilertDevice *d) const noexcept { tilert_device_close(d); } };
  std::unique_ptr<TilertDevice, Close> device_;
};

class Stream {
public:
  explicit Stream(const Device &device)
  {
    TilertStream *s = nullptr;
    check([&](TilertError *e) { return tilert_stream_create(device.get(), &s, e); });
    stream_.reset(s);
  }
  // One of another library (a CUstream), or with nullptr the device's default stream.
  static Stream wrap(const Device &device, void *native)
  {
    TilertStream *s = nullptr;
    check([&](TilertError *e) { return tilert_stream_wrap(device.get(), native, &s, e); });
    return Stream(s);
  }
  TilertStream *get() const noexcept { return stream_.get(); }
  void synchronize() const
  {
    check([&](TilertError *e) { return tilert_stream_synchronize(get(), e); });
  }

private:
  explicit Stream(TilertStream *s) noexcept : stream_(s) {}
  struct Destroy { void operator()(TilertStream *s) const noexcept { tilert_stream_destroy(s); } };
  std::unique_ptr<TilertStream, Destroy> stream_;
};

// Memory of a device for elements of one type.
template <class T> class Buffer {
  static_assert(std::is_trivially_copyable_v<T>, "elements are copied byte by byte");

public:
  Buffer(const Device &device, std::size_t size) : size_(size)
  {
    if (size > static_cast<std::size_t>(-1) / sizeof(T))
      throw std::length_error("tilert::Buffer");
    TilertBuffer *b = nullptr;
    check([&](TilertError *e) { return tilert_buffer_create(device.get(), size * sizeof(T), &b, e); });
    buffer_.reset(b);
  }
  Buffer(const Device &device, const std::vector<T> &from) : Buffer(device, from.size()) { write(from); }
  void write(const std::vector<T> &from, const Stream *stream = nullptr)
  {
    if (from.size() != size_)
      throw std::length_error("tilert::Buffer::write");
    check([&](TilertError *e) { return tilert_buffer_write(get(), 0, from.data(), size_ * sizeof(T), stream ? stream->get() : nullptr, e); });
  }
  std::vector<T> read() const
  {
    std::vector<T> to(size_);
    check([&](TilertError *e) { return tilert_buffer_read(get(), 0, to.data(), size_ * sizeof(T), nullptr, e); });
    return to;
  }
  T *data() const noexcept { return reinterpret_cast<T *>(static_cast<std::uintptr_t>(tilert_buffer_address(get()))); }
  std::size_t size() const noexcept { return size_; }
  TilertBuffer *get() const noexcept { return buffer_.get(); }
  operator Span<T>() const noexcept { return Span<T>(data(), size_); }
  operator Span<const T>() const noexcept { return Span<const T>(data(), size_); }

private:
  struct Destroy { void operator()(TilertBuffer *b) const noexcept { tilert_buffer_destroy(b); } };
  std::unique_ptr<TilertBuffer, Destroy> buffer_;
  std::size_t size_;
};

} // namespace tilert
#endif
