#include <charconv>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

#include "core/utf8.h"
#include "text/jinja/filters.h"
#include "text/jinja/format.h"
#include "text/jinja/methods.h"
#include "text/jinja/operators.h"
#include "text/jinja/print.h"
#include "text/jinja/string_methods.h"
#include "text/jinja/unicode.h"

namespace antisd::inline text::jinja {
namespace {

constexpr std::size_t kMaxNumberLength = 4096;

// The value as a string, without a copy if it is one.
Value as_text(Runtime& runtime, const Value& value) {
  return value.is_text() ? value : runtime.text(str(runtime, value));
}

template <const char* kName>
Value string_method(Runtime& runtime, const Value& value, Arguments& arguments) {
  return call_method(runtime, as_text(runtime, value), kName, arguments);
}
constexpr char kStrip[] = "strip";
constexpr char kUpper[] = "upper";
constexpr char kLower[] = "lower";
constexpr char kCapitalize[] = "capitalize";

Value string(Runtime& runtime, const Value& value, Arguments& arguments) {
  const Bound bound("string", arguments, {});
  return as_text(runtime, value);
}

Value title(Runtime& runtime, const Value& value, Arguments& arguments) {
  const Bound bound("title", arguments, {});
  const Value source = as_text(runtime, value);
  const std::string& text = source.text();
  runtime.spend(text.size() / 4);
  std::string result;
  bool inside = false;  // of a word
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    const bool breaks = is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
    if (inside && !breaks) {
      append_utf8(result, to_lower(c));
    } else {
      append_upper(result, c);
    }
    inside = !breaks;
  }
  return runtime.text(std::move(result));
}

Value replace(Runtime& runtime, const Value& value, Arguments& arguments) {
  const Bound bound("replace", arguments, {"old", "new", "count"}, 2);
  const std::string old = str(runtime, bound.at(0));
  const std::string fresh = str(runtime, bound.at(1));
  const std::int64_t count = bound.has_value(2) ? bound.integer(2, -1) : -1;
  return runtime.text(replaced(runtime, as_text(runtime, value).text(), old, fresh, count));
}

Value tojson(Runtime& runtime, const Value& value, Arguments& arguments) {
  const Bound bound("tojson", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ensure_ascii = bound.flag(0, false);
  style.sort_keys = bound.flag(3, false);
  if (bound.has_value(1)) {
    style.lines = true;
    style.item_separator.resize(1);  // no space before a newline
    if (bound.at(1).is_text()) {
      style.indent = bound.at(1).text();
    } else {
      style.indent.assign(
          static_cast<std::size_t>(std::clamp<std::int64_t>(bound.integer(1, 0), 0, 1000)), ' ');
    }
  }
  if (bound.has_value(2)) {
    const auto parts = elements(runtime, bound.at(2));
    const auto& items = parts->items;
    if (items.size() != 2 || !items[0].is_text() || !items[1].is_text()) {
      fail("tojson() needs two strings as separators");
    }
    style.item_separator = items[0].text();
    style.key_separator = items[1].text();
  }
  return runtime.text(to_json(runtime, value, style));
}

Value escape(Runtime& runtime, const Value& value, Arguments& arguments) {
  const Bound bound("escape", arguments, {});
  std::string result;
  const Value source = as_text(runtime, value);
  runtime.spend(source.text().size() / 4);
  for (const char c : source.text()) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '\'':
        result += "&#39;";
        break;
      case '"':
        result += "&#34;";
        break;
      default:
        result += c;
    }
  }
  return runtime.text(std::move(result));
}

Value indent(Runtime& runtime, const Value& value, Arguments& arguments) {
  const Bound bound("indent", arguments, {"width", "first", "blank"});
  require_defined(value);
  if (!value.is_text()) fail(fmt::format("indent needs a string, not {}", value.type_name()));
  std::string margin;
  if (bound.has(0) && bound.at(0).is_text()) {
    margin = bound.at(0).text();
  } else {
    margin.assign(
        static_cast<std::size_t>(std::clamp<std::int64_t>(bound.integer(0, 4), 0, 10'000)), ' ');
  }
  const bool blank = bound.flag(2, false);
  runtime.spend(value.text().size() / 4);
  const std::string text = value.text() + "\n";
  Charge memory(&runtime.heap(), text.size());
  std::string result = bound.flag(1, false) ? margin : "";
  bool first = true;
  for (const std::string_view line : split_lines(text, false)) {
    memory.grow(margin.size());
    runtime.spend_bytes(64 + margin.size());
    if (!first) {
      result += '\n';
      if (blank || !line.empty()) result += margin;
    }
    first = false;
    result += line;
  }
  return runtime.text(std::move(result));
}

Value truncate(Runtime& runtime, const Value& value, Arguments& arguments) {
  const Bound bound("truncate", arguments, {"length", "killwords", "end", "leeway"});
  const std::int64_t most = bound.integer(0, 255);
  const Value end = bound.has(2) ? bound.at(2) : runtime.text("...");
  const std::int64_t leeway = bound.has_value(3) ? bound.integer(3, 5) : 5;
  if (!value.is_text() || !end.is_text()) fail("truncate needs strings");
  if (most < length(runtime, end) || leeway < 0 || leeway > (std::int64_t{1} << 40)) {
    fail("truncate: the length is shorter than its end");
  }
  const std::int64_t size = length(runtime, value);
  if (size <= leeway || size - leeway <= most) return value;
  std::string text = value.text().substr(0, byte_offset(value.text(), most - length(runtime, end)));
  if (!bound.flag(1, false)) {
    if (const auto space = text.rfind(' '); space != std::string::npos) text.resize(space);
  }
  return runtime.text(text + end.text());
}

Value center(Runtime& runtime, const Value& value, Arguments& arguments) {
  if (arguments.positional.empty() && arguments.named.empty()) {
    arguments.positional.push_back(Value::integer(80));
  }
  return call_method(runtime, as_text(runtime, value), "center", arguments);
}

Value wordcount(Runtime& runtime, const Value& value, Arguments& arguments) {
  const Bound bound("wordcount", arguments, {});
  const Value source = as_text(runtime, value);
  const std::string& text = source.text();
  runtime.spend(text.size() / 4);
  std::int64_t words = 0;
  bool inside = false;
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    const bool word = c == '_' || is_alphabetic(c) || is_numeric(c);
    words += word && !inside;
    inside = word;
  }
  return Value::integer(words);
}

// int(text, base), or nothing if Python raises ValueError.
std::optional<std::int64_t> parse_integer(std::string_view text, std::int64_t base) {
  text = strip(text, nullptr, true, true);
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  const auto drop_prefix = [&](const char* prefix, std::int64_t of) {
    if ((base == of || base == 0) && text.size() > 2 && text[0] == '0' &&
        (text[1] | 0x20) == prefix[1]) {
      text.remove_prefix(2);
      base = of;
    }
  };
  drop_prefix("0x", 16);
  drop_prefix("0o", 8);
  drop_prefix("0b", 2);
  if (base == 0) base = 10;
  if (base < 2 || base > 36) fail("int() base must be >= 2 and <= 36, or 0");
  std::string digits = negative ? "-" : "";
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool joins = text[i] == '_' && i > 0 && i + 1 < text.size() && text[i - 1] != '_';
    if (!joins) digits += text[i];
  }
  std::int64_t number = 0;
  const char* end = digits.data() + digits.size();
  const auto result = std::from_chars(digits.data(), end, number, static_cast<int>(base));
  if (result.ec == std::errc::result_out_of_range && result.ptr == end) {
    fail("an integer does not fit into 64 bits");
  }
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return number;
}

std::optional<double> parse_float(std::string_view text) {
  const std::string source(strip(text, nullptr, true, true));
  const auto digit = [&](std::size_t i) {
    return i < source.size() && source[i] >= '0' && source[i] <= '9';
  };
  std::string trimmed;  // without the underscores between digits
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '_' || i == 0 || !digit(i - 1) || !digit(i + 1)) trimmed += source[i];
  }
  const std::string small = lower(trimmed);
  const bool word =
      small.find("inf") != std::string::npos || small.find("nan") != std::string::npos;
  if (small.find('x') != std::string::npos || small.find('(') != std::string::npos ||
      small.empty() || (!word && small.find('n') != std::string::npos)) {
    return std::nullopt;
  }
  char* end = nullptr;
  const double number = std::strtod(trimmed.c_str(), &end);
  if (end != trimmed.c_str() + trimmed.size()) return std::nullopt;
  return number;
}

std::optional<Value> whole_part(double number) {
  if (!(std::abs(number) < 9.2e18)) {
    if (std::isfinite(number)) fail("an integer does not fit into 64 bits");
    return std::nullopt;
  }
  return Value::integer(static_cast<std::int64_t>(number));
}

Value to_int(Runtime&, const Value& value, Arguments& arguments) {
  const Bound bound("int", arguments, {"default", "base"});
  const Value otherwise = bound.has(0) ? bound.at(0) : Value::integer(0);
  require_defined(value);
  if (value.is_integral()) return Value::integer(value.as_int());
  if (value.is_float()) return whole_part(value.as_double()).value_or(otherwise);
  if (!value.is_text()) return otherwise;
  if (value.text().size() > kMaxNumberLength) fail("a number has too many digits");
  if (const auto number = parse_integer(value.text(), bound.integer(1, 10))) {
    return Value::integer(*number);
  }
  const auto number = parse_float(value.text());
  return number ? whole_part(*number).value_or(otherwise) : otherwise;
}

Value to_float(Runtime&, const Value& value, Arguments& arguments) {
  const Bound bound("float", arguments, {"default"});
  const Value otherwise = bound.has(0) ? bound.at(0) : Value::real(0);
  require_defined(value);
  if (value.is_number()) return Value::real(value.as_double());
  if (!value.is_text()) return otherwise;
  if (value.text().size() > kMaxNumberLength) fail("a number has too many digits");
  const auto number = parse_float(value.text());
  return number ? Value::real(*number) : otherwise;
}

Value absolute(Runtime&, const Value& value, Arguments& arguments) {
  const Bound bound("abs", arguments, {});
  require_defined(value);
  if (value.is_float()) return Value::real(std::abs(value.as_double()));
  if (!value.is_integral())
    fail(fmt::format("bad operand type for abs(): '{}'", value.type_name()));
  return value.as_int() < 0 ? negative(value) : Value::integer(value.as_int());
}

// round(): to the nearest decimal, ties to even, like printf.
double rounded(double number, std::int64_t precision) {
  if (!std::isfinite(number) || precision > 300) return number;
  if (precision < 0) {
    const double unit = std::pow(10.0, static_cast<double>(-precision));
    return std::isinf(unit) ? 0.0 : std::nearbyint(number / unit) * unit;
  }
  return std::strtod(fmt::format("{:.{}f}", number, static_cast<int>(precision)).c_str(), nullptr);
}

Value round(Runtime& runtime, const Value& value, Arguments& arguments) {
  const Bound bound("round", arguments, {"precision", "method"});
  require_defined(value);
  const std::int64_t precision = bound.integer(0, 0);
  const std::string method = bound.has(1) ? bound.text(1) : "common";
  if (!value.is_number()) {
    fail(fmt::format("type {} doesn't define __round__ method", value.type_name()));
  }
  if (method == "common") {
    if (value.is_float()) return Value::real(rounded(value.as_double(), precision));
    if (precision >= 0) return Value::integer(value.as_int());
    return Value::integer(static_cast<std::int64_t>(rounded(value.as_double(), precision)));
  }
  if (method != "ceil" && method != "floor") fail("method must be common, ceil or floor");
  const Value scale =
      arithmetic(runtime, Operator::kPower, Value::integer(10), Value::integer(precision));
  const double scaled = value.as_double() * scale.as_double();
  return Value::real((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) /
                     scale.as_double());
}

Value format(Runtime& runtime, const Value& value, Arguments& arguments) {
  if (!arguments.positional.empty() && !arguments.named.empty()) {
    fail("can't handle positional and keyword arguments at the same time");
  }
  Value values;
  if (arguments.named.empty()) {
    values = runtime.tuple(arguments.positional);
  } else {
    const auto dict = runtime.new_dict();
    for (const auto& [name, item] : arguments.named)
      dict->set(runtime, runtime.text(name), item);
    values = Value(std::shared_ptr<const Dict>(dict));
  }
  return runtime.text(percent_format(runtime, as_text(runtime, value).text(), values));
}

Value otherwise(Runtime& runtime, const Value& value, Arguments& arguments) {
  const Bound bound("default", arguments, {"default_value", "boolean"});
  const bool absent = value.is_undefined() || (bound.flag(1, false) && !truthy(value));
  if (!absent) return value;
  return bound.has(0) ? bound.at(0) : runtime.text("");
}

std::string url_quoted(std::string_view text, bool query) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool kept = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                      c == '_' || c == '.' || c == '-' || c == '~' || (c == '/' && !query);
    if (kept) {
      result += c;
    } else if (c == ' ' && query) {
      result += '+';
    } else {
      result += fmt::format("%{:02X}", byte);
    }
  }
  return result;
}

Value urlencode(Runtime& runtime, const Value& value, Arguments& arguments) {
  const Bound bound("urlencode", arguments, {});
  if (value.is_text() || !iterable(value)) {
    const std::string text = str(runtime, value);
    runtime.spend(text.size());
    return runtime.text(url_quoted(text, false));
  }
  Arguments none;
  const Value source = value.is_dict() ? call_method(runtime, value, "items", none) : value;
  std::string result;
  const auto pairs = elements(runtime, source);
  for (const Value& pair : pairs->items) {
    const auto parts = elements(runtime, pair);
    if (parts->items.size() != 2) fail("urlencode needs pairs");
    if (!result.empty()) result += '&';
    result += url_quoted(str(runtime, parts->items[0]), true) + "=" +
              url_quoted(str(runtime, parts->items[1]), true);
  }
  return runtime.text(std::move(result));
}

}  // namespace

const FilterTable& text_filters() {
  static const FilterTable kFilters = {
      {"trim", string_method<kStrip>},
      {"upper", string_method<kUpper>},
      {"lower", string_method<kLower>},
      {"capitalize", string_method<kCapitalize>},
      {"string", string},
      {"safe", string},
      {"title", title},
      {"replace", replace},
      {"tojson", tojson},
      {"escape", escape},
      {"e", escape},
      {"forceescape", escape},
      {"indent", indent},
      {"truncate", truncate},
      {"center", center},
      {"wordcount", wordcount},
      {"int", to_int},
      {"float", to_float},
      {"abs", absolute},
      {"round", round},
      {"format", format},
      {"default", otherwise},
      {"d", otherwise},
      {"urlencode", urlencode},
  };
  return kFilters;
}

}  // namespace antisd::inline text::jinja
