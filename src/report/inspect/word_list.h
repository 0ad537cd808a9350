// Kinds of tokens by a list of words that a user can change.
//
//   const WordList list = WordList::parse(WordList::default_text(), "built in");
//   const std::vector<std::string> texts = {"So", " wait", ",", " H", "mm"};
//   list.kinds_of(texts);  // by whole words: "hmm" is two tokens here
//
// The list is text:
//   deliberation: wait hmm maybe
//   structure: therefore \n\n
//   numbers: <number>
// A line names a kind and lists words of it; a kind may have several lines. A line that starts with
// "# " is a comment.
// , \t and \s (a space) are escapes within a word. <number>, <punctuation> and <special> are
// classes, tried after the words. Case does not matter, nor do spaces and punctuation around a
// word. Words that are not listed are "other".
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace antisd::inline report {

class WordList {
 public:
  // InputError "NAME:LINE: ..." for a line without a kind, an unknown class, or a word in two
  // kinds.
  static WordList parse(std::string_view text, const std::string& name);
  // The built-in list, after the paper's analysis.
  static std::string_view default_text();

  // In the order of the list; the last is "other".
  const std::vector<std::string>& kinds() const { return kinds_; }

  // The kind of each token of a response, by number. `texts` as from token_texts(); a token has the
  // kind of the whole word that contains it. `special` may be empty.
  std::vector<std::uint8_t> kinds_of(std::span<const std::string> texts,
                                     const std::vector<bool>& special = {}) const;

 private:
  std::uint8_t other() const { return static_cast<std::uint8_t>(kinds_.size() - 1); }
  void add_line(std::string_view line, const std::string& where);
  void add_word(std::string_view word, std::uint8_t kind, const std::string& where);
  // Numbers of kinds, or other(). `word` is the whole word of a token, `text` the token itself.
  std::uint8_t kind_of(std::string_view word, std::string_view text, bool special) const;
  std::uint8_t find(std::string_view word) const;
  std::uint8_t class_of(std::string_view text, bool special) const;

  std::vector<std::string> kinds_;
  std::unordered_map<std::string, std::uint8_t> words_;
  int number_ = -1, punctuation_ = -1, special_ = -1;  // the classes' kinds; -1: none
};

}  // namespace antisd::inline report
