#include "dist/communicator.h"

#include <fmt/format.h>

#include "core/error.h"

namespace antisd::inline dist {
namespace {

class Alone : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void sum(std::span<double>) override {}
  std::vector<double> gather(std::span<const double> values) override {
    return {values.begin(), values.end()};
  }
};

}  // namespace

double sum(Communicator& processes, double value) {
  processes.sum(std::span(&value, 1));
  return value;
}

void refuse_several(const Communicator& processes) {
  if (processes.size() == 1) return;
  throw RunError(
      fmt::format("{} processes, but gradients are not summed over processes", processes.size()),
      {.remedy = "train with one process"});
}

std::unique_ptr<Communicator> alone() {
  return std::make_unique<Alone>();
}

}  // namespace antisd::inline dist
