#include "io/text_source.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <new>

#include <fmt/format.h>
#include <zlib.h>

#include "io/atomic_file.h"
#include "io/system_error.h"

namespace antisd::inline io {
namespace {

using std::literals::operator""sv;

constexpr std::size_t kTextBytes = 1 << 16;
constexpr std::string_view kGzipStart = "\x1F\x8B"sv;

struct ForeignFormat {
  std::string_view start;
  const char* what;
  const char* remedy;
};

constexpr const char* kUnpack = "unpack it first";
constexpr const char* kExport = "save its rows as JSONL, CSV or Parquet";

// Formats that people give by mistake. No JSON and no text in CSV starts like one of them.
constexpr ForeignFormat kForeignFormats[] = {
    {"PK\x03\x04"sv, "a zip archive or a workbook (.xlsx)",
     "unpack it first, or save the sheet as CSV"},
    {"\x28\xB5\x2F\xFD"sv, "packed with zstd", "unpack it first: unzstd FILE"},
    {"\xFD\x37\x7A\x58\x5A\x00"sv, "packed with xz", "unpack it first: unxz FILE"},
    {"BZh91AY&SY"sv, "packed with bzip2", "unpack it first: bunzip2 FILE"},
    {"\x37\x7A\xBC\xAF\x27\x1C"sv, "a 7z archive", kUnpack},
    {"\x04\x22\x4D\x18"sv, "packed with lz4", kUnpack},
    {"ARROW1\0\0"sv, "an Arrow file", kExport},
    {"\xFF\xFF\xFF\xFF"sv, "an Arrow stream", kExport},
    {"PAR1\x15"sv, "a Parquet file", "convert it first: antisd data convert FILE rows.jsonl"},
    {"\x80\x02"sv, "a Python pickle", kExport},
    {"\x80\x03"sv, "a Python pickle", kExport},
    {"\x80\x04"sv, "a Python pickle", kExport},
    {"\x80\x05"sv, "a Python pickle", kExport},
    {"\x93NUMPY"sv, "a NumPy array", kExport},
    {"\x89HDF\r\n"sv, "an HDF5 file", kExport},
    {"SQLite format 3\0"sv, "an SQLite data base", kExport},
    {"\xD0\xCF\x11\xE0"sv, "an old Office document (.xls)", "save the sheet as CSV"},
    {"\xFF\xFE"sv, "UTF-16 text", "save it as UTF-8"},
    {"\xFE\xFF"sv, "UTF-16 text", "save it as UTF-8"},
};

bool begins(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

// Whether more bytes are needed to tell the format.
bool is_open(std::string_view start) {
  const auto is_prefix = [&](std::string_view of) {
    return start.size() < of.size() && begins(of, start);
  };
  return is_prefix(kGzipStart) || std::ranges::any_of(kForeignFormats, [&](const ForeignFormat& f) {
           return is_prefix(f.start);
         });
}

void refuse_foreign(std::string_view start, const std::string& name) {
  // The longest start decides: an Arrow stream starts like UTF-16 text.
  const ForeignFormat* found = nullptr;
  for (const ForeignFormat& format : kForeignFormats)
    if (begins(start, format.start) && (!found || format.start.size() > found->start.size()))
      found = &format;
  if (!found) return;
  std::string remedy = found->remedy;
  if (const std::size_t at = remedy.find("FILE"); at != std::string::npos)
    remedy.replace(at, 4, name);
  throw DamagedText(fmt::format("it is {}", found->what), {.where = name, .remedy = remedy});
}

// A text stream that owns what it reads.
class OwnedText : public std::istream {
 public:
  OwnedText(std::unique_ptr<std::filebuf> file, std::streambuf& bytes, const std::string& name)
      : std::istream(nullptr), file_(std::move(file)), source_(bytes, name) {
    rdbuf(&source_);
    exceptions(std::ios::badbit);  // passes on the errors of the source
  }

 private:
  std::unique_ptr<std::filebuf> file_;
  TextSource source_;
};

}  // namespace

// A gzip stream may have several members, as `cat a.gz b.gz` makes.
struct TextSource::Inflater {
  Inflater() : packed(kTextBytes) {
    if (inflateInit2(&stream, MAX_WBITS + 16) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  z_stream stream{};
  std::vector<char> packed;
  bool in_member = true;
};

TextSource::TextSource(std::streambuf& bytes, std::string name)
    : bytes_(bytes), name_(std::move(name)), text_(kTextBytes) {}

TextSource::~TextSource() = default;

// What has arrived, at least one byte unless it is the end.
std::size_t TextSource::read_bytes(char* to, std::size_t most) try {
  if (!start_.empty()) {
    const std::size_t count = std::min(most, start_.size());
    std::memcpy(to, start_.data(), count);
    start_.erase(0, count);
    return count;
  }
  errno = 0;
  if (traits_type::eq_int_type(bytes_.sgetc(), traits_type::eof())) return 0;
  const std::streamsize arrived = std::max<std::streamsize>(bytes_.in_avail(), 1);
  return static_cast<std::size_t>(
      bytes_.sgetn(to, std::min(arrived, static_cast<std::streamsize>(most))));
} catch (const std::ios_base::failure&) {
  const int error = errno;
  throw RunError("cannot be read further: " + system_problem(error),
                 {.where = name_, .remedy = system_remedy(error)});
}

void TextSource::look_at_the_start() {
  started_ = true;
  std::string start;
  char byte;
  while ((start.empty() || is_open(start)) && read_bytes(&byte, 1) == 1)
    start += byte;
  if (begins(start, kGzipStart)) {
    inflater_ = std::make_unique<Inflater>();
  } else {
    refuse_foreign(start, name_);
  }
  start_ = std::move(start);
}

std::size_t TextSource::unpack() {
  z_stream& stream = inflater_->stream;
  while (true) {
    if (stream.avail_in == 0) {
      const std::size_t count = read_bytes(inflater_->packed.data(), inflater_->packed.size());
      if (count == 0 && !inflater_->in_member) return 0;
      if (count == 0) {
        throw DamagedText("the gzip data end too early",
                          {.where = name_, .remedy = "copy or download the file again"});
      }
      stream.next_in = reinterpret_cast<Bytef*>(inflater_->packed.data());
      stream.avail_in = static_cast<uInt>(count);
    }
    if (!inflater_->in_member) {
      // Zeros may pad the end, as on tapes.
      if (*stream.next_in == 0) {
        ++stream.next_in, --stream.avail_in;
        continue;
      }
      inflateReset(&stream);
      inflater_->in_member = true;
    }
    stream.next_out = reinterpret_cast<Bytef*>(text_.data());
    stream.avail_out = static_cast<uInt>(text_.size());
    const int status = inflate(&stream, Z_NO_FLUSH);
    if (status == Z_MEM_ERROR) throw std::bad_alloc();
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) {
      throw DamagedText(
          fmt::format("the gzip data are damaged{}{}", stream.msg == nullptr ? "" : ": ",
                      stream.msg == nullptr ? "" : stream.msg),
          {.where = name_, .remedy = "copy or download the file again; gunzip -t tests it"});
    }
    if (status == Z_STREAM_END) inflater_->in_member = false;
    if (const std::size_t size = text_.size() - stream.avail_out; size > 0) return size;
  }
}

void TextSource::check_unpacked(std::string_view text, bool is_first) {
  if (is_first) {  // a packed archive
    refuse_foreign(text, name_);
    constexpr std::size_t kTarMark = 257;
    if (text.size() > kTarMark && begins(text.substr(kTarMark), "ustar"))
      throw DamagedText("it is a tar archive", {.where = name_, .remedy = kUnpack});
  }
  const std::size_t newline = text.rfind('\n');
  line_bytes_ = newline == std::string_view::npos
                    ? line_bytes_ + static_cast<std::int64_t>(text.size())
                    : static_cast<std::int64_t>(text.size() - newline - 1);
  if (line_bytes_ <= kMaxUnpackedLineBytes) return;
  throw DamagedText(fmt::format("more than {} MiB of unpacked data without a newline",
                                kMaxUnpackedLineBytes >> 20),
                    {.where = name_, .remedy = "unpack it with gunzip and look at it"});
}

TextSource::int_type TextSource::underflow() {
  const bool is_first = !started_;
  if (is_first) look_at_the_start();
  const std::size_t size = inflater_ ? unpack() : read_bytes(text_.data(), text_.size());
  if (size == 0) return traits_type::eof();
  if (inflater_) check_unpacked({text_.data(), size}, is_first);
  setg(text_.data(), text_.data(), text_.data() + size);
  return traits_type::to_int_type(*gptr());
}

std::streamsize TextSource::showmanyc() {
  return inflater_ ? 0 : std::max<std::streamsize>(bytes_.in_avail(), 0);
}

std::unique_ptr<std::istream> open_text(const std::filesystem::path& path) {
  // Opening a folder succeeds; only the first read fails.
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) throw_cannot_read(path, EISDIR);
  auto file = std::make_unique<std::filebuf>();
  errno = 0;
  if (!file->open(path, std::ios::in | std::ios::binary)) throw_cannot_read(path, errno);
  std::filebuf& bytes = *file;
  return std::make_unique<OwnedText>(std::move(file), bytes, path.string());
}

std::unique_ptr<std::istream> open_text(std::istream& stream, const std::string& name) {
  return std::make_unique<OwnedText>(nullptr, *stream.rdbuf(), name);
}

std::string read_text(const std::filesystem::path& path) {
  const std::unique_ptr<std::istream> stream = open_text(path);
  std::string text;
  std::array<char, kTextBytes> part;
  while (stream->read(part.data(), part.size()) || stream->gcount() > 0) {
    text.append(part.data(), static_cast<std::size_t>(stream->gcount()));
    if (static_cast<std::int64_t>(text.size()) > kMaxTextFileBytes) {
      throw InputError(fmt::format("the file has more than {} bytes of text", kMaxTextFileBytes),
                       {.where = path.string(), .remedy = "write one JSON object per line"});
    }
  }
  return text;
}

std::filesystem::path without_gz(const std::filesystem::path& path) {
  return path.extension() == ".gz" ? std::filesystem::path(path).replace_extension() : path;
}

}  // namespace antisd::inline io
