#include "trainer/train_state.h"

#include <array>

#include "core/error.h"
#include "model/adapter_files.h"
#include "model/weights.h"
#include "trainer/carried_file.h"
#include "trainer/saved_state.h"

namespace antisd::inline trainer {
namespace {

namespace fs = std::filesystem;

constexpr std::array kPositions = {"warming_up", "open", "closed_low", "closed_high"};

// For readers of state.json; the gate itself uses `signal`.
Json statistic_json(const GateState& gate) {
  const std::optional<GateStatistic> chosen = chosen_statistic(gate);
  if (!chosen) return nullptr;
  return *chosen == GateStatistic::kMean ? "mean" : "median";
}

Json optional_number(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

std::optional<double> optional_number_from(const Json& json) {
  return json.is_null() ? std::nullopt : std::optional(json.get<double>());
}

GatePosition position_from(const std::string& name) {
  for (std::size_t i = 0; i < kPositions.size(); ++i) {
    if (name == kPositions[i]) return static_cast<GatePosition>(i);
  }
  throw InputError(fmt::format("the gate's saved position is '{}'", name),
                   {.remedy = "resume from another checkpoint"});
}

// Loads weights and optimizer, and what resuming and starting from another run have in common.
Json load_common(TrainState& state, const fs::path& checkpoint) {
  const Json saved = load_checkpoint(checkpoint, state.model, state.optimizer,
                                     state.base ? &*state.base : nullptr);
  read_saved([&] {
    state.prompts.restore(saved.at("prompts"));
    state.reference = saved.at("reference").get<std::string>();
  });
  return saved;
}

std::string teacher_text(const std::optional<BaseModel>& teacher) {
  return teacher ? fmt::format("{} (weights {})", teacher->path.string(), teacher->fingerprint)
                 : "the model itself";
}

// The same files in another place are the same teacher.
void check_teacher(const TrainState& state, const Json& saved, const fs::path& checkpoint) {
  const std::optional<BaseModel> before = read_saved([&]() -> std::optional<BaseModel> {
    if (!saved.contains("teacher")) return std::nullopt;
    const Json& teacher = saved.at("teacher");
    return BaseModel{teacher.at("path").get<std::string>(),
                     teacher.at("fingerprint").get<std::string>()};
  });
  const std::optional<BaseModel>& now = state.other_teacher;
  if (before.has_value() == now.has_value() && (!now || before->fingerprint == now->fingerprint))
    return;
  throw InputError(fmt::format("the run's teacher was {}, now it is {}", teacher_text(before),
                               teacher_text(now)),
                   {.where = checkpoint.string(),
                    .remedy = "set method.teacher.path back, or start a new run with "
                              "train.init_from"});
}

}  // namespace

Json to_json(const GateState& gate) {
  return {{"position", kPositions.at(static_cast<std::size_t>(gate.position))},
          {"steps", gate.steps},
          {"statistic", statistic_json(gate)},
          {"warmup", gate.warmup},
          {"warmup_means", gate.warmup_means},
          {"h_warm", optional_number(gate.h_warm)},
          {"too_small", gate.too_small},
          {"previous", optional_number(gate.previous)},
          {"signal", gate.signal}};
}

GateState gate_state_from(const Json& json) {
  return read_saved([&] {
    return GateState{.position = position_from(json.at("position").get<std::string>()),
                     .steps = json.at("steps").get<std::int64_t>(),
                     .warmup = json.at("warmup").get<std::vector<double>>(),
                     // Checkpoints from before statistic = auto do not have these two.
                     .warmup_means = json.value("warmup_means", std::vector<double>()),
                     .h_warm = optional_number_from(json.at("h_warm")),
                     .too_small = json.value("too_small", false),
                     .previous = optional_number_from(json.at("previous")),
                     .signal = json.at("signal").get<std::string>()};
  });
}

Json to_json(const Moments& moments) {
  Json json = {{"count", moments.count},
               {"sum", moments.sum},
               {"sum_squares", moments.sum_squares},
               {"negative", moments.negative}};
  if (moments.count > 0) {  // without values they are infinite, which JSON cannot hold
    json["min"] = moments.min;
    json["max"] = moments.max;
  }
  return json;
}

Moments moments_from(const Json& json) {
  return read_saved([&] {
    Moments moments;
    moments.count = json.at("count").get<std::int64_t>();
    moments.sum = json.at("sum").get<double>();
    moments.sum_squares = json.at("sum_squares").get<double>();
    moments.negative = json.at("negative").get<std::int64_t>();
    if (moments.count > 0) {
      moments.min = json.at("min").get<double>();
      moments.max = json.at("max").get<double>();
    }
    return moments;
  });
}

CheckpointParts parts_of(const TrainState& state, fs::path origin) {
  return {.model = state.model,
          .optimizer = state.optimizer,
          .origin = std::move(origin),
          .teacher = state.teacher ? &state.teacher->average() : nullptr,
          .base = state.base ? &*state.base : nullptr,
          .write_more = [&state](const fs::path& folder) { write_carried(folder, state.carried); }};
}

Json to_json(const TrainState& state) {
  Json saved = {{"step", state.step},
                {"steps_before", state.steps_before},
                {"skipped", state.skipped},
                {"prompts", state.prompts.state()},
                {"gate", to_json(state.gate.state())},
                {"warmup_u", to_json(state.warmup_u)},
                {"reference", state.reference},
                {"best", to_json(state.best)}};
  if (!state.carried.empty()) saved["carried"] = to_json(state.carried);
  if (state.other_teacher)
    saved["teacher"] = {{"path", state.other_teacher->path.string()},
                        {"fingerprint", state.other_teacher->fingerprint}};
  return saved;
}

void resume(TrainState& state, const fs::path& checkpoint) {
  const Json saved = load_common(state, checkpoint);
  check_teacher(state, saved, checkpoint);
  if (state.teacher) {
    if (!fs::exists(checkpoint / "teacher")) {
      throw InputError("the run had no teacher with its own weights until now",
                       {.where = checkpoint.string(),
                        .remedy = "set method.sdpo.teacher_ema as it was, or start a new run with "
                                  "train.init_from"});
    }
    if (state.model.shape().lora) {
      load_adapter(state.teacher->average(), read_adapter_config(checkpoint / "teacher"));
    } else {
      load_weights(state.teacher->average(), checkpoint / "teacher");
    }
    state.teacher->refresh();
  }
  read_saved([&] {
    state.step = saved.at("step").get<std::int64_t>();
    state.steps_before = saved.at("steps_before").get<std::int64_t>();
    state.skipped = saved.at("skipped").get<std::int64_t>();
    state.gate.restore(gate_state_from(saved.at("gate")));
    state.warmup_u = moments_from(saved.at("warmup_u"));
    state.best = best_checkpoint_from(saved.at("best"));
  });
  state.carried = read_carried(checkpoint, saved.value("carried", Json::array()));
}

void start_from(TrainState& state, const fs::path& checkpoint) {
  const Json saved = load_common(state, checkpoint);
  if (state.teacher) state.teacher->follow(state.model, state.optimizer, /*rate=*/1);
  read_saved([&] {
    state.steps_before =
        saved.at("steps_before").get<std::int64_t>() + saved.at("step").get<std::int64_t>();
  });
}

}  // namespace antisd::inline trainer
