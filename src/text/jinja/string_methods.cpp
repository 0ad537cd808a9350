#include "text/jinja/string_methods.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/utf8.h"
#include "text/jinja/format.h"
#include "text/jinja/operators.h"
#include "text/jinja/print.h"
#include "text/jinja/unicode.h"

namespace antisd::inline text::jinja {
namespace {

constexpr std::size_t kNowhere = std::string::npos;

Value texts(Runtime& runtime, const std::vector<std::string_view>& parts) {
  std::vector<Value> items;
  items.reserve(parts.size());
  for (const std::string_view part : parts) {
    runtime.spend();
    items.push_back(runtime.text(std::string(part)));
  }
  return runtime.list(std::move(items));
}

template <bool kLeft, bool kRight>
Value strip_method(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Bound bound("strip", arguments, {"chars"});
  const std::string* characters = bound.has_value(0) ? &bound.text(0) : nullptr;
  if (characters != nullptr) runtime.spend(characters->size());
  const std::string& text = self.text();
  const std::string_view rest = strip(text, characters, kLeft, kRight);
  runtime.spend((text.size() - rest.size()) / 8);
  return rest.size() == text.size() ? self : runtime.text(std::string(rest));
}

// At most `most` cuts (< 0: any number) at white space.
std::vector<std::string_view> split_space(std::string_view text, std::int64_t most, bool right) {
  std::vector<std::string_view> parts;
  const auto space_at = [&](std::size_t at, std::size_t& next) {
    next = at;
    return is_space(next_code_point(text, next));
  };
  const auto space_before = [&](std::size_t at, std::size_t& begin) {
    begin = at - 1;
    while (begin > 0 && (text[begin] & 0xC0) == 0x80)
      --begin;
    std::size_t next = begin;
    return is_space(next_code_point(text, next));
  };
  std::size_t other = 0;
  text = right ? strip(text, nullptr, false, true) : strip(text, nullptr, true, false);
  while (!text.empty() && most != 0) {
    std::size_t cut = right ? text.size() : 0;
    while (right ? cut > 0 && !space_before(cut, other)
                 : cut < text.size() && !space_at(cut, other)) {
      cut = other;
    }
    parts.push_back(right ? text.substr(cut) : text.substr(0, cut));
    text = right ? strip(text.substr(0, cut), nullptr, false, true)
                 : strip(text.substr(cut), nullptr, true, false);
    --most;
  }
  if (!text.empty()) parts.push_back(text);
  if (right) std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string_view> split_at(Runtime& runtime, std::string_view text,
                                       std::string_view separator, std::int64_t most) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  while (most != 0) {
    const std::size_t found = find_text(text, separator, begin);
    if (found == kNowhere) break;
    runtime.spend();
    parts.push_back(text.substr(begin, found - begin));
    begin = found + separator.size();
    --most;
  }
  parts.push_back(text.substr(begin));
  return parts;
}

// From the right, by searching the reversed text: linear like the other direction.
std::vector<std::string_view> split_at_right(Runtime& runtime, std::string_view text,
                                             std::string_view separator, std::int64_t most) {
  const Charge memory(&runtime.heap(), text.size());
  const std::string mirrored(text.rbegin(), text.rend());
  const std::string needle(separator.rbegin(), separator.rend());
  std::vector<std::string_view> parts;
  std::size_t at = text.size();
  for (const std::string_view part : split_at(runtime, mirrored, needle, most)) {
    parts.push_back(text.substr(at - part.size(), part.size()));
    at -= std::min(at, part.size() + separator.size());
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

template <bool kRight>
Value split_method(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Bound bound("split", arguments, {"sep", "maxsplit"});
  const std::string& text = self.text();
  const std::int64_t most = bound.integer(1, -1);
  runtime.spend_bytes(text.size());
  if (!bound.has_value(0)) {
    runtime.spend(text.size() / 4);
    return texts(runtime, split_space(text, most, kRight));
  }
  const std::string& separator = bound.text(0);
  if (separator.empty()) fail("empty separator");
  return texts(runtime, kRight && most >= 0 ? split_at_right(runtime, text, separator, most)
                                            : split_at(runtime, text, separator, most));
}

Value splitlines(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Bound bound("splitlines", arguments, {"keepends"});
  runtime.spend(self.text().size() / 4);
  return texts(runtime, split_lines(self.text(), bound.flag(0, false)));
}

template <bool kRight>
Value partition(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Bound bound("partition", arguments, {"sep"}, 1);
  const std::string& separator = bound.text(0);
  if (separator.empty()) fail("empty separator");
  const auto parts = kRight ? split_at_right(runtime, self.text(), separator, 1)
                            : split_at(runtime, self.text(), separator, 1);
  const Value empty = runtime.text("");
  if (parts.size() == 1) {
    return kRight ? runtime.tuple({empty, empty, self}) : runtime.tuple({self, empty, empty});
  }
  return runtime.tuple(
      {runtime.text(std::string(parts[0])), bound.at(0), runtime.text(std::string(parts[1]))});
}

// The bytes from code point `start` to `stop`, and their offset. A start after the end leaves
// nothing, not even an empty string to find.
struct Window {
  bool exists;
  std::size_t begin;
  std::string_view text;
};

Window window(Runtime& runtime, const Value& self, const Bound& bound) {
  const std::string& text = self.text();
  if (!bound.has_value(1) && !bound.has_value(2)) return {true, 0, text};
  const Value start = bound.has(1) ? bound.at(1) : Value();
  const Value stop = bound.has(2) ? bound.at(2) : Value();
  const std::int64_t size = length(runtime, self);
  const Span span = slice_span(size, start, stop, Value());
  const bool exists = !(start.is_integral() && start.as_int() > size);
  const std::size_t begin = byte_offset(text, span.start);
  const std::size_t end = byte_offset(text, span.start + span.count);
  return {exists, begin, std::string_view(text).substr(begin, end - begin)};
}

template <bool kSuffix>
Value starts_method(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Bound bound(kSuffix ? "endswith" : "startswith", arguments, {"prefix", "start", "end"}, 1);
  const Window part = window(runtime, self, bound);
  const auto matches = [&](const Value& piece) {
    require_defined(piece);
    if (!piece.is_text()) fail("startswith first arg must be str or a tuple of str");
    runtime.spend();
    return part.exists &&
           (kSuffix ? part.text.ends_with(piece.text()) : part.text.starts_with(piece.text()));
  };
  const Value& pieces = bound.at(0);
  if (!pieces.is_list() || !pieces.list().is_tuple()) return Value::boolean(matches(pieces));
  const auto& items = pieces.list().items;
  return Value::boolean(std::any_of(items.begin(), items.end(), matches));
}

std::int64_t code_points(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; });
}

// The code point index of the first or last occurrence, or -1.
template <bool kRight>
std::int64_t find_index(Runtime& runtime, const Value& self, const Bound& bound) {
  const Window part = window(runtime, self, bound);
  const std::string& needle = bound.text(0);
  runtime.spend((self.text().size() + needle.size()) / 16);
  if (!part.exists) return -1;
  std::size_t found = kNowhere;
  if (!kRight) {
    found = find_text(part.text, needle, 0);
  } else if (needle.empty()) {
    found = part.text.size();
  } else {
    const auto parts = split_at_right(runtime, part.text, needle, 1);
    if (parts.size() == 2) found = parts[0].size();
  }
  if (found == kNowhere) return -1;
  return code_points(std::string_view(self.text()).substr(0, part.begin + found));
}

template <bool kRight, bool kRequired>
Value find_method(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Bound bound("find", arguments, {"sub", "start", "end"}, 1);
  const std::int64_t index = find_index<kRight>(runtime, self, bound);
  if (kRequired && index < 0) fail("substring not found");
  return Value::integer(index);
}

Value count(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Bound bound("count", arguments, {"sub", "start", "end"}, 1);
  const Window part = window(runtime, self, bound);
  runtime.spend_bytes(self.text().size());
  if (!part.exists) return Value::integer(0);
  if (bound.text(0).empty()) return Value::integer(code_points(part.text) + 1);
  return Value::integer(
      static_cast<std::int64_t>(split_at(runtime, part.text, bound.text(0), -1).size()) - 1);
}

Value replace(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Bound bound("replace", arguments, {"old", "new", "count"}, 2);
  return runtime.text(
      replaced(runtime, self.text(), bound.text(0), bound.text(1), bound.integer(2, -1)));
}

Value join(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Bound bound("join", arguments, {"iterable"}, 1);
  std::string text;
  Charge memory(&runtime.heap(), 0);
  bool first = true;
  const auto items = elements(runtime, bound.at(0));
  for (const Value& item : items->items) {
    if (!item.is_text()) {
      fail(fmt::format("sequence item: expected str instance, {} found", item.type_name()));
    }
    runtime.spend();
    memory.grow(self.text().size() + item.text().size());
    if (!first) text += self.text();
    first = false;
    text += item.text();
  }
  return runtime.text(std::move(text));
}

template <std::string (*kConvert)(std::string_view)>
Value convert(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Bound bound("str method", arguments, {});
  runtime.spend(self.text().size() / 4);
  return runtime.text(kConvert(self.text()));
}

std::string swapped_case(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    if (is_upper(c)) {
      append_utf8(result, to_lower(c));
    } else {
      append_upper(result, c);
    }
  }
  return result;
}

template <bool (*kHolds)(char32_t)>
Value all_are(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Bound bound("str method", arguments, {});
  const std::string& text = self.text();
  runtime.spend(text.size() / 4);
  for (std::size_t at = 0; at < text.size();) {
    if (!kHolds(next_code_point(text, at))) return Value::boolean(false);
  }
  return Value::boolean(!text.empty());
}

bool is_alphanumeric(char32_t c) {
  return is_alphabetic(c) || is_numeric(c);
}

// At least one letter has case, and all that do have the wanted case.
template <bool kUpper>
Value is_case(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Bound bound("str method", arguments, {});
  const std::string& text = self.text();
  runtime.spend(text.size() / 4);
  bool some = false;
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    if (is_title(c) || (kUpper ? is_lower(c) : is_upper(c))) return Value::boolean(false);
    some = some || (kUpper ? is_upper(c) : is_lower(c));
  }
  return Value::boolean(some);
}

Value istitle(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Bound bound("istitle", arguments, {});
  const std::string& text = self.text();
  runtime.spend(text.size() / 4);
  bool some = false;
  bool inside = false;
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    const bool large = is_upper(c) || is_title(c);
    if (large ? inside : is_lower(c) && !inside) return Value::boolean(false);
    inside = large || is_lower(c);
    some = some || inside;
  }
  return Value::boolean(some);
}

bool ascii_character(char32_t c) {
  return c < 0x80;
}

Value isascii(Runtime& runtime, const Value& self, Arguments& arguments) {
  if (self.text().empty()) return Value::boolean(true);
  return all_are<ascii_character>(runtime, self, arguments);
}

template <bool kSuffix>
Value remove_affix(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Bound bound("removeprefix", arguments, {"affix"}, 1);
  const std::string& text = self.text();
  const std::string& affix = bound.text(0);
  if (affix.empty() || !(kSuffix ? text.ends_with(affix) : text.starts_with(affix))) return self;
  return runtime.text(text.substr(kSuffix ? 0 : affix.size(), text.size() - affix.size()));
}

// -1: ljust, 0: center, 1: rjust
template <int kSide>
Value justify(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Bound bound("ljust", arguments, {"width", "fillchar"}, 1);
  const std::string fill = bound.has(1) ? bound.text(1) : " ";
  if (code_points(fill) != 1) fail("The fill character must be exactly one character long");
  const std::int64_t missing = bound.integer(0, 0) - length(runtime, self);
  if (missing <= 0) return self;
  const Value padding =
      arithmetic(runtime, Operator::kMultiply, runtime.text(fill), Value::integer(missing));
  const std::int64_t odd = missing & bound.integer(0, 0) & 1;
  const auto left = static_cast<std::size_t>(kSide < 0   ? 0
                                             : kSide > 0 ? missing
                                                         : missing / 2 + odd);
  const std::string& spaces = padding.text();
  return runtime.text(spaces.substr(0, left * fill.size()) + self.text() +
                      spaces.substr(left * fill.size()));
}

Value zfill(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Bound bound("zfill", arguments, {"width"}, 1);
  const std::int64_t missing = bound.integer(0, 0) - length(runtime, self);
  if (missing <= 0) return self;
  const Value zeros =
      arithmetic(runtime, Operator::kMultiply, runtime.text("0"), Value::integer(missing));
  const std::string& text = self.text();
  const std::size_t sign = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  return runtime.text(text.substr(0, sign) + zeros.text() + text.substr(sign));
}

Value format(Runtime& runtime, const Value& self, Arguments& arguments) {
  return runtime.text(brace_format(runtime, self.text(), arguments));
}

}  // namespace

std::string replaced(Runtime& runtime, const std::string& text, const std::string& old,
                     const std::string& fresh, std::int64_t count) {
  runtime.spend_bytes(text.size());
  Charge memory(&runtime.heap(), text.size());
  std::string result;
  if (old.empty()) {
    for (std::size_t at = 0; at <= text.size();) {
      if (count != 0) {
        runtime.spend();
        memory.grow(fresh.size());
        result += fresh;
        --count;
      }
      if (at == text.size()) break;
      const std::size_t begin = at;
      next_code_point(text, at);
      result.append(text, begin, at - begin);
    }
    return result;
  }
  std::size_t begin = 0;
  for (; count != 0; --count) {
    const std::size_t found = find_text(text, old, begin);
    if (found == kNowhere) break;
    runtime.spend();
    memory.grow(fresh.size());
    result.append(text, begin, found - begin);
    result += fresh;
    begin = found + old.size();
  }
  result.append(text, begin);
  return result;
}

const std::unordered_map<std::string, Method>& string_methods() {
  static const std::unordered_map<std::string, Method> kMethods = {
      {"strip", strip_method<true, true>},
      {"lstrip", strip_method<true, false>},
      {"rstrip", strip_method<false, true>},
      {"split", split_method<false>},
      {"rsplit", split_method<true>},
      {"splitlines", splitlines},
      {"partition", partition<false>},
      {"rpartition", partition<true>},
      {"startswith", starts_method<false>},
      {"endswith", starts_method<true>},
      {"find", find_method<false, false>},
      {"rfind", find_method<true, false>},
      {"index", find_method<false, true>},
      {"rindex", find_method<true, true>},
      {"count", count},
      {"replace", replace},
      {"join", join},
      {"upper", convert<upper>},
      {"lower", convert<lower>},
      {"casefold", convert<lower>},
      {"title", convert<titled>},
      {"capitalize", convert<capitalized>},
      {"swapcase", convert<swapped_case>},
      {"isdigit", all_are<is_digit>},
      {"isdecimal", all_are<is_decimal>},
      {"isnumeric", all_are<is_numeric>},
      {"isalpha", all_are<is_alphabetic>},
      {"isalnum", all_are<is_alphanumeric>},
      {"isspace", all_are<is_space>},
      {"isascii", isascii},
      {"isupper", is_case<true>},
      {"islower", is_case<false>},
      {"istitle", istitle},
      {"removeprefix", remove_affix<false>},
      {"removesuffix", remove_affix<true>},
      {"ljust", justify<-1>},
      {"center", justify<0>},
      {"rjust", justify<1>},
      {"zfill", zfill},
      {"format", format},
  };
  return kMethods;
}

}  // namespace antisd::inline text::jinja
