#include "core/cpu_quota.h"

#include <fstream>

#include <gmock/gmock.h>

#include "core/testing.h"

namespace antisd::inline core {
namespace {

class CpuQuota : public ::testing::Test {
 protected:
  void put(const std::string& file, const std::string& text) {
    std::filesystem::create_directories((folder_ / file).parent_path());
    std::ofstream(folder_ / file) << text;
  }
  std::optional<double> quota() { return cpu_quota(folder_ / "cgroup", folder_ / "fs"); }

  testing::TemporaryFolder folder_;
};

TEST_F(CpuQuota, OfTheGroupAndThoseAboveIt) {
  put("cgroup", "0::/slice/job\n");
  EXPECT_EQ(quota(), std::nullopt);
  put("fs/cpu.max", "max 100000\n");
  put("fs/slice/job/cpu.max", "350000 100000\n");
  EXPECT_EQ(quota(), 3.5);
  put("fs/slice/cpu.max", "150000 100000\n");
  EXPECT_EQ(quota(), 1.5);
  put("fs/other/cpu.max", "10000 100000\n");  // not ours
  EXPECT_EQ(quota(), 1.5);
}

TEST_F(CpuQuota, OfVersion1) {
  put("cgroup", "9:memory:/m\n4:cpu,cpuacct:/job\n3:cpuset:/c\n");
  put("fs/cpu/job/cpu.cfs_quota_us", "-1\n");
  put("fs/cpu/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), std::nullopt);
  put("fs/cpu,cpuacct/cpu.cfs_quota_us", "200000\n");
  put("fs/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), 2);
}

TEST_F(CpuQuota, OfFilesThatAreNotThereOrDamaged) {
  EXPECT_EQ(quota(), std::nullopt);
  put("cgroup", "nonsense\n\n0::\n");
  put("fs/cpu.max", "-5 0\n");
  EXPECT_EQ(quota(), std::nullopt);
}

}  // namespace
}  // namespace antisd::inline core
