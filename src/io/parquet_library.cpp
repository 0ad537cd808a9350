#include "io/parquet_library.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <optional>

#include <dlfcn.h>
#include <fmt/format.h>

#include "core/error.h"
#include "io/installation.h"

namespace antisd::inline io {
namespace {

constexpr const char* kName = "libantisd_parquet.so";
constexpr const char* kVariable = "ANTISD_PARQUET_LIBRARY";

// Opens Arrow's libraries of the installed pyarrow by their full paths; the linker then takes them
// for the names that our library needs. Nothing where there are none.
void open_arrow() {
  const std::optional<std::filesystem::path> package = find_python_package("pyarrow");
  if (!package) return;
  for (const char* name : {"libarrow.so.", "libparquet.so."}) {  // the second needs the first
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(*package, ignored))
      if (entry.path().filename().string().starts_with(name))
        ::dlopen(entry.path().c_str(), RTLD_NOW | RTLD_LOCAL);
  }
}

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
  if (handle == nullptr) {  // as built it knows where Arrow is; a wheel's finds pyarrow
    const std::string reason = ::dlerror();
    open_arrow();
    handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return fail(reason);
  }
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
             fmt::format("run `make` to build it or `pip install pyarrow=={}` for what it needs, "
                         "name it in {}, or convert the file to JSONL on a machine that has it "
                         "(antisd data convert)",
                         ANTISD_ARROW_VERSION, kVariable)});
  }
  return *library;
}

const AntisdParquetLibrary& load_parquet_library(const std::string& file) {
  static std::mutex mutex;
  static const AntisdParquetLibrary* library = nullptr;
  const std::lock_guard lock(mutex);
  if (library == nullptr) {
    const std::vector<std::filesystem::path> folders = own_folders();
    const auto found = std::find_if(folders.begin(), folders.end(), [](const auto& folder) {
      std::error_code ignored;
      return std::filesystem::exists(folder / kName, ignored);
    });
    library = &find_parquet_library(found == folders.end() ? folders.front() : *found, file);
  }
  return *library;
}

}  // namespace antisd::inline io
