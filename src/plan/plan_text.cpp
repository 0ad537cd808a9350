// A plan as text and as JSON.
#include <fmt/format.h>

#include "plan/run_plan.h"

namespace antisd::inline plan {
namespace {

constexpr MemoryTime kPhases[] = {MemoryTime::kRollout, MemoryTime::kScoring, MemoryTime::kUpdate};

std::string size_of(double bytes) {
  return bytes < (1 << 27) ? fmt::format("{:8.2f} MiB", bytes / (1 << 20))
                           : fmt::format("{:8.2f} GiB", bytes / (1 << 30));
}

// What a phase holds; sampling with the cache that the card gives it.
double phase_bytes(const RunPlan& plan, MemoryTime phase) {
  return phase == MemoryTime::kRollout
             ? plan.memory.beside_cache() + plan.cache_bytes
             : plan.memory.total(MemoryTime::kAlways) + plan.memory.total(phase);
}

std::string line(std::string_view label, const std::string& text) {
  return fmt::format("{:<12} {}", label, text);
}

void add_step_lines(const RunPlan& plan, std::vector<std::string>& lines) {
  const StepTime& step = *plan.step;
  const auto seconds = [&](double value, const std::string& what) {
    lines.push_back(line("seconds", fmt::format("{:8.1f}  {}", value, what)));
  };
  seconds(step.sampling_seconds(),
          fmt::format("sampling: {} decode steps, {} tokens of the slowest rank; {:.1f} on average "
                      "over the ranks; {} preemptions",
                      step.sampling.steps, step.sampling.new_tokens, step.sampling_mean,
                      step.sampling.preemptions));
  seconds(step.scoring, "scoring");
  seconds(step.update,
          fmt::format("update: {} micro-batches in {} rounds", step.micro_batches, step.rounds) +
              (step.streaming > 0 ? fmt::format("; {:.1f} more by optim.offload", step.streaming)
                                  : ""));
  seconds(step.traffic.exposed,
          fmt::format("collectives, and {:.1f} hidden behind the update", step.traffic.hidden));
  seconds(step.seconds(), "a step");
  seconds(plan.save_exposed, fmt::format("a checkpoint, every {} steps; {:.1f} to write it",
                                         plan.saves > 0 ? plan.steps / plan.saves : 0, plan.save));
  if (plan.evaluations > 0)
    seconds(plan.evaluation, fmt::format("an evaluation, {} of them", plan.evaluations));
  lines.push_back(line("hours", fmt::format("{:8.1f}  {} steps", plan.hours(), plan.steps)));
}

std::string sources() {
  int measured = 0, sheets = 0, assumed = 0;
  for (const Json& rate : calibration_rows("rate")) {
    (rate.at("source") == "measured"     ? measured
     : rate.at("source") == "data sheet" ? sheets
                                         : assumed) += 1;
  }
  return fmt::format(
      "{} rates measured on an H200 (bench/RESULTS.md), {} published, {} assumed; other cards are "
      "scaled by their data sheets",
      measured, sheets, assumed);
}

}  // namespace

std::vector<std::string> memory_lines(const MemoryPlan& memory) {
  std::vector<std::string> lines;
  for (const MemoryPart& part : memory.parts) {
    lines.push_back(line("memory", fmt::format("{}  {:<17} {:<8}  {}", size_of(part.bytes),
                                               part.name, phase_name(part.when), part.how)));
  }
  return lines;
}

std::vector<std::string> plan_lines(const RunPlan& plan) {
  std::vector<std::string> lines;
  for (const MemoryTime phase : kPhases)
    lines.push_back(
        line("memory", fmt::format("{}  in all            {:<8}", size_of(phase_bytes(plan, phase)),
                                   phase_name(phase))));
  std::string shards, offloads;
  for (const StateForm& form : plan.forms) {
    const auto add = [&](std::string& text, const std::string& name) {
      text += fmt::format("{}{} {:.1f}", text.empty() ? "" : ", ", name, form.needed / (1 << 30));
    };
    const char* const good = form.whole_between ? "" : " for good";
    if (form.offload == plan.ranks.offload) add(shards, shard_name(form.shard) + std::string(good));
    if (form.shard == plan.ranks.shard) add(offloads, offload_name(form.offload));
  }
  const auto chosen = [](bool is) { return is ? " (not set: chosen by memory)" : ""; };
  lines.push_back(
      line("dist.shard", fmt::format("{}{}; GiB needed: {}", shard_name(plan.ranks.shard),
                                     chosen(plan.shard_chosen), shards)));
  lines.push_back(
      line("offload", fmt::format("{}{}; GiB needed: {}", offload_name(plan.ranks.offload),
                                  chosen(plan.offload_chosen), offloads)));
  lines.push_back(
      line("fits", fmt::format("{}: {:.1f} GiB needed, {:.1f} of a card", plan.fits ? "yes" : "NO",
                               plan.needed / (1 << 30), plan.available / (1 << 30))));
  lines.push_back(line("layers", recomputing_text(plan.memory)));
  lines.push_back(line(
      "GPUs", plan.smallest_gpus > 0
                  ? fmt::format("{} of these cards are the fewest that fit", plan.smallest_gpus)
                  : "no number of these cards up to 256 fits"));
  lines.push_back(line("cache", fmt::format("{} tokens of keys and values", plan.cache_tokens)));
  lines.push_back(line("lengths", plan.lengths));
  if (plan.step) add_step_lines(plan, lines);
  lines.push_back(line("limit", plan.limit));
  for (const std::string& text : plan.advice)
    lines.push_back(line("would help", text));
  for (const std::string& text : plan.notes)
    lines.push_back(line("note", text));
  lines.push_back(line("predicted", sources()));
  return lines;
}

std::string text_of(const RunPlan& plan) {
  const Machine& machine = plan.machine;
  const std::string network = machine.gpus > machine.per_node
                                  ? fmt::format(", {} in a node, {:.0f} GB/s between nodes",
                                                machine.per_node, machine.network / 1e9)
                                  : "";
  std::string text =
      line("plan", fmt::format("{}, {:.2f} billion parameters, on {} x {}{}", plan.model,
                               plan.parameters / 1e9, machine.gpus, machine.card.name, network)) +
      "\n";
  for (const auto& lines : {memory_lines(plan.memory), plan_lines(plan)})
    for (const std::string& one : lines)
      text += one + "\n";
  return text;
}

Json json_of(const RunPlan& plan) {
  Json memory = {{"needed", plan.needed}, {"available", plan.available}};
  for (const MemoryPart& part : plan.memory.parts) {
    const bool cache = part.when == MemoryTime::kRollout && part.name == "keys and values";
    memory["parts"][phase_name(part.when)][part.name] = cache ? plan.cache_bytes : part.bytes;
  }
  memory["phases"]["always"] = plan.memory.total(MemoryTime::kAlways);
  for (const MemoryTime phase : kPhases)
    memory["phases"][phase_name(phase)] = phase_bytes(plan, phase);
  Json forms, offloads;
  for (const StateForm& form : plan.forms) {
    const Json described = {{"needed", form.needed},
                            {"on_host", form.on_host},
                            {"fits", form.fits},
                            {"whole_between", form.whole_between}};
    if (form.offload == plan.ranks.offload) forms[shard_name(form.shard)] = described;
    if (form.shard == plan.ranks.shard) offloads[offload_name(form.offload)] = described;
  }
  Json report = {{"fits", plan.fits},
                 {"step_seconds", plan.step ? Json(plan.step_seconds()) : Json(nullptr)},
                 {"ranks", plan.ranks.size},
                 {"per_node", plan.machine.per_node},
                 {"device", plan.machine.card.name},
                 {"model", plan.model},
                 {"parameters", plan.parameters},
                 {"shard", shard_name(plan.ranks.shard)},
                 {"shard_chosen", plan.shard_chosen},
                 {"whole_between", plan.ranks.whole_between},
                 {"forms", forms},
                 {"offload", offload_name(plan.ranks.offload)},
                 {"offload_chosen", plan.offload_chosen},
                 {"offloads", offloads},
                 {"memory", memory},
                 {"layers", plan.memory.layers},
                 {"kept_layers", plan.memory.kept_layers},
                 {"cache_tokens", plan.cache_tokens},
                 {"smallest_gpus", plan.smallest_gpus > 0 ? Json(plan.smallest_gpus) : Json()},
                 {"lengths", plan.lengths},
                 {"limit", plan.limit},
                 {"advice", plan.advice},
                 {"notes", plan.notes}};
  if (plan.step) {
    const StepTime& step = *plan.step;
    report["seconds"] = {{"sampling", step.sampling_seconds()},
                         {"sampling_mean", step.sampling_mean},
                         {"longest_response", step.sampling.longest},
                         {"scoring", step.scoring},
                         {"update", step.update},
                         {"streaming", step.streaming},
                         {"collectives_exposed", step.traffic.exposed},
                         {"collectives_hidden", step.traffic.hidden},
                         {"saving", plan.save_exposed},
                         {"writing", plan.save},
                         {"evaluation", plan.evaluation}};
    report["micro_batches"] = step.micro_batches;
    report["preemptions"] = step.sampling.preemptions;
    report["hours"] = plan.hours();
  }
  return report;
}

}  // namespace antisd::inline plan
