// The precisions of activations in kernels; statistics and accumulation are always fp32.
#pragma once

namespace antisd::inline ops {

enum class ElementType { kFloat32, kBFloat16, kFloat16 };

}  // namespace antisd::inline ops
