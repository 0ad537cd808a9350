#include "report/inspect/word_list.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "text/tokenizer/unicode.h"

namespace antisd::inline report {
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

// Bytes of words. All non-ASCII bytes count as letters: words of any script stay whole.
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
    // \boxed and the like are words too: only an escape at the end of the word or before another
    // backslash is one.
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
  WordList list;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end), is_blank);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.empty() && line != "#" && !line.starts_with("# "))
      list.add_line(line, fmt::format("{}:{}", name, number));
  }
  list.kinds_.push_back("other");
  return list;
}

void WordList::add_line(std::string_view line, const std::string& where) {
  const std::size_t colon = std::min(line.find(':'), line.size());
  const std::string kind(trimmed(line.substr(0, colon), is_blank));
  if (colon == line.size() || kind.empty() || kind.find(' ') != std::string::npos) {
    throw InputError(
        "the line does not name a kind",
        {.where = where, .remedy = "write 'kind: word word ...', or '# ' before a comment"});
  }
  if (kind == "other") {
    throw InputError("'other' is reserved for words that are not listed",
                     {.where = where, .remedy = "call the kind something else"});
  }
  auto at = std::find(kinds_.begin(), kinds_.end(), kind);
  if (at == kinds_.end()) {
    constexpr std::size_t kMostKinds = 100;
    if (kinds_.size() == kMostKinds) {
      throw InputError("there are more than 100 kinds",
                       {.where = where, .remedy = "put some together"});
    }
    at = kinds_.insert(at, kind);
  }
  const auto number = static_cast<std::uint8_t>(at - kinds_.begin());
  line.remove_prefix(colon + 1);
  for (line = trimmed(line, is_blank); !line.empty(); line = trimmed(line, is_blank)) {
    const auto end = std::find_if(line.begin(), line.end(), is_blank);
    const std::string_view word(line.begin(), end);
    add_word(word, number, where);
    line.remove_prefix(word.size());
  }
}

void WordList::add_word(std::string_view word, std::uint8_t kind, const std::string& where) {
  int* of_class = word == "<number>"        ? &number_
                  : word == "<punctuation>" ? &punctuation_
                  : word == "<special>"     ? &special_
                                            : nullptr;
  if (of_class == nullptr && word.size() > 2 && word.front() == '<' && word.back() == '>') {
    throw InputError(fmt::format("there is no class {}", word),
                     {.where = where, .remedy = "known are <number>, <punctuation> and <special>"});
  }
  int owner = kind;
  if (of_class != nullptr) {
    owner = *of_class < 0 ? kind : *of_class;
    *of_class = owner;
  } else {
    owner = words_.try_emplace(to_lowercase(unescaped(word)), kind).first->second;
  }
  if (owner != kind) {
    throw InputError(
        fmt::format("'{}' is of '{}' already", word, kinds_[static_cast<std::size_t>(owner)]),
        {.where = where, .remedy = "leave it to one kind"});
  }
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

std::uint8_t WordList::kind_of(std::string_view word, std::string_view text, bool special) const {
  if (special) return class_of(text, special);
  if (const std::uint8_t kind = find(word); kind != other()) return kind;
  // Words with punctuation in them, punctuation, newlines, and scripts without spaces between
  // words.
  const auto is_ascii_word = [](char c) {
    return static_cast<unsigned char>(c) < 0x80 && is_word_byte(static_cast<unsigned char>(c));
  };
  const std::string_view bare = trimmed(text, is_blank);
  if (!std::all_of(bare.begin(), bare.end(), is_ascii_word) || bare.empty()) {
    const std::string_view line_ends = trimmed(text, [](char c) { return c == ' '; });
    const std::uint8_t kind = find(bare.empty() ? line_ends : bare);
    if (kind != other()) return kind;
  }
  return class_of(text, special);
}

std::vector<std::uint8_t> WordList::kinds_of(std::span<const std::string> texts,
                                             const std::vector<bool>& special) const {
  constexpr std::size_t kLongest = 100;  // bytes: a longer run is no word of a list
  const auto is_special = [&](std::size_t i) { return i < special.size() && special[i]; };
  std::string all;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    // A special token is not part of a word.
    all += is_special(i) ? std::string(texts[i].size(), ' ') : texts[i];
  }
  const auto in_word = [&](std::size_t at) {
    return is_word_byte(static_cast<unsigned char>(all[at]));
  };
  std::vector<std::uint8_t> kinds;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::size_t end = begin + texts[i].size();
    std::size_t from = begin;
    while (from < end && !in_word(from))
      ++from;
    std::size_t to = from;  // extends to both sides: the whole word of the token's first letter
    if (from < end) {
      while (to < all.size() && to - from < kLongest && in_word(to))
        ++to;
      while (from > 0 && to - from < kLongest && in_word(from - 1))
        --from;
    }
    kinds.push_back(
        kind_of(std::string_view(all).substr(from, to - from), texts[i], is_special(i)));
    begin = end;
  }
  return kinds;
}

}  // namespace antisd::inline report
