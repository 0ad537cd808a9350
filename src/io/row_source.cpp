#include "io/row_source.h"

#include "core/error.h"
#include "io/text_source.h"

namespace antisd::inline io {

RowSource::RowSource(const std::filesystem::path& path) : text_(open_text(path)) {
  if (without_gz(path).extension() == ".csv") {
    csv_.emplace(*text_, path.string());
  } else {
    jsonl_.emplace(*text_, path.string());
  }
}

RowSource::RowSource(std::istream& stream, const std::string& name)
    : text_(open_text(stream, name)) {
  jsonl_.emplace(*text_, name);
}

bool RowSource::next(Json& row) try {
  return csv_ ? csv_->next(row) : jsonl_->next(row);
} catch (const DamagedText&) {
  is_broken_ = true;
  throw;
} catch (const InputError&) {
  is_broken_ = csv_ && csv_->is_broken();
  throw;
}

std::string RowSource::where() const {
  return csv_ ? csv_->where() : jsonl_->where();
}

}  // namespace antisd::inline io
