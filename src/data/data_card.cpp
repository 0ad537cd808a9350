#include "data/data_card.h"

#include <fnmatch.h>

namespace antisd::inline data {
namespace {

struct YamlLine {
  std::size_t indent = 0;  // of the key, behind a dash
  bool is_item = false;    // begins with a dash
  std::string_view key;    // empty: a bare value
  std::string_view value;
};

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::string_view unquoted(std::string_view text) {
  const bool quoted = text.size() >= 2 && (text.front() == '"' || text.front() == '\'') &&
                      text.back() == text.front();
  return quoted ? text.substr(1, text.size() - 2) : text;
}

YamlLine split_line(std::string_view text) {
  YamlLine line;
  line.indent = std::min(text.find_first_not_of(' '), text.size());
  if (text.substr(line.indent).starts_with("- ")) {
    line.is_item = true;
    line.indent = std::min(text.find_first_not_of(' ', line.indent + 1), text.size());
  }
  const std::string_view rest = trimmed(text.substr(line.indent));
  const std::size_t colon = rest.find(": ");
  if (rest.ends_with(':')) {
    line.key = rest.substr(0, rest.size() - 1);
  } else if (colon != std::string_view::npos && !rest.starts_with('"')) {
    line.key = rest.substr(0, colon);
    line.value = unquoted(trimmed(rest.substr(colon + 1)));
  } else {
    line.value = unquoted(rest);
  }
  return line;
}

// The lines of the top-level key `configs`, between the two lines of dashes.
std::vector<YamlLine> lines_of_configs(std::string_view text) {
  std::vector<YamlLine> lines;
  bool inside = false;
  for (std::size_t number = 0; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const bool is_mark = trimmed(line) == "---";
    if (is_mark != (number == 0)) {
      if (is_mark) return lines;
      if (number == 0) return {};
    }
    if (is_mark || trimmed(line).empty() || trimmed(line).starts_with('#')) continue;
    if (line.front() != ' ' && line.front() != '-') {
      inside = trimmed(line) == "configs:";
    } else if (inside) {
      lines.push_back(split_line(line));
    }
  }
  return {};  // the card does not end
}

class CardReader {
 public:
  // False: a form that is not read.
  bool take(const YamlLine& line) {
    if (line.value.starts_with('[') || line.value.starts_with('{')) return false;
    if (line.key == "config_name") {
      config_ = line.value;
      first_ = found_.size();
      is_default_ = false;
    } else if (line.key == "default") {
      is_default_ = line.value == "true";
      for (std::size_t i = first_; i < found_.size(); ++i)
        found_[i].is_default = is_default_;
    } else if (line.key == "data_files" && !line.value.empty()) {
      start("train");
      found_.back().patterns.emplace_back(line.value);
    } else if (line.key == "split") {
      start(std::string(line.value));
    } else if (line.key == "path" || (line.key.empty() && line.is_item)) {
      if (found_.size() == first_) return line.key.empty() ? false : (start("train"), add(line));
      return add(line);
    } else if (line.key == "data_dir") {
      return false;
    }
    return true;
  }

  std::vector<CardFiles> finish() { return std::move(found_); }

 private:
  void start(const std::string& split) { found_.push_back({config_, split, {}, is_default_}); }
  bool add(const YamlLine& line) {
    if (!line.value.empty()) found_.back().patterns.emplace_back(line.value);
    return true;
  }

  std::vector<CardFiles> found_;
  std::size_t first_ = 0;  // of the config that is being read
  std::string config_ = "default";
  bool is_default_ = false;
};

}  // namespace

std::vector<CardFiles> read_card(std::string_view text) {
  CardReader reader;
  for (const YamlLine& line : lines_of_configs(text))
    if (!reader.take(line)) return {};
  return reader.finish();
}

bool matches_pattern(const std::string& path, const std::string& pattern) {
  const int flags = pattern.find("**") == std::string::npos ? FNM_PATHNAME : 0;
  return fnmatch(pattern.c_str(), path.c_str(), flags) == 0;
}

}  // namespace antisd::inline data
