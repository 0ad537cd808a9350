// Reads tokenizer files without a tree for their large parts: a vocabulary of 250,000 entries goes
// directly into Vocabulary.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "io/json.h"
#include "text/tokenizer/bpe.h"
#include "text/tokenizer/vocabulary.h"

namespace antisd::inline text {

std::string read_text_file(const std::filesystem::path& path);

// Pairs of token strings in one block of bytes.
class MergeList {
 public:
  void add(std::string_view left, std::string_view right);
  // "left right". False, and nothing is added, unless there is exactly one space.
  bool add_line(std::string_view line);
  std::vector<Merge> merges() const;  // views into this object
  std::size_t size() const { return spans_.size(); }

 private:
  struct Span {
    std::size_t offset;
    std::uint32_t left, right;  // lengths
  };
  std::string bytes_;
  std::vector<Span> spans_;
};

struct TokenizerFile {
  SortedJson rest;  // everything except model.vocab and model.merges
  Vocabulary vocabulary;
  MergeList merges;
  bool has_merges = false;
};

// tokenizer.json. Throws InputError with `where`.
TokenizerFile parse_tokenizer_json(std::string_view text, const std::string& where);
// vocab.json: {"token": id, ...}.
Vocabulary parse_vocabulary_json(std::string_view text, const std::string& where);
// merges.txt: one pair per line, without "#version" lines.
MergeList parse_merges_text(std::string_view text, const std::string& where);

}  // namespace antisd::inline text
