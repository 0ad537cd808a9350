// `doctor`: one line per feature that the machine has or lacks.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "cli/build_info.h"
#include "cli/command.h"
#include "cli/examination.h"
#include "cli/tensor_half.h"
#include "core/error.h"
#include "core/thread_pool.h"
#include "dist/place.h"
#include "io/parquet_library.h"
#include "reward/code/sandbox.h"
#include "reward/code/sandbox_python.h"

namespace antisd::inline cli {
namespace {

namespace fs = std::filesystem;

Examination examine_cpu() {
  std::string model = "CPU";
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) {
      model = line.substr(line.find(':') + 2);
      break;
    }
  }
  const double gib = static_cast<double>(sysconf(_SC_PHYS_PAGES)) *
                     static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 30);
  return {"cpu", true,
          fmt::format("{}, {} threads for us, {:.0f} GiB memory", model, available_threads(), gib),
          ""};
}

struct TensorFindings {
  bool has_torch;
  std::vector<Examination> devices, models;
};

// By the half of the program that needs torch; if it cannot be loaded, the reason.
TensorFindings examine_tensors() {
  try {
    const TensorHalf& half = load_tensor_half();
    return {true, half.examine_devices(), half.examine_models()};
  } catch (const RunError& error) {
    return {false, {{"torch", false, error.problem(), error.context().remedy}}, {}};
  }
}

Examination examine_parquet() {
  try {
    load_parquet_library("");
    return {"parquet", true, "files can be read and written", ""};
  } catch (const Error& error) {
    return {"parquet", false, error.problem(), error.context().remedy};
  }
}

std::vector<Examination> examine_interpreter() {
  try {
    const Interpreter python = find_interpreter("");
    return {
        {"python3", true,
         fmt::format("{} {} (runs graded code)", python.executable.string(), python.version), ""},
        {"numpy", python.numpy,
         python.numpy ? "graded code can import it"
                      : "graded code cannot import it, and most code benchmarks do",
         "apt-get install python3-numpy, or pip install numpy for that interpreter"}};
  } catch (const Error& error) {
    return {{"python3", false, error.problem(),
             "code rewards need it: apt-get install python3 python3-numpy"}};
  }
}

std::vector<Examination> examine_sandbox() {
  const SandboxStrength strength = probe_sandbox();
  std::vector<Examination> findings;
  for (const std::string& line : strength.lines()) {  // "namespaces: ..."
    const std::size_t colon = line.find(": ");
    const bool missing =
        line.compare(colon + 2, 4, "none") == 0 || line.find("too weak") != std::string::npos;
    findings.push_back({line.substr(0, colon), !missing, line.substr(colon + 2), ""});
  }
  return findings;
}

// Whether several ranks can run, and what this process is if something has started ranks.
Examination examine_ranks(bool has_tensors, bool has_nccl) {
  if (!has_tensors) return {"ranks", false, "none without torch", "see the line above"};
  try {
    const Place place = find_place(process_environment());
    return {"ranks", true,
            fmt::format("{}; --processes starts several, which talk over TCP{}", place.text(),
                        has_nccl ? ", GPUs by NCCL" : ""),
            ""};
  } catch (const Error& error) {
    return {"ranks", false, error.problem(), error.context().remedy};
  }
}

// What ranks of several machines would talk over.
Examination examine_network() {
  std::string state;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) == 0) {
    for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
      if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET ||
          (one->ifa_flags & IFF_LOOPBACK) != 0 || (one->ifa_flags & IFF_UP) == 0)
        continue;
      char address[NI_MAXHOST] = "";
      getnameinfo(one->ifa_addr, sizeof(sockaddr_in), address, sizeof(address), nullptr, 0,
                  NI_NUMERICHOST);
      state += fmt::format("{}{} {}", state.empty() ? "" : ", ", one->ifa_name, address);
    }
    freeifaddrs(all);
  }
  std::error_code ignored;
  for (const fs::directory_entry& card : fs::directory_iterator("/sys/class/infiniband", ignored))
    state +=
        fmt::format("{}InfiniBand {}", state.empty() ? "" : ", ", card.path().filename().string());
  if (state.empty())
    return {"network", false, "no interface but loopback", "ranks have to be on this machine"};
  return {"network", true, state, ""};
}

Examination examine_disk() {
  struct statvfs disk {};
  if (statvfs(".", &disk) != 0)
    return {"disk", false, "cannot be read", "check the working directory"};
  const double gib =
      static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize) / (1 << 30);
  return {"disk", gib >= 5, fmt::format("{:.0f} GiB free here", gib),
          "checkpoints of an 8B model take about 100 GiB each"};
}

}  // namespace

std::function<int()> add_doctor(CLI::App&) {
  return [] {
    std::vector<Examination> findings = {
        {"antisd", true, fmt::format("{} ({})", kBuildInfo.version, kBuildInfo.revision), ""},
        examine_cpu()};
    TensorFindings tensors = examine_tensors();
    for (Examination& finding : tensors.devices)
      findings.push_back(std::move(finding));
    findings.push_back(examine_ranks(tensors.has_torch, std::string(kBuildInfo.cuda) != "none"));
    findings.push_back(examine_network());
    findings.push_back(examine_parquet());
    for (Examination& finding : examine_interpreter())
      findings.push_back(std::move(finding));
    for (Examination& finding : examine_sandbox())
      findings.push_back(std::move(finding));
    findings.push_back(examine_disk());
    for (Examination& finding : tensors.models)
      findings.push_back(std::move(finding));
    std::size_t width = 10;
    for (const Examination& finding : findings)
      width = std::max(width, finding.topic.size());
    for (const Examination& finding : findings) {
      std::cout << fmt::format(
          "{:<{}} {:<4} {}{}{}\n", finding.topic, width, finding.good ? "ok" : "--", finding.state,
          finding.good || finding.remedy.empty() ? "" : "; ", finding.good ? "" : finding.remedy);
    }
    return 0;
  };
}

}  // namespace antisd::inline cli
