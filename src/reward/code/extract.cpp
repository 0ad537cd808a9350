#include "reward/code/extract.h"

#include <algorithm>
#include <cctype>

#include "reward/visible_text.h"

namespace antisd::inline reward {
namespace {

struct Fence {
  char mark = 0;  // 0: not a fence
  std::size_t length = 0, indent = 0;
  std::string info;
};

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && blank(text.front()))
    text.remove_prefix(1);
  while (!text.empty() && blank(text.back()))
    text.remove_suffix(1);
  return text;
}

Fence parse_fence(std::string_view line) {
  Fence fence;
  fence.indent = std::min(line.find_first_not_of(" \t"), line.size());
  line.remove_prefix(fence.indent);
  if (line.empty() || (line[0] != '`' && line[0] != '~')) return fence;
  fence.length = std::min(line.find_first_not_of(line[0]), line.size());
  if (fence.length < 3) return fence;
  const std::string_view info = trimmed(line.substr(fence.length));
  if (info.find('`') != std::string_view::npos) return fence;
  fence.mark = line[0];
  for (const char c : info.substr(0, std::min(info.find_first_of(" \t{,:"), info.size())))
    fence.info += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return fence;
}

bool is_python(std::string_view info) {
  return info == "python" || info == "py" || info == "python3" || info == "py3";
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

}  // namespace

std::optional<std::string> extract_python(std::string_view response) {
  const std::string text = visible_text(response);
  std::optional<std::string> marked, unmarked;
  std::string block;
  Fence open;
  const auto finish = [&] {
    if (!is_blank(block) && is_python(open.info)) marked = block;
    if (!is_blank(block) && open.info.empty()) unmarked = block;
    block.clear();
    open = {};
  };
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    std::string_view line = std::string_view(text).substr(start, end - start);
    start = end + 1;
    const Fence fence = parse_fence(line);
    if (open.mark == 0) {
      if (fence.mark != 0) open = fence;
      continue;
    }
    if (fence.mark == open.mark && fence.length >= open.length && fence.info.empty()) {
      finish();
      continue;
    }
    // A block inside a list item is indented as a whole.
    const std::size_t indent = std::min({open.indent, line.find_first_not_of(" \t"), line.size()});
    block.append(line.substr(indent)).push_back('\n');
  }
  if (open.mark != 0) finish();
  return marked ? marked : unmarked;
}

}  // namespace antisd::inline reward
