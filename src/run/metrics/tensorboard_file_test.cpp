#include "run/metrics/tensorboard_file.h"

#include <array>
#include <cstdio>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/testing.h"
#include "io/json.h"
#include "run/metrics/crc32c.h"

namespace antisd::inline run {
namespace {

using ::testing::SizeIs;

// RFC 3720, appendix B.4, and the usual check value.
TEST(Crc32c, KnownValues) {
  EXPECT_EQ(crc32c(""), 0u);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
}

// The values that TensorBoard itself reads from the folder.
Json read_by_tensorboard(const std::filesystem::path& python, const std::filesystem::path& folder) {
  const std::string command = fmt::format("'{}' '{}/tools/read_tensorboard.py' '{}' 2>/dev/null",
                                          python.string(), ANTISD_SOURCE_DIR, folder.string());
  std::FILE* pipe = popen(command.c_str(), "r");
  std::string text;
  std::array<char, 4096> chunk{};
  for (std::size_t count; (count = fread(chunk.data(), 1, chunk.size(), pipe)) > 0;)
    text.append(chunk.data(), count);
  EXPECT_EQ(pclose(pipe), 0);
  return parse_json(text, command);
}

TEST(TensorboardFile, IsReadByTensorboard) {
  const std::filesystem::path python =
      std::filesystem::path(ANTISD_SOURCE_DIR) / ".deps/reference/bin/python";
  if (!std::filesystem::exists(python))
    GTEST_SKIP() << "needs .deps/reference (make references), which is not here";
  const testing::TemporaryFolder folder;
  MetricSet metrics;
  {
    TensorboardFile file(folder.path(), 0);
    for (int step = 1; step <= 6; ++step) {
      metrics.set("critic/rewards/mean", step / 8.0);
      metrics.set("a tag of more than 127 bytes: " + std::string(300, 'x'), -1e30);
      if (step == 2) metrics.set("perf/null", 3);
      file.write(step, metrics);
    }
  }
  {  // resumed after step 4
    TensorboardFile file(folder.path(), 5);
    metrics.set("critic/rewards/mean", 100);
    file.write(5, metrics);
    file.write(std::int64_t{1} << 40, metrics);
  }
  const Json scalars = read_by_tensorboard(python, folder.path());
  EXPECT_THAT(scalars, SizeIs(3));
  EXPECT_EQ(scalars.at("critic/rewards/mean"),
            Json::parse("[[1,0.125],[2,0.25],[3,0.375],[4,0.5],[5,100.0],[1099511627776,100.0]]"));
  EXPECT_THAT(scalars.at("perf/null"), SizeIs(5));
  EXPECT_EQ(scalars.at("a tag of more than 127 bytes: " + std::string(300, 'x'))[0][1],
            static_cast<double>(-1e30f));
}

TEST(TensorboardFile, EachHasANameOfItsOwn) {
  const testing::TemporaryFolder folder;
  const TensorboardFile a(folder.path(), 0), b(folder.path(), 0);
  EXPECT_NE(a.path(), b.path());
  EXPECT_LT(a.path(), b.path());
  EXPECT_EQ(a.path().filename().string().rfind("events.out.tfevents.", 0), 0u);
}

}  // namespace
}  // namespace antisd::inline run
