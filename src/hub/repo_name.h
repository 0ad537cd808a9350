// Names of models and data sets as the Hugging Face hub gives them, with the folder that the local
// cache keeps them in.
//
//   const auto repo = parse_repo_name(RepoType::kModel, "Qwen/Qwen3-0.6B@main");
//   repo->name;         // "Qwen/Qwen3-0.6B"
//   repo->revision;     // "main"
//   cache_name(*repo);  // "models--Qwen--Qwen3-0.6B"
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace antisd::inline hub {

enum class RepoType { kModel, kDataset };

struct RepoName {
  RepoType type = RepoType::kModel;
  std::string name;      // "Qwen/Qwen3-0.6B"
  std::string revision;  // a branch, a tag, or a commit hash, maybe abbreviated; empty: main

  bool operator==(const RepoName&) const = default;
};

// OWNER/NAME or NAME, then @REVISION; nothing if the text cannot be one. Such a name may as well be
// a path: who asks has to look for a folder first.
std::optional<RepoName> parse_repo_name(RepoType type, std::string_view text);

// "NAME@REVISION", or the name alone.
std::string text_of(const RepoName& repo);

// The folder's name in the cache.
std::string cache_name(const RepoName& repo);

// 40 hexadecimal digits in lower case.
bool is_commit(std::string_view text);
// Whether it can be the beginning of one: 4 to 40 such digits.
bool is_short_commit(std::string_view text);

// "model" or "data set", and "model" or "dataset" as the hub's tools spell it.
const char* type_text(RepoType type);
const char* type_word(RepoType type);

}  // namespace antisd::inline hub
