#include "cli/rows.h"

#include <fstream>
#include <iostream>

#include <gmock/gmock.h>
#include <unistd.h>

#include "core/limit_testing.h"
#include "core/testing.h"

namespace antisd::inline cli {
namespace {

// In a child process with little memory: how run_rows ends; its message goes to standard error.
[[noreturn]] void run_with_little_memory(const std::string& file, int workers) {
  testing::limit_address_space(std::uint64_t{96} << 20);
  int status = 0;
  try {
    run_rows(
        {.file = file}, [](const Json& row) { return row; }, workers);
  } catch (const Error& error) {
    std::cerr << error.message() << std::endl;
    status = error.exit_status();
  }
  _exit(status);
}

// With several workers, threads must be ended before the error is reported.
TEST(Rows, ARowThatDoesNotFitIntoTheMemoryIsOneMessage) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer needs the address space that this test takes away";
#endif
  const testing::TemporaryFolder folder;
  const std::string file = (folder / "rows.jsonl").string();
  {
    std::ofstream rows(file);
    rows << "{\"a\": 1}\n{\"a\": \"" << std::string(std::size_t{128} << 20, 'x') << "\"}\n";
  }
  for (const int workers : {1, 3}) {
    EXPECT_EXIT(run_with_little_memory(file, workers), ::testing::ExitedWithCode(1),
                "rows.jsonl:2: out of memory while the row was read");
  }
}

// The rows before it are written, and the error is that of the first bad row.
TEST(Rows, AReaderThatFailsEndsTheThreadsBesideIt) {
  const testing::TemporaryFolder folder;
  const std::string file = (folder / "rows.jsonl").string();
  std::ofstream(file) << "{\"a\": 1}\n{\"a\": 2}\n[]\n";
  ::testing::internal::CaptureStdout();
  const std::string message = testing::error_of([&] {
    run_rows(
        {.file = file}, [](const Json& row) { return row; }, /*workers=*/3);
  });
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "{\"a\":1}\n{\"a\":2}\n");
  EXPECT_THAT(message, ::testing::HasSubstr("rows.jsonl:3: a JSON array"));
}

}  // namespace
}  // namespace antisd::inline cli
