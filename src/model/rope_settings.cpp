#include "model/rope_settings.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "core/error.h"
#include "model/architecture.h"

namespace antisd::inline model {
namespace {

struct RopeFields {
  const Json& table;
  const std::string& where;

  // The value of a field that is present and not null.
  bool read(const char* name, double& value) const {
    const auto field = table.find(name);
    if (field == table.end() || field->is_null()) return false;
    if (!field->is_number() || !std::isfinite(field->get<double>())) wrong(name, *field);
    value = field->get<double>();
    return true;
  }

  void read_required(const char* name, double& value) const {
    if (read(name, value)) return;
    throw InputError(fmt::format("rope settings lack '{}'", name),
                     {.where = where, .remedy = "use the config.json that belongs to the weights"});
  }

  [[noreturn]] void wrong(const char* name, const Json& value) const {
    throw InputError(fmt::format("rope setting '{}' is {}", name, value.dump()),
                     {.where = where, .remedy = "this kind of rotary position is not supported"});
  }
};

double yarn_attention_factor(const RopeFields& fields, double factor) {
  double given = 0, mscale = 0, mscale_all = 0;
  if (fields.read("attention_factor", given)) return given;
  const auto scale = [&](double m) { return factor <= 1 ? 1.0 : 0.1 * m * std::log(factor) + 1.0; };
  fields.read("mscale", mscale);
  fields.read("mscale_all_dim", mscale_all);
  if (mscale != 0 && mscale_all != 0) return scale(mscale) / scale(mscale_all);
  return scale(1);
}

RopeSettings read_table(const Json& table, double theta, const Json& config,
                        const ModelShape& shape, const std::string& where) {
  const RopeFields fields{table, where};
  RopeSettings rope;
  rope.theta = theta;
  fields.read("rope_theta", rope.theta);
  double partial = 1;
  if (fields.read("partial_rotary_factor", partial) && partial != 1)
    fields.wrong("partial_rotary_factor", partial);
  std::string type = "default";
  for (const char* name : {"type", "rope_type"}) {
    const auto field = table.find(name);
    if (field == table.end() || field->is_null()) continue;
    if (!field->is_string()) fields.wrong(name, *field);
    type = field->get<std::string>();
  }
  if (type == "default") return rope;
  if (type != "linear" && type != "llama3" && type != "yarn") fields.wrong("rope_type", type);

  rope.original_positions = static_cast<double>(shape.max_positions);
  fields.read("original_max_position_embeddings", rope.original_positions);
  RopeFields{config, where}.read("original_max_position_embeddings", rope.original_positions);
  if (type == "yarn" && table.contains("factor") && table["factor"].is_null()) {
    rope.factor = static_cast<double>(shape.max_positions) / rope.original_positions;
  } else {
    fields.read_required("factor", rope.factor);
  }
  if (rope.factor <= 0) fields.wrong("factor", rope.factor);
  if (type == "linear") {
    rope.kind = RopeSettings::Kind::kLinear;
  } else if (type == "llama3") {
    rope.kind = RopeSettings::Kind::kLlama3;
    fields.read_required("low_freq_factor", rope.low_frequency_factor);
    fields.read_required("high_freq_factor", rope.high_frequency_factor);
    if (rope.high_frequency_factor <= rope.low_frequency_factor) {
      fields.wrong("high_freq_factor", rope.high_frequency_factor);
    }
  } else {
    rope.kind = RopeSettings::Kind::kYarn;
    double value = 0;
    if (fields.read("beta_fast", value) && value != 0) rope.beta_fast = value;
    if (fields.read("beta_slow", value = 0) && value != 0) rope.beta_slow = value;
    if (const auto truncate = table.find("truncate");
        truncate != table.end() && truncate->is_boolean()) {
      rope.truncate = truncate->get<bool>();
    }
    rope.attention_factor = yarn_attention_factor(fields, rope.factor);
  }
  return rope;
}

}  // namespace

RopeSettingsPair read_rope_settings(const Json& config, const ModelShape& shape,
                                    const std::string& where) {
  double theta = shape.architecture->rope_theta;
  RopeFields{config, where}.read("rope_theta", theta);
  const Json none = Json::object();
  const Json* table = &none;
  for (const char* name :
       {"rope_parameters", "rope_scaling"}) {  // the older name wins if both exist
    const auto field = config.find(name);
    if (field == config.end() || field->is_null()) continue;
    if (!field->is_object()) RopeFields{config, where}.wrong(name, *field);
    table = &*field;
  }
  if (table->contains("full_attention") || table->contains("sliding_attention")) {
    const auto part = [&](const char* name) {
      const auto field = table->find(name);
      if (field == table->end()) return read_table(none, theta, config, shape, where);
      if (!field->is_object()) RopeFields{*table, where}.wrong(name, *field);
      return read_table(*field, theta, config, shape, where);
    };
    return {part("full_attention"), part("sliding_attention")};
  }
  const RopeSettings full = read_table(*table, theta, config, shape, where);
  if (shape.architecture->scales_rope_in_windows) return {full, full};
  RopeSettings sliding;
  sliding.theta = full.theta;
  return {full, sliding};
}

std::vector<double> rope_frequencies(const RopeSettings& settings, std::int64_t head_dim) {
  const std::int64_t half = head_dim / 2;
  const double d = static_cast<double>(head_dim), pi = std::numbers::pi;
  std::vector<double> frequencies(half);
  for (std::int64_t i = 0; i < half; ++i) {
    frequencies[i] = std::pow(settings.theta, -2.0 * static_cast<double>(i) / d);
  }
  if (settings.kind == RopeSettings::Kind::kLinear) {
    for (double& f : frequencies)
      f /= settings.factor;
  } else if (settings.kind == RopeSettings::Kind::kLlama3) {
    // Long wavelengths are stretched, short ones kept, those between interpolated.
    const double longest = settings.original_positions / settings.low_frequency_factor;
    const double shortest = settings.original_positions / settings.high_frequency_factor;
    for (double& f : frequencies) {
      const double wave = 2 * pi / f;
      if (wave < shortest) continue;
      const double kept =
          wave > longest ? 0.0
                         : (settings.original_positions / wave - settings.low_frequency_factor) /
                               (settings.high_frequency_factor - settings.low_frequency_factor);
      f = (1 - kept) * f / settings.factor + kept * f;
    }
  } else if (settings.kind == RopeSettings::Kind::kYarn) {
    // The dimension that rotates `turns` times within the original length.
    const auto dimension = [&](double turns) {
      return d * std::log(settings.original_positions / (turns * 2 * pi)) /
             (2 * std::log(settings.theta));
    };
    double low = dimension(settings.beta_fast), high = dimension(settings.beta_slow);
    if (settings.truncate) low = std::floor(low), high = std::ceil(high);
    low = std::max(low, 0.0), high = std::min(high, d - 1);
    if (low == high) high += 0.001;
    for (std::int64_t i = 0; i < half; ++i) {
      const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
      frequencies[i] *= (1 - ramp) + ramp / settings.factor;
    }
  }
  return frequencies;
}

}  // namespace antisd::inline model
