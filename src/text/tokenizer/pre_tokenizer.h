// The pre-tokenizer of a tokenizer file: text -> pieces, which the model encodes separately.
//
//   const auto pre_tokenizer = PreTokenizer::from_json(file["pre_tokenizer"], "tokenizer.json");
//   pre_tokenizer.split(text, /*at_start=*/true, [](std::string_view piece) { ... });
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "io/json.h"
#include "text/tokenizer/regex.h"
#include "text/tokenizer/scanner.h"

namespace antisd::inline text {

// What happens to the matches of a pattern.
enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

// Consecutive ranges that cover a text, each a match or the text between matches.
struct SplitRange {
  std::size_t begin, end;
  bool is_match;
};
std::vector<SplitRange> apply_behavior(std::vector<SplitRange> ranges, SplitBehavior behavior);

struct Metaspace {
  enum class Prepend { kAlways, kNever, kFirst };
  std::string replacement;  // one character, for a space
  Prepend prepend = Prepend::kAlways;
  bool split = true;

  static Metaspace from_json(const SortedJson& value, const std::string& where);
};

class PreTokenizer {
 public:
  PreTokenizer() = default;  // the whole text is one piece
  static PreTokenizer from_json(const SortedJson& value, const std::string& where);
  static PreTokenizer gpt2(bool add_prefix_space);
  static PreTokenizer qwen2(bool add_prefix_space);

  // Whether the model must encode pieces in their byte-level form.
  bool yields_bytes() const { return yields_bytes_; }

  // Calls visit(piece) for every piece; none is empty. `at_start`: the text is at the start of the
  // whole input, which Metaspace needs to know. A piece is valid only during the call.
  template <typename Visit>
  void split(std::string_view text, bool at_start, Visit&& visit) const {
    if (scanner_) return scan(*scanner_, text, visit);
    split_in_steps(text, at_start, visit);
  }

 private:
  struct Split {
    std::optional<Scanner> scanner;
    Regex pattern;
    SplitBehavior behavior;
    bool invert;
  };
  struct ByteLevel {
    bool add_prefix_space, use_regex;
    bool spell_out;  // write the byte-level form, because a later step reads it
  };
  struct Digits {
    bool individual;
  };
  struct Whitespace {};
  struct WhitespaceSplit {};
  struct Punctuation {
    SplitBehavior behavior;
  };
  using Step =
      std::variant<Split, ByteLevel, Digits, Metaspace, Whitespace, WhitespaceSplit, Punctuation>;

  struct Piece {
    std::string_view text;
    bool at_start;
  };
  class Worker;

  static Step step_from_json(const SortedJson& value, const std::string& where);
  void finish();
  void split_in_steps(std::string_view text, bool at_start,
                      const std::function<void(std::string_view)>& visit) const;

  std::vector<Step> steps_;
  std::optional<Scanner> scanner_;  // replaces all steps
  bool yields_bytes_ = false;
};

}  // namespace antisd::inline text
