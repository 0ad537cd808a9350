// The pre-tokenizer of a tokenizer file: text -> pieces, each of which the model encodes alone.
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

// What becomes of the places where a pattern matches.
enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

// Consecutive ranges that cover a text, each a match or what lies between.
struct SplitRange {
  std::size_t begin, end;
  bool is_match;
};
std::vector<SplitRange> apply_behavior(std::vector<SplitRange> ranges, SplitBehavior behavior);

struct Metaspace {
  enum class Prepend { kAlways, kNever, kFirst };
  std::string replacement;  // one character that stands for a space
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

  // Whether pieces are bytes that the model has to take in their byte-level form.
  bool yields_bytes() const { return yields_bytes_; }

  // Calls visit(piece) for every piece; none is empty. `at_start`: the text begins where the whole
  // input begins, which Metaspace asks for. A piece lives as long as the call.
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
    bool spell_out;  // write the byte-level form, because a further step reads it
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
  std::optional<Scanner> scanner_;  // does the work of all steps
  bool yields_bytes_ = false;
};

}  // namespace antisd::inline text
