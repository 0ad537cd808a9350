#include "text/tokenizer/pre_tokenizer.h"

#include <algorithm>
#include <array>
#include <deque>

#include <fmt/format.h>

#include "core/utf8.h"
#include "text/tokenizer/bpe.h"
#include "text/tokenizer/json_fields.h"
#include "text/tokenizer/normalizer.h"
#include "text/tokenizer/unicode.h"

namespace antisd::inline text {
namespace {

// Every code point with the property is its own match.
template <typename Predicate>
std::vector<SplitRange> matches_of(std::string_view text, Predicate&& has_property) {
  std::vector<SplitRange> ranges;
  std::size_t done = 0;
  for (std::size_t position = 0; position < text.size();) {
    const std::size_t begin = position;
    if (!has_property(next_code_point(text, position))) continue;
    if (done < begin) ranges.push_back({done, begin, false});
    ranges.push_back({begin, position, true});
    done = position;
  }
  if (done < text.size()) ranges.push_back({done, text.size(), false});
  return ranges;
}

std::vector<SplitRange> merge_with_previous(const std::vector<SplitRange>& ranges) {
  std::vector<SplitRange> result;
  bool after_match = false;
  for (const SplitRange& range : ranges) {
    if (range.is_match && !after_match && !result.empty()) {
      result.back().end = range.end;
    } else {
      result.push_back({range.begin, range.end, false});
    }
    after_match = range.is_match;
  }
  return result;
}

std::vector<SplitRange> merge_with_next(const std::vector<SplitRange>& ranges) {
  std::vector<SplitRange> result;
  bool before_match = false;
  for (auto range = ranges.rbegin(); range != ranges.rend(); ++range) {
    if (range->is_match && !before_match && !result.empty()) {
      result.back().begin = range->begin;
    } else {
      result.push_back({range->begin, range->end, false});
    }
    before_match = range->is_match;
  }
  std::reverse(result.begin(), result.end());
  return result;
}

// Merges neighbours of the same kind.
std::vector<SplitRange> join_equal(const std::vector<SplitRange>& ranges) {
  std::vector<SplitRange> result;
  for (const SplitRange& range : ranges) {
    if (!result.empty() && result.back().is_match == range.is_match) {
      result.back().end = range.end;
    } else {
      result.push_back(range);
    }
  }
  return result;
}

SplitBehavior behavior_from_json(const JsonFields& fields, std::string_view fallback) {
  constexpr std::array<std::string_view, 5> names = {"Removed", "Isolated", "MergedWithPrevious",
                                                     "MergedWithNext", "Contiguous"};
  const std::string name = fields.string("behavior", fallback);
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    fields.fail(fmt::format("the behavior \"{}\" is not known", name),
                fmt::format("use one of {}", fmt::join(names, ", ")));
  }
  return static_cast<SplitBehavior>(found - names.begin());
}

}  // namespace

std::vector<SplitRange> apply_behavior(std::vector<SplitRange> ranges, SplitBehavior behavior) {
  switch (behavior) {
    case SplitBehavior::kRemoved:
      std::erase_if(ranges, [](const SplitRange& range) { return range.is_match; });
      return ranges;
    case SplitBehavior::kIsolated:
      return ranges;
    case SplitBehavior::kMergedWithPrevious:
      return merge_with_previous(ranges);
    case SplitBehavior::kMergedWithNext:
      return merge_with_next(ranges);
    case SplitBehavior::kContiguous:
      return join_equal(ranges);
  }
  return ranges;
}

// Takes a text through the steps; owns the text that steps rewrite.
class PreTokenizer::Worker {
 public:
  Worker(std::string_view text, bool at_start) : pieces_{{text, at_start}} {}

  const std::vector<Piece>& pieces() const { return pieces_; }

  void operator()(const Split& split) {
    each_piece([&](Piece piece) {
      std::vector<SplitRange> ranges;
      std::size_t done = 0;
      const auto add_match = [&](std::size_t begin, std::size_t end) {
        if (done < begin) ranges.push_back({done, begin, split.invert});
        ranges.push_back({begin, end, !split.invert});
        done = end;
      };
      if (split.scanner) {
        scan(*split.scanner, piece.text,
             [&](std::string_view match) { add_match(done, done + match.size()); });
      } else {
        split.pattern.for_each_match(piece.text, add_match);
      }
      if (done < piece.text.size()) ranges.push_back({done, piece.text.size(), split.invert});
      put(piece, apply_behavior(std::move(ranges), split.behavior));
    });
  }

  void operator()(const ByteLevel& byte_level) {
    each_piece([&](Piece piece) {
      if (byte_level.add_prefix_space && !piece.text.starts_with(' ')) {
        piece.text = keep(std::string(1, ' ').append(piece.text));
      }
      const auto put_one = [&](std::string_view part, bool at_start) {
        put({byte_level.spell_out ? keep(bytes_to_symbols(part)) : part, at_start});
      };
      if (!byte_level.use_regex) return put_one(piece.text, piece.at_start);
      scan(Scanner::kGpt2, piece.text, [&](std::string_view part) {
        put_one(part, piece.at_start && part.data() == piece.text.data());
      });
    });
  }

  void operator()(const Digits& digits) {
    each_piece([&](Piece piece) {
      put(piece, apply_behavior(
                     matches_of(piece.text, is_numeric),
                     digits.individual ? SplitBehavior::kIsolated : SplitBehavior::kContiguous));
    });
  }

  void operator()(const Metaspace& metaspace) {
    each_piece([&](Piece piece) {
      std::string text;
      for (const char c : piece.text)
        c == ' ' ? text += metaspace.replacement : text += c;
      const bool prepends = metaspace.prepend == Metaspace::Prepend::kAlways ||
                            (metaspace.prepend == Metaspace::Prepend::kFirst && piece.at_start);
      if (prepends && !text.starts_with(metaspace.replacement)) {
        text.insert(0, metaspace.replacement);
      }
      piece.text = keep(std::move(text));
      if (!metaspace.split) return put(piece);
      std::size_t start = 0;
      const char32_t mark = next_code_point(metaspace.replacement, start);
      put(piece, apply_behavior(matches_of(piece.text, [&](char32_t c) { return c == mark; }),
                                SplitBehavior::kMergedWithNext));
    });
  }

  // \w+|[^\w\s]+
  void operator()(const Whitespace&) {
    each_piece([&](Piece piece) {
      const auto kind_at = [&](std::size_t& position) {
        const char32_t c = next_code_point(piece.text, position);
        return is_word_character(c) ? 'w' : is_white_space(c) ? ' ' : 'x';
      };
      for (std::size_t position = 0; position < piece.text.size();) {
        const std::size_t begin = position;
        const char kind = kind_at(position);
        for (std::size_t next = position; position < piece.text.size() && kind_at(next) == kind;) {
          position = next;
        }
        if (kind != ' ') put(piece, {{begin, position, false}});
      }
    });
  }

  void operator()(const WhitespaceSplit&) {
    each_piece([&](Piece piece) {
      put(piece, apply_behavior(matches_of(piece.text, is_white_space), SplitBehavior::kRemoved));
    });
  }

  void operator()(const Punctuation& punctuation) {
    each_piece([&](Piece piece) {
      put(piece, apply_behavior(matches_of(piece.text, is_punctuation), punctuation.behavior));
    });
  }

 private:
  template <typename Action>
  void each_piece(Action&& action) {
    const std::vector<Piece> before = std::exchange(pieces_, {});
    for (const Piece& piece : before)
      action(piece);
  }

  void put(Piece piece) {
    if (!piece.text.empty()) pieces_.push_back(piece);
  }

  void put(Piece piece, const std::vector<SplitRange>& ranges) {
    for (const SplitRange& range : ranges) {
      put({piece.text.substr(range.begin, range.end - range.begin),
           piece.at_start && range.begin == 0});
    }
  }

  std::string_view keep(std::string text) { return kept_.emplace_back(std::move(text)); }

  std::vector<Piece> pieces_;
  std::deque<std::string> kept_;
};

Metaspace Metaspace::from_json(const SortedJson& value, const std::string& where) {
  const JsonFields fields(value, where);
  fields.allow({"type", "replacement", "add_prefix_space", "prepend_scheme", "split", "str_rep"});
  Metaspace result;
  result.replacement = fields.string("replacement");
  std::size_t end = 0;
  if (!result.replacement.empty()) next_code_point(result.replacement, end);
  if (end == 0 || end != result.replacement.size()) {
    fields.fail("\"replacement\" is not one character", "use \u2581");
  }
  const std::string scheme = fields.string(
      "prepend_scheme", fields.boolean("add_prefix_space", true) ? "always" : "never");
  if (scheme == "never") {
    result.prepend = Prepend::kNever;
  } else if (scheme == "first") {
    result.prepend = Prepend::kFirst;
  } else if (scheme != "always") {
    fields.fail(fmt::format("the prepend_scheme \"{}\" is not known", scheme),
                "use always, first or never");
  }
  if (!fields.boolean("add_prefix_space", true) && result.prepend != Prepend::kNever) {
    fields.fail("add_prefix_space and prepend_scheme contradict each other", "drop the former");
  }
  result.split = fields.boolean("split", true);
  return result;
}

PreTokenizer::Step PreTokenizer::step_from_json(const SortedJson& value, const std::string& where) {
  const JsonFields fields(value, where);
  const std::string type = fields.string("type");
  if (type == "Metaspace") return Metaspace::from_json(value, where);
  if (type == "Split") {
    fields.allow({"type", "pattern", "behavior", "invert"});
    const JsonFields pattern(fields.get("pattern"), fields.where("pattern"));
    return Split{find_scanner(pattern.string("Regex", "")),
                 pattern_from_json(fields.get("pattern"), fields.where("pattern")),
                 behavior_from_json(fields, ""), fields.boolean("invert", false)};
  }
  if (type == "ByteLevel") {
    fields.allow({"type", "add_prefix_space", "trim_offsets", "use_regex"});
    return ByteLevel{fields.boolean("add_prefix_space"), fields.boolean("use_regex", true), false};
  }
  if (type == "Digits") {
    fields.allow({"type", "individual_digits"});
    return Digits{fields.boolean("individual_digits")};
  }
  if (type == "Punctuation") {
    fields.allow({"type", "behavior"});
    return Punctuation{behavior_from_json(fields, "Isolated")};
  }
  fields.allow({"type"});
  if (type == "Whitespace") return Whitespace{};
  if (type == "WhitespaceSplit") return WhitespaceSplit{};
  fields.fail(fmt::format("the pre-tokenizer {} is not supported", type),
              "known are ByteLevel, Split, Digits, Metaspace, Whitespace, WhitespaceSplit, "
              "Punctuation and Sequence");
}

PreTokenizer PreTokenizer::from_json(const SortedJson& value, const std::string& where) {
  PreTokenizer result;
  for (const auto& [member, member_where] : flatten_sequence(value, "pretokenizers", where)) {
    result.steps_.push_back(step_from_json(member, member_where));
  }
  result.finish();
  return result;
}

PreTokenizer PreTokenizer::gpt2(bool add_prefix_space) {
  PreTokenizer result;
  result.steps_.push_back(ByteLevel{add_prefix_space, true, false});
  result.finish();
  return result;
}

PreTokenizer PreTokenizer::qwen2(bool add_prefix_space) {
  PreTokenizer result;
  result.steps_.push_back(Split{Scanner::kQwen2, Regex(kQwen2Pattern, "Qwen2Tokenizer"),
                                SplitBehavior::kIsolated, false});
  result.steps_.push_back(ByteLevel{add_prefix_space, false, false});
  result.finish();
  return result;
}

void PreTokenizer::finish() {
  // Only the last step's byte-level form can be left to the model.
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    ByteLevel* byte_level = std::get_if<ByteLevel>(&steps_[i]);
    if (byte_level == nullptr) continue;
    yields_bytes_ = i + 1 == steps_.size();
    byte_level->spell_out = !yields_bytes_;
  }
  // The usual forms need no steps: one pattern that covers every text, then bytes.
  const ByteLevel* last = steps_.empty() ? nullptr : std::get_if<ByteLevel>(&steps_.back());
  if (last == nullptr || last->add_prefix_space) return;
  if (steps_.size() == 1 && last->use_regex) scanner_ = Scanner::kGpt2;
  if (steps_.size() != 2 || last->use_regex) return;
  const Split* split = std::get_if<Split>(&steps_.front());
  if (split == nullptr || !split->scanner) return;
  const bool keeps_matches = (split->behavior == SplitBehavior::kIsolated) ||
                             (split->behavior == SplitBehavior::kRemoved && split->invert);
  if (keeps_matches) scanner_ = split->scanner;
}

void PreTokenizer::split_in_steps(std::string_view text, bool at_start,
                                  const std::function<void(std::string_view)>& visit) const {
  Worker worker(text, at_start);
  for (const Step& step : steps_)
    std::visit(worker, step);
  for (const Piece& piece : worker.pieces())
    visit(piece.text);
}

}  // namespace antisd::inline text
