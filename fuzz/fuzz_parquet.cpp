// libFuzzer: the bytes of a Parquet file. Every row is JSON or an InputError, and the reader ends.
// Arrow is the wheel's, without instrumentation: its bugs show only in crashes or in our own code.
#include <cstdint>
#include <cstdlib>
#include <string>

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/error.h"
#include "io/parquet.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::int64_t kMostRows = 100'000;  // a header may claim any number of nulls
  static const int file = memfd_create("fuzz", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, 0) != 0 ||
      pwrite(file, data, size, 0) != static_cast<ssize_t>(size))
    std::abort();
  try {
    antisd::ParquetReader reader(fmt::format("/proc/self/fd/{}", file));
    std::int64_t failures = 0;
    for (std::int64_t rows = 0; rows < kMostRows && failures < 100; ++rows) {
      try {
        antisd::Json row;
        if (!reader.next(row)) break;
        (void)antisd::parse_json(antisd::to_json_line(row), "row");
      } catch (const antisd::InputError&) {
        ++failures;
      }
    }
  } catch (const antisd::InputError&) {
  }
  return 0;
}
