#include "cli/tensor_half.h"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include <dlfcn.h>
#include <fmt/format.h>

#include "cli/build_info.h"
#include "core/error.h"
#include "core/note.h"
#include "io/installation.h"

namespace antisd::inline cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLibrary = "libantisd_tensor.so";
constexpr const char* kCudaLibrary = "libantisd_tensor_cuda.so";  // in a wheel, beside the other
constexpr const char* kTorchFolder = "ANTISD_TORCH_LIB";

// OMP_WAIT_POLICY=passive for as long as it lives, unless one of the variables that set how GNU's
// and LLVM's runtimes wait is there already.
class PassiveWaiting {
 public:
  PassiveWaiting() {
    for (const char* name : {kPolicy, "GOMP_SPINCOUNT", "KMP_BLOCKTIME", "KMP_LIBRARY"})
      if (std::getenv(name) != nullptr) return;
    was_set_ = ::setenv(kPolicy, "passive", 1) == 0;
  }
  ~PassiveWaiting() {
    if (was_set_) ::unsetenv(kPolicy);
  }
  PassiveWaiting(const PassiveWaiting&) = delete;
  PassiveWaiting& operator=(const PassiveWaiting&) = delete;

 private:
  static constexpr const char* kPolicy = "OMP_WAIT_POLICY";
  bool was_set_ = false;
};

// "2.11.0" of "2.11.0+cu130": what pip installs.
std::string torch_release(const std::string& version) {
  return version.substr(0, version.find('+'));
}

std::string torch_remedy() {
  return fmt::format("pip install torch=={}, or name the lib folder of that torch in {}",
                     torch_release(kBuildInfo.torch), kTorchFolder);
}

std::optional<fs::path> find_library(const char* name) {
  for (const fs::path& folder : own_folders()) {
    std::error_code ignored;
    if (fs::exists(folder / name, ignored)) return folder / name;
  }
  return std::nullopt;
}

fs::path tensor_library() {
  if (const std::optional<fs::path> found = find_library(kLibrary)) return *found;
  throw RunError(fmt::format("{} is not beside the program", kLibrary),
                 {.where = own_program().string(),
                  .remedy = "it holds everything that needs torch: build or install antisd again"});
}

// Of the package in the folder; empty if the file has another form.
std::string torch_version(const fs::path& package) {
  std::ifstream file(package / "version.py");
  for (std::string line; std::getline(file, line);) {
    const std::size_t open = line.find('\'');
    if (line.starts_with("__version__ = ") && open != std::string::npos)
      return line.substr(open + 1, line.rfind('\'') - open - 1);
  }
  return "";
}

// `problem`: why the library could not be loaded without looking for torch; empty in a wheel.
fs::path torch_folder(const std::string& problem) {
  if (const char* named = std::getenv(kTorchFolder); named != nullptr && *named != '\0')
    return named;
  const std::optional<fs::path> package = find_python_package("torch");
  if (!package)
    throw RunError(
        problem.empty() ? "torch is not installed" : "torch cannot be loaded: " + problem,
        {.remedy = torch_remedy()});
  const std::string found = torch_release(torch_version(*package));
  if (!found.empty() && found != torch_release(kBuildInfo.torch))
    throw RunError(fmt::format("torch {} is installed, but this program needs torch {}", found,
                               torch_release(kBuildInfo.torch)),
                   {.where = package->string(), .remedy = torch_remedy()});
  return *package / "lib";
}

void* open_library(const fs::path& path) {
  // Global, so that every symbol has one definition in the process, as if all were linked. Never
  // closed: the libraries keep threads.
  return ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
}

// Torch's libraries, by their full paths; the linker then takes them for the names that ours needs.
void open_torch(const fs::path& folder, bool cuda) {
  std::vector<const char*> names = {"libc10.so", "libtorch_cpu.so"};
  if (cuda) names.insert(names.end(), {"libc10_cuda.so", "libtorch_cuda.so"});
  for (const char* name : names) {
    if (open_library(folder / name) == nullptr)
      throw RunError(fmt::format("torch cannot be loaded: {}", ::dlerror()),
                     {.remedy = torch_remedy()});
  }
}

// The library with its torch. As built, it knows where torch is, and for a bundle LD_LIBRARY_PATH
// says so.
void* open_with_torch(const fs::path& library, bool is_wheel, bool cuda) {
  void* handle = is_wheel ? nullptr : open_library(library);
  std::string problem = handle == nullptr && !is_wheel ? ::dlerror() : "";
  if (is_wheel || problem.find("cannot open shared object file") != std::string::npos) {
    open_torch(torch_folder(problem), cuda);
    handle = open_library(library);
    if (handle == nullptr) problem = ::dlerror();
  }
  if (handle == nullptr)
    throw RunError(fmt::format("the library cannot be loaded: {}", problem),
                   {.where = library.string(), .remedy = torch_remedy()});
  return handle;
}

bool has_gpu_driver() {
  return ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) != nullptr;
}

// A wheel has the library twice, with CUDA and without: that for GPUs needs CUDA's libraries, which
// a torch for CPUs does not bring.
void* open_for_machine() {
  const fs::path library = tensor_library();
  const bool is_wheel = library.parent_path() == own_folders().back();
  if (is_wheel && find_library(kCudaLibrary) && has_gpu_driver()) {
    try {
      return open_with_torch(*find_library(kCudaLibrary), is_wheel, /*cuda=*/true);
    } catch (const RunError& error) {
      note(fmt::format("there is a GPU's driver, but everything runs on the CPU: {}",
                       error.message()));
    }
  }
  const bool cuda = !is_wheel && std::string_view(kBuildInfo.cuda) != "none";
  return open_with_torch(library, is_wheel, cuda);
}

const TensorHalf* linked_half = nullptr;

const TensorHalf& open_tensor_half() {
  if (linked_half != nullptr) return *linked_half;
  if (std::string_view(kBuildInfo.torch) == "none")
    throw RunError("this program was built without torch: text and data tools only",
                   {.remedy = "run `make setup`, then build with ANTISD_TORCH=ON"});
  const PassiveWaiting sleeping;
  void* const handle = open_for_machine();
  const auto entry =
      reinterpret_cast<decltype(&antisd_tensor_half)>(::dlsym(handle, "antisd_tensor_half"));
  const TensorHalf* const half = entry == nullptr ? nullptr : entry();
  if (half == nullptr || std::string_view(half->version) != kBuildInfo.version)
    throw RunError(
        fmt::format("the library is of another version than this program, {}", kBuildInfo.version),
        {.where = own_program().string(), .remedy = "build or install antisd again"});
  return *half;
}

}  // namespace

void use_tensor_half(const TensorHalf& half) {
  linked_half = &half;
}

const TensorHalf& load_tensor_half() {
  static const TensorHalf& half = open_tensor_half();
  return half;
}

}  // namespace antisd::inline cli
