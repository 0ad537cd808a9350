#include "inference/page_ledger.h"

#include "core/check.h"

namespace antisd::inline inference {

PageLedger::PageLedger(std::int64_t pages) : references_(pages, 0) {
  for (std::int64_t page = pages; page-- > 0;)
    free_.push_back(static_cast<std::int32_t>(page));
}

std::int32_t PageLedger::take() {
  ANTISD_CHECK(!free_.empty());
  const std::int32_t page = free_.back();
  free_.pop_back();
  references_[page] = 1;
  return page;
}

void PageLedger::share(std::int32_t page) {
  ANTISD_CHECK(references_[page] > 0);
  ++references_[page];
}

void PageLedger::drop(std::int32_t page) {
  ANTISD_CHECK(references_[page] > 0);
  if (--references_[page] == 0) free_.push_back(page);
}

}  // namespace antisd::inline inference
