#include <atomic>
#include <thread>

#include <fmt/format.h>

#include "bench/benchmarks.h"
#include "bench/options.h"
#include "core/stopwatch.h"
#include "reward/code/grader.h"

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
  return {{"kind", kind},
          {"code", "assert f([1, 2, 3, 4]) == 20\nassert f([]) == 0\nassert f([3]) == 0\n"}};
}

}  // namespace

int run_grade_code(const Arguments& arguments) {
  int programs = 600, workers = 0;
  std::string kind = "asserts", sandbox_choice = "auto";
  bool json = false;
  CLI::App app("small programs per second in the full sandbox", "antisd-bench grade-code");
  add_number(app, "--programs", programs, 1, 1'000'000, "to grade");
  add_number(app, "--workers", workers, 0, 1024, "programs at a time; 0: one per core");
  add_choice(app, "--kind", kind, {"asserts", "functional", "stdio"});
  add_choice(app, "--sandbox", sandbox_choice, {"auto", "none"}, "none: what isolation costs");
  app.add_flag("--json", json, "one line of JSON");
  if (const auto status = parse(app, arguments)) return *status;

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
  Stopwatch watch;
  work(programs);
  const double rate = programs / watch.lap();
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
