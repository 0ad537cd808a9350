#include "bench/grade_code.h"

#include <atomic>
#include <chrono>
#include <thread>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "core/error.h"
#include "reward/code_grader.h"

namespace antisd::bench {
namespace {

constexpr const char* kResponse = R"(The sum of the squares of the even numbers:
```python
def f(numbers):
    return sum(n * n for n in numbers if n % 2 == 0)

if __name__ == "__main__":
    print(f(map(int, input().split())))
```
)";

Json tests_of(const std::string& kind) {
  if (kind == "stdio")
    return {{"kind", kind}, {"cases", {{{"input", "1 2 3 4\n"}, {"output", "20\n"}}}}};
  if (kind == "functional")
    return {{"kind", kind},
            {"entry_point", "f"},
            {"code",
             "def check(candidate):\n    assert candidate([1, 2, 3, 4]) == 20\n    assert "
             "candidate([]) == 0\n"}};
  if (kind == "asserts")
    return {{"kind", kind},
            {"code", "assert f([1, 2, 3, 4]) == 20\nassert f([]) == 0\nassert f([3]) == 0\n"}};
  throw InputError("unknown kind \"" + kind + "\"",
                   {.where = "--kind", .remedy = "use asserts, functional or stdio"});
}

}  // namespace

int run_grade_code(const std::vector<std::string>& arguments) {
  int programs = 600, workers = 0;
  std::string kind = "asserts", sandbox_choice = "auto";
  bool json = false;
  CLI::App app("Small programs a second inside the full sandbox", "antisd-bench grade-code");
  app.add_option("--programs", programs, "Programs to grade")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--workers", workers, "Programs at a time, 0: one for each core")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_option("--kind", kind, "asserts, functional or stdio")->capture_default_str();
  app.add_option("--sandbox", sandbox_choice, "auto, or none to see what isolation costs")
      ->capture_default_str();
  app.add_flag("--json", json, "One JSON object instead of text");
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());  // as CLI11 takes them
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }

  const Json tests = tests_of(kind);
  if (workers == 0) workers = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  CodeGraderOptions options;
  options.workers = workers;
  options.sandbox = sandbox_choice;
  CodeGrader grader(options);
  std::atomic<int> next = 0, wrong = 0;
  const auto work = [&](int count) {
    std::vector<std::thread> threads;
    next = 0;
    for (int t = 0; t < workers; ++t)
      threads.emplace_back([&] {
        while (next++ < count)
          if (grader.grade(kResponse, tests).correct != true) ++wrong;
      });
    for (std::thread& thread : threads)
      thread.join();
  };
  work(2 * workers);  // starts all interpreters
  const auto begin = std::chrono::steady_clock::now();
  work(programs);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;

  const double rate = programs / seconds.count();
  const std::string_view sandbox = to_string(grader.confinement());
  if (json)
    fmt::print("{}\n", Json({{"bench", "grade-code"},
                             {"kind", kind},
                             {"sandbox", sandbox},
                             {"workers", workers},
                             {"programs", programs},
                             {"wrong", wrong.load()},
                             {"programs_per_s", rate}})
                           .dump());
  else
    fmt::print(
        "grade-code {} in {} with {} workers: {:.0f} programs/s, {:.2f} ms each ({} wrong)\n", kind,
        sandbox, workers, rate, 1000.0 * workers / rate, wrong.load());
  return wrong == 0 ? 0 : 1;
}

}  // namespace antisd::bench
