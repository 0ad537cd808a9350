#include "inspect/word_list.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "text/unicode.h"

namespace antisd {
namespace {

constexpr std::string_view kDefaultList =
    R"(# Kinds of tokens. A line is a kind and words of it; a kind may have several lines. \n, \t and \s are a line
# end, a tab and a blank within a word; <number>, <punctuation> and <special> are classes of tokens.
deliberation: wait hmm hm let maybe perhaps alternatively alternative actually but however though although
deliberation: suppose consider if try trying check verify recheck re-examine reconsider another instead
deliberation: or unless whether what why could might oh ah okay ok think no not seems unsure mistake wrong
structure: so therefore thus hence then given assign since because as follows first second third next finally
structure: step answer final boxed \boxed solution result conclusion is are we have holds succeeds satisfies
structure: and correct clearly implies conclude \n \n\n ** ## ### - : . , = \[ \] \( \) $ $$ ```
numbers: <number> zero one two three four five six seven eight nine ten
)";

// Bytes that words are made of. All that is not ASCII counts as letters: words of any script stay
// whole.
bool is_word_byte(unsigned char c) {
  return c >= 0x80 || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_blank(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

std::string_view trimmed(std::string_view text, auto&& drops) {
  while (!text.empty() && drops(text.front()))
    text.remove_prefix(1);
  while (!text.empty() && drops(text.back()))
    text.remove_suffix(1);
  return text;
}

std::string unescaped(std::string_view word) {
  std::string out;
  for (std::size_t i = 0; i < word.size(); ++i) {
    const char next = i + 1 < word.size() ? word[i + 1] : '\0';
    const char meant = next == 'n' ? '\n' : next == 't' ? '\t' : next == 's' ? ' ' : '\0';
    // \boxed and the like are words, too: only an escape that ends the word or is followed by
    // another backslash is one.
    const bool ends = i + 2 == word.size() || (i + 2 < word.size() && word[i + 2] == '\\');
    if (word[i] == '\\' && meant != '\0' && ends) {
      out += meant;
      ++i;
    } else {
      out += word[i];
    }
  }
  return out;
}

}  // namespace

std::string_view WordList::default_text() {
  return kDefaultList;
}

WordList WordList::parse(std::string_view text, const std::string& name) {
  constexpr std::size_t kMostKinds = 100;
  WordList list;
  std::size_t number = 0;
  const auto fail = [&](const std::string& what, const std::string& remedy) {
    throw InputError(what, {.where = fmt::format("{}:{}", name, number), .remedy = remedy});
  };
  const auto claim = [&](int& of_class, int kind, std::string_view word) {
    if (of_class >= 0 && of_class != kind)
      fail(fmt::format("{} is claimed by two kinds", word), "leave it to one of them");
    of_class = kind;
  };
  while (!text.empty()) {
    ++number;
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = trimmed(text.substr(0, end), is_blank);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line == "#" || line.starts_with("# ")) continue;
    const std::size_t colon = line.find(':');
    const std::string kind(trimmed(line.substr(0, std::min(colon, line.size())), is_blank));
    if (colon == std::string_view::npos || kind.empty() || kind.find(' ') != std::string::npos)
      fail("the line names no kind", "write 'kind: word word ...', or '# ' before a comment");
    if (kind == "other") fail("'other' is what no line names", "call the kind something else");
    auto at = std::find(list.kinds_.begin(), list.kinds_.end(), kind);
    if (at == list.kinds_.end()) {
      if (list.kinds_.size() == kMostKinds)
        fail("there are more than 100 kinds", "put some together");
      at = list.kinds_.insert(at, kind);
    }
    const int index = static_cast<int>(at - list.kinds_.begin());
    for (line.remove_prefix(colon + 1); !line.empty();) {
      line = trimmed(line, is_blank);
      const std::size_t length =
          static_cast<std::size_t>(std::find_if(line.begin(), line.end(), is_blank) - line.begin());
      const std::string_view word = line.substr(0, length);
      line.remove_prefix(length);
      if (word.empty()) continue;
      if (word == "<number>") {
        claim(list.number_, index, word);
      } else if (word == "<punctuation>") {
        claim(list.punctuation_, index, word);
      } else if (word == "<special>") {
        claim(list.special_, index, word);
      } else if (word.size() > 2 && word.front() == '<' && word.back() == '>') {
        fail(fmt::format("there is no class {}", word),
             "known are <number>, <punctuation> and <special>");
      } else {
        const auto [entry, is_new] = list.words_.try_emplace(to_lowercase(unescaped(word)),
                                                             static_cast<std::uint8_t>(index));
        if (!is_new && entry->second != index)
          fail(fmt::format("'{}' is a word of '{}' already", word, list.kinds_[entry->second]),
               "leave it to one kind");
      }
    }
  }
  list.kinds_.push_back("other");
  return list;
}

std::uint8_t WordList::find(std::string_view word) const {
  const auto at = words_.find(to_lowercase(word));
  return at == words_.end() ? other() : at->second;
}

std::uint8_t WordList::class_of(std::string_view text, bool special) const {
  if (special) return special_ < 0 ? other() : static_cast<std::uint8_t>(special_);
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto is_letter = [&](char c) {
    return is_word_byte(static_cast<unsigned char>(c)) && !is_digit(c);
  };
  if (std::any_of(text.begin(), text.end(), is_letter)) return other();
  if (std::any_of(text.begin(), text.end(), is_digit))
    return number_ < 0 ? other() : static_cast<std::uint8_t>(number_);
  const bool blank = std::all_of(text.begin(), text.end(), is_blank);
  return blank || punctuation_ < 0 ? other() : static_cast<std::uint8_t>(punctuation_);
}

std::vector<std::uint8_t> WordList::kinds_of(std::span<const std::string> texts,
                                             const std::vector<bool>& special) const {
  const auto is_special = [&](std::size_t i) { return i < special.size() && special[i]; };
  std::string all;
  std::vector<std::size_t> begins;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    begins.push_back(all.size());
    // What stands for a special token is no part of a word.
    all += is_special(i) ? std::string(texts[i].size(), ' ') : texts[i];
  }
  const auto in_word = [&](std::size_t at) {
    return is_word_byte(static_cast<unsigned char>(all[at]));
  };
  std::vector<std::uint8_t> kinds;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::string& text = texts[i];
    const std::size_t end = begins[i] + text.size();
    std::size_t from = begins[i];
    while (from < end && !in_word(from))
      ++from;
    std::uint8_t kind = other();
    if (from < end) {  // the whole word that the token's first letter is in
      std::size_t to = from;
      constexpr std::size_t kLongest = 100;  // bytes: a longer run is no word of a list
      while (to < all.size() && to - from < kLongest && in_word(to))
        ++to;
      while (from > 0 && to - from < kLongest && in_word(from - 1))
        --from;
      kind = find(std::string_view(all).substr(from, to - from));
    }
    // Words with signs in them, signs alone, line ends, and scripts that put no blank between
    // words.
    const std::string_view bare = trimmed(text, is_blank);
    const bool has_letters = std::any_of(bare.begin(), bare.end(), [](char c) {
      return is_word_byte(static_cast<unsigned char>(c));
    });
    const bool has_signs_or_scripts = std::any_of(bare.begin(), bare.end(), [](char c) {
      return !is_word_byte(static_cast<unsigned char>(c)) || static_cast<unsigned char>(c) >= 0x80;
    });
    if (kind == other() && (!has_letters || has_signs_or_scripts))
      kind = find(bare.empty() ? std::string_view(text) : bare);
    if (kind == other() && bare.empty() && !text.empty())
      kind = find(trimmed(text, [](char c) { return c == ' '; }));
    if (kind == other() || is_special(i)) kind = class_of(text, is_special(i));
    kinds.push_back(kind);
  }
  return kinds;
}

}  // namespace antisd
