#include <algorithm>
#include <cstring>
#include <limits>
#include <unordered_set>

#include <fmt/format.h>

#include "core/error.h"
#include "io/json.h"
#include "io/safetensors.h"

namespace antisd::inline io {
namespace {

constexpr std::int64_t kLengthBytes = 8;
constexpr const char* kFetchAgain = "fetch or write the file again";

// A tensor's name for a message: escaped, and truncated if very long.
std::string in_quotes(const std::string& name) {
  std::string text = to_json_line(Json(name.substr(0, 200)));
  if (name.size() > 200) text += "...";
  return text;
}

struct Entry {
  TensorSpec spec;
  std::int64_t begin = 0;  // in bytes after the header
  std::int64_t end = 0;
  std::int64_t size() const { return end - begin; }
};

// Reads the header's JSON by events: nlohmann's trees would keep only the last of two equal names
// and use more memory.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderReader(const std::string& file) : file_(file) {}

  std::map<std::string, std::string> metadata;
  std::vector<Entry> entries;

  bool start_object(std::size_t) override {
    if (place_ == Place::kStart) {
      place_ = Place::kRoot;
    } else if (place_ == Place::kEntry && key_ == "__metadata__") {
      place_ = Place::kMetadata;
    } else if (place_ == Place::kEntry) {
      place_ = Place::kTensor;
      fields_.clear();
      entries.emplace_back().spec.name = key_;
    } else {
      unexpected("an object");
    }
    return true;
  }

  bool key(string_t& text) override {
    if (place_ == Place::kRoot) {
      if (!names_.insert(text).second) fail(fmt::format("two entries {}", in_quotes(text)));
      key_ = text;
      place_ = Place::kEntry;
    } else if (place_ == Place::kMetadata) {
      if (metadata.contains(text))
        fail(fmt::format("two entries {} in __metadata__", in_quotes(text)));
      metadata_key_ = text;
    } else {
      if (text != "dtype" && text != "shape" && text != "data_offsets") {
        fail(fmt::format("tensor {}: the unknown field {}", in_quotes(key_), in_quotes(text)));
      }
      if (std::ranges::find(fields_, text) != fields_.end()) {
        fail(fmt::format("tensor {}: two fields \"{}\"", in_quotes(key_), text));
      }
      fields_.push_back(text);
    }
    return true;
  }

  bool end_object() override {
    if (place_ == Place::kRoot) {
      place_ = Place::kEnd;
      return true;
    }
    if (place_ == Place::kTensor) finish_tensor();
    place_ = Place::kRoot;
    return true;
  }

  bool string(string_t& text) override {
    if (place_ == Place::kMetadata) {
      metadata[metadata_key_] = text;
    } else if (place_ == Place::kTensor && fields_.back() == "dtype") {
      const auto type = tensor_type_of(text);
      if (!type) {
        fail(fmt::format("tensor {}: the unknown type {}", in_quotes(key_), in_quotes(text)),
             "convert the file to a type that antisd knows, such as BF16");
      }
      entries.back().spec.type = *type;
    } else {
      unexpected("a string");
    }
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ != Place::kTensor || fields_.back() == "dtype") unexpected("a list");
    place_ = Place::kNumbers;
    numbers_.clear();
    return true;
  }

  bool end_array() override {
    place_ = Place::kTensor;
    Entry& entry = entries.back();
    if (fields_.back() == "shape") {
      entry.spec.shape = numbers_;
      return true;
    }
    if (numbers_.size() != 2 || numbers_[0] > numbers_[1]) {
      fail(fmt::format("tensor {}: data_offsets are not a begin and an end", in_quotes(key_)));
    }
    entry.begin = numbers_[0];
    entry.end = numbers_[1];
    return true;
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ != Place::kNumbers || value > std::numeric_limits<std::int64_t>::max()) {
      unexpected(fmt::format("the number {}", value));
    }
    numbers_.push_back(static_cast<std::int64_t>(value));
    return true;
  }

  bool null() override { unexpected("null"); }
  bool boolean(bool) override { unexpected("a boolean"); }
  bool binary(binary_t&) override { unexpected("bytes"); }
  bool number_integer(number_integer_t value) override {
    unexpected(fmt::format("the number {}", value));
  }
  bool number_float(number_float_t, const string_t& text) override {
    unexpected("the number " + text.substr(0, 40));
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    fail(fmt::format("the header is not valid JSON at its byte {}", position));
  }

 private:
  enum class Place { kStart, kRoot, kEntry, kMetadata, kTensor, kNumbers, kEnd };

  void finish_tensor() {
    if (fields_.size() != 3) {
      fail(fmt::format("tensor {}: one of dtype, shape and data_offsets is missing",
                       in_quotes(key_)));
    }
    const Entry& entry = entries.back();
    const auto bytes = entry.spec.byte_count();
    if (!bytes) {
      fail(fmt::format("tensor {}: no file can hold {} of its shape", in_quotes(key_),
                       name_of(entry.spec.type)));
    }
    if (*bytes != entry.size()) {
      fail(fmt::format("tensor {}: its type and shape need {} bytes, its offsets give it {}",
                       in_quotes(key_), *bytes, entry.size()));
    }
  }

  [[noreturn]] void unexpected(const std::string& what) const {
    const bool inside = place_ != Place::kStart && place_ != Place::kRoot;
    fail(fmt::format("the header has {} where the format allows none{}", what,
                     inside ? ", at " + in_quotes(key_) : ""));
  }

  [[noreturn]] void fail(const std::string& what, const char* remedy = kFetchAgain) const {
    throw InputError(what, {.where = file_, .remedy = remedy});
  }

  const std::string& file_;
  Place place_ = Place::kStart;
  std::string key_;           // of the open entry: a tensor's name or __metadata__
  std::string metadata_key_;  // of the next string in __metadata__
  std::vector<std::string> fields_;
  std::vector<std::int64_t> numbers_;
  std::unordered_set<std::string> names_;
};

// Sorts the entries by their bytes, which must be contiguous: no overlap, gap or remainder.
void check_layout(std::vector<Entry>& entries, std::int64_t data_bytes, const std::string& file) {
  const auto fail = [&](const std::string& what) {
    throw InputError(what, {.where = file, .remedy = kFetchAgain});
  };
  std::ranges::sort(entries, {}, [](const Entry& e) { return std::pair(e.begin, e.end); });
  std::int64_t cursor = 0;
  const Entry* previous = nullptr;
  for (const Entry& entry : entries) {
    const std::string name = in_quotes(entry.spec.name);
    if (entry.begin < cursor) {
      fail(fmt::format("tensor {} overlaps tensor {}", name, in_quotes(previous->spec.name)));
    }
    if (entry.begin > cursor) {
      fail(
          fmt::format("{} bytes before tensor {} belong to no tensor", entry.begin - cursor, name));
    }
    if (entry.end > data_bytes) {
      fail(fmt::format("the file is cut short: tensor {} ends at byte {} of the data, which has {}",
                       name, entry.end, data_bytes));
    }
    cursor = entry.end;
    previous = &entry;
  }
  if (cursor != data_bytes) {
    fail(fmt::format("{} bytes at the end belong to no tensor", data_bytes - cursor));
  }
}

}  // namespace

SafetensorsContents parse_safetensors(std::span<const std::byte> bytes, const std::string& file) {
  const auto fail = [&](const std::string& what) {
    throw InputError(what, {.where = file, .remedy = kFetchAgain});
  };
  const auto size = static_cast<std::int64_t>(bytes.size());
  if (size < kLengthBytes) {
    fail(fmt::format("not a safetensors file: it has {} bytes, too few for a header length", size));
  }
  std::uint64_t header_bytes = 0;
  for (int i = 0; i < kLengthBytes; ++i)  // little-endian
    header_bytes |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
  if (header_bytes > static_cast<std::uint64_t>(kMaxSafetensorsHeaderBytes)) {
    fail(fmt::format("not a safetensors file: a header of {} bytes, where {} are allowed",
                     header_bytes, kMaxSafetensorsHeaderBytes));
  }
  const auto header_size = static_cast<std::int64_t>(header_bytes);
  if (header_size > size - kLengthBytes) {
    fail(fmt::format("the file is cut short: a header of {} bytes in a file of {}", header_size,
                     size));
  }
  const auto* text = reinterpret_cast<const char*>(bytes.data() + kLengthBytes);
  // The parser would skip white space and a byte-order mark; the format allows neither.
  if (header_size == 0 || *text != '{')
    fail("not a safetensors file: the header is not a JSON object");

  HeaderReader header(file);
  nlohmann::json::sax_parse(text, text + header_size, &header);
  const std::span data = bytes.subspan(static_cast<std::size_t>(kLengthBytes + header_size));
  check_layout(header.entries, static_cast<std::int64_t>(data.size()), file);

  SafetensorsContents contents;
  contents.metadata = std::move(header.metadata);
  contents.tensors.reserve(header.entries.size());
  for (Entry& entry : header.entries) {
    contents.tensors.push_back(
        {std::move(entry.spec), data.subspan(static_cast<std::size_t>(entry.begin),
                                             static_cast<std::size_t>(entry.size()))});
  }
  return contents;
}

}  // namespace antisd::inline io
