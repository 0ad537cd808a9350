// `inspect`: u = t - s per token, for one response or over many.

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/rows.h"
#include "cli/weights/microscope.h"
#include "core/error.h"
#include "core/note.h"
#include "data/row_reader.h"
#include "hub/cache.h"
#include "io/atomic_file.h"
#include "io/row_source.h"
#include "report/inspect/analysis.h"
#include "report/inspect/report_page.h"
#include "report/inspect/terminal.h"
#include "run/run_files.h"

namespace antisd::inline cli {
namespace {

namespace fs = std::filesystem;

struct InspectOptions {
  ModelOptions model;
  std::vector<std::string> arguments;  // inputs, a configuration, key=value
  std::string problem, answer, solution, response;
  bool has_problem = false, has_answer = false, has_solution = false, has_response = false;
  std::int64_t samples = -1, seed = -1;
  std::string only = "all", words, html;
  bool print_words = false, json = false, colour = false, rescore = false, keep_going = false;
  int show = -1;
  SummaryOptions summary;
};

// The positional arguments, sorted by meaning.
struct Arguments {
  std::vector<std::string> inputs;  // files, "-"
  std::string config;
  std::vector<std::string> settings;
};

// "method.name=grpo"; a file name may contain '=', but no key contains '/'.
bool is_setting(const std::string& argument) {
  const std::string key = argument.substr(0, argument.find('='));
  return key.size() < argument.size() && key.find('/') == std::string::npos &&
         key.find('.') != std::string::npos && !fs::exists(argument);
}

// A run directory stands for its rollouts.
void add_rollouts(const fs::path& run, std::vector<std::string>& inputs) {
  const fs::path folder = fs::exists(run / kRolloutsFolder) ? run / kRolloutsFolder : run;
  std::vector<std::string> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("step-") && name.ends_with(".jsonl"))
      found.push_back(entry.path().string());
  }
  if (found.empty()) {
    throw InputError("there are no rollouts",
                     {.where = run.string(), .remedy = "train with record.rollouts_every=1"});
  }
  std::sort(found.begin(), found.end());
  inputs.insert(inputs.end(), found.begin(), found.end());
}

Arguments sort_arguments(const std::vector<std::string>& arguments) {
  Arguments sorted;
  for (const std::string& argument : arguments) {
    if (is_setting(argument)) {
      sorted.settings.push_back(argument);
    } else if (argument.ends_with(".toml")) {
      if (!sorted.config.empty())
        throw InputError(
            "only one configuration can be given",
            {.where = argument, .remedy = "let one extend the other, or use key=value"});
      sorted.config = argument;
    } else if (fs::is_directory(argument)) {
      add_rollouts(argument, sorted.inputs);
    } else {
      sorted.inputs.push_back(argument);
    }
  }
  // A run's rollouts are used with the run's configuration.
  if (sorted.config.empty() && !sorted.inputs.empty()) {
    const fs::path beside = fs::path(sorted.inputs.front()).parent_path() / ".." / kConfigFile;
    if (sorted.inputs.front().find("rollouts/") != std::string::npos && fs::exists(beside))
      sorted.config = beside.lexically_normal().string();
  }
  return sorted;
}

void read_config(const Arguments& arguments, const InspectOptions& options, RunConfig& config) {
  if (!arguments.config.empty()) config.options().load_toml(arguments.config);
  for (const std::string& setting : arguments.settings)
    config.options().assign(setting);
  if (options.seed >= 0) config.options().assign(fmt::format("train.seed={}", options.seed));
  config.resolve();
}

WordList read_words(const std::string& file) {
  if (file.empty()) return WordList::parse(WordList::default_text(), "the built-in list");
  return WordList::parse(read_file(file), file);
}

class Inspector {
 public:
  Inspector(const InspectOptions& options, const Arguments& arguments, const RunConfig& config)
      : options_(options),
        arguments_(arguments),
        method_(resolve_method(config.method, config.loss)),
        microscope_(config, method_, options.model,
                    options.samples < 0 ? std::nullopt : std::optional(options.samples)),
        analysis_(read_words(options.words), microscope_.tokenizer()) {}

  int run() {
    if (options_.has_problem) {
      wait(microscope_.read(problem_of_flags(), "--problem", "problem", 1));
    } else if (arguments_.inputs.empty()) {
      read_stream("-");
    }
    for (const std::string& input : arguments_.inputs)
      read_stream(input);
    look_at_waiting();
    if (analysis_.responses() == 0) throw_nothing();
    write();
    return 0;
  }

 private:
  Json problem_of_flags() const {
    Json row = {{"problem", options_.problem}};
    if (options_.has_answer) row["answer"] = options_.answer;
    if (options_.has_solution) row["solution"] = options_.solution;
    if (options_.has_response) row["response"] = options_.response;
    return row;
  }

  void read_stream(const std::string& input) {
    if (input == "-") {
      RowSource reader(std::cin, "standard input");
      read_rows(reader, "row");
    } else {
      RowReader reader(input);
      read_rows(reader, reader.stem());
    }
  }

  template <typename Reader>
  void read_rows(Reader& reader, const std::string& stem) {
    for (std::int64_t number = 1;; ++number) {
      std::optional<LookRequest> problem;
      std::optional<RolloutRow> rollout;
      try {
        Json row;
        if (!reader.next(row)) return;
        if (is_rollout_row(row)) {
          rollout = read_rollout_row(row, method_.sign == 0 ? 0 : method_.lambda_max);
          check_text(*rollout, microscope_.tokenizer());
        } else {
          problem = microscope_.read(std::move(row), reader.where(), stem, number);
        }
      } catch (const InputError& error) {
        refuse(error, reader.where());
      }
      if (problem) wait(std::move(*problem));
      if (rollout) take(std::move(*rollout), reader.where());
    }
  }

  void refuse(const InputError& error, const std::string& where) {
    if (!options_.keep_going) throw_placed(error, where);
    ++bad_rows_;
    note(fmt::format("antisd: warning: {}: {}; left out", where, error.problem()));
  }

  void take(RolloutRow rollout, const std::string& where) {
    look_at_waiting();
    if (rollout.has_scores && !options_.rescore) {
      take(recorded_inspection(std::move(rollout), microscope_.tokenizer(), method_));
    } else if (rollout.inspection.response.context.prompt_ids.empty()) {
      ++without_teacher_;
    } else {
      try {
        take(microscope_.look(std::move(rollout.inspection)));
      } catch (const InputError& error) {
        refuse(error, where);
      }
    }
  }

  // Rows are collected so that many are sampled and scored in one pass.
  void wait(LookRequest request) {
    constexpr std::size_t kMostWaiting = 32;
    const bool given = request.response_ids.has_value();
    if (!waiting_.empty() && waiting_.front().response_ids.has_value() != given) look_at_waiting();
    waiting_.push_back(std::move(request));
    if (waiting_.size() == kMostWaiting) look_at_waiting();
  }

  void look_at_waiting() {
    if (waiting_.empty()) return;
    const auto refused = [&](const InputError& error, const std::string& where) {
      refuse(error, where);
    };
    for (Inspection& inspection : microscope_.look(std::exchange(waiting_, {}), refused))
      take(std::move(inspection));
  }

  void take(Inspection inspection) {
    const bool right = inspection.response.verdict.correct();
    if ((options_.only == "right" && !right) || (options_.only == "wrong" && right)) {
      ++not_asked_for_;
      return;
    }
    analysis_.add(inspection);
    if (std::ssize(shown_) < (options_.show < 0 ? 4 : options_.show))
      shown_.push_back(to_json(inspection, analysis_.kinds_of(inspection)));
  }

  [[noreturn]] void throw_nothing() const {
    std::string what = "there is nothing to inspect";
    std::string remedy = "give rows with 'problem', or rollouts of a run";
    if (without_teacher_ > 0) {
      what = fmt::format("none of the {} rows has a teacher", without_teacher_);
      remedy = "the run's method had none (grpo): give problems instead, and responses are sampled";
    } else if (not_asked_for_ > 0) {
      what = fmt::format("none of the {} responses is {}", not_asked_for_, options_.only);
      remedy = "leave out --only, or sample more with --samples";
    } else if (microscope_.ungraded() > 0) {
      what = fmt::format("none of the {} responses could be graded", microscope_.ungraded());
      remedy = "give 'reward' with the response, or see `antisd grade`";
    }
    throw InputError(what, {.remedy = remedy});
  }

  Json report() const {
    Json responses = Json::array();
    for (const Json& response : shown_)
      responses.push_back(response);
    const auto row = std::find_if(method_table().begin(), method_table().end(),
                                  [&](const MethodRow& r) { return r.name == method_.name; });
    Json summary = analysis_.summary(options_.summary);
    summary["left_out"] = {{"without_teacher", without_teacher_},
                           {"not_graded", microscope_.ungraded()},
                           {"bad_rows", bad_rows_}};
    return {{"model", pinned_model(options_.model.model)},
            {"method", std::string(method_.name)},
            {"formula", std::string(row->formula)},
            {"kinds", analysis_.words().kinds()},
            {"summary", std::move(summary)},
            {"responses", std::move(responses)}};
  }

  void write() const {
    const Json whole = report();
    if (!options_.html.empty()) write_file_atomically(options_.html, report_page(whole));
    if (options_.json) {
      std::cout << to_json_line(whole) << "\n";
      return;
    }
    const bool one = analysis_.responses() == 1;
    const bool coloured = options_.colour || isatty(STDOUT_FILENO) == 1;
    if (one || options_.show > 0) {
      for (const Json& response : shown_)
        std::cout << response_text(response, whole["kinds"], coloured) << "\n";
    }
    if (!one) std::cout << summary_text(whole["summary"]);
    const std::int64_t left_out = without_teacher_ + microscope_.ungraded() + bad_rows_;
    if (left_out > 0) {
      note(fmt::format(
          "antisd: warning: left out: {} rows without a teacher, {} responses without a grade, {} "
          "bad rows",
          without_teacher_, microscope_.ungraded(), bad_rows_));
    }
  }

  const InspectOptions& options_;
  const Arguments& arguments_;
  Method method_;
  Microscope microscope_;
  Analysis analysis_;
  std::vector<LookRequest> waiting_;
  std::vector<Json> shown_;
  std::int64_t without_teacher_ = 0, not_asked_for_ = 0, bad_rows_ = 0;
};

void add_flags(CLI::App& app, InspectOptions& options) {
  app.add_option("--problem", options.problem, "one problem instead of rows");
  app.add_option("--answer", options.answer, "its answer, for the grader and the teacher");
  app.add_option("--solution", options.solution, "its solution, for the teacher");
  app.add_option("--response", options.response,
                 "the response; if not given, responses are sampled");
  app.add_option("--samples", options.samples,
                 "responses sampled per problem, or as the group of a given one "
                 "[rollout.group_size, or none]")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{4096}));
  app.add_option("--only", options.only, "which responses to use: right, wrong or all")
      ->capture_default_str()
      ->check(CLI::IsMember({"right", "wrong", "all"}));
  app.add_flag("--rescore", options.rescore,
               "score the rollouts of a run again with MODEL, under their own prompts");
  app.add_option("--show", options.show,
                 "responses shown in detail [4; in the terminal only if there is just one]")
      ->check(CLI::Range(0, 1000));
  app.add_option("--top", options.summary.top, "tokens with the highest and the lowest mean u")
      ->capture_default_str()
      ->check(CLI::Range(1, 100'000));
  app.add_option("--min-count", options.summary.min_count,
                 "minimum occurrences of a listed token; 0: 5 from 1,000 tokens on, else 1")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  app.add_option("--words", options.words, "file with the words of each kind");
  app.add_flag("--print-words", options.print_words, "print the built-in word list and exit");
  app.add_flag("--json", options.json, "the whole report as one line of JSON");
  app.add_option("--html", options.html, "write the report as one self-contained page");
  app.add_flag("--color", options.colour, "use colours even if standard output is not a terminal");
  app.add_option("--seed", options.seed, "train.seed: for sampling and the choice of peers")
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--keep-going", options.keep_going, "skip bad rows instead of stopping");
}

}  // namespace

std::function<int()> add_inspect(CLI::App& app) {
  const auto options = std::make_shared<InspectOptions>();
  app.add_option("MODEL", options->model.model,
                 "Hugging Face model directory or name, or a PEFT directory with a LoRA adapter");
  app.add_option(
      "FILE CONFIG key=value", options->arguments,
      "rows, rollouts of a run or a run directory; a TOML file; overrides. - is standard "
      "input");
  add_flags(app, *options);
  add_device_options(app, options->model);
  app.footer(
      "Row in: {\"problem\", \"answer\"?, \"solution\"?, \"response\" | \"response_ids\"?, "
      "\"reward\"?, \"id\"?}, a row of a run's\n"
      "rollouts/step-*.jsonl (needs no weights), or {\"prompt_ids\", \"teacher_prompt_ids\", "
      "\"response_ids\"}.\n"
      "u = t - s: log-probability of the token under the teacher's prompt less that under the "
      "student's. See docs/inspect.md.");
  return [options, &app] {
    if (options->print_words) {
      std::cout << WordList::default_text();
      return 0;
    }
    if (options->model.model.empty())
      throw InputError("no model is named", {.remedy = "see `antisd inspect --help`"});
    options->has_problem = app.count("--problem") > 0;
    options->has_answer = app.count("--answer") > 0;
    options->has_solution = app.count("--solution") > 0;
    options->has_response = app.count("--response") > 0;
    if (!options->has_problem &&
        (options->has_answer || options->has_solution || options->has_response))
      throw InputError("--answer, --solution and --response belong to --problem",
                       {.remedy = "give --problem, or rows"});
    const Arguments arguments = sort_arguments(options->arguments);
    RunConfig config;
    read_config(arguments, *options, config);
    Inspector inspector(*options, arguments, config);
    return inspector.run();
  };
}

}  // namespace antisd::inline cli
