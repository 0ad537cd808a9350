#include "hub/repo_name.h"

#include <algorithm>

namespace antisd::inline hub {
namespace {

constexpr std::size_t kMaxName = 96;
constexpr std::size_t kMaxRevision = 255;

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.';
}

bool is_name_part(std::string_view part) {
  const auto is_mark = [](char c) { return c == '-' || c == '.'; };
  return !part.empty() && std::all_of(part.begin(), part.end(), is_name_char) &&
         !is_mark(part.front()) && !is_mark(part.back()) &&
         part.find("--") == std::string_view::npos && part.find("..") == std::string_view::npos;
}

bool is_name(std::string_view name) {
  if (name.size() > kMaxName) return false;
  const std::size_t slash = name.find('/');
  if (slash == std::string_view::npos) return is_name_part(name);
  return is_name_part(name.substr(0, slash)) && is_name_part(name.substr(slash + 1));
}

// What git accepts as the name of a branch or tag; it becomes a path below refs/.
bool is_revision(std::string_view revision) {
  if (revision.empty() || revision.size() > kMaxRevision) return false;
  std::size_t start = 0;
  while (start <= revision.size()) {
    const std::size_t end = std::min(revision.find('/', start), revision.size());
    const std::string_view part = revision.substr(start, end - start);
    if (part.empty() || part.front() == '.' || part.back() == '.') return false;
    start = end + 1;
  }
  return revision.find("..") == std::string_view::npos &&
         std::none_of(revision.begin(), revision.end(), [](char c) {
           return static_cast<unsigned char>(c) <= ' ' || c == 127 ||
                  std::string_view("~^:?*[\\@").find(c) != std::string_view::npos;
         });
}

bool is_hex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

std::optional<RepoName> parse_repo_name(RepoType type, std::string_view text) {
  const std::size_t at = text.find('@');
  RepoName repo{.type = type, .name = std::string(text.substr(0, at)), .revision = ""};
  if (at != std::string_view::npos) {
    repo.revision = text.substr(at + 1);
    if (!is_revision(repo.revision)) return std::nullopt;
  }
  if (!is_name(repo.name)) return std::nullopt;
  return repo;
}

std::string text_of(const RepoName& repo) {
  return repo.revision.empty() ? repo.name : repo.name + "@" + repo.revision;
}

std::string cache_name(const RepoName& repo) {
  std::string name = repo.type == RepoType::kModel ? "models--" : "datasets--";
  for (const char c : repo.name)
    name += c == '/' ? std::string("--") : std::string(1, c);
  return name;
}

bool is_commit(std::string_view text) {
  return text.size() == 40 && is_hex(text);
}

bool is_short_commit(std::string_view text) {
  return text.size() >= 4 && text.size() <= 40 && is_hex(text);
}

const char* type_text(RepoType type) {
  return type == RepoType::kModel ? "model" : "data set";
}

const char* type_word(RepoType type) {
  return type == RepoType::kModel ? "model" : "dataset";
}

}  // namespace antisd::inline hub
