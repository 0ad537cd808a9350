#include "text/jinja/print.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "core/utf8.h"
#include "text/jinja/unicode.h"

namespace antisd::inline text::jinja {
namespace {

void append_escape(std::string& out, char32_t c) {
  if (c <= 0xFF) {
    out += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
  } else if (c <= 0xFFFF) {
    out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
  } else {
    out += fmt::format("\\U{:08x}", static_cast<unsigned>(c));
  }
}

void append_quoted(std::string& out, std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const char quote = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
  out += quote;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const char32_t c = next_code_point(text, at);
    if (c == static_cast<char32_t>(quote) || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (is_printable(c)) {
      out += text.substr(begin, at - begin);
    } else {
      append_escape(out, c);
    }
  }
  out += quote;
}

// Writes a value; shared parts are written each time, so the work is counted by output size.
class Printer {
 public:
  Printer(Runtime& runtime, std::size_t most) : runtime_(runtime), most_(most) {}

  void print(const Value& value) {
    runtime_.spend();
    if (out_.size() > most_) return;
    if (value.is_text()) {
      append_quoted(out_, std::string_view(value.text()).substr(0, most_));
      charge();
    } else if (value.is_list()) {
      print_list(value.list());
    } else if (value.is_dict()) {
      print_dict(value.dict());
    } else {
      print_scalar(value);
    }
  }

  std::string take() { return std::move(out_); }

 private:
  void charge() {
    runtime_.spend_bytes(out_.size() - counted_);
    memory_.grow(out_.size() - counted_);
    counted_ = out_.size();
  }

  void print_scalar(const Value& value) {
    if (value.is_none()) {
      out_ += "None";
    } else if (value.is_bool()) {
      out_ += value.as_bool() ? "True" : "False";
    } else if (value.is_int()) {
      fmt::format_to(std::back_inserter(out_), "{}", value.as_int());
    } else if (value.is_float()) {
      out_ += float_repr(value.as_double());
    } else if (value.is_undefined()) {
      out_ += "Undefined";
    } else {
      out_ += fmt::format("<{}>", value.object().type_name());
    }
  }

  void print_items(const std::vector<Value>& items) {
    for (std::size_t i = 0; i < items.size() && out_.size() <= most_; ++i) {
      if (i > 0) out_ += ", ";
      print(items[i]);
    }
  }

  void print_list(const List& list) {
    if (!list.label.empty()) {
      out_ += list.label;
      return;
    }
    const bool view = !list.is_tuple() && list.kind != List::Kind::kList;
    if (view) {
      out_ += list.kind == List::Kind::kKeys     ? "dict_keys("
              : list.kind == List::Kind::kValues ? "dict_values("
                                                 : "dict_items(";
    }
    out_ += list.is_tuple() ? '(' : '[';
    print_items(list.items);
    if (list.is_tuple() && list.items.size() == 1) out_ += ',';
    out_ += list.is_tuple() ? ')' : ']';
    if (view) out_ += ')';
    charge();
  }

  void print_dict(const Dict& dict) {
    out_ += '{';
    for (std::size_t i = 0; i < dict.entries.size() && out_.size() <= most_; ++i) {
      if (i > 0) out_ += ", ";
      print(dict.entries[i].first);
      out_ += ": ";
      print(dict.entries[i].second);
    }
    out_ += '}';
    charge();
  }

  Runtime& runtime_;
  std::size_t most_;
  std::string out_;
  std::size_t counted_ = 0;
  Charge memory_{&runtime_.heap(), 0};
};

class JsonWriter {
 public:
  JsonWriter(Runtime& runtime, const JsonStyle& style) : runtime_(runtime), style_(style) {}

  void write(const Value& value, int level) {
    runtime_.spend();
    if (value.is_none()) {
      out_ += "null";
    } else if (value.is_bool()) {
      out_ += value.as_bool() ? "true" : "false";
    } else if (value.is_int()) {
      fmt::format_to(std::back_inserter(out_), "{}", value.as_int());
    } else if (value.is_float()) {
      write_float(value.as_double());
    } else if (value.is_text()) {
      write_text(value.text());
    } else if (value.is_list() &&
               (value.list().is_tuple() || value.list().kind == List::Kind::kList)) {
      write_list(value.list(), level);
    } else if (value.is_dict()) {
      write_dict(value.dict(), level);
    } else {
      fail(fmt::format("Object of type {} is not JSON serializable", value.type_name()));
    }
    runtime_.spend_bytes(out_.size() - counted_);
    memory_.grow(out_.size() - counted_);
    counted_ = out_.size();
  }

  std::string take() { return std::move(out_); }

 private:
  void write_float(double number) {
    if (std::isnan(number)) {
      out_ += "NaN";
    } else if (std::isinf(number)) {
      out_ += number < 0 ? "-Infinity" : "Infinity";
    } else {
      out_ += float_repr(number);
    }
  }

  void write_unit(unsigned unit) { fmt::format_to(std::back_inserter(out_), "\\u{:04x}", unit); }

  void write_text(std::string_view text) {
    runtime_.spend(text.size() / 8);
    out_ += '"';
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t begin = at;
      const char32_t c = next_code_point(text, at);
      switch (c) {
        case '"':
          out_ += "\\\"";
          break;
        case '\\':
          out_ += "\\\\";
          break;
        case '\n':
          out_ += "\\n";
          break;
        case '\r':
          out_ += "\\r";
          break;
        case '\t':
          out_ += "\\t";
          break;
        case '\f':
          out_ += "\\f";
          break;
        case '\b':
          out_ += "\\b";
          break;
        default:
          write_character(c, text.substr(begin, at - begin));
      }
    }
    out_ += '"';
  }

  void write_character(char32_t c, std::string_view bytes) {
    if (c >= 0x20 && (c < 0x7F || !style_.ensure_ascii)) {
      out_ += bytes;
    } else if (c <= 0xFFFF) {
      write_unit(static_cast<unsigned>(c));
    } else {
      write_unit(0xD800 + static_cast<unsigned>((c - 0x10000) >> 10));
      write_unit(0xDC00 + static_cast<unsigned>((c - 0x10000) & 0x3FF));
    }
  }

  void new_line(int level) {
    if (!style_.lines) return;
    out_ += '\n';
    for (int i = 0; i < level; ++i) {
      out_ += style_.indent;
      runtime_.spend_bytes(style_.indent.size());
    }
  }

  void write_list(const List& list, int level) {
    out_ += '[';
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      if (i > 0) out_ += style_.item_separator;
      new_line(level + 1);
      write(list.items[i], level + 1);
    }
    if (!list.items.empty()) new_line(level);
    out_ += ']';
  }

  void write_key(const Value& key) {
    if (key.is_text()) {
      write_text(key.text());
    } else if (key.is_none() || key.is_number()) {
      out_ += '"';
      write(key, 0);
      out_ += '"';
    } else {
      fail(fmt::format("keys must be str, int, float, bool or None, not {}", key.type_name()));
    }
  }

  void write_dict(const Dict& dict, int level) {
    std::vector<const Dict::Entry*> entries;
    entries.reserve(dict.entries.size());
    for (const auto& entry : dict.entries)
      entries.push_back(&entry);
    if (style_.sort_keys) {
      std::stable_sort(entries.begin(), entries.end(),
                       [&](auto* a, auto* b) { return less(runtime_, a->first, b->first); });
    }
    out_ += '{';
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) out_ += style_.item_separator;
      new_line(level + 1);
      write_key(entries[i]->first);
      out_ += style_.key_separator;
      write(entries[i]->second, level + 1);
    }
    if (!entries.empty()) new_line(level);
    out_ += '}';
  }

  Runtime& runtime_;
  const JsonStyle& style_;
  std::string out_;
  std::size_t counted_ = 0;
  Charge memory_{&runtime_.heap(), 0};
};

}  // namespace

std::string float_repr(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  char buffer[64];
  const auto end =
      std::to_chars(buffer, buffer + sizeof(buffer), number, std::chars_format::scientific).ptr;
  const std::string_view shortest(buffer, static_cast<std::size_t>(end - buffer));  // -d.ddde+XX
  const std::size_t e = shortest.find('e');
  int exponent = 0;
  const char* digits_of_exponent = shortest.data() + e + (shortest[e + 1] == '+' ? 2 : 1);
  std::from_chars(digits_of_exponent, end, exponent);
  if (exponent < -4 || exponent >= 16) return std::string(shortest);
  std::string digits;
  for (const char c : shortest.substr(0, e)) {
    if (c >= '0' && c <= '9') digits += c;
  }
  std::string result = shortest[0] == '-' ? "-" : "";
  if (exponent < 0)
    return result + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() <= whole)
    return result + digits + std::string(whole - digits.size(), '0') + ".0";
  return result + digits.substr(0, whole) + "." + digits.substr(whole);
}

std::string python_quoted(std::string_view text) {
  std::string out;
  append_quoted(out, text);
  return out;
}

std::string repr(Runtime& runtime, const Value& value, std::size_t most) {
  Printer printer(runtime, most);
  printer.print(value);
  return printer.take();
}

std::string str(Runtime& runtime, const Value& value) {
  if (value.is_text()) {
    runtime.spend_bytes(value.text().size());
    return value.text();
  }
  if (value.is_undefined()) return "";
  return repr(runtime, value);
}

std::string to_json(Runtime& runtime, const Value& value, const JsonStyle& style) {
  JsonWriter writer(runtime, style);
  writer.write(value, 0);
  return writer.take();
}

}  // namespace antisd::inline text::jinja
