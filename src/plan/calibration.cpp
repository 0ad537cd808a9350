#include "plan/calibration.h"

#include <cctype>
#include <cmath>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "core/check.h"
#include "core/error.h"
#include "plan/calibration_text.h"

namespace antisd::inline plan {
namespace {

constexpr std::pair<const char*, double Rates::*> kRates[] = {
    {"products", &Rates::products},
    {"elementwise", &Rates::elementwise},
    {"head_forward", &Rates::head_forward},
    {"head_backward", &Rates::head_backward},
    {"logit", &Rates::logit},
    {"attention_even", &Rates::attention_even},
    {"attention_even_backward", &Rates::attention_even_backward},
    {"attention", &Rates::attention},
    {"attention_backward", &Rates::attention_backward},
    {"experts", &Rates::experts},
    {"routed", &Rates::routed},
    {"adamw", &Rates::adamw},
    {"adamw_start", &Rates::adamw_start},
    {"read", &Rates::read},
    {"decode_layer", &Rates::decode_layer},
    {"sampling_start", &Rates::sampling_start},
    {"exchange", &Rates::exchange},
    {"exchange_start", &Rates::exchange_start},
    {"fetch", &Rates::fetch},
    {"reserve", &Rates::reserve},
    {"link_share", &Rates::link_share},
    {"host_copy", &Rates::host_copy},
    {"host_stream", &Rates::host_stream},
    {"disk", &Rates::disk},
    {"messages", &Rates::messages}};

// How much faster the card is at what a rate depends on.
double speed_up(const std::string& scales, const Card& card, const Card& measured) {
  if (scales == "flops") return card.flops / measured.flops;
  if (scales == "memory") return card.read / measured.read;
  ANTISD_CHECK(scales == "fixed");
  return 1;
}

// Whether `part` is a word of the name: "H20" is not one of "NVIDIA H200".
bool names(std::string_view gpu_name, std::string_view part) {
  const std::size_t at = gpu_name.find(part);
  if (at == std::string_view::npos) return false;
  const std::size_t end = at + part.size();
  return end == gpu_name.size() || !std::isalnum(static_cast<unsigned char>(gpu_name[end]));
}

}  // namespace

std::vector<Json> calibration_rows(std::string_view kind) {
  std::vector<Json> rows;
  std::istringstream lines{std::string(calibration_text())};
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    Json row = parse_json(line, "calibration.jsonl");
    if (row.contains(std::string(kind))) rows.push_back(std::move(row));
  }
  return rows;
}

const std::vector<Card>& cards() {
  static const std::vector<Card> all = [] {
    std::vector<Card> found;
    for (const Json& row : calibration_rows("card")) {
      found.push_back({.name = row.at("card").get<std::string>(),
                       .gpu = row.at("gpu").get<std::string>(),
                       .memory = row.at("memory_gib").get<double>() * (1 << 30),
                       .flops = row.at("tflops").get<double>() * 1e12,
                       .read = row.at("read_tb_s").get<double>() * 1e12,
                       .link = row.at("link_gb_s").get<double>() * 1e9});
    }
    return found;
  }();
  return all;
}

const Card& find_card(const std::string& name) {
  std::string known;
  for (const Card& card : cards()) {
    if (card.name == name) return card;
    known += (known.empty() ? "" : ", ") + card.name;
  }
  throw InputError(fmt::format("there is no card '{}'", name),
                   {.where = "--device", .remedy = "known: " + known});
}

const Card* card_of_gpu(std::string_view gpu_name, double memory) {
  const Card* found = nullptr;
  for (const Card& card : cards()) {
    if (!names(gpu_name, card.gpu)) continue;
    if (!found || std::abs(card.memory - memory) < std::abs(found->memory - memory)) found = &card;
  }
  return found;
}

Rates rates_of(const Card& card) {
  Rates rates;
  std::size_t set = 0;
  for (const Json& row : calibration_rows("rate")) {
    const Card& measured = find_card(row.at("device").get<std::string>());
    const double faster = speed_up(row.at("scales").get<std::string>(), card, measured);
    const auto value = row.at("value").get<double>();
    const bool is_time = row.at("unit") == "s";
    for (const auto& [name, field] : kRates) {
      if (row.at("rate") != name) continue;
      rates.*field = is_time ? value / faster : value * faster;
      ++set;
    }
  }
  ANTISD_CHECK_EQ(set, std::size(kRates));
  return rates;
}

}  // namespace antisd::inline plan
