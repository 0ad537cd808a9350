#include "io/atomic_file.h"

#include <csignal>

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/testing.h"

namespace antisd::inline io {
namespace {

using ::testing::AllOf;
using testing::error_of;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

int count_entries(const std::filesystem::path& folder) {
  return static_cast<int>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

mode_t mode_of(const std::filesystem::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
}

// While it lives, files of this process cannot grow beyond `bytes`, as on a full disk.
class SmallDisk {
 public:
  explicit SmallDisk(rlim_t bytes) {
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit small{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
  }
  ~SmallDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int) = nullptr;
};

TEST(AtomicFile, AppearsOnlyWhenCommitted) {
  TemporaryFolder folder;
  const auto path = folder / "data.bin";
  write_file_atomically(path, "old");
  AtomicFile file(path);
  file.write("new ");
  file.write("text");
  EXPECT_EQ(read_file(path), "old");
  file.commit();
  EXPECT_EQ(read_file(path), "new text");
  EXPECT_EQ(count_entries(folder.path()), 1);
}

TEST(AtomicFile, LeavesNothingBehindWhenAbandoned) {
  TemporaryFolder folder;
  {
    AtomicFile file(folder / "data.bin");
    file.write("half of it");
    AtomicFile moved = std::move(file);
    AtomicFile other(folder / "other.bin");
    other = std::move(moved);
    EXPECT_EQ(count_entries(folder.path()), 1);
  }
  EXPECT_EQ(count_entries(folder.path()), 0);
}

TEST(AtomicFile, ReportsAFullDiskAndKeepsTheOldFile) {
  TemporaryFolder folder;
  const auto path = folder / "data.bin";
  write_file_atomically(path, "old");
  {
    const SmallDisk small(1000);
    EXPECT_THAT(error_of([&] { write_file_atomically(path, std::string(5000, 'x')); }),
                AllOf(HasSubstr(path.string() + ": cannot be written"), HasSubstr("larger than"),
                      HasSubstr("; raise")));
  }
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(count_entries(folder.path()), 1);
}

TEST(AtomicFile, WritesDirectlyToWhatIsNoRegularFile) {
  write_file_atomically("/dev/null", "gone");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  EXPECT_THAT(error_of([&] { write_file_atomically("/dev/full", "x"); }),
              AllOf(HasSubstr("/dev/full: cannot be written: no space is left"),
                    HasSubstr("free some space")));
}

TEST(AtomicFile, SaysWhyItCannotWrite) {
  TemporaryFolder folder;
  EXPECT_THAT(error_of([&] { AtomicFile file(folder / "a/b.bin"); }),
              AllOf(HasSubstr("its folder does not exist"), HasSubstr("mkdir -p")));
  EXPECT_THAT(error_of([&] { AtomicFile file(folder.path()); }), HasSubstr("it is a folder"));
  EXPECT_THAT(error_of([&] { AtomicFile file(folder.path() / ""); }), HasSubstr("it is a folder"));
  EXPECT_THROW(AtomicFile(""), RunError);
  write_file_atomically(folder / "file", "");
  EXPECT_THAT(error_of([&] { AtomicFile file(folder / "file/x"); }), HasSubstr("is a file, not"));
  std::filesystem::create_symlink("loop", folder / "loop");
  EXPECT_THROW(AtomicFile(folder / "loop"), RunError);
  EXPECT_THROW(AtomicFile("/proc/antisd"), RunError);
}

TEST(AtomicFile, SaysThatPermissionIsDenied) {
  TemporaryFolder folder;
  using std::filesystem::perms;
  std::filesystem::permissions(folder.path(), perms::owner_read | perms::owner_exec |
                                                  perms::others_read | perms::others_exec);
  // Permissions do not restrict root, so root reads as another user here.
  const bool is_root = ::geteuid() == 0;
  constexpr uid_t kNobody = 65534;
  if (is_root) {
    ASSERT_EQ(::seteuid(kNobody), 0);
  }
  EXPECT_THAT(error_of([&] { AtomicFile file(folder / "x"); }), HasSubstr("permission denied"));
  if (is_root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  std::filesystem::permissions(folder.path(), perms::owner_all);
}

TEST(AtomicFile, ObeysTheUmaskAndKeepsModesAndLinks) {
  TemporaryFolder folder;
  const mode_t before = ::umask(027);
  write_file_atomically(folder / "fresh", "x");
  ::umask(before);
  EXPECT_EQ(mode_of(folder / "fresh"), 0640u);
  ::chmod((folder / "fresh").c_str(), 0755);
  std::filesystem::create_symlink("fresh", folder / "link");
  write_file_atomically(folder / "link", "through the link");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(read_file(folder / "fresh"), "through the link");
  EXPECT_EQ(mode_of(folder / "fresh"), 0755u);
  const std::string longest(255, 'n');
  write_file_atomically(folder / longest, "y");
  EXPECT_EQ(read_file(folder / longest), "y");
}

TEST(ReadFile, ReadsWholeFilesWithinTheLimit) {
  TemporaryFolder folder;
  const std::string text(200'000, 'x');
  write_file_atomically(folder / "text", text);
  EXPECT_EQ(read_file(folder / "text"), text);
  EXPECT_EQ(read_file(folder / "text", 200'000), text);
  EXPECT_THAT(error_of([&] { read_file(folder / "text", 199'999); }),
              HasSubstr("longer than the 199999 bytes"));
  EXPECT_FALSE(read_file("/proc/self/status").empty());  // its size is reported as 0
  EXPECT_THAT(error_of([&] { read_file("/dev/zero", 1 << 20); }), HasSubstr("a device"));
  EXPECT_THAT(error_of([&] { read_file(folder / "none"); }), HasSubstr("no such file"));
  EXPECT_THAT(error_of([&] { read_file(folder.path()); }), HasSubstr("it is a folder"));
}

}  // namespace
}  // namespace antisd::inline io
