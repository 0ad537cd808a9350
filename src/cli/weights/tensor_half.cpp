// What the program finds in libantisd_tensor.so.

#include "cli/tensor_half.h"

#include <map>
#include <string_view>

#include <fmt/format.h>

#include "cli/command.h"
#include "core/check.h"
#include "ops/device.h"
#include "ops/host_memory.h"
#include "ops/tensor_errors.h"
#include "plan/model_fits.h"

namespace antisd::inline cli {
namespace {

const std::map<std::string_view, AddCommand>& tensor_commands() {
  static const std::map<std::string_view, AddCommand> commands = {
      {"generate", add_generate}, {"score", add_score}, {"train", add_train},
      {"plan", add_plan},         {"eval", add_eval},   {"pretrain", add_pretrain},
      {"demo", add_demo},         {"sweep", add_sweep}, {"inspect", add_inspect},
      {"merge", add_merge},       {"serve", add_serve}, {"quickstart", add_quickstart},
  };
  return commands;
}

std::function<int()> add_tensor_command(const std::string& name, CLI::App& app) {
  const auto found = tensor_commands().find(name);
  ANTISD_CHECK(found != tensor_commands().end());
  return [run = found->second(app)] {
    int status = 1;
    with_tensor_errors([&] { status = run(); });
    return status;
  };
}

std::vector<Examination> examine_devices() {
  const TensorLibraryInfo info = describe_tensor_library();
  std::vector<Examination> findings = {
      {"torch", true, fmt::format("libtorch {}, {} threads", info.torch_version, info.threads),
       ""}};
  for (const DeviceInfo& gpu : info.gpus) {
    findings.push_back({gpu.name, true, gpu.description, ""});
    findings.push_back({"attention", true, gpu.attention, ""});
  }
  for (const GpuProblem& problem : info.gpu_problems)
    findings.push_back({"gpu", false, problem.what, problem.remedy});
  if (info.gpus.empty() && info.gpu_problems.empty())
    findings.push_back({"gpu", false, "none", "everything runs on the CPU"});
  return findings;
}

std::vector<Examination> examine_models() {
  const std::vector<DeviceInfo> gpus = describe_tensor_library().gpus;
  const at::Device device = gpus.empty() ? at::Device(at::kCPU) : at::Device(gpus[0].name);
  const double host = static_cast<double>(available_memory(at::kCPU)) - kHostReserve;
  std::vector<Examination> findings;
  for (const ModelFit& fit :
       model_fits({static_cast<double>(available_memory(device)), host}, device))
    findings.push_back({fit.model, !fit.ways.empty(), fit.text(),
                        "`antisd plan` says what more cards would need"});
  return findings;
}

// Errors of the tensor library become ours.
template <std::vector<Examination> (*kExamine)()>
std::vector<Examination> examine_guarded() {
  std::vector<Examination> findings;
  with_tensor_errors([&] { findings = kExamine(); });
  return findings;
}

}  // namespace
}  // namespace antisd::inline cli

extern "C" const antisd::TensorHalf* antisd_tensor_half() {
  static const antisd::TensorHalf half = [] {
    antisd::keep_freed_memory();
    return antisd::TensorHalf{ANTISD_VERSION, antisd::add_tensor_command,
                              antisd::examine_guarded<antisd::examine_devices>,
                              antisd::examine_guarded<antisd::examine_models>};
  }();
  return &half;
}
