#include "ops/tensor_errors.h"

#include <fstream>
#include <new>
#include <string>

#include <c10/util/Exception.h>

#include "core/error.h"

namespace antisd::inline ops {
namespace {

constexpr const char* kMemoryRemedy =
    "put fewer tokens into a batch, shorten the sequences, compute in bf16, or take a smaller "
    "model "
    "or a device with more memory";

// The text between `before` and `after`; empty if either is absent.
std::string between(const std::string& text, const std::string& before, const std::string& after) {
  const std::size_t found = text.find(before);
  if (found == std::string::npos) return "";
  const std::size_t begin = found + before.size(), end = text.find(after, begin);
  return end == std::string::npos ? "" : text.substr(begin, end - begin);
}

std::string gibibytes(double bytes) {
  return fmt::format("{:.2f} GiB", bytes / (1 << 30));
}

std::string free_host_memory() {
  std::ifstream file("/proc/meminfo");
  std::string name, unit;
  for (double kibibytes = 0; file >> name >> kibibytes; std::getline(file, unit)) {
    if (name == "MemAvailable:") return gibibytes(kibibytes * 1024);
  }
  return "an unknown amount";
}

// The first line, without the library's source location.
std::string first_line(const std::string& text) {
  std::string line = text.substr(0, text.find('\n'));
  if (line.starts_with("[enforce fail at ")) line = line.substr(line.find(']') + 1);
  const std::size_t begin = line.find_first_not_of(' ');
  return begin == std::string::npos ? "no reason given" : line.substr(begin);
}

// "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 139.80 GiB of
// which 1.02 GiB is free. ..."
RunError gpu_memory_error(const std::string& text) {
  const std::string asked = between(text, "Tried to allocate ", ". "),
                    device = between(text, asked + ". ", " has a total capacity"),
                    total = between(text, "a total capacity of ", " of which"),
                    free = between(text, "of which ", " is free");
  if (asked.empty() || total.empty() || free.empty())
    return RunError("the GPU is out of memory", {.remedy = kMemoryRemedy});
  return RunError(fmt::format("{} is out of memory: {} were requested, {} of {} are free", device,
                              asked, free, total),
                  {.remedy = kMemoryRemedy});
}

// "... can't allocate memory: you tried to allocate 4000 bytes. Error code 12 ..."
RunError host_memory_error(const std::string& text) {
  const std::string bytes = between(text, "you tried to allocate ", " bytes");
  const bool is_number =
      !bytes.empty() && bytes.find_first_not_of("0123456789") == std::string::npos;
  return RunError(
      fmt::format("out of memory: {} were requested, {} are free",
                  is_number ? gibibytes(std::stod(bytes)) : "some bytes", free_host_memory()),
      {.remedy = kMemoryRemedy});
}

RunError described(const c10::Error& error) {
  const std::string text = error.what_without_backtrace();
  const auto says = [&](const char* words) { return text.find(words) != std::string::npos; };
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr || says("CUDA out of memory") ||
      says("CUDA error: out of memory") || says("STATUS_ALLOC_FAILED")) {
    return gpu_memory_error(text);
  }
  if (says("can't allocate memory") || says("not enough memory")) return host_memory_error(text);
  return RunError("the tensor library failed: " + first_line(text),
                  {.remedy = "please report it, with the command"});
}

}  // namespace

void with_tensor_errors(const std::function<void()>& work) {
  try {
    work();
  } catch (const c10::Error& error) {
    throw described(error);
  } catch (const std::bad_alloc&) {  // treated like other errors: a run saves what it has learnt
    throw RunError("out of memory", {.remedy = "give it smaller input or more memory"});
  }
}

}  // namespace antisd::inline ops
