// Adapters as the configuration asks for them ([model.lora]), checked against a model.
//
//   const ModelShape shape =
//       adapted_shape(read_model_shape(path / "config.json"), config.model.lora);
#pragma once

#include "config/run_config.h"
#include "model/model_shape.h"

namespace antisd::inline model {

// The shape itself if the rank is 0. Of the targets, those that the model has with these settings.
// InputError for names that it does not have, or a rank above a projection's own.
ModelShape adapted_shape(ModelShape shape, const LoraConfig& config);

// With the adapters and the format of the base that a run's configuration asks for.
ModelShape configured_shape(ModelShape shape, const ModelConfig& config);

}  // namespace antisd::inline model
