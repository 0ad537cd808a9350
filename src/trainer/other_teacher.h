// A teacher that is another model than the student: frozen, and on the device only while it scores.
// Otherwise its weights rest in pinned memory of the host, so that sampling and updates have the
// device for themselves. On a CPU they stay where they are.
//
//   OtherTeacher teacher(load_model(folder, device, dtype), OtherTeacher::rest_for(device));
//   {
//     const TeacherInUse here(teacher);
//     score(teacher.model(), requests);
//   }
#pragma once

#include <vector>

#include "model/causal_lm.h"

namespace antisd::inline trainer {

enum class TeacherRest { kWhereItIs, kOnHost };

class OtherTeacher {
 public:
  static TeacherRest rest_for(at::Device device) {
    return device.is_cpu() ? TeacherRest::kWhereItIs : TeacherRest::kOnHost;
  }

  // RunError if the host's memory cannot be pinned.
  OtherTeacher(CausalLm model, TeacherRest rest);

  // Its shape is always there, its weights while a TeacherInUse lives.
  const CausalLm& model() const { return model_; }

 private:
  friend class TeacherInUse;
  void bring();  // from the host; if the device has no room, nothing is left there
  void free() noexcept;

  CausalLm model_;
  std::vector<at::Tensor> at_rest_;  // values by block; empty: they stay where they are
};

class TeacherInUse {
 public:
  explicit TeacherInUse(OtherTeacher& teacher) : teacher_(teacher) { teacher_.bring(); }
  ~TeacherInUse() { teacher_.free(); }
  TeacherInUse(const TeacherInUse&) = delete;
  TeacherInUse& operator=(const TeacherInUse&) = delete;

 private:
  OtherTeacher& teacher_;
};

}  // namespace antisd::inline trainer
