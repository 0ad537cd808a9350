// The model of method.teacher.path: found, checked against the student, loaded.
//
//   const std::optional<TeacherModel> teacher =
//       find_teacher(config, student_folder, renderer.tokenizer(), shape);
//   if (teacher) use(teacher->load(device, dtype), teacher->identity());
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "config/run_config.h"
#include "context/prompt_renderer.h"
#include "model/adapter_files.h"
#include "model/causal_lm.h"

namespace antisd::inline cli {

struct TeacherModel {
  std::filesystem::path folder;
  ModelShape shape;

  CausalLm load(at::Device device, at::ScalarType dtype) const;
  BaseModel identity() const;  // path and fingerprint; reads all weights
  std::string text() const;    // "models/Qwen3-32B: 32762.1 M parameters, 64 layers, ..."
};

// Nothing if the teacher is the model itself. InputError if it is an adapter, has another
// vocabulary than the student's tokenizer, or too few positions for the responses.
std::optional<TeacherModel> find_teacher(const RunConfig& config,
                                         const std::filesystem::path& student,
                                         const Tokenizer& tokenizer,
                                         const ModelShape& student_shape);

}  // namespace antisd::inline cli
