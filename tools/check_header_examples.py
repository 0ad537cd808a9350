#!/usr/bin/env python3
"""Compiles the examples at the top of headers, so that they stay right when the code changes.

    python3 tools/check_header_examples.py build [HEADER...]

An example is a run of comment lines in the header's opening comment that start with "//   " and
follow an empty "//" line. It becomes the body of a function in a generated source; one source holds
the examples of layers without torch, one those with it, and the compiler checks their syntax and
types with the flags of build/compile_commands.json. Errors name the header and its line.

What an example does not declare is declared here: NAMES gives the parameters of its function, CALLS
are placeholder functions that take and return anything. "{ ... }" stands for an empty body, ") ..."
for an empty statement, ", ...}" for further elements. NOT_CODE lists examples that are not C++, and
why.
"""
import json
import pathlib
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from check_includes import SOURCE, layer_of, read_layers

# Placeholder functions: they take and return anything.
CALLS = ("backward bytes_of copy done gather launch log print request_of run save send set_threads show "
         "step stop submit update use wait_a_little work write").split()

# Names that many headers' examples use, with the header that declares their type.
COMMON = {
    False: ["config/run_config.h const RunConfig& config", "algo/method.h const Method& method",
            "algo/gate.h EntropyGate& gate", "algo/response.h ResponseBatch& batch",
            "data/prompts.h const PromptBatch& prompts", "run/metrics/console.h Console& console",
            "run/metrics/metric_set.h MetricSet& metrics", "run/recorder.h Recorder& recorder",
            "text/tokenizer/tokenizer.h const Tokenizer& tokenizer",
            "context/prompt_renderer.h const PromptRenderer& renderer",
            "dist/communicator.h Communicator& ranks"],
    True: ["model/causal_lm.h CausalLm& model", "optim/adamw.h AdamW& optimizer",
           "trainer/train_state.h TrainState& state"],
}

# Parameters of an example's function.
NAMES = {
    "algo/gate.h": "std::vector<float> values",
    "algo/gate_signal.h": "std::vector<TokenScores> teacher, std::vector<TokenScores> student",
    "algo/named_sums.h": "double t, double s",
    "algo/response.h": "std::size_t p, std::size_t i",
    "algo/rollout_correction.h": "std::vector<float> old_logp, std::size_t r, std::size_t t, double loss",
    "algo/shaping.h": "std::vector<float> values, Moments warmup_u, std::size_t r, std::vector<float> s, "
                      "MeanOver mean",
    "algo/token_divergence.h": "std::vector<double> student_logp, std::vector<double> teacher_logp, "
                               "std::vector<double> p, std::vector<double> q",
    "cli/finite_number.h": "CLI::App& app, double& temperature",
    "cli/processes.h": "CLI::App& app, std::function<int()> visible_gpus",
    "cli/tensor_half.h": "CLI::App& app",
    "cli/weights/microscope.h": "ModelOptions model_options, std::optional<std::int64_t> samples, "
                        "std::vector<LookRequest> rows, Microscope::OnBad on_bad, Analysis& analysis",
    "cli/weights/rank_session.h": "std::function<int(Communicator&)> train_as_one_of",
    "cli/weights/shard_choice.h": "at::Device device, at::ScalarType dtype, Place place",
    "cli/weights/step_threads.h": "ModelOptions options, Trainer& trainer",
    "cli/weights/teacher_model.h": "std::filesystem::path student_folder, ModelShape shape, "
                                   "at::Device device, at::ScalarType dtype",
    "config/config_changes.h": "RunConfig& before, RunConfig& now, std::filesystem::path run",
    "context/context_builder.h": "Json metrics",
    "context/prompt_renderer.h": "std::filesystem::path path, std::uint32_t step, std::vector<Problem> problems, "
                                 "PromptStream& stream",
    "core/error.h": "std::filesystem::path path",
    "core/faults/fault_injection.h": "std::string folder",
    "core/rng.h": "std::uint64_t seed",
    "core/thread_pool.h": "std::vector<int> rows",
    "data/chat_document.h": "std::filesystem::path path, Json row",
    "data/data_set.h": "std::filesystem::path folder",
    "data/documents.h": "DocumentText text, std::function<void(const std::string&)> report",
    "data/overlap.h": "std::vector<std::string> benchmark_texts, std::vector<std::string> training_texts",
    "data/prompt_stream.h": "PromptSet& prompts, Json checkpoint",
    "dist/agreement.h": "std::function<void()> score_own_share, std::function<std::string()> sample_own_share",
    "dist/communicator.h": "Anything own, Anything received, std::int64_t part_bytes, "
                           "double own_tokens",
    "dist/group/process_group.h": "std::string revision, std::function<void(Communicator&)> train",
    "dist/in_process.h": "std::vector<double> total",
    "dist/liveness.h": "Store& store, std::function<bool()> arrived",
    "dist/message.h": "std::vector<std::int32_t> ids, std::string text",
    "dist/rendezvous.h": "Store& store",
    "dist/roll_call.h": "std::vector<Beat> beats",
    "dist/store.h": "Store& store",
    "dist/line_relay.h": "UniqueFd read_end",
    "dist/rank_starter.h": "SignalPipe& signals",
    "eval/evaluator.h": "std::vector<TokenId> stop_ids",
    "eval/results/bench_rows.h": "std::filesystem::path folder, Json settings, "
                                 "std::vector<SampleRow> samples_of_problem_7",
    "eval/results/interval.h": "std::vector<ProblemCount> after, std::vector<ProblemCount> before",
    "eval/results/summary.h": "Json settings, std::vector<SampleRow> rows, std::filesystem::path folder",
    "inference/decoder.h": "Decoder& decoder, std::int32_t token, std::int32_t position, "
                           "std::vector<std::int32_t> pages, RandomPlace place",
    "inference/engine_memory.h": "ModelShape shape",
    "inference/finite_scores.h": "std::vector<ScoreRequest> requests, std::vector<std::string> names",
    "inference/live_engine.h": "std::vector<TokenId> ids, bool client_left",
    "inference/response_pass.h": "std::vector<TokenId> prompt_ids, std::vector<TokenId> response_ids",
    "inference/rollout_engine.h": "std::vector<TokenId> prompt_ids, TokenId eos",
    "inference/scheduler.h": "PageLedger& pages, SchedulerLimits limits, std::vector<GroupShape> groups, bool stopped",
    "inference/scorer.h": "std::vector<TokenId> prompt_ids, std::vector<TokenId> response_ids",
    "inference/together.h": "std::vector<ScoreRequest> requests, ScoreOptions options",
    "inference/token_runs.h": "std::vector<RunItem> items",
    "io/atomic_file.h": "std::string header, std::span<const std::byte> bytes",
    "io/checksum.h": "std::string header, std::span<const std::byte> bytes, Json record",
    "io/digest.h": "std::span<const std::byte> bytes",
    "io/http/event_loop.h": "int socket, bool done",
    "io/http/request.h": "std::string bytes",
    "io/http/response.h": "std::string text, std::string prompt, HttpStream stream",
    "io/regular_file.h": "std::filesystem::path model",
    "io/safetensors_writer.h": "std::vector<TensorSpec> specs",
    "model/activation_bytes.h": "ModelShape shape, at::ScalarType dtype, double tokens",
    "model/adapted_shape.h": "std::filesystem::path path",
    "model/adapter_files.h": "std::filesystem::path base",
    "model/architecture.h": "ModelShape shape, ResidualStream& stream, LayerWeights weights, LayerInputs inputs",
    "model/causal_lm.h": "std::vector<std::vector<std::int32_t>> sequences, at::Tensor targets, double temperature",
    "model/config_fields.h": "Json config, ModelShape shape",
    "model/layer_source.h": "LayerSource* source, std::size_t layer",
    "model/linear.h": "LayerWeights w, at::Tensor x, ResidualStream& stream, at::Tensor mixed",
    "model/parameter_spec.h": "ModelShape shape, std::int64_t elements",
    "model/parameter_store.h": "ModelShape shape",
    "model/residual_stream.h": "ResidualStream& x, LayerWeights w, double eps, LayerInputs in",
    "ops/host_memory.h": "double bytes, std::int64_t elements",
    "ops/lora.h": "at::Tensor x, at::Tensor weight, at::Tensor bias, LoraWeights adapter",
    "ops/paged_attention.h": "at::Tensor q, at::Tensor k, at::Tensor v, at::Tensor slots, PagedKv kv, "
                             "PageTable table, std::int64_t window, double scale",
    "ops/panels.h": "Panels x, float* norm, double eps, float* weight, float* bias, std::int64_t out",
    "ops/quantized_linear.h": "at::Tensor x, QuantizedWeight w, at::Tensor bias",
    "ops/quantized_weight.h": "at::Tensor values",
    "ops/sampling.h": "at::Tensor logits, std::int64_t vocabulary, CounterRng rng, at::Tensor places",
    "ops/stream_norm.h": "at::Tensor stream, at::Tensor x, at::Tensor weight, at::Tensor bias, "
                         "at::Tensor norm_weight, double eps, at::Tensor y, "
                         "std::function<at::Tensor(at::Tensor)> layer",
    "ops/tensor_errors.h": "int status, std::function<int()> command",
    "ops/tile_product.h": "std::int64_t rows, std::int64_t keys, std::int64_t dim, float* q, "
                          "std::int64_t q_stride, float* k_transposed, float* scores",
    "optim/adamw.h": "std::vector<std::pair<int, at::Tensor>> rounds, Schedule schedule, std::int64_t step",
    "optim/gradient_fold.h": "ParameterStore& parameters, std::vector<at::Tensor> losses",
    "optim/gradient_sum.h": "ParameterStore& parameters, Teams& teams, int rounds, int active, "
                            "at::Tensor loss",
    "optim/streamed_update.h": "ParameterStore& parameters, std::vector<UpdatedElements> elements, AdamWFactors factors",
    "optim/weight_shards.h": "WeightShards& shards, at::Tensor loss, std::function<at::Tensor()> forward",
    "plan/pass_time.h": "ModelShape shape, Rates rates, std::vector<PassSequence> sequences",
    "plan/plan_input.h": "ModelShape shape, Machine machine",
    "plan/run_plan.h": "ModelShape shape, Lengths lengths",
    "plan/sampling_time.h": "PassTime pass_time, std::vector<GroupLengths> groups",
    "plan/step_time.h": "ModelShape shape, Machine machine, Lengths lengths",
    "report/inspect/analysis.h": "std::vector<Inspection> inspections",
    "report/inspect/clustered_means.h": "std::int64_t id, std::int64_t cluster, double u",
    "report/inspect/inspection.h": "Response response",
    "report/inspect/token_text.h": "std::vector<TokenId> ids",
    "report/line_tail.h": "Folder run, std::vector<std::string> rows",
    "report/metric_table.h": "std::int64_t width",
    "report/page/html.h": "std::string name, Json rows",
    "report/row_fields.h": "std::string line",
    "report/run_set.h": "std::int64_t version",
    "report/sweep/job_queue.h": "std::vector<JobSpec> jobs, bool stop",
    "hub/fetch/fetch.h": "FetchWatch watch",
    "hub/fetch/http_client.h": "std::string token, std::string url",
    "hub/fetch/repo_folder.h": "RepoName repo, std::string etag, std::string commit, "
                               "std::function<void()> waiting",
    "report/sweep/outcome.h": "std::vector<PlannedRun> runs",
    "report/sweep/sweep.h": "SweepSettings settings, LiveTable& table",
    "reward/code/interpreter_pool.h": "CodeGraderOptions options, std::string source, std::string input",
    "reward/code/sandbox.h": "std::string script",
    "reward/context_command.h": "std::vector<Json> requests",
    "reward/grading_stage.h": "std::unique_ptr<Grader> grader, std::size_t p, Problem problem, ResponseGroup group",
    "reward/line_process.h": "LineProcess::Clock::time_point deadline",
    "reward/python_reward.h": "std::vector<Json> rows",
    "reward/reward_sum.h": "std::unique_ptr<Grader> grader",
    "run/checkpoint/checkpoint.h": "std::filesystem::path run, std::filesystem::path origin, Json saved_state, "
                                   "std::int64_t best_step",
    "run/checkpoint/checkpoint_keeper.h": "CheckpointKeeper::MakeWriting writing, std::function<void()> sample_groups",
    "run/checkpoint/disk_plan.h": "ModelShape shape, at::ScalarType dtype",
    "run/metrics/console.h": "ConsoleOptions options",
    "run/metrics/metric_set.h": "std::vector<double> rewards",
    "run/metrics/metrics_file.h": "std::filesystem::path run, std::int64_t last_step",
    "run/metrics/statistics.h": "std::vector<double> rewards",
    "run/metrics/tensorboard_file.h": "std::filesystem::path run",
    "run/recorder.h": "RunInfo info",
    "run/run_files.h": "std::filesystem::path run",
    "run/wandb_logger.h": "std::filesystem::path run, WandbVoice voice",
    "serve/api_server.h": "ServedModel text",
    "serve/completion_request.h": "Json body, ServedModel text",
    "serve/service.h": "ServedModel text, std::vector<TokenId> ids, "
                       "std::shared_ptr<Receiver> receiver",
    "text/chat_template.h": "Json messages",
    "text/tokenizer/json_fields.h": "SortedJson value",
    "text/tokenizer/pre_tokenizer.h": "SortedJson file, std::string text",
    "text/tokenizer/regex.h": "std::string text",
    "text/tokenizer/scanner.h": "std::string pattern, std::string text",
    "trainer/distillation.h": "at::Tensor hidden, at::Tensor teacher_hidden, CausalLm& teacher",
    "trainer/carried_file.h": "std::filesystem::path folder",
    "trainer/gradient_pass.h": "std::vector<TargetSequence> sequences, double lr, MeanOver mean, "
                               "Objective& objective",
    "trainer/holdings.h": "ModelShape shape",
    "trainer/memory_plan.h": "ModelShape shape, at::Device device, at::ScalarType dtype",
    "trainer/objective.h": "Shaping shaping, bool off_policy, GradientPass& gradients, double lr, "
                           "PassBatch mini_batch, MeanOver mean",
    "trainer/other_teacher.h": "std::filesystem::path folder, at::Device device, "
                               "at::ScalarType dtype, std::vector<ScoreRequest> requests",
    "trainer/open_groups.h": "PromptBatch fresh, GroupSampler& sampler, GroupSampler::OnGroup on_group, "
                             "std::uint32_t now",
    "trainer/pretrain/document_objective.h": "GradientPass& gradients, double lr, "
                                             "std::vector<TrainingDocument> documents, MeanOver mean",
    "trainer/pretrain/document_trainer.h": "std::unique_ptr<Documents> documents, DocumentState& state",
    "trainer/sampler.h": "GroupSampler& sampler",
    "trainer/slow_teacher.h": "std::vector<ScoreRequest> requests",
    "trainer/teacher_states.h": "CausalLm& teacher, std::vector<TargetSequence> shown, "
                                "std::vector<std::size_t> numbers, double temperature, "
                                "std::vector<TargetSequence> sequences, at::Device device",
    "trainer/train_state.h": "PromptStream stream, std::filesystem::path folder, "
                             "std::filesystem::path origin, std::filesystem::path checkpoint, "
                             "std::filesystem::path other_runs_checkpoint",
    "trainer/trainer.h": "PromptSet& problems, std::unique_ptr<Grader> grader",
    "trainer/updater.h": "Updater& updater, double lr, Shaping shaping",
}

# Further headers that an example needs besides its own.
INCLUDES = ["data/prompt_stream.h", "reward/code/run.h", "reward/line_process.h", "reward/text_terms.h",
            "io/process/pipes.h", "report/sweep/arms.h", "run/metrics/statistics.h"]
INCLUDES_ABOVE = ["model/layer.h", "model/weights.h", "ops/products.h", "ops/token_scores.h", "optim/schedule.h",
                  "inference/scorer.h",
                  "ops/uniform_noise.h", "report/inspect/analysis.h", "ops/device.h", "eval/results/bench_rows.h",
                  "run/stop_signals.h", "trainer/policy_objective.h", "trainer/gradient_pass.h",
                  "trainer/trainer.h"]

FILE_SCOPE = {"cli/command_testing.h", "model/layer_parameters.h", "ops/simd.h"}  # definitions

NOT_CODE = {
    "data/code_rows.h": "columns of data sets",
    "data/countdown.h": "a prompt and a response of the task",
    "data/data_card.h": "YAML",
    "dist/testing.h": "a test, which needs the flags of test programs",
    "eval/results/sample_row.h": "a row of JSON",
    "io/process/command_keeper.h": "messages between processes",
    "io/process/command_keeper.h": "messages between processes",
    "reward/math/latex_parser.h": "the grammar",
    "reward/math/normal_form.h": "mathematics",
    "run/metrics/progress_text.h": "a line that the terminal shows",
}


def opening_comment(text):
    lines = []
    for line in text.splitlines():
        if not line.startswith("//"):
            break
        lines.append(line)
    return lines


def examples_of(text):
    """[(number of the first line, lines)] of a header's examples."""
    found, current, before = [], None, ""
    for number, line in enumerate(opening_comment(text), 1):
        if line.startswith("//   "):
            if current is None and before == "//":
                current = []
                found.append((number, current))
            if current is not None:
                current.append(line[5:])
        else:
            current = None
        before = line.rstrip()
    return found


def as_code(line):
    line = line.replace("{ ... }", "{}").replace(", ...", "")
    return re.sub(r"\) \.\.\.(?=\s*(//|$))", ") {}", line)


def source_of(headers, above):
    """One source for all examples of these headers."""
    common = [entry.split(" ", 1) for entry in COMMON[False] + (COMMON[True] if above else [])]
    included = [*(name for name, _ in common), *INCLUDES, *(INCLUDES_ABOVE if above else []), *headers]
    parts = ["#include <iostream>", "#include <fmt/format.h>", *(f'#include "{name}"' for name in included),
             "namespace antisd::examples {",
             "struct Anything { template <typename T> operator T() const; };",
             "struct Call { template <typename... T> Anything operator()(T&&...) const; };",
             *(f"extern const Call {name};" for name in CALLS),
             *(f"extern {declaration};" for _, declaration in common)]
    for name in headers:
        text = (SOURCE / name).read_text()
        inner = re.search(r"^namespace ([\w: ]+) \{", text, re.MULTILINE).group(1).replace("inline ", "")
        for number, lines in examples_of(text):
            body = [f'#line {number} "src/{name}"', *map(as_code, lines)]
            if name not in FILE_SCOPE:
                body = [f"void example({NAMES.get(name, '')}) {{ using namespace {inner};", *body, "}"]
            parts += [f"namespace at_{re.sub('[^a-z0-9]', '_', name)}_{number} {{", *body, "}"]
    return "\n".join(parts + ["}", ""])


def flags_of(build, target):
    """The compiler with the flags of a target's sources, and its working directory."""
    for entry in json.loads((build / "compile_commands.json").read_text()):
        words = shlex.split(entry["command"])
        if f"/{target}.dir/" in entry["command"] and "c++-header" not in words:
            output = words.index("-o")
            words = words[:output] + words[output + 2:]
            return words[:words.index("-c")], entry["directory"]
    sys.exit(f"{build}/compile_commands.json: no source of {target}")


def compile_examples(build, target, headers, above):
    """The compiler's errors in the examples; "" if there are none."""
    words, folder = flags_of(build, target)
    command = [*words, "-w", "-fsyntax-only", "-x", "c++", "-"]
    done = subprocess.run(command, cwd=folder, input=source_of(headers, above), text=True, capture_output=True)
    return done.stderr if done.returncode else ""


def main():
    build, only = pathlib.Path(sys.argv[1]).resolve(), set(sys.argv[2:])
    layers = read_layers()
    below, above = [], []
    for path in sorted(SOURCE.rglob("*.h")):
        name = path.relative_to(SOURCE).as_posix()
        if name in NOT_CODE or not examples_of(path.read_text()):
            continue
        if only and f"src/{name}" not in only:
            continue
        layer = layer_of(name, layers)
        (above if layer and layers[layer][2] else below).append(name)
    groups = [("cli_test", below, False), ("weights_test", above, True)]
    if not (build / "libantisd_tensor.so").exists():  # built without torch
        groups.pop()
    with ThreadPoolExecutor() as pool:
        told = list(pool.map(lambda group: compile_examples(build, *group) if group[1] else "", groups))
    print("".join(told), end="")
    print(f"examples: {len(below)} headers below the tensor line, {len(above)} above; "
          f"{len(NOT_CODE)} that are no C++ left out")
    return 1 if any(told) else 0


if __name__ == "__main__":
    sys.exit(main())
