#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

#include "core/error.h"
#include "text/tokenizer/regex.h"
#include "text/tokenizer/unicode.h"

namespace antisd::inline text {
namespace {

constexpr std::array<std::string_view, 35> kProperties = {
    "L",  "M",  "N",  "P",  "S",  "Z",  "C",  "Lu", "Ll", "Lt", "Lm", "Lo",
    "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf",
    "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Co"};
constexpr std::string_view kSpaceItems =
    R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
constexpr std::string_view kHanSince14 = R"(\x{2b739}\x{2ebf0}-\x{2ee5d}\x{31350}-\x{323af})";

// The inside of a class that matches Oniguruma's \p{name}.
std::string property_items(std::string_view name) {
  std::string items = fmt::format(R"(\p{{{}}})", name);
  for (const CodePointRange& range : kNewCategories) {
    if (!std::string_view(range.category).starts_with(name)) continue;
    items += fmt::format(R"(\x{{{:x}}}-\x{{{:x}}})", static_cast<unsigned>(range.first),
                         static_cast<unsigned>(range.last));
  }
  return items;
}

std::string word_items() {
  std::string items;
  for (const char* name : {"L", "M", "Nd", "Nl", "Pc"})
    items += property_items(name);
  // Other_Alphabetic without marks, and what Oniguruma's Latin-1 table adds.
  return items + R"(\x{b2}\x{b3}\x{b9}\x{bc}-\x{be}\x{24b6}-\x{24e9}\x{1f130}-\x{1f149})" +
         R"(\x{1f150}-\x{1f169}\x{1f170}-\x{1f189})";
}

class Translator {
 public:
  Translator(std::string_view pattern, const std::string& where)
      : pattern_(pattern), where_(where) {}

  std::string run() {
    while (position_ < pattern_.size()) {
      const char c = pattern_[position_];
      if (c == '\\') {
        translate_escape();
      } else if (in_class_) {
        translate_in_class(c);
      } else if (c == '[') {
        open_class();
      } else if (c == '(') {
        translate_group();
      } else {
        result_ += c;
        ++position_;
      }
    }
    if (in_class_) refuse("[", "it is not closed");
    return std::move(result_);
  }

 private:
  [[noreturn]] void refuse(std::string_view construct, std::string_view reason) const {
    throw InputError(
        fmt::format("the regular expression {} has {}: {}", pattern_, construct, reason),
        {.where = where_, .remedy = "write it with classes, groups and plain repeats"});
  }

  void open_class() {
    in_class_ = true;
    result_ += '[';
    ++position_;
    if (position_ < pattern_.size() && pattern_[position_] == '^') {
      result_ += '^';
      ++position_;
    }
    if (position_ < pattern_.size() && pattern_[position_] == ']') {
      refuse("[]", "an empty class, or one that begins with ], is ambiguous");
    }
  }

  void translate_in_class(char c) {
    if (c == '[') refuse("[ inside a class", "nested and POSIX classes are not supported");
    if (pattern_.substr(position_, 2) == "&&") {
      refuse("&&", "the intersection of classes is not supported");
    }
    if (c == ']') in_class_ = false;
    result_ += c;
    ++position_;
  }

  void translate_group() {
    const std::string_view rest = pattern_.substr(position_);
    for (const std::string_view known : {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:"}) {
      if (rest.starts_with(known)) {
        result_ += known;
        position_ += known.size();
        return;
      }
    }
    if (rest.starts_with("(?i)")) {
      result_ += "(?i)";
      position_ += 4;
      return;
    }
    if (rest.starts_with("(?") || rest.starts_with("(*")) {
      refuse(rest.substr(0, 4), "this kind of group is not supported");
    }
    result_ += '(';
    ++position_;
  }

  void put_items(std::string_view items, bool negated, std::string_view name) {
    if (!in_class_) {
      result_ += fmt::format("[{}{}]", negated ? "^" : "", items);
    } else if (!negated) {
      result_ += items;
    } else if (name == "\\S") {
      result_ += R"(\S\x{180e})";  // PCRE2's \s includes U+180E, Oniguruma's does not
    } else {
      refuse(name, "a negated class inside a class is not supported");
    }
  }

  void translate_property() {
    const bool negated_letter = pattern_[position_ + 1] == 'P';
    const std::size_t end = pattern_.find('}', position_);
    if (pattern_.substr(position_ + 2, 1) != "{" || end == std::string_view::npos) {
      refuse("\\p", "it needs a name in braces");
    }
    std::string_view name = pattern_.substr(position_ + 3, end - position_ - 3);
    const bool negated_name = name.starts_with("^");
    if (negated_name) name.remove_prefix(1);
    const bool is_known =
        std::find(kProperties.begin(), kProperties.end(), name) != kProperties.end();
    const std::string whole(pattern_.substr(position_, end + 1 - position_));
    if (!is_known && name != "Han") refuse(whole, "this property is not supported");
    // Oniguruma means the script, PCRE2's short form means script extensions.
    const std::string items =
        name == "Han" ? R"(\p{sc:Han})" + std::string(kHanSince14) : property_items(name);
    put_items(items, negated_letter != negated_name, whole);
    position_ = end + 1;
  }

  void translate_escape() {
    if (position_ + 1 >= pattern_.size()) refuse("\\", "nothing follows it");
    const char c = pattern_[position_ + 1];
    if (c == 'p' || c == 'P') return translate_property();
    const std::string name = {'\\', c};
    if (c == 's' || c == 'S') {
      put_items(kSpaceItems, c == 'S', name);
    } else if (c == 'w' || c == 'W') {
      put_items(word_items(), c == 'W', name);
    } else if (c == 'd' || c == 'D') {
      put_items(property_items("Nd"), c == 'D', name);
    } else if (c == 'x' || c == 'u') {
      return translate_code_point(c);
    } else if (std::string_view("rntfvae").find(c) != std::string_view::npos) {
      result_ += c == 'v' ? "\\x{b}" : name;
    } else if (static_cast<unsigned char>(c) < 0x80 && std::isalnum(c) == 0) {
      result_ += name;
    } else {
      refuse(name, "this escape is not supported");
    }
    position_ += 2;
  }

  // \xHH, \x{H...} and \uHHHH.
  void translate_code_point(char kind) {
    std::size_t begin = position_ + 2, length = kind == 'u' ? 4 : 2;
    std::size_t end = begin + length;
    if (kind == 'x' && pattern_.substr(begin, 1) == "{") {
      const std::size_t brace = pattern_.find('}', begin);
      if (brace == std::string_view::npos) refuse("\\x{", "it is not closed");
      ++begin;
      length = brace - begin;
      end = brace + 1;
    }
    const std::string_view digits = pattern_.substr(std::min(begin, pattern_.size()), length);
    if (digits.size() != length || length == 0 || length > 6 ||
        digits.find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos) {
      refuse(std::string("\\") + kind, "hexadecimal digits must follow");
    }
    result_ += fmt::format("\\x{{{}}}", digits);
    position_ = end;
  }

  std::string_view pattern_;
  const std::string& where_;
  std::string result_;
  std::size_t position_ = 0;
  bool in_class_ = false;
};

}  // namespace

std::string translate_regex(std::string_view pattern, const std::string& where) {
  return Translator(pattern, where).run();
}

std::string escape_regex(std::string_view literal) {
  std::string result;
  for (const char c : literal) {
    if (std::string_view("\\^$.|?*+()[]{}-/&#").find(c) != std::string_view::npos) result += '\\';
    result += c;
  }
  return result;
}

}  // namespace antisd::inline text
