#include "text/jinja/format.h"

#include <cmath>
#include <cstdio>
#include <optional>

#include <fmt/format.h>

#include "core/utf8.h"
#include "text/jinja/operators.h"
#include "text/jinja/print.h"

namespace antisd::inline text::jinja {
namespace {

constexpr int kMaxWidth = 10'000;
constexpr int kMaxPrecision = 500;

struct Spec {
  std::string fill = " ";
  char align = 0;  // '<', '>', '^', '=' or 0 for the type's default
  char sign = '-';
  bool alternate = false;
  bool thousands = false;
  int width = 0;
  int precision = -1;
  char type = 0;
};

int read_number(std::string_view text, std::size_t& at, int most) {
  int number = 0;
  while (at < text.size() && text[at] >= '0' && text[at] <= '9') {
    number = number * 10 + (text[at++] - '0');
    if (number > most) fail(fmt::format("a format's width or precision is above {}", most));
  }
  return number;
}

std::int64_t code_points(std::string_view text) {
  std::int64_t count = 0;
  for (const char c : text)
    count += (c & 0xC0) != 0x80;
  return count;
}

std::string padded(std::string text, const Spec& spec, char own_align) {
  const std::int64_t missing = spec.width - code_points(text);
  if (missing <= 0) return text;
  const char align = spec.align != 0 ? spec.align : own_align;
  const std::int64_t left = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
  std::string before, after;
  for (std::int64_t i = 0; i < missing; ++i)
    (i < left ? before : after) += spec.fill;
  if (align == '=' && !text.empty() && (text[0] == '-' || text[0] == '+' || text[0] == ' ')) {
    return text.substr(0, 1) + before + text.substr(1);
  }
  return before + text + after;
}

std::string with_thousands(std::string digits) {
  const std::size_t point = digits.find_first_not_of("0123456789");
  std::size_t at = point == std::string::npos ? digits.size() : point;
  while (at > 3)
    digits.insert(at -= 3, 1, ',');
  return digits;
}

std::string signed_text(bool negative, std::string digits, const Spec& spec) {
  if (spec.thousands) digits = with_thousands(std::move(digits));
  const std::string sign = negative ? "-" : spec.sign == '+' ? "+" : spec.sign == ' ' ? " " : "";
  return padded(sign + digits, spec, '>');
}

std::string format_integer(std::int64_t number, const Spec& spec) {
  const bool negative = number < 0;
  const auto size = negative ? std::uint64_t{0} - static_cast<std::uint64_t>(number)
                             : static_cast<std::uint64_t>(number);
  std::string digits;
  switch (spec.type) {
    case 'x':
      digits = fmt::format(fmt::runtime(spec.alternate ? "{:#x}" : "{:x}"), size);
      break;
    case 'X':
      digits = fmt::format(fmt::runtime(spec.alternate ? "{:#X}" : "{:X}"), size);
      break;
    case 'o':
      digits = (spec.alternate ? "0o" : "") + fmt::format("{:o}", size);
      break;
    case 'b':
      digits = fmt::format(fmt::runtime(spec.alternate ? "{:#b}" : "{:b}"), size);
      break;
    default:
      digits = fmt::format("{}", size);
  }
  return signed_text(negative, std::move(digits), spec);
}

std::string format_float(double number, const Spec& spec) {
  const bool negative = std::signbit(number) && !std::isnan(number);
  const double size = std::abs(number);
  if (!std::isfinite(size)) return signed_text(negative, std::isnan(size) ? "nan" : "inf", spec);
  if (spec.type == 0 && spec.precision < 0) return signed_text(negative, float_repr(size), spec);
  const bool percent = spec.type == '%';
  const char type = percent ? 'f' : spec.type == 0 ? 'g' : spec.type;
  const char pattern[] = {'%', '.', '*', type, '\0'};
  char buffer[1024];
  const int length =
      std::snprintf(buffer, sizeof(buffer), pattern, spec.precision < 0 ? 6 : spec.precision,
                    percent ? size * 100 : size);
  std::string digits(buffer, static_cast<std::size_t>(std::min<int>(length, sizeof(buffer) - 1)));
  if (percent) digits += '%';
  return signed_text(negative, std::move(digits), spec);
}

bool is_float_type(char type) {
  return type != 0 && std::string_view("eEfFgG%").find(type) != std::string_view::npos;
}

std::string cut(std::string text, int precision) {
  if (precision >= 0) text.resize(byte_offset(text, precision));
  return text;
}

// ---- "{}".format ----

Spec parse_spec(std::string_view text) {
  Spec spec;
  std::size_t at = 0;
  const auto is_align = [](char c) { return c == '<' || c == '>' || c == '^' || c == '='; };
  if (!text.empty()) {
    std::size_t behind = 0;
    next_code_point(text, behind);
    if (behind < text.size() && is_align(text[behind])) {
      spec.fill = std::string(text.substr(0, behind));
      spec.align = text[behind];
      at = behind + 1;
    } else if (is_align(text[0])) {
      spec.align = text[at++];
    }
  }
  const auto take = [&](char c) { return at < text.size() && text[at] == c && ++at != 0; };
  if (take('+')) spec.sign = '+';
  if (take(' ')) spec.sign = ' ';
  take('-');
  spec.alternate = take('#');
  if (take('0') && spec.align == 0) {
    spec.fill.assign(1, '0');
    spec.align = '=';
  }
  spec.width = read_number(text, at, kMaxWidth);
  spec.thousands = take(',');
  if (take('.')) spec.precision = read_number(text, at, kMaxPrecision);
  if (at < text.size()) spec.type = text[at++];
  if (at < text.size()) fail("Invalid format specifier");
  return spec;
}

std::string format_value(Runtime& runtime, const Value& value, std::string_view text) {
  if (text.empty()) return str(runtime, value);
  const Spec spec = parse_spec(text);
  const bool number = value.is_number() && !(value.is_bool() && spec.type == 0);
  if (number && (is_float_type(spec.type) || (value.is_float() && spec.type == 0))) {
    return format_float(value.as_double(), spec);
  }
  if (number && value.is_integral() &&
      std::string_view("dxXob\0", 6).find(spec.type) != std::string_view::npos) {
    return format_integer(value.as_int(), spec);
  }
  const bool plain = value.is_text() || value.is_bool();
  if (!plain || (spec.type != 0 && spec.type != 's')) {
    fail(fmt::format("unsupported format string passed to {}.__format__", value.type_name()));
  }
  return padded(cut(str(runtime, value), spec.precision), spec, '<');
}

class BraceFormatter {
 public:
  BraceFormatter(Runtime& runtime, const std::string& pattern, Arguments& arguments)
      : runtime_(runtime), pattern_(pattern), arguments_(arguments) {}

  std::string run() {
    while (at_ < pattern_.size()) {
      runtime_.spend();
      const char c = pattern_[at_++];
      const bool doubled = at_ < pattern_.size() && pattern_[at_] == c;
      if ((c == '{' || c == '}') && doubled) {
        out_ += c;
        ++at_;
      } else if (c == '{') {
        replace_field();
      } else if (c == '}') {
        fail("Single '}' encountered in format string");
      } else {
        out_ += c;
      }
    }
    return std::move(out_);
  }

 private:
  void replace_field() {
    const std::size_t end = pattern_.find('}', at_);
    if (end == std::string::npos) fail("expected '}' before end of string");
    std::string_view field = std::string_view(pattern_).substr(at_, end - at_);
    at_ = end + 1;
    std::string_view spec, conversion;
    if (const auto colon = field.find(':'); colon != std::string_view::npos) {
      spec = field.substr(colon + 1);
      field = field.substr(0, colon);
    }
    if (const auto mark = field.find('!'); mark != std::string_view::npos) {
      conversion = field.substr(mark + 1);
      field = field.substr(0, mark);
    }
    if (spec.find('{') != std::string_view::npos) fail("nested format fields are not supported");
    Value value = look_up(field);
    if (conversion == "r") value = runtime_.text(repr(runtime_, value));
    if (conversion == "s") value = runtime_.text(str(runtime_, value));
    const std::string text = format_value(runtime_, value, spec);
    memory_.grow(text.size());
    runtime_.spend_bytes(text.size());
    out_ += text;
  }

  // "0.name[key]"
  Value look_up(std::string_view field) {
    std::size_t end = std::min(field.find_first_of(".["), field.size());
    Value value = first(field.substr(0, end));
    while (end < field.size()) {
      runtime_.spend();
      const bool attribute = field[end] == '.';
      const std::size_t begin = end + 1;
      end = attribute ? std::min(field.find_first_of(".[", begin), field.size())
                      : field.find(']', begin);
      if (end == std::string_view::npos) fail("Missing ']' in format string");
      const std::string name(field.substr(begin, end - begin));
      const Value key = runtime_.text(name);
      if (attribute) {
        value = get_attribute(runtime_, value, name, key);
      } else {
        ++end;
        std::size_t at = 0;
        const int index = read_number(name, at, 1'000'000);
        value =
            get_item(runtime_, value, at == name.size() && at > 0 ? Value::integer(index) : key);
      }
    }
    return value;
  }

  Value first(std::string_view name) {
    std::size_t at = 0;
    std::size_t index = static_cast<std::size_t>(read_number(name, at, 1'000'000));
    if (at == name.size()) {
      if (name.empty()) index = automatic_++;
      if (index >= arguments_.positional.size()) {
        fail("Replacement index out of range for positional args tuple");
      }
      return arguments_.positional[index];
    }
    for (const auto& [key, value] : arguments_.named) {
      if (key == name) return value;
    }
    fail(fmt::format("format() has no argument '{}'", name));
  }

  Runtime& runtime_;
  const std::string& pattern_;
  Arguments& arguments_;
  std::size_t at_ = 0;
  std::size_t automatic_ = 0;
  std::string out_;
  Charge memory_{&runtime_.heap(), pattern_.size()};
};

// ---- "%s" % value ----

class PercentFormatter {
 public:
  PercentFormatter(Runtime& runtime, const std::string& pattern, const Value& values)
      : runtime_(runtime), pattern_(pattern), values_(values) {}

  std::string run() {
    while (at_ < pattern_.size()) {
      runtime_.spend();
      if (pattern_[at_] != '%') {
        out_ += pattern_[at_++];
        continue;
      }
      ++at_;
      const std::string text = conversion();
      memory_.grow(text.size());
      runtime_.spend_bytes(text.size());
      out_ += text;
    }
    const bool leftover = is_tuple() ? used_ < values_.list().items.size()
                                     : used_ == 0 && !values_.is_dict() && !keyed_;
    if (leftover) fail("not all arguments converted during string formatting");
    return std::move(out_);
  }

 private:
  bool is_tuple() const { return values_.is_list() && values_.list().is_tuple(); }

  Value next_value() {
    const std::size_t i = used_++;
    if (is_tuple() && i < values_.list().items.size()) return values_.list().items[i];
    if (!is_tuple() && i == 0) return values_;
    fail("not enough arguments for format string");
  }

  std::optional<Value> keyed_value() {
    if (at_ >= pattern_.size() || pattern_[at_] != '(') return std::nullopt;
    const std::size_t end = pattern_.find(')', at_);
    if (end == std::string::npos) fail("incomplete format key");
    if (!values_.is_dict()) fail("format requires a mapping");
    const std::string key = pattern_.substr(at_ + 1, end - at_ - 1);
    const Value* found = values_.dict().find(runtime_, key);
    if (found == nullptr) fail(fmt::format("format has no key {}", python_quoted(key)));
    at_ = end + 1;
    keyed_ = true;
    return *found;
  }

  void read_flags(Spec& spec) {
    bool zero = false;
    for (; at_ < pattern_.size(); ++at_) {
      const char c = pattern_[at_];
      if (c == '-') {
        spec.align = '<';
      } else if (c == '0') {
        zero = true;
      } else if (c == '+' || (c == ' ' && spec.sign != '+')) {
        spec.sign = c;
      } else if (c == '#') {
        spec.alternate = true;
      } else if (c != ' ') {
        break;
      }
    }
    if (zero && spec.align == 0) {
      spec.fill.assign(1, '0');
      spec.align = '=';
    }
    spec.width = read_number(pattern_, at_, kMaxWidth);
    if (at_ < pattern_.size() && pattern_[at_] == '.') {
      ++at_;
      spec.precision = read_number(pattern_, at_, kMaxPrecision);
    }
    if (at_ < pattern_.size() && pattern_[at_] == '*') fail("'*' widths are not supported");
    if (at_ >= pattern_.size()) fail("incomplete format");
    spec.type = pattern_[at_++];
  }

  std::string conversion() {
    const auto keyed = keyed_value();
    Spec spec;
    read_flags(spec);
    if (spec.type == '%') return "%";
    const Value value = keyed ? *keyed : next_value();
    if (spec.type == 's' || spec.type == 'r') {
      if (spec.fill == "0") spec.fill = " ";
      if (spec.align == '=') spec.align = '>';
      return padded(
          cut(spec.type == 's' ? str(runtime_, value) : repr(runtime_, value), spec.precision),
          spec, '>');
    }
    require_defined(value);
    if (spec.type == 'c' && value.is_text() && code_points(value.text()) == 1) {
      return padded(value.text(), spec, '>');
    }
    return number(value, spec);
  }

  std::string number(const Value& value, Spec& spec) {
    if (!value.is_number()) {
      fail(fmt::format("%{} format: a real number is required, not {}", spec.type,
                       value.type_name()));
    }
    if (std::string_view("eEfFgG").find(spec.type) != std::string_view::npos) {
      return format_float(value.as_double(), spec);
    }
    if (std::string_view("diuxXo").find(spec.type) == std::string_view::npos) {
      fail(fmt::format("unsupported format character '{}'", spec.type));
    }
    if (!value.is_integral() && !(std::abs(value.as_double()) < 9.2e18)) {
      fail("a float is too large for an integer format");
    }
    return format_integer(
        value.is_integral() ? value.as_int() : static_cast<std::int64_t>(value.as_double()), spec);
  }

  Runtime& runtime_;
  const std::string& pattern_;
  const Value& values_;
  std::size_t at_ = 0;
  std::size_t used_ = 0;
  bool keyed_ = false;
  std::string out_;
  Charge memory_{&runtime_.heap(), pattern_.size()};
};

}  // namespace

std::string percent_format(Runtime& runtime, const std::string& pattern, const Value& values) {
  return PercentFormatter(runtime, pattern, values).run();
}

std::string brace_format(Runtime& runtime, const std::string& pattern, Arguments& arguments) {
  return BraceFormatter(runtime, pattern, arguments).run();
}

}  // namespace antisd::inline text::jinja
