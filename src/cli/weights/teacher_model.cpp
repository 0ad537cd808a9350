#include "cli/weights/teacher_model.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/error.h"
#include "hub/cache.h"
#include "model/weights.h"
#include "text/tokenizer/vocabulary_fingerprint.h"

namespace antisd::inline cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kKey = "method.teacher.path";

std::string token_text(const std::optional<std::string>& token) {
  return token ? fmt::format("'{}'", *token) : "not there";
}

void check_vocabulary(const fs::path& student, const Tokenizer& own, const fs::path& teacher) {
  const Tokenizer other = Tokenizer::load(teacher);
  const std::string ours = vocabulary_fingerprint(own), theirs = vocabulary_fingerprint(other);
  if (ours == theirs) return;
  const VocabularyDifference first = first_difference(own, other);
  throw InputError(
      fmt::format("the teacher {} has another vocabulary ({}) than the student {} ({}): token {} "
                  "is {} in the teacher's and {} in the student's",
                  teacher.string(), theirs, student.string(), ours, first.id,
                  token_text(first.second), token_text(first.first)),
      {.where = kKey,
       .remedy = "use a teacher of the student's family: it scores the student's own token ids"});
}

void check_size(const RunConfig& config, const ModelShape& student, const TeacherModel& teacher,
                const Tokenizer& tokenizer) {
  if (tokenizer.vocabulary_size() > teacher.shape.vocabulary) {
    throw InputError(
        fmt::format("the tokenizer has {} tokens, the teacher {} has {} rows for them",
                    tokenizer.vocabulary_size(), teacher.folder.string(), teacher.shape.vocabulary),
        {.where = kKey, .remedy = "its tokenizer and weights do not belong together"});
  }
  const std::int64_t longest = std::min(config.rollout.max_sequence_tokens, student.max_positions);
  if (longest <= teacher.shape.max_positions) return;
  throw InputError(
      fmt::format("the teacher {} has {} positions, and prompt and response may have {}",
                  teacher.folder.string(), teacher.shape.max_positions, longest),
      {.where = kKey,
       .remedy = fmt::format("set rollout.max_sequence_tokens to at most {}",
                             teacher.shape.max_positions)});
}

}  // namespace

CausalLm TeacherModel::load(at::Device device, at::ScalarType dtype) const {
  return load_model(folder, device, dtype);
}

BaseModel TeacherModel::identity() const {
  return identify_base(folder);
}

std::string TeacherModel::text() const {
  return fmt::format("{}: {:.1f} M parameters, {} layers, width {}", folder.string(),
                     static_cast<double>(shape.parameter_count()) / 1e6, shape.layers.size(),
                     shape.hidden);
}

std::optional<TeacherModel> find_teacher(const RunConfig& config, const fs::path& student,
                                         const Tokenizer& tokenizer,
                                         const ModelShape& student_shape) {
  if (config.method.teacher.path.empty()) return std::nullopt;
  TeacherModel teacher{.folder = model_folder(config.method.teacher.path), .shape = {}};
  if (is_adapter_directory(teacher.folder)) {
    throw InputError(fmt::format("{} is an adapter, not a whole model", teacher.folder.string()),
                     {.where = kKey, .remedy = "merge it first (`antisd merge`)"});
  }
  teacher.shape = read_model_shape(teacher.folder / "config.json");
  check_vocabulary(student, tokenizer, teacher.folder);
  check_size(config, student_shape, teacher, tokenizer);
  return teacher;
}

}  // namespace antisd::inline cli
