#include <string>

#include "core/error.h"
#include "ops/kernels/launch.h"

namespace antisd::inline ops {

void fail_launch(const char* kernel, cudaError_t status) {
  throw RunError(
      std::string("the GPU did not start the kernel ") + kernel + ": " + cudaGetErrorString(status),
      {"GPU", "`antisd doctor` shows the devices and their memory"});
}

}  // namespace antisd::inline ops
