#include "text/tokenizer/tokenizer_file.h"

#include <fstream>

#include <fmt/format.h>

#include "core/error.h"
#include "core/utf8.h"

namespace antisd::inline text {
namespace {

constexpr std::uintmax_t kMaxFileBytes = 512u << 20;

[[noreturn]] void fail_merge(std::string_view line, const std::string& where, std::size_t number) {
  throw InputError(
      fmt::format("merge {} (\"{}\") is not two tokens with a space between", number, line),
      {where, "write \"left right\", or a list of two"});
}

// nlohmann calls these in the order of the text. Everything becomes a tree except `model.vocab` (or
// the whole text, for vocab.json) and `model.merges`.
class FileHandler : public nlohmann::json_sax<SortedJson> {
 public:
  FileHandler(TokenizerFile& file, bool is_vocabulary, const std::string& where)
      : file_(file), is_vocabulary_(is_vocabulary), where_(where) {}

  bool null() override { return value(SortedJson()); }
  bool boolean(bool v) override { return value(SortedJson(v)); }
  bool number_float(double v, const std::string&) override { return value(SortedJson(v)); }
  bool binary(binary_t&) override { return value(SortedJson()); }
  bool number_integer(std::int64_t v) override {
    if (mode_ == Mode::kVocabulary) return entry(v);
    return value(SortedJson(v));
  }
  bool number_unsigned(std::uint64_t v) override {
    if (mode_ == Mode::kVocabulary) return entry(v > INT64_MAX ? INT64_MAX : std::int64_t(v));
    return value(SortedJson(v));
  }
  bool string(std::string& v) override {
    if (mode_ == Mode::kMerges) {
      if (!file_.merges.add_line(v)) fail_merge(v, where_, file_.merges.size() + 1);
      return true;
    }
    if (mode_ == Mode::kPair) {
      pair_.push_back(std::move(v));
      return true;
    }
    return value(SortedJson(std::move(v)));
  }

  bool start_object(std::size_t) override {
    if (is_vocabulary_ && stack_.empty() && !closed_) return enter_vocabulary();
    if (at("vocab")) return enter_vocabulary();
    return open(SortedJson::object());
  }
  bool start_array(std::size_t) override {
    if (at("merges")) {
      if (file_.has_merges) fail("\"merges\" comes twice", "keep one");
      file_.has_merges = true;
      mode_ = Mode::kMerges;
      return true;
    }
    if (at("vocab")) {
      fail("\"vocab\" is a list, as in a Unigram model", "use a BPE or WordLevel tokenizer");
    }
    if (mode_ == Mode::kMerges) {
      mode_ = Mode::kPair;
      pair_.clear();
      return true;
    }
    return open(SortedJson::array());
  }
  bool key(std::string& v) override {
    key_ = std::move(v);
    return true;
  }
  bool end_object() override { return close(); }
  bool end_array() override {
    if (mode_ == Mode::kPair) {
      if (pair_.size() != 2) {
        fail(fmt::format("merge {} has {} parts", file_.merges.size() + 1, pair_.size()),
             "a merge is a pair of tokens");
      }
      file_.merges.add(pair_[0], pair_[1]);
      mode_ = Mode::kMerges;
      return true;
    }
    return close();
  }
  bool parse_error(std::size_t, const std::string&,
                   const nlohmann::detail::exception& error) override {
    std::string detail = error.what();
    if (const auto end = detail.find("] "); end != std::string::npos) detail.erase(0, end + 2);
    fail("not valid JSON: " + detail, "fetch the file again");
  }

 private:
  enum class Mode { kTree, kVocabulary, kMerges, kPair };

  [[noreturn]] void fail(std::string problem, std::string remedy) const {
    throw InputError(std::move(problem), {where_, std::move(remedy)});
  }

  bool at(std::string_view name) const {
    return mode_ == Mode::kTree && !is_vocabulary_ && stack_.size() == 2 && in_model_ &&
           key_ == name;
  }

  bool enter_vocabulary() {
    if (has_vocabulary_) fail("\"vocab\" comes twice", "keep one");
    has_vocabulary_ = true;
    mode_ = Mode::kVocabulary;
    return true;
  }

  bool entry(std::int64_t id) {
    file_.vocabulary.add(key_, id, where_);
    return true;
  }

  void expect_tree(std::string_view type) const {
    if (mode_ == Mode::kVocabulary) {
      fail(fmt::format("the id of the token \"{}\" is {}", key_, type), "use a whole number");
    }
    if (mode_ == Mode::kMerges || mode_ == Mode::kPair) {
      fail(fmt::format("merge {} holds {}", file_.merges.size() + 1, type),
           "a merge is \"left right\" or [\"left\", \"right\"]");
    }
    if (is_vocabulary_) fail("not an object of tokens and ids", "take vocab.json of the model");
  }

  SortedJson* place(SortedJson&& v) {
    if (stack_.empty()) {
      file_.rest = std::move(v);
      return &file_.rest;
    }
    SortedJson& parent = *stack_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(v));
      return &parent.back();
    }
    SortedJson& slot = parent[key_];
    slot = std::move(v);
    return &slot;
  }

  bool value(SortedJson&& v) {
    expect_tree(v.type_name());
    place(std::move(v));
    return true;
  }

  bool open(SortedJson&& container) {
    expect_tree(container.type_name());
    if (stack_.size() >= kMaxJsonDepth) {
      fail(fmt::format("nested deeper than {} levels", kMaxJsonDepth), "flatten the file");
    }
    if (stack_.size() == 1) in_model_ = key_ == "model" && container.is_object();
    stack_.push_back(place(std::move(container)));
    return true;
  }

  bool close() {
    if (mode_ == Mode::kVocabulary || mode_ == Mode::kMerges) {
      mode_ = Mode::kTree;
      closed_ = true;
      return true;
    }
    stack_.pop_back();
    if (stack_.size() == 1) in_model_ = false;
    return true;
  }

  TokenizerFile& file_;
  const bool is_vocabulary_;
  const std::string& where_;
  std::vector<SortedJson*> stack_;  // open containers of the tree
  std::string key_;
  std::vector<std::string> pair_;
  Mode mode_ = Mode::kTree;
  bool in_model_ = false;
  bool has_vocabulary_ = false;
  bool closed_ = false;
};

void parse_into(TokenizerFile& file, std::string_view text, bool is_vocabulary,
                const std::string& where) {
  FileHandler handler(file, is_vocabulary, where);
  SortedJson::sax_parse(text.begin(), text.end(), &handler);
  file.vocabulary.finish(where);
}

}  // namespace

std::string read_text_file(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    throw InputError("no such file", {path.string(), "check the model directory"});
  }
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error || size > kMaxFileBytes) {
    throw InputError(fmt::format("larger than {} MB", kMaxFileBytes >> 20),
                     {path.string(), "this is not a tokenizer file"});
  }
  std::string text(size, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(text.data(), static_cast<std::streamsize>(size));
  if (!file) throw RunError("cannot be read", {path.string(), "check its permissions"});
  return text;
}

void MergeList::add(std::string_view left, std::string_view right) {
  spans_.push_back({bytes_.size(), static_cast<std::uint32_t>(left.size()),
                    static_cast<std::uint32_t>(right.size())});
  bytes_.append(left).append(right);
}

bool MergeList::add_line(std::string_view line) {
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos) {
    return false;
  }
  add(line.substr(0, space), line.substr(space + 1));
  return true;
}

std::vector<Merge> MergeList::merges() const {
  std::vector<Merge> result;
  result.reserve(spans_.size());
  const std::string_view bytes = bytes_;
  for (const Span& span : spans_) {
    result.push_back(
        {bytes.substr(span.offset, span.left), bytes.substr(span.offset + span.left, span.right)});
  }
  return result;
}

TokenizerFile parse_tokenizer_json(std::string_view text, const std::string& where) {
  TokenizerFile file;
  parse_into(file, text, false, where);
  return file;
}

Vocabulary parse_vocabulary_json(std::string_view text, const std::string& where) {
  TokenizerFile file;
  parse_into(file, text, true, where);
  return std::move(file.vocabulary);
}

MergeList parse_merges_text(std::string_view text, const std::string& where) {
  if (const auto bad = find_invalid_utf8(text)) {
    throw InputError(fmt::format("not valid UTF-8 at byte {}", *bad),
                     {where, "fetch the file again"});
  }
  MergeList merges;
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with("#version")) continue;
    if (line.empty() && begin >= text.size()) break;  // an empty last line
    if (!merges.add_line(line)) fail_merge(line, where, number);
  }
  return merges;
}

}  // namespace antisd::inline text
