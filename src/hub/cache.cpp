#include "hub/cache.h"

#include <cstdlib>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/error.h"
#include "io/atomic_file.h"

namespace antisd::inline hub {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxRefBytes = 4096;

// The commit that a branch or tag was at, if refs/ has it.
std::string commit_of_ref(const fs::path& repo_folder, const std::string& revision) {
  const fs::path file = repo_folder / "refs" / revision;
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) return "";
  std::string commit = read_file(file, kMaxRefBytes);
  while (!commit.empty() && (commit.back() == '\n' || commit.back() == ' '))
    commit.pop_back();
  return is_commit(commit) ? commit : "";
}

std::set<std::string> commits_in(const fs::path& repo_folder) {
  std::set<std::string> commits;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(repo_folder / "snapshots", error))
    if (is_commit(entry.path().filename().string()))
      commits.insert(entry.path().filename().string());
  return commits;
}

std::string commit_that_begins(const fs::path& repo_folder, const RepoName& repo) {
  std::vector<std::string> fitting;
  for (const std::string& commit : commits_in(repo_folder))
    if (commit.starts_with(repo.revision)) fitting.push_back(commit);
  if (fitting.size() > 1) {
    throw InputError(fmt::format("'{}' is the beginning of several revisions: {}", repo.revision,
                                 fmt::join(fitting, ", ")),
                     {.where = text_of(repo), .remedy = "write more digits"});
  }
  return fitting.empty() ? "" : fitting.front();
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

// "models--openai--gsm8k" -> openai/gsm8k.
std::optional<RepoName> repo_of_cache_name(const std::string& folder) {
  const bool model = folder.starts_with("models--");
  if (!model && !folder.starts_with("datasets--")) return std::nullopt;
  std::string name = folder.substr(folder.find("--") + 2);
  if (const std::size_t mark = name.find("--"); mark != std::string::npos)
    name.replace(mark, 2, "/");
  return parse_repo_name(model ? RepoType::kModel : RepoType::kDataset, name);
}

}  // namespace

std::optional<fs::path> path_variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  const std::string text = value;
  const char* home = std::getenv("HOME");
  if (home != nullptr && (text == "~" || text.starts_with("~/"))) return home + text.substr(1);
  return text;
}

fs::path home_folder() {
  if (const auto home = path_variable("HF_HOME")) return *home;
  if (const auto caches = path_variable("XDG_CACHE_HOME")) return *caches / "huggingface";
  return path_variable("HOME").value_or("/") / ".cache" / "huggingface";
}

fs::path cache_folder() {
  if (const auto cache = path_variable("HF_HUB_CACHE")) return *cache;
  if (const auto cache = path_variable("HUGGINGFACE_HUB_CACHE")) return *cache;
  return home_folder() / "hub";
}

std::optional<Snapshot> find_snapshot(const RepoName& repo, const fs::path& cache) {
  const fs::path folder = cache / cache_name(repo);
  const std::string revision = repo.revision.empty() ? "main" : repo.revision;
  std::string commit = commit_of_ref(folder, revision);
  if (commit.empty() && is_short_commit(revision)) commit = commit_that_begins(folder, repo);
  if (commit.empty() || !is_folder(folder / "snapshots" / commit)) return std::nullopt;
  return Snapshot{{repo.type, repo.name, commit}, folder / "snapshots" / commit};
}

std::optional<Snapshot> snapshot_of(const fs::path& folder) {
  fs::path path = folder.lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  const std::string commit = path.filename().string();
  if (!is_commit(commit) || path.parent_path().filename() != "snapshots") return std::nullopt;
  std::optional<RepoName> repo =
      repo_of_cache_name(path.parent_path().parent_path().filename().string());
  if (!repo) return std::nullopt;
  repo->revision = commit;
  return Snapshot{*repo, path};
}

void throw_absent(const RepoName& repo) {
  const bool is_dataset = repo.type == RepoType::kDataset;
  const fs::path folder = cache_folder() / cache_name(repo);
  RepoName other = repo;
  other.type = is_dataset ? RepoType::kModel : RepoType::kDataset;
  std::string problem =
      fmt::format("no such folder, and the Hugging Face cache has no {}", folder.string());
  if (const std::set<std::string> commits = commits_in(folder); !commits.empty()) {
    problem = fmt::format("no such folder, and {} has no revision '{}'; it has {}", folder.string(),
                          repo.revision.empty() ? "main" : repo.revision, fmt::join(commits, ", "));
  } else if (is_folder(cache_folder() / cache_name(other))) {
    problem += fmt::format(" (it has a {} of that name)", type_text(other.type));
  }
  const std::string revision =
      repo.revision.empty() ? "" : fmt::format(" --revision {}", repo.revision);
  throw InputError(
      problem, {.where = text_of(repo),
                .remedy = fmt::format("get it with `antisd fetch {}{}` or `hf download {}{}{}`",
                                      text_of(repo), is_dataset ? " --type dataset" : "", repo.name,
                                      is_dataset ? " --repo-type dataset" : "", revision)});
}

fs::path model_folder(const std::string& path_or_name) {
  std::error_code ignored;
  if (path_or_name.empty() || fs::exists(path_or_name, ignored)) return path_or_name;
  const std::optional<RepoName> repo = parse_repo_name(RepoType::kModel, path_or_name);
  if (!repo) return path_or_name;
  if (std::optional<Snapshot> found = find_snapshot(*repo)) return found->folder;
  if (repo->name.find('/') == std::string::npos) return path_or_name;  // a folder, more likely
  throw_absent(*repo);
}

std::string pinned_model(const std::string& path_or_name) {
  std::error_code ignored;
  if (path_or_name.empty() || fs::exists(path_or_name, ignored)) return path_or_name;
  const std::optional<RepoName> repo = parse_repo_name(RepoType::kModel, path_or_name);
  if (!repo) return path_or_name;
  const std::optional<Snapshot> found = find_snapshot(*repo);
  return found ? text_of(found->repo) : path_or_name;
}

}  // namespace antisd::inline hub
