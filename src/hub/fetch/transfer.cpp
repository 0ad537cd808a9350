#include "hub/fetch/transfer.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include "hub/fetch/status_error.h"
#include "io/digest.h"
#include "io/system_error.h"

namespace antisd::inline hub {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kReadChunk = 1 << 20;

}  // namespace

// The hash that an ETag is: SHA-256 of the content, or git's SHA-1 of it with a header that holds
// the size. Any other ETag (of a mirror) says nothing about the content.
class ContentHash {
 public:
  ContentHash(const std::string& etag, std::int64_t size) : etag_(etag) {
    const bool hex = etag.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (hex && etag.size() == 64) sha256_.emplace();
    if (hex && etag.size() == 40 && size >= 0) {
      sha1_.emplace();
      sha1_->add(fmt::format("blob {}", size));
      sha1_->add(std::string_view("\0", 1));
    }
  }

  void add(std::span<const std::byte> bytes) {
    if (sha256_) sha256_->add(bytes);
    if (sha1_) sha1_->add(bytes);
  }

  // Empty: it is the right one, or cannot be told.
  std::string wrong() const {
    const std::string found = sha256_ ? sha256_->hex() : sha1_ ? sha1_->hex() : etag_;
    return found == etag_ ? "" : found;
  }

 private:
  std::string etag_;
  std::optional<Sha256> sha256_;
  std::optional<Sha1> sha1_;
};

// The part of a file that is there already, with the hash of what it holds.
class PartialFile {
 public:
  PartialFile(const fs::path& path, const FileMetadata& file)
      : path_(path),
        file_(file),
        descriptor_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666)),
        hash_(file.etag, file.size) {
    if (!descriptor_) throw_cannot_write(path_, errno);
    struct stat status {};
    if (::fstat(descriptor_.get(), &status) != 0) throw_cannot_write(path_, errno);
    if (!S_ISREG(status.st_mode)) throw_cannot_write(path_, EEXIST);
    if (file.size >= 0 && status.st_size > file.size)
      clear();
    else
      read_whole();
  }

  std::int64_t size() const { return size_; }
  std::string wrong_hash() const { return hash_.wrong(); }

  void write(std::span<const std::byte> bytes) {
    hash_.add(bytes);
    while (!bytes.empty()) {
      const ssize_t count = ::pwrite(descriptor_.get(), bytes.data(), bytes.size(), size_);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) throw_cannot_write(path_, errno);
      size_ += count;
      bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
  }

  void clear() {
    if (::ftruncate(descriptor_.get(), 0) != 0) throw_cannot_write(path_, errno);
    size_ = 0;
    hash_ = ContentHash(file_.etag, file_.size);
  }

  void move_to(const fs::path& target) {
    if (::fsync(descriptor_.get()) != 0) throw_cannot_write(path_, errno);
    if (::rename(path_.c_str(), target.c_str()) != 0) throw_cannot_write(target, errno);
  }

 private:
  void read_whole() {
    std::vector<std::byte> chunk(kReadChunk);
    while (true) {
      const ssize_t count = ::pread(descriptor_.get(), chunk.data(), chunk.size(), size_);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) throw_cannot_read(path_, errno);
      if (count == 0) return;
      hash_.add(std::span(chunk).first(static_cast<std::size_t>(count)));
      size_ += count;
    }
  }

  fs::path path_;
  const FileMetadata& file_;
  UniqueFd descriptor_;
  ContentHash hash_;
  std::int64_t size_ = 0;
};

namespace {

// "bytes 100-199/200" begins at 100; -1 for any other text.
std::int64_t range_start(const std::string& range) {
  constexpr std::string_view kUnit = "bytes ";
  if (!range.starts_with(kUnit)) return -1;
  char* end = nullptr;
  const long long start = std::strtoll(range.c_str() + kUnit.size(), &end, 10);
  return *end == '-' ? start : -1;
}

// Until the connection ends.
void receive(const FileTransfer& transfer, const FileMetadata& file, PartialFile& part) {
  const std::int64_t offset = part.size();
  const auto begin = [&](const HttpAnswer& response) {
    // A server that ignores the range sends everything; one that mixes it up must not be believed.
    const bool continues =
        response.status == 206 && range_start(response.header("content-range")) == offset;
    if (offset > 0 && !continues) part.clear();
    return response.status == 200 || continues;
  };
  const auto sink = [&](std::span<const std::byte> bytes) {
    if (file.size >= 0 && part.size() + std::ssize(bytes) > file.size) {
      part.clear();
      throw RunError(fmt::format("the server sends more than the {} bytes of the file", file.size),
                     {.where = file.path, .remedy = "try again later"});
    }
    part.write(bytes);
    transfer.progress(part.size());
  };
  const HttpAnswer response = transfer.client.download(file.url, offset, begin, sink);
  if (response.status == 416) {  // nothing follows what we have
    part.clear();
    throw ConnectionError("the server refuses to go on where the file ended", {.where = file.path});
  }
  if (response.status != 200 && response.status != 206)
    throw_status(response, file.path, transfer.retry, transfer.stop);
  if (file.size >= 0 && part.size() < file.size)
    throw ConnectionError(fmt::format("only {} of {} bytes came", part.size(), file.size),
                          {.where = file.path, .remedy = "the same command goes on"});
}

}  // namespace

// A connection that brought something does not count as a failure.
void FileTransfer::complete(const FileMetadata& file, PartialFile& part) const {
  for (int failures = 0; file.size < 0 || part.size() < file.size;) {
    const std::int64_t before = part.size();
    try {
      receive(*this, file, part);
      return;
    } catch (const ConnectionError& error) {
      failures = part.size() > before ? 0 : failures + 1;
      if (failures >= retry.attempts) throw;
      report(error.message());
    }
    pause(std::min(retry.backoff_s * static_cast<double>(1 << failures), retry.max_wait_s), stop);
  }
}

void pause(double seconds, const std::function<bool()>& stop) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < until) {
    if (stop()) throw FetchStopped();
    const std::chrono::duration<double> left = until - std::chrono::steady_clock::now();
    std::this_thread::sleep_for(std::min(left, std::chrono::duration<double>(0.2)));
  }
}

void with_retries(const RetryOptions& retry, const std::function<bool()>& stop,
                  const std::function<void(const std::string&)>& report,
                  const std::function<void()>& action) {
  double wait = retry.backoff_s;
  for (int attempt = 1;; ++attempt, wait = std::min(2 * wait, retry.max_wait_s)) {
    try {
      return action();
    } catch (const ConnectionError& error) {
      if (attempt >= retry.attempts) throw;
      report(fmt::format("{}; attempt {} of {} follows", error.message(), attempt + 1,
                         retry.attempts));
    }
    pause(wait, stop);
  }
}

void FileTransfer::run(const FileMetadata& file) const {
  const fs::path path = folder.incomplete(file.etag);
  for (int copy = 1;; ++copy) {
    PartialFile part(path, file);
    complete(file, part);
    const std::string wrong = part.wrong_hash();
    if (wrong.empty()) return part.move_to(folder.blob(file.etag));
    std::error_code ignored;
    fs::remove(path, ignored);
    if (copy == 2) {
      throw RunError(
          fmt::format("the file that came has the hash {} instead of {}, twice", wrong, file.etag),
          {.where = file.path, .remedy = "try again later, or check HF_ENDPOINT"});
    }
    report(fmt::format("{}: the hash is wrong; it is fetched once more", file.path));
  }
}

}  // namespace antisd::inline hub
