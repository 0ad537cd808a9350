#include "core/option_set.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "core/check.h"
#include "core/error.h"
#include "core/toml_text.h"

namespace antisd::inline core {
namespace {

template <typename... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <typename... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;  // clang 14 needs this deduction guide

std::string number_text(double value) {
  return fmt::format("{}", value);
}

}  // namespace

Option::Option(std::string key, OptionField field, std::string help)
    : key_(std::move(key)), field_(field), help_(std::move(help)), default_toml_(value_toml()) {}

Option& Option::between(double low, double high) {
  low_ = low;
  high_ = high;
  check_value("default");
  return *this;
}

Option& Option::at_least(double low) {
  return between(low, std::numeric_limits<double>::infinity());
}

Option& Option::above(double low) {
  low_exclusive_ = true;
  return at_least(low);
}

Option& Option::common_in(std::vector<std::string> commands) {
  common_in_ = std::move(commands);
  return *this;
}

bool Option::is_common_in(std::string_view command) const {
  return std::find(common_in_.begin(), common_in_.end(), command) != common_in_.end();
}

Option& Option::one_of(std::vector<std::string> choices) {
  choices_ = std::move(choices);
  check_value("default");
  return *this;
}

std::string Option::section() const {
  return key_.substr(0, key_.rfind('.'));
}

std::string Option::name() const {
  return key_.substr(key_.rfind('.') + 1);
}

std::string Option::value_toml() const {
  return std::visit([](const auto* value) { return toml_value(*value); }, field_);
}

std::string Option::type_text() const {
  return std::visit(
      Overloaded{[](bool*) { return "true or false"; }, [](std::int64_t*) { return "integer"; },
                 [](double*) { return "number"; }, [](std::string*) { return "string"; },
                 [](std::vector<std::string>*) { return "list of strings"; },
                 [](std::vector<std::int64_t>*) { return "list of integers"; },
                 [](std::vector<double>*) { return "list of numbers"; },
                 [](StringMap*) { return "table of strings"; },
                 [](IntegerMap*) { return "table of integers"; },
                 [](ScalarMap*) { return "table"; }},
      field_);
}

std::string Option::range_text() const {
  if (!choices_.empty()) return fmt::format("{}", fmt::join(choices_, " | "));
  const bool has_low = low_ > -std::numeric_limits<double>::infinity();
  const bool has_high = high_ < std::numeric_limits<double>::infinity();
  if (has_low && has_high) return number_text(low_) + " to " + number_text(high_);
  if (has_low) return (low_exclusive_ ? "above " : "at least ") + number_text(low_);
  return "";
}

void Option::check_number(double value, const std::string& where) const {
  // No option takes infinity or NaN, whatever its range.
  const bool inside =
      std::isfinite(value) && value >= low_ && value <= high_ && !(low_exclusive_ && value == low_);
  if (inside) return;
  const std::string range = range_text();
  throw InputError(
      fmt::format("{} = {} is out of range", key_, number_text(value)),
      {.where = where, .remedy = "allowed: " + (range.empty() ? "finite numbers" : range)});
}

void Option::check_value(const std::string& where) const {
  const auto check_choice = [&](const std::string& value) {
    if (choices_.empty() || std::count(choices_.begin(), choices_.end(), value) > 0) return;
    throw InputError(fmt::format("{} = \"{}\" is not a known value", key_, value),
                     {.where = where, .remedy = "allowed: " + range_text()});
  };
  std::visit(
      Overloaded{[&](const std::int64_t* v) { check_number(static_cast<double>(*v), where); },
                 [&](const double* v) { check_number(*v, where); },
                 [&](const std::string* v) { check_choice(*v); },
                 [&](const std::vector<std::string>* list) {
                   for (const auto& v : *list)
                     check_choice(v);
                 },
                 [&](const std::vector<std::int64_t>* list) {
                   for (const auto v : *list)
                     check_number(static_cast<double>(v), where);
                 },
                 [&](const std::vector<double>* list) {
                   for (const auto v : *list)
                     check_number(v, where);
                 },
                 [&](const IntegerMap* map) {
                   for (const auto& [_, v] : *map)
                     check_number(static_cast<double>(v), where);
                 },
                 [&](const ScalarMap* map) {
                   for (const auto& [_, v] : *map)
                     if (const double* number = std::get_if<double>(&v))
                       check_number(*number, where);
                 },
                 [](const auto*) {}},
      field_);
}

Option& OptionSet::add_option(Option option) {
  ANTISD_CHECK(find(option.key()) == nullptr);
  return options_.emplace_back(std::move(option));
}

const Option* OptionSet::find(std::string_view key) const {
  const auto found = std::find_if(options_.begin(), options_.end(),
                                  [&](const Option& option) { return option.key() == key; });
  return found == options_.end() ? nullptr : &*found;
}

std::string OptionSet::to_toml(bool with_help) const {
  std::string text, section;
  for (const Option& option : options_) {
    if (option.section() != section) {
      section = option.section();
      text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", section);
    }
    if (with_help) {
      const std::string range = option.range_text();
      text += fmt::format("# {} ({}{}{})\n", option.help(), option.type_text(),
                          range.empty() ? "" : ", ", range);
    }
    text += fmt::format("{} = {}\n", option.name(), option.value_toml());
  }
  return text;
}

std::string OptionSet::to_markdown() const {
  const auto cell = [](std::string text) {
    for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) {
      text.insert(at, "\\");
    }
    return text;
  };
  std::string text, section;
  for (const Option& option : options_) {
    if (option.section() != section) {
      section = option.section();
      text += fmt::format(
          "\n## [{}]\n\n| key | default | type and range | meaning |\n|---|---|---|---|\n",
          section);
    }
    const std::string range = option.range_text();
    text += fmt::format("| `{}` | `{}` | {}{}{} | {} |\n", option.name(),
                        cell(option.default_toml()), option.type_text(), range.empty() ? "" : ", ",
                        cell(range), cell(option.help()));
  }
  return text;
}

namespace {

template <typename Filter>
std::string help_lines(const std::deque<Option>& options, const Filter& filter) {
  std::size_t width = 0;
  for (const Option& option : options)
    if (filter(option)) width = std::max(width, option.key().size());
  std::string text;
  for (const Option& option : options) {
    if (!filter(option)) continue;
    const std::string range = option.range_text();
    text += fmt::format("  {:<{}}  {} [{}{}{}]\n", option.key(), width, option.help(),
                        option.default_toml(), range.empty() ? "" : "; ", range);
  }
  return text;
}

}  // namespace

std::string OptionSet::to_help() const {
  return help_lines(options_, [](const Option&) { return true; });
}

std::string OptionSet::to_help(std::string_view command) const {
  return help_lines(options_, [&](const Option& option) { return option.is_common_in(command); });
}

}  // namespace antisd::inline core
