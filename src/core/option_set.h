// Options described once: field, default, range, help. The TOML reader, the key=value reader, the
// printed configuration, --help and the documentation page all use this one description.
//
//   struct RolloutOptions {
//     std::int64_t group_size = 8;
//     void describe(OptionSet& options) {
//       options.add("rollout.group_size", group_size, "responses per prompt").between(2, 4096);
//     }
//   };
//   RolloutOptions rollout;
//   OptionSet options;
//   rollout.describe(options);
//   options.load_toml("run.toml");
//   options.assign("rollout.group_size=16");
//
// The described fields must outlive the set.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace antisd::inline core {

using Scalar = std::variant<bool, std::int64_t, double, std::string>;
using ScalarMap = std::map<std::string, Scalar>;
using StringMap = std::map<std::string, std::string>;
using IntegerMap = std::map<std::string, std::int64_t>;

using OptionField = std::variant<bool*, std::int64_t*, double*, std::string*,
                                 std::vector<std::string>*, std::vector<std::int64_t>*,
                                 std::vector<double>*, StringMap*, IntegerMap*, ScalarMap*>;

struct OptionReader;  // option_reader.cpp: TOML node -> field

class Option {
 public:
  Option(std::string key, OptionField field, std::string help);

  // Bounds apply to every number of the option and are inclusive.
  Option& between(double low, double high);
  Option& at_least(double low);
  Option& above(double low);  // exclusive
  Option& one_of(std::vector<std::string> choices);
  // Lists the key in the short help of these commands.
  Option& common_in(std::vector<std::string> commands);

  const std::string& key() const { return key_; }  // "section.name"
  std::string section() const;
  std::string name() const;
  const std::string& help() const { return help_; }
  const std::string& default_toml() const { return default_toml_; }  // when it was described
  std::string value_toml() const;                                    // now
  std::string type_text() const;   // "integer", "list of strings", ...
  std::string range_text() const;  // "2 to 4096", "paper | released", or ""
  bool was_set() const { return source_ > 0; }
  bool is_common_in(std::string_view command) const;

 private:
  friend struct OptionReader;
  friend class OptionSet;
  void check_value(const std::string& where) const;
  void check_number(double value, const std::string& where) const;

  std::string key_;
  OptionField field_;
  std::string help_;
  std::string default_toml_;
  double low_ = -std::numeric_limits<double>::infinity();
  double high_ = std::numeric_limits<double>::infinity();
  bool low_exclusive_ = false;
  std::vector<std::string> choices_;
  std::vector<std::string> common_in_;
  int source_ = 0;  // 0: the default; files by their order; kCommandLine
};

class OptionSet {
 public:
  OptionSet() = default;
  OptionSet(const OptionSet&) = delete;
  OptionSet& operator=(const OptionSet&) = delete;

  template <typename Field>
  Option& add(std::string key, Field& field, std::string help) {
    return add_option(Option(std::move(key), OptionField(&field), std::move(help)));
  }

  // Both throw an InputError that names the place, the key, and the nearest known key or the
  // allowed range. A file may start with `extends = "base.toml"`, relative to itself: that file is
  // read first.
  void load_toml(const std::filesystem::path& file);
  void load_toml_text(std::string_view text, const std::string& name);
  // "rollout.group_size=16"; an entry of a table by its name: "eval.n.aime24=4". Strings need no
  // quotes and lists of strings no brackets: "data.train=a.jsonl,b.jsonl".
  void assign(std::string_view key_and_value);
  // Sets a key because another one (a preset) implies it, unless the key was set in the same place
  // as that one or in a later one. Files come in their order, the command line last.
  void imply(std::string_view by_key, std::string_view key_and_value);

  // A TOML file with every key. With help, each key is preceded by a comment: help, type, range.
  std::string to_toml(bool with_help) const;
  std::string to_markdown() const;  // a table per section
  // "key  help [default; range]" for a terminal: every key, or the common ones of a command.
  std::string to_help() const;
  std::string to_help(std::string_view command) const;

  const Option* find(std::string_view key) const;
  const std::deque<Option>& options() const { return options_; }

 private:
  Option& add_option(Option option);
  Option& find_or_throw(std::string_view key, const std::string& where);
  void assign_from(int source, std::string_view key_and_value);
  void load_file(const std::filesystem::path& file, const std::string& where,
                 std::vector<std::filesystem::path> extended_by);
  void load_text(std::string_view text, const std::filesystem::path& file,
                 const std::vector<std::filesystem::path>& extended_by);

  static constexpr int kCommandLine = std::numeric_limits<int>::max();
  int files_ = 0;
  std::deque<Option> options_;  // a deque: references that add() returned stay valid
};

}  // namespace antisd::inline core
