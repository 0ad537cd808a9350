#include "io/gzip_writer.h"

#include <algorithm>
#include <array>
#include <limits>
#include <new>

#include <zlib.h>

#include "core/check.h"

namespace antisd::inline io {

struct GzipWriter::Deflater {
  Deflater() {
    const int status = deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + 16,
                                    /*memLevel=*/8, Z_DEFAULT_STRATEGY);
    if (status != Z_OK) throw std::bad_alloc();
  }
  ~Deflater() { deflateEnd(&stream); }
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;

  z_stream stream{};
  std::array<char, 1 << 16> packed{};
};

GzipWriter::GzipWriter(std::function<void(std::string_view)> sink)
    : sink_(std::move(sink)), deflater_(std::make_unique<Deflater>()) {}

GzipWriter::~GzipWriter() = default;

void GzipWriter::deflate_input(int flush) {
  z_stream& stream = deflater_->stream;
  int status = Z_OK;
  do {
    stream.next_out = reinterpret_cast<Bytef*>(deflater_->packed.data());
    stream.avail_out = static_cast<uInt>(deflater_->packed.size());
    status = deflate(&stream, flush);
    ANTISD_CHECK(status != Z_STREAM_ERROR);
    const std::size_t size = deflater_->packed.size() - stream.avail_out;
    if (size > 0) sink_({deflater_->packed.data(), size});
  } while (stream.avail_out == 0 || (flush == Z_FINISH && status != Z_STREAM_END));
}

void GzipWriter::write(std::string_view text) {
  while (!text.empty()) {
    const std::size_t size =
        std::min<std::size_t>(text.size(), std::numeric_limits<uInt>::max() / 2);
    deflater_->stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    deflater_->stream.avail_in = static_cast<uInt>(size);
    deflate_input(Z_NO_FLUSH);
    text.remove_prefix(size);
  }
}

void GzipWriter::finish() {
  deflater_->stream.avail_in = 0;
  deflate_input(Z_FINISH);
}

}  // namespace antisd::inline io
