#include "text/chat_template.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "core/error.h"
#include "core/utf8.h"
#include "io/atomic_file.h"
#include "text/jinja/ast.h"
#include "text/jinja/interpreter.h"

namespace antisd::inline text {
namespace {

constexpr std::int64_t kMaxTemplateBytes = std::int64_t{4} << 20;
constexpr std::int64_t kMaxConfigBytes = std::int64_t{256} << 20;

InputError error_of(const jinja::Failure& failure, const std::string& name, int line) {
  return InputError(failure.problem,
                    {.where = fmt::format("{}:{}", name, failure.line != 0 ? failure.line : line),
                     .remedy = failure.remedy});
}

// The template in a JSON file's chat_template: a string, or a list of {name, template}.
std::optional<std::string> template_in(const std::filesystem::path& path) {
  const SortedJson config = parse_sorted_json(read_file(path, kMaxConfigBytes), path.string());
  if (!config.is_object() || !config.contains("chat_template")) return std::nullopt;
  const SortedJson& entry = config["chat_template"];
  if (entry.is_null()) return std::nullopt;
  if (entry.is_string()) return entry.get<std::string>();
  const auto text_of = [](const SortedJson& object, const char* key) -> std::string {
    const bool has = object.is_object() && object.contains(key) && object[key].is_string();
    return has ? object[key].get<std::string>() : "";
  };
  if (entry.is_array()) {
    for (const SortedJson& named : entry) {
      if (text_of(named, "name") == "default") return text_of(named, "template");
    }
  }
  throw InputError("chat_template is neither a string nor a list with a template named \"default\"",
                   {.where = path.string(), .remedy = "pass a template file"});
}

}  // namespace

ChatTemplate::ChatTemplate(std::string source, std::string name, TemplateLimits limits)
    : source_(std::move(source)), name_(std::move(name)), limits_(limits) {
  if (const auto bad = find_invalid_utf8(source_)) {
    throw InputError(fmt::format("the template is not UTF-8 at byte {}", *bad),
                     {.where = name_, .remedy = "save it as UTF-8"});
  }
  if (std::ssize(source_) > kMaxTemplateBytes) {
    throw InputError(fmt::format("the template has more than {} MiB", kMaxTemplateBytes >> 20),
                     {.where = name_, .remedy = "check that it is the right file"});
  }
  try {
    program_ = std::make_shared<const jinja::Program>(jinja::parse(source_));
  } catch (const jinja::Failure& failure) {
    throw error_of(failure, name_, 1);
  }
}

ChatTemplate ChatTemplate::load(const std::filesystem::path& model_directory) {
  const std::filesystem::path own = model_directory / "chat_template.jinja";
  if (std::filesystem::exists(own)) {
    return ChatTemplate(read_file(own, kMaxTemplateBytes), own.string());
  }
  for (const char* name : {"tokenizer_config.json", "chat_template.json"}) {
    const std::filesystem::path path = model_directory / name;
    if (!std::filesystem::exists(path)) continue;
    if (auto source = template_in(path)) return ChatTemplate(std::move(*source), path.string());
  }
  throw InputError("the model has no chat template",
                   {.where = model_directory.string(),
                    .remedy = "add a chat_template.jinja, or pass plain prompts"});
}

std::string ChatTemplate::render(const Json& variables) const {
  if (!variables.is_object()) {
    throw InputError("the template's variables are not an object",
                     {.where = name_, .remedy = "pass {\"messages\": [...]}"});
  }
  const jinja::Limits limits{limits_.steps, limits_.output_bytes, limits_.memory_bytes};
  jinja::Interpreter interpreter(*program_, variables, limits);
  try {
    return interpreter.run();
  } catch (const jinja::Failure& failure) {
    throw error_of(failure, name_, interpreter.line());
  }
}

std::vector<std::string> ChatTemplate::names() const {
  std::vector<std::string> names = program_->symbols;
  std::sort(names.begin(), names.end());
  return names;
}

Json with_reasoning_names(const Json& messages) {
  Json named = Json::array();
  for (const Json& message : messages) {
    const Json* reasoning = nullptr;
    for (const char* name : {"reasoning", "thinking", "reasoning_content"}) {  // the last one wins
      if (!message.is_object() || !message.contains(name) || message[name].is_null()) continue;
      reasoning = &message[name];
    }
    if (reasoning == nullptr) {
      named.push_back(message);
      continue;
    }
    Json copy = {{"thinking", *reasoning}};
    copy.update(message);
    copy["reasoning_content"] = *reasoning;
    named.push_back(std::move(copy));
  }
  return named;
}

}  // namespace antisd::inline text
