// libFuzzer: a safetensors file's bytes. Anything but an Error or contents that cover the data
// exactly is a finding.
#include <cstdint>
#include <cstdlib>

#include "core/error.h"
#include "io/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span bytes = std::as_bytes(std::span(data, size));
  try {
    const antisd::SafetensorsContents contents = antisd::parse_safetensors(bytes, "fuzz");
    std::size_t covered = 0;
    for (const antisd::SafetensorsTensor& tensor : contents.tensors) {
      const bool inside = tensor.data.empty() || (tensor.data.data() >= bytes.data() + 8 &&
                                                  &tensor.data.back() <= &bytes.back());
      if (!inside || tensor.byte_count() != static_cast<std::int64_t>(tensor.data.size()))
        std::abort();
      covered += tensor.data.size();
    }
    std::uint64_t header = 0;
    for (int i = 0; i < 8; ++i)
      header |= std::uint64_t{data[i]} << (8 * i);
    if (covered + header + 8 != size) std::abort();
  } catch (const antisd::InputError&) {
  }
  return 0;
}
