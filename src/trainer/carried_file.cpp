#include "trainer/carried_file.h"

#include <array>
#include <cstring>

#include "core/error.h"
#include "io/safetensors.h"
#include "io/safetensors_writer.h"
#include "trainer/saved_state.h"

namespace antisd::inline trainer {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFile = "carried.safetensors";
constexpr std::int64_t kMostTokens = std::int64_t{1} << 31;     // no sum of them overflows
constexpr std::array kFinishes = {"stop", "length", "paused"};  // as in FinishReason

[[noreturn]] void refuse_carried(const fs::path& folder, const std::string& problem) {
  throw InputError(
      problem, {.where = (folder / kFile).string(), .remedy = "resume from another checkpoint"});
}

FinishReason finish_from(const std::string& name, const fs::path& folder) {
  for (std::size_t i = 0; i < kFinishes.size(); ++i)
    if (name == kFinishes[i]) return static_cast<FinishReason>(i);
  refuse_carried(folder, fmt::format("a carried response ended by '{}'", name));
}

std::int64_t tokens_in(const Response& response) {
  std::int64_t tokens = 0;
  for (const PolicySpan& span : response.policies)
    tokens += span.tokens;
  return tokens;
}

std::int64_t tokens_in(std::span<const OpenGroup> carried) {
  std::int64_t tokens = 0;
  for (const OpenGroup& group : carried)
    for (const Response& response : group.responses)
      tokens += tokens_in(response);
  return tokens;
}

template <typename T>
void write_field(SafetensorsWriter& writer, std::span<const OpenGroup> carried,
                 std::string_view name, std::vector<T> Response::*field) {
  for (const OpenGroup& group : carried)
    for (const Response& response : group.responses)
      writer.write(name, std::as_bytes(std::span(response.*field)));
}

template <typename T>
void read_field(const SafetensorsFile& file, const fs::path& folder, const std::string& name,
                TensorType type, std::vector<OpenGroup>& carried, std::vector<T> Response::*field) {
  const SafetensorsTensor* tensor = file.find(name);
  if (tensor == nullptr || tensor->type != type)
    refuse_carried(folder, fmt::format("it has no {} of type {}", name, name_of(type)));
  if (tensor->data.size() != static_cast<std::size_t>(tokens_in(carried)) * sizeof(T))
    refuse_carried(folder, fmt::format("{} has another number of tokens than state.json", name));
  const std::byte* at = tensor->data.data();
  for (OpenGroup& group : carried) {
    for (Response& response : group.responses) {
      std::vector<T>& values = response.*field;
      values.resize(static_cast<std::size_t>(tokens_in(response)));
      if (!values.empty()) std::memcpy(values.data(), at, values.size() * sizeof(T));
      at += values.size() * sizeof(T);
    }
  }
}

Response response_from(const Json& json, const fs::path& folder) {
  Response response;
  response.finish = finish_from(json.at("finish").get<std::string>(), folder);
  for (const Json& span : json.at("policies")) {
    response.policies.push_back({span.at(0).get<std::uint32_t>(), span.at(1).get<std::int64_t>()});
    const std::int64_t tokens = response.policies.back().tokens;
    if (tokens < 1 || tokens > kMostTokens)
      refuse_carried(folder, fmt::format("a policy wrote {} tokens of a response", tokens));
  }
  return response;
}

}  // namespace

Json to_json(std::span<const OpenGroup> carried) {
  Json groups = Json::array();
  for (const OpenGroup& group : carried) {
    Json responses = Json::array();
    for (const Response& response : group.responses) {
      Json policies = Json::array();
      for (const PolicySpan& span : response.policies)
        policies.push_back({span.step, span.tokens});
      responses.push_back({{"finish", kFinishes.at(static_cast<std::size_t>(response.finish))},
                           {"policies", policies}});
    }
    groups.push_back({{"problem", group.prompt.number},
                      {"step", group.prompt.step},
                      {"index", group.prompt.index},
                      {"responses", responses}});
  }
  return groups;
}

void write_carried(const fs::path& folder, std::span<const OpenGroup> carried) {
  if (carried.empty()) return;
  const std::vector<std::int64_t> shape = {tokens_in(carried)};
  SafetensorsWriter writer(folder / kFile, {{"ids", TensorType::kI32, shape},
                                            {"sampling_logp", TensorType::kF32, shape},
                                            {"raw_logp", TensorType::kF32, shape}});
  write_field(writer, carried, "ids", &Response::ids);
  write_field(writer, carried, "sampling_logp", &Response::sampling_logp);
  write_field(writer, carried, "raw_logp", &Response::raw_logp);
  writer.finish();
}

std::vector<OpenGroup> read_carried(const fs::path& folder, const Json& saved) {
  std::vector<OpenGroup> carried;
  read_saved([&] {
    for (const Json& group : saved) {
      OpenGroup& open = carried.emplace_back();
      open.prompt.number = group.at("problem").get<std::size_t>();
      open.prompt.step = group.at("step").get<std::uint32_t>();
      open.prompt.index = group.at("index").get<std::uint32_t>();
      for (const Json& response : group.at("responses"))
        open.responses.push_back(response_from(response, folder));
    }
  });
  if (carried.empty()) return carried;
  const SafetensorsFile file(folder / kFile);
  read_field(file, folder, "ids", TensorType::kI32, carried, &Response::ids);
  read_field(file, folder, "sampling_logp", TensorType::kF32, carried, &Response::sampling_logp);
  read_field(file, folder, "raw_logp", TensorType::kF32, carried, &Response::raw_logp);
  return carried;
}

}  // namespace antisd::inline trainer
