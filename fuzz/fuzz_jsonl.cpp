// libFuzzer: the bytes of a JSONL stream. Every row must survive being written and read again, and
// the reader must reach the end whatever the lines contain.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <sstream>

#include "core/error.h"
#include "io/jsonl.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::int64_t lines = std::count(text.begin(), text.end(), '\n') + 1;
  std::istringstream stream(text);
  antisd::JsonlReader reader(stream, "fuzz");
  for (std::int64_t calls = 0;; ++calls) {
    if (calls > lines || reader.line() > lines) std::abort();
    try {
      antisd::Json row;
      if (!reader.next(row)) break;
      const std::string line = antisd::to_json_line(row);
      if (antisd::to_json_line(antisd::parse_json(line, "again")) != line) std::abort();
    } catch (const antisd::InputError&) {
    }
  }
  return 0;
}
