// Values as bytes for another rank of the same program: plain numbers, vectors of them, strings.
//
//   MessageWriter writer;
//   writer.add(ids).add(text);
//   MessageReader reader(ranks.gather(writer.bytes())[0]);
//   const std::vector<std::int32_t> first_ids = reader.take_vector<std::int32_t>();
//   const std::string first_text = reader.take_text();
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/check.h"

namespace antisd::inline dist {

class MessageWriter {
 public:
  template <typename T>
  requires std::is_trivially_copyable_v<T> MessageWriter& add(const T& value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(T));
    return *this;
  }
  template <typename T>
  requires std::is_trivially_copyable_v<T> MessageWriter& add(const std::vector<T>& values) {
    add(std::uint64_t{values.size()});
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
    return *this;
  }
  MessageWriter& add(const std::string& text) {
    add(std::uint64_t{text.size()});
    bytes_ += text;
    return *this;
  }

  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

class MessageReader {
 public:
  explicit MessageReader(std::string_view bytes) : rest_(bytes) {}

  bool empty() const { return rest_.empty(); }

  template <typename T>
  T take() {
    T value;
    std::memcpy(&value, next(sizeof(T)).data(), sizeof(T));
    return value;
  }
  template <typename T>
  std::vector<T> take_vector() {
    std::vector<T> values(take<std::uint64_t>());
    const std::string_view bytes = next(values.size() * sizeof(T));
    if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  std::string take_text() { return std::string(next(take<std::uint64_t>())); }

 private:
  std::string_view next(std::size_t count) {
    ANTISD_CHECK_LE(count, rest_.size());
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

  std::string_view rest_;
};

}  // namespace antisd::inline dist
