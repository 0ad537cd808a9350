#include "io/parquet_library.h"

#include <cstdlib>
#include <filesystem>
#include <mutex>

#include <dlfcn.h>
#include <fmt/format.h>

#include "core/error.h"

namespace antisd::inline io {
namespace {

constexpr const char* kName = "libantisd_parquet.so";
constexpr const char* kVariable = "ANTISD_PARQUET_LIBRARY";

// Null if the library cannot be loaded; `problems` then has the reason.
const AntisdParquetLibrary* try_load(const std::filesystem::path& path, std::string& problems) {
  const auto fail = [&](const std::string& why) {
    problems += fmt::format("{}{}: {}", problems.empty() ? "" : "; ", path.string(), why);
    return nullptr;
  };
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return fail("not there");
  // Local, so that Arrow's symbols do not conflict with others. Never closed: Arrow keeps threads.
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return fail(::dlerror());
  const auto entry = reinterpret_cast<decltype(&antisd_parquet_library)>(
      ::dlsym(handle, "antisd_parquet_library"));
  if (entry == nullptr) return fail("no library of antisd");
  const AntisdParquetLibrary* library = entry();
  if (library->version != kAntisdParquetVersion) return fail("built for another version of antisd");
  return library;
}

}  // namespace

const AntisdParquetLibrary& find_parquet_library(const std::filesystem::path& folder,
                                                 const std::string& file) {
  std::string problems;
  const AntisdParquetLibrary* library = try_load(folder / kName, problems);
  if (const char* named = std::getenv(kVariable); library == nullptr && named != nullptr) {
    library = try_load(named, problems);
  }
  if (library == nullptr) {
    throw InputError(
        fmt::format("Parquet files need {}, which cannot be loaded ({})", kName, problems),
        {.where = file,
         .remedy =
             fmt::format("run `make` to build it, name it in {}, or convert the file to JSONL "
                         "on a machine that has it (antisd data convert)",
                         kVariable)});
  }
  return *library;
}

const AntisdParquetLibrary& load_parquet_library(const std::string& file) {
  static std::mutex mutex;
  static const AntisdParquetLibrary* library = nullptr;
  const std::lock_guard lock(mutex);
  if (library == nullptr) {
    std::error_code ignored;
    const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored);
    library = &find_parquet_library(program.parent_path(), file);
  }
  return *library;
}

}  // namespace antisd::inline io
