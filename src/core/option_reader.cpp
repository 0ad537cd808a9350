// OptionSet's readers. The only file that includes toml++, which is slow to compile.
#include <algorithm>
#include <fstream>
#include <functional>
#include <optional>
#include <sstream>

#include <fmt/format.h>
#include <toml++/toml.h>

#include "core/error.h"
#include "core/nearest.h"
#include "core/option_set.h"
#include "core/toml_text.h"
#include "core/utf8.h"

namespace antisd::inline core {
namespace {

// Thrown while a node is converted. The caller knows key and place and turns it into an InputError.
struct WrongType {};

void read_node(const toml::node& node, bool& field) {
  if (!node.is_boolean()) throw WrongType{};
  field = node.as_boolean()->get();
}

void read_node(const toml::node& node, std::int64_t& field) {
  if (!node.is_integer()) throw WrongType{};
  field = node.as_integer()->get();
}

void read_node(const toml::node& node, double& field) {
  if (node.is_integer()) {
    field = static_cast<double>(node.as_integer()->get());
  } else if (node.is_floating_point()) {
    field = node.as_floating_point()->get();
  } else {
    throw WrongType{};
  }
}

void read_node(const toml::node& node, std::string& field) {
  if (!node.is_string()) throw WrongType{};
  field = node.as_string()->get();
}

void read_node(const toml::node& node, Scalar& field) {
  if (node.is_boolean()) {
    field = node.as_boolean()->get();
  } else if (node.is_integer()) {
    field = node.as_integer()->get();
  } else if (node.is_floating_point()) {
    field = node.as_floating_point()->get();
  } else if (node.is_string()) {
    field = node.as_string()->get();
  } else {
    throw WrongType{};
  }
}

template <typename Value>
void read_node(const toml::node& node, std::vector<Value>& field) {
  const toml::array* array = node.as_array();
  if (array == nullptr) throw WrongType{};
  std::vector<Value> values;
  for (const toml::node& element : *array)
    read_node(element, values.emplace_back());
  field = std::move(values);
}

template <typename Value>
void read_node(const toml::node& node, std::map<std::string, Value>& field) {
  const toml::table* table = node.as_table();
  if (table == nullptr) throw WrongType{};
  std::map<std::string, Value> values;
  for (const auto& [key, element] : *table)
    read_node(element, values[std::string(key.str())]);
  field = std::move(values);
}

toml::table parse_toml(std::string_view text, const std::string& name) {
  try {
    return toml::parse(text, name);
  } catch (const toml::parse_error& error) {
    throw InputError("not valid TOML: " + std::string(error.description()),
                     {.where = fmt::format("{}:{}", name, error.source().begin.line),
                      .remedy = "strings need quotes; see `antisd config --defaults`"});
  }
}

// Reads the whole stream up to a limit: a device like /dev/zero never ends.
std::string read_bounded(std::istream& stream, const std::string& where) {
  constexpr std::size_t kMostBytes = 16 << 20;
  std::string text(kMostBytes + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  if (text.size() <= kMostBytes) return text;
  throw InputError(
      fmt::format("longer than the {} MiB that a configuration may have", kMostBytes >> 20),
      {.where = where, .remedy = "check that it is the right file"});
}

// A command-line value as TOML: strings may be unquoted, lists of strings separated by commas.
std::string command_line_toml(const OptionField& field, const std::string& value) {
  const bool quoted = value.starts_with('"') || value.starts_with('\'');
  if (std::holds_alternative<std::string*>(field) && !quoted) return toml_value(value);
  if (std::holds_alternative<std::vector<std::string>*>(field) && !value.starts_with('[')) {
    std::vector<std::string> parts;
    std::istringstream stream(value);
    for (std::string part; std::getline(stream, part, ',');)
      parts.push_back(part);
    return toml_value(parts);
  }
  return value;
}

}  // namespace

struct OptionReader {
  static bool takes_table(const Option& option) {
    return std::holds_alternative<StringMap*>(option.field_) ||
           std::holds_alternative<IntegerMap*>(option.field_) ||
           std::holds_alternative<ScalarMap*>(option.field_);
  }

  static void set(Option& option, const toml::node& node, int source, const std::string& where) {
    read(option, source, where, [&] {
      if (is_choice_of_word(option, node)) {
        *std::get<std::string*>(option.field_) = node.as_boolean()->get() ? "true" : "false";
      } else {
        std::visit([&](auto* field) { read_node(node, *field); }, option.field_);
      }
    });
  }

  // Of a choice such as auto, true or false, the last two may be TOML's own.
  static bool is_choice_of_word(const Option& option, const toml::node& node) {
    return node.is_boolean() && std::holds_alternative<std::string*>(option.field_) &&
           std::ranges::find(option.choices_, "true") != option.choices_.end();
  }

  static void set_entry(Option& option, const std::string& name, const toml::node& node, int source,
                        const std::string& where) {
    read(option, source, where, [&] {
      std::visit(
          [&](auto* field) {
            if constexpr (requires { (*field)[name]; }) read_node(node, (*field)[name]);
          },
          option.field_);
    });
  }

  static const OptionField& field(const Option& option) { return option.field_; }

 private:
  template <typename Read>
  static void read(Option& option, int source, const std::string& where, Read read_field) {
    try {
      read_field();
    } catch (const WrongType&) {
      throw wrong_type(option, where);
    }
    option.check_value(where);
    option.source_ = source;
  }

 public:
  static InputError wrong_type(const Option& option, const std::string& where) {
    return InputError(fmt::format("{} must be {}", option.key(), option.type_text()),
                      {.where = where, .remedy = "default: " + option.default_toml()});
  }
};

Option& OptionSet::find_or_throw(std::string_view key, const std::string& where) {
  const auto found = std::find_if(options_.begin(), options_.end(),
                                  [&](const Option& option) { return option.key() == key; });
  if (found != options_.end()) return *found;
  std::vector<std::string> candidates;
  const std::string leaf(key.substr(key.rfind('.') + 1));
  std::string nearest;
  for (const Option& option : options_) {
    candidates.push_back(option.key());
    if (option.name() == leaf && nearest.empty())
      nearest = option.key();  // right name, wrong section
  }
  if (nearest.empty()) nearest = nearest_name(key, candidates);
  throw InputError(fmt::format("unknown key '{}'", key),
                   {.where = where,
                    .remedy = nearest.empty() ? "`antisd config --defaults` lists every key"
                                              : fmt::format("did you mean '{}'?", nearest)});
}

void OptionSet::load_toml(const std::filesystem::path& file) {
  load_file(file, file.string(), {});
}

void OptionSet::load_toml_text(std::string_view text, const std::string& name) {
  load_text(text, name, {});
}

// `where` is the file, or the line that extends it; `extended_by` are the files that led to it.
void OptionSet::load_file(const std::filesystem::path& file, const std::string& where,
                          std::vector<std::filesystem::path> extended_by) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream || std::filesystem::is_directory(file)) {
    throw InputError(
        extended_by.empty() ? "cannot read the configuration file"
                            : fmt::format("cannot read '{}', which it extends", file.string()),
        {.where = where,
         .remedy = extended_by.empty()
                       ? "check the path; `antisd config --defaults` prints one to start from"
                       : "the path is relative to the file that names it"});
  }
  std::error_code error;
  std::filesystem::path itself = std::filesystem::canonical(file, error);
  if (error) itself = std::filesystem::absolute(file);  // a pipe, /dev/fd/63, has no path
  if (std::find(extended_by.begin(), extended_by.end(), itself) != extended_by.end()) {
    throw InputError(fmt::format("'{}' extends itself", file.string()),
                     {.where = where, .remedy = "remove one `extends` of the circle"});
  }
  extended_by.push_back(itself);
  load_text(read_bounded(stream, where), file, extended_by);
}

void OptionSet::load_text(std::string_view text, const std::filesystem::path& file,
                          const std::vector<std::filesystem::path>& extended_by) {
  const std::string name = file.string();
  toml::table root = parse_toml(text, name);
  if (const toml::node* base = root.get("extends")) {
    const std::string where = fmt::format("{}:{}", name, base->source().begin.line);
    if (!base->is_string()) {
      throw InputError("extends must be a string",
                       {.where = where, .remedy = "e.g. extends = \"base.toml\""});
    }
    load_file((file.parent_path() / base->as_string()->get()).lexically_normal(), where,
              extended_by);
    root.erase("extends");
  }
  ++files_;
  const std::function<void(const toml::table&, const std::string&)> walk =
      [&](const toml::table& table, const std::string& prefix) {
        for (const auto& [name_in_table, node] : table) {
          const std::string key = prefix + std::string(name_in_table.str());
          const std::string where = fmt::format("{}:{}", name, name_in_table.source().begin.line);
          const bool is_section = std::any_of(
              options_.begin(), options_.end(),
              [&](const Option& option) { return option.key().starts_with(key + "."); });
          if (is_section && node.is_table()) {
            walk(*node.as_table(), key + ".");
          } else {
            OptionReader::set(find_or_throw(key, where), node, files_, where);
          }
        }
      };
  walk(root, "");
}

void OptionSet::assign(std::string_view key_and_value) {
  assign_from(kCommandLine, key_and_value);
}

void OptionSet::imply(std::string_view by_key, std::string_view key_and_value) {
  const std::string where = fmt::format("'{}'", key_and_value);
  const int source = find_or_throw(by_key, where).source_;
  const Option& implied = find_or_throw(key_and_value.substr(0, key_and_value.find('=')), where);
  if (implied.source_ < source) assign_from(source, key_and_value);
}

void OptionSet::assign_from(int source, std::string_view key_and_value) {
  const std::size_t equals = key_and_value.find('=');
  const std::string where = fmt::format("'{}'", replace_invalid_utf8(key_and_value));
  if (find_invalid_utf8(key_and_value))  // what is printed of it would not be TOML
    throw InputError("not valid UTF-8", {.where = where, .remedy = "see the terminal's encoding"});
  if (equals == std::string_view::npos || equals == 0) {
    throw InputError("not of the form key=value",
                     {.where = where, .remedy = "e.g. train.steps=100"});
  }
  const std::string key(key_and_value.substr(0, equals));
  const std::string value(key_and_value.substr(equals + 1));
  const auto parse = [](const std::string& text) -> std::optional<toml::table> {
    try {
      return toml::parse("value = " + text);
    } catch (const toml::parse_error&) {
      return std::nullopt;
    }
  };
  for (Option& table : options_) {
    if (!OptionReader::takes_table(table) || !key.starts_with(table.key() + ".")) continue;
    std::optional<toml::table> parsed = parse(value);
    const bool bare_string = std::holds_alternative<StringMap*>(OptionReader::field(table));
    if (!parsed || bare_string) parsed = parse(toml_value(value));
    return OptionReader::set_entry(table, key.substr(table.key().size() + 1), *parsed->get("value"),
                                   source, where);
  }
  Option& option = find_or_throw(key, where);
  const auto parsed = parse(command_line_toml(OptionReader::field(option), value));
  if (!parsed) throw OptionReader::wrong_type(option, where);
  OptionReader::set(option, *parsed->get("value"), source, where);
}

}  // namespace antisd::inline core
