#include "run/metrics/tensorboard_file.h"

#include <bit>
#include <chrono>
#include <string>

#include <fmt/format.h>
#include <unistd.h>

#include "run/metrics/crc32c.h"

namespace antisd::inline run {
namespace {

// Field numbers of TensorFlow's event.proto and summary.proto.
enum EventField { kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7 };
enum SummaryField { kValue = 1 };
enum ValueField { kTag = 1, kSimpleValue = 2 };
enum SessionLogField { kStatus = 1 };
constexpr std::uint64_t kSessionStart = 1;

// The parts of protocol buffers that events need.
class Message {
 public:
  void add_varint(int field, std::uint64_t value) {
    put_varint(key(field, 0));
    put_varint(value);
  }
  void add_double(int field, double value) {
    put_varint(key(field, 1));
    put_fixed(std::bit_cast<std::uint64_t>(value), 8);
  }
  void add_bytes(int field, std::string_view bytes) {
    put_varint(key(field, 2));
    put_varint(bytes.size());
    bytes_.append(bytes);
  }
  void add_float(int field, float value) {
    put_varint(key(field, 5));
    put_fixed(std::bit_cast<std::uint32_t>(value), 4);
  }
  void put_fixed(std::uint64_t value, int count) {  // little-endian
    for (int i = 0; i < count; ++i)
      bytes_.push_back(static_cast<char>(value >> (8 * i) & 0xff));
  }
  void put_raw(std::string_view bytes) { bytes_.append(bytes); }
  const std::string& bytes() const { return bytes_; }

 private:
  static std::uint64_t key(int field, int wire_type) {
    return static_cast<std::uint64_t>(field) << 3 | static_cast<std::uint64_t>(wire_type);
  }
  void put_varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7)
      bytes_.push_back(static_cast<char>(value | 0x80));
    bytes_.push_back(static_cast<char>(value));
  }

  std::string bytes_;
};

// A TFRecord. Its checksums are rotated and offset, so that a checksum of data that contains
// checksums still works.
std::string record_of(std::string_view data) {
  const auto masked = [](std::string_view bytes) {
    return std::rotr(crc32c(bytes), 15) + 0xa282ead8u;
  };
  Message length;
  length.put_fixed(data.size(), 8);
  Message record;
  record.put_raw(length.bytes());
  record.put_fixed(masked(length.bytes()), 4);
  record.put_raw(data);
  record.put_fixed(masked(data), 4);
  return record.bytes();
}

Message event_at(std::int64_t step) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  Message event;
  event.add_double(kWallTime, std::chrono::duration<double>(now).count());
  event.add_varint(kStep, static_cast<std::uint64_t>(step));
  return event;
}

// TensorBoard reads a folder's files in the order of their names.
std::filesystem::path unused_name(const std::filesystem::path& folder) {
  char host[256] = "localhost";
  ::gethostname(host, sizeof host - 1);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  for (int number = 0;; ++number) {
    const std::filesystem::path path = folder / fmt::format("events.out.tfevents.{:010}.{}.{}.{}",
                                                            seconds, host, ::getpid(), number);
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) return path;
  }
}

}  // namespace

TensorboardFile::TensorboardFile(const std::filesystem::path& folder, std::int64_t first_step)
    : file_(unused_name(folder)) {
  Message version = event_at(0);
  version.add_bytes(kFileVersion, "brain.Event:2");
  Message session;
  session.add_varint(kStatus, kSessionStart);
  Message start = event_at(first_step);
  start.add_bytes(kSessionLog, session.bytes());
  file_.append(record_of(version.bytes()) + record_of(start.bytes()));
}

void TensorboardFile::write(std::int64_t step, const MetricSet& metrics) {
  Message summary;
  for (const Metric& metric : metrics.values()) {
    Message value;
    value.add_bytes(kTag, metric.name);
    value.add_float(kSimpleValue, static_cast<float>(metric.value));
    summary.add_bytes(kValue, value.bytes());
  }
  Message event = event_at(step);
  event.add_bytes(kSummary, summary.bytes());
  file_.append(record_of(event.bytes()));
}

}  // namespace antisd::inline run
