#include "core/check.h"

#include <filesystem>

namespace antisd::inline core {

void fail_check(const char* file, int line, const std::string& text) {
  throw CheckFailure(fmt::format("{}:{}: does not hold: {}",
                                 std::filesystem::path(file).filename().string(), line, text));
}

}  // namespace antisd::inline core
