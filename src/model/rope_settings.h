// Rotary position settings of config.json, in the format of transformers 4 (rope_theta,
// rope_scaling) or 5 (rope_parameters), and the frequencies derived from them.
#pragma once

#include <string>

#include "io/json.h"
#include "model/model_shape.h"

namespace antisd::inline model {

struct RopeSettingsPair {
  RopeSettings full, sliding;  // by the kind of layer
};

RopeSettingsPair read_rope_settings(const Json& config, const ModelShape& shape,
                                    const std::string& where);

// Angle per position of each pair of dimensions, head_dim / 2 values.
std::vector<double> rope_frequencies(const RopeSettings& settings, std::int64_t head_dim);

}  // namespace antisd::inline model
