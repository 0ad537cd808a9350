// The shapes of models that recipes name, for plans without any file of the model.
//
//   const ModelShape shape = shape_of_model("models/Qwen3-8B");
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/model_shape.h"

namespace antisd::inline plan {

// By the last part of a path: "models/Qwen3-8B". Nothing for a name that is not known.
std::optional<ModelShape> known_shape(const std::string& model_path);
std::vector<std::string> known_models();

// config.json's where the directory has one, else the known one. InputError if there is neither.
ModelShape shape_of_model(const std::string& model_path);

}  // namespace antisd::inline plan
