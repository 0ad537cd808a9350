#include "report/samples.h"

#include <fmt/format.h>

#include "core/error.h"
#include "report/row_fields.h"
#include "run/run_files.h"

namespace antisd::inline report {
namespace {

constexpr std::int64_t kChunk = 4 << 20;

std::size_t count_items(std::string_view array) {
  if (array.size() < 2 || array.find_first_not_of(" \t", 1) == array.rfind(']')) return 0;
  return 1 + static_cast<std::size_t>(std::count(array.begin(), array.end(), ','));
}

std::string shortened(std::string text, std::size_t limit) {
  if (text.size() <= limit) return text;
  const auto is_inside = [&](std::size_t at) { return (text[at] & 0xC0) == 0x80; };  // a code point
  std::size_t head = limit / 2, tail = text.size() - limit / 2;
  while (head > 0 && is_inside(head))
    --head;
  while (tail < text.size() && is_inside(tail))
    ++tail;
  return fmt::format("{}\n[... {} bytes left out ...]\n{}", text.substr(0, head), tail - head,
                     text.substr(tail));
}

// Null if the line is not a rollout row.
Json sample_of(std::string_view line, std::size_t text_bytes) {
  Json row = Json::object();
  const bool whole = for_each_field(line, [&](std::string_view key, std::string_view value) {
    if (key == "response_ids") {
      row["tokens"] = count_items(value);
    } else if (key == "text") {
      if (auto text = string_of(value)) row["text"] = shortened(std::move(*text), text_bytes);
    } else if (key == "prompt_id" || key == "reason" || key == "context_source") {
      // In other systems' data an id may be a number.
      const auto text = string_of(value);
      row[std::string(key)] = shortened(text ? *text : std::string(value), 500);
    } else if (key == "reward" || key == "sample") {
      const auto number = number_of(value);
      row[std::string(key)] = number ? Json(*number) : Json(nullptr);
    } else if (key == "truncated") {
      row["truncated"] = value == "true";
    }
  });
  return whole && row.contains("text") && row.contains("prompt_id") ? row : Json(nullptr);
}

}  // namespace

Json read_samples(const Folder& run, std::int64_t step, const SampleLimits& limits) {
  Json rows = Json::array();
  bool whole = true;
  const auto file = run.open(rollouts_file(step));
  std::string text;
  std::int64_t offset = 0;
  while (file && whole) {
    const std::string chunk =
        offset < limits.file_bytes ? file->read(offset, kChunk) : std::string();
    if (chunk.empty()) {
      whole = offset >= file->stamp().size;
      break;
    }
    offset += static_cast<std::int64_t>(chunk.size());
    text += chunk;
    std::size_t begin = 0;
    for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
      Json row = sample_of(std::string_view(text).substr(begin, end - begin), limits.text_bytes);
      if (row.is_null()) continue;
      whole = rows.size() < limits.rows;
      if (!whole) break;
      rows.push_back(std::move(row));
    }
    text.erase(0, begin);
  }
  return {{"rows", std::move(rows)}, {"whole", whole}};
}

}  // namespace antisd::inline report
