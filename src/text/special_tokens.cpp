#include "text/special_tokens.h"

#include <fmt/format.h>

#include "core/error.h"
#include "io/atomic_file.h"

namespace antisd {
namespace {

constexpr const char* kRoles[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                  "pad_token", "cls_token", "mask_token"};

void read_roles(const std::filesystem::path& file, Json& tokens) {
  if (!std::filesystem::exists(file)) return;
  const SortedJson config = parse_sorted_json(read_file(file), file.string());
  if (!config.is_object()) {
    throw InputError("not a JSON object", {.where = file.string(), .remedy = "fetch the file again"});
  }
  for (const char* role : kRoles) {
    const auto entry = config.find(role);
    if (entry == config.end() || entry->is_null() || tokens.contains(role)) continue;
    // A plain string, or an added token written out: {"content": "<s>", "lstrip": false, ...}.
    const SortedJson& content = entry->is_object() && entry->contains("content") ? (*entry)["content"] : *entry;
    if (!content.is_string()) {
      throw InputError(fmt::format("{} is {}", role, content.type_name()),
                       {.where = file.string(), .remedy = "a special token is a string or {\"content\": string}"});
    }
    tokens[role] = content.get<std::string>();
  }
}

}  // namespace

Json named_special_tokens(const std::filesystem::path& model_directory) {
  Json tokens = Json::object();
  read_roles(model_directory / "tokenizer_config.json", tokens);
  read_roles(model_directory / "special_tokens_map.json", tokens);
  return tokens;
}

}  // namespace antisd
