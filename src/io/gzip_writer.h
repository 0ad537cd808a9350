// Packs text with gzip on its way to a sink.
//
//   std::string bytes;
//   GzipWriter packed([&](std::string_view part) { bytes += part; });
//   packed.write("a line\n");
//   packed.finish();
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace antisd::inline io {

class GzipWriter {
 public:
  explicit GzipWriter(std::function<void(std::string_view)> sink);
  ~GzipWriter();
  GzipWriter(const GzipWriter&) = delete;
  GzipWriter& operator=(const GzipWriter&) = delete;

  void write(std::string_view text);
  void finish();  // writes what is left and the checksum; without it the data are incomplete

 private:
  struct Deflater;
  void deflate_input(int flush);

  std::function<void(std::string_view)> sink_;
  std::unique_ptr<Deflater> deflater_;
};

}  // namespace antisd::inline io
