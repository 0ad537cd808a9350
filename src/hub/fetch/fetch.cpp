#include "hub/fetch/fetch.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/error.h"
#include "hub/fetch/status_error.h"

namespace antisd::inline hub {
namespace {

namespace fs = std::filesystem;

// As a part of a URL: everything but letters, digits and -._~ is escaped, slashes if not kept.
std::string escaped(std::string_view text, bool keep_slashes) {
  std::string result;
  for (const char c : text) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       c == '-' || c == '.' || c == '_' || c == '~' || (keep_slashes && c == '/');
    if (plain)
      result += c;
    else
      result += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return result;
}

// W/"hash" and "hash" are hash.
std::string plain_etag(std::string etag) {
  if (etag.starts_with("W/")) etag.erase(0, 2);
  std::erase(etag, '"');
  return etag;
}

std::string in_units(std::int64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (bytes < 10'000) return fmt::format("{} bytes", bytes);
  if (value < 1e6) return fmt::format("{:.0f} kB", value / 1e3);
  return value < 1e9 ? fmt::format("{:.1f} MB", value / 1e6)
                     : fmt::format("{:.2f} GB", value / 1e9);
}

class Fetch {
 public:
  Fetch(const FetchSettings& settings, const FetchRequest& request, const FetchWatch& watch)
      : settings_(settings),
        request_(request),
        watch_(watch),
        client_({.endpoint = settings.endpoint,
                 .token = settings.token,
                 .user_agent = settings.user_agent,
                 .silence_s = settings.silence_s},
                [this] { return stopped(); }) {
    repo_ = {request.type.value_or(RepoType::kModel), request.name,
             request.revision.empty() ? "main" : request.revision};
  }

  FetchResult run() {
    list();
    choose_files();
    const RepoFolder folder(settings_.cache, repo_);
    std::erase_if(missing_, [&](const RepoFile& file) {
      return folder.has_file(listing_.commit, file.path);
    });
    for (const RepoFile& file : missing_)
      total_ += file.size;
    check_space();
    for (const RepoFile& file : missing_)
      fetch_file(folder, file);
    if (repo_.revision != listing_.commit) folder.set_ref(repo_.revision, listing_.commit);
    result_.snapshot = {{repo_.type, repo_.name, listing_.commit},
                        folder.snapshot(listing_.commit)};
    return result_;
  }

 private:
  bool stopped() const { return watch_.stop && watch_.stop(); }
  void report(const std::string& text) const {
    if (watch_.report) watch_.report(text);
  }
  void progress(std::int64_t of_file) const {
    if (watch_.progress) watch_.progress(done_ + of_file, std::max(total_, done_ + of_file));
  }

  void list() {
    HttpAnswer answer = ask();
    if (!request_.type && is_not_found(answer)) {
      repo_.type = RepoType::kDataset;
      const HttpAnswer other = ask();
      if (is_not_found(other)) {
        throw InputError(
            fmt::format("{} has neither a model nor a data set of that name, or it is private",
                        settings_.endpoint),
            {.where = repo_.name,
             .remedy = "check the name; for a private one log in with `hf auth login`, or set "
                       "HF_TOKEN"});
      }
      answer = other;
    }
    if (answer.status != 200) refuse(answer);
    listing_ = parse_listing(answer.body, answer.url);
    report(fmt::format("{} {} at {}", type_text(repo_.type), repo_.name, listing_.commit));
  }

  HttpAnswer ask() {
    const std::string url = fmt::format("{}/api/{}s/{}/revision/{}?blobs=true", settings_.endpoint,
                                        type_word(repo_.type), repo_.name,
                                        escaped(repo_.revision, /*keep_slashes=*/false));
    return asked([&] { return client_.get(url); });
  }

  // Waits out what may pass; the answer may be a refusal.
  HttpAnswer asked(const std::function<HttpAnswer()>& send) {
    HttpAnswer answer;
    with_retries(
        settings_.retry, [this] { return stopped(); },
        [this](const std::string& text) { report(text); },
        [&] {
          answer = send();
          if (answer.status == 429 || answer.status >= 500) refuse(answer);
        });
    return answer;
  }

  [[noreturn]] void refuse(const HttpAnswer& answer) {
    throw_repo_status(answer, repo_, settings_.endpoint, !settings_.token.empty(), settings_.retry,
                      [this] { return stopped(); });
  }

  void choose_files() {
    FilePatterns patterns = request_.patterns;
    const bool usual = patterns.include.empty() && repo_.type == RepoType::kModel;
    if (usual) {
      patterns.include = model_patterns().include;
      for (const std::string& pattern : model_patterns().exclude)
        patterns.exclude.push_back(pattern);
    }
    for (const RepoFile& file : listing_.files)
      if (is_wanted(file.path, patterns)) missing_.push_back(file);
    result_.files = std::ssize(missing_);
    if (missing_.empty()) {
      throw InputError(fmt::format("none of its {} files is wanted", listing_.files.size()),
                       {.where = repo_.name, .remedy = "change --include and --exclude"});
    }
    const auto is_weights = [](const RepoFile& f) { return f.path.ends_with(".safetensors"); };
    if (usual && std::none_of(missing_.begin(), missing_.end(), is_weights))
      report("warning: it has no weights as safetensors, the one format that is read");
  }

  void check_space() const {
    std::error_code error;
    const fs::space_info space = fs::space(settings_.cache, error);
    if (error || static_cast<std::int64_t>(space.available) >= total_) return;
    throw RunError(fmt::format("{} are to be fetched, and {} are free", in_units(total_),
                               in_units(static_cast<std::int64_t>(space.available))),
                   {.where = settings_.cache.string(),
                    .remedy = "free some space, or name another folder in HF_HUB_CACHE"});
  }

  FileMetadata describe(const RepoFile& file) {
    FileMetadata metadata{.path = file.path};
    metadata.url = fmt::format("{}/{}{}/resolve/{}/{}", settings_.endpoint,
                               repo_.type == RepoType::kDataset ? "datasets/" : "", repo_.name,
                               listing_.commit, escaped(file.path, /*keep_slashes=*/true));
    const HttpAnswer head = asked([&] { return client_.head(metadata.url); });
    if (head.status >= 400) refuse(head);
    const std::string commit = head.header("x-repo-commit");
    if (!commit.empty() && commit != listing_.commit) {
      throw RunError(fmt::format("the hub gives it from {} instead of {}", commit, listing_.commit),
                     {.where = file.path, .remedy = "fetch again"});
    }
    const std::string linked = head.header("x-linked-etag"), size = head.header("x-linked-size");
    metadata.etag = plain_etag(linked.empty() ? head.header("etag") : linked);
    if (!is_blob_name(metadata.etag)) {
      throw RunError("the hub gives no usable ETag",
                     {.where = file.path, .remedy = "check HF_ENDPOINT"});
    }
    const std::string length = !size.empty()        ? size
                               : head.is_redirect() ? ""
                                                    : head.header("content-length");
    if (!length.empty() && length.size() < 18 &&
        length.find_first_not_of("0123456789") == std::string::npos)
      metadata.size = std::stoll(length);
    return metadata;
  }

  void fetch_file(const RepoFolder& folder, const RepoFile& file) {
    const FileMetadata metadata = describe(file);
    const BlobLock lock = folder.lock(
        metadata.etag, [this] { return stopped(); },
        [&] { report(fmt::format("{}: another process fetches it; waiting", file.path)); });
    std::error_code ignored;
    if (!fs::exists(folder.blob(metadata.etag), ignored)) {
      const FileTransfer transfer{.client = client_,
                                  .folder = folder,
                                  .retry = settings_.retry,
                                  .stop = [this] { return stopped(); },
                                  .progress = [this](std::int64_t bytes) { progress(bytes); },
                                  .report = [this](const std::string& text) { report(text); }};
      transfer.run(metadata);
      const std::int64_t size =
          static_cast<std::int64_t>(fs::file_size(folder.blob(metadata.etag), ignored));
      result_.fetched_bytes += size;
      report(fmt::format("{}  {}", file.path, in_units(size)));
    }
    ++result_.fetched;
    folder.link(listing_.commit, file.path, metadata.etag);
    done_ += file.size;
    progress(0);
  }

  const FetchSettings& settings_;
  const FetchRequest& request_;
  const FetchWatch& watch_;
  HttpClient client_;
  RepoName repo_;
  RepoListing listing_;
  std::vector<RepoFile> missing_;
  std::int64_t total_ = 0, done_ = 0;  // bytes
  FetchResult result_;
};

}  // namespace

FetchResult fetch(const FetchSettings& settings, const FetchRequest& request,
                  const FetchWatch& watch) {
  if (settings.offline) {
    throw InputError("HF_HUB_OFFLINE is set, so nothing is fetched",
                     {.where = request.name, .remedy = "unset it"});
  }
  return Fetch(settings, request, watch).run();
}

}  // namespace antisd::inline hub
